package generate

import (
	"context"
	"slices"
	"strings"

	"hearth/internal/jinja"
)

// fit rewrites a conversation into one that a template of this form renders. Nothing that was said is left out; what has
// no place of its own goes to a neighbouring turn.
func (f form) fit(turns []turn) []turn {
	turns = f.placeSystem(f.placeCalls(turns))
	var out []turn
	for _, t := range turns {
		prev := last(out)
		switch {
		case prev == nil:
		case t.role == roleUser && prev.role == roleUser && (!f.users || prev.reminder):
			prev.text, prev.reminder = paragraphs(prev.text, t.text), prev.reminder && t.reminder
			continue
		case t.role == roleUser && prev.role == roleTool && !f.afterTool:
			prev.text = paragraphs(prev.text, t.text)
			continue
		case t.role == roleAssistant && prev.role == roleAssistant && !f.assistants:
			prev.text, prev.reasoning = paragraphs(prev.text, t.text), paragraphs(prev.reasoning, t.reasoning)
			prev.calls = slices.Concat(prev.calls, t.calls)
			continue
		}
		out = append(out, t)
	}
	return f.begin(out)
}

func last(turns []turn) *turn {
	if len(turns) == 0 {
		return nil
	}
	return &turns[len(turns)-1]
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
	case at < 0 && !f.alone && len(turns) > 0:
		turns[len(turns)-1].role = roleUser
	case at < 0 || f.first:
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

// placeCalls puts calls and results into the turns that the template has for them, and words where it has none.
func (f form) placeCalls(turns []turn) []turn {
	var out []turn
	for len(turns) > 0 {
		t := turns[0]
		turns = turns[1:]
		switch {
		case t.role == roleTool && (!f.tools || !f.orphans && t.answers.name == ""):
			out = append(out, turn{role: roleUser, text: responseOpen + t.text + responseClose})
		case t.role == roleAssistant && !f.empty && t.text == "" && len(t.calls) == 0 && len(turns) > 0:
		case len(t.calls) == 0:
			out = append(out, t)
		case !f.calls:
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
// template needs it those that only follow what a user says.
func (f form) resultsOf(t turn, turns []turn) (results, rest []turn) {
	for i, r := range turns {
		switch {
		case r.role == roleAssistant || f.orphans && r.role != roleTool:
			return results, append(rest, turns[i:]...)
		case r.role == roleTool && (len(rest) == 0 || slices.Contains(t.calls, r.answers)):
			results = append(results, r)
		default:
			rest = append(rest, r)
		}
	}
	return results, rest
}

// exchange is an assistant's turn with calls and the results that follow it, one call after the other where the template
// has no room for several. Calls without a result get one that says so, unless the template does not mind or nothing follows.
func (f form) exchange(t turn, results []turn, more bool) []turn {
	if !f.orphans && (more || len(results) > 0) {
		for _, c := range t.calls {
			if !slices.ContainsFunc(results, func(r turn) bool { return r.answers == c }) {
				results = append(slices.Clip(results), turn{role: roleTool, text: "[no result]", answers: c})
			}
		}
	}
	var out []turn
	switch {
	case t.text == "":
	case !f.said && f.assistants:
		out = append(out, turn{role: roleAssistant, name: t.name, text: t.text, reasoning: t.reasoning})
		t.text, t.reasoning = "", ""
	case !f.mixed && t.reasoning != "":
		t.text, t.reasoning = "", paragraphs(t.reasoning, t.text)
	}
	if f.parallel || len(t.calls) < 2 {
		return append(append(out, t), results...)
	}
	for i, c := range t.calls {
		one := turn{from: t.from, role: roleAssistant, calls: []*call{c}}
		if i == 0 {
			one.name, one.text, one.reasoning = t.name, t.text, t.reasoning
		}
		out = append(out, one)
		for _, r := range results {
			if r.answers == c {
				out = append(out, r)
			}
		}
	}
	for _, r := range results {
		if !slices.Contains(t.calls, r.answers) {
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
	var out []turn
	for _, t := range turns[:lead] {
		if p := last(out); p != nil && !(f.system && f.systems) {
			p.text = paragraphs(p.text, t.text)
			continue
		}
		out = append(out, t)
	}
	rest := turns[lead:]
	if lead > 0 && !f.system {
		out[0].role = roleUser
		if len(rest) > 0 && rest[0].role == roleUser {
			out[0].text, rest = paragraphs(out[0].text, rest[0].text), rest[1:]
		}
	}
	for _, t := range rest {
		if t.role == roleSystem && !f.late {
			t = turn{from: t.from, role: roleUser, reminder: true, text: "<system-reminder>\n" + t.text + "\n</system-reminder>"}
			if p := last(out); p != nil && p.role == roleUser {
				p.text = paragraphs(p.text, t.text)
				continue
			}
		}
		out = append(out, t)
	}
	return out
}

// messages are turns in the shape of OpenAI's messages, which templates expect. Like in the reference, what is
// missing is left out and not null; only content is always there. They break off when ctx ends.
func (f form) messages(ctx context.Context, turns []turn) *jinja.List {
	out := jinja.NewList()
	for _, t := range turns {
		if ctx.Err() != nil {
			break
		}
		d := object("role", t.role, "content", f.content(t.text))
		d.Tag = t.from
		if t.name != "" {
			d.Set("name", t.name)
		}
		if t.reasoning != "" { // the names that templates read
			d.Set("reasoning_content", t.reasoning)
			d.Set("reasoning", t.reasoning)
			d.Set("thinking", t.reasoning)
		}
		if len(t.calls) > 0 {
			calls := jinja.NewList()
			for _, c := range t.calls {
				calls.Items = append(calls.Items, object("id", f.ids.of(c), "type", "function",
					"function", object("name", c.name, "arguments", f.arguments(c.args))))
			}
			d.Set("tool_calls", calls)
			if f.null && t.text == "" {
				d.Set("content", nil)
			}
		}
		if c := t.answers; c != nil {
			d.Set("tool_call_id", f.ids.of(c))
			if c.name != "" {
				d.Set("name", c.name)
			}
		}
		out.Items = append(out.Items, d)
	}
	return out
}

// content is a text, or a list of one text part where the template wants that.
func (f form) content(text string) jinja.Value {
	if f.list {
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
