package parser

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// pyParser reads Python literals and gives them as JSON.
type pyParser struct {
	s   string
	pos int
}

func (p *pyParser) blanks() {
	for p.pos < len(p.s) && isBlank(p.s[p.pos]) {
		p.pos++
	}
}

func (p *pyParser) atEnd() bool {
	p.blanks()
	return p.pos == len(p.s)
}

// take skips blanks and then c.
func (p *pyParser) take(c byte) bool {
	p.blanks()
	if p.pos < len(p.s) && p.s[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *pyParser) word() string {
	p.blanks()
	start := p.pos
	for p.pos < len(p.s) && isNameByte(p.s[p.pos]) {
		p.pos++
	}
	return p.s[start:p.pos]
}

// isNameByte accepts what names of tools and parameters are made of; Python itself knows no dots and dashes in them.
func isNameByte(c byte) bool {
	return c == '_' || c == '.' || c == '-' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

func (p *pyParser) value(depth int) (string, bool) {
	p.blanks()
	if p.pos == len(p.s) || depth > maxJSONDepth {
		return "", false
	}
	switch c := p.s[p.pos]; {
	case c == '"' || c == '\'':
		return p.strings()
	case c == '[' || c == '(':
		p.pos++
		return p.sequence(map[byte]byte{'[': ']', '(': ')'}[c], depth)
	case c == '{':
		p.pos++
		return p.dict(depth)
	}
	start := p.pos
	for p.pos < len(p.s) && strings.IndexByte(",)]}: \t\r\n", p.s[p.pos]) < 0 {
		p.pos++
	}
	switch w := p.s[start:p.pos]; w {
	case "True", "true":
		return "true", true
	case "False", "false":
		return "false", true
	case "None", "null":
		return "null", true
	default:
		return pyNumber(w)
	}
}

func pyNumber(w string) (string, bool) {
	w = strings.ReplaceAll(strings.TrimPrefix(w, "+"), "_", "")
	if n, ok := number(w, false); ok {
		return n, true
	}
	if n, err := strconv.ParseInt(w, 0, 64); err == nil { // hexadecimal, leading zeros
		return strconv.FormatInt(n, 10), true
	}
	if x, err := strconv.ParseFloat(w, 64); err == nil { // ".5", "1."
		return number(strconv.FormatFloat(x, 'g', -1, 64), false)
	}
	return "", false
}

// strings reads a string and those that follow it at once, which are one in Python.
func (p *pyParser) strings() (string, bool) {
	out := []byte{'"'}
	for {
		var ok bool
		if out, ok = p.string(out); !ok {
			return "", false
		}
		at := p.pos
		p.blanks()
		if p.pos == len(p.s) || p.s[p.pos] != '"' && p.s[p.pos] != '\'' {
			p.pos = at
			return string(append(out, '"')), true
		}
	}
}

func (p *pyParser) string(out []byte) ([]byte, bool) {
	quote := p.s[p.pos : p.pos+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(p.s[p.pos:], triple) {
		quote = triple
	}
	p.pos += len(quote)
	for p.pos < len(p.s) {
		if strings.HasPrefix(p.s[p.pos:], quote) {
			p.pos += len(quote)
			return out, true
		}
		c := p.s[p.pos]
		p.pos++
		if c != '\\' {
			out = appendEscaped(out, c)
			continue
		}
		if p.pos == len(p.s) {
			break
		}
		out = p.escape(out)
	}
	return out, false
}

// escape reads what follows a backslash. As in Python, an unknown escape is a backslash and what follows it.
func (p *pyParser) escape(out []byte) []byte {
	c := p.s[p.pos]
	p.pos++
	switch c {
	case 'n', 'r', 't', 'b', 'f', '"', '\\':
		return append(out, '\\', c)
	case '\'':
		return append(out, '\'')
	case '\n':
		return out
	case 'x', 'u', 'U':
		n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		if p.pos+n <= len(p.s) {
			if r, err := strconv.ParseUint(p.s[p.pos:p.pos+n], 16, 32); err == nil {
				hex := p.s[p.pos : p.pos+n]
				p.pos += n
				if c == 'u' { // halves of a surrogate pair come one by one
					return append(append(out, `\u`...), hex...)
				}
				for _, b := range []byte(string(rune(r))) {
					out = appendEscaped(out, b)
				}
				return out
			}
		}
	}
	out = append(out, `\\`...)
	return appendEscaped(out, c)
}

func (p *pyParser) sequence(end byte, depth int) (string, bool) {
	out := []byte{'['}
	for first := true; ; first = false {
		if p.take(end) {
			return string(append(out, ']')), true
		}
		if !first {
			if !p.take(',') {
				return "", false
			}
			if p.take(end) {
				return string(append(out, ']')), true
			}
			out = append(out, ", "...)
		}
		v, ok := p.value(depth + 1)
		if !ok {
			return "", false
		}
		out = append(out, v...)
	}
}

func (p *pyParser) dict(depth int) (string, bool) {
	out := []byte{'{'}
	for first := true; ; first = false {
		if p.take('}') {
			return string(append(out, '}')), true
		}
		if !first {
			if !p.take(',') {
				return "", false
			}
			if p.take('}') {
				return string(append(out, '}')), true
			}
			out = append(out, ", "...)
		}
		key, ok := p.value(depth + 1)
		if !ok || !p.take(':') {
			return "", false
		}
		if key[0] == '[' || key[0] == '{' {
			return "", false
		}
		if key[0] != '"' { // JSON has only strings as keys
			key = `"` + key + `"`
		}
		v, ok := p.value(depth + 1)
		if !ok {
			return "", false
		}
		out = append(append(append(out, key...), ": "...), v...)
	}
}

// keywords reads the arguments of a call after its "(", with the ")", as a JSON object. Arguments without a name
// refute the call: a schema does not order its parameters.
func (p *pyParser) keywords(ts *toolset, tool string) (string, bool) {
	out := []byte{'{'}
	for first := true; ; first = false {
		if p.take(')') {
			return string(append(out, '}')), true
		}
		if !first {
			if !p.take(',') {
				return "", false
			}
			if p.take(')') {
				return string(append(out, '}')), true
			}
			out = append(out, ", "...)
		}
		name := p.word()
		if name == "" || !p.take('=') {
			return "", false
		}
		v, ok := p.value(0)
		if !ok {
			return "", false
		}
		out = append(append(appendQuoted(out, name), ": "...), retyped(v, ts.types(tool, name))...)
	}
}

// retyped corrects a literal whose type the schema does not allow, where that is certain.
func retyped(v string, ts types) string {
	switch {
	case ts == typeString && v[0] != '"':
		return string(appendQuoted(nil, v))
	case ts != 0 && ts&typeString == 0 && v[0] == '"':
		return typed(v, ts)
	case ts == typeInteger:
		if n, ok := number(v, true); ok {
			return n
		}
	}
	return v
}

// pyCall reads calls in Python's syntax, one at a time: f(a=1). In brackets several may be separated by commas, without
// by line ends. A call goes out when it is complete.
type pyCall struct {
	ts      *toolset
	bracket bool // calls stand in [ ]
	inList  bool // after "["
	buf     []byte
	open    int    // bytes up to and with "(" of the call in buf; 0: not there yet
	depth   int    // brackets open inside it
	quote   []byte // of the string being read
	from    int    // bytes up to and with its opening quote
	empty   byte   // the quote of an empty string that just ended: one more makes it three
	escaped bool
	sent    bool
	between bool // a call ended: a comma or "]" follows
}

// maxName bounds names of tools, with the markup around them.
const maxName = 512

func newPyList(ts *toolset) callReader { return &pyCall{ts: ts, bracket: true} }

func (y *pyCall) started() bool { return y.sent }

func (y *pyCall) fail() verdict {
	if y.sent {
		return broken
	}
	return refuted
}

func (y *pyCall) finish(*joiner) verdict {
	if y.sent && len(y.buf) == 0 {
		return ended
	}
	return y.fail()
}

func (y *pyCall) step(c byte, out *joiner) verdict {
	if y.open > 0 {
		return y.inside(c, out)
	}
	switch {
	case isBlank(c) && len(y.buf) == 0:
		return more
	case y.bracket && !y.inList:
		y.inList = true
		if c != '[' {
			return refuted
		}
		return more
	case y.between && y.bracket:
		y.between = false
		switch c {
		case ',':
			return more
		case ']':
			return ended
		}
		return broken
	case y.between && (c == ';' || c == ','):
		y.between = false
		return more
	case c == '(':
		if !y.ts.has(y.called(string(y.buf))) {
			return y.fail()
		}
		y.buf = append(y.buf, c)
		y.open, y.depth = len(y.buf), 1
		return more
	case y.sent && !y.bracket && len(y.buf) == 0 && !isNameByte(c):
		return endedBefore
	case y.sent && y.bracket && c == ']' && len(y.buf) == 0: // after a trailing comma
		return ended
	case !isNameByte(c) && !(c == ' ' || c == '=') || len(y.buf) > maxName:
		return y.fail()
	}
	y.buf = append(y.buf, c)
	return more
}

// called is the name before the "(": "x = f" is drift of models that think in Python, f.call the form of Llama's
// built-in tools.
func (y *pyCall) called(s string) string {
	if _, right, ok := strings.Cut(s, "="); ok {
		s = right
	}
	s = strings.TrimSpace(s)
	if name, ok := strings.CutSuffix(s, ".call"); ok && !y.ts.has(s) {
		return name
	}
	return s
}

// inside takes a byte of the arguments.
func (y *pyCall) inside(c byte, out *joiner) verdict {
	y.buf = append(y.buf, c)
	if len(y.quote) == 0 && c != y.empty {
		y.empty = 0
	}
	switch {
	case y.escaped:
		y.escaped = false
	case len(y.quote) > 0:
		y.inQuote(c)
	case c == '"' || c == '\'':
		if y.quote, y.from = []byte{c}, len(y.buf); y.empty == c { // the third in a row
			y.quote = []byte{c, c, c}
		}
	case c == '(' || c == '[' || c == '{':
		y.depth++
	case c == ')' || c == ']' || c == '}':
		if y.depth--; y.depth == 0 {
			return y.end(out)
		}
	}
	return more
}

func (y *pyCall) inQuote(c byte) {
	switch {
	case c == '\\':
		y.escaped = true
	case c != y.quote[0]:
	case len(y.quote) == 1:
		if len(y.buf) == y.from+1 {
			y.empty = c
		}
		y.quote = nil
	case len(y.buf) >= y.from+3 && strings.HasSuffix(string(y.buf[y.from:]), string(y.quote)):
		y.quote = nil
	}
}

func (y *pyCall) end(out *joiner) verdict {
	name := y.called(string(y.buf[:y.open-1]))
	p := pyParser{s: string(y.buf), pos: y.open}
	args, ok := p.keywords(y.ts, name)
	if !ok || !p.atEnd() {
		return y.fail()
	}
	out.add(ToolStart, name)
	out.add(ToolArgs, args)
	out.add(ToolEnd, "")
	y.buf, y.open, y.sent, y.between = nil, 0, true, true
	return more
}
