package dialect

import (
	"slices"
	"strings"
)

// harmony is the format of gpt-oss: messages with a header that names a channel and, for calls, the tool.
//
//	<|channel|>analysis<|message|>…<|end|>
//	<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>
//
// The channel analysis is reasoning; final, and commentary to nobody, are the answer.
var harmony = &Family{
	Name: "harmony", Names: []string{"harmony", "gpt_oss", "openai"}, Shared: none,
	Think: &Think{Open: harmonyChannel + "analysis" + harmonyMessage, Close: harmonyEnd, Leave: harmonyEnd, at: beforeAnswer,
		ReasoningNames: []string{"gpt_oss", "harmony"}},
	Resume: []string{harmonyStart + "assistant", harmonyChannel + "final" + harmonyMessage, harmonyChannel + "commentary" + harmonyMessage},
	Replay: ReplayPrinted,
	Calls: &Calls{
		Force: forceNamed(harmonyChannel+"commentary to=functions.", " <|constrain|>json"+harmonyMessage),
		Written: eachCall("", "<|start|>assistant", "",
			"<|channel|>commentary to=functions.{{ c.name }} <|constrain|>json<|message|>{{ c.arguments | tojson }}<|call|>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
	},
	Markers: harmonyMarks, Control: harmonyMarks,
	Ends:    []string{"<|return|>", "<|call|>"}, // <|end|> ends a message, of which a turn may have several
	Builtin: &Builtin{Name: "harmony", About: "gpt-oss, with tools and channels", ModelTypes: []string{"gpt_oss"}},
	New: func(o Options) Parser {
		h := &harmonyParser{ts: newToolset(o), options: o, kind: Text, last: ToolEnd}
		switch {
		case o.InReasoning:
			h.state, h.kind = harmonyBody, Reasoning
		case !o.Continued: // the prompt ends with the start of a header
			h.state = harmonyBegin
		}
		return h
	},
	matches: func(e Evidence) bool {
		return e.mentions(harmonyChannel, harmonyMessage) || e.token(harmonyChannel, harmonyMessage, "<|constrain|>")
	},
	syntax: noSyntax,
}

const (
	harmonyChannel = "<|channel|>"
	harmonyMessage = "<|message|>"
	harmonyStart   = "<|start|>"
	harmonyEnd     = "<|end|>"
	harmonyTo      = " to="
)

// harmonyEnds end a message.
var harmonyEnds = []string{harmonyEnd, "<|return|>", "<|call|>"}

var harmonyChannels = []string{"analysis", "commentary", "final"}

// harmonyAnswer is what may stand in an answer besides text.
var (
	harmonyAnswer = (&syntax{}).leaking()
	harmonyFirst  = firstBytes(harmonyAnswer, noThink)
)

var harmonyMarks = []string{harmonyChannel, harmonyMessage, harmonyStart, harmonyEnd, "<|constrain|>", "<|return|>", "<|call|>"}

type harmonyState uint8

const (
	harmonyOutside harmonyState = iota // text of models that leave the format
	harmonyBegin                       // where a message begins: a header without its first mark, or not
	harmonyHeader
	harmonyBody
	harmonyCall  // arguments
	harmonyEnded // after a call
	harmonySkip  // rest of a broken call
)

type harmonyParser struct {
	ts      toolset
	out     joiner
	state   harmonyState
	kind    Kind   // of a body
	held    []byte // may be the start of a mark
	header  []byte
	tool    string
	call    callReader // nil while its "{" has not come
	raw     []byte     // of it, while it is held
	answer  *tagged    // looks for calls that leaked in what is being said; nil: it has not begun
	heard   []Piece    // of it
	options Options
	blank   []byte // before the "{"
	last    Kind   // of what came out last; ToolEnd if that was a call, or nothing
	again   bool   // a message began after it

	skipped []byte // of a broken call: goes if another message follows
}

func (h *harmonyParser) InReasoning() bool { return h.state == harmonyBody && h.kind == Reasoning }

func (h *harmonyParser) Cut() { h.ts.cut = true }

func (h *harmonyParser) Feed(dst []Piece, output string) []Piece {
	return h.out.feed(dst, output, h.step)
}

func (h *harmonyParser) Finish(dst []Piece) []Piece {
	h.out.pieces = dst
	for _, c := range h.held {
		h.content(c)
	}
	if h.call != nil {
		h.call.finish(&h.out)
		if h.call.started() {
			h.ts.settle(true)
		} else {
			h.refuse(h.raw)
		}
	}
	h.endAnswer()
	switch isTo := strings.Contains(string(h.header), harmonyTo); {
	case h.state == harmonyBegin && !isTo:
		h.say(Text, string(h.header))
	case h.state == harmonyHeader && !isTo:
		h.leaveHeader()
	}
	if !h.ts.cut {
		h.say(Text, string(h.skipped))
	}
	h.held, h.skipped = nil, nil
	return h.out.take()
}

func (h *harmonyParser) step(c byte) {
	if h.state == harmonyCall && h.call != nil { // marks may stand in strings, so JSON alone decides where it ends
		h.inCall(c)
		return
	}
	h.held = splitMarks(h.held, c, harmonyMarks, h.mark, h.content)
}

func (h *harmonyParser) inCall(c byte) {
	h.raw = append(h.raw, c)
	v := h.call.step(c, &h.out)
	isCall := h.call.started()
	if isCall {
		h.raw, h.last = h.raw[:0], ToolEnd
		h.ts.settle(true)
	}
	if v == more && len(h.raw) <= maxHeld {
		return
	}
	again := h.ts.takeUnread()
	if again == nil && v != more && v != ended && v != unfit {
		again = []byte{c}
	}
	switch {
	case !isCall:
		h.refuse(h.raw[:len(h.raw)-len(again)])
	case v == ended || v == endedBefore:
		h.state, h.call = harmonyEnded, nil
	default:
		h.state, h.call = harmonySkip, nil
	}
	for _, c := range again {
		h.step(c)
	}
}

func (h *harmonyParser) mark(m string) {
	h.skipped, h.options.Continued = nil, false
	h.endAnswer()
	if h.state == harmonyBegin {
		h.begin(m)
	}
	isEnd := slices.Contains(harmonyEnds, m)
	switch {
	case m == harmonyMessage && h.state == harmonyHeader:
		h.open()
	case m == harmonyStart, m == harmonyChannel && h.state != harmonyHeader:
		h.state, h.header = harmonyHeader, append(h.header[:0], m...)
		h.ts.settle(false)
	case isEnd:
		if known, _ := cutWord(h.channel(), "analysis", "final"); h.state == harmonyHeader && known != "" {
			h.leaveHeader()
		}
		h.state, h.kind, h.header, h.again = harmonyBegin, Text, h.header[:0], true
		h.ts.settle(false)
	case h.state == harmonyHeader:
		h.header = append(h.header, m...)
	}
}

// begin decides, at the first mark of a message, what the words before it are: the header's, or text.
func (h *harmonyParser) begin(m string) {
	lead := string(h.header)
	role, rest := cutWord(lead, "assistant")
	channel, rest := cutWord(rest, harmonyChannels...)
	h.state, h.header = harmonyOutside, h.header[:0]
	isLead := lead != "" && (rest == "" || strings.HasPrefix(rest, harmonyTo))
	switch {
	case isLead && m != harmonyStart && !slices.Contains(harmonyEnds, m) && (channel == "" || h.ts.repair(RepairHeader)):
		if channel != "" {
			lead = role + harmonyChannel + channel + rest
		}
		h.state, h.header = harmonyHeader, append(h.header, lead...)
	case !strings.HasPrefix(lead, harmonyTo):
		h.say(Text, lead)
	}
}

// isHarmonyLead tells whether s may become a header whose first mark is yet to come.
func isHarmonyLead(s string) bool {
	for _, words := range [][]string{{"assistant"}, harmonyChannels} {
		if isPrefix(s, words...) {
			return true
		}
		_, s = cutWord(s, words...)
	}
	return strings.HasPrefix(harmonyTo, s) || strings.HasPrefix(s, harmonyTo) && !strings.Contains(s, "\n")
}

// cutWord takes the one of some words that s begins with off it.
func cutWord(s string, words ...string) (word, rest string) {
	for _, w := range words {
		if rest, ok := strings.CutPrefix(s, w); ok {
			return w, rest
		}
	}
	return "", s
}

// isPrefix tells whether s is nothing or one of some words may begin with it.
func isPrefix(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, s) })
}

