package dialect

import (
	"bytes"
	"strings"
)

// bareKeysCall reads call:f{…}. Strings go out as they come, other values when they are complete.
type bareKeysCall struct {
	argWriter
	quote  string
	state  bareKeysState
	buf    []byte   // of the name, a key, a value that is not a string; of a string, what may be its end
	of     *argType // of the value
	name   string   // of the parameter
	to     *joiner
	stream bool   // the string goes out as it comes
	held   []byte // of a string that waits
	depth  int    // brackets open in the value
	marked bool   // a string is open in it
	quoted bool   // the same, in quotes as of JSON
	from   int    // bytes of buf up to and with the mark that opened or closed a string last
}

type bareKeysState uint8

const (
	bareHead bareKeysState = iota
	bareKey
	bareValue // its first bytes tell strings from others
	bareString
	bareOther
	bareNext // after a string
)

func newBareKeys(quote string) func(*toolset) callReader {
	return func(ts *toolset) callReader {
		return checked(ts, &bareKeysCall{argWriter: argWriter{ts: ts}, quote: quote})
	}
}

func (g *bareKeysCall) started() bool { return g.sent }

func (g *bareKeysCall) finish(out *joiner) verdict {
	if g.state == bareNext || g.state == bareKey && len(g.buf) == 0 {
		return g.endUnclosed(out)
	}
	return g.fail()
}

func (g *bareKeysCall) step(c byte, out *joiner) verdict {
	if len(g.buf) == 0 && isBlank(c) && g.state != bareString {
		return more
	}
	switch g.state {
	case bareHead:
		if c == '{' {
			g.tool = strings.TrimSpace(strings.TrimPrefix(string(g.buf), "call:"))
			if !g.ts.find(&g.tool) {
				return refuted
			}
			g.enter(bareKey)
			return more
		}
		if g.buf = append(g.buf, c); len(g.buf) > maxName {
			return refuted
		}
	case bareKey:
		return g.key(c, out)
	case bareValue:
		g.buf = append(g.buf, c)
		switch {
		case string(g.buf) == g.quote:
			return g.beginString(out)
		case !strings.HasPrefix(g.quote, string(g.buf)):
			return g.beginOther(out)
		}
	case bareString:
		g.inString(c)
	case bareOther:
		return g.other(c, out)
	case bareNext:
		return g.next(c, out)
	}
	return more
}

func (g *bareKeysCall) enter(s bareKeysState) { g.state, g.buf = s, g.buf[:0] }

// key reads up to the colon.
func (g *bareKeysCall) key(c byte, out *joiner) verdict {
	quoted := bytes.HasPrefix(g.buf, []byte(g.quote))
	switch {
	case c == '}' && len(g.buf) == 0:
		return g.end(out)
	case c != ':' || quoted && (len(g.buf) < 2*len(g.quote) || !bytes.HasSuffix(g.buf, []byte(g.quote))):
		if g.buf = append(g.buf, c); len(g.buf) > maxName {
			return g.fail()
		}
		return more
	}
	name := strings.Trim(strings.TrimSpace(string(g.buf)), `"`)
	if quoted {
		name = strings.TrimSuffix(strings.TrimPrefix(name, g.quote), g.quote)
	}
	if name == "" {
		return g.fail()
	}
	g.name, g.of = name, g.ts.of(g.tool).property(name)
	g.enter(bareValue)
	return more
}

func (g *bareKeysCall) next(c byte, out *joiner) verdict {
	switch {
	case c == ',':
		g.enter(bareKey)
	case c == '}':
		return g.end(out)
	default:
		return g.fail()
	}
	return more
}

func (g *bareKeysCall) beginString(out *joiner) verdict {
	g.enter(bareString)
	ts := g.of.types()
	g.stream, g.held = ts == 0 || ts&typeString != 0, g.held[:0]
	var ok bool
	if g.to, ok = g.param(g.name, out); !ok {
		return g.fail()
	}
	if g.stream {
		g.to.add(ToolArgs, `"`)
	}
	return more
}

// inString takes a byte of a string; nothing but its end can begin like the mark.
func (g *bareKeysCall) inString(c byte) {
	g.buf = append(g.buf, c)
	if string(g.buf) == g.quote {
		if g.stream {
			g.to.add(ToolArgs, `"`)
		} else {
			g.to.add(ToolArgs, g.ts.fit(string(appendQuoted(nil, string(g.held))), g.of, 1))
		}
		g.enter(bareNext)
		return
	}
	for len(g.buf) > 0 && !strings.HasPrefix(g.quote, string(g.buf)) {
		if g.stream {
			g.to.add(ToolArgs, string(appendEscaped(nil, g.buf[0])))
		} else if g.held = append(g.held, g.buf[0]); len(g.held) > maxHeld { // no number is that long
			quoted := appendQuoted(nil, string(g.held))
			g.to.add(ToolArgs, string(quoted[:len(quoted)-1]))
			g.stream = true
		}
		g.buf = append(g.buf[:0], g.buf[1:]...)
	}
}

