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
	inBareKey // a key without quotes
	atQuote   // after a single quote that may end its string
	wantTwin  // after the first of two braces that close an object
	atEnd
)

// What is open besides '{' and '['.
const (
	twice      = 'D' // an object that began with two braces
	onceClosed = 'd' // the same after the first brace of its end
)

// jsonScanner checks one JSON value byte by byte and repairs on the way what models get wrong: in values raw control
// characters, unknown escapes and Python literals, between them commas, quotes, comments and doubled braces. What it
// returns, put together, is valid JSON.
type jsonScanner struct {
	state   scanState
	stack   []byte // what is open around the place it is at, counting what begins there and not what ended
	outer   int    // how many lists and objects the value stands in
	isKey   bool   // the string being read is a key
	key     []byte // read last, with its first quote
	escaped bool   // it has escapes
	quote   byte   // of the string being read
	prev    byte   // read before a single quote
	comma   []byte // and blanks after it, held until it is known that more follows
	comment byte   // being read: how it began, or '!' after a star in a long one
	loose   bool   // the key being read has no comma before it
	later   bool   // the key read last is not the first of its object
	last    byte   // what ended the last value that ended: a closing bracket, or 0
	literal []byte
	hex     []byte // "\uXX" read so far
	again   bool   // the step was for what stands before the byte, which must be given once more
	mended  Repair // what this step repaired, "" for nothing
}

const (
	// maxGap bounds the blanks that are held behind a comma, or behind a single quote.
	maxGap = 256
	// maxLiteral bounds a number. Grammars of calls write those of a float64 without exponents.
	maxLiteral = 512
)

// step takes a byte and returns the text it stands for, and what begins or ends with that text.
func (s *jsonScanner) step(c byte) (string, scanEvent) {
	s.again, s.mended = false, ""
	switch s.state {
	case inString:
		return s.inString(c)
	case inEscape:
		return s.escape(c)
	case inHex:
		return s.inHex(c)
	case inLiteral:
		if !isNameByte(c) && c != '+' {
			return s.endLiteral()
		}
		if s.literal = append(s.literal, c); len(s.literal) > maxLiteral {
			return "", scanBad
		}
		return "", scanMore
	case inBareKey:
		return s.inBareKey(c)
	case atQuote:
		return s.atQuote(c)
	case atEnd:
		return "", scanBad
	}
	switch {
	case s.comment != 0:
		return s.inComment(c)
	case isBlank(c) && (len(s.comma) == 0 || len(s.comma) > maxGap):
		text := string(s.comma) + oneByte[c]
		s.comma = s.comma[:0]
		return text, scanMore
	case isBlank(c):
		s.comma = append(s.comma, c)
		return "", scanMore
	case c == '/':
		s.comment = c
		return "", scanMore
	case c == '#':
		s.comment, s.mended = c, RepairComment
		return "", scanMore
	case len(s.comma) > 0:
		return s.afterComma(c)
	}
	return s.structure(c)
}

// plain tells whether a byte is part of a string and stands for itself: most are, and need no step.
func (s *jsonScanner) plain(c byte) bool {
	return s.state == inString && !s.isKey && s.quote == '"' && c >= ' ' && c != '"' && c != '\\'
}

// inComment reads what stands between values and is none. Of a slash alone it is not known yet that it is a comment.
func (s *jsonScanner) inComment(c byte) (string, scanEvent) {
	switch {
	case s.comment == '/' && (c == '/' || c == '*'):
		s.comment, s.mended = '#', RepairComment
		if c == '*' {
			s.comment = c
		}
	case s.comment == '/':
		return "", scanBad
	case s.comment == '#' && c == '\n', s.comment == '!' && c == '/':
		s.comment = 0
	case s.comment == '*' && c == '*':
		s.comment = '!'
	case s.comment == '!' && c != '*':
		s.comment = '*'
	}
	return "", scanMore
}

