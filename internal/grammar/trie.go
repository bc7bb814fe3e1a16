package grammar

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// trie has the bytes of tokens, what begins alike in one place. What may follow a node is in one row, so that a state that few
// bytes fit finds them at once.
type trie struct {
	nodes []branch // the first one is the beginning
	ids   []int32  // in the order of their texts
}

type branch struct {
	b        byte
	kinds    charKinds // of it and what follows it in tokens
	children uint16
	first    int32 // of its children
	from     int32 // ids of the tokens that end here, see trie.to, and then those of the tokens that go on
	last     int32 // behind both
}

// to is behind the ids of the tokens that end at a node.
func (t *trie) to(k *branch) int32 {
	if k.children > 0 {
		return t.nodes[k.first].from
	}
	return k.last
}

type token struct {
	text []byte
	id   int32
}

// newTrie takes tokens that have a text.
func newTrie(tokens []token) *trie {
	slices.SortFunc(tokens, func(a, b token) int { return bytes.Compare(a.text, b.text) })
	t := &trie{ids: make([]int32, len(tokens))}
	kinds, at := []charKinds{}, make([]int32, len(tokens)) // of what is left of each text, and where they begin
	for i, k := range tokens {
		t.ids[i], at[i] = k.id, int32(len(kinds))
		kinds = appendKinds(kinds, k.text)
	}
	t.nodes = append(t.nodes, branch{last: int32(len(tokens))})
	for depth, from := 0, 0; from < len(t.nodes); depth++ {
		level := t.nodes[from:len(t.nodes):len(t.nodes)]
		for n := range level {
			lo, hi := level[n].from, level[n].last
			for lo < hi && len(tokens[lo].text) == depth {
				lo++
			}
			first := len(t.nodes)
			for lo < hi {
				c := branch{b: tokens[lo].text[depth], from: lo}
				for ; lo < hi && tokens[lo].text[depth] == c.b; lo++ {
					c.kinds |= kinds[int(at[lo])+depth]
				}
				c.last = lo
				t.nodes = append(t.nodes, c)
			}
			t.nodes[from+n].first, t.nodes[from+n].children = int32(first), uint16(len(t.nodes)-first)
		}
		from += len(level)
	}
	t.nodes = slices.Clone(t.nodes) // without room for more
	return t
}

// row is what a walk did not visit yet of the children of a node.
type row struct{ next, end int32 }

func (k *branch) row() row { return row{k.first, k.first + int32(k.children)} }

// walk visits the nodes of a trie, the first ones at depth 1, and what is below a node only if visit says so. It ends when the
// budget is spent. The memory of rows is used, and returned to be used again.
func (t *trie) walk(rows []row, u *Budget, visit func(k *branch, depth int) (further bool)) []row {
	rows = append(rows[:0], t.nodes[0].row())
	for len(rows) > 0 && !u.Spent() {
		r := &rows[len(rows)-1]
		if r.next == r.end {
			rows = rows[:len(rows)-1]
			continue
		}
		k := &t.nodes[r.next]
		r.next++
		if visit(k, len(rows)) && k.children > 0 {
			rows = append(rows, k.row())
		}
	}
	return rows
}

// appendKinds appends for each place in a text the kinds of the characters from there on.
func appendKinds(dst []charKinds, text []byte) []charKinds {
	from := len(dst)
	dst = append(dst, make([]charKinds, len(text))...)
	var kinds charKinds
	for i := len(text); i > 0; {
		r, size := utf8.DecodeLastRune(text[:i])
		if kinds |= kindOf(text[i-1]); r == utf8.RuneError && size == 1 {
			kinds |= noChars
		}
		for range size - 1 { // within the character
			i--
			dst[from+i] = kinds | noChars
		}
		i--
		dst[from+i] = kinds
	}
	return dst
}

// charKinds are kinds of characters, a bit for each. A state that stays the same whatever comes of some kinds needs no look at
// tokens of these.
type charKinds uint8

const (
	lowerCase  charKinds = 1 << iota
	upperCase            // of ASCII, as the others
	digitChars           // from 0 to 9
	spaceChar            // alone
	otherASCII           // that stands for itself within a string
	breaking             // the rest of ASCII, see breaks
	beyond               // ASCII
	noChars              // bytes that are no whole characters
)

// kindOf is the kind of a byte, of beyond for all bytes that ASCII has not.
func kindOf(b byte) charKinds {
	switch {
	case b >= utf8.RuneSelf:
		return beyond
	case b-'a' < 26:
		return lowerCase
	case b-'A' < 26:
		return upperCase
	case b-'0' < 10:
		return digitChars
	case b == ' ':
		return spaceChar
	case breaks(b):
		return breaking
	}
	return otherASCII
}

// breaks tells whether a byte does something in a string other than to stand for itself.
func breaks(b byte) bool { return b < ' ' || b == '"' || b == '\\' }
