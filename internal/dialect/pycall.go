package dialect

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxName bounds names of tools, with the markup around them.
const maxName = 512

// pyCall reads calls in Python's syntax, one at a time: f(a=1). In brackets several may be separated by commas, without
// by line ends. Strings go out as they come, other values when they are complete. Arguments need names: a schema does
// not order its parameters.
type pyCall struct {
	argWriter      // of the call being read
	bracket   bool // calls stand in [ ]
	state     pyState
	any       bool   // a call was complete
	raw       []byte // of a call that has not started, or of another tool, after complete ones
	alien     bool   // the call is of a tool that does not exist, and text
	waits     bool   // its name had to be mended: it is held, as checkedCall holds one
	kept      joiner // what came of a call that waits

	buf    []byte   // of a name, or of a value that waits until it is complete
	of     *argType // of the value
	to     *joiner
	name   string // of the parameter
	str    pyString
	text   []byte // of a string, as JSON
	depth  int    // brackets open in a value that waits
	quoted bool   // a string is open in it
	blank  bool   // the name of the parameter is complete
	mark   byte   // the quote it stands in, 0 if it stands in none
}

type pyState uint8

const (
	pyOpen    pyState = iota // before "["
	pyHead                   // the name of a tool, up to "("
	pyArg                    // a parameter, or ")"
	pyKey                    // its name, up to "="
	pyValue                  // its value's first byte
	pyStr                    // a string that goes out as it comes
	pyStrEnd                 // after it: another that continues it, "," or ")"
	pyOther                  // a value that waits
	pyNext                   // after a value and a bracket too many
	pyBracket                // after a value and "]": that may be one too many, or ")" is missing
	pyAfter                  // after a call
	pyMark                   // in what may be a mark behind a value
	pyDone                   // after all
)

func newPyList(ts *toolset) callReader { return &pyCall{argWriter: argWriter{ts: ts}, bracket: true} }

func newPyCalls(ts *toolset) callReader {
	return &pyCall{argWriter: argWriter{ts: ts}, state: pyHead}
}

func (y *pyCall) started() bool { return y.any || y.sent && !y.waits }

func (y *pyCall) rest() []byte {
	if y.sent && !y.alien && !y.waits {
		return nil
	}
	return y.raw
}

// bad is what a byte that no call has there makes of it.
func (y *pyCall) bad() verdict { return failed(y.started()) }

func (y *pyCall) finish(out *joiner) verdict {
	switch {
	case y.waits:
		return y.judge(y.finishCall(&y.kept), out)
	case y.state == pyAfter || y.state == pyDone || y.any && y.state == pyHead && len(y.buf) == 0:
		return ended
	case !y.alien:
		return y.finishCall(out)
	}
	return y.bad()
}

// finishCall takes a call at the end of the output, of which nothing but brackets may be missing.
func (y *pyCall) finishCall(out *joiner) verdict {
	switch y.state {
	case pyStrEnd:
		y.to.add(ToolArgs, `"`)
		return y.endUnclosed(out)
	case pyNext, pyBracket:
		return y.endUnclosed(out)
	case pyOther:
		if y.isWhole() && !y.ts.cut && y.value(out) == more {
			return y.endUnclosed(out)
		}
	}
	return y.bad()
}

// isWhole tells whether the value that waits ends with its bracket.
func (y *pyCall) isWhole() bool {
	b := bytes.TrimRight(y.buf, " \t\r\n")
	return len(b) > 1 && y.depth == 0 && !y.quoted && bytes.IndexByte([]byte("]})"), b[len(b)-1]) >= 0
}

func (y *pyCall) step(c byte, out *joiner) verdict {
	if y.any && (!y.sent || y.alien || y.waits) && (len(y.raw) > 0 || !isBlank(c)) {
		y.raw = append(y.raw, c)
	}
	if y.waits {
		return y.wait(c, out)
	}
	if !y.alien {
		return y.read(c, out)
	}
	raw := y.raw
	v := y.read(c, discard)
	switch {
	case v == more && y.state == pyAfter:
		out.add(Text, string(raw))
		y.alien = false
	case v == more && len(raw) > maxHeld:
		return broken
	}
	return v
}

// wait reads on in a call that is held.
func (y *pyCall) wait(c byte, out *joiner) verdict {
	raw, isFirst := y.raw, !y.any
	v := y.read(c, &y.kept)
	switch {
	case v != more:
		y.any = !isFirst
		return y.judge(v, out)
	case y.state != pyAfter && !isFirst && len(raw) > maxHeld:
		return y.judge(broken, out)
	case y.state != pyAfter:
		return more
	}
	if y.any = !isFirst; y.judge(ended, out) == ended {
		y.any = true
		return more
	}
	if isFirst {
		return unfit
	}
	out.add(Text, string(raw))
	y.waits = false
	return more
}

