package tokenizer

import "slices"

// automaton finds texts of a set in a text in time linear in both (Aho and Corasick): a byte trie whose nodes know which
// node stands for the longest end of their text that is in the trie too.
type automaton struct {
	starts [256]bool // bytes some text begins with
	next   map[trieEdge]int32
	parent []int32 // by node
	by     []byte  // the byte that leads to it
	text   []int32 // number of the text that ends there, -1 for none
	order  []int32 // nodes by depth, the root first; set by link, like fail and ends
	fail   []int32 // where to go on when no edge fits
	ends   []int32 // number of the longest text that ends there, -1 for none
}

func newAutomaton() *automaton {
	return &automaton{next: map[trieEdge]int32{}, parent: make([]int32, 1), by: make([]byte, 1), text: []int32{-1}}
}

// add adds a text, byte(0) to byte(n-1). The first of equal ones keeps its number. It returns the node of the text.
func (a *automaton) add(n int, byteAt func(i int) byte, number int32) int32 {
	node := int32(0)
	for i := range n {
		b := byteAt(i)
		if i == 0 {
			a.starts[b] = true
		}
		edge := trieEdge{node, b}
		to, ok := a.next[edge]
		if !ok {
			to = int32(len(a.parent))
			a.next[edge] = to
			a.parent, a.by, a.text = append(a.parent, node), append(a.by, b), append(a.text, -1)
		}
		node = to
	}
	if n > 0 && a.text[node] < 0 {
		a.text[node] = number
	}
	return node
}

// link makes the automaton ready after all texts were added.
func (a *automaton) link() {
	depth, deepest := make([]int32, len(a.parent)), int32(0)
	for n := 1; n < len(depth); n++ { // a parent comes before its children
		depth[n] = depth[a.parent[n]] + 1
		deepest = max(deepest, depth[n])
	}
	count := make([]int32, deepest+2)
	for _, d := range depth {
		count[d+1]++
	}
	for d := range deepest {
		count[d+1] += count[d]
	}
	a.order, a.fail = make([]int32, len(depth)), make([]int32, len(depth))
	for n, d := range depth {
		a.order[count[d]] = int32(n)
		count[d]++
	}
	for _, n := range a.order[1:] {
		if up := a.parent[n]; up != 0 {
			a.fail[n] = a.step(a.fail[up], a.by[n])
		}
	}
	a.ends = slices.Clone(a.text)
	for _, n := range a.order[1:] {
		if a.ends[n] < 0 {
			a.ends[n] = a.ends[a.fail[n]]
		}
	}
}

// step is the node after one more byte: it stands for the longest end of what was read that is in the trie.
func (a *automaton) step(node int32, b byte) int32 {
	for {
		if to, ok := a.next[trieEdge{node, b}]; ok {
			return to
		}
		if node == 0 {
			return 0
		}
		node = a.fail[node]
	}
}

// Texts is a set of texts to look for. It may be used from any goroutine.
type Texts struct{ a *automaton }

// NewTexts makes a set.
func NewTexts(texts []string) *Texts {
	a := newAutomaton()
	for i, s := range texts {
		a.add(len(s), func(i int) byte { return s[i] }, int32(i))
	}
	a.link()
	return &Texts{a}
}

// In reports whether one of the texts is in s. Its time is linear in s.
func (t *Texts) In(s string) bool {
	node := int32(0)
	for i := range len(s) {
		if node == 0 && !t.a.starts[s[i]] {
			continue
		}
		if node = t.a.step(node, s[i]); t.a.ends[node] >= 0 {
			return true
		}
	}
	return false
}
