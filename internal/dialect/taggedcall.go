package dialect

import "strings"

const (
	callOpen     = "<tool_call>"
	callClose    = "</tool_call>"
	functionOpen = "<function="
	functionTag  = "<function>"
)

var (
	taggedOpeners = []opener{{tag: callOpen, call: newTaggedCall}, {tag: functionOpen, call: newQwenXML}}
	taggedClosers = []string{callClose, "</function>"}
	taggedSyntax  = &syntax{openers: taggedOpeners, closers: taggedClosers}
	newQwenXML    = newXML(&xmlSyntax{param: "<parameter=", paramClose: "</parameter>", callClose: "</function>", outer: []string{callClose},
		before: callOpen, open: functionOpen, lines: true, trim: true})
)

// taggedCall looks at what follows the opening tag: a JSON object or list, XML parameters, or a Python list.
type taggedCall struct {
	ts   *toolset
	head []byte
	chosen
}

func newTaggedCall(ts *toolset) callReader { return &taggedCall{ts: ts} }

func (t *taggedCall) step(c byte, out *joiner) verdict {
	if t.callReader != nil {
		return t.callReader.step(c, out)
	}
	if len(t.head) == 0 {
		switch {
		case isBlank(c):
			return more
		case c == '{':
			t.callReader = newJSONCall(t.ts)
			return t.callReader.step(c, out)
		case c == '[':
			t.callReader = &bareList{ts: t.ts}
			return t.callReader.step(c, out)
		}
	}
	t.head = append(t.head, c)
	switch h := string(t.head); {
	case h == functionOpen:
		t.callReader = newQwenXML(t.ts)
	case h == functionTag && !t.ts.strict:
		t.callReader = newNamedJSON(t.ts)
	case !strings.HasPrefix(functionOpen, h):
		return t.nearly(c, out)
	}
	return more
}

// nearly takes the tag of a function with blanks or capitals in it, or without its "=".
func (t *taggedCall) nearly(c byte, out *joiner) verdict {
	h := strings.ToLower(string(t.head))
	bare := tagBlanks.Replace(h)
	named, isName := strings.CutPrefix(bare, functionOpen[:len(functionOpen)-1])
	isName = isName && named == string(c|0x20) && isNameByte(c) && isBlank(h[len(h)-2])
	switch {
	case len(h)-len(bare) > maxTagBlanks:
		return refuted
	case (bare == functionOpen || isName) && t.ts.repair(RepairTag):
		t.callReader = newQwenXML(t.ts)
		if isName {
			return t.callReader.step(c, out)
		}
	case !strings.HasPrefix(functionOpen, bare) || t.ts.strict:
		return refuted
	}
	return more
}

// bareCall begins a call that no tag announces: JSON or Python. Text that begins like one is held back until a tool's
// name and its arguments are there.
func bareCall(c byte, ts *toolset) callReader {
	switch c {
	case '{':
		return newBareList(ts)
	case '[':
		return &bareList{ts: ts}
	}
	return nil
}

func newBareList(ts *toolset) callReader { return &listCall{ts: ts, bare: true} }

// bareList is a list of calls whose first byte after "[" tells JSON from Python.
type bareList struct {
	ts    *toolset
	begun bool
	chosen
}

func (b *bareList) step(c byte, out *joiner) verdict {
	switch {
	case b.callReader != nil:
		return b.callReader.step(c, out)
	case !b.begun:
		b.begun = true
		return more
	case isBlank(c):
		return more
	case c == '{':
		b.callReader = newBareList(b.ts)
	default:
		b.callReader = newPyList(b.ts)
	}
	b.callReader.step('[', out)
	return b.callReader.step(c, out)
}
