package generate

import (
	"context"
	"slices"
	"strings"

	"hearth/internal/jinja"
)

// fit rewrites a conversation into one that a template of this form renders. Nothing that was said is left out; what has
// no place of its own goes to a neighbouring turn. It uses turns up: what it returns may be in the same memory.
func (f form) fit(turns []turn) []turn {
	turns = f.placeImages(f.placeSystem(f.placeCalls(f.placePreambles(turns))))
	out := merger{turns: turns[:0]}
	for _, t := range turns {
		prev := out.last()
		switch {
		case prev == nil:
		case t.role == roleUser && prev.role == roleUser && (!f.has(usersInRow) || prev.reminder):
			prev.reminder = prev.reminder && t.reminder
			out.join(t)
			continue
		case t.role == roleUser && prev.role == roleTool && !f.has(userAfterTool):
			out.join(t)
			continue
		case t.role == roleAssistant && prev.role == roleAssistant && !f.has(assistantsInRow):
			out.join(t)
			continue
		}
		out.add(t)
	}
	return f.begin(out.done())
}

// merger collects turns, some of which join the one before them, in time that is linear in what all of them say. It may
// write over the slice that it reads from: it never has more turns than were read.
type merger struct {
	turns           []turn
	text, reasoning strings.Builder // what joins made of the last turn's; empty until there are some
	calls           bool            // the last turn's calls are the merger's own
}

// last is the turn that the next one could join, nil if there is none. Its text may be out of date.
func (m *merger) last() *turn {
	if len(m.turns) == 0 {
		return nil
	}
	return &m.turns[len(m.turns)-1]
}

// add begins a turn.
func (m *merger) add(t turn) {
	m.end()
	m.turns = append(m.turns, t)
}

// join adds what t says, thinks and calls to the last turn.
func (m *merger) join(t turn) {
	prev := m.last()
	joinText(&m.text, prev.text, t.text)
	joinText(&m.reasoning, prev.reasoning, t.reasoning)
	if len(t.calls) > 0 {
		if !m.calls {
			prev.calls, m.calls = slices.Clip(prev.calls), true
		}
		prev.calls = append(prev.calls, t.calls...)
	}
}

// joinText adds a paragraph to those in b, which begin with first.
func joinText(b *strings.Builder, first, text string) {
	if text == "" {
		return
	}
	if b.Len() == 0 {
		b.WriteString(first)
	}
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	b.WriteString(text)
}

// end completes the last turn.
func (m *merger) end() {
	prev := m.last()
	if m.text.Len() > 0 {
		prev.text, m.text = m.text.String(), strings.Builder{}
	}
	if m.reasoning.Len() > 0 {
		prev.reasoning, m.reasoning = m.reasoning.String(), strings.Builder{}
	}
	m.calls = false
}

// done gives the turns.
func (m *merger) done() []turn {
	m.end()
	return m.turns
}

