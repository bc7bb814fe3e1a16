package transcript

import (
	"slices"
	"strings"
)

// Before is how many tokens stand for the pieces that end at or before a place in the draft's text.
func (t *Tokens) Before(at int) int {
	i, found := slices.BinarySearch(t.cuts, at)
	if !found {
		i--
	}
	return t.at[max(i, 0)]
}

// TextAt is where in the draft's text a token begins.
func (h *History) TextAt(text string, t *Tokens, token int) int {
	i, found := slices.BinarySearch(t.at, token)
	if found {
		return t.cuts[i]
	}
	i--
	text = text[t.cuts[i]:t.cuts[i+1]]
	clean := 0
	for _, end := range h.ends(Unmark(text), t.IDs[t.at[i]:token]) {
		clean = max(clean, end)
	}
	return t.cuts[i] + marked(text, clean)
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
