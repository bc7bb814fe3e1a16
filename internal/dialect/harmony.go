package dialect

import "strings"

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
		h := &harmonyParser{ts: newToolset(o), kind: Text}
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

var harmonyMarks = []string{harmonyChannel, harmonyMessage, harmonyStart, harmonyEnd, "<|constrain|>", "<|return|>", "<|call|>"}

type harmonyState uint8

const (
	harmonyOutside harmonyState = iota // text of models that leave the format
	harmonyBegin                       // where the reply begins: the rest of a header, or not
	harmonyHeader
	harmonyBody
	harmonyCall  // arguments
	harmonyEnded // after a call
	harmonySkip  // rest of a broken call
)

type harmonyParser struct {
	ts     toolset
	out    joiner
	state  harmonyState
	kind   Kind   // of a body
	held   []byte // may be the start of a mark
	header []byte
	tool   string
	call   *argsReader // nil while its "{" has not come
	blank  []byte      // before the "{"

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
	if h.state == harmonyBegin && !strings.HasPrefix(string(h.header), harmonyTo) {
		h.out.add(Text, string(h.header))
	}
	h.out.add(Text, string(h.skipped))
	h.held, h.skipped = nil, nil
	return h.out.take()
}

func (h *harmonyParser) step(c byte) {
	if h.state == harmonyCall && h.call != nil { // marks may stand in strings, so JSON alone decides where it ends
		v := h.call.last(c, &h.out)
		h.ts.settle(true)
		if v != more {
			h.state, h.call = harmonyEnded, nil
			if v == broken {
				h.state = harmonySkip
				h.step(c)
			}
		}
		return
	}
	h.held = splitMarks(h.held, c, harmonyMarks, h.mark, h.content)
}

func (h *harmonyParser) mark(m string) {
	h.skipped = nil
	if h.state == harmonyBegin {
		h.state = harmonyHeader
		if !strings.HasPrefix(string(h.header), harmonyTo) {
			h.state, h.header = harmonyOutside, nil
		}
	}
	switch {
	case m == harmonyMessage && h.state == harmonyHeader:
		h.open()
	case m == harmonyStart, m == harmonyChannel && h.state != harmonyHeader:
		h.state, h.header = harmonyHeader, append(h.header[:0], m...)
	case h.state == harmonyHeader:
		h.header = append(h.header, m...)
	case m == harmonyMessage || m == "<|constrain|>": // out of place
	default:
		h.state, h.kind = harmonyOutside, Text
	}
}

// open begins the body that the header announces.
func (h *harmonyParser) open() {
	header := string(h.header)
	h.state, h.kind, h.tool, h.blank = harmonyBody, Text, "", nil
	if strings.HasPrefix(after(header, harmonyChannel), "analysis") {
		h.kind = Reasoning
	}
	tool := strings.TrimPrefix(word(after(header, "to=")), "functions.")
	if h.ts.has(tool) {
		h.state, h.tool = harmonyCall, tool
	}
}

// after is what stands behind mark, "" if it is missing.
func after(s, mark string) string {
	_, rest, _ := strings.Cut(s, mark)
	return rest
}

func word(s string) string {
	if i := strings.IndexAny(s, " \t\n<"); i >= 0 {
		return s[:i]
	}
	return s
}

func (h *harmonyParser) content(c byte) {
	switch h.state {
	case harmonyBegin:
		h.header = append(h.header, c)
		if b := string(h.header); !strings.HasPrefix(harmonyTo, b) && !strings.HasPrefix(b, harmonyTo) || strings.Contains(b, "\n") || len(b) > maxName {
			h.state, h.kind, h.header = harmonyOutside, Text, nil
			h.out.add(Text, b)
		}
	case harmonyHeader:
		if h.header = append(h.header, c); len(h.header) > maxName {
			h.state, h.kind = harmonyOutside, Text
			h.out.add(Text, string(h.header))
		}
	case harmonySkip:
		if h.skipped = append(h.skipped, c); len(h.skipped) > maxSkip {
			h.out.add(Text, string(h.skipped))
			h.state, h.kind, h.skipped = harmonyOutside, Text, nil
		}
	case harmonyOutside, harmonyBody:
		h.out.add(h.kind, oneByte[c])
	case harmonyCall:
		switch {
		case c == '{':
			h.call = newArgs(&h.ts, h.tool)
			h.out.add(ToolStart, h.tool)
			h.step(c)
		case isBlank(c) && len(h.blank) < maxName:
			h.blank = append(h.blank, c)
		default: // no arguments: what a model writes to a tool is then its answer
			h.state = harmonyBody
			h.out.add(h.kind, string(h.blank)+oneByte[c])
		}
	}
}
