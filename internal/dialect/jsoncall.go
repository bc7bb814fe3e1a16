package dialect

import (
	"encoding/json"
	"slices"
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
	id      string      // not told yet
	hasID   bool        // there was one: others do not count
	value   []byte      // the member's text: of name, of id, of arguments before the name, of arguments as a string
	early   []byte      // arguments that wait for the name
	args    *argsReader // being read, straight out
	hasArgs bool
}

// callKeys are what stands in a call; one without a tag has no others.
var callKeys = append([]string{"arguments", "parameters", "type", "id", "tool_call_id"}, nameKeys...)

var nameKeys = []string{"name", "tool_name", "function"}

func newJSONCall(ts *toolset) callReader { return checked(ts, &jsonCall{tools: ts}) }

func (j *jsonCall) started() bool { return j.sent }

// finish takes a call whose last brace is missing.
func (j *jsonCall) finish(out *joiner) verdict {
	if j.named && j.hasArgs && j.args == nil && j.key == "" && !j.tools.cut && j.tools.repair(RepairUnclosed) {
		return j.end(out)
	}
	return j.fail()
}

func (j *jsonCall) step(c byte, out *joiner) verdict {
	if j.args != nil {
		v := j.args.step(c, out)
		if v == ended {
			j.json.skipValue()
			j.args, j.hasArgs, j.key = nil, true, ""
			return more
		}
		return v
	}
	if !j.begun {
		if isBlank(c) {
			return more
		}
		if c != '{' {
			return refuted
		}
		j.begun = true
	}
	if j.isArgs() && j.named && c == '{' && len(j.value) == 0 && j.json.state == wantValue {
		if j.hasArgs {
			return j.fail() // given twice
		}
		j.start(out)
		j.args = newArgs(j.tools, j.name)
		return j.args.step(c, out)
	}
	for {
		text, ev := j.json.step(c)
		switch {
		case ev == scanBad || j.json.mended && !j.tools.repair(RepairText):
			return j.fail()
		case ev == scanKey && len(j.json.stack) == 1:
			j.key, j.value = j.json.name(), j.value[:0]
			if j.bare && !slices.Contains(callKeys, j.key) { // an answer in JSON, which must not wait
				return j.fail()
			}
		case ev == scanDone:
			return j.end(out)
		case j.key != "" && !j.member(text, ev == scanEnd && len(j.json.stack) == 1):
			return j.fail()
		}
		if !j.json.again {
			return more
		}
	}
}

func (j *jsonCall) fail() verdict { return failed(j.sent) }

func (j *jsonCall) isArgs() bool { return j.key == "arguments" || j.key == "parameters" }

// member takes text of the value of a top-level member.
func (j *jsonCall) member(text string, valueEnds bool) bool {
	isID := j.key == "id" || j.key == "tool_call_id"
	if !j.isArgs() && !isID && (!slices.Contains(nameKeys, j.key) || j.named && j.key == "function") {
		if valueEnds {
			j.key = ""
		}
		return true
	}
	if j.isArgs() && j.hasArgs {
		return false // given twice
	}
	if len(j.value) == 0 {
		text = strings.TrimLeft(text, ": \t\r\n")
	}
	j.value = append(j.value, text...)
	if isID {
		j.value = j.value[:min(len(j.value), maxName)]
	}
	if !valueEnds {
		return true
	}
	isArgs := j.isArgs()
	j.key = ""
	if isID {
		var id string
		if !j.hasID && json.Unmarshal(j.value, &id) == nil && id != "" {
			j.id, j.hasID = id, true
		}
		return true
	}
	if !isArgs {
		return j.setName()
	}
	j.hasArgs = true
	return j.setArgs(string(j.value))
}

func (j *jsonCall) setName() bool {
	if j.named || json.Unmarshal(j.value, &j.name) != nil || !j.tools.find(&j.name) {
		return false
	}
	j.named = true
	return true
}