// afterComma gives out the comma that was held if what follows needs it.
func (s *jsonScanner) afterComma(c byte) (string, scanEvent) {
	text := string(s.comma)
	switch {
	case s.closes(c):
		s.state, s.mended, text = wantComma, RepairComma, text[1:]
	case c == ',' && s.isObject():
		s.mended = RepairComma
		return "", scanMore
	case s.isObject() && c != '"' && c != '\'' && !beginsName(c), !beginsValue(c):
		return "", scanBad
	}
	s.comma, s.again = s.comma[:0], true
	return text, scanMore
}

func beginsValue(c byte) bool {
	return c == '"' || c == '\'' || c == '{' || c == '[' || isNameByte(c)
}

// beginsName tells whether a key without quotes begins.
func beginsName(c byte) bool { return c == '_' || c == '$' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func (s *jsonScanner) structure(c byte) (string, scanEvent) {
	switch s.state {
	case wantValue, wantValueOrEnd:
		return s.beginValue(c)
	case wantKeyOrEnd, wantKey:
		return s.beginKey(c)
	case wantColon:
		if c != ':' {
			return "", scanBad
		}
		s.state, s.loose = wantValue, false
	case wantTwin:
		if c != '}' {
			return "", scanBad
		}
		return s.pop(c)
	case wantComma:
		switch {
		case s.closes(c):
			return s.pop(c)
		case c == '"' && s.isObject(), c == '{' && s.last == '}' && s.top() == '[': // a comma is missing
			s.loose, s.again, s.mended = c == '"', true, RepairComma
		case c == ',':
			s.comma = append(s.comma, c)
		default:
			return "", scanBad
		}
		s.state = wantValue
		if s.isObject() {
			s.state = wantKey
		}
		if s.again {
			return ",", scanMore
		}
		return "", scanMore
	}
	return oneByte[c], scanMore
}

func (s *jsonScanner) beginValue(c byte) (string, scanEvent) {
	switch {
	case c == ']' && s.state == wantValueOrEnd:
		return s.pop(c)
	case c == '{' || c == '[':
		if s.stack = append(s.stack, c); s.outer+len(s.stack) > maxJSONDepth {
			return "", scanBad
		}
		s.state = wantKeyOrEnd
		if c == '[' {
			s.state = wantValueOrEnd
		}
	case c == '"' || c == '\'':
		s.beginString(c, false)
		return `"`, scanBegin
	case !isNameByte(c):
		return "", scanBad
	default:
		s.state = inLiteral
		s.literal = append(s.literal[:0], c)
		return "", scanBegin
	}
	return oneByte[c], scanBegin
}

func (s *jsonScanner) beginKey(c byte) (string, scanEvent) {
	later := s.state == wantKey
	switch {
	case c == '}' && !later:
		return s.pop(c)
	case c == '{' && !later && s.top() == '{':
		s.stack[len(s.stack)-1], s.mended = twice, RepairBracket
		return "", scanMore
	case c == '"' || c == '\'':
		s.beginString(c, true)
	case beginsName(c):
		s.state, s.mended = inBareKey, RepairQuote
		s.key, s.escaped = append(s.key[:0], '"', c), false
		s.later = later
		return `"` + oneByte[c], scanMore
	default:
		return "", scanBad
	}
	s.later = later
	return `"`, scanMore
}

func (s *jsonScanner) beginString(c byte, isKey bool) {
	s.state, s.isKey, s.quote = inString, isKey, c
	if c == '\'' {
		s.mended = RepairQuote
	}
	if isKey {
		s.key, s.escaped = append(s.key[:0], '"'), false
	}
}

func (s *jsonScanner) top() byte { return s.stack[len(s.stack)-1] }

func (s *jsonScanner) isObject() bool { return s.top() != '[' }

// closes tells whether c closes what is open.
func (s *jsonScanner) closes(c byte) bool {
	return c == ']' && s.top() == '[' || c == '}' && s.isObject()
}

// pop closes an object or array. Of two braces the second counts.
func (s *jsonScanner) pop(c byte) (string, scanEvent) {
	if s.top() == twice {
		s.state, s.stack[len(s.stack)-1] = wantTwin, onceClosed
		return "", scanMore
	}
	s.stack, s.last = s.stack[:len(s.stack)-1], c
	return oneByte[c], s.endValue()
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
	case s.loose && s.isKey && c != s.quote && !isNameByte(c): // no key, so it is not a comma that is missing
		return "", scanBad
	case c < 0x20:
		s.mended = RepairText
		text = string(appendEscaped(nil, c))
	case c == s.quote && c == '"':
		return s.endString()
	case c == s.quote:
		s.state = atQuote
		return "", scanMore
	case c == '"':
		text = `\"`
	}
	s.prev = c
	s.buffer(text)
	return text, scanMore
}

