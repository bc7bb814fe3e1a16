package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonReader walks a JSON text once, front to back. It exists because the
// vocabulary and merges are most of a tokenizer.json (megabytes, hundreds of
// thousands of strings) and encoding/json takes over a second for them; the small
// rest is cut out with skip and left to encoding/json.
//
// The text must be valid UTF-8.
type jsonReader struct {
	data []byte
	pos  int
	buf  []byte // unescaped form of the last string that had escapes
}

func (r *jsonReader) errorf(format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", r.pos, fmt.Sprintf(format, args...))
}

// peek returns the next byte that is not white space, or 0 at the end.
func (r *jsonReader) peek() byte {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) expect(c byte) error {
	if got := r.peek(); got != c {
		if r.pos >= len(r.data) {
			return r.errorf("file ends where %q is due", c)
		}
		return r.errorf("found %q where %q is due", got, c)
	}
	r.pos++
	return nil
}

// object calls field for each key of the object at the read position; field must
// consume the value. The key is valid until the next string is read.
func (r *jsonReader) object(field func(key []byte) error) error {
	return r.list('{', '}', func() error {
		key, err := r.str()
		if err != nil {
			return err
		}
		if err := r.expect(':'); err != nil {
			return err
		}
		return field(key)
	})
}

// array calls elem for each element of the array at the read position; elem must
// consume it.
func (r *jsonReader) array(elem func() error) error { return r.list('[', ']', elem) }

func (r *jsonReader) list(open, end byte, item func() error) error {
	if err := r.expect(open); err != nil {
		return err
	}
	if r.peek() == end {
		r.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if r.peek() == ',' {
			r.pos++
			continue
		}
		return r.expect(end)
	}
}

// str reads a string. The result is valid until the next call.
func (r *jsonReader) str() ([]byte, error) {
	if err := r.expect('"'); err != nil {
		return nil, err
	}
	start := r.pos
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; {
		case c == '"':
			r.pos++
			return r.data[start : r.pos-1], nil
		case c == '\\':
			return r.escaped(start)
		case c < ' ':
			return nil, r.errorf("control character in a string")
		}
		r.pos++
	}
	return nil, r.errorf("file ends inside a string")
}

// escaped finishes a string that began at start and has its first backslash at
// the read position.
func (r *jsonReader) escaped(start int) ([]byte, error) {
	r.buf = append(r.buf[:0], r.data[start:r.pos]...)
	for r.pos < len(r.data) {
		c := r.data[r.pos]
		switch {
		case c == '"':
			r.pos++
			return r.buf, nil
		case c < ' ':
			return nil, r.errorf("control character in a string")
		case c != '\\':
			r.buf = append(r.buf, c)
			r.pos++
			continue
		}
		if r.pos+1 >= len(r.data) {
			break
		}
		r.pos += 2
		switch c := r.data[r.pos-1]; c {
		case '"', '\\', '/':
			r.buf = append(r.buf, c)
		case 'b':
			r.buf = append(r.buf, '\b')
		case 'f':
			r.buf = append(r.buf, '\f')
		case 'n':
			r.buf = append(r.buf, '\n')
		case 'r':
			r.buf = append(r.buf, '\r')
		case 't':
			r.buf = append(r.buf, '\t')
		case 'u':
			u, err := r.codePoint()
			if err != nil {
				return nil, err
			}
			r.buf = utf8.AppendRune(r.buf, u)
		default:
			return nil, r.errorf("unknown escape \\%c", c)
		}
	}
	return nil, r.errorf("file ends inside a string")
}

// codePoint reads the rest of a \u escape, both halves of a surrogate pair. A
// lone half is an error: it stands for no text.
func (r *jsonReader) codePoint() (rune, error) {
	u, err := r.hex4()
	if err != nil || !utf16.IsSurrogate(u) {
		return u, err
	}
	if r.pos+2 <= len(r.data) && r.data[r.pos] == '\\' && r.data[r.pos+1] == 'u' {
		r.pos += 2
		low, err := r.hex4()
		if err != nil {
			return 0, err
		}
		if u = utf16.DecodeRune(u, low); u != utf8.RuneError {
			return u, nil
		}
	}
	return 0, r.errorf("half a surrogate pair in a string")
}

func (r *jsonReader) hex4() (rune, error) {
	if r.pos+4 > len(r.data) {
		return 0, r.errorf("file ends inside a string")
	}
	u, err := strconv.ParseUint(string(r.data[r.pos:r.pos+4]), 16, 16)
	if err != nil {
		return 0, r.errorf("bad \\u escape")
	}
	r.pos += 4
	return rune(u), nil
}

// id reads a token id: an integer from 0 to maxTokens-1.
func (r *jsonReader) id() (int32, error) {
	r.peek()
	start, n := r.pos, 0
	for r.pos < len(r.data) && r.data[r.pos] >= '0' && r.data[r.pos] <= '9' && n < maxTokens {
		n = n*10 + int(r.data[r.pos]-'0')
		r.pos++
	}
	if r.pos == start || n >= maxTokens {
		r.pos = start
		return 0, r.errorf("a token id must be an integer from 0 to %d", maxTokens-1)
	}
	return int32(n), nil
}

// skip steps over the next value and returns its bytes. It checks brackets and
// strings only; a caller that uses the bytes decodes them with encoding/json.
func (r *jsonReader) skip() (json.RawMessage, error) {
	r.peek()
	start, depth := r.pos, 0
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case '"':
			if _, err := r.str(); err != nil {
				return nil, err
			}
			r.pos--
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth < 0 {
			break
		}
		r.pos++
		if depth == 0 && r.atEnd() {
			return r.data[start:r.pos], nil
		}
	}
	if r.pos == start || depth != 0 {
		return nil, r.errorf("a value is missing or not closed")
	}
	return r.data[start:r.pos], nil
}

// atEnd reports whether a value at nesting depth zero ends at the read position.
func (r *jsonReader) atEnd() bool {
	if r.pos >= len(r.data) {
		return true
	}
	switch r.data[r.pos] {
	case ',', '}', ']', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}
