package dialect

import "strings"

// glm is the format of GLM 4.5 to 4.7, Laguna, Ling 3 and others that took it over:
//
//	<tool_call>f⏎<arg_key>p</arg_key>⏎<arg_value>v</arg_value>⏎</tool_call>
//
// 4.7 writes no newlines. Values that are not strings are JSON.
var glm = tagFamily("glm47", &syntax{
	open: thinkOpen, close: thinkClose,
	openers: []opener{{tag: callOpen, call: newGLM(glmMarks)}},
	closers: []string{callClose},
	drop:    []string{"<|begin_of_box|>", "<|end_of_box|>"},
}, func(tool string) string { return callOpen + tool },
	func(e Evidence) bool { return e.mentions("<arg_key>") || e.token("<arg_key>", "</arg_key>") }, glmMarks.all()...)

// longcat is the same with marks of its own; JSON between the outer ones is read too.
var longcat = tagFamily("longcat", &syntax{
	open: "<longcat_think>", close: "</longcat_think>",
	openers: []opener{{tag: "<longcat_tool_call>", call: func(ts *toolset) callReader { return &jsonOr{ts: ts, other: newGLM(longcatMarks)} }}},
	closers: []string{longcatMarks.close},
}, func(tool string) string { return "<longcat_tool_call>" + tool },
	func(e Evidence) bool {
		return e.mentions("<longcat_tool_call>") || e.token("<longcat_tool_call>", "</longcat_tool_call>")
	}, longcatMarks.all()...)

// hunyuan is the format of Hunyuan 3: GLM's in marks of its own, with one behind the name; JSON may stand there.
//
//	<tool_calls:opensource>⏎<tool_call:opensource>f<tool_sep:opensource>⏎<arg_key:opensource>p</arg_key:opensource>⏎…
var hunyuan = tagFamily("hunyuan", &syntax{
	open: "<think:opensource>", close: "</think:opensource>",
	openers:  []opener{{tag: "<tool_call:opensource>", call: newGLM(hunyuanMarks)}},
	sections: []string{"<tool_calls:opensource>"},
	closers:  []string{hunyuanMarks.close, "<end_of_tool_call:opensource>", "</tool_calls:opensource>"},
}, func(tool string) string {
	return "<tool_calls:opensource>\n<tool_call:opensource>" + suffixed(tool, hunyuanMarks.sep+"\n")
}, func(e Evidence) bool {
	return e.mentions("<tool_sep{}>") || e.mentions(hunyuanMarks.sep) || e.token(hunyuanMarks.sep)
}, hunyuanMarks.all()...)

// keyMarks are the marks of a form with keys and values side by side.
type keyMarks struct {
	key, keyClose, value, valueClose string
	sep                              string // ends the name; "" if only the marks after it do
	close                            string // of the call
}

func (k keyMarks) all() []string {
	all := []string{k.key, k.keyClose, k.value, k.valueClose}
	if k.sep != "" {
		all = append(all, k.sep)
	}
	return all
}

// suffixedMarks are GLM's with something before and behind the names.
func suffixedMarks(before, behind string) keyMarks {
	return keyMarks{key: "<" + before + "arg_key" + behind + ">", keyClose: "</" + before + "arg_key" + behind + ">",
		value: "<" + before + "arg_value" + behind + ">", valueClose: "</" + before + "arg_value" + behind + ">",
		close: "</" + before + "tool_call" + behind + ">"}
}

var (
	glmMarks     = suffixedMarks("", "")
	longcatMarks = suffixedMarks("longcat_", "")
	hunyuanMarks = func() keyMarks {
		k := suffixedMarks("", ":opensource")
		k.sep = "<tool_sep:opensource>"
		return k
	}()
)

// glmCall is an xmlCall whose names stand between other marks.
type glmCall struct {
	xmlCall
	marks keyMarks
	named bool
	key   string // read; its value must follow
	keyed bool
}

func newGLM(marks keyMarks) func(*toolset) callReader {
	syn := &xmlSyntax{param: marks.key, paramClose: marks.valueClose, callClose: marks.close}
	return func(ts *toolset) callReader {
		return &glmCall{xmlCall: xmlCall{xmlSyntax: syn, argWriter: argWriter{ts: ts}}, marks: marks}
	}
}

func (g *glmCall) finish(out *joiner) verdict {
	if !g.named {
		return refuted
	}
	return g.xmlCall.finish(out)
}

func (g *glmCall) step(c byte, out *joiner) verdict {
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
func (g *glmCall) name(c byte, out *joiner) verdict {
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
		if g.tool = strings.TrimSpace(name); !g.ts.has(g.tool) {
			g.tool = strings.TrimPrefix(g.tool, "functions.")
		}
		if !g.ts.has(g.tool) {
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
func (g *glmCall) gapToValue(c byte, out *joiner) verdict {
	if len(g.head) == 0 && isBlank(c) {
		return more
	}
	g.head = append(g.head, c)
	switch h := string(g.head); {
	case h == g.marks.value:
		g.keyed = false
		return g.startParam(g.key, g.ts.types(g.tool, g.key), out)
	case !strings.HasPrefix(g.marks.value, h):
		return g.fail()
	}
	return more
}

// jsonOr reads JSON, or what other reads if the call does not begin with a brace.
type jsonOr struct {
	ts    *toolset
	other func(*toolset) callReader
	chosen
}

func (j *jsonOr) step(c byte, out *joiner) verdict {
	if j.callReader == nil {
		switch {
		case isBlank(c):
			return more
		case c == '{':
			j.callReader = newJSONCall(j.ts)
		default:
			j.callReader = j.other(j.ts)
		}
	}
	return j.callReader.step(c, out)
}
