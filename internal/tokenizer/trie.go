package tokenizer

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// trie holds token texts for looking up all tokens that begin at a place. The edges
// of all nodes share one hash table, which builds several times faster than a
// double array and is bounded by the bytes of the vocabulary.
type trie struct {
	edges []trieStep // power of two, at most half full
	shift uint
	seed  uint64  // a random odd factor, so that a crafted file cannot aim at one slot
	ids   []int32 // by node: the token that ends there, -1 for none; node 0 is the root
}

type trieStep struct {
	from uint32 // node<<8 | byte
	to   int32  // node; 0: slot is free
}

const maxTrieNodes = 1 << 24

// newTrie makes the trie of a vocabulary's tokens that keep, if not nil, accepts.
func newTrie(v *vocabulary, keep func(id int32) bool) (*trie, error) {
	list, _, err := trieTokens(v, keep)
	if err != nil {
		return nil, err
	}
	return buildTrie(v.text, list)
}

// trieLater is newTrie for a large vocabulary whose trie takes as long as reading the rest of the file: it is built
// beside that, and the function it returns waits for it. What is wrong with the vocabulary is found at once.
func trieLater(v *vocabulary, keep func(id int32) bool) (func() *trie, error) {
	list, size, err := trieTokens(v, keep)
	if err != nil {
		return nil, err
	}
	text := slices.Clone(v.text) // added tokens may still come
	if size >= maxTrieNodes {    // the only other fault, which needs the nodes counted
		t, err := buildTrie(text, list)
		return func() *trie { return t }, err
	}
	later := sync.OnceValue(func() *trie {
		t, err := buildTrie(text, list)
		if err != nil {
			panic(err) // a node is at least a byte, and there are fewer bytes than nodes allowed
		}
		return t
	})
	go later()
	return later, nil
}

// trieTokens lists the tokens of a trie and counts their bytes.
func trieTokens(v *vocabulary, keep func(id int32) bool) (list []trieToken, size int, err error) {
	list = make([]trieToken, 0, v.count)
	for id, text := range v.text {
		if v.used[id] && text != "" && (keep == nil || keep(int32(id))) {
			if len(text) > maxTrieBytes {
				return nil, 0, fmt.Errorf("token %s has %d bytes, more than %d", quoted(text), len(text), maxTrieBytes)
			}
			list = append(list, newTrieToken(text, int32(id)))
			size += len(text)
		}
	}
	return list, size, nil
}

// buildTrie sorts the tokens: then each shares the nodes of a prefix with the one before it and needs new ones for the
// rest, so that nothing is looked up. texts are by id.
func buildTrie(texts []string, list []trieToken) (*trie, error) {
	slices.SortFunc(list, func(a, b trieToken) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return strings.Compare(texts[a.id], texts[b.id])
	})
	nodes, before := 1, ""
	for _, tok := range list {
		text := texts[tok.id]
		nodes += len(text) - commonPrefix(before, text)
		before = text
	}
	if nodes > maxTrieNodes {
		return nil, fmt.Errorf("the vocabulary has %d different beginnings, more than %d", nodes, maxTrieNodes)
	}
	size := bits.Len(uint(2 * nodes))
	t := &trie{edges: make([]trieStep, 1<<size), shift: uint(64 - size), seed: rand.Uint64() | 1, ids: make([]int32, 1, nodes)}
	t.ids[0] = -1
	path := []int32{0} // nodes along the text before
	before = ""
	for _, tok := range list {
		text := texts[tok.id]
		n := commonPrefix(before, text)
		path = path[:n+1]
		for i := n; i < len(text); i++ {
			key, node := uint32(path[i])<<8|uint32(text[i]), int32(len(t.ids))
			t.edges[t.slot(key)] = trieStep{key, node}
			t.ids = append(t.ids, -1)
			path = append(path, node)
		}
		t.ids[path[len(text)]] = tok.id
		before = text
	}
	return t, nil
}

// trieToken orders a token: by its first bytes, which decide most comparisons, then
// by its text.
type trieToken struct {
	head uint64
	id   int32
}

func newTrieToken(text string, id int32) trieToken {
	var head [8]byte
	copy(head[:], text)
	return trieToken{binary.BigEndian.Uint64(head[:]), id}
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (t *trie) slot(key uint32) int {
	mask := len(t.edges) - 1
	hi, lo := bits.Mul64(uint64(key)^0x9E3779B97F4A7C15, t.seed)
	i := int((hi ^ lo) * 0x9E3779B97F4A7C15 >> t.shift)
	for t.edges[i].to != 0 && t.edges[i].from != key {
		i = (i + 1) & mask
	}
	return i
}

// step returns the node that byte b leads to, 0 for none.
func (t *trie) step(node int32, b byte) int32 {
	return t.edges[t.slot(uint32(node)<<8|uint32(b))].to
}

// walk returns the node that text leads to from the root, 0 for none.
func (t *trie) walk(text string) (node int32) {
	for i := range len(text) {
		if node = t.step(node, text[i]); node == 0 {
			return 0
		}
	}
	return node
}
