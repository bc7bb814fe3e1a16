package dialect

import (
	"bytes"
	"slices"
	"strings"
)

// bareKeysCall reads call:f{…}. Strings go out as they come, other values when they are complete.
type bareKeysCall struct {
	argWriter
	quote  string
	ends   []string // marks behind a call
	closer byte     // of the arguments
	state  bareKeysState
	buf    []byte   // of the name, a key, a value that is not a string; of a string, what may be its end
	of     *argType // of the value
	name   string   // of the parameter
	to     *joiner
	stream bool   // the string goes out as it comes
	held   []byte // of a string that waits
	depth  int    // brackets open in the value
	marked bool   // a string is open in it
	quoted byte   // the quote, as of JSON or Python, that a string in it stands in; 0 if none is open
	from   int    // bytes of buf up to and with the mark that opened or closed a string last
	bare   bool   // no comma stands before the key
	braced bool   // the value before the closing brace ends with one: this may be one too many
}

type bareKeysState uint8

const (
	bareHead bareKeysState = iota
	bareKey
	bareValue // its first bytes tell strings from others
	bareString
	bareOther
	bareNext  // after a string
	bareMark  // what may be a mark behind a value
	bareClose // after the closing brace, which may be one too many
)

func newBareKeys(quote string, ends ...string) func(*toolset) callReader {
	return func(ts *toolset) callReader {
		return checked(ts, &bareKeysCall{argWriter: argWriter{ts: ts}, quote: quote, ends: ends, closer: '}'})
	}
}

func (g *bareKeysCall) started() bool { return g.sent }

