package dialect

import (
	"slices"
	"strings"
)

// syntax describes a format that marks calls by literal tags in the text. The tags of reasoning are in Think.
type syntax struct {
	openers  []opener // begin a call
	inner    []string // markers inside of calls
	sections []string // stand before the first call of several, and go if a call follows
	closers  []string // swallowed after a call
	drop     []string // around the answer, never part of it
	leads    []string // the same, and a call without a tag may follow
	headers  bool     // openers also stand before plain text, so they count without tools too
	between  string   // bytes besides spaces and newlines that may stand between calls
	again    []string // begin another call behind one

	// bare begins a call without a tag, where the answer or another call could begin; nil if c cannot.
	bare func(c byte, ts *toolset) callReader

	leakEnds []string // marks that may stand behind a call that leaked; nil: none is looked for
	fences   []string // that open calls of the family's own form
}

// opener is a tag that begins a call.
type opener struct {
	tag  string
	lead bool // counts only where the answer begins
	drop bool // also goes if no call follows
	call func(*toolset) callReader
}

// callReader reads the body of one call, after its opening tag.
type callReader interface {
	// step takes the next byte and adds what it makes certain.
	step(c byte, out *joiner) verdict
	// started tells whether a ToolStart went out, after which the call can no longer be refuted.
	started() bool
	// finish is called at the end of the output: ended where the body is complete without a byte that ends it, refuted or broken.
	finish(out *joiner) verdict
}

// giver is a callReader that can break among calls: what it read there is no part of any, and is text.
type giver interface {
	rest() []byte // nil if the byte that broke it stands inside a call
}

// chosen is the reader that the first bytes of a call ask for; nil before them.
type chosen struct{ callReader }

func (c *chosen) started() bool { return c.callReader != nil && c.callReader.started() }

func (c *chosen) finish(out *joiner) verdict {
	if c.callReader == nil {
		return refuted
	}
	return c.callReader.finish(out)
}

func (c *chosen) rest() []byte {
	if g, ok := c.callReader.(giver); ok {
		return g.rest()
	}
	return nil
}

// byFirst reads what the first byte of a call asks for.
type byFirst struct {
	ts   *toolset
	pick func(c byte, ts *toolset) callReader
	chosen
}

func newByFirst(pick func(byte, *toolset) callReader) func(*toolset) callReader {
	return func(ts *toolset) callReader { return &byFirst{ts: ts, pick: pick} }
}

func (b *byFirst) step(c byte, out *joiner) verdict {
	if b.callReader == nil {
		if isBlank(c) {
			return more
		}
		b.callReader = b.pick(c, b.ts)
	}
	return b.callReader.step(c, out)
}

type verdict uint8

const (
	more         verdict = iota // the body goes on
	ended                       // this byte was its last
	endedBefore                 // the byte before was its last
	refuted                     // this is no call: what was read is text
	broken                      // a call that went wrong after it had started: it gets no ToolEnd
	discarded                   // no call, and nothing of what was read is text
	emptied                     // no call, as an empty list; closing tags follow as after one
	reread                      // the body goes on, with what is unread
	endedEarlier                // the body ended before what is unread
	unfit                       // no call: what was read is text as it stands, whatever it holds, up to what is unread
	stuck                       // this byte cannot come here, unless it begins what follows a call that lacks closing brackets
)

// failed is what becomes of a call that goes wrong.
func failed(started bool) verdict {
	if started {
		return broken
	}
	return refuted
}

const (
	// maxHeld bounds what is held back, in bytes: a call whose name is not known yet, which is released as text beyond it,
	// and the value of an argument that waits until it is complete.
	maxHeld = 256 << 10
	// maxPending bounds the newlines held back because a tag that follows would swallow them.
	maxPending = 64
	// maxSkip bounds how far the end of a broken call is looked for.
	maxSkip = 16 << 10
	// maxReread bounds how much is read again after it turned out to be no call.
	maxReread = 8 * maxHeld
)

