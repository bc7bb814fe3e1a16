package dialect

import (
	"slices"
	"strings"

	"hearth/internal/schema"
)

// What stands here is for calls in JSON whose brackets do not match: too few where a closing tag or the end of the output
// comes, or too many. A bracket is put where it lacks, or left out, if that can be read in one way only.

// callArgs reads the arguments of a call. The brace that closes them goes out with the end of the call: without it they are no
// JSON.
type callArgs struct {
	argsReader
	tool   string
	root   *argType
	others []string // keys that may stand beside the arguments
	seen   []string // names of arguments, as far as they count
	over   bool     // they are closed
	behind []byte   // read after that, while they may go on
	unsure int      // an object this deep may have ended before a key that was read in it; 0 for none
	extra  bool     // a key may belong to an object that a brace too many has closed
	nested bool     // they end with an object, which may have lent them its brace
}

func newCallArgs(ts *toolset, tool string) *callArgs {
	return &callArgs{argsReader: *newArgs(ts, tool), tool: tool, root: ts.of(tool)}
}

func (a *callArgs) step(c byte, out *joiner) verdict {
	if a.over {
		return a.after(c, out)
	}
	if a.json.plain(c) && a.passes(scanMore) {
		out.add(ToolArgs, oneByte[c])
		return more
	}
	for {
		last := a.json.last
		text, ev := a.json.step(c)
		switch {
		case a.json.mended != "" && !a.ts.repair(a.json.mended), ev == scanBad && !a.json.closable():
			return broken
		case ev == scanBad:
			return stuck
		case ev == scanDone:
			a.over, a.nested = true, last == '}'
			return more
		case ev == scanKey:
			a.doubt(a.json.name())
		case ev == scanEnd && a.json.last == ']' && len(a.json.stack) < a.unsure:
			a.unsure = 0
		}
		if a.passes(ev) {
			out.add(ToolArgs, text)
		} else {
			a.take(text, ev, out)
		}
		if !a.json.again {
			return more
		}
	}
}

// doubt looks at a key. Where it stands behind others in an inner object, a brace may be missing before it; where it stands
// behind an object, that may have been closed too early. The schema may know better.
func (a *callArgs) doubt(name string) {
	depth := len(a.json.stack)
	if depth == 1 && len(a.seen) < maxName {
		a.seen = append(a.seen, name)
	}
	if !a.json.later {
		return
	}
	isHere, isOutside := false, slices.Contains(a.others, name)
	for i, level := range a.open {
		if has := level.of.names(name); i == depth-1 {
			isHere = has
		} else {
			isOutside = isOutside || has
		}
	}
	switch {
	case depth == 1 && isOutside && !isHere, depth > 1 && (isOutside || !isHere):
		a.unsure = depth
	case depth < a.unsure:
		a.unsure = 0
	}
	a.extra = a.extra || !isHere && a.json.last == '}'
}

// names tells whether a schema speaks of a member.
func (a *argType) names(name string) bool {
	return a != nil && slices.ContainsFunc(a.alts, func(alt []*schema.Node) bool {
		return a.spend(1+len(alt)) && slices.ContainsFunc(alt, func(node *schema.Node) bool {
			subs, _ := a.memberOf(node, name)
			return len(subs) > 0
		})
	})
}

// close writes the brackets that are missing inside of the arguments, if nothing else is. Where the output just ends, it
// may have been meant to go on with the value it is in.
func (a *callArgs) close(out *joiner) bool {
	switch {
	case a.over:
		return strings.Trim(string(a.behind), ","+blanks) == ""
	case !a.ts.marked && (a.json.state != wantComma || len(a.json.stack) > 1):
		return false
	case !a.json.closable() || a.unsure > 0 || !a.ts.hasAll(a.tool, a.seen) || !a.ts.repair(RepairUnclosed):
		return false
	}
	for len(a.json.stack) > 1 {
		text, ev := a.json.close()
		a.take(text, ev, out)
	}
	a.over = true
	return true
}

// after reads on behind the closing brace, to see whether it was one. A member of the arguments that follows shows that it
// was one too many: they go on. Anything else is for others to read.
func (a *callArgs) after(c byte, out *joiner) verdict {
	if len(a.behind) == 0 && isBlank(c) {
		return more
	}
	a.behind = append(a.behind, c)
	s, ok := strings.CutPrefix(string(a.behind), ",")
	s = strings.TrimLeft(s, blanks)
	name, quoted := "", false
	if len(s) > 1 {
		name, quoted = strings.CutSuffix(s[1:], `"`)
	}
	if ok && len(a.seen) > 0 && (a.nested || a.others != nil) && !a.ts.strict && len(a.behind) < maxName {
		switch {
		case quoted && !slices.Contains(a.others, name) && !slices.Contains(a.seen, name) && a.root.names(name) && a.ts.repair(RepairBracket):
			a.json.stack, a.json.state, a.over = append(a.json.stack, '{'), wantComma, false
			again := a.behind
			a.behind = nil
			return a.ts.stepAgain(again, func(c byte) verdict { return a.step(c, out) })
		case quoted:
			a.extra = true
		case s == "" || s[0] == '"':
			return more
		}
	}
	a.ts.unread, a.behind = a.behind, nil
	return endedBefore
}

