package parser

import "strings"

// tags describes the formats that mark reasoning and calls by tags in the text.
type tags struct {
	open, close         string // around reasoning
	callOpen, callClose string // around a call; callClose may be missing
	call                func(tools []string) callReader
}

// callReader reads the body of one call, after its opening tag.
type callReader interface {
	// step takes the next byte and adds what it makes certain.
	step(c byte, out *joiner) verdict
	// started tells whether a ToolStart went out, after which the call can no longer be refuted.
	started() bool
}

type verdict uint8

const (
	more    verdict = iota // the body goes on
	ended                  // this byte was its last
	refuted                // this is no call: what was read is text
	broken                 // a call that went wrong after it had started: it gets no ToolEnd
)

// maxHeld bounds what is held back, in bytes: a call whose name is not known yet is released as text beyond it.
const maxHeld = 256 << 10

// maxNewlines bounds the newlines held back because a tag that follows would swallow them.
const maxNewlines = 32

type state uint8

const (
	inText state = iota
	inReasoning
	inCall
	afterCall // newlines and the closing tag are swallowed
	skipCall  // rest of a broken call, up to its closing tag
)

// tagged is the parser of tag formats. It works byte by byte, so that the pieces cannot depend on how output is cut.
//
// Invariants: held is a proper prefix of a tag that counts in this state; newlines were read before held.
type tagged struct {
	tags
	tools  []string
	state  state
	outer  state  // inText or inReasoning: where a call was opened
	held   []byte // may be the start of a tag
	blank  int    // newlines held back
	raw    []byte // text of the call read so far, with its opening tag and the newlines before; nil once it started
	reader callReader
	out    joiner
	fresh  bool // nothing of this block went out yet: newlines at its start are dropped
	begun  bool // text went out, or a reasoning block was closed: an opening tag from here on is text
	stray  bool // a closing tag without an opening one may still be swallowed
}

func newTagged(t tags, o Options) *tagged {
	p := &tagged{tags: t, tools: o.Tools, stray: true}
	if o.InReasoning && t.open != "" {
		p.state, p.fresh, p.begun, p.stray = inReasoning, !o.Continued, true, false
	}
	return p
}

func (p *tagged) InReasoning() bool {
	return p.state == inReasoning || p.state == inCall && p.outer == inReasoning
}

func (p *tagged) Feed(dst []Piece, output string) []Piece {
	p.out.pieces = dst
	for i := range len(output) {
		p.step(output[i])
	}
	return p.out.take()
}

func (p *tagged) Finish(dst []Piece) []Piece {
	p.out.pieces = dst
	for p.state == inCall && p.raw != nil { // what is released may open another call
		p.release()
	}
	if p.state == inText || p.state == inReasoning {
		held := p.held
		p.held = nil
		p.content(held)
		p.flushBlank()
	}
	return p.out.take()
}

func (p *tagged) step(c byte) {
	switch p.state {
	case inCall:
		p.callStep(c)
		return
	case skipCall:
		p.held = append(p.held, c)
		if strings.HasSuffix(string(p.held), p.callClose) {
			p.state, p.held = afterCall, p.held[:0]
		} else if n := len(p.held) - len(p.callClose); n >= 0 {
			p.held = append(p.held[:0], p.held[n+1:]...)
		}
		return
	}
	p.held = append(p.held, c)
	for len(p.held) > 0 {
		switch tag, partial := p.match(); {
		case tag != "":
			p.held = p.held[:0]
			p.tag(tag)
			return
		case partial:
			return
		}
		if p.state == afterCall { // it was not the closing tag: a new stretch of the block around the call
			p.state, p.fresh = p.outer, true
			continue
		}
		p.content(p.held[:1])
		p.held = append(p.held[:0], p.held[1:]...)
	}
}

// match compares what is held with the tags that count now: a whole tag, or possibly the start of one.
func (p *tagged) match() (tag string, partial bool) {
	try := func(t string) {
		if t == "" || tag != "" {
			return
		}
		if string(p.held) == t {
			tag = t
		} else if strings.HasPrefix(t, string(p.held)) {
			partial = true
		}
	}
	switch p.state {
	case afterCall:
		if p.held[0] == '\n' || p.held[0] == ' ' {
			p.held = p.held[:0]
			return "", true
		}
		try(p.callClose)
	case inReasoning:
		try(p.close)
	default:
		if !p.begun {
			try(p.open)
		}
		if p.stray {
			try(p.close)
		}
	}
	if p.state != afterCall && p.call != nil && len(p.tools) > 0 {
		try(p.callOpen)
	}
	return tag, partial && tag == ""
}

// tag acts on a complete tag.
func (p *tagged) tag(tag string) {
	switch tag {
	case p.callClose:
		// swallowed; afterCall goes on until something else comes
	case p.open:
		p.state, p.fresh, p.begun, p.stray, p.blank = inReasoning, true, true, false, 0
	case p.close:
		p.state, p.fresh, p.begun, p.stray, p.blank = inText, true, true, false, 0
	case p.callOpen:
		p.outer, p.state = p.state, inCall
		p.raw = append([]byte(strings.Repeat("\n", p.blank)), tag...)
		p.blank = 0
		p.reader = p.call(p.tools)
	}
}

// content takes bytes that are no tag. Newlines wait: at the start of a block they are dropped, before a tag too.
func (p *tagged) content(b []byte) {
	for _, c := range b {
		if c == '\n' {
			if !p.fresh {
				if p.blank++; p.blank > maxNewlines {
					p.emit("\n")
					p.blank--
				}
			}
			continue
		}
		p.flushBlank()
		p.emit(oneByte[c])
	}
}

func (p *tagged) flushBlank() {
	if p.blank > 0 {
		n := p.blank
		p.blank = 0
		p.emit(strings.Repeat("\n", n))
	}
}

func (p *tagged) emit(s string) {
	p.fresh = false
	if p.state == inReasoning {
		p.out.add(Reasoning, s)
		return
	}
	p.begun, p.stray = true, false
	p.out.add(Text, s)
}

func (p *tagged) callStep(c byte) {
	if p.raw != nil {
		p.raw = append(p.raw, c)
	}
	v := p.reader.step(c, &p.out)
	if p.reader.started() {
		p.raw = nil
	}
	switch {
	case v == refuted, len(p.raw) > maxHeld:
		p.release()
	case v == broken:
		p.leaveCall()
		p.state = skipCall
	case v == ended:
		p.leaveCall()
		p.state = afterCall
	}
}

// leaveCall forgets a call that has started: the model is past its reasoning then, even if it never closed it.
func (p *tagged) leaveCall() {
	p.reader, p.raw, p.outer = nil, nil, inText
	p.begun, p.stray = true, p.close != ""
}

// release gives a refuted call back as content. Its opening tag is content now; the rest is read again, because it may
// hold tags of its own.
func (p *tagged) release() {
	raw := p.raw
	n := strings.Index(string(raw), p.callOpen) + len(p.callOpen)
	p.state, p.raw, p.reader = p.outer, nil, nil
	p.content(raw[:n])
	for _, c := range raw[n:] {
		p.step(c)
	}
}