// paragraphs joins texts that are not empty.
func paragraphs(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// begin puts a user's turn where the template wants one: before an answer that opens the conversation, or in place of a
// system message that is all there is.
func (f form) begin(turns []turn) []turn {
	at := slices.IndexFunc(turns, func(t turn) bool { return t.role != roleSystem })
	switch {
	case at < 0 && !f.has(systemAlone) && len(turns) > 0:
		turns[len(turns)-1].role = roleUser
	case at < 0 || f.has(assistantFirst):
	case turns[at].role == roleUser && !slices.ContainsFunc(turns, asks):
		turns[at].text = paragraphs("Go on.", turns[at].text)
	case turns[at].role != roleUser:
		return slices.Insert(turns, at, turn{role: roleUser, text: "Go on."})
	}
	return turns
}

// asks tells a turn in which the user says something of their own: templates look for the last such one.
func asks(t turn) bool { return t.role == roleUser && !strings.HasPrefix(t.text, responseOpen) }

const (
	responseOpen  = "<tool_response>\n"
	responseClose = "\n</tool_response>"
)

// placePreambles joins what the assistant says in a turn of its own with the calls that follow at once, where the template would
// take it for an answer with which the reasoning before it goes.
func (f form) placePreambles(turns []turn) []turn {
	if !f.has(answersEndReasoning) || !f.has(callsWithText) && !f.has(callsAfterText) {
		return turns
	}
	leads := make([]bool, len(turns)+1) // to calls, without anybody else's words in between
	for i, t := range slices.Backward(turns) {
		leads[i] = t.role == roleAssistant && (len(t.calls) > 0 || leads[i+1])
	}
	out := merger{turns: turns[:0]}
	for i, t := range turns {
		if prev := out.last(); prev != nil && prev.role == roleAssistant && len(prev.calls) == 0 && leads[i] {
			out.join(t)
			continue
		}
		out.add(t)
	}
	return out.done()
}

// placeCalls puts calls and results into the turns that the template has for them, and words where it has none.
func (f form) placeCalls(turns []turn) []turn {
	out := turns[:0] // calls, which may become several turns, need more
	if slices.ContainsFunc(turns, func(t turn) bool { return len(t.calls) > 0 }) {
		out = make([]turn, 0, len(turns))
	}
	for len(turns) > 0 {
		t := turns[0]
		turns = turns[1:]
		switch {
		case t.role == roleTool && (!f.has(toolResults) || !f.has(callsWithoutResult) && t.answers.name == ""):
			out = append(out, turn{role: roleUser, text: responseOpen + t.text + responseClose})
		case t.role == roleAssistant && !f.has(assistantEmpty) && t.text == "" && len(t.calls) == 0 && len(turns) > 0:
		case len(t.calls) == 0:
			out = append(out, t)
		case !f.has(callsPrinted):
			t.text, t.calls = paragraphs(t.text, f.write(t.calls)), nil
			out = append(out, t)
		default:
			var results []turn
			results, turns = f.resultsOf(t, turns)
			out = append(out, f.exchange(t, results, len(turns) > 0)...)
		}
	}
	return out
}

// resultsOf takes the results that answer t's calls out of the turns after it: those that follow at once, and where the
// template needs it those that only follow what a user says. It puts them before what they follow, in turns itself.
func (f form) resultsOf(t turn, turns []turn) (results, rest []turn) {
	var others []turn // before end, in order, without the results
	var calls map[*call]bool
	n, end := 0, 0
	for ; end < len(turns); end++ {
		r := turns[end]
		if r.role == roleAssistant || f.has(callsWithoutResult) && r.role != roleTool {
			break
		}
		if len(others) > 0 && calls == nil {
			calls = make(map[*call]bool, len(t.calls))
			for _, c := range t.calls {
				calls[c] = true
			}
		}
		if r.role == roleTool && (len(others) == 0 || calls[r.answers]) {
			turns[n] = r
			n++
		} else {
			others = append(others, r)
		}
	}
	copy(turns[n:end], others)
	return turns[:n:n], turns[n:]
}

// exchange is an assistant's turn with calls and the results that follow it, one call after the other where the template
// has no room for several. Calls without a result get one that says so, unless the template does not mind or nothing follows.
func (f form) exchange(t turn, results []turn, more bool) []turn {
	missing, apart := !f.has(callsWithoutResult) && (more || len(results) > 0), !f.has(callsParallel) && len(t.calls) > 1
	var to map[*call][]turn // the results by what they answer
	if missing || apart {
		to = make(map[*call][]turn, len(t.calls))
		for _, r := range results {
			to[r.answers] = append(to[r.answers], r)
		}
	}
	if missing {
		var none []turn
		for _, c := range t.calls {
			if len(to[c]) == 0 {
				to[c] = []turn{noResult(c)}
				none = append(none, to[c]...)
			}
		}
		end := len(results) // of those of the turn: what is behind them answers others
		for end > 0 && results[end-1].answers.turn != t.calls[0].turn {
			end--
		}
		if end == 0 {
			end = len(results)
		}
		results = slices.Concat(results[:end], none, results[end:])
	}
	var out []turn
	switch {
	case t.text == "" || f.has(callsAfterText): // see messages
	case !f.has(callsWithText) && f.has(assistantsInRow):
		said := turn{role: roleAssistant, name: t.name, text: t.text}
		if t.text = ""; !f.has(reasoningByCalls) {
			said.reasoning, t.reasoning = t.reasoning, ""
		}
		out = append(out, said)
	case !f.has(callsWithReasoning) && t.reasoning != "":
		t.text, t.reasoning = "", paragraphs(t.reasoning, t.text)
	}
	if !apart {
		return append(append(out, t), results...)
	}
	for i, c := range t.calls {
		one := turn{from: t.from, role: roleAssistant, calls: []*call{c}}
		if i == 0 {
			one.name, one.text, one.reasoning = t.name, t.text, t.reasoning
		}
		out = append(append(out, one), to[c]...)
		delete(to, c)
	}
	for _, r := range results {
		if to[r.answers] != nil { // it answers none of them
			out = append(out, r)
		}
	}
	return out
}

// placeSystem puts system messages where the template prints them: at the start as one or several, else in front of the
// user's first words; later ones in place, else as a reminder in a user's turn.
func (f form) placeSystem(turns []turn) []turn {
	lead := slices.IndexFunc(turns, func(t turn) bool { return t.role != roleSystem })
	if lead < 0 {
		lead = len(turns)
	}
	out := merger{turns: turns[:0]}
	rest := turns[lead:]
	for _, t := range turns[:lead] {
		if out.last() != nil && !(f.has(systemFirst | systemSeveral)) {
			out.join(t)
			continue
		}
		out.add(t)
	}
	if lead > 0 && !f.has(systemFirst) {
		out.turns[0].role = roleUser
		if len(rest) > 0 && rest[0].role == roleUser {
			out.join(turn{text: rest[0].text})
			rest = rest[1:]
		}
	}
	for _, t := range rest {
		if t.role == roleSystem && !f.has(systemLater) {
			t = turn{from: t.from, role: roleUser, reminder: true, text: "<system-reminder>\n" + t.text + "\n</system-reminder>"}
			if p := out.last(); p != nil && p.role == roleUser {
				out.join(t)
				continue
			}
		}
		out.add(t)
	}
	return out.done()
}

// messages are turns in the shape of OpenAI's messages, which templates expect. Like in the reference, what is
// missing is left out and not null; only content is always there. They break off when ctx ends.
func (f form) messages(ctx context.Context, turns []turn) *jinja.List {
	out := &jinja.List{Items: make([]jinja.Value, 0, len(turns))}
	for _, t := range turns {
		if ctx.Err() != nil {
			break
		}
		before := ""
		if len(t.calls) > 0 && f.has(callsAfterText) {
			before, t.text = t.text, ""
		}
		d := object("role", t.role, "content", f.content(t.text))
		if t.reasoning != "" && f.has(reasoningIsPart) {
			d.Set("content", jinja.NewList(object("type", "thinking", "thinking", t.reasoning), object("type", "text", "text", t.text)))
		}
		d.Tag = t.from
		if t.name != "" {
			d.Set("name", t.name)
		}
		if t.reasoning != "" || t.open { // the names that templates read
			d.Set("reasoning_content", t.reasoning)
			d.Set("reasoning", t.reasoning)
			d.Set("thinking", t.reasoning)
		}
		if len(t.calls) > 0 {
			calls := jinja.NewList()
			for _, c := range t.calls {
				calls.Items = append(calls.Items, object("id", c.idIn(f.ids), "type", "function",
					"function", object("name", c.name, "arguments", f.arguments(c.args))))
			}
			d.Set("tool_calls", calls)
			if before != "" {
				d.Set(preambleField, before)
			}
			if f.has(contentIsNull) && t.text == "" && !(f.has(reasoningIsPart) && t.reasoning != "") {
				d.Set("content", nil)
			}
		}
		if c := t.answers; c != nil {
			d.Set("tool_call_id", c.idIn(f.ids))
			if c.name != "" {
				d.Set("name", c.name)
			}
		}
		out.Items = append(out.Items, d)
	}
	return out
}

// content is a text, or a list of parts where it has images, or of one text part where the template wants that.
func (f form) content(text string) jinja.Value {
	if f.seen.in(text) {
		list := jinja.NewList()
		for {
			before, pic, after := f.seen.cut(text)
			if before != "" {
				list.Items = append(list.Items, object("type", "text", "text", before))
			}
			if pic == nil {
				return list
			}
			list.Items = append(list.Items, f.imagePart())
			text = after
		}
	}
	if f.has(contentIsList) {
		return jinja.NewList(object("type", "text", "text", text))
	}
	return text
}

// object makes a dict of alternating keys and values.
func object(kv ...any) *jinja.Dict {
	d := jinja.NewDict()
	for i := 0; i < len(kv); i += 2 {
		d.Set(kv[i].(string), kv[i+1])
	}
	return d
}
