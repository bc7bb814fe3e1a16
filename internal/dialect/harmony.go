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
		Notation: &Notation{Call: "<|channel|>commentary to=functions.$name <|constrain|>json<|message|>$args<|call|>", Between: "<|start|>assistant", Args: ArgsJSON,
			Begins: &Beginnings{Anywhere: []string{"$[<|start|>$|<|channel|>$]$head$[to=$|functions.$]"}, Answers: []string{"$[assistant$]$[analysis$|$[commentary$|final$]$] to="},
				Behind: harmonyEnds, Body: harmonyMessage}},
	},
	Markers: harmonyMarks, Control: harmonyMarks,
	Ends:    []string{"<|return|>", "<|call|>"}, // <|end|> ends a message, of which a turn may have several
	Builtin: &Builtin{Name: "harmony", About: "gpt-oss, with tools and channels", ModelTypes: []string{"gpt_oss"}},
	New: func(o Options) Parser {
		h := newHarmony(o)
		switch {
		case o.InReasoning:
			h.state, h.kind = harmonyBody, Reasoning
		case !o.Continued: // the prompt ends with the start of a header
			h.state, h.text.lead = harmonyBegin, true
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
	harmonySpace   = "functions."
)

// harmonyEnds end a message.
var harmonyEnds = []string{harmonyEnd, "<|return|>", "<|call|>"}

var harmonyChannels = []string{"analysis", "commentary", "final"}

var harmonyMarks = []string{harmonyChannel, harmonyMessage, harmonyStart, harmonyEnd, "<|constrain|>", "<|return|>", "<|call|>"}

var harmonyText = (&syntax{}).leaking()

var harmonyFirst = firstBytes(harmonyText, noThink)

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
	text   *tagged // reads words to the reader: they may be calls
	ts     *toolset
	out    *joiner
	state  harmonyState
	kind   Kind   // of a body
	held   []byte // may be the start of a mark
	header []byte
	tool   string
	call   callReader // nil while its "{" has not come
	raw    []byte     // of a call of which nothing came out; nil once something did
	tail   []byte     // read since it got stuck
	blank  []byte     // before the "{"
	plain  bool       // words of this message are no calls

	skipped []byte // of a broken call: goes if another message follows
}

func newHarmony(o Options) *harmonyParser {
	o.Continued, o.InReasoning = true, false
	h := &harmonyParser{text: newTagged(harmonyText, noThink, harmonyFirst, o), kind: Text}
	h.ts, h.out = &h.text.tools, &h.text.out
	h.out.kind = ToolArgs // the first message is no second paragraph
	return h
}

func (h *harmonyParser) InReasoning() bool { return h.state == harmonyBody && h.kind == Reasoning }

func (h *harmonyParser) Cut() { h.ts.cut = true }

func (h *harmonyParser) Feed(dst []Piece, output string) []Piece {
	return h.out.feed(dst, output, h.step)
}

func (h *harmonyParser) Finish(dst []Piece) []Piece {
	h.out.pieces = dst
	h.finishCall()
	for _, c := range h.held {
		h.content(c)
	}
	switch isTo := strings.Contains(string(h.header), harmonyTo); {
	case h.state == harmonyBegin && !isTo:
		h.say(Text, string(h.header))
	case h.state == harmonyHeader && !isTo:
		h.leaveHeader()
	}
	if !h.ts.cut {
		h.out.add(Text, string(h.skipped))
	}
	h.held, h.skipped = nil, nil
	return h.text.Finish(h.out.take())
}

func (h *harmonyParser) step(c byte) {
	if h.call == nil {
		h.held = splitMarks(h.held, c, harmonyMarks, h.mark, h.content)
		return
	}
	if h.raw != nil {
		h.raw = append(h.raw, c)
	}
	if len(h.tail) > 0 {
		h.tailStep(c)
		return
	}
	v := h.call.step(c, h.out) // marks may stand in strings, so JSON alone decides where it ends
	if h.call.started() {
		h.raw = nil
		h.ts.settle(true)
	}
	switch {
	case v == stuck:
		h.tailStep(c)
	case v != more:
		again := h.ts.takeUnread()
		if again == nil && v != ended {
			again = []byte{c}
		}
		h.leaveCall(v, again)
	case len(h.raw) > maxHeld:
		h.leaveCall(refuted, nil)
	}
}

// tailStep reads on where a call could not: brackets and then a mark close it.
func (h *harmonyParser) tailStep(c byte) {
	h.tail = append(h.tail, c)
	rest := strings.TrimLeft(string(h.tail), "}],"+blanks)
	switch {
	case slices.Contains(harmonyMarks, rest):
		v := h.ts.finishAt(h.call, h.out)
		h.leaveCall(v, []byte(rest))
	case !isPrefix(rest, harmonyMarks...) || len(h.tail) >= maxGap:
		h.leaveCall(failed(h.call.started()), h.tail)
	}
}

// finishCall is where the output ends.
func (h *harmonyParser) finishCall() {
	for h.call != nil {
		if rest := strings.TrimLeft(string(h.tail), "}],"+blanks); rest != "" {
			h.leaveCall(failed(h.call.started()), h.tail)
			continue
		}
		h.ts.marked = len(h.tail) > 0 && !h.ts.cut
		v := h.call.finish(h.out)
		if h.ts.cut && v == refuted { // it was waiting
			h.raw = []byte{}
		}
		h.leaveCall(v, h.ts.takeUnread())
	}
}

// leaveCall leaves a call that has ended or is none, and reads on with what stands behind it. What is no call is what the
// model writes to the reader.
func (h *harmonyParser) leaveCall(v verdict, again []byte) {
	raw := h.raw
	h.call, h.raw, h.tail, h.ts.unread = nil, nil, nil, nil
	switch {
	case raw == nil && v == broken:
		h.state = harmonySkip
	case v == ended || v == endedBefore:
		h.state = harmonyEnded
		h.ts.settle(true)
	default:
		h.ts.settle(false)
		h.state, h.plain, again = harmonyBody, true, raw
	}
	for _, c := range again {
		h.step(c)
	}
}

