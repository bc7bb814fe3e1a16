package tokenizer

import "strings"

// Anchors finds places where a text may be cut: the ids of the whole are those of what is before such a place followed
// by those of what begins with it, each encoded alone with ParseSpecial.
//
// They are the places where certain added tokens begin. An added token separates its neighbours, so nothing but the
// question which added tokens there are can reach over it; tokens for which that depends on text outside themselves
// (they look at their left side, are matched after normalisation, or another one overlaps or continues them) are no
// anchors.
type Anchors struct {
	m matcher
	n int
}

// Anchors makes the set of those tokens among ids that are anchors.
func (t *Tokenizer) Anchors(ids []int32) *Anchors {
	var all []string
	for text := range t.added.ids {
		all = append(all, text)
	}
	a := &Anchors{}
	for _, id := range ids {
		text, ok := t.Token(id)
		if !ok {
			continue
		}
		tok, n := t.added.raw.longest(text)
		if tok == nil || n != len(text) || tok.ID != id || tok.LStrip || startsWithWord(text) || endsInWord(text) {
			continue // a letter at its edge decides about tokens beside it that must be words
		}
		if !reached(text, all) {
			a.m.add(text, tok)
			a.n++
		}
	}
	return a
}

// reached reports whether one of the added tokens all could take a part of anchor's text from its left, or go on beyond it.
func reached(anchor string, all []string) bool {
	for _, other := range all {
		if len(other) > len(anchor) && strings.HasPrefix(other, anchor) {
			return true
		}
		for at := 1; at < len(other); at++ {
			i := strings.IndexByte(other[at:], anchor[0])
			if i < 0 {
				break
			}
			at += i
			if tail := other[at:]; strings.HasPrefix(tail, anchor) || strings.HasPrefix(anchor, tail) {
				return true
			}
		}
	}
	return false
}

// Len is the number of tokens in the set.
func (a *Anchors) Len() int { return a.n }

// At returns the length of the anchor at the start of text, 0 if there is none.
func (a *Anchors) At(text string) int {
	if text == "" || !a.m.start[text[0]] {
		return 0
	}
	_, n := a.m.longest(text)
	return n
}

// Starts is the set of bytes with which anchors begin.
func (a *Anchors) Starts() *[256]bool { return &a.m.start }