// open begins the body that the header announces.
func (h *harmonyParser) open() {
	h.state, h.kind, h.tool, h.blank, h.again = harmonyBody, Text, "", nil, true
	if strings.HasPrefix(h.channel(), "analysis") {
		h.kind = Reasoning
	}
	if h.recipient() {
		h.state = harmonyCall
		return
	}
	if strings.Contains(string(h.header), "to=") { // to a tool that does not exist: these are its arguments
		h.newAnswer(true)
	}
	h.ts.settle(false)
}

// channel is what stands behind the last mark of a channel in the header.
func (h *harmonyParser) channel() string {
	header := string(h.header)
	return after(header[max(strings.LastIndex(header, harmonyChannel), 0):], harmonyChannel)
}

// recipient finds the tool that the header names: best by its own name.
func (h *harmonyParser) recipient() bool {
	for _, to := range strings.Split(string(h.header), "to=")[1:] {
		tool := strings.TrimPrefix(word(to), "functions.")
		if h.ts.has(tool) {
			h.tool = tool
			break
		}
		if _, ok := h.ts.meant(tool); ok && h.tool == "" {
			h.tool = tool
		}
	}
	return h.tool != ""
}

// refuse makes text of a call that was held.
func (h *harmonyParser) refuse(raw []byte) {
	h.ts.settle(false)
	h.state, h.call = harmonyBody, nil
	h.say(h.kind, string(raw))
	h.newAnswer(true)
}