type state uint8

const (
	inText state = iota
	inReasoning
	inCall
	afterCall // newlines and closing tags are swallowed
	skipCall  // rest of a broken call, up to a closing tag
)

// tagged is the parser of tag formats. It works byte by byte, so that the pieces cannot depend on how output is cut.
//
// Invariants: held is a proper prefix of a tag that counts in this state; pending was read before held.
type tagged struct {
	*syntax
	*Think
	tools   toolset
	first   *[256]bool // bytes that tags begin with
	state   state
	outer   state  // inText or inReasoning: where a call was opened
	held    []byte // may be the start of a tag
	pending []byte // newlines and section tags, held back until it is known what follows
	raw     []byte // what a refuted call gives back; nil once it started
	opening int    // bytes of raw that are content for certain then
	tail    []byte // read since a call got stuck
	closing bool   // brackets behind a call are no text
	reader  callReader
	out     joiner
	reread  int
	label   string // what is still to be swallowed of it
	fresh   bool   // nothing of this block went out yet: newlines at its start are dropped
	lead    bool   // a call without a tag may begin
	begun   bool   // text went out, or a reasoning block was closed: an opening tag from here on is text
	stray   bool   // a closing tag without an opening one may still be swallowed
	leaks   bool   // calls that leaked are looked for
	again   bool   // the byte begins no call without a tag: it was tried
	tagless bool   // the call being read began without a tag
}

// newTagged makes a parser of one reply; first is what firstBytes gives for the same syntax and tags.
func newTagged(s *syntax, think *Think, first *[256]bool, o Options) *tagged {
	p := &tagged{syntax: s, Think: think, first: first, tools: newToolset(o), stray: true, lead: !o.Continued,
		leaks: s.leakEnds != nil && len(o.Tools) > 0 && !o.Form && !o.NoRepair}
	if o.InReasoning && p.Open != "" {
		p.state, p.fresh, p.begun, p.stray = inReasoning, !o.Continued, true, false
	}
	return p
}

// firstBytes are those that tags begin with.
func firstBytes(s *syntax, think *Think) *[256]bool {
	var first [256]bool
	for _, t := range append(s.tags(), think.Open, think.Close) {
		if t != "" {
			first[t[0]] = true
		}
	}
	first[leakTags[0][0]] = first[leakTags[0][0]] || s.leakEnds != nil
	return &first
}

// reset makes p ready for another message.
func (p *tagged) reset() {
	p.state, p.reader, p.raw, p.held, p.pending = inText, nil, nil, nil, nil
	p.fresh, p.lead, p.begun, p.reread = false, true, false, 0
}

// tags are all literal markers.
func (s *syntax) tags() []string {
	var all []string
	for _, o := range s.openers {
		all = append(all, o.tag)
	}
	return slices.Concat(all, s.inner, s.sections, s.closers, s.drop, s.leads)
}

func (p *tagged) InReasoning() bool {
	return p.state == inReasoning || p.state == inCall && p.outer == inReasoning
}

func (p *tagged) Cut() { p.tools.cut = true }

func (p *tagged) Feed(dst []Piece, output string) []Piece { return p.out.feed(dst, output, p.step) }

func (p *tagged) Finish(dst []Piece) []Piece {
	p.out.pieces = dst
	for p.state == inCall { // what is released may open another call
		if len(p.tail) > 0 && len(p.held) > 0 {
			p.leaveTail()
			continue
		}
		p.tools.marked, p.tail = len(p.tail) > 0 && !p.tools.cut, nil
		v := p.reader.finish(&p.out)
		if v == reread || v == endedEarlier {
			p.readAgain(v)
			continue
		}
		if v == broken && p.giveBack() {
			break
		}
		if v == unfit {
			p.giveUp()
			continue
		}
		if v == ended || v == discarded || p.raw == nil || p.reader.started() {
			p.leaveCall()
			p.state = afterCall
			p.readBehind(ended, 0)
			break
		}
		if p.tools.cut { // what looks like a call in what was cut may be part of a value
			if l, ok := p.reader.(*leakCall); !ok || l.item != nil {
				p.giveUp()
				break
			}
		}
		p.release()
	}
	if p.state == skipCall && !p.tools.cut {
		p.keepSkipped()
	}
	if p.state == inText || p.state == inReasoning {
		held := p.held
		p.held = nil
		p.content(held)
		p.flushPending()
	}
	return p.out.take()
}

