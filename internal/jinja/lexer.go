package jinja

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokData tokenKind = iota
	tokName
	tokString
	tokNumber
	tokOp
	tokBlockBegin
	tokBlockEnd
	tokVarBegin
	tokVarEnd
	tokEOF
)

type token struct {
	kind tokenKind
	text string // data, name, operator or the string's value
	num  Value  // tokNumber: int64, *big.Int or float64
	line int
}

// describe names a token for error messages.
func (t token) describe() string {
	switch t.kind {
	case tokName, tokOp:
		return "'" + t.text + "'"
	case tokString:
		return "string " + strconv.Quote(t.text)
	case tokNumber:
		return fmt.Sprintf("number %v", t.num)
	}
	return tokenNames[t.kind]
}

// tokenNames are the tokens that say the same wherever they stand, for error messages.
var tokenNames = map[tokenKind]string{tokData: "template text", tokBlockBegin: "'{%'", tokBlockEnd: "'%}'",
	tokVarBegin: "'{{'", tokVarEnd: "'}}'", tokEOF: "end of template"}

// operators in the order they are tried: longest first.
var operators = []string{"**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{", "}", ",", ":", ".", "|", ";"}

// lexer turns a template into tokens. Whitespace control happens here: a data token already has the whitespace that
// "-" marks, trim_blocks (one newline after a block or comment) and lstrip_blocks (blanks before one) take away.
type lexer struct {
	src  string
	pos  int
	line int
	toks []token
	// lineStart: what was consumed last ended in a newline, so blanks that follow are at the start of a line.
	lineStart bool
}

func lex(src string) []token {
	src = strings.ReplaceAll(src, "\r\n", "\n")
	src = strings.ReplaceAll(src, "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		l.next()
	}
	l.add(token{kind: tokEOF})
	return l.toks
}

func (l *lexer) add(t token) {
	t.line = l.line
	l.toks = append(l.toks, t)
}

// advance consumes n bytes.
func (l *lexer) advance(n int) {
	s := l.src[l.pos : l.pos+n]
	l.line += strings.Count(s, "\n")
	if n > 0 {
		l.lineStart = s[n-1] == '\n'
	}
	l.pos += n
}

// next consumes text up to the next tag, and the tag.
func (l *lexer) next() {
	rest := l.src[l.pos:]
	tag := nextTag(rest)
	if tag < 0 {
		l.data(rest, '{', 0)
		l.advance(len(rest))
		return
	}
	kind, sign := rest[tag+1], byte(0)
	if tag+2 < len(rest) && (rest[tag+2] == '-' || rest[tag+2] == '+') {
		sign = rest[tag+2]
	}
	l.data(rest[:tag], kind, sign)
	skip := tag + 2
	if sign != 0 {
		skip++
	}
	if kind == '%' {
		if n := matchRaw(rest[skip:]); n > 0 {
			l.advance(skip + n)
			l.raw()
			return
		}
	}
	l.advance(skip)
	switch kind {
	case '#':
		l.comment()
	case '%':
		l.tag(tokBlockBegin, tokBlockEnd, "%}")
	default:
		l.tag(tokVarBegin, tokVarEnd, "}}")
	}
}

// data adds the text before a tag, without the blanks that the tag takes away: '{' before a variable takes none.
func (l *lexer) data(s string, kind, sign byte) {
	if sign == '-' {
		s = strings.TrimRightFunc(s, isSpace)
	} else if sign != '+' && kind != '{' {
		start := strings.LastIndexByte(s, '\n') + 1
		if (start > 0 || l.lineStart) && strings.TrimLeftFunc(s[start:], isSpace) == "" {
			s = s[:start]
		}
	}
	if s != "" {
		l.add(token{kind: tokData, text: s})
	}
}

// nextTag finds "{{", "{%" or "{#".
func nextTag(s string) int {
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], '{')
		if n < 0 || i+n+1 >= len(s) {
			return -1
		}
		i += n
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
	}
}

