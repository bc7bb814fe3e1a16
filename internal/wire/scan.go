package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner checks that bytes are JSON, and how deep it nests, in one pass. It accepts what json.Valid does, several
// times as fast: bodies of agents are long strings, and what they hold is skipped eight bytes at a time.
type scanner struct {
	b       []byte
	deepest int
	ctx     context.Context // looked at now and then; nil: not
	n       int             // elements and fields so far
}

// isJSON reports whether b is one JSON document that nests no deeper than most. tooDeep tells that this was the reason. It breaks
// off when ctx ends.
func isJSON(ctx context.Context, b []byte, most int) (ok, tooDeep bool) {
	s := scanner{b: b, deepest: most, ctx: ctx}
	i := s.value(s.space(0), 0)
	if i == deeper {
		return false, true
	}
	return i >= 0 && s.space(i) == len(b), false
}

// What value returns in place of an index.
const (
	broken = -1
	deeper = -2
)

// left reports whether nobody waits any more.
func (s *scanner) left() bool {
	const often = 1 << 16
	s.n++
	return s.n%often == 0 && s.ctx != nil && s.ctx.Err() != nil
}

func (s *scanner) space(i int) int {
	for i < len(s.b) && (s.b[i] == ' ' || s.b[i] == '\n' || s.b[i] == '\t' || s.b[i] == '\r') {
		i++
	}
	return i
}

// value returns the index after the value that starts at i, or broken or deeper.
func (s *scanner) value(i, depth int) int {
	if i >= len(s.b) {
		return broken
	}
	switch c := s.b[i]; c {
	case '"':
		return s.str(i)
	case '{', '[':
		if depth == s.deepest {
			return deeper
		}
		if c == '{' {
			return s.object(i, depth+1)
		}
		return s.array(i, depth+1)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	}
	return s.number(i)
}

func (s *scanner) literal(i int, word string) int {
	if len(s.b)-i < len(word) || string(s.b[i:i+len(word)]) != word {
		return broken
	}
	return i + len(word)
}

func (s *scanner) object(i, depth int) int {
	if i = s.space(i + 1); i < len(s.b) && s.b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(s.b) || s.b[i] != '"' || s.left() {
			return broken
		}
		if i = s.str(i); i < 0 {
			return i
		}
		if i = s.space(i); i >= len(s.b) || s.b[i] != ':' {
			return broken
		}
		if i = s.value(s.space(i+1), depth); i < 0 {
			return i
		}
		switch i = s.space(i); {
		case i >= len(s.b):
			return broken
		case s.b[i] == '}':
			return i + 1
		case s.b[i] != ',':
			return broken
		}
		i = s.space(i + 1)
	}
}

func (s *scanner) array(i, depth int) int {
	if i = s.space(i + 1); i < len(s.b) && s.b[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth); i < 0 || s.left() {
			return min(i, broken)
		}
		switch i = s.space(i); {
		case i >= len(s.b):
			return broken
		case s.b[i] == ']':
			return i + 1
		case s.b[i] != ',':
			return broken
		}
		i = s.space(i + 1)
	}
}

// str returns the index after the string that starts at i.
func (s *scanner) str(i int) int {
	for i++; ; {
		if i = plainEnd(s.b, i); i >= len(s.b) {
			return broken
		}
		switch c := s.b[i]; {
		case c == '"':
			return i + 1
		case c != '\\' || i+1 >= len(s.b):
			return broken // a control character, or the end
		}
		switch s.b[i+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			i += 2
		case 'u':
			if _, ok := hex4(s.b, i+2); !ok {
				return broken
			}
			i += 6
		default:
			return broken
		}
	}
}

// plainEnd returns the index of the first quote, backslash or control character from i on, len(b) if there is none.
func plainEnd(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// The top bit of a byte is set where it is zero (quote, slash) or below a blank; after the first such byte there
		// may be false ones, before it there are none.
		if hit := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & tops; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return i
}

func (s *scanner) number(i int) int {
	if i < len(s.b) && s.b[i] == '-' {
		i++
	}
	switch {
	case i >= len(s.b):
		return broken
	case s.b[i] == '0':
		i++
	default:
		if i = s.digits(i); i < 0 {
			return i
		}
	}
	if i < len(s.b) && s.b[i] == '.' {
		if i = s.digits(i + 1); i < 0 {
			return i
		}
	}
	if i < len(s.b) && (s.b[i] == 'e' || s.b[i] == 'E') {
		if i++; i < len(s.b) && (s.b[i] == '+' || s.b[i] == '-') {
			i++
		}
		return s.digits(i)
	}
	return i
}

// digits returns the index after one digit or more.
func (s *scanner) digits(i int) int {
	start := i
	for i < len(s.b) && s.b[i] >= '0' && s.b[i] <= '9' {
		i++
	}
	if i == start {
		return broken
	}
	return i
}

// hex4 reads four hexadecimal digits.
func hex4(b []byte, i int) (r rune, ok bool) {
	if i+4 > len(b) {
		return 0, false
	}
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// escapes are what a character after a backslash means, where that is one byte.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape decodes the inside of a valid JSON string. Invalid UTF-8 and lone surrogates become U+FFFD, as encoding/json
// has it.
func unescape(in []byte) string {
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); {
		n := bytes.IndexByte(in[i:], '\\')
		if n < 0 {
			out = append(out, in[i:]...)
			break
		}
		out = append(out, in[i:i+n]...)
		i += n
		if c := escapes[in[i+1]]; c != 0 {
			out = append(out, c)
			i += 2
			continue
		}
		r, _ := hex4(in, i+2)
		i += 6
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if i+1 < len(in) && in[i] == '\\' && in[i+1] == 'u' {
				low, _ = hex4(in, i+2)
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		out = utf8.AppendRune(out, r)
	}
	if utf8.Valid(out) {
		return string(out)
	}
	return replaceInvalid(string(out))
}

// replaceInvalid puts U+FFFD in place of every invalid byte.
func replaceInvalid(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