func (p *tagged) step(c byte) {
	switch p.state {
	case inCall:
		p.callStep(c)
		return
	case skipCall:
		p.skipStep(c)
		return
	}
	if p.label != "" {
		if c == p.label[0] {
			p.label = p.label[1:]
			return
		}
		p.label = ""
	}
	if len(p.held) == 0 && !p.again && p.begins(c) {
		return
	}
	p.held = append(p.held, c)
	for len(p.held) > 0 {
		if len(p.held) == 1 && !p.first[p.held[0]] && p.state != afterCall {
			p.content(p.held)
			p.held = p.held[:0]
			return
		}
		switch tag, partial := p.tagAt(); {
		case tag != "":
			p.held = p.held[:0]
			p.tag(tag)
			return
		case partial:
			return
		}
		if p.state == afterCall { // it was not a closing tag: a new stretch of the block around the call
			p.state, p.fresh, p.lead, p.closing = p.outer, true, p.outer == inText, false
			if c := p.held[0]; len(p.held) == 1 {
				p.held = p.held[:0]
				if p.begins(c) {
					return
				}
				p.held = append(p.held, c)
			}
			continue
		}
		p.content(p.held[:1])
		p.held = append(p.held[:0], p.held[1:]...)
	}
}

// begins starts a call without a tag if c can begin one here.
func (p *tagged) begins(c byte) bool {
	if !p.lead || p.state != inText || isBlank(c) {
		return false
	}
	var reader callReader
	if p.bare != nil && p.calls() {
		reader = p.bare(c, &p.tools)
	}
	if reader == nil && p.leaks && (c == '{' || c == '[' || c == fence[0]) {
		reader = p.newLeak(false)
	}
	if reader == nil {
		return false
	}
	p.beginCall(reader, "")
	p.tagless = true
	p.callStep(c)
	return true
}

func (p *tagged) beginCall(r callReader, tag string) {
	p.outer, p.state, p.reader = p.state, inCall, r
	p.raw = append(p.pending, tag...)
	if p.raw == nil {
		p.raw = []byte{}
	}
	p.opening = len(p.raw)
	p.pending, p.tagless = nil, false
}

// tagAt compares what is held with the tags that count now: a whole tag, or possibly the start of one.
func (p *tagged) tagAt() (tag string, partial bool) {
	if p.state == afterCall {
		if c := p.held[0]; len(p.held) == 1 && (isBlank(c) || strings.IndexByte(p.between, c) >= 0 || p.isExtra(c)) {
			p.held = p.held[:0]
			return "", true
		}
		for _, t := range p.closers {
			p.try(t, &tag, &partial)
		}
		return tag, partial && tag == ""
	}
	if p.state == inReasoning || p.stray {
		p.try(p.Close, &tag, &partial)
	}
	if p.state == inText && !p.begun || p.at.anywhere {
		p.try(p.Open, &tag, &partial)
	}
	for _, t := range p.drop {
		p.try(t, &tag, &partial)
	}
	for _, t := range p.leads {
		p.try(t, &tag, &partial)
	}
	if p.leaks && p.state == inText && p.lineBegins() {
		for _, t := range leakTags {
			p.try(t, &tag, &partial)
		}
	}
	if p.calls() {
		for i := range p.openers {
			if o := &p.openers[i]; !o.lead || p.lead && p.state == inText {
				p.try(o.tag, &tag, &partial)
			}
		}
		for _, t := range p.sections {
			p.try(t, &tag, &partial)
		}
	}
	return tag, partial && tag == ""
}

