package dialect

import (
	"bytes"
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

	level   int    // of the members that count: 2 inside of a member "function", else 1
	key     string // the member being read, at that level
	name    string
	named   bool
	id      string    // not told yet
	hasID   bool      // there was one: others do not count
	value   []byte    // the member's text: of name, of id, of arguments before the name, of arguments as a string
	early   []byte    // arguments that wait for the name
	args    *callArgs // straight out
	hasArgs bool      // they were read
	alien   bool      // there is a member that calls do not have
	over    bool      // the object is closed
	behind  []byte    // read after that, while it may go on
	more    bool      // it went on, though the call has ended
}

// callKeys are what stands in a call; one without a tag has no others.
var callKeys = append([]string{"arguments", "parameters", "type", "id", "tool_call_id"}, nameKeys...)

var nameKeys = []string{"name", "tool_name", "function"}

func newJSONCall(ts *toolset) callReader { return checked(ts, &jsonCall{tools: ts}) }

func (j *jsonCall) started() bool { return j.sent }

// finish takes a call that lacks closing brackets.
func (j *jsonCall) finish(out *joiner) verdict {
	switch {
	case j.more:
		return ended
	case j.over && j.tools.isCut() && j.doubted():
		return j.fail()
	case j.over:
		j.tools.unread = j.behind
	case j.tools.isCut() || j.args != nil && j.args.unsure > 0:
		return j.fail()
	case j.args != nil && !j.hasArgs:
		if isOver := j.args.over; !j.args.close(out) || isOver && !j.tools.repair(RepairUnclosed) {
			return j.fail()
		}
		j.hasArgs = true
	case j.key != "" || !j.json.closable() || !j.hasArgs && !(j.tools.marked && j.tools.hasAll(j.name, nil)) || !j.tools.repair(RepairUnclosed):
		return j.fail()
	}
	return j.end(out)
}

func (j *jsonCall) step(c byte, out *joiner) verdict {
	switch {
	case j.more:
		return j.skip(c)
	case j.over:
		return j.after(c, out)
	case j.args != nil && !j.hasArgs:
		v := j.args.step(c, out)
		if v != endedBefore {
			return v
		}
		j.json.skipValue()
		j.hasArgs, j.key = true, ""
		return j.tools.stepAgain(j.tools.unread, func(c byte) verdict { return j.step(c, out) })
	case !j.begun && isBlank(c):
		return more
	case !j.begun && c != '{':
		return refuted
	case j.key == "function" && c == '{' && !j.named && !j.bare && j.json.state == wantValue && j.json.comment == 0 && len(j.json.stack) == 1:
		if !j.tools.repair(RepairForm) {
			return refuted
		}
		j.level, j.key = 2, ""
	case j.isArgs() && j.named && c == '{' && len(j.value) == 0 && j.json.state == wantValue && j.json.comment == 0:
		if j.hasArgs {
			return j.fail() // given twice
		}
		j.start(out)
		j.args = newCallArgs(j.tools, j.name)
		j.args.others = callKeys
		return j.args.step(c, out)
	}
	if !j.begun {
		j.begun, j.level = true, 1
	}
	for {
		text, ev := j.json.step(c)
		switch {
		case j.json.mended != "" && (j.bare && !j.sent && j.json.mended != RepairText || !j.tools.repair(j.json.mended)):
			return j.fail()
		case ev == scanBad && j.named && j.json.closable():
			return stuck
		case ev == scanBad:
			return j.fail()
		case ev == scanKey && len(j.json.stack) == j.level:
			j.key, j.value = j.json.name(), j.value[:0]
			if j.key == "tool" && !j.bare && !j.named && j.tools.repair(RepairForm) {
				j.key = nameKeys[0]
			}
			if isKnown := slices.Contains(callKeys, j.key); j.bare && !isKnown { // an answer in JSON, which must not wait
				return j.fail()
			} else if !isKnown {
				j.alien = true
			}
		case ev == scanDone && (!j.named || !j.hasArgs && (j.bare || j.alien)):
			return j.fail()
		case ev == scanDone:
			j.over = true
		case ev == scanEnd && len(j.json.stack) < j.level:
			j.level = 1
		case j.key != "" && !j.member(text, ev == scanEnd && len(j.json.stack) == j.level):
			return j.fail()
		}
		if !j.json.again {
			return more
		}
	}
}

