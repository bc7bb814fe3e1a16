package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"hearth/internal/chat"
)

// maxDepth bounds the nesting of a request body; the deepest JSON Schemas met in agent traffic have about 20 levels.
const maxDepth = 256

// Kind is the type of a JSON value. Missing is a field that is not there.
type Kind uint8

const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}

func (k Kind) String() string { return kindNames[k] }

// Value is one value inside a request body: its exact bytes and the way to it. Children are found by scanning on
// demand, so a body costs its own bytes and whatever its reader keeps, not a tree. An object that is asked for a field
// is scanned once; it and its copies then remember where the fields are that decoders know, so they belong to one
// goroutine. Fields that no decoder asks for cost nothing but the scan.
type Value struct {
	raw    []byte // valid JSON without surrounding space; nil when Missing
	parent *Value
	key    string  // in an object
	index  int     // in an array; -1 in an object
	known  *fields // empty until asked for; nil for kinds other than objects
}

// fields are those of one object whose names are in names, each once: the last of that name.
type fields struct {
	names map[string]string
	list  []Value
	of    *Value // the object, the parent of them and of those that are missing
}

// asked are the names that were declared or that Get was ever called with, each to itself. Decoders ask by literals, so they are
// few; a name that an object was not scanned for is looked for by a scan of its own.
var asked struct {
	names atomic.Pointer[map[string]string]
	mu    sync.Mutex
}

// mostAsked bounds the names, should they ever be a client's words; what is beyond is found by scanning.
const mostAsked = 1024

// Declare registers names that decoders ask for, so that the first request need not be scanned for each of them. Packages call it
// for a variable of theirs.
func Declare(names ...string) (declared int) {
	learn(names...)
	return len(names)
}

var _ = Declare("mcp", "metadata", "previous_response_id", "prompt_cache_key", "service_tier", "session_id", "user_id")

func init() {
	for _, p := range chat.SamplingParameters {
		learn(p.Name)
	}
}

// learn adds names.
func learn(more ...string) {
	asked.mu.Lock()
	defer asked.mu.Unlock()
	old := askedNames()
	more = slices.DeleteFunc(slices.Clone(more), func(name string) bool { return name == "" || old[name] != "" })
	if len(more) == 0 || len(old) == mostAsked {
		return
	}
	names := make(map[string]string, len(old)+len(more))
	maps.Copy(names, old)
	for _, name := range more {
		if len(names) < mostAsked {
			names[name] = name
		}
	}
	asked.names.Store(&names)
}

func askedNames() map[string]string {
	if p := asked.names.Load(); p != nil {
		return *p
	}
	return nil
}

// newValue makes a value of valid JSON.
func newValue(raw []byte, parent *Value, key string, index int) Value {
	v := Value{raw: raw, parent: parent, key: key, index: index}
	if raw[0] == '{' {
		v.known = new(fields)
	}
	return v
}

// Parse checks that body is one JSON document within the depth bound and returns its root. The Value aliases body.
func Parse(body []byte) (Value, *chat.Error) { return parse(context.Background(), body) }

// parse is Parse that breaks off when ctx ends.
func parse(ctx context.Context, body []byte) (Value, *chat.Error) {
	switch ok, tooDeep := isJSON(ctx, body, maxDepth); {
	case ctx.Err() != nil:
		return Value{}, chat.AsError(ctx.Err())
	case tooDeep:
		return Value{}, chat.Boundf(chat.BoundDepth, "", "the request body nests deeper than %d levels", maxDepth)
	case !ok:
		return Value{}, syntaxError(body)
	}
	return newValue(bytes.TrimSpace(body), nil, "", 0), nil
}

func syntaxError(body []byte) *chat.Error {
	if len(bytes.TrimSpace(body)) == 0 {
		return chat.Invalidf("", "the request body is empty; send a JSON object")
	}
	var raw json.RawMessage
	err := json.Unmarshal(body, &raw)
	var se *json.SyntaxError
	if errors.As(err, &se) {
		return chat.Invalidf("", "the request body is not valid JSON: %s at byte %d", se.Error(), se.Offset)
	}
	return chat.Invalidf("", "the request body is not valid JSON: %v", err)
}

// skipString returns the index after the string that starts at b[i] == '"', or len(b) if it does not end.
func skipString(b []byte, i int) int {
	i++
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		i++
		if slashes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// skipValue returns the index after the value that starts at b[i], which is valid JSON.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i // the end of the parent, after a number or literal
			}
			depth--
			i++
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r' || b[i] == ',' || b[i] == ':') {
		i++
	}
	return i
}

// At is v as the document that the string at holds: errors about it are about the string.
func (v Value) At(at Value) Value {
	v.parent, v.key, v.index = at.parent, at.key, at.index
	return v
}

// Kind returns the value's type.
func (v Value) Kind() Kind {
	if len(v.raw) == 0 {
		return Missing
	}
	switch v.raw[0] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 'n':
		return Null
	case 't', 'f':
		return Bool
	}
	return Number
}

