package dialect

import "strings"

// pairMarks are the marks of a form with keys and values side by side.
type pairMarks struct {
	key, keyClose, value, valueClose string
	sep                              string // ends the name; "" if only the marks after it do
	open, close                      string // of the call
	outer                            []string
}

// all are the marks within a call; sep may be "".
func (k pairMarks) all() []string { return []string{k.key, k.keyClose, k.value, k.valueClose, k.sep} }

// pairMarksIn are the marks of that form, with something before and behind their names.
func pairMarksIn(before, behind, sep string) pairMarks {
	return pairMarks{key: "<" + before + "arg_key" + behind + ">", keyClose: "</" + before + "arg_key" + behind + ">",
		value: "<" + before + "arg_value" + behind + ">", valueClose: "</" + before + "arg_value" + behind + ">",
		sep: sep, open: "<" + before + "tool_call" + behind + ">", close: "</" + before + "tool_call" + behind + ">"}
}

// pairCall is an xmlCall whose names stand between other marks.
type pairCall struct {
	xmlCall
	marks pairMarks
	named bool
	key   string // read; its value must follow
	keyed bool
}

func newPairs(marks pairMarks) func(*toolset) callReader {
	syn := &xmlSyntax{param: marks.key, keyClose: marks.keyClose, paramClose: marks.valueClose, callClose: marks.close, outer: marks.outer, open: marks.open}
	syn.tags = tagsOf(syn)
	return func(ts *toolset) callReader {
		return checked(ts, &pairCall{xmlCall: xmlCall{xmlSyntax: syn, argWriter: argWriter{ts: ts}}, marks: marks})
	}
}

func (g *pairCall) finish(out *joiner) verdict {
	if !g.named {
		return refuted
	}
	return g.xmlCall.finish(out)
}

func (g *pairCall) step(c byte, out *joiner) verdict {
	switch {
	case !g.named:
		return g.name(c, out)
	case g.state == xmlParam && !g.keyed:
		g.head = append(g.head, c)
		if key, ok := strings.CutSuffix(string(g.head), g.marks.keyClose); ok {
			g.key, g.keyed, g.head = strings.TrimSpace(key), true, g.head[:0]
		} else if len(g.head) > maxName {
			return g.fail()
		}
		return more
	case g.state == xmlParam:
		return g.gapToValue(c, out)
	}
	return g.xmlCall.step(c, out)
}

// name reads the tool's name, which ends where the first key, the end of the call or a new line begins.
func (g *pairCall) name(c byte, out *joiner) verdict {
	if len(g.head) == 0 && isBlank(c) {
		return more
	}
	g.head = append(g.head, c)
	h := string(g.head)
	ends := [...]string{"\n", g.marks.key, g.marks.close, g.marks.sep}
	for i, mark := range ends {
		name, ok := strings.CutSuffix(h, mark)
		if !ok || mark == "" {
			continue
		}
		if g.tool = strings.TrimSpace(name); !g.ts.find(&g.tool) {
			return refuted
		}
		g.named, g.state, g.head = true, xmlGap, g.head[:0]
		switch i {
		case 1:
			g.begin()
		case 2:
			return g.end(out)
		}
		return more
	}
	if len(h) > maxName {
		return refuted
	}
	if i := strings.IndexByte(h, '<'); i >= 0 {
		for _, mark := range ends {
			if strings.HasPrefix(mark, h[i:]) {
				return more
			}
		}
		return refuted
	}
	return more
}

// gapToValue reads up to and with the tag that opens a value.
func (g *pairCall) gapToValue(c byte, out *joiner) verdict {
	if len(g.head) == 0 && isBlank(c) {
		return more
	}
	g.head = append(g.head, c)
	switch h := string(g.head); {
	case h == g.marks.value:
		g.keyed = false
		of := g.ts.of(g.tool).property(g.key)
		return g.startParam(g.key, of, of.types(), out)
	case !strings.HasPrefix(g.marks.value, h):
		return g.fail()
	}
	return more
}
