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

// notation is of calls in that form.
func (k pairMarks) notation(before, between, after string) *Notation {
	return tagNotation(before, k.open+"$name"+k.sep+"$[\n$]$args"+k.close, between, after,
		k.key+"$key"+k.keyClose+"$[\n$]"+k.value+"$value"+k.valueClose+"$[\n$]", append([]string{k.key, k.close}, k.outer...)...)
}

// pairCall is an xmlCall whose names stand between other marks.
type pairCall struct {
	xmlCall
	marks  pairMarks
	named  bool
	key    string // read; its value must follow
	keyed  bool
	mended bool // another tag stands where the first parameter's should
}

func newPairs(marks pairMarks) func(*toolset) callReader {
	syn := &xmlSyntax{param: marks.key, keyClose: marks.keyClose, valueOpen: marks.value, paramClose: marks.valueClose, callClose: marks.close, outer: marks.outer, open: marks.open}
	syn.tags = tagsOf(syn)
	return func(ts *toolset) callReader {
		g := &pairCall{xmlCall: xmlCall{xmlSyntax: syn, argWriter: argWriter{ts: ts}}, marks: marks}
		g.gotKey = func(name string) { g.state, g.key, g.keyed, g.head = xmlParam, name, true, g.head[:0] }
		return checked(ts, g)
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
		return g.readKey(c, out)
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
	ends := []string{"\n", g.marks.key, g.marks.close, g.marks.sep}
	if !g.ts.strict {
		ends = append(ends, g.marks.keyClose, g.marks.open)
	}
	for i, mark := range ends {
		name, ok := strings.CutSuffix(h, mark)
		if !ok || mark == "" {
			continue
		}
		key := ""
		if i == 4 {
			name, key = g.cutKey(name)
		}
		if g.tool = strings.TrimSpace(name); !g.ts.find(&g.tool) || i >= 4 && !g.ts.repair(RepairTag) {
			return refuted
		}
		g.named, g.state, g.head = true, xmlGap, g.head[:0]
		switch i {
		case 1:
			g.begin()
		case 2:
			return g.end(out)
		case 4:
			g.gotKey(key)
		case 5:
			g.begin()
			g.mended = true
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
		return g.nearKey(h[:i], h[i:])
	}
	return more
}

// nearKey takes a tag behind the name that is none of the form. It may be the first parameter's, misspelled.
func (g *pairCall) nearKey(name, tag string) verdict {
	switch {
	case g.ts.strict || strings.HasPrefix(tag, "</"):
	case g.opensKey(tag):
		if g.tool = strings.TrimSpace(name); g.ts.find(&g.tool) && g.ts.repair(RepairTag) {
			g.named, g.mended = true, true
			g.begin()
			return more
		}
	case nearlyBegins(bareTag(tag), g.tags.param):
		return more
	}
	return refuted
}

// cutKey parts a tool and its first parameter where the tag between them is missing: only where that can be done in one way.
func (g *pairCall) cutKey(h string) (tool, key string) {
	for i := range g.ts.tools {
		name := g.ts.tools[i].Name
		rest, ok := strings.CutPrefix(h, name)
		if rest = strings.TrimSpace(rest); !ok || !g.ts.declares(name, rest) {
			continue
		}
		if tool != "" {
			return "", ""
		}
		tool, key = name, rest
	}
	return tool, key
}

// readKey reads the name of a parameter, up to the tag behind it or to the one that opens the value.
func (g *pairCall) readKey(c byte, out *joiner) verdict {
	g.head = append(g.head, c)
	h := string(g.head)
	if key, ok := strings.CutSuffix(h, g.marks.keyClose); ok {
		key = strings.TrimSpace(key)
		if bare := strings.Trim(strings.TrimPrefix(key, g.marks.key), "<>/= \"'"); bare != key && g.mayFollow(bare) && g.ts.repair(RepairTag) {
			key = bare
		}
		if g.mended && !g.mayFollow(key) || strings.ContainsAny(key, "<>") && !g.ts.strict && !g.mayFollow(key) {
			return g.fail()
		}
		g.mended = false
		g.gotKey(key)
		return more
	}
	key, isEnd := strings.CutSuffix(h, g.marks.value)
	switch {
	case isEnd && !g.ts.strict:
		key, tag, _ := strings.Cut(key, "<")
		key = strings.TrimSpace(key)
		if tag = strings.TrimSpace(tag); !g.mayFollow(key) || tag != "" && !nearly(bareTag("<"+tag), bareTag(g.marks.keyClose)) || !g.ts.repair(RepairTag) {
			return g.fail()
		}
		g.gotKey(key)
		return g.beginValue(out)
	case len(g.head) > maxName:
		return g.fail()
	}
	return more
}

func (g *pairCall) beginValue(out *joiner) verdict {
	g.keyed = false
	of := g.ts.of(g.tool).property(g.key)
	return g.startParam(g.key, of, of.types(), out)
}

// gapToValue reads up to and with the tag that opens a value, which may be missing.
func (g *pairCall) gapToValue(c byte, out *joiner) verdict {
	if len(g.head) == 0 && isBlank(c) {
		return more
	}
	g.head = append(g.head, c)
	h := string(g.head)
	if h == g.marks.value {
		return g.beginValue(out)
	}
	if strings.HasPrefix(g.marks.value, h) {
		return more
	}
	tag, complete := g.tagAt(h)
	b := bareTag(tag)
	switch isNear := nearlyBegins(b, bareTag(g.marks.value)) && h[0] == '<'; {
	case g.ts.strict:
		return g.fail()
	case isNear && !complete:
		return more
	case !g.mayFollow(g.key) || !g.ts.repair(RepairTag):
		return g.fail()
	case !isNear || !nearly(b, bareTag(g.marks.value)) || strings.HasPrefix(h, "</"):
		tag = ""
	}
	if v := g.beginValue(out); v != more {
		return v
	}
	g.ts.unread = []byte(h[len(tag):])
	return reread
}
