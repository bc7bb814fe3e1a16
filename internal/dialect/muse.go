package dialect

import "strings"

// muse is the format of Muse: every message has a header that names who it is for, oneself for reasoning; calls are XML
// in messages to the tool. The prompt ends inside the first header.
//
//	 to=self<|message|>…<|eom|><|start|>assistant to=f<|message|><atem:function_calls>
//	<atem:invoke name="f">⏎<atem:parameter name="p">v</atem:parameter>⏎</atem:invoke>⏎</atem:function_calls><|eot|>
var muse = &Family{
	Name: "muse", Names: []string{"muse", "muse_spark", "muse_glimmer"}, Shared: none,
	Think: &Think{Open: " to=self" + museMessage, Close: museEnd, Leave: museEnd, at: beforeAnswer,
		ReasoningNames: []string{"muse", "muse_spark"}},
	Resume: []string{museStart + "assistant", museMessage}, Replay: ReplayPrinted,
	Calls: &Calls{
		Force: func(tool string) string {
			if tool == "" {
				return " to="
			}
			return " to=" + tool + museMessage + "<atem:function_calls>\n<atem:invoke name=\"" + tool + "\">\n"
		},
		Written: eachCall("", "<|eom|><|start|>assistant", "<|eot|>", " to={{ c.name }}<|message|><atem:function_calls>\n"+
			`<atem:invoke name="{{ c.name }}">`+"\n"+`{% for k, v in c.arguments.items() %}<atem:parameter name="{{ k }}">`+
			`{{ v if v is string else v | tojson }}</atem:parameter>{{ "\n" }}{% endfor %}`+"</atem:invoke>\n</atem:function_calls>"),
		Earlier: hermesCalls, IDs: IDsKept, Object: noObject,
		Notation: &Notation{Call: " to=$name<|message|><atem:function_calls>\n<atem:invoke name=\"$name\">\n$args</atem:invoke>\n</atem:function_calls>",
			Between: "<|eom|><|start|>assistant", Close: "<|eot|>", Args: ArgsTags, Param: "<atem:parameter name=\"$key\">$value</atem:parameter>\n",
			Ends: []string{"<atem:parameter", "</atem:invoke>", "</atem:function_calls>"}, Never: museMarks,
			Begins: &Beginnings{Anywhere: []string{"<atem:function_calls>", "<atem:invoke"}}},
	},
	Markers: append(museMarks, museCalls.tags()...), Control: museMarks,
	Ends: none, Builtin: noBuiltin,
	New: func(o Options) Parser {
		m := &museParser{tagged: *newTagged(museCalls, noThink, museFirst, Options{Tools: o.Tools, Form: o.Form, NoRepair: o.NoRepair, Repaired: o.Repaired, Mended: o.Mended, Continued: true})}
		switch {
		case o.InReasoning:
			m.state = museReasoning
		case o.Continued:
			m.state = museText
		}
		return m
	},
	matches: func(e Evidence) bool { return e.mentions("<atem:function_calls>") || e.token("<atem:function_calls>") },
	syntax:  noSyntax,
}

const (
	museStart   = "<|start|>"
	museMessage = "<|message|>"
	museEnd     = "<|eom|>"
)

var museMarks = []string{museStart, museMessage, museEnd, "<|eot|>"}

var museCalls = (&syntax{
	openers: []opener{{tag: "<atem:invoke", call: newXML(&xmlSyntax{param: "<atem:parameter", paramClose: "</atem:parameter>",
		callClose: "</atem:invoke>", outer: []string{"</atem:function_calls>"}, before: "<atem:function_calls>", open: "<atem:invoke", lines: true})}},
	sections: []string{"<atem:function_calls>"},
	closers:  []string{"</atem:invoke>", "</atem:function_calls>"},
}).leaking()

var museFirst = firstBytes(museCalls, noThink)

type museState uint8

const (
	museHeader museState = iota // before <|message|>
	museReasoning
	museText // the answer, or calls
)

// museParser takes messages apart; what is not reasoning goes to the parser of calls.
type museParser struct {
	tagged
	state  museState
	marks  []byte // may be the start of a mark
	header []byte
	marked bool // a mark came: what stands before it began in the prompt
}

func (m *museParser) InReasoning() bool { return m.state == museReasoning }

func (m *museParser) Feed(dst []Piece, output string) []Piece { return m.out.feed(dst, output, m.byte) }

func (m *museParser) Finish(dst []Piece) []Piece {
	m.out.pieces = dst
	for _, c := range m.marks {
		m.content(c)
	}
	if m.state == museHeader && !m.marked && !strings.HasPrefix(string(m.header), " to=") {
		m.leaveHeader()
	}
	m.marks = nil
	return m.tagged.Finish(m.out.take())
}

// byte takes a byte of the output. Marks count everywhere: they are tokens that no value of a call holds.
func (m *museParser) byte(c byte) {
	m.marks = splitMarks(m.marks, c, museMarks, m.mark, m.content)
}

func (m *museParser) mark(mark string) {
	m.marked = true
	switch {
	case mark == museMessage && m.state == museHeader:
		to := word(after(string(m.header), "to="))
		m.lead = to == "" || to == "user" // to others are arguments
		if m.state = museText; to == "self" {
			m.state = museReasoning
		}
		m.header = m.header[:0]
	case mark != museMessage:
		if m.state == museText { // what is held of a call does not go on in another message
			m.out.pieces = m.tagged.Finish(m.out.take())
			m.tagged.reset()
		}
		m.state, m.header = museHeader, m.header[:0]
	}
}

func (m *museParser) content(c byte) {
	switch m.state {
	case museHeader:
		if m.header = append(m.header, c); len(m.header) > maxName || !isMuseHeader(string(m.header)) {
			m.leaveHeader()
		}
	case museReasoning:
		m.out.add(Reasoning, oneByte[c])
	case museText:
		m.tagged.step(c)
	}
}

// leaveHeader takes what was no header for text.
func (m *museParser) leaveHeader() {
	h := m.header
	m.state, m.header = museText, nil
	for _, c := range h {
		m.tagged.step(c)
	}
}

// isMuseHeader tells whether h may be a header so far: nothing, or the role, and who the message is for.
func isMuseHeader(h string) bool {
	rest := strings.TrimPrefix(h, "assistant")
	isTo := strings.HasPrefix(rest, " to=") && !strings.ContainsAny(rest[1:], " \n")
	return strings.HasPrefix("assistant", h) || strings.HasPrefix(" to=", rest) || isTo
}