// judge decides about a call that was held.
func (y *pyCall) judge(v verdict, out *joiner) verdict {
	isEnd := v == ended || v == endedBefore || v == endedEarlier
	isCall := isEnd && y.ts.accept(&y.kept, false)
	if isCall {
		y.kept.moveTo(out)
	} else {
		y.ts.refuse()
		y.kept = joiner{}
	}
	switch {
	case isCall:
		y.waits = false
		return v
	case y.any:
		return broken
	case isEnd:
		return unfit
	}
	return refuted
}

func (y *pyCall) read(c byte, out *joiner) verdict {
	switch y.state {
	case pyOpen:
		if isBlank(c) {
			return more
		}
		if c != '[' {
			return refuted
		}
		y.state = pyHead
	case pyHead:
		return y.head(c)
	case pyArg:
		switch {
		case isBlank(c):
		case c == ')':
			return y.endCall(out)
		case (c == '{' || c == '*') && !y.alien && !y.ts.strict: // all as one dict
			y.state, y.name, y.depth, y.quoted, y.buf = pyOther, "", 0, false, y.buf[:0]
			return y.other(c, out)
		case (c == '"' || c == '\'') && y.ts.repair(RepairQuote):
			y.state, y.buf, y.blank, y.mark = pyKey, y.buf[:0], false, c
		case !isNameByte(c):
			return y.bad()
		default:
			y.state, y.buf, y.blank, y.mark = pyKey, append(y.buf[:0], c), false, 0
		}
	case pyKey:
		return y.key(c)
	case pyValue:
		return y.begin(c, out)
	case pyStr:
		return y.inString(c, out)
	case pyStrEnd:
		switch {
		case isBlank(c):
		case c == '"' || c == '\'':
			y.state, y.str = pyStr, pyString{quote: c, run: 1}
		default:
			y.to.add(ToolArgs, `"`)
			return y.next(c, out)
		}
	case pyOther:
		return y.other(c, out)
	case pyNext:
		if isBlank(c) {
			return more
		}
		return y.next(c, out)
	case pyMark:
		return y.beginsMark(c, out)
	case pyBracket:
		return y.bracketEnds(c, out)
	case pyAfter:
		return y.after(c, out)
	case pyDone:
		if (c == ']' || c == ')') && y.ts.repair(RepairBracket) {
			return more
		}
		return endedBefore
	}
	return more
}