// lineBegins tells whether what is held begins a line.
func (p *tagged) lineBegins() bool {
	return p.lead || p.fresh || len(p.pending) > 0 && p.pending[len(p.pending)-1] == '\n'
}

// calls tells whether what begins calls is looked for.
func (p *tagged) calls() bool { return len(p.tools.tools) > 0 || p.headers }

func (p *tagged) try(t string, tag *string, partial *bool) {
	if t == "" || len(p.held) > len(t) || t[:len(p.held)] != string(p.held) {
		return
	}
	if len(p.held) < len(t) {
		*partial = true
	} else if *tag == "" {
		*tag = t
	}
}

// tag acts on a complete tag.
func (p *tagged) tag(tag string) {
	if p.state == afterCall {
		p.closing = false
		return // swallowed; afterCall goes on until something else comes
	}
	switch tag {
	case p.Open:
		p.state, p.fresh, p.begun, p.stray, p.pending = inReasoning, true, true, false, nil
		p.label = p.at.label
		return
	case p.Close:
		p.state, p.fresh, p.lead, p.begun, p.stray, p.pending = inText, true, true, true, p.at.anywhere, nil
		return
	}
	for i := range p.openers {
		if o := &p.openers[i]; o.tag == tag {
			if o.drop {
				tag = ""
			}
			p.beginCall(o.call(&p.tools), tag)
			return
		}
	}
	if p.leaks && slices.Contains(leakTags, tag) {
		p.beginCall(p.newLeak(true), tag)
		return
	}
	for _, t := range p.leads {
		p.lead = p.lead || t == tag && p.state == inText
	}
	for _, t := range p.sections {
		if t == tag {
			p.pend(tag)
			return
		}
	}
}

// content takes bytes that are no tag. Newlines wait: at the start of a block they are dropped, before a tag too.
func (p *tagged) content(b []byte) {
	for _, c := range b {
		if c != '\n' && c != '\r' {
			p.flushPending()
			p.emit(oneByte[c])
			p.lead = p.lead && c == ' '
		} else if !p.fresh || len(p.pending) > 0 {
			p.pend(oneByte[c])
		}
	}
}

func (p *tagged) pend(s string) {
	p.pending = append(p.pending, s...)
	if len(p.pending) > maxPending {
		p.flushPending()
	}
}

func (p *tagged) flushPending() {
	if len(p.pending) > 0 {
		s := string(p.pending)
		p.pending = p.pending[:0]
		p.emit(s)
	}
}

func (p *tagged) emit(s string) {
	p.fresh = false
	if p.state == inReasoning {
		p.out.add(Reasoning, s)
		return
	}
	p.begun, p.stray = true, p.at.anywhere
	p.out.add(Text, s)
}

func (p *tagged) callStep(c byte) {
	if p.raw != nil {
		p.raw = append(p.raw, c)
	}
	if len(p.tail) > 0 {
		p.tailStep(c)
		return
	}
	v := p.reader.step(c, &p.out)
	if p.reader.started() {
		p.raw = nil
		p.tools.settle(true)
	}
	switch {
	case v == refuted, v == more && len(p.raw) > maxHeld:
		p.release()
	case v == unfit:
		p.giveUp()
	case v == reread || v == endedEarlier:
		p.readAgain(v)
	case v == broken && p.giveBack():
	case v == broken:
		left := p.tools.takeUnread()
		p.leaveCall()
		p.state, p.held = skipCall, p.held[:0]
		if len(left) == 0 {
			left = append(left, c)
		}
		for _, c := range left {
			p.step(c)
		}
	case v == ended || v == endedBefore:
		p.leaveCall()
		p.state, p.closing = afterCall, true
		p.readBehind(v, c)
	case v == stuck:
		p.tailStep(c)
	case v == emptied:
		p.state, p.reader, p.raw = afterCall, nil, nil
	case v == discarded:
		p.state, p.reader, p.raw = p.outer, nil, nil
		p.lead = p.state == inText
	}
}

