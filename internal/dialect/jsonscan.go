package dialect

import (
	"encoding/json"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting of arguments.
const maxJSONDepth = 256

type scanEvent uint8

const (
	scanMore  scanEvent = iota
	scanKey             // a key ended: name
	scanBegin           // a value begins; the text of a literal comes with its end
	scanEnd             // a value ended that stands in another
	scanDone            // the outermost value ended
	scanBad             // not JSON, beyond repair
)

type scanState uint8

const (
	wantValue      scanState = iota
	wantValueOrEnd           // after "["
	wantKeyOrEnd             // after "{"
	wantKey                  // after "," in an object
	wantColon
	wantComma
	inString
	inEscape
	inHex
	inLiteral
	atEnd
)

// jsonScanner checks one JSON value byte by byte and repairs on the way what models get wrong inside values: raw
// control characters in strings, unknown escapes, Python literals. What it returns, put together, is valid JSON.
type jsonScanner struct {
	state   scanState
	stack   []byte // '{' or '[': what is open around the place it is at, counting what begins there and not what ended
	outer   int    // how many lists and objects the value stands in
	isKey   bool   // the string being read is a key
	key     []byte // read last, with its first quote
	escaped bool   // it has escapes
	literal []byte
	hex     []byte // "\uXX" read so far
	again   bool   // the step was for what stands before the byte, which must be given once more
	mended  bool   // this step repaired something
}

// step takes a byte and returns the text it stands for, and what begins or ends with that text.
func (s *jsonScanner) step(c byte) (string, scanEvent) {
	s.again, s.mended = false, false
	switch s.state {
	case inString:
		return s.inString(c)
	case inEscape:
		return s.escape(c)
	case inHex:
		return s.inHex(c)
	case inLiteral:
		if !isBlank(c) && c != ',' && c != '}' && c != ']' {
			s.literal = append(s.literal, c)
			if len(s.literal) > 64 {
				return "", scanBad
			}
			return "", scanMore
		}
		return s.endLiteral()
	case atEnd:
		return "", scanBad
	}
	if isBlank(c) {
		return oneByte[c], scanMore
	}
	return s.structure(c)
}

func (s *jsonScanner) structure(c byte) (string, scanEvent) {
	ev := scanMore
	switch s.state {
	case wantValue, wantValueOrEnd:
		switch {
		case c == ']' && s.state == wantValueOrEnd:
			ev = s.pop(c)
		case c == '{' || c == '[':
			if s.stack = append(s.stack, c); s.outer+len(s.stack) > maxJSONDepth {
				return "", scanBad
			}
			s.state, ev = wantKeyOrEnd, scanBegin
			if c == '[' {
				s.state = wantValueOrEnd
			}
		case c == '"':
			s.state, s.isKey, ev = inString, false, scanBegin
		case c == ',' || c == ':' || c == '}' || c == ']':
			return "", scanBad
		default:
			s.state = inLiteral
			s.literal = append(s.literal[:0], c)
			return "", scanBegin
		}
	case wantKeyOrEnd, wantKey:
		switch {
		case c == '"':
			s.state, s.isKey = inString, true
			s.key, s.escaped = append(s.key[:0], c), false
		case c == '}' && s.state == wantKeyOrEnd:
			ev = s.pop(c)
		default:
			return "", scanBad
		}
	case wantColon:
		if c != ':' {
			return "", scanBad
		}
		s.state = wantValue
	case wantComma:
		switch {
		case c == ',' && s.top() == '{':
			s.state = wantKey
		case c == ',':
			s.state = wantValue
		case c == '}' || c == ']':
			ev = s.pop(c)
		default:
			return "", scanBad
		}
	}
	if ev == scanBad {
		return "", scanBad
	}
	return oneByte[c], ev
}

func (s *jsonScanner) top() byte { return s.stack[len(s.stack)-1] }

// pop closes an object or array.
func (s *jsonScanner) pop(c byte) scanEvent {
	if len(s.stack) == 0 || s.top() != c-2 { // '{' and '}', '[' and ']' are two apart
		return scanBad
	}
	s.stack = s.stack[:len(s.stack)-1]
	return s.endValue()
}

func (s *jsonScanner) endValue() scanEvent {
	if len(s.stack) == 0 {
		s.state = atEnd
		return scanDone
	}
	s.state = wantComma
	return scanEnd
}

func (s *jsonScanner) inString(c byte) (string, scanEvent) {
	text := oneByte[c]
	switch {
	case c == '\\':
		s.state = inEscape
		return "", scanMore
	case c < 0x20:
		s.mended = true
		text = string(appendEscaped(nil, c))
	case c == '"':
		return s.endString()
	}
	s.buffer(text)
	return text, scanMore
}

// buffer adds text to the key being read, if it is one.
func (s *jsonScanner) buffer(text string) {
	if s.isKey && len(s.key) < 1<<10 {
		s.key = append(s.key, text...)
		s.escaped = s.escaped || text[0] == '\\'
	}
}

func (s *jsonScanner) endString() (string, scanEvent) {
	if !s.isKey {
		return `"`, s.endValue()
	}
	s.state = wantColon
	return `"`, scanKey
}

// name is the key that was read last.
func (s *jsonScanner) name() string {
	name := string(s.key[1:])
	if s.escaped || !utf8.ValidString(name) {
		_ = json.Unmarshal(append(s.key, '"'), &name) // it is valid
	}
	return name
}

func (s *jsonScanner) escape(c byte) (string, scanEvent) {
	s.state = inString
	text := `\` + oneByte[c]
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
	case 'u':
		s.state = inHex
		s.hex = append(s.hex[:0], `\u`...)
		return "", scanMore
	default: // a lone backslash, as in a path or a regular expression
		s.mended = true
		s.buffer(`\\`)
		rest, ev := s.inString(c)
		return `\\` + rest, ev
	}
	s.buffer(text)
	return text, scanMore
}

func (s *jsonScanner) inHex(c byte) (string, scanEvent) {
	isHex := c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
	if !isHex { // a lone backslash again
		s.state, s.mended = inString, true
		text := `\` + string(s.hex)
		s.buffer(text)
		rest, ev := s.inString(c)
		return text + rest, ev
	}
	if s.hex = append(s.hex, c); len(s.hex) < 6 {
		return "", scanMore
	}
	s.state = inString
	s.buffer(string(s.hex))
	return string(s.hex), scanMore
}

var pythonLiterals = map[string]string{"True": "true", "False": "false", "None": "null"}

// skipValue takes the value of a member as read elsewhere.
func (s *jsonScanner) skipValue() { s.endValue() }

// endLiteral ends a number, true, false or null at the byte that follows it.
func (s *jsonScanner) endLiteral() (string, scanEvent) {
	text := string(s.literal)
	if py, ok := pythonLiterals[text]; ok {
		text, s.mended = py, true
	}
	if !json.Valid([]byte(text)) {
		return "", scanBad
	}
	s.again = true
	return text, s.endValue()
}
