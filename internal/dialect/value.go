package dialect

import "strings"

// maxHeldGap bounds the blanks between the closing tag of a parameter and what follows it.
const maxHeldGap = 64

// valueReader reads the text of a parameter and writes it as JSON of the parameter's type: a string as it comes, other
// types when they are complete.
//
// A value may hold its own closing tag: only one that something legal follows ends it, so the tag is held back until
// that is known.
type valueReader struct {
	ts     *toolset
	closer string
	next   []string // what may follow the closer, after blanks
	trim   bool     // one line end at each side belongs to the markup
	types  types
	of     *argType // for what is in the value
	cdata  bool     // the value may stand in <![CDATA[ ]]>

	// implied tells of text that begins with no proper end, and perhaps with a line end, whether the value ends there, or may end
	// when more of it is known; nil if it never does.
	implied func(text string) (ends, partial bool)
	sure    int // bytes of the value to come in which implied was asked already

	held    []byte // an end of the value, perhaps
	buf     []byte // text so far, of types that are not streamed
	escaped []byte
	begun   bool
	open    bool // the opening quote went out
}

func (v *valueReader) streams() bool { return v.types == typeString }

// step takes a byte. At the end of the value it returns what followed it, one of next.
func (v *valueReader) step(c byte, out *joiner) (next string) {
	if !v.begun {
		cr := len(v.held) == 1
		if v.trim && c == '\r' && !cr {
			v.held = append(v.held, c)
			return ""
		}
		v.begun = true
		if v.trim && c == '\n' {
			v.held = v.held[:0]
			return ""
		}
	}
	v.held = append(v.held, c)
	if v.cdata {
		if v.cdata = len(v.held) < len(cdataOpen); strings.HasPrefix(cdataOpen, string(v.held)) {
			if !v.cdata {
				v.closer, v.held, v.implied = "]]>"+v.closer, v.held[:0], nil
			}
			return ""
		}
		v.cdata = false
	}
	for len(v.held) > 0 {
		next, partial := v.nextAt()
		switch {
		case next == implied:
			return next
		case next != "":
			v.end(out)
			return next
		case partial:
			return ""
		}
		v.put(v.held[0], out)
		v.sure = max(0, v.sure-1)
		v.held = append(v.held[:0], v.held[1:]...)
	}
	return ""
}

const cdataOpen = "<![CDATA["

// implied is what step returns where a value ends without a proper end: held is what stands there.
const implied = "implied"

// lineEnd is how many bytes of a line end b begins with.
func lineEnd(b string) int {
	switch {
	case strings.HasPrefix(b, "\n"):
		return 1
	case strings.HasPrefix(b, "\r\n"):
		return 2
	}
	return 0
}

// closed tells whether the value ended, as far as the output goes.
func (v *valueReader) closed() bool {
	h := string(v.held)
	if v.trim {
		h = h[lineEnd(h):]
	}
	return strings.HasPrefix(h, v.closer)
}

// nextAt tells whether held is the end of the value and one of next, or may become it.
func (v *valueReader) nextAt() (next string, partial bool) {
	c := v.held[0]
	if c != v.closer[0] && c != '<' && c != '\n' && c != '\r' {
		return "", false
	}
	h := string(v.held)
	line := lineEnd(h)
	if c != '<' && c != v.closer[0] && line == len(h) || h == "\r" {
		return "", v.trim || v.implied != nil
	}
	if line == 0 || v.trim {
		if next, partial = v.closedAt(h[line:]); next != "" || partial {
			return next, partial
		}
	}
	if v.implied == nil {
		return "", false
	}
	ends, partial := v.implied(h)
	if ends {
		return implied, false
	}
	return "", partial
}

// closedAt looks for the closer and one of next.
func (v *valueReader) closedAt(h string) (next string, partial bool) {
	if len(h) <= len(v.closer) {
		return "", strings.HasPrefix(v.closer, h)
	}
	rest, ok := strings.CutPrefix(h, v.closer)
	if !ok {
		return "", false
	}
	gap := len(rest)
	rest = strings.TrimLeft(rest, " \t\r\n")
	gap -= len(rest)
	for _, n := range v.next {
		if rest == n {
			return n, false
		}
		partial = partial || strings.HasPrefix(n, rest)
	}
	return "", partial && gap <= maxHeldGap
}

// put takes a byte of the value.
func (v *valueReader) put(c byte, out *joiner) {
	if !v.streams() {
		v.buf = append(v.buf, c)
		if len(v.buf) > maxHeld || v.types == typeString|typeNull && !mayBeNull(v.buf) { // a string then
			v.types = typeString
			text := v.buf
			v.buf = nil
			for _, c := range text {
				v.put(c, out)
			}
		}
		return
	}
	v.quote(out)
	v.escaped = appendEscaped(v.escaped[:0], c)
	out.add(ToolArgs, string(v.escaped))
}

// mayBeNull tells whether text can become null, with few blanks around.
func mayBeNull(text []byte) bool {
	s := strings.TrimLeft(string(text), " \t\r\n")
	for _, null := range []string{"null", "None"} {
		if n := min(len(s), len(null)); s[:n] == null[:n] && strings.TrimSpace(s[n:]) == "" {
			return len(text) <= maxHeldGap
		}
	}
	return false
}

func (v *valueReader) quote(out *joiner) {
	if !v.open {
		v.open = true
		out.add(ToolArgs, `"`)
	}
}

func (v *valueReader) end(out *joiner) {
	if v.streams() {
		v.quote(out)
		out.add(ToolArgs, `"`)
		return
	}
	text := string(v.buf)
	if v.implied != nil && v.types != 0 && v.types&typeString == 0 { // it may have ended twice
		if first, twice := strings.CutSuffix(strings.TrimRight(text, " \t\r\n"), v.closer); twice && v.ts.repair(RepairTag) {
			text = first
		}
	}
	out.add(ToolArgs, v.ts.typed(text, v.types, v.of))
}
