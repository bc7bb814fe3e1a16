package dialect

import "slices"

// argsReader reads JSON, the arguments of a call or a value in them, and gives it out as it comes. Where the schema does not
// allow the type of a value and it is certain what is meant, the value goes out corrected: a string once it is complete.
type argsReader struct {
	ts     *toolset
	json   jsonScanner
	of     *argType   // the value being read, or that comes next
	open   []argLevel // the lists and objects around it
	depth  int        // those in which the text stands as a string
	bare   bool       // it is a literal
	hold   bool       // it is a string that waits
	keep   bool       // it goes out, and tells which alternatives hold
	held   []byte     // of a string that waits or is kept
	quoted int        // how many levels are open in a list or object that goes out as a string, 0 if none does
}

// argLevel is a list or an object that is open.
type argLevel struct {
	of   *argType
	list bool
	next int    // element
	key  string // of the member, where there are alternatives
}

// choice tells whether what the members of an object say leaves fewer alternatives.
func (l *argLevel) choice() bool { return !l.list && l.of != nil && len(l.of.alts) > 1 }

// maxTelling bounds the text of a member that tells which alternatives hold.
const maxTelling = 128

func newArgs(ts *toolset, tool string) *argsReader {
	a := &argsReader{ts: ts}
	if !ts.strict {
		a.of = ts.of(tool)
	}
	return a
}

func (a *argsReader) step(c byte, out *joiner) verdict {
	for {
		text, ev := a.json.step(c)
		if ev == scanBad || a.json.mended != "" && !a.ts.repair(a.json.mended) {
			return broken
		}
		switch {
		case a.passes(ev): // most of what is written
			out.add(ToolArgs, text)
		case a.take(text, ev, out):
			return ended
		}
		if !a.json.again {
			return more
		}
	}
}

// passes tells whether text goes out as it is.
func (a *argsReader) passes(ev scanEvent) bool {
	return ev == scanMore && !a.hold && !a.keep && a.quoted == 0
}

// take tells whether the arguments are complete.
func (a *argsReader) take(text string, ev scanEvent, out *joiner) bool {
	switch {
	case a.quoted > 0:
		a.quote(text, ev, out)
	case ev == scanBegin:
		a.begin(text, out)
	case ev == scanEnd || ev == scanDone:
		a.end(text, out)
	case a.hold:
		if a.held = append(a.held, text...); len(a.held) > maxHeld { // no number is that long
			out.add(ToolArgs, string(a.held))
			a.hold = false
		}
	case a.keep:
		out.add(ToolArgs, text)
		a.held = append(a.held, text...)
		a.keep = len(a.held) < maxTelling
	default: // a key
		out.add(ToolArgs, text)
		level := &a.open[len(a.open)-1]
		if a.of = level.of; a.of != nil {
			name := a.json.name()
			a.of = a.of.property(name)
			if level.choice() {
				level.key = name
			}
		}
	}
	return ev == scanDone
}

// begin takes the first byte of a value, or nothing of a literal.
func (a *argsReader) begin(text string, out *joiner) {
	if n := len(a.open); n > 0 && a.open[n-1].list {
		list := &a.open[n-1]
		a.of = list.of.item(list.next)
		list.next++
	}
	if a.bare = text == ""; a.bare {
		return
	}
	ts := a.of.types()
	if text == `"` {
		a.hold = ts != 0 && ts&typeString == 0
		a.keep = !a.hold && len(a.open) > 0 && a.open[len(a.open)-1].choice()
		a.held = append(a.held[:0], text...)
		if !a.hold {
			out.add(ToolArgs, text)
		}
		return
	}
	if len(a.open) > 0 && ts&kindOf(text) == 0 && ts&typeString != 0 && a.ts.repair(RepairString) {
		a.quoted = len(a.json.stack)
		out.add(ToolArgs, `"`+text)
		return
	}
	a.open = append(a.open, argLevel{of: a.of, list: text == "["})
	out.add(ToolArgs, text)
}

// end takes the last byte of a value, or a literal.
func (a *argsReader) end(text string, out *joiner) {
	whole := "" // the value, if it can tell which alternatives hold
	switch {
	case len(a.open) > len(a.json.stack):
		a.open = a.open[:len(a.open)-1]
	case a.hold || a.bare:
		if a.hold {
			text = string(append(a.held, text...))
		}
		text = a.ts.fit(text, a.of, a.depth+len(a.open))
		whole = text
	case a.keep:
		whole = string(a.held) + text
	}
	a.hold, a.bare, a.keep = false, false, false
	out.add(ToolArgs, text)
	if n := len(a.open); whole != "" && n > 0 && a.open[n-1].choice() {
		a.open[n-1].of = a.open[n-1].of.given(a.open[n-1].key, whole)
	}
}

// quote takes text of a list or an object that goes out as a string.
func (a *argsReader) quote(text string, ev scanEvent, out *joiner) {
	for i := range len(text) {
		a.held = appendEscaped(a.held[:0], text[i])
		out.add(ToolArgs, string(a.held))
	}
	if ev == scanEnd && len(a.json.stack) < a.quoted {
		a.quoted = 0
		out.add(ToolArgs, `"`)
	}
}

// argWriter writes the arguments of a call one by one. The call starts with the first of them.
type argWriter struct {
	ts   *toolset
	tool string
	seen []string // names so far
	sent bool
}

// param begins an argument and returns where its value goes: discard if it was given before. Not ok is a call that may
// not be repaired.
func (w *argWriter) param(name string, out *joiner) (to *joiner, ok bool) {
	if slices.Contains(w.seen, name) {
		return discard, w.ts.repair(RepairTwice)
	}
	w.start(out)
	sep := []byte("{")
	if len(w.seen) > 0 {
		sep = []byte(", ")
	}
	out.add(ToolArgs, string(appendQuoted(sep, name))+": ")
	w.seen = append(w.seen, name)
	return out, true
}

func (w *argWriter) start(out *joiner) {
	if !w.sent {
		w.sent = true
		out.add(ToolStart, w.tool)
	}
}

// end closes the call.
func (w *argWriter) end(out *joiner) verdict {
	w.start(out)
	if len(w.seen) == 0 {
		out.add(ToolArgs, "{")
	}
	out.add(ToolArgs, "}")
	out.add(ToolEnd, "")
	return ended
}

// endUnclosed closes a call at the end of the output if nothing but its closing marks can be missing.
func (w *argWriter) endUnclosed(out *joiner) verdict {
	if !w.ts.cut && len(w.seen) > 0 && w.ts.hasAll(w.tool, w.seen) && w.ts.repair(RepairUnclosed) {
		return w.end(out)
	}
	return w.fail()
}

func (w *argWriter) fail() verdict { return failed(w.sent) }
