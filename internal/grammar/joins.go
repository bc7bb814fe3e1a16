package grammar

import "sort"

// Joins appends the places in a text, the end of what was taken, from which a token goes on beyond its end, as it may. Once the
// budget is spent every place is one.
func (m *Matcher) Joins(dst []int, text []byte) []int {
	for from := max(0, len(text)-m.vocab.longest+1); from < len(text); from++ {
		for _, t := range m.vocab.tries {
			if k := t.find(text[from:]); k != nil && (m.goesOn(t, k) || m.s.budget.Spent()) {
				dst = append(dst, from)
				break
			}
		}
	}
	return dst
}

// goesOn tells whether a token fits that has what is below a node.
func (m *Matcher) goesOn(t *trie, k *branch) bool {
	n := len(m.s.places)
	for i := range k.children {
		next := &t.nodes[k.first+int32(i)]
		fits := m.s.push(next.b) && (t.to(next) > next.from || m.goesOn(t, next))
		if m.s.back(n); fits {
			return true
		}
	}
	return false
}

// find is the node of a text, nil if no token begins with that.
func (t *trie) find(text []byte) *branch {
	k := &t.nodes[0]
	for _, c := range text {
		below := t.nodes[k.first:][:k.children]
		i := sort.Search(len(below), func(i int) bool { return below[i].b >= c })
		if i == len(below) || below[i].b != c {
			return nil
		}
		k = &below[i]
	}
	return k
}
