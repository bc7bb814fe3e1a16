package grammar

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Vocab is the tokens of a model, ordered for asking which of them a form lets through. It does not change and may be used by
// many at once.
type Vocab struct {
	plain []uint64 // tokens that stay within a JSON string wherever they come in it
	all   tree
	rest  tree // the tokens that are not plain

	texts   []byte   // of all tokens
	ends    []uint32 // of texts, by id
	tiers   [tiers]tree
	longest int // token
	cache   maskCache
}

// tree has the bytes of tokens, what begins alike in one place. Nodes are in the order of a walk in which a node comes before
// what is below it.
type tree struct {
	nodes []node
	ids   []int32
}

type node struct {
	b        byte
	kinds    charKinds // of it and what follows it in tokens
	depth    uint16    // 1 for the first byte of a token
	end      int32     // the first node that is not below this one
	from, to int32     // ids of the tokens that end here
}

// last is the place behind the ids of the tokens at a node and below it.
func (t *tree) last(n *node) int32 {
	if int(n.end) < len(t.nodes) {
		return t.nodes[n.end].from
	}
	return int32(len(t.ids))
}

// longestToken bounds the depth of a tree; longer ones are never allowed. The longest of known vocabularies have 256 bytes.
const longestToken = 1 << 10

// NewVocab takes a vocabulary of size ids. text gives what a token stands for, and nothing for tokens that are no text.
func NewVocab(size int, text func(id int32) []byte) *Vocab {
	v := &Vocab{plain: make([]uint64, (size+63)/64), ends: make([]uint32, 1, size+1)}
	var all, rest []token
	var by [tiers][]token
	for id := range int32(size) {
		t := token{text(id), id}
		if len(t.text) > longestToken {
			t.text = nil
		}
		v.texts = append(v.texts, t.text...)
		v.ends = append(v.ends, uint32(len(v.texts)))
		if len(t.text) == 0 {
			continue
		}
		v.longest = max(v.longest, len(t.text))
		for i, most := range tierBytes {
			if len(t.text) <= most {
				by[i] = append(by[i], t)
				break
			}
		}
		all = append(all, t)
		if slices.IndexFunc(t.text, breaks) < 0 {
			v.plain[id/64] |= 1 << (id % 64)
		} else {
			rest = append(rest, t)
		}
	}
	v.all, v.rest = newTree(all), newTree(rest)
	for i := range by {
		v.tiers[i] = newTree(by[i])
	}
	return v
}

// text is what a token stands for, nothing if it is no text.
func (v *Vocab) text(id int32) []byte {
	if id < 0 || int(id) >= len(v.ends)-1 {
		return nil
	}
	return v.texts[v.ends[id]:v.ends[id+1]]
}

// Mark stands for a token that is no text: where a Vocab is given it as the token's text, a grammar can ask for the token by it.
// It begins with a byte that no UTF-8 has.
func Mark(id int32) string { return fmt.Sprintf("\xff%08x", uint32(id)) }

// breaks tells whether a byte does something in a string other than to stand for itself.
func breaks(b byte) bool { return b < ' ' || b == '"' || b == '\\' }

type token struct {
	text []byte
	id   int32
}

func newTree(tokens []token) tree {
	slices.SortFunc(tokens, func(a, b token) int { return bytes.Compare(a.text, b.text) })
	var t tree
	var open []int32 // nodes on the way to the last token
	var last []byte
	for _, k := range tokens {
		common := 0
		for common < len(last) && common < len(k.text) && last[common] == k.text[common] {
			common++
		}
		for _, n := range open[common:] {
			t.nodes[n].end = int32(len(t.nodes))
		}
		open = open[:common]
		for i := common; i < len(k.text); i++ {
			open = append(open, int32(len(t.nodes)))
			t.nodes = append(t.nodes, node{b: k.text[i], depth: uint16(i + 1), from: int32(len(t.ids)), to: int32(len(t.ids))})
		}
		t.ids = append(t.ids, k.id)
		t.nodes[open[len(open)-1]].to = int32(len(t.ids))
		t.note(open, k.text)
		last = k.text
	}
	for _, n := range open {
		t.nodes[n].end = int32(len(t.nodes))
	}
	return t
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

// note tells the nodes on the way to a text what it has from there on.
func (t *tree) note(open []int32, text []byte) {
	var kinds charKinds
	for i := len(text); i > 0; {
		r, size := utf8.DecodeLastRune(text[:i])
		if kinds |= kindOf(text[i-1]); r == utf8.RuneError && size == 1 {
			kinds |= noChars
		}
		for range size - 1 { // within the character
			i--
			t.nodes[open[i]].kinds |= kinds | noChars
		}
		i--
		t.nodes[open[i]].kinds |= kinds
	}
}