// last is step where the call ends with its arguments. The end waits for what follows: behind a brace too many the call
// may be another than what was meant.
func (a *callArgs) last(c byte, out *joiner) verdict {
	v := a.step(c, out)
	if v != endedBefore {
		return v
	}
	if next := a.ts.unread[0]; a.extra && (next == '}' || next == ',') && !a.ts.strict {
		return broken
	}
	a.endCall("", out)
	return endedBefore
}

// finish ends the call where no more comes.
func (a *callArgs) finish(out *joiner) verdict {
	if a.over && !(a.ts.isCut() && (a.nested || a.extra)) || !a.ts.isCut() && a.close(out) {
		a.ts.unread = a.behind
		a.endCall("", out)
		return ended
	}
	return broken
}

// endCall closes the arguments and with them the call.
func (a *callArgs) endCall(id string, out *joiner) {
	out.add(ToolArgs, "}")
	out.call(ToolEnd, "", id)
}

// isCut tells whether a call that is being read lacks what did not come any more.
func (s *toolset) isCut() bool { return s.cut && !s.marked }

// finishAt ends a call where something shows that it has no more than what was read.
func (s *toolset) finishAt(r interface{ finish(*joiner) verdict }, out *joiner) verdict {
	s.marked = true
	v := r.finish(out)
	s.marked = false
	return v
}

// stepAgain gives bytes to step that were read already. What comes behind a call that ends with one of them is unread again.
func (s *toolset) stepAgain(again []byte, step func(byte) verdict) verdict {
	s.unread = nil
	for i, c := range again {
		switch v := step(c); v {
		case more:
			continue
		case endedBefore:
			if len(s.unread) == 0 {
				s.unread = again[i : i+1]
			}
			fallthrough
		default:
			s.unread = slices.Concat(s.unread, again[i+1:])
			return v
		}
	}
	return more
}

// takeUnread returns what was read behind a call, nil if there is nothing.
func (s *toolset) takeUnread() []byte {
	unread := s.unread
	s.unread = nil
	return unread
}

// closable tells whether nothing but closing brackets can be missing here.
func (s *jsonScanner) closable() bool {
	switch s.state {
	case wantComma, wantKeyOrEnd, wantValueOrEnd, wantTwin, atEnd:
		return s.comment == 0
	}
	return len(s.comma) > 0 && s.comment == 0
}

// close closes what is open innermost, where that is all that can come.
func (s *jsonScanner) close() (string, scanEvent) {
	s.state, s.comma = wantComma, nil
	switch s.top() {
	case '[':
		return s.pop(']')
	case twice:
		s.stack[len(s.stack)-1] = onceClosed
	}
	return s.pop('}')
}

// tailStep reads on where a call could not: brackets and then a tag or the end of the output close it, anything else
// shows that it is broken.
func (p *tagged) tailStep(c byte) {
	p.tail = append(p.tail, c)
	p.held = []byte(strings.TrimLeft(string(p.tail), "}],"+blanks))
	tag, partial := p.endTag()
	switch {
	case tag == "" && (partial || len(p.held) == 0) && len(p.tail) < maxGap:
		return
	case tag == "" || p.tools.finishAt(p.reader, &p.out) != ended:
		p.leaveTail()
		return
	}
	p.tail, p.held = nil, nil
	p.leaveCall()
	p.state = afterCall
	for i := range len(tag) {
		p.step(tag[i])
	}
}

// endTag compares what is held with the tags that end a call by closing it or beginning something else.
func (p *tagged) endTag() (tag string, partial bool) {
	for _, tags := range [][]string{p.closers, p.sections, p.drop} {
		for _, t := range tags {
			p.try(t, &tag, &partial)
		}
	}
	for i := range p.openers {
		if o := &p.openers[i]; !o.lead {
			p.try(o.tag, &tag, &partial)
		}
	}
	return tag, partial
}

// leaveTail gives up a call that its brackets do not close.
func (p *tagged) leaveTail() {
	tail := p.tail
	p.tail, p.held = nil, nil
	switch {
	case !p.reader.started():
		p.release()
		return
	case !p.giveBack():
		p.leaveCall()
		p.state = skipCall
	}
	for _, c := range tail {
		p.step(c)
	}
}
