package dialect

import (
	"slices"
	"strings"
)

// A call leaks where a model leaves the form of its family: JSON alone, in a fence, or in tags of others. Examples of calls look
// the same, so it is one only if nothing but calls is there, from where the answer begins, or from a tag at the beginning of a
// line, to the end of the reply; if every name is that of a tool, and all arguments fit.

// leakTags are the tags; <|tool_call|> has no form of its own.
var leakTags = []string{"<tools>", "<tool>", "<tool_call>", "<tool_calls>", "<tool_use>", "<tool_code>", "<function>", "<function_call>", "<function_calls>",
	"<|tool_call|>", "<|tool_call>"}

// leakClosers close them.
var leakClosers = append(func() (ends []string) {
	for _, t := range leakTags[:9] {
		ends = append(ends, "</"+t[1:])
	}
	return ends
}(), "<|/tool_call|>", "</|tool_call|>", "<|tool_call_end|>", "<tool_call|>")

// fenceWords may stand behind the backticks that open a fence.
var fenceWords = []string{"", "json", "jsonc", "json5", "xml", "text", "tool", "tool_call", "tool_calls", "tool_code", "function_call"}

const fence = "```"

// maxAhead bounds what is held before the name of a tool is known.
const maxAhead = 256

// leaking has calls looked for that leak.
func (s *syntax) leaking() *syntax {
	s.leakEnds = slices.Concat(leakClosers, s.closers, s.drop)
	for _, o := range s.openers {
		if strings.HasPrefix(o.tag, fence) {
			s.fences = append(s.fences, o.tag)
		}
	}
	return s
}

// leakCall reads the calls of a reply to its end.
type leakCall struct {
	ts *toolset
	*syntax
	kept joiner // the calls

	read  int    // bytes
	solid int    // of those, up to the end of the last complete call
	any   bool   // one is complete
	comma bool   // another must follow
	mark  []byte // may be one
	word  []byte // behind the backticks, which are in it
	item  *headedCall

	inFence, inTag, inList bool
	filled                 bool // the fence has a call in it
}

// newLeak reads on behind a tag, or where the answer begins.
func (p *tagged) newLeak(behindTag bool) callReader {
	return &leakCall{ts: &p.tools, syntax: p.syntax, inTag: behindTag}
}

func (l *leakCall) started() bool { return false } // nothing is certain before the reply ends

func (l *leakCall) step(c byte, out *joiner) verdict {
	if l.read++; l.read > maxAhead && !l.any && (l.item == nil || !l.item.call.named) {
		return refuted
	}
	if l.item != nil {
		return l.inItem(c)
	}
	return l.between(c)
}

func (l *leakCall) finish(out *joiner) verdict {
	if l.item != nil {
		if l.item.finish(&l.kept) != ended || l.ts.takeUnread() != nil {
			return refuted
		}
		l.any, l.comma, l.filled, l.solid = true, false, true, l.read
	}
	if !l.any || l.comma || len(l.mark) > 0 || l.word != nil || l.inFence && !l.filled || l.ts.cut {
		return refuted
	}
	l.kept.moveTo(out)
	return ended
}

func (l *leakCall) inItem(c byte) verdict {
	v := l.item.step(c, &l.kept)
	if v == more {
		return more
	}
	behind := l.ts.takeUnread()
	if behind == nil && v == endedBefore {
		behind = []byte{c}
	}
	if v == ended || v == endedBefore || v == unfit {
		l.solid = l.read - len(behind)
	}
	if v != ended && v != endedBefore {
		return refuted
	}
	l.item, l.any, l.comma, l.filled = nil, true, false, true
	return l.ts.stepAgain(behind, l.between)
}