// closing returns the length of a tag's end at the start of s together with the whitespace it takes along, 0 if s does
// not begin with one. Variables know neither "+" nor the trimmed newline.
func closing(s, end string) int {
	switch {
	case strings.HasPrefix(s, "-"+end):
		n := 1 + len(end)
		return n + len(s[n:]) - len(strings.TrimLeftFunc(s[n:], isSpace))
	case end != "}}" && strings.HasPrefix(s, "+"+end):
		return 1 + len(end)
	case strings.HasPrefix(s, end):
		if end != "}}" && strings.HasPrefix(s[len(end):], "\n") {
			return len(end) + 1
		}
		return len(end)
	}
	return 0
}

func (l *lexer) comment() {
	rest := l.src[l.pos:]
	i := strings.Index(rest, "#}")
	if i < 0 {
		syntaxError(l.line, "missing end of comment '#}'")
	}
	if i > 0 && (rest[i-1] == '-' || rest[i-1] == '+') {
		i--
	}
	l.advance(i + closing(rest[i:], "#}"))
}

// matchRaw returns the length of the rest of an opening raw tag: "raw %}". Unlike other tags it keeps the newline after it.
func matchRaw(s string) int {
	t, ok := strings.CutPrefix(strings.TrimLeftFunc(s, isSpace), "raw")
	if !ok {
		return 0
	}
	t = strings.TrimLeftFunc(t, isSpace)
	n := len(s) - len(t)
	if strings.HasPrefix(t, "%}") {
		return n + 2
	}
	if strings.HasPrefix(t, "-%}") {
		return n + closing(t, "%}")
	}
	return 0
}

// raw consumes the body of a raw block and its end tag.
func (l *lexer) raw() {
	rest := l.src[l.pos:]
	for i := 0; ; {
		n := strings.Index(rest[i:], "{%")
		if n < 0 {
			syntaxError(l.line, "missing end of raw block")
		}
		i += n
		tail, sign := rest[i+2:], byte(0)
		if tail != "" && (tail[0] == '-' || tail[0] == '+') {
			sign, tail = tail[0], tail[1:]
		}
		if t, ok := strings.CutPrefix(strings.TrimLeftFunc(tail, isSpace), "endraw"); ok {
			t = strings.TrimLeftFunc(t, isSpace)
			if end := closing(t, "%}"); end > 0 {
				l.data(rest[:i], '%', sign)
				l.advance(len(rest) - len(t) + end)
				return
			}
		}
		i += 2
	}
}

// tag lexes the inside of a block or variable tag. Brackets must balance before the end of the tag counts as one.
func (l *lexer) tag(begin, end tokenKind, mark string) {
	l.add(token{kind: begin})
	var open []byte
	for {
		rest := l.src[l.pos:]
		if ws := len(rest) - len(strings.TrimLeftFunc(rest, isSpace)); ws > 0 {
			l.advance(ws)
			continue
		}
		if rest == "" {
			syntaxError(l.line, "unexpected end of template inside a tag")
		}
		if len(open) == 0 {
			if n := closing(rest, mark); n > 0 {
				l.add(token{kind: end})
				l.advance(n)
				return
			}
		}
		if l.number(rest) || l.name(rest) || l.str(rest) {
			continue
		}
		open = l.operator(rest, open)
	}
}

func (l *lexer) operator(rest string, open []byte) []byte {
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "(":
			open = append(open, ')')
		case "[":
			open = append(open, ']')
		case "{":
			open = append(open, '}')
		case ")", "]", "}":
			if len(open) == 0 || open[len(open)-1] != op[0] {
				syntaxError(l.line, "unexpected '%s'", op)
			}
			open = open[:len(open)-1]
		}
		l.add(token{kind: tokOp, text: op})
		l.advance(len(op))
		return open
	}
	r, _ := utf8.DecodeRuneInString(rest)
	syntaxError(l.line, "unexpected character %q", r)
	return nil
}

func (l *lexer) name(rest string) bool {
	n := 0
	for i, r := range rest {
		if r != '_' && !unicode.IsLetter(r) && !unicode.Is(unicode.Nl, r) &&
			(i == 0 || !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) && !unicode.Is(unicode.Mc, r) && !unicode.Is(unicode.Pc, r)) {
			break
		}
		n = i + utf8.RuneLen(r)
	}
	if n == 0 {
		return false
	}
	l.add(token{kind: tokName, text: rest[:n]})
	l.advance(n)
	return true
}