// setArgs takes arguments that could not go straight out: before the name, in a string, or none.
func (j *jsonCall) setArgs(s string) bool {
	var inner string
	if strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &inner) == nil {
		if s = strings.TrimSpace(inner); !j.tools.repair(RepairEncoded) {
			return false
		}
	}
	if s == "" || s == "null" {
		s = "{}"
	}
	j.early = []byte(s)
	return strings.HasPrefix(s, "{") && json.Valid(j.early)
}

func (j *jsonCall) start(out *joiner) {
	out.call(ToolStart, j.name, j.id)
	j.sent, j.id = true, ""
}

// end is the closing brace of the call.
func (j *jsonCall) end(out *joiner) verdict {
	if !j.named || j.bare && !j.hasArgs {
		return j.fail()
	}
	if j.sent {
		out.call(ToolEnd, "", j.id)
		return ended
	}
	j.start(out)
	if !j.hasArgs {
		j.early = []byte("{}")
	}
	args := newArgs(j.tools, j.name)
	for _, c := range j.early {
		args.step(c, out)
	}
	out.add(ToolEnd, "")
	return ended
}

// listCall reads calls written as JSON objects: one, several in a row, or an array of them. What stands among calls and
// is none is given back as text.
type listCall struct {
	ts    *toolset
	bare  bool
	array bool
	item  func() callReader // reads one
	obj   callReader        // being read
	raw   []byte            // of obj, while it can be refuted
	lead  []byte            // objects before the first call
	any   bool              // one was complete
	comma bool              // another must follow or may follow
	skip  *jsonScanner      // reads an object that is no call, to its end
	sent  bool
}

func newListCall(ts *toolset) callReader { return &listCall{ts: ts} }

func (l *listCall) started() bool { return l.sent }

func (l *listCall) rest() []byte {
	if !l.sent {
		return nil
	}
	return l.raw
}

func (l *listCall) finish(out *joiner) verdict {
	if l.obj != nil {
		v := l.obj.finish(out)
		if l.obj.started() {
			l.sent, l.raw = true, nil
		}
		if v == ended {
			return ended
		}
	} else if l.any && l.skip == nil {
		return ended
	}
	return failed(l.sent)
}

func (l *listCall) step(c byte, out *joiner) verdict {
	switch {
	case l.obj != nil:
		return l.inItem(c, out)
	case l.skip != nil:
		l.raw = append(l.raw, c)
		return l.skipStep(c, out)
	case isBlank(c):
		return more
	case c == '[' && !l.array && !l.any:
		l.array = true
		return more
	case c == '{': // with or without a comma
		switch {
		case l.item != nil:
			l.obj = checked(l.ts, l.item())
		case l.bare:
			l.obj = newBare(l.ts, callKeys, false)
		default:
			l.obj = newJSONCall(l.ts)
		}
		return l.inItem(c, out)
	case c == ']' && l.array && len(l.lead) > 0:
		return refuted
	case c == ']' && l.array && l.any:
		return ended
	case c == ']' && l.array && !l.bare:
		return emptied
	case c == ',' && l.array && (l.any || len(l.lead) > 0) && !l.comma:
		l.comma = true
		return more
	case l.any && !l.array:
		return endedBefore
	case l.sent:
		l.raw = append(l.raw, c)
		return broken
	}
	return refuted
}

func (l *listCall) inItem(c byte, out *joiner) verdict {
	if !l.obj.started() {
		l.raw = append(l.raw, c)
	}
	v := l.itemStep(c, out)
	switch {
	case v == ended:
		l.obj, l.any, l.comma = nil, true, false
		return more
	case (v == refuted || v == unfit) && (l.sent || l.array && !l.bare):
		l.skip, l.obj = &jsonScanner{}, nil
		v = more
		for _, c := range l.raw {
			v = l.skipStep(c, out)
		}
	case v == more && l.sent && len(l.raw) > maxHeld:
		return broken
	}
	return v
}