// between takes what stands around calls.
func (l *leakCall) between(c byte) verdict {
	if l.word != nil {
		if c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' {
			if l.word = append(l.word, c); len(l.word) > len(fence)+16 {
				return refuted
			}
			return more
		}
		if !slices.Contains(fenceWords, strings.ToLower(string(l.word[len(fence):]))) || slices.Contains(l.fences, string(l.word)) {
			return refuted
		}
		l.word, l.inFence, l.filled = nil, true, false
	}
	if len(l.mark) == 0 {
		switch {
		case isBlank(c):
			return more
		case c == '{':
			l.item = newBare(l.ts, nameKeys, true)
			return l.inItem(c)
		case c == '[' && !l.inList && !l.comma, c == ']' && l.inList && !l.comma:
			l.inList = c == '['
			return more
		case (c == ',' || c == ';') && l.any && !l.comma:
			l.comma = true
			return more
		}
	}
	l.mark = append(l.mark, c)
	whole, partial := "", false
	try := func(m string) {
		if strings.HasPrefix(m, string(l.mark)) {
			partial = true
			if len(m) == len(l.mark) {
				whole = m
			}
		}
	}
	try(fence)
	if !l.inTag {
		for _, t := range leakTags {
			try(t)
		}
	}
	if l.any {
		for _, t := range l.leakEnds {
			try(t)
		}
	}
	switch {
	case whole == fence && !l.inFence:
		l.word, l.mark = []byte(fence), nil
	case whole == fence && !l.filled:
		return refuted
	case whole == fence:
		l.inFence, l.mark = false, nil
	case whole != "":
		l.inTag, l.mark = slices.Contains(leakTags, whole), nil
	case !partial:
		return refuted
	}
	return more
}

// orJSON is for a mark behind which no JSON stands in the family's own form: a call in JSON is there all the same.
func orJSON(call func(*toolset) callReader) func(*toolset) callReader {
	return newByFirst(func(c byte, ts *toolset) callReader {
		if c == '{' && !ts.strict {
			return &checkedCall{callReader: &jsonCall{tools: ts}, ts: ts, leaked: true}
		}
		return call(ts)
	})
}

// newNamedJSON reads a call whose name stands in a tag before its arguments: f</function>{…}. No family writes it.
func newNamedJSON(ts *toolset) callReader {
	return &checkedCall{callReader: &headCall{ts: ts, name: func(head string) string {
		name, rest, ok := strings.Cut(head, "</function>")
		if !ok || strings.TrimSpace(rest) != "" {
			return ""
		}
		return strings.TrimSpace(name)
	}}, ts: ts, leaked: true}
}

// headedCall is around a call that no mark announces, and looks at how it begins: text must not wait longer than it may be one.
type headedCall struct {
	callReader
	call  *jsonCall
	keys  []string // that may be the first
	read  int      // bytes
	state headState
	text  []byte // of the key, or of the name, so far
}

type headState uint8

const (
	headBrace headState = iota
	headQuote
	headKey
	headColon
	headNameQuote
	headName
	headOver
)

// newBare reads a call without marks, which is held to its end if it leaked.
func newBare(ts *toolset, keys []string, leaked bool) *headedCall {
	call := &jsonCall{tools: ts, bare: true}
	return &headedCall{callReader: &checkedCall{callReader: call, ts: ts, leaked: leaked}, call: call, keys: keys}
}

func (h *headedCall) step(c byte, out *joiner) verdict {
	if h.read++; h.state != headOver && !h.look(c) || h.read > maxAhead && !h.call.named {
		return refuted
	}
	return h.callReader.step(c, out)
}

// look tells whether it may still be a call.
func (h *headedCall) look(c byte) bool {
	isQuote := c == '"' || c == '\''
	switch h.state {
	case headKey, headName:
		if !isQuote {
			h.text = append(h.text, c)
		}
	default:
		if isBlank(c) {
			return true
		}
	}
	switch {
	case h.state == headKey && !isQuote:
		return slices.ContainsFunc(h.keys, func(k string) bool { return strings.HasPrefix(k, string(h.text)) })
	case h.state == headName && !isQuote:
		return slices.Contains(h.text, '\\') || h.call.tools.mayMean(string(h.text))
	case h.state == headKey && !slices.Contains(nameKeys, string(h.text)):
		h.state = headOver
		return slices.Contains(h.keys, string(h.text))
	}
	h.state++
	switch h.state {
	case headQuote:
		return c == '{'
	case headKey, headName:
		h.text = h.text[:0]
		return isQuote
	case headNameQuote:
		return c == ':'
	}
	return true
}