// beginOther reads again what may have been a mark.
func (g *bareKeysCall) beginOther(out *joiner) verdict {
	first := string(g.buf)
	g.enter(bareOther)
	g.depth, g.marked, g.quoted, g.from = 0, false, false, 0
	for i := range len(first) {
		if v := g.other(first[i], out); v != more {
			return v
		}
	}
	return more
}

// other collects a value up to the comma or brace behind it.
func (g *bareKeysCall) other(c byte, out *joiner) verdict {
	if (c == ',' || c == '}') && g.depth == 0 && !g.marked && !g.quoted {
		p := bareKeysParser{pyParser: pyParser{s: string(g.buf)}, quote: g.quote}
		v, ok := p.value(0)
		if !ok || !p.atEnd() {
			return g.fail()
		}
		if g.to, ok = g.param(g.name, out); !ok {
			return g.fail()
		}
		g.to.add(ToolArgs, g.ts.fit(v, g.of, 1))
		return g.next(c, out)
	}
	if g.buf = append(g.buf, c); len(g.buf) > maxHeld {
		return g.fail()
	}
	switch {
	case len(g.buf)-g.from >= len(g.quote) && bytes.HasSuffix(g.buf, []byte(g.quote)):
		g.marked, g.from = !g.marked, len(g.buf)
	case g.marked:
	case g.quoted:
		g.quoted = c != '"' || g.buf[len(g.buf)-2] == '\\'
	case c == '"' && g.beginsValue():
		g.quoted = true
	case c == '{' || c == '[':
		g.depth++
	case c == '}' || c == ']':
		g.depth--
	}
	return more
}

// beginsValue tells whether the last byte is the first of a value.
func (g *bareKeysCall) beginsValue() bool {
	before := bytes.TrimRight(g.buf[:len(g.buf)-1], " \n")
	return len(before) == 0 || bytes.IndexByte([]byte(",:[{"), before[len(before)-1]) >= 0
}

// bareKeysParser reads the notation of arguments and gives them as JSON.
type bareKeysParser struct {
	pyParser
	quote string
}

// object reads from "{" to "}".
func (p *bareKeysParser) object(depth int) (string, bool) {
	if depth > maxJSONDepth || !p.take('{') {
		return "", false
	}
	return p.items("{}", '}', false, func(out []byte) ([]byte, bool) {
		key, ok := p.key()
		if !ok {
			return nil, false
		}
		v, ok := p.value(depth + 1)
		return append(append(appendQuoted(out, key), ": "...), v...), ok
	})
}

// key reads a key with or without quotes, and the colon.
func (p *bareKeysParser) key() (string, bool) {
	p.blanks()
	rest := p.s[p.pos:]
	if after, ok := strings.CutPrefix(rest, p.quote); ok {
		key, _, ok := strings.Cut(after, p.quote)
		p.pos += len(key) + 2*len(p.quote)
		return key, ok && p.take(':')
	}
	i := strings.IndexByte(rest, ':')
	if i <= 0 {
		return "", false
	}
	p.pos += i + 1
	return strings.Trim(strings.TrimSpace(rest[:i]), `"`), true
}

func (p *bareKeysParser) value(depth int) (string, bool) {
	p.blanks()
	rest := p.s[p.pos:]
	if after, ok := strings.CutPrefix(rest, p.quote); ok {
		text, _, ok := strings.Cut(after, p.quote)
		p.pos += len(text) + 2*len(p.quote)
		return string(appendQuoted(nil, text)), ok
	}
	switch {
	case strings.HasPrefix(rest, "{"):
		return p.object(depth)
	case strings.HasPrefix(rest, "["):
		return p.list(depth)
	}
	if strings.HasPrefix(rest, `"`) {
		return p.pyParser.value(depth)
	}
	n := strings.IndexAny(rest, ",]}")
	if n < 0 {
		n = len(rest)
	}
	word := strings.TrimSpace(rest[:n])
	p.pos += n
	lit := pyParser{s: word}
	if v, ok := lit.value(0); ok && lit.atEnd() {
		return v, true
	}
	return string(appendQuoted(nil, word)), true // a string without its marks
}

func (p *bareKeysParser) list(depth int) (string, bool) {
	if depth > maxJSONDepth || !p.take('[') {
		return "", false
	}
	return p.items("[]", ']', false, func(out []byte) ([]byte, bool) {
		v, ok := p.value(depth + 1)
		return append(out, v...), ok
	})
}
