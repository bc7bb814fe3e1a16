package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
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
// demand, so a body costs its own bytes and whatever its reader keeps, not a tree.
type Value struct {
	raw    []byte // valid JSON without surrounding space; nil when Missing
	parent *Value
	key    string // in an object
	index  int    // in an array; -1 in an object
}

// Parse checks that body is one JSON document within the depth bound and returns its root. The Value aliases body.
func Parse(body []byte) (Value, *chat.Error) {
	if depth := nesting(body); depth > maxDepth {
		return Value{}, chat.Invalidf("", "the request body nests deeper than %d levels", maxDepth)
	}
	if !json.Valid(body) {
		return Value{}, syntaxError(body)
	}
	return Value{raw: bytes.TrimSpace(body)}, nil
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

// nesting returns the deepest level of brackets outside strings, of bytes that need not be JSON.
func nesting(b []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = skipString(b, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
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
			if !yield(key, Value{raw: v.raw[i:end], parent: &v, key: key, index: -1}) {
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
			if !yield(n, Value{raw: v.raw[i:end], parent: &v, index: n}) {
				return
			}
			i = end
			n++
		}
	}
}

// Get returns the field key of an object, the last if it is there twice, or a Missing value that knows its path.
func (v Value) Get(key string) Value {
	found := Value{parent: &v, key: key, index: -1}
	for k, f := range v.Fields() {
		if k == key {
			found = f
		}
	}
	return found
}

// unquote decodes a JSON string. Invalid UTF-8 and lone surrogates become U+FFFD, as encoding/json has it.
func unquote(raw []byte) string {
	if len(raw) < 2 {
		return ""
	}
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return string(in)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		panic("wire: unquote of validated JSON: " + err.Error())
	}
	return s
}

// Fields indexes the fields of an object that is asked for many of them.
type Fields struct {
	of     Value
	fields map[string]Value
}

// Index reads the keys of v once; a key that is there twice counts with its last value.
func Index(v Value) Fields {
	f := Fields{of: v, fields: map[string]Value{}}
	for k, e := range v.Fields() {
		f.fields[k] = e
	}
	return f
}

// Get returns the field key, or a Missing value that knows its path.
func (f Fields) Get(key string) Value {
	if v, ok := f.fields[key]; ok {
		return v
	}
	return Value{parent: &f.of, key: key, index: -1}
}
