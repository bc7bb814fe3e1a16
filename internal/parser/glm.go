package parser

import "strings"

// glm is the format of GLM 4.5 to 4.7 and others that took it over:
//
//	<tool_call>f⏎<arg_key>p</arg_key>⏎<arg_value>v</arg_value>⏎</tool_call>
//
// 4.7 writes no newlines. Values that are not strings are JSON.
var glm = tagFamily("glm47", &syntax{
	open: thinkOpen, close: thinkClose,
	openers: []opener{{tag: callOpen, call: newGLM}},
	closers: []string{callClose},
	drop:    []string{"<|begin_of_box|>", "<|end_of_box|>"},
}, func(tool string) string { return callOpen + tool },
	func(e Evidence) bool { return e.mentions("<arg_key>") || e.token(argKey, "</arg_key>") })

const argKey = "<arg_key>"

var glmXML = xmlSyntax{param: argKey, paramClose: "</arg_value>", callClose: callClose}

// glmCall is an xmlCall whose names stand between other marks.
type glmCall struct {
	xmlCall
	named bool
	key   string // read; its value must follow
	keyed bool
}

func newGLM(ts *toolset) callReader {
	return &glmCall{xmlCall: xmlCall{xmlSyntax: &glmXML, ts: ts}}
}

func (g *glmCall) step(c byte, out *joiner) verdict {
	switch {
	case !g.named:
		return g.name(c, out)
	case g.state == xmlParam && !g.keyed:
		g.head = append(g.head, c)
		if key, ok := strings.CutSuffix(string(g.head), "</arg_key>"); ok {
			g.key, g.keyed, g.head = strings.TrimSpace(key), true, nil
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
	for _, mark := range []string{"\n", argKey, callClose} {
		name, ok := strings.CutSuffix(h, mark)
		if !ok {
			continue
		}
		g.tool = strings.TrimSpace(name)
		if !g.ts.has(g.tool) {
			return refuted
		}
		g.named, g.state, g.head = true, xmlGap, nil
		switch mark {
		case argKey:
			g.begin()
		case callClose:
			return g.end(out)
		}
		return more
	}
	if i := strings.IndexByte(h, '<'); len(h) > maxName || i >= 0 && !strings.HasPrefix(argKey, h[i:]) && !strings.HasPrefix(callClose, h[i:]) {
		return refuted
	}
	return more
}

// gapToValue reads up to and with the tag that opens a value.
func (g *glmCall) gapToValue(c byte, out *joiner) verdict {
	const tag = "<arg_value>"
	if len(g.head) == 0 && isBlank(c) {
		return more
	}
	g.head = append(g.head, c)
	switch h := string(g.head); {
	case h == tag:
		g.keyed = false
		g.startParam(g.key, g.ts.types(g.tool, g.key), out)
	case !strings.HasPrefix(tag, h):
		return g.fail()
	}
	return more
}