// beginCall reads the arguments of a call, or a call with its name in it.
func (h *harmonyParser) beginCall() {
	h.raw = []byte{}
	if h.tool == "" {
		h.call = newJSONCall(h.ts)
		return
	}
	name := h.tool
	h.call = checked(h.ts, &headCall{ts: h.ts, name: func(string) string { return name }})
}

// emptyCall is a call whose message has nothing in it, of a tool that needs no arguments.
func (h *harmonyParser) emptyCall() {
	if !h.ts.has(h.tool) || !h.ts.hasAll(h.tool, nil) || !h.ts.repair(RepairUnclosed) {
		return
	}
	h.out.add(ToolStart, h.tool)
	h.out.add(ToolArgs, "{}")
	h.out.add(ToolEnd, "")
	h.ts.settle(true)
}

func (h *harmonyParser) mark(m string) {
	h.skipped = nil
	if h.state == harmonyBegin {
		h.begin(m)
	}
	isEnd := slices.Contains(harmonyEnds, m)
	if isEnd || m == harmonyStart || m == harmonyChannel {
		h.endText()
	}
	switch {
	case m == harmonyMessage && h.state == harmonyHeader:
		h.open()
	case m == harmonyStart, m == harmonyChannel && h.state != harmonyHeader:
		h.state, h.header = harmonyHeader, append(h.header[:0], m...)
		h.ts.settle(false)
	case isEnd:
		if h.state == harmonyCall {
			h.emptyCall()
		}
		if known, _ := cutWord(h.channel(), "analysis", "final"); h.state == harmonyHeader && known != "" {
			h.leaveHeader()
		}
		h.state, h.kind, h.header, h.out.apart = harmonyBegin, Text, h.header[:0], true
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
	h.state, h.kind, h.tool, h.blank, h.out.apart = harmonyBody, Text, "", nil, true
	h.plain = strings.Contains(string(h.header), "to=")
	if strings.HasPrefix(h.channel(), "analysis") {
		h.kind = Reasoning
	}
	if h.recipient() {
		h.state = harmonyCall
		return
	}
	h.ts.settle(false)
}

// channel is what stands behind the last mark of a channel in the header.
func (h *harmonyParser) channel() string {
	header := string(h.header)
	return after(header[max(strings.LastIndex(header, harmonyChannel), 0):], harmonyChannel)
}

// recipient finds what the header names as the message's recipient: a tool, or "" if the call is to name one itself.
func (h *harmonyParser) recipient() bool {
	all := strings.Split(string(h.header), "to=")[1:]
	for _, to := range all {
		if h.tool = strings.TrimPrefix(word(to), harmonySpace); h.ts.has(h.tool) {
			return true
		}
	}
	for _, to := range all {
		if tool, ok := h.toolOf(to); ok {
			h.tool = tool
			return true
		}
	}
	if _, to, ok := strings.Cut(h.channel(), harmonySpace); ok && len(all) == 0 {
		h.tool = harmonySpace + word(to)
		_, ok = h.ts.meant(h.tool)
		return ok
	}
	return false
}

// toolOf reads the name of a tool where a header says who a message is for. A name with more than a namespace wrong goes with
// one, so that it counts as mended.
func (h *harmonyParser) toolOf(to string) (name string, ok bool) {
	written := word(to)
	name = strings.TrimPrefix(written, harmonySpace)
	if _, ok := h.ts.meant(name); ok || h.ts.strict {
		return name, ok
	}
	if strings.TrimSuffix(written, ".")+"." == harmonySpace {
		next := word(strings.TrimLeft(to[len(written):], blanks))
		if _, ok := h.ts.meant(next); ok {
			return harmonySpace + next, true
		}
		return "", len(h.ts.tools) > 0
	}
	name, isGlued := strings.CutSuffix(name, "json")
	return harmonySpace + name, isGlued && h.ts.has(name)
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

// say gives out words, those to the reader as what may be a call.
func (h *harmonyParser) say(k Kind, words string) {
	if k != Text || h.plain {
		h.out.add(k, words)
		return
	}
	for i := range len(words) {
		h.text.step(words[i])
	}
}

// endText is where words end: what is held of them does not go on in another message.
func (h *harmonyParser) endText() {
	if h.state == harmonyOutside || h.state == harmonyBody {
		h.out.pieces = h.text.Finish(h.out.take())
		h.text.reset()
		h.plain = false
	}
}

func (h *harmonyParser) content(c byte) {
	switch h.state {
	case harmonyBegin:
		h.header = append(h.header, c)
		if b := string(h.header); !isHarmonyLead(b) || len(b) > maxName {
			h.state, h.kind, h.header = harmonyOutside, Text, nil
			h.say(Text, b)
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
			h.out.add(Text, string(h.skipped))
			h.state, h.kind, h.skipped, h.plain = harmonyOutside, Text, nil, true
		}
	case harmonyEnded:
		if (c == '}' || c == ']') && h.ts.repair(RepairBracket) {
			h.ts.settle(true)
		}
	case harmonyOutside, harmonyBody:
		h.say(h.kind, oneByte[c])
	case harmonyCall:
		switch {
		case c == '{':
			h.beginCall()
			h.step(c)
		case isBlank(c) && len(h.blank) < maxName:
			h.blank = append(h.blank, c)
		default: // no arguments: what a model writes to a tool is then its answer
			h.state = harmonyBody
			h.say(h.kind, string(h.blank)+oneByte[c])
		}
	}
}