// readAgain reads what the reader has left, in the call or behind it.
func (p *tagged) readAgain(v verdict) {
	left := p.tools.takeUnread()
	if v == endedEarlier {
		p.leaveCall()
		p.state = afterCall
	} else if p.raw != nil {
		p.raw = p.raw[:len(p.raw)-len(left)]
	}
	for _, c := range left {
		p.step(c)
	}
}

// isExtra tells whether c is a bracket too many behind a call.
func (p *tagged) isExtra(c byte) bool {
	if !p.closing || c != '}' && c != ']' || p.first[c] || !p.tools.repair(RepairBracket) {
		return false
	}
	p.tools.settle(true)
	return true
}

// readBehind reads what stands behind a call: what was read there already, or from c on.
func (p *tagged) readBehind(v verdict, c byte) {
	left := p.tools.takeUnread()
	if left == nil && v == endedBefore {
		left = []byte{c}
	}
	for _, c := range left {
		p.step(c)
	}
}

// giveBack makes text of what stands behind complete calls and is none, and tells whether there is any.
func (p *tagged) giveBack() bool {
	g, ok := p.reader.(giver)
	if !ok || g.rest() == nil {
		return false
	}
	rest := g.rest()
	p.leaveCall()
	p.state, p.fresh, p.lead = inText, true, false
	p.content(rest)
	p.readBehind(ended, 0)
	return true
}

// leaveCall forgets a call that has started: the model is past its reasoning then, even if it never closed it.
func (p *tagged) leaveCall() {
	p.tools.settle(true)
	p.reader, p.raw, p.outer = nil, nil, inText
	p.begun, p.stray = true, p.Close != ""
}

// skipStep holds the rest of a broken call. It goes if a closing tag or another call follows, else it is text.
func (p *tagged) skipStep(c byte) {
	p.held = append(p.held, c)
	for _, t := range p.closers {
		if endsIn(p.held, t) {
			p.state, p.held = afterCall, p.held[:0]
			return
		}
	}
	for i := range p.openers {
		if o := &p.openers[i]; !o.lead && endsIn(p.held, o.tag) {
			p.state, p.held = inText, p.held[:0]
			p.beginCall(o.call(&p.tools), o.tag)
			return
		}
	}
	if len(p.held) > maxSkip {
		p.keepSkipped()
	}
}

func endsIn(b []byte, tag string) bool {
	return len(b) >= len(tag) && string(b[len(b)-len(tag):]) == tag
}

func (p *tagged) keepSkipped() {
	held := p.held
	p.state, p.held, p.fresh, p.lead = inText, nil, true, false
	p.content(held)
}

// release gives a refuted call back as content. Its opening tag is content now; the rest is read again, because it may
// hold tags of its own.
func (p *tagged) release() {
	begins := p.opening
	if l, ok := p.reader.(*leakCall); ok {
		begins += l.solid
	}
	tagless := p.tagless && begins == p.opening
	raw := p.leave()
	if p.reread += len(raw); p.reread > maxReread {
		p.content(raw)
		return
	}
	p.content(raw[:begins])
	for i, c := range raw[begins:] {
		p.again = tagless && i == 0
		p.step(c)
	}
	p.again = false
}

// giveUp makes text of a call that is none.
func (p *tagged) giveUp() {
	unread := p.tools.takeUnread()
	p.lead = false
	raw := p.leave()
	p.content(raw[:len(raw)-len(unread)])
	for _, c := range unread {
		p.step(c)
	}
}

// leave forgets a call that did not start, and returns what was read of it.
func (p *tagged) leave() (raw []byte) {
	raw = p.raw
	p.tools.settle(false)
	p.tools.unread = nil
	p.state, p.raw, p.reader = p.outer, nil, nil
	return raw
}