// head reads the name of a tool.
func (y *pyCall) head(c byte) verdict {
	switch {
	case isBlank(c) && len(y.buf) == 0:
		return more
	case c == '(':
		if y.tool = y.called(string(y.buf)); !y.ts.find(&y.tool) {
			if y.alien = y.any; !y.any {
				return refuted
			}
		}
		y.waits = !y.alien && y.ts.mended != ""
		y.state, y.buf = pyArg, y.buf[:0]
		return more
	case y.any && y.bracket && c == ']' && len(y.buf) == 0: // after a trailing comma
		return y.done()
	case y.any && y.bracket && isMark(c) && len(y.buf) == 0 && y.ts.repair(RepairUnclosed):
		return endedBefore
	case y.any && !y.bracket && len(y.buf) == 0 && !isNameByte(c):
		return endedBefore
	case !isNameByte(c) && c != ' ' && c != '=' || len(y.buf) > maxName:
		return y.bad()
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

func (y *pyCall) key(c byte) verdict {
	switch {
	case y.mark != 0 && c == y.mark && !y.blank:
		y.blank = true
	case y.mark != 0 && !y.blank && len(y.buf) <= maxName:
		y.buf = append(y.buf, c)
	case c == '=' || c == ':' && y.ts.repair(RepairKey):
		y.state, y.name, y.buf = pyValue, string(y.buf), y.buf[:0]
		y.of = y.ts.of(y.tool).property(y.name)
	case isBlank(c):
		y.blank = true
	case !isNameByte(c) || y.blank || len(y.buf) > maxName:
		return y.bad()
	default:
		y.buf = append(y.buf, c)
	}
	return more
}

// begin takes the first byte of a value.
func (y *pyCall) begin(c byte, out *joiner) verdict {
	isQuote, ts := c == '"' || c == '\'', y.of.types()
	switch {
	case isBlank(c):
		return more
	case isQuote && (ts == 0 || ts&typeString != 0):
		if !y.argument(out) {
			return y.bad()
		}
		y.to.add(ToolArgs, `"`)
		y.state, y.str = pyStr, pyString{quote: c, run: 1}
		return more
	}
	y.state, y.depth, y.quoted = pyOther, 0, false
	return y.other(c, out)
}

// argument writes the name of the parameter.
func (y *pyCall) argument(out *joiner) (ok bool) {
	if !y.alien && !y.waits {
		y.raw = nil
	}
	y.to, ok = y.param(y.name, out)
	return ok
}

func (y *pyCall) inString(c byte, out *joiner) verdict {
	text, end := y.str.step(y.text[:0], c)
	y.to.add(ToolArgs, string(text))
	y.text = text
	switch end {
	case stringEnds:
		y.state = pyStrEnd
	case stringEnded:
		y.state = pyStrEnd
		return y.read(c, out)
	}
	return more
}

// other collects a value up to the comma or bracket behind it.
func (y *pyCall) other(c byte, out *joiner) verdict {
	if y.quoted {
		var end stringEnd
		y.text, end = y.str.step(y.text[:0], c)
		if y.quoted = end == stringGoesOn; end != stringEnded {
			y.buf = append(y.buf, c)
			return more
		}
	}
	switch c {
	case '"', '\'':
		y.quoted, y.str = true, pyString{quote: c, run: 1}
	case '(', '[', '{':
		y.depth++
	case '<', '`':
		if y.depth == 0 && !y.ts.strict {
			return y.otherEnds(c, out)
		}
	case ')', ']', '}', ',':
		if y.depth == 0 {
			return y.otherEnds(c, out)
		}
		if c != ',' {
			y.depth--
		}
	}
	if y.buf = append(y.buf, c); len(y.buf) > maxHeld {
		return y.bad()
	}
	return more
}

func (y *pyCall) otherEnds(c byte, out *joiner) verdict {
	if v := y.value(out); v != more {
		return v
	}
	return y.next(c, out)
}

// value writes the value that waited.
func (y *pyCall) value(out *joiner) verdict {
	if y.name == "" {
		return y.dict(out)
	}
	p := pyParser{s: string(y.buf), loose: !y.ts.strict}
	v, ok := p.value(0)
	if ok = ok && p.atEnd(); !ok && isWord(p.s) && y.of.types()&typeString != 0 {
		v, ok, p.mended = JSONString(strings.TrimSpace(p.s)), true, true
	}
	if !ok || p.mended && !y.ts.repair(RepairQuote) || !y.argument(out) {
		return y.bad()
	}
	y.to.add(ToolArgs, y.ts.fit(v, y.of, 1))
	return more
}

// isWord tells whether s can be meant as a text that lacks its quotes.
func isWord(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && !strings.ContainsAny(s, "\"'`=:()[]{}<>\n")
}

// dict writes arguments that stand as one dict, if they are all parameters of the tool.
func (y *pyCall) dict(out *joiner) verdict {
	p := pyParser{s: strings.TrimLeft(string(y.buf), "*"), loose: true}
	v, ok := p.value(0)
	if !ok || !p.atEnd() || v[0] != '{' {
		return y.bad()
	}
	d := json.NewDecoder(strings.NewReader(v))
	if _, err := d.Token(); err != nil || !y.ts.repair(RepairKey) {
		return y.bad()
	}
	for d.More() {
		key, err := d.Token()
		name, _ := key.(string)
		var value json.RawMessage
		if err != nil || !y.ts.declares(y.tool, name) || d.Decode(&value) != nil {
			return y.bad()
		}
		y.name, y.of = name, y.ts.of(y.tool).property(name)
		if !y.argument(out) {
			return y.bad()
		}
		y.to.add(ToolArgs, y.ts.fit(string(value), y.of, 1))
	}
	return more
}

// isMark tells whether a mark of the family may begin with c: one that ends calls, as no value holds it.
func isMark(c byte) bool { return c == '<' || c == '`' }

// next takes the byte behind a value.
func (y *pyCall) next(c byte, out *joiner) verdict {
	y.buf = y.buf[:0]
	switch {
	case c == ',':
		y.state = pyArg
		return more
	case c == ')':
		return y.endCall(out)
	case y.alien:
		return y.bad()
	case c == ']' && y.bracket && !y.ts.strict:
		y.state = pyBracket
		return more
	case (c == ']' || c == '}') && y.ts.repair(RepairBracket):
		y.state = pyNext
		return more
	case isMark(c) && !y.ts.strict:
		y.state, y.buf = pyMark, append(y.buf, c)
		return more
	}
	return y.bad()
}

// beginsMark reads on in what may be a mark behind a value: other text is none, and the value was not over.
func (y *pyCall) beginsMark(c byte, out *joiner) verdict {
	y.buf = append(y.buf, c)
	y.ts.unread = y.buf
	switch string(y.buf) {
	case "``":
		return more
	case "<|", "```":
		if v := y.endShort(out); v != endedBefore {
			return v
		}
		return endedEarlier
	}
	return y.bad()
}

// endShort ends a call before what no call holds, without its ")".
func (y *pyCall) endShort(out *joiner) verdict {
	if !y.ts.hasAll(y.tool, y.seen) || !y.ts.repair(RepairUnclosed) {
		return y.bad()
	}
	y.endCall(out)
	return endedBefore
}

// bracketEnds takes what follows a value and "]".
func (y *pyCall) bracketEnds(c byte, out *joiner) verdict {
	switch {
	case isBlank(c):
		return more
	case c == ')' || c == ',':
		if !y.ts.repair(RepairBracket) {
			return y.bad()
		}
		return y.next(c, out)
	}
	return y.endShort(out)
}

func (y *pyCall) done() verdict {
	y.state = pyDone
	return more
}

func (y *pyCall) endCall(out *joiner) verdict {
	y.end(out)
	y.argWriter = argWriter{ts: y.ts}
	y.state, y.any, y.buf, y.raw = pyAfter, true, y.buf[:0], nil
	return more
}

// after takes what stands between calls.
func (y *pyCall) after(c byte, out *joiner) verdict {
	if isBlank(c) {
		return more
	}
	y.raw, y.state = nil, pyHead
	switch {
	case c == ',' || c == ';' && !y.bracket:
		return more
	case y.bracket && c == ']':
		return y.done()
	case (c == ')' || c == ']') && y.ts.repair(RepairBracket):
		y.state = pyAfter
		return more
	case y.bracket && isMark(c) && y.ts.repair(RepairUnclosed):
		return endedBefore
	case y.bracket && !(isNameByte(c) && y.ts.repair(RepairComma)):
		y.raw = append(y.raw, c)
		return broken
	}
	y.raw = append(y.raw, c)
	return y.read(c, out)
}

// newPythonTag reads what follows the tag: JSON, a list, or one call in Python.
var newPythonTag = newByFirst(func(c byte, ts *toolset) callReader {
	if r := bareCall(c, ts); r != nil {
		return r
	}
	return newPyCalls(ts)
})

// stringEnd tells where a string ends.
type stringEnd uint8

const (
	stringGoesOn stringEnd = iota
	stringEnds             // with this byte
	stringEnded            // with the byte before
)

// pyString reads a string in Python's syntax after its first quote.
type pyString struct {
	quote  byte
	run    int // quotes in a row: of the opening, later of what may be the closing
	triple bool
	begun  bool
	esc    []byte // from a backslash on
}

// step takes a byte and appends what it makes certain, as it stands in a JSON string.
func (p *pyString) step(dst []byte, c byte) ([]byte, stringEnd) {
	if len(p.esc) > 0 {
		return p.escape(dst, c)
	}
	if !p.begun {
		switch {
		case c == p.quote && p.run == 2:
			p.triple, p.begun, p.run = true, true, 0
			return dst, stringGoesOn
		case c == p.quote:
			p.run = 2
			return dst, stringGoesOn
		case p.run == 2: // an empty string
			return dst, stringEnded
		}
		p.begun, p.run = true, 0
	}
	if c == p.quote {
		if p.run++; !p.triple || p.run == 3 {
			return dst, stringEnds
		}
		return dst, stringGoesOn
	}
	for ; p.run > 0; p.run-- {
		dst = appendEscaped(dst, p.quote)
	}
	if c == '\\' {
		p.esc = append(p.esc[:0], c)
		return dst, stringGoesOn
	}
	return appendEscaped(dst, c), stringGoesOn
}

// escape takes a byte after a backslash.
func (p *pyString) escape(dst []byte, c byte) ([]byte, stringEnd) {
	n := 0 // hexadecimal digits that belong to it
	if len(p.esc) > 1 {
		n = hexDigits(p.esc[1])
	} else {
		n = hexDigits(c)
	}
	isHex := len(p.esc) < 2 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
	if isHex {
		if p.esc = append(p.esc, c); len(p.esc) < 2+n {
			return dst, stringGoesOn
		}
	}
	lit := pyParser{s: string(p.esc), pos: 1}
	dst = lit.escape(dst)
	for lit.pos < len(lit.s) {
		dst = appendEscaped(dst, lit.s[lit.pos])
		lit.pos++
	}
	p.esc = p.esc[:0]
	if !isHex {
		return p.step(dst, c)
	}
	return dst, stringGoesOn
}

// hexDigits is how many digits follow a letter after a backslash.
func hexDigits(c byte) int {
	switch c {
	case 'x':
		return 2
	case 'u':
		return 4
	case 'U':
		return 8
	}
	return 0
}