// Absent reports whether the value is missing or null, which optional fields treat alike.
func (v Value) Absent() bool { k := v.Kind(); return k == Missing || k == Null }

// Raw returns the value's exact bytes, which alias the body.
func (v Value) Raw() json.RawMessage { return json.RawMessage(v.raw) }

// Path spells the way from the root: messages[2].content[0].type.
func (v Value) Path() string {
	if v.parent == nil {
		return ""
	}
	p := v.parent.Path()
	switch {
	case v.index >= 0:
		return p + "[" + strconv.Itoa(v.index) + "]"
	case p == "":
		return v.key
	}
	return p + "." + v.key
}

// Fields yields the keys and values of an object in order, duplicates included; nothing for other kinds.
func (v Value) Fields() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for i := skipSpace(v.raw, 1); i < len(v.raw) && v.raw[i] != '}'; i = skipSpace(v.raw, i) {
			end := skipString(v.raw, i)
			key := unquote(v.raw[i:end])
			i = skipSpace(v.raw, end)
			end = skipValue(v.raw, i)
			if !yield(key, newValue(v.raw[i:end], &v, key, -1)) {
				return
			}
			i = end
		}
	}
}

// Items yields the elements of an array; nothing for other kinds.
func (v Value) Items() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Kind() != Array {
			return
		}
		n := 0
		for i := skipSpace(v.raw, 1); i < len(v.raw) && v.raw[i] != ']'; i = skipSpace(v.raw, i) {
			end := skipValue(v.raw, i)
			if !yield(n, newValue(v.raw[i:end], &v, "", n)) {
				return
			}
			i = end
			n++
		}
	}
}

// Get returns the field key of an object, the last if it is there twice, or a Missing value that knows its path.
func (v Value) Get(key string) Value {
	if v.known != nil {
		if v.known.names == nil {
			v.known.names = askedNames()
			v.collect()
		}
		if v.known.names[key] == "" {
			learn(key)
			return v.find(key)
		}
		for i := range v.known.list {
			if f := &v.known.list[i]; f.key == key {
				return *f
			}
		}
	}
	return v.missing(key)
}

func (v Value) missing(key string) Value {
	var parent *Value
	if v.known != nil {
		parent = v.known.of
	}
	if parent == nil { // most fields are missing, and of an object that was scanned they cost nothing
		of := v
		parent = &of
	}
	return Value{parent: parent, key: key, index: -1}
}

// collect scans the object for fields of known names.
func (v Value) collect() {
	known := v.known
	if known.names == nil { // nothing was ever asked for
		known.names = map[string]string{}
	}
	known.of = &v
	known.list = make([]Value, 0, min(4, 1+len(v.raw)/12))
	v.eachField(func(rawKey, raw []byte) {
		name := nameIn(known.names, rawKey)
		if name == "" {
			return
		}
		f := newValue(raw, &v, name, -1)
		for i := range known.list {
			if known.list[i].key == name {
				known.list[i] = f
				return
			}
		}
		known.list = append(known.list, f)
	})
}

// nameIn is the name that a key spells, "" if it is not one of names.
func nameIn(names map[string]string, rawKey []byte) string {
	in := rawKey[1 : len(rawKey)-1]
	if bytes.IndexByte(in, '\\') < 0 { // names have nothing that unquote changes
		return names[string(in)]
	}
	const longest = 6 // bytes of an escaped character
	if len(in) > longest*longestName {
		return ""
	}
	return names[unquote(rawKey)]
}

// longestName is more bytes than a name that decoders ask for has.
const longestName = 64

// find is Get by a scan.
func (v Value) find(key string) Value {
	found := v.missing(key)
	v.eachField(func(rawKey, raw []byte) {
		if unquote(rawKey) == key {
			found = newValue(raw, found.parent, key, -1)
		}
	})
	return found
}

// eachField calls f with each key as it is spelled, and its value.
func (v Value) eachField(f func(rawKey, raw []byte)) {
	for i := skipSpace(v.raw, 1); i < len(v.raw) && v.raw[i] != '}'; i = skipSpace(v.raw, i) {
		end := skipString(v.raw, i)
		key := v.raw[i:end]
		i = skipSpace(v.raw, end)
		end = skipValue(v.raw, i)
		f(key, v.raw[i:end])
		i = end
	}
}

// count is how many values v is made of, itself and keys included; at most one more than most.
func (v Value) count(most int) int {
	n := 0
	for i := 0; i < len(v.raw) && n <= most; {
		switch v.raw[i] {
		case '"':
			i = skipString(v.raw, i)
			n++
			continue
		case '{', '[', ',':
			n++
		}
		i++
	}
	return n
}

// unquote decodes a JSON string. Invalid UTF-8 and lone surrogates become U+FFFD, as encoding/json has it.
func unquote(raw []byte) string {
	if len(raw) < 2 {
		return ""
	}
	in := raw[1 : len(raw)-1]
	switch {
	case bytes.IndexByte(in, '\\') >= 0:
		return unescape(in)
	case utf8.Valid(in):
		return string(in)
	}
	return replaceInvalid(string(in))
}