// atQuote decides what a single quote is by what follows it: structure after the end of its string, a letter in a word.
func (s *jsonScanner) atQuote(c byte) (string, scanEvent) {
	switch {
	case isBlank(c) && len(s.hex) < maxGap:
		s.hex = append(s.hex, c)
		return "", scanMore
	case c == ':' && s.isKey, (c == ',' || c == '}' || c == ']') && !s.isKey:
		s.hex, s.again = s.hex[:0], true
		return s.endString()
	case len(s.hex) == 0 && isLetter(s.prev) && isLetter(c):
		s.state = inString
		s.buffer("'")
		rest, ev := s.inString(c)
		return "'" + rest, ev
	}
	return "", scanBad
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf }

// inBareKey reads a key without quotes.
func (s *jsonScanner) inBareKey(c byte) (string, scanEvent) {
	switch {
	case c == ':' || isBlank(c) || c == '"': // it may have one of its quotes
		s.state, s.again = wantColon, c != '"'
		return `"`, scanKey
	case !isNameByte(c) && c != '$':
		return "", scanBad
	}
	if len(s.key) < 1<<10 {
		s.key = append(s.key, c)
	}
	return oneByte[c], scanMore
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
		s.last = 0
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
	s.prev = c
	text := `\` + oneByte[c]
	switch c {
	case '\'':
		if s.quote == '"' {
			return s.loneBackslash(c)
		}
		text = "'"
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
	case 'u':
		s.state = inHex
		s.hex = append(s.hex[:0], `\u`...)
		return "", scanMore
	default:
		return s.loneBackslash(c)
	}
	s.buffer(text)
	return text, scanMore
}

// loneBackslash is one that escapes nothing, as in a path or a regular expression.
func (s *jsonScanner) loneBackslash(c byte) (string, scanEvent) {
	s.buffer(`\\`)
	rest, ev := s.inString(c)
	s.mended = RepairText
	return `\\` + rest, ev
}

func (s *jsonScanner) inHex(c byte) (string, scanEvent) {
	isHex := c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
	if !isHex { // a lone backslash again
		s.state = inString
		text := `\` + string(s.hex)
		s.hex = s.hex[:0]
		s.buffer(text)
		rest, ev := s.inString(c)
		s.mended = RepairText
		return text + rest, ev
	}
	if s.hex = append(s.hex, c); len(s.hex) < 6 {
		return "", scanMore
	}
	s.state = inString
	text := string(s.hex)
	s.hex = s.hex[:0]
	s.buffer(text)
	return text, scanMore
}

var pythonLiterals = map[string]string{"True": "true", "False": "false", "None": "null"}

// skipValue takes the value of a member as read elsewhere.
func (s *jsonScanner) skipValue() { s.endValue() }

// endLiteral ends a number, true, false or null at the byte that follows it.
func (s *jsonScanner) endLiteral() (string, scanEvent) {
	text := string(s.literal)
	if py, ok := pythonLiterals[text]; ok {
		text, s.mended = py, RepairText
	}
	if !json.Valid([]byte(text)) {
		return "", scanBad
	}
	s.again, s.last = true, 0
	return text, s.endValue()
}
