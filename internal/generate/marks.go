package generate

import (
	"slices"
	"strings"

	"hearth/internal/chat"
)

// marks are places in the prompt, in tokens, at which another prompt is likely to part from it or to begin anew: where
// messages begin and end, among them the end of system prompt and tools, and before the generation prompt. They are in
// order, and none is at either end of the prompt. Where a message begins inside a piece of text that is encoded as a
// whole, the mark is at the beginning of that piece.
func (p *prompt) marks() []int {
	var out []int
	add := func(at int) {
		if n := p.tokensBefore(at); n > 0 && n < len(p.tokens) {
			out = append(out, n)
		}
	}
	for _, s := range p.draft.spans {
		add(s.from)
		add(s.to)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// tokensBefore is how many tokens stand for the pieces that end at or before a place in the draft's text.
func (p *prompt) tokensBefore(at int) int {
	i, found := slices.BinarySearch(p.encoded.cuts, at)
	if !found {
		i--
	}
	return p.encoded.at[max(i, 0)]
}

// messageAt tells which of the request's messages a token of the prompt is in: one past the last for the generation
// prompt, -1 where it is not known. What a template writes before the first message belongs to a system message that
// comes first.
func (p *prompt) messageAt(h *history, messages []chat.Message, token int) int {
	spans := p.draft.spans
	if len(spans) == 0 || token >= len(p.tokens) {
		return -1
	}
	at := p.textAt(h, token)
	if at < spans[0].from {
		if messages[0].Role == chat.System {
			return 0
		}
		return -1
	}
	end := 0
	for _, s := range spans {
		end = max(end, s.to)
	}
	if at >= end {
		return len(messages)
	}
	for _, s := range slices.Backward(spans) {
		if s.from <= at && at < s.to {
			return s.message
		}
	}
	return -1
}

// aroundBytes is how much text around a place anybody is shown.
const aroundBytes = 80

// around gives the prompt's text before and after the beginning of a token, half of aroundBytes each at most, whole runes.
func (p *prompt) around(g *Generator, token int) [2]string {
	if token >= len(p.tokens) {
		return [2]string{}
	}
	at := p.textAt(g.history, token)
	for at > 0 && at < len(p.draft.text) && !startsRune(p.draft.text[at]) {
		at--
	}
	before, after := g.guard.unmark(p.draft.text[:at]), g.guard.unmark(p.draft.text[at:])
	if n := len(before) - aroundBytes/2; n > 0 {
		for n < len(before) && !startsRune(before[n]) {
			n++
		}
		before = before[n:]
	}
	if n := aroundBytes / 2; n < len(after) {
		for n > 0 && !startsRune(after[n]) {
			n--
		}
		after = after[:n]
	}
	return [2]string{strings.Clone(before), strings.Clone(after)}
}

// textAt is where in the draft's text a token begins.
func (p *prompt) textAt(h *history, token int) int {
	e := &p.encoded
	i, found := slices.BinarySearch(e.at, token)
	if found {
		return e.cuts[i]
	}
	i--
	text := p.draft.text[e.cuts[i]:e.cuts[i+1]]
	clean := 0
	for _, end := range h.ends(h.guard.unmark(text), e.ids[e.at[i]:token]) {
		clean = max(clean, end)
	}
	return e.cuts[i] + marked(text, clean)
}

// marked turns a place in a text without marks into one in the text with them.
func marked(text string, clean int) int {
	at := 0
	for at < len(text) {
		if strings.HasPrefix(text[at:], markOpen) || strings.HasPrefix(text[at:], markClose) {
			at += len(markOpen)
			continue
		}
		if clean == 0 {
			break
		}
		clean--
		at++
	}
	return at
}