func (g *bareKeysCall) finish(out *joiner) verdict {
	switch {
	case g.state == bareClose && !(g.ts.cut && g.braced):
		return g.end(out)
	case g.state == bareNext || g.state == bareKey && len(g.buf) == 0:
		return g.endUnclosed(out)
	case g.state == bareOther && g.isWhole() && !g.ts.cut && g.value(false, out) == more:
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
		if c == '{' || c == '(' && !g.ts.strict {
			g.tool = strings.TrimSpace(strings.TrimPrefix(string(g.buf), "call:"))
			if !g.ts.find(&g.tool) {
				return refuted
			}
			if c == '(' && g.ts.repair(RepairBracket) {
				g.closer = ')'
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
	case bareMark:
		return g.mark(c, out)
	case bareClose:
		return g.close(c, out)
	}
	return more
}

func (g *bareKeysCall) enter(s bareKeysState) { g.state, g.buf = s, g.buf[:0] }

// key reads up to the colon.
func (g *bareKeysCall) key(c byte, out *joiner) verdict {
	quoted := bytes.HasPrefix(g.buf, []byte(g.quote))
	isName := func() bool { return !quoted && g.mayFollow(g.keyName()) }
	switch {
	case c == g.closer && len(g.buf) == 0:
		g.enter(bareClose)
		return more
	case c == '{' && len(g.buf) == 0 && len(g.seen) == 0 && g.ts.repair(RepairBracket):
		return more
	case c == '<' && len(g.buf) == 0 && len(g.seen) > 0 && !g.ts.strict:
		g.enter(bareMark)
		return g.mark(c, out)
	case c == ',' && len(g.buf) == 0 && len(g.seen) > 0 && g.ts.repair(RepairComma):
		return more
	case (c == '{' || c == '[') && isName() && g.ts.repair(RepairKey): // no colon
		if v := g.beginValue(); v != more {
			return v
		}
		return g.step(c, out)
	case c == g.quote[len(g.quote)-1] && g.isMarked() && g.ts.repair(RepairKey):
		if v := g.beginValue(); v != more {
			return v
		}
		return g.beginString(out)
	case c == '=' && isName() && g.ts.repair(RepairKey):
	case c != ':' || quoted && (len(g.buf) < 2*len(g.quote) || !bytes.HasSuffix(g.buf, []byte(g.quote))):
		if g.buf = append(g.buf, c); len(g.buf) > maxName {
			return g.fail()
		}
		return more
	}
	return g.beginValue()
}

// isMarked tells whether a key is followed, but for the byte to come, by the mark that opens a text.
func (g *bareKeysCall) isMarked() bool {
	key, ok := strings.CutSuffix(string(g.buf), g.quote[:len(g.quote)-1])
	if ok = ok && g.mayFollow(strings.TrimSpace(key)); ok && !g.ts.strict {
		g.buf = g.buf[:len(key)]
		return true
	}
	return false
}

// beginValue reads the value next.
func (g *bareKeysCall) beginValue() verdict {
	name := g.keyName()
	isJunk := !g.ts.strict && strings.ContainsAny(name, "{}[],<>") && !g.ts.declares(g.tool, name)
	if name == "" || isJunk || g.bare && !g.mayFollow(name) {
		return g.fail()
	}
	g.bare, g.braced = false, false
	g.name, g.of = name, g.ts.of(g.tool).property(name)
	g.enter(bareValue)
	return more
}

// keyName is the key that was read.
func (g *bareKeysCall) keyName() string {
	key := strings.TrimSpace(string(g.buf))
	if name, ok := strings.CutPrefix(key, g.quote); ok {
		return strings.TrimSuffix(name, g.quote)
	}
	return strings.Trim(key, `"'`)
}

// mayFollow tells whether a parameter is one of the tool and was not given yet.
func (g *bareKeysCall) mayFollow(name string) bool {
	return !slices.Contains(g.seen, name) && g.ts.declares(g.tool, name)
}

func (g *bareKeysCall) next(c byte, out *joiner) verdict {
	switch {
	case c == ',':
		g.enter(bareKey)
	case c == g.closer:
		g.enter(bareClose)
	case c == '<' && !g.ts.strict:
		g.enter(bareMark)
		return g.mark(c, out)
	case (isNameByte(c) || c == '"') && g.ts.repair(RepairComma):
		g.enter(bareKey)
		g.bare = true
		return g.key(c, out)
	case (c == '}' || c == ']') && g.ts.repair(RepairBracket):
	default:
		return g.fail()
	}
	return more
}

// mark reads what may be a mark behind a value: one that ends the call without its brace, or the one around texts, doubled.
func (g *bareKeysCall) mark(c byte, out *joiner) verdict {
	g.buf = append(g.buf, c)
	switch b := string(g.buf); {
	case b == g.quote && g.ts.repair(RepairQuote):
		g.enter(bareNext)
		return more
	case slices.Contains(g.ends, b):
		return g.endShort(b, out)
	case strings.HasPrefix(g.quote, b) || slices.ContainsFunc(g.ends, func(end string) bool { return strings.HasPrefix(end, b) }):
		return more
	}
	g.ts.unread = g.buf
	return g.fail()
}

// endShort ends a call before a mark.
func (g *bareKeysCall) endShort(mark string, out *joiner) verdict {
	g.ts.unread = []byte(mark)
	if !g.ts.hasAll(g.tool, g.seen) || !g.ts.repair(RepairUnclosed) {
		return g.fail()
	}
	g.end(out)
	return endedEarlier
}

// close takes what follows the closing brace. It was one too many if another one follows, or a parameter.
func (g *bareKeysCall) close(c byte, out *joiner) verdict {
	g.buf = append(g.buf, c)
	b := string(g.buf)
	if c == g.closer && len(b) == 1 && g.ts.repair(RepairBracket) {
		g.buf, g.braced = g.buf[:0], false
		return more
	}
	if rest, ok := strings.CutPrefix(b, ","); ok && g.braced {
		name := strings.TrimSpace(strings.ReplaceAll(rest, g.quote, ""))
		if key, ok := strings.CutSuffix(name, ":"); ok && g.mayFollow(strings.Trim(key, `"' `)) && g.ts.repair(RepairBracket) {
			g.ts.unread, g.braced = []byte(rest), false
			g.enter(bareKey)
			return reread
		}
		if !strings.ContainsAny(name, ":\n{}") && len(b) <= maxHeldGap {
			return more
		}
	}
	g.end(out)
	g.ts.unread = []byte(b)
	return endedEarlier
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
			g.to.add(ToolArgs, g.ts.fit(JSONString(string(g.held)), g.of, 1))
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
	g.depth, g.marked, g.quoted, g.from = 0, false, 0, 0
	for i := range len(first) {
		if v := g.other(first[i], out); v != more {
			return v
		}
	}
	return more
}

// other collects a value up to the comma or brace behind it.
func (g *bareKeysCall) other(c byte, out *joiner) verdict {
	if (c == ',' || c == g.closer || c == '}') && g.depth == 0 && !g.marked && g.quoted == 0 {
		g.braced = c == '}' && bytes.HasSuffix(bytes.TrimSpace(g.buf), []byte("}")) && !g.ts.strict
		if v := g.value(false, out); v != more {
			return v
		}
		return g.next(c, out)
	}
	if g.buf = append(g.buf, c); len(g.buf) > maxHeld {
		return g.fail()
	}
	switch {
	case len(g.buf)-g.from >= len(g.quote) && bytes.HasSuffix(g.buf, []byte(g.quote)):
		g.marked, g.from = !g.marked, len(g.buf)
	case g.marked:
	case g.quoted != 0:
		if c == g.quoted && g.buf[len(g.buf)-2] != '\\' {
			g.quoted = 0
		}
	case c == '"' && g.beginsValue(), c == '\'' && !g.ts.strict && g.beginsValue():
		g.quoted = c
	case c == '>' && !g.ts.strict:
		for _, end := range g.ends {
			if bytes.HasSuffix(g.buf, []byte(end)) {
				g.buf = g.buf[:len(g.buf)-len(end)]
				if v := g.value(true, out); v != more {
					g.ts.unread = []byte(end)
					return v
				}
				return g.endShort(end, out)
			}
		}
	case c == '{' || c == '[':
		g.depth++
	case c == '}' || c == ']':
		g.depth--
	}
	return more
}

// value writes the value that waited. Short is one that may lack closing brackets.
func (g *bareKeysCall) value(short bool, out *joiner) verdict {
	p := bareKeysParser{pyParser: pyParser{s: string(g.buf), loose: !g.ts.strict, short: short}, quote: g.quote}
	v, ok := p.value(0)
	if !ok || !p.atEnd() || v == `""` && len(bytes.TrimSpace(g.buf)) == 0 {
		return g.fail()
	}
	if p.mended && !g.ts.repair(RepairUnclosed) {
		return g.fail()
	}
	if g.to, ok = g.param(g.name, out); !ok {
		return g.fail()
	}
	g.to.add(ToolArgs, g.ts.fit(v, g.of, 1))
	g.buf = g.buf[:0]
	return more
}

// isWhole tells whether the value that waits ends with its bracket.
func (g *bareKeysCall) isWhole() bool {
	b := bytes.TrimRight(g.buf, " \t\r\n")
	return len(b) > 1 && g.depth == 0 && g.quoted == 0 && !g.marked && (b[len(b)-1] == '}' || b[len(b)-1] == ']')
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
	return p.items("{}", '}', p.loose, func(out []byte) ([]byte, bool) {
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
	key := strings.Trim(strings.TrimSpace(rest[:i]), `"`)
	return key, !p.loose || !strings.ContainsAny(key, "{}[],<>")
}

func (p *bareKeysParser) value(depth int) (string, bool) {
	p.blanks()
	rest := p.s[p.pos:]
	if after, ok := strings.CutPrefix(rest, p.quote); ok {
		text, _, ok := strings.Cut(after, p.quote)
		p.pos += len(text) + 2*len(p.quote)
		return JSONString(text), ok
	}
	switch {
	case strings.HasPrefix(rest, "{"):
		return p.object(depth)
	case strings.HasPrefix(rest, "["):
		return p.list(depth)
	}
	if strings.HasPrefix(rest, `"`) || p.loose && strings.HasPrefix(rest, "'") {
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
	return JSONString(word), true // a string without its marks
}

func (p *bareKeysParser) list(depth int) (string, bool) {
	if depth > maxJSONDepth || !p.take('[') {
		return "", false
	}
	return p.items("[]", ']', p.loose, func(out []byte) ([]byte, bool) {
		v, ok := p.value(depth + 1)
		return append(out, v...), ok
	})
}
