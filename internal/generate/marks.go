package generate

import (
	"slices"
	"strings"
	"unicode/utf8"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/transcript"
)

// marks are places in the prompt, in tokens, at which another prompt is likely to part from it or to begin anew: where
// messages begin and end, among them the end of system prompt and tools, and before the generation prompt. They are in
// order, and none is at either end of the prompt. Where a message begins inside a piece of text that is encoded as a
// whole, the mark is at the beginning of that piece.
func (p *prompt) marks() []int {
	var out []int
	add := func(at int) {
		if n := p.token(p.encoded.Before(at)); n > 0 && n < len(p.tokens) {
			out = append(out, n)
		}
	}
	for _, s := range p.draft.Spans {
		add(s.From)
		add(s.To)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// messageAt tells which of the request's messages a token of the prompt is in: one past the last for the generation
// prompt, -1 where it is not known. What a template writes before the first message belongs to a system message that
// comes first.
func (p *prompt) messageAt(h *transcript.History, messages []chat.Message, token int) int {
	spans := p.draft.Spans
	if len(spans) == 0 || token >= len(p.tokens) {
		return -1
	}
	at := h.TextAt(&p.encoded.Tokens, p.id(token))
	if at < spans[0].From {
		if messages[0].Role == chat.System {
			return 0
		}
		return -1
	}
	end := 0
	for _, s := range spans {
		end = max(end, s.To)
	}
	if at >= end {
		return len(messages)
	}
	for _, s := range slices.Backward(spans) {
		if s.From <= at && at < s.To {
			return s.Message
		}
	}
	return -1
}

// aroundBytes is how much text around a place anybody is shown.
const aroundBytes = 80

// around gives the prompt's text before and after the beginning of a token, half of aroundBytes each at most, whole runes.
func (p *prompt) around(h *transcript.History, token int) [2]string {
	if token >= len(p.tokens) {
		return [2]string{}
	}
	at := h.TextAt(&p.encoded.Tokens, p.id(token))
	for at > 0 && at < len(p.draft.Text) && !utf8.RuneStart(p.draft.Text[at]) {
		at--
	}
	before, after := transcript.Unmark(p.draft.Text[:at]), transcript.Unmark(p.draft.Text[at:])
	if n := len(before) - aroundBytes/2; n > 0 {
		for n < len(before) && !utf8.RuneStart(before[n]) {
			n++
		}
		before = before[n:]
	}
	return [2]string{strings.Clone(before), strings.Clone(clip(after, aroundBytes/2))}
}

// instead is the text of what is stored where a prompt parts from it, as around gives the prompt's, from the same place on.
func (m *prompter) instead(p *prompt, e engine.Usage) string {
	if len(e.Instead) == 0 || m.cfg.HideThinking && m.cfg.Info.Thinking {
		return ""
	}
	at := m.history.TextAt(&p.encoded.Tokens, p.id(e.Longer))
	from := at
	for from > 0 && from < len(p.draft.Text) && !utf8.RuneStart(p.draft.Text[from]) {
		from--
	}
	text := []byte(p.draft.Text[from:at])
	for _, id := range e.Instead.IDs() {
		text = append(text, m.tok.Bytes(id)...)
	}
	return clip(strings.ToValidUTF8(string(text), ""), aroundBytes/2)
}

// cached says what the prefix cache had for a prompt and how long its steps took, as far as that is known.
func (m *prompter) cached(u *chat.Usage, p *prompt, r *chat.Request, e engine.Usage) {
	u.Tokenized = p.encoded.took
	if e.Started.IsZero() {
		return
	}
	u.Matched = e.Matched
	u.Cached, u.Common, u.Hit, u.Queued = e.Cached, e.Longer, e.Hit.String(), e.Started.Sub(e.Submitted)
	u.Disk, u.Added, u.Waited = e.Disk, e.Added, e.Lack.String()
	p.seenCached(u.Images, e.Cached)
	u.Parted = p.messageAt(m.history, r.Messages, e.Longer) + 1
	if e.Own && !p.raw {
		if around := p.around(m.history, e.Longer); !p.quotes(around[0]) && !p.quotes(around[1]) {
			u.Around = around
			if instead := m.instead(p, e); !p.quotes(instead) {
				u.Instead = instead
			}
		}
	}
	if !e.First.IsZero() {
		u.Prefill = e.First.Sub(e.Started)
		if !e.Ended.IsZero() {
			u.Decode = e.Ended.Sub(e.First)
		}
	}
}