// maxDigits is Python's limit on the digits of an int.
const maxDigits = 4300

// number lexes an integer or float literal. After a dot ("x.0.1") only integers are read, so that the rest stays a path.
func (l *lexer) number(rest string) bool {
	if rest[0] < '0' || rest[0] > '9' {
		return false
	}
	if l.pos == 0 || l.src[l.pos-1] != '.' {
		if n := floatLen(rest); n > 0 {
			f, _ := strconv.ParseFloat(strings.ReplaceAll(rest[:n], "_", ""), 64) // a value out of range is ±Inf, as in Python
			l.add(token{kind: tokNumber, num: f})
			l.advance(n)
			return true
		}
	}
	n := intLen(rest)
	if n > maxDigits {
		syntaxError(l.line, "number of more than %d digits", maxDigits)
	}
	z, ok := new(big.Int).SetString(strings.ReplaceAll(rest[:n], "_", ""), 0)
	if !ok {
		syntaxError(l.line, "bad number %q", rest[:n])
	}
	l.add(token{kind: tokNumber, num: normInt(z)})
	l.advance(n)
	return true
}

// digitsLen is the length of a run of digits with single underscores inside.
func digitsLen(s string, isDigit func(byte) bool) int {
	n := 0
	for n < len(s) && (isDigit(s[n]) || s[n] == '_' && n > 0 && n+1 < len(s) && isDigit(s[n+1])) {
		n++
	}
	return n
}

func isDecimal(c byte) bool { return c >= '0' && c <= '9' }

func floatLen(s string) int {
	n := digitsLen(s, isDecimal)
	isFloat := false
	if n < len(s) && s[n] == '.' {
		if f := digitsLen(s[n+1:], isDecimal); f > 0 {
			n += 1 + f
			isFloat = true
		}
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if d := digitsLen(s[e:], isDecimal); d > 0 {
			return e + d
		}
	}
	if isFloat {
		return n
	}
	return 0
}

func intLen(s string) int {
	if len(s) > 2 && s[0] == '0' {
		var digit func(byte) bool
		switch s[1] | 0x20 {
		case 'b':
			digit = func(c byte) bool { return c == '0' || c == '1' }
		case 'o':
			digit = func(c byte) bool { return c >= '0' && c <= '7' }
		case 'x':
			digit = func(c byte) bool { return isDecimal(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
		}
		if digit != nil && digit(s[2]) {
			return 2 + digitsLen(s[2:], digit)
		}
	}
	if s[0] == '0' {
		return digitsLen(s, func(c byte) bool { return c == '0' })
	}
	return digitsLen(s, isDecimal)
}

func (l *lexer) str(rest string) bool {
	q := rest[0]
	if q != '"' && q != '\'' {
		return false
	}
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case q:
			l.add(token{kind: tokString, text: l.unescape(rest[1:i])})
			l.advance(i + 1)
			return true
		}
	}
	syntaxError(l.line, "string is not closed")
	return false
}

// unescape decodes a literal as Python's unicode-escape codec does: unknown escapes stay as they are.
func (l *lexer) unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '\n':
		case '\\', '\'', '"', 'a', 'b', 'f', 'n', 'r', 't', 'v':
			b.WriteByte("\\'\"\a\b\f\n\r\t\v"[strings.IndexByte(`\'"abfnrtv`, c)])
		case 'x', 'u', 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			v, err := uint64(0), error(strconv.ErrSyntax)
			if i+n < len(s) {
				v, err = strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			}
			if err != nil || v > unicode.MaxRune {
				syntaxError(l.line, "bad \\%c escape in a string", c)
			}
			b.WriteRune(rune(v))
			i += n
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := 1
			for n < 3 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7' {
				n++
			}
			v, _ := strconv.ParseUint(s[i:i+n], 8, 32) // three octal digits always parse
			b.WriteRune(rune(v))
			i += n - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

// isSpace is Python's str.isspace, which is also what \s matches.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