// itemStep reads on in an object. When it turns out to be the first call, what stands before it is text.
func (l *listCall) itemStep(c byte, out *joiner) verdict {
	if l.sent || len(l.lead) == 0 {
		v := l.obj.step(c, out)
		if l.obj.started() {
			l.sent, l.raw = true, nil
		}
		return v
	}
	var first joiner
	v := l.obj.step(c, &first)
	if l.obj.started() {
		out.add(Text, string(l.lead))
		l.sent, l.raw, l.lead = true, nil, nil
		for _, p := range first.take() {
			if p.Kind == ToolStart || p.Kind == ToolEnd {
				out.call(p.Kind, p.Text, p.ID)
				continue
			}
			out.add(p.Kind, p.Text)
		}
	}
	return v
}

// skipStep reads on in an object among calls that is none. What is not even an object ends the list.
func (l *listCall) skipStep(c byte, out *joiner) verdict {
	_, ev := l.skip.step(c)
	for l.skip.again {
		_, ev = l.skip.step(c)
	}
	switch {
	case ev == scanDone:
		if l.sent {
			out.add(Text, string(l.raw))
		} else {
			l.lead = append(l.lead, l.raw...)
		}
		l.skip, l.raw, l.comma = nil, nil, false
	case ev == scanBad || l.sent && len(l.raw) > maxHeld:
		return failed(l.sent)
	}
	return more
}

// keyedCall reads a call written as a JSON object whose only key is the name of the tool: {"f": {…}}.
type keyedCall struct {
	argWriter
	json jsonScanner
	args *argsReader // being read
	done bool        // the arguments are complete
}

func (k *keyedCall) started() bool { return k.sent }

func (k *keyedCall) finish(out *joiner) verdict {
	if k.done && !k.ts.cut && k.ts.repair(RepairUnclosed) {
		out.add(ToolEnd, "")
		return ended
	}
	return k.fail()
}

func (k *keyedCall) step(c byte, out *joiner) verdict {
	if k.args != nil {
		v := k.args.step(c, out)
		if v == ended {
			k.json.skipValue()
			k.args, k.done = nil, true
			return more
		}
		return v
	}
	if c == '{' && k.json.state == wantValue && k.tool != "" {
		k.start(out)
		k.args = newArgs(k.ts, k.tool)
		return k.args.step(c, out)
	}
	switch _, ev := k.json.step(c); ev {
	case scanKey:
		if k.tool = k.json.name(); k.done || !k.ts.find(&k.tool) {
			return k.fail()
		}
	case scanBegin:
		if k.tool != "" { // arguments that are no object
			return k.fail()
		}
	case scanDone:
		if !k.done {
			return k.fail()
		}
		out.add(ToolEnd, "")
		return ended
	case scanBad:
		return k.fail()
	}
	return more
}

// headCall reads a call whose name stands before a JSON object of arguments, with markup of the family around it.
type headCall struct {
	ts      *toolset
	name    func(head string) string // takes the name out of what stands before the arguments; "" if it cannot be one
	id      func(head string) string // takes the id out of it; nil if there is none
	closers []string                 // that end a call without arguments
	notCall string                   // a head that opens text
	head    []byte
	args    *argsReader
	sent    bool
}

func (h *headCall) started() bool { return h.sent }

func (h *headCall) finish(*joiner) verdict { return failed(h.sent) }

func (h *headCall) step(c byte, out *joiner) verdict {
	if h.sent {
		return h.args.last(c, out)
	}
	if c == '{' {
		name := h.name(string(h.head))
		if !h.ts.find(&name) {
			return refuted
		}
		h.start(name, string(h.head), out)
		h.args = newArgs(h.ts, name)
		return h.args.last(c, out)
	}
	if h.head = append(h.head, c); len(h.head) > maxName {
		return refuted
	}
	if string(h.head) == h.notCall {
		return discarded
	}
	for _, t := range h.closers {
		if head, ok := strings.CutSuffix(string(h.head), t); ok {
			name := h.name(head)
			if !h.ts.find(&name) {
				return refuted
			}
			h.start(name, head, out)
			out.add(ToolArgs, "{}")
			out.add(ToolEnd, "")
			return ended
		}
	}
	return more
}

func (h *headCall) start(name, head string, out *joiner) {
	id := ""
	if h.id != nil {
		id = strings.TrimSpace(h.id(head))
	}
	out.call(ToolStart, name, id)
	h.sent = true
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