// after reads on behind the closing brace: members may follow one that came too early.
func (j *jsonCall) after(c byte, out *joiner) verdict {
	if len(j.behind) == 0 && isBlank(c) {
		return more
	}
	j.behind = append(j.behind, c)
	s, ok := strings.CutPrefix(string(j.behind), ",")
	s = strings.TrimLeft(s, blanks)
	switch {
	case c == '}' && j.doubted() && !j.tools.strict:
		return j.fail()
	case ok && s == "" && len(j.behind) < maxGap:
		return more
	}
	if v := j.end(out); v != ended {
		return v
	}
	if ok && s == `"` && j.tools.repair(RepairBracket) {
		j.more = true
		j.json.stack, j.json.state = append(j.json.stack, '{'), wantComma
		return j.tools.stepAgain(j.behind, j.skip)
	}
	j.tools.unread = j.behind
	return endedBefore
}

// skip reads members to which no call belongs.
func (j *jsonCall) skip(c byte) verdict {
	for {
		switch _, ev := j.json.step(c); {
		case ev == scanBad:
			return broken
		case ev == scanDone:
			return ended
		case !j.json.again:
			return more
		}
	}
}

// doubted tells whether the call may be another one if there is a brace too many in it.
func (j *jsonCall) doubted() bool { return j.args != nil && (j.args.extra || j.alien) }

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

// setArgs takes arguments that could not go straight out: before the name, in a string or a list, or none.
func (j *jsonCall) setArgs(s string) bool {
	var inner string
	var list []json.RawMessage
	switch {
	case strings.HasPrefix(s, `"`) && json.Unmarshal([]byte(s), &inner) == nil:
		if s = strings.TrimSpace(inner); !j.tools.repair(RepairEncoded) {
			return false
		}
	case strings.HasPrefix(s, "[") && json.Unmarshal([]byte(s), &list) == nil && len(list) < 2:
		if s = strings.Trim(s[1:len(s)-1], blanks); !j.tools.repair(RepairBracket) {
			return false
		}
	}
	if s == "" || s == "null" {
		s = "{}"
	}
	j.early = []byte(s)
	return strings.HasPrefix(s, "{")
}

func (j *jsonCall) start(out *joiner) {
	out.call(ToolStart, j.name, j.id)
	j.sent, j.id = true, ""
}

// end gives out what of the call has waited.
func (j *jsonCall) end(out *joiner) verdict {
	if !j.named || j.bare && !j.hasArgs {
		return j.fail()
	}
	if !j.sent {
		args, ok := j.earlyArgs()
		if !ok {
			return refuted
		}
		j.start(out)
		out.add(ToolArgs, args)
	}
	out.add(ToolArgs, "}")
	out.call(ToolEnd, "", j.id)
	return ended
}

