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
	trim   bool     // one newline at each end belongs to the markup
	types  types
	of     *argType // for what is in the value
	cdata  bool     // the value may stand in <![CDATA[ ]]>

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
		v.begun = true
		if v.trim && c == '\n' {
			return ""
		}
	}
	v.held = append(v.held, c)
	if v.cdata {
		if v.cdata = len(v.held) < len(cdataOpen); strings.HasPrefix(cdataOpen, string(v.held)) {
			if !v.cdata {
				v.closer, v.held = "]]>"+v.closer, v.held[:0]
			}
			return ""
		}
		v.cdata = false
	}
	for len(v.held) > 0 {
		next, partial := v.nextAt()
		if next != "" {
			v.end(out)
			return next
		}
		if partial {
			return ""
		}
		v.put(v.held[0], out)
		v.held = append(v.held[:0], v.held[1:]...)
	}
	return ""
}

const cdataOpen = "<![CDATA["

// closed tells whether the value ended, as far as the output goes.
func (v *valueReader) closed() bool {
	h := string(v.held)
	if v.trim {
		h = strings.TrimPrefix(h, "\n")
	}
	return strings.HasPrefix(h, v.closer)
}

// nextAt tells whether held is the end of the value and one of next, or may become it.
func (v *valueReader) nextAt() (next string, partial bool) {
	h := v.held
	if v.trim && h[0] == '\n' {
		h = h[1:]
	}
	if len(h) <= len(v.closer) {
		return "", v.closer[:len(h)] == string(h)
	}
	if string(h[:len(v.closer)]) != v.closer {
		return "", false
	}
	rest := strings.TrimLeft(string(h[len(v.closer):]), " \t\r\n")
	for _, n := range v.next {
		if rest == n {
			return n, false
		}
		partial = partial || strings.HasPrefix(n, rest)
	}
	return "", partial && len(h)-len(v.closer)-len(rest) <= maxHeldGap
}

// put takes a byte of the value.
func (v *valueReader) put(c byte, out *joiner) {
	if !v.streams() {
		if v.buf = append(v.buf, c); len(v.buf) > maxHeld { // a string, if it cannot wait
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
	out.add(ToolArgs, v.ts.typed(string(v.buf), v.types, v.of))
}
