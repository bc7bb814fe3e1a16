package tokenizer

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
	a := &Anchors{}
	var texts []string
	var tokens []*addedToken
	for _, id := range ids {
		text, ok := t.Token(id)
		if !ok {
			continue
		}
		tok, n := t.added.raw.longest(text)
		if tok == nil || n != len(text) || tok.ID != id || tok.LStrip || startsWithWord(text) || endsInWord(text) {
			continue // a letter at its edge decides about tokens beside it that must be words
		}
		texts, tokens = append(texts, text), append(tokens, tok)
	}
	for i, reached := range reached(texts, t.added.ids) {
		if !reached {
			a.m.add(texts[i], tokens[i])
			a.n++
		}
	}
	return a
}

// reached tells of each anchor whether one of the added tokens could take a part of its text from its left, or go on beyond
// it: whether one is longer and begins with it, has it further inside, or has an end, other than the whole, with which it
// begins. The time is linear in all texts.
func reached(anchors []string, added map[string]int32) []bool {
	a := newAutomaton()
	nodes := make([]int32, len(anchors))
	for i, s := range anchors {
		nodes[i] = a.add(len(s), func(i int) byte { return s[i] }, int32(i))
	}
	a.link()
	inside := make([]bool, len(a.parent)) // the node's text is in a token, not at its start or not all of it
	ending := make([]bool, len(a.parent)) // a token ends with it
	for s := range added {
		node := int32(0)
		for i := range len(s) { // along its start, byte by byte, as far as it is in the trie
			if to, ok := a.next[trieEdge{node, s[i]}]; ok {
				if node = to; i+1 < len(s) {
					inside[node] = true
				}
				continue
			}
			break
		}
		node = 0
		for i := 1; i < len(s); i++ {
			node = a.step(node, s[i])
			inside[node] = true
		}
		ending[node] = true
	}
	for k := len(a.order) - 1; k > 0; k-- { // what a text ends with is where the text is
		n := a.order[k]
		inside[a.fail[n]] = inside[a.fail[n]] || inside[n]
		ending[a.fail[n]] = ending[a.fail[n]] || ending[n]
	}
	ending[0] = false
	for _, n := range a.order[1:] { // what begins with an end of a token
		ending[n] = ending[n] || ending[a.parent[n]]
	}
	out := make([]bool, len(anchors))
	for i, n := range nodes {
		out[i] = inside[n] || ending[n]
	}
	return out
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
