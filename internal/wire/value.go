package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strconv"
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
// is scanned once; it and its copies then remember where its fields are, so they belong to one goroutine.
type Value struct {
	raw    []byte // valid JSON without surrounding space; nil when Missing
	parent *Value
	key    string   // in an object
	index  int      // in an array; -1 in an object
	known  *[]Value // fields, nil inside until asked for; nil for other kinds
}

// newValue makes a value of valid JSON.
func newValue(raw []byte, parent *Value, key string, index int) Value {
	v := Value{raw: raw, parent: parent, key: key, index: index}
	if raw[0] == '{' {
		v.known = new([]Value)
	}
	return v
}

// Parse checks that body is one JSON document within the depth bound and returns its root. The Value aliases body.
func Parse(body []byte) (Value, *chat.Error) {
	switch ok, tooDeep := isJSON(body, maxDepth); {
	case tooDeep:
		return Value{}, chat.Invalidf("", "the request body nests deeper than %d levels", maxDepth)
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
	if v.known != nil && *v.known == nil {
		all := make([]Value, 0, 8) // not nil, even if there are none
		for _, f := range v.Fields() {
			all = append(all, f)
		}
		*v.known = all
	}
	if v.known != nil {
		for _, f := range slices.Backward(*v.known) {
			if f.key == key {
				return f
			}
		}
	}
	return Value{parent: &v, key: key, index: -1}
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
