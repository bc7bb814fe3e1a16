package dialect

import (
	"slices"
	"strings"
)

// argsReader reads the arguments of a call as a JSON object and gives them out as they come. A value whose type the
// schema does not allow waits until it is complete, and goes out corrected if it is certain what is meant.
type argsReader struct {
	ts   *toolset
	of   argType
	json jsonScanner

	types types // of the value being read
	value argState
	held  []byte // of the value, when it may need correction
}

type argState uint8

const (
	argGap   argState = iota // outside values of the arguments
	argAhead                 // a key ended, its value comes
	argPass                  // goes out as it comes
	argHold                  // waits
)

func newArgs(ts *toolset, tool string) *argsReader { return &argsReader{ts: ts, of: ts.of(tool)} }

func (a *argsReader) step(c byte, out *joiner) verdict {
	for {
		text, ev := a.json.step(c)
		if ev == scanBad || a.json.mended && !a.ts.repair(RepairText) {
			return broken
		}
		a.take(text, ev, out)
		if ev == scanDone {
			return ended
		}
		if !a.json.again {
			return more
		}
	}
}

func (a *argsReader) take(text string, ev scanEvent, out *joiner) {
	switch a.value {
	case argGap, argPass:
		out.add(ToolArgs, text)
	case argAhead:
		a.ahead(text, out)
	case argHold:
		if a.held = append(a.held, text...); len(a.held) > maxHeld {
			a.release(out)
		}
	}
	switch {
	case len(a.json.stack) > 1:
	case ev == scanKey:
		a.value, a.types = argAhead, a.of.property(a.json.name()).types()
	case ev == scanEnd:
		if a.value == argHold {
			a.release(out)
		}
		a.value = argGap
	}
}

// last is step where the call ends with its arguments.
func (a *argsReader) last(c byte, out *joiner) verdict {
	v := a.step(c, out)
	if v == ended {
		out.add(ToolEnd, "")
	}
	return v
}

// ahead takes the text between a key and the end of its value's first byte.
func (a *argsReader) ahead(text string, out *joiner) {
	n := len(text) - len(strings.TrimLeft(text, ": \t\r\n"))
	out.add(ToolArgs, text[:n])
	if text = text[n:]; text == "" {
		return
	}
	fits := a.types == 0
	switch text[0] {
	case '"', '{', '[':
		fits = fits || kindOf(text)&a.types != 0 || text[0] != '"' && a.types&typeString == 0
	}
	if fits {
		a.value = argPass
		out.add(ToolArgs, text)
		return
	}
	a.value, a.held = argHold, append(a.held[:0], text...)
}

// release gives the held value out.
func (a *argsReader) release(out *joiner) {
	out.add(ToolArgs, a.ts.fit(string(a.held), a.types))
	a.value = argPass
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
