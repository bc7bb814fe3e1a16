package dialect

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// pyParser reads Python literals and gives them as JSON.
type pyParser struct {
	s      string
	pos    int
	loose  bool // keys may lack their quotes
	short  bool // closing brackets may be missing at the end
	mended bool // some quotes or brackets are missing
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
	return p.items("[]", end, true, func(out []byte) ([]byte, bool) {
		v, ok := p.value(depth + 1)
		return append(out, v...), ok
	})
}

func (p *pyParser) dict(depth int) (string, bool) {
	return p.items("{}", '}', true, func(out []byte) ([]byte, bool) {
		key, ok := p.bareKey()
		if !ok {
			key, ok = p.value(depth + 1)
		}
		if !ok || !p.take(':') || key[0] == '[' || key[0] == '{' {
			return nil, false
		}
		if key[0] != '"' { // JSON has only strings as keys
			key = `"` + key + `"`
		}
		v, ok := p.value(depth + 1)
		return append(append(append(out, key...), ": "...), v...), ok
	})
}

// bareKey reads a key without quotes.
func (p *pyParser) bareKey() (string, bool) {
	p.blanks()
	n := p.pos
	for n < len(p.s) && isNameByte(p.s[n]) {
		n++
	}
	key := p.s[p.pos:n]
	if !p.loose || key == "" || key[0] >= '0' && key[0] <= '9' || key[0] == '-' || key == "True" || key == "False" || key == "None" {
		return "", false
	}
	p.pos, p.mended = n, true
	return JSONString(key), true
}

// items reads what one reads, up to end and with commas between, and gives it in the brackets of JSON. A trailing comma may
// stand before end.
func (p *pyParser) items(brackets string, end byte, trailing bool, one func([]byte) ([]byte, bool)) (string, bool) {
	out := []byte{brackets[0]}
	for first := true; !p.take(end); first = false {
		if p.short && !first && p.atEnd() {
			p.mended = true
			break
		}
		if !first {
			if !p.take(',') {
				return "", false
			}
			if trailing && p.take(end) {
				break
			}
			out = append(out, ", "...)
		}
		var ok bool
		if out, ok = one(out); !ok {
			return "", false
		}
	}
	return string(append(out, brackets[1])), true
}
