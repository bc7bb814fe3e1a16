package generate

import (
	"strings"
	"unicode"

	"hearth/internal/chat"
	"hearth/internal/dialect"
	"hearth/internal/transcript"
)

// ask is a request on its way to a prompt.
type ask struct {
	*chat.Request
	think chat.Thinking
	told  string // about tools
	bare  bool   // see promptOf
	seen  *pictures

	prefill string          // the answer that the model is to go on with, where it begins with reasoning in tags
	inline  *dialect.Inline // that reasoning; nil: there is none
	asText  bool            // its tags stay in the text
}

// readInline takes reasoning that stands in tags where an answer begins out of its text, as the parser does where the model says
// it, unless the template takes it out itself.
func (m *prompter) readInline(a *ask, turns []turn) {
	f := &m.forms[0]
	for i := range turns {
		t := &turns[i]
		if t.role != roleAssistant {
			continue
		}
		k, ok := m.family.Inline(t.text)
		if !ok {
			continue
		}
		trait := takesInline
		if len(t.calls) > 0 {
			trait = takesInlineByCalls
		}
		if !k.Open && k.Own && t.reasoning == "" && f.has(trait) {
			continue
		}
		if i == len(turns)-1 && len(t.calls) == 0 { // the model goes on with it
			if t.reasoning != "" || !k.Open && k.Text == "" {
				continue
			}
			if a.prefill, a.inline = t.text, &k; a.asText {
				continue
			}
		} else if k.Open {
			continue
		}
		t.text, t.open = k.Text, k.Open
		if strings.TrimSpace(t.reasoning) != strings.TrimSpace(k.Reasoning) {
			t.reasoning = paragraphs(t.reasoning, k.Reasoning)
		}
	}
}

// prints tells whether a template has written the reasoning that an unfinished answer begins with in the family's tags.
func (a *ask) prints(f *dialect.Family, text string) bool {
	text, ok := strings.CutSuffix(strings.TrimSpace(transcript.Unmark(text)), strings.TrimSpace(a.inline.Text))
	if !a.inline.Open {
		end := strings.LastIndex(text, f.Close)
		if end < 0 {
			return false
		}
		text = strings.TrimSpace(text[:end])
	}
	text, said := strings.CutSuffix(text, strings.TrimSpace(a.inline.Reasoning))
	return ok && said && f.Opened(text)
}

// unblock takes out what a template has put before an unfinished answer, not knowing that this begins with reasoning: a block
// with nothing in it, or one of its tags.
func (m *prompter) unblock(a *ask, out *rendering) {
	prefill, _ := m.guard.Mark(a.prefill)
	before, ok := strings.CutSuffix(strings.TrimRightFunc(out.text, unicode.IsSpace), strings.TrimSpace(prefill))
	if !ok || !a.inline.Open || !a.inline.Own {
		return
	}
	from, end := len(before), 0 // of the message; where the others end
	for _, s := range out.spans {
		if s.Tag == len(a.Messages) {
			from = min(from, s.From)
		} else {
			end = max(end, s.To)
		}
	}
	if from == len(before) { // the template writes it apart, or does not tell
		from = end
	}
	if cut := m.family.Unopen(before); len(cut) >= from {
		out.text = cut + out.text[len(before):]
	}
}