// leaveHeader gives out the words of a header that has no end, without what belongs to one.
func (h *harmonyParser) leaveHeader() {
	rest := string(h.header)
	if i := strings.LastIndex(rest, "|>"); i >= 0 {
		rest = rest[i+len("|>"):]
	}
	_, rest = cutWord(rest, append(harmonyChannels, "assistant")...)
	if to, ok := strings.CutPrefix(rest, harmonyTo); ok {
		rest = to[len(word(to)):]
	}
	if h.kind = Text; strings.HasPrefix(h.channel(), "analysis") {
		h.kind = Reasoning
	}
	if rest = strings.TrimLeft(rest, " \n"); !isPrefix(strings.TrimRight(rest, " \n"), append(harmonyChannels, "assistant", "to=", "json", "code")...) {
		h.say(h.kind, rest)
	}
}

// after is what stands behind mark, "" if it is missing.
func after(s, mark string) string {
	_, rest, _ := strings.Cut(s, mark)
	return rest
}

func word(s string) string {
	if i := strings.IndexAny(s, " \t\n<{"); i >= 0 {
		return s[:i]
	}
	return s
}

// talk takes a byte of what is being said. An answer may be nothing but calls that leaked.
func (h *harmonyParser) talk(c byte) {
	if h.kind != Text {
		h.say(h.kind, oneByte[c])
		return
	}
	if h.answer == nil {
		h.newAnswer(h.options.Continued)
	}
	h.heard = h.answer.Feed(h.heard[:0], oneByte[c])
	h.listen(h.heard)
}

// newAnswer begins what is being said, or goes on with it.
func (h *harmonyParser) newAnswer(goesOn bool) {
	o := h.options
	o.Continued, o.InReasoning = goesOn, false
	h.answer = newTagged(harmonyAnswer, noThink, harmonyFirst, o)
	h.options.Continued = false
}

// listen gives out what an answer was found to be.
func (h *harmonyParser) listen(ps []Piece) {
	for _, p := range ps {
		if p.Kind == Text {
			h.say(Text, p.Text)
			continue
		}
		h.last = ToolEnd
		if p.Kind == ToolArgs {
			h.out.add(p.Kind, p.Text)
		} else {
			h.out.call(p.Kind, p.Text, p.ID)
		}
	}
}

// endAnswer ends what is being said.
func (h *harmonyParser) endAnswer() {
	if h.answer == nil {
		return
	}
	h.answer.tools.cut = h.ts.cut
	h.listen(h.answer.Finish(nil))
	h.answer = nil
}

// say gives out words. Messages of one kind that follow each other are paragraphs.
func (h *harmonyParser) say(k Kind, text string) {
	if text == "" {
		return
	}
	if h.again && h.last == k {
		h.out.add(k, "\n\n")
	}
	h.last, h.again = k, false
	h.out.add(k, text)
}

func (h *harmonyParser) content(c byte) {
	switch h.state {
	case harmonyBegin:
		h.header = append(h.header, c)
		if b := string(h.header); !isHarmonyLead(b) || len(b) > maxName {
			h.state, h.kind, h.header = harmonyOutside, Text, nil
			for i := range len(b) {
				h.talk(b[i])
			}
		}
	case harmonyHeader:
		switch {
		case c == '{' && strings.Contains(string(h.header), "to="):
			if h.open(); h.state == harmonyCall && !h.ts.repair(RepairHeader) {
				h.state = harmonyBody
			}
			h.content(c)
		case len(h.header) == maxName:
			h.leaveHeader()
			h.state = harmonyBody
			h.content(c)
		default:
			h.header = append(h.header, c)
		}
	case harmonySkip:
		if h.skipped = append(h.skipped, c); len(h.skipped) > maxSkip {
			h.say(Text, string(h.skipped))
			h.state, h.kind, h.skipped = harmonyOutside, Text, nil
		}
	case harmonyOutside, harmonyBody:
		h.talk(c)
	case harmonyCall:
		switch {
		case c == '{':
			h.call, h.raw = checked(&h.ts, &headCall{ts: &h.ts, name: func(string) string { return h.tool }}), h.raw[:0]
			h.step(c)
		case isBlank(c) && len(h.blank) < maxName:
			h.blank = append(h.blank, c)
		default: // no arguments: what a model writes to a tool is then its answer
			h.state = harmonyBody
			h.say(h.kind, string(h.blank)+oneByte[c])
			h.newAnswer(true)
		}
	}
}
