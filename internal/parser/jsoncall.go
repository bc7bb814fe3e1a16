package parser

import (
	"encoding/json"
	"strings"
)

// jsonCall reads a call written as a JSON object with a name and arguments. Arguments go out as they come once the name
// is known.
type jsonCall struct {
	tools *toolset
	json  jsonScanner
	bare  bool // without a tag, so only a name and arguments together make a call
	begun bool // the object has begun
	sent  bool // ToolStart went out

	key     string // the member being read, at the top level
	name    string
	named   bool
	value   strings.Builder // the member's text: of name, of arguments before the name, of arguments as a string
	args    string          // arguments that wait for the name
	hasArgs bool
	stream  bool // arguments go straight out
}

func newJSONCall(ts *toolset) callReader { return &jsonCall{tools: ts} }

func (j *jsonCall) started() bool { return j.sent }

func (j *jsonCall) step(c byte, out *joiner) verdict {
	if !j.begun {
		if isBlank(c) {
			return more
		}
		if c != '{' {
			return refuted
		}
		j.begun = true
	}
	text, ev := j.json.step(c)
	switch ev {
	case scanBad:
		return j.fail()
	case scanKey:
		j.key = j.json.lastKey
		j.value.Reset()
	}
	if ev != scanKey && j.key != "" && !j.member(text, c, ev, out) {
		return j.fail()
	}
	if ev == scanDone {
		return j.end(out)
	}
	return more
}

func (j *jsonCall) fail() verdict {
	if j.sent {
		return broken
	}
	return refuted
}

// member takes text of the value of a top-level member; ev scanValue marks its end.
func (j *jsonCall) member(text string, c byte, ev scanEvent, out *joiner) bool {
	isArgs := j.key == "arguments" || j.key == "parameters"
	if !isArgs && j.key != "name" && j.key != "tool_name" {
		if ev == scanValue || ev == scanDone {
			j.key = ""
		}
		return true
	}
	if isArgs && j.hasArgs {
		return false // given twice
	}
	if j.value.Len() == 0 && !j.stream {
		text = strings.TrimLeft(text, ": \t\r\n")
		if isArgs && j.named && strings.HasPrefix(text, "{") {
			j.start(out)
			j.stream = true
		}
	}
	valueEnds := ev == scanValue || ev == scanDone
	if valueEnds && j.json.after { // the byte that ended a literal belongs to what follows
		text = strings.TrimSuffix(text, oneByte[c])
	}
	if j.stream {
		out.add(ToolArgs, text)
	} else {
		j.value.WriteString(text)
	}
	if !valueEnds {
		return true
	}
	j.key = ""
	if !isArgs {
		return j.setName()
	}
	j.hasArgs = true
	if j.stream {
		j.stream = false
		return true
	}
	var ok bool
	j.args, ok = objectText(j.value.String())
	return ok
}

func (j *jsonCall) setName() bool {
	if j.named || json.Unmarshal([]byte(j.value.String()), &j.name) != nil || !j.tools.has(j.name) {
		return false
	}
	j.named = true
	return true
}

// objectText accepts the forms in which arguments are written: an object, a string with an object in it, or nothing.
func objectText(s string) (string, bool) {
	var inner string
	if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &inner) == nil {
		s = strings.TrimSpace(inner)
	}
	if s == "" || s == "null" {
		return "{}", true
	}
	return s, strings.HasPrefix(s, "{") && json.Valid([]byte(s))
}

func (j *jsonCall) start(out *joiner) {
	out.add(ToolStart, j.name)
	j.sent = true
}

// end is the closing brace of the call.
func (j *jsonCall) end(out *joiner) verdict {
	if !j.named || j.bare && !j.hasArgs {
		return j.fail()
	}
	if !j.sent {
		j.start(out)
		if !j.hasArgs {
			j.args = "{}"
		}
		out.add(ToolArgs, j.args)
	}
	out.add(ToolEnd, "")
	return ended
}

// listCall reads calls written as JSON objects: one, several in a row, or an array of them.
type listCall struct {
	ts    *toolset
	bare  bool
	array bool
	obj   *jsonCall // being read
	any   bool      // one was complete
	comma bool      // another must follow or may follow
	sent  bool
}

func newListCall(ts *toolset) callReader { return &listCall{ts: ts} }

func (l *listCall) started() bool { return l.sent }

func (l *listCall) finish(*joiner) verdict {
	switch {
	case l.obj == nil && l.any:
		return ended
	case l.sent:
		return broken
	}
	return refuted
}

func (l *listCall) step(c byte, out *joiner) verdict {
	if l.obj != nil {
		v := l.obj.step(c, out)
		l.sent = l.sent || l.obj.sent
		switch {
		case v == ended:
			l.obj, l.any, l.comma = nil, true, false
			return more
		case v == refuted && l.sent:
			return broken
		}
		return v
	}
	switch {
	case isBlank(c):
		return more
	case c == '[' && !l.array && !l.any:
		l.array = true
		return more
	case c == '{' && (!l.any || l.comma || !l.array):
		l.obj = &jsonCall{tools: l.ts, bare: l.bare}
		l.obj.step(c, out)
		return more
	case c == ']' && l.array && l.any:
		return ended
	case c == ']' && l.array && !l.bare:
		return discarded // an empty list calls nothing
	case c == ',' && l.array && l.any && !l.comma:
		l.comma = true
		return more
	case l.any && !l.array:
		return endedBefore
	case l.sent:
		return broken
	}
	return refuted
}

// headCall reads a call whose name stands before a JSON object of arguments, with markup of the family around it.
type headCall struct {
	ts      *toolset
	name    func(head string) string // takes the name out of what stands before the arguments; "" if it cannot be one
	closers []string                 // that end a call without arguments
	none    string                   // a head that opens text, not a call
	head    []byte
	json    jsonScanner
	sent    bool
}

func (h *headCall) started() bool { return h.sent }

func (h *headCall) finish(*joiner) verdict {
	if h.sent {
		return broken
	}
	return refuted
}

func (h *headCall) step(c byte, out *joiner) verdict {
	if h.sent {
		return h.args(c, out)
	}
	if c == '{' {
		name := h.name(string(h.head))
		if !h.ts.has(name) {
			return refuted
		}
		out.add(ToolStart, name)
		h.sent = true
		return h.args(c, out)
	}
	if h.head = append(h.head, c); len(h.head) > maxName {
		return refuted
	}
	if string(h.head) == h.none {
		return discarded
	}
	for _, t := range h.closers {
		if head, ok := strings.CutSuffix(string(h.head), t); ok {
			name := h.name(head)
			if !h.ts.has(name) {
				return refuted
			}
			h.sent = true
			out.add(ToolStart, name)
			out.add(ToolArgs, "{}")
			out.add(ToolEnd, "")
			return ended
		}
	}
	return more
}

func (h *headCall) args(c byte, out *joiner) verdict {
	text, ev := h.json.step(c)
	switch ev {
	case scanBad:
		return broken
	case scanDone:
		out.add(ToolArgs, text)
		out.add(ToolEnd, "")
		return ended
	}
	out.add(ToolArgs, text)
	return more
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