// earlyArgs reads arguments that are there as a whole, up to their closing brace.
func (j *jsonCall) earlyArgs() (string, bool) {
	if !j.hasArgs {
		return "{", true
	}
	var to joiner
	args := newCallArgs(j.tools, j.name)
	for i, c := range j.early {
		if args.over || args.step(c, &to) != more { // what is left may be brackets that do not match
			if strings.Trim(string(j.early[i:]), "}]"+blanks) != "" || args.over && !j.tools.repair(RepairBracket) {
				return "", false
			}
			break
		}
	}
	j.tools.marked = true // the string has ended
	ok := args.close(&to)
	j.tools.marked = false
	text := ""
	for _, p := range to.take() {
		text += p.Text
	}
	return text, ok
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
	case c == '}' && l.any && !l.comma && l.ts.repair(RepairBracket):
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
	if v == stuck && (c == '{' || c == ';') && l.obj.started() && l.ts.finishAt(l.obj, out) == ended { // the next call
		v = endedBefore
	}
	switch {
	case v == ended:
		l.obj, l.any, l.comma = nil, true, false
		return more
	case v == endedBefore:
		l.obj, l.any, l.comma = nil, true, false
		again := l.ts.takeUnread()
		if again == nil {
			again = []byte{c}
		}
		return l.ts.stepAgain(again, func(c byte) verdict { return l.step(c, out) })
	case (v == refuted || v == unfit) && (l.sent || l.array && !l.bare):
		again := l.raw
		l.skip, l.obj, l.raw = &jsonScanner{}, nil, nil
		return l.ts.stepAgain(again, func(c byte) verdict { return l.step(c, out) })
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
	args *callArgs
	done bool // the arguments are complete
	over bool // the object is closed
}

func (k *keyedCall) started() bool { return k.sent }

func (k *keyedCall) finish(out *joiner) verdict {
	switch {
	case k.over && k.ts.isCut() && k.args.extra:
		return k.fail()
	case k.over:
	case k.ts.isCut() || k.args == nil || k.args.unsure > 0 || k.done && !k.json.closable():
		return k.fail()
	case !k.done && !k.args.over:
		if !k.args.close(out) {
			return k.fail()
		}
	case !k.done && !k.args.close(out) || !k.ts.repair(RepairUnclosed):
		return k.fail()
	}
	k.args.endCall("", out)
	return ended
}

func (k *keyedCall) step(c byte, out *joiner) verdict {
	switch {
	case k.over:
		if isBlank(c) {
			return more
		}
		if c == '}' && k.args.extra && !k.ts.strict {
			return broken
		}
		k.args.endCall("", out)
		return endedBefore
	case k.args != nil && !k.done:
		v := k.args.step(c, out)
		if v != endedBefore {
			return v
		}
		k.json.skipValue()
		k.done = true
		return k.ts.stepAgain(k.ts.unread, func(c byte) verdict { return k.step(c, out) })
	case c == '{' && k.json.state == wantValue && k.tool != "" && k.json.comment == 0:
		k.start(out)
		k.args = newCallArgs(k.ts, k.tool)
		return k.args.step(c, out)
	}
	for {
		_, ev := k.json.step(c)
		switch {
		case k.json.mended != "" && !k.ts.repair(k.json.mended):
			return k.fail()
		case ev == scanBad && k.done && k.json.closable():
			return stuck
		case ev == scanBad:
			return k.fail()
		case ev == scanKey:
			if k.tool = k.json.name(); k.done || !k.ts.find(&k.tool) {
				return k.fail()
			}
		case ev == scanBegin && k.tool != "": // arguments that are no object
			return k.fail()
		case ev == scanDone && !k.done:
			return k.fail()
		case ev == scanDone:
			k.over = true
		}
		if !k.json.again {
			return more
		}
	}
}

// headCall reads a call whose name stands before a JSON object of arguments, with markup of the family around it.
type headCall struct {
	ts      *toolset
	name    func(head string) string // takes the name out of what stands before the arguments; "" if it cannot be one
	id      func(head string) string // takes the id out of it; nil if there is none
	closers []string                 // that end a call without arguments
	notCall string                   // a head that opens text
	head    []byte
	args    *callArgs
	sent    bool
}

// headless is in no head: it is of arguments without their opening brace.
const headless = `"}`

func (h *headCall) started() bool { return h.sent }

func (h *headCall) finish(out *joiner) verdict {
	if h.args == nil {
		return failed(h.sent)
	}
	return h.args.finish(out)
}

func (h *headCall) step(c byte, out *joiner) verdict {
	if h.sent {
		return h.args.last(c, out)
	}
	if c == '{' {
		name := h.name(string(h.head))
		if !h.ts.find(&name) || bytes.ContainsAny(h.head, headless) {
			return refuted
		}
		h.start(name, string(h.head), out)
		h.args = newCallArgs(h.ts, name)
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
			if !h.ts.find(&name) || strings.ContainsAny(head, headless) {
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
