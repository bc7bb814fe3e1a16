package tokenizer

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// bpe is the byte-pair-encoding model: a word begins as one symbol per byte in
// byte-level vocabularies and one per character in others, and the adjacent pair with the lowest rank (leftmost on ties) is merged until no
// pair has a rank.
type bpe struct {
	ids          map[string]int32
	merges       mergeTable
	byteLevel    bool
	ignoreMerges bool       // a word that is a token is not cut at all
	fallback     bool       // not byteLevel: an unknown character becomes its bytes' tokens
	fuseUnk      bool       // one unk for a run of unknown bytes or characters
	unk          int32      // stands for them; -1: they are dropped
	unit         [256]int32 // id of each byte's token; -1: not in the vocabulary
	cache        wordCache
}

// wordScratch is the working memory of appendWord, reused between words.
type wordScratch struct {
	text []byte
	syms []symbol
	heap []candidate
}

// shortWord is the most symbols merged by repeated scans rather than a heap; the
// crossing point is flat, both are within a few percent between 24 and 64.
const shortWord = 40

// appendWord appends the ids of one non-empty pre-tokenized word.
func (m *bpe) appendWord(dst []int32, w string, sc *wordScratch) []int32 {
	if m.byteLevel && len(w) == 1 && m.unit[w[0]] >= 0 {
		return append(dst, m.unit[w[0]])
	}
	slot := m.cache.slot(w)
	if slot != nil {
		if c := slot.Load(); c != nil && c.word == w {
			return append(dst, c.ids...)
		}
	}
	start := len(dst)
	dst = m.mergeWord(dst, w, sc)
	if slot != nil {
		slot.Store(&cachedWord{strings.Clone(w), append([]int32(nil), dst[start:]...)})
	}
	return dst
}

func (m *bpe) mergeWord(dst []int32, w string, sc *wordScratch) []int32 {
	if m.ignoreMerges {
		if id, ok := m.whole(w, sc); ok {
			return append(dst, id)
		}
	}
	syms := sc.syms[:0]
	if m.byteLevel {
		syms = m.byteSymbols(syms, w)
	} else {
		syms = m.runeSymbols(syms, w)
	}
	sc.syms = syms
	if len(syms) <= shortWord {
		return m.mergeShort(dst, syms)
	}
	return m.mergeLong(dst, sc)
}

// whole looks the word up as one token.
func (m *bpe) whole(w string, sc *wordScratch) (id int32, ok bool) {
	if !m.byteLevel {
		id, ok = m.ids[w]
		return id, ok
	}
	sc.text = appendByteRunes(sc.text[:0], w)
	id, ok = m.ids[string(sc.text)]
	return id, ok
}

// byteSymbols appends the symbols that w begins as, one for each byte.
func (m *bpe) byteSymbols(syms []symbol, w string) []symbol {
	inUnk := false
	for i := range len(w) {
		id := m.unit[w[i]]
		if id >= 0 {
			inUnk = false
		} else if id = m.unk; id < 0 || inUnk && m.fuseUnk {
			continue
		} else {
			inUnk = true
		}
		syms = append(syms, symbol{id: id})
	}
	return syms
}

// runeSymbols appends the symbols that w begins as, one for each character. A
// character without a token becomes its bytes' tokens if all of those exist, else
// unk. As in the reference, an unk waits for the next known character, so it comes
// after byte tokens that follow it.
func (m *bpe) runeSymbols(syms []symbol, w string) []symbol {
	waiting := false
	for i := 0; i < len(w); {
		_, n := utf8.DecodeRuneInString(w[i:])
		char := w[i : i+n]
		i += n
		if id, ok := m.ids[char]; ok {
			if waiting {
				syms, waiting = append(syms, symbol{id: m.unk}), false
			}
			syms = append(syms, symbol{id: id})
			continue
		}
		if m.fallback && m.hasBytes(char) {
			for k := range n {
				syms = append(syms, symbol{id: m.unit[char[k]]})
			}
			continue
		}
		if m.unk < 0 {
			continue
		}
		if waiting && !m.fuseUnk {
			syms = append(syms, symbol{id: m.unk})
		}
		waiting = true
	}
	if waiting {
		syms = append(syms, symbol{id: m.unk})
	}
	return syms
}

func (m *bpe) hasBytes(char string) bool {
	for k := range len(char) {
		if m.unit[char[k]] < 0 {
			return false
		}
	}
	return true
}

// mergeShort merges in place by scanning for the lowest rank each time: quadratic
// in the symbols but without any bookkeeping. It looks each pair up once.
func (m *bpe) mergeShort(dst []int32, syms []symbol) []int32 {
	var ranks, ids [shortWord]uint32 // of the pair that begins at each symbol
	look := func(i int) {
		ranks[i], ids[i] = noMerge, 0
		if i+1 < len(syms) {
			ranks[i], ids[i] = m.merges.find(syms[i].id, syms[i+1].id)
		}
	}
	for i := range syms {
		look(i)
	}
	for len(syms) > 1 {
		best := 0
		for i := 1; i < len(syms)-1; i++ {
			if ranks[i] < ranks[best] {
				best = i
			}
		}
		if ranks[best] == noMerge {
			break
		}
		syms[best].id = int32(ids[best])
		copy(ranks[best+1:], ranks[best+2:len(syms)])
		copy(ids[best+1:], ids[best+2:len(syms)])
		syms = append(syms[:best+1], syms[best+2:]...)
		look(best)
		if best > 0 {
			look(best - 1)
		}
	}
	for _, s := range syms {
		dst = append(dst, s.id)
	}
	return dst
}

// symbol is an element of the doubly linked list that a long word is.
type symbol struct {
	id         int32 // -1 once merged into its left neighbour
	prev, next int32 // -1 at the ends
}

// candidate is a possible merge, ordered by rank and then position. It is stale
// when the symbols there are no longer left and right.
type candidate struct {
	order       uint64 // rank<<32 | position of the left symbol
	merged      int32
	left, right int32
}

// mergeLong merges sc.syms with a heap of candidates: n log n, whatever the word.
func (m *bpe) mergeLong(dst []int32, sc *wordScratch) []int32 {
	syms, heap := sc.syms, sc.heap[:0]
	for i := range syms {
		syms[i].prev, syms[i].next = int32(i)-1, int32(i)+1
	}
	syms[len(syms)-1].next = -1
	consider := func(l, r int32) {
		if l < 0 || r < 0 {
			return
		}
		if rank, id := m.merges.find(syms[l].id, syms[r].id); rank != noMerge {
			heap = pushCandidate(heap, candidate{uint64(rank)<<32 | uint64(l), int32(id), syms[l].id, syms[r].id})
		}
	}
	for i := range len(syms) - 1 {
		consider(int32(i), int32(i)+1)
	}
	for len(heap) > 0 {
		var c candidate
		c, heap = popCandidate(heap)
		l := int32(uint32(c.order))
		r := syms[l].next
		if r < 0 || syms[l].id != c.left || syms[r].id != c.right {
			continue
		}
		syms[l].id, syms[r].id = c.merged, -1
		next := syms[r].next
		syms[l].next = next
		if next >= 0 {
			syms[next].prev = l
		}
		consider(syms[l].prev, l)
		consider(l, next)
	}
	sc.heap = heap
	for i := int32(0); i >= 0; i = syms[i].next {
		dst = append(dst, syms[i].id)
	}
	return dst
}

func pushCandidate(h []candidate, c candidate) []candidate {
	h = append(h, c)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].order <= c.order {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = c
	return h
}

// popCandidate removes the first candidate of a non-empty heap.
func popCandidate(h []candidate) (candidate, []candidate) {
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].order < h[down].order {
			down++
		}
		if last.order <= h[down].order {
			break
		}
		h[i] = h[down]
		i = down
	}
	if len(h) > 0 {
		h[i] = last
	}
	return top, h
}

// noMerge is the rank of a pair that is not merged.
const noMerge = ^uint32(0)

// mergeTable maps a pair of ids to its rank and the merged id: open addressing
// with linear probing, at most half full. It is the hot look-up of encoding and
// several times faster than a map.
type mergeTable struct {
	slots []mergeSlot // power of two; nil: no merges
	shift uint
	seed  uint64
}

type mergeSlot struct {
	pair     uint64 // left<<32 | right
	rank, id uint32 // rank noMerge: slot is free
}

func newMergeTable(count int) mergeTable {
	logSize := bits.Len(uint(max(2*count, 2) - 1))
	t := mergeTable{
		slots: make([]mergeSlot, 1<<logSize),
		shift: uint(64 - logSize),
		// A random odd factor, so that a crafted file cannot aim at one slot.
		seed: rand.Uint64() | 1,
	}
	for i := range t.slots {
		t.slots[i].rank = noMerge
	}
	return t
}

func (t *mergeTable) home(pair uint64) uint64 {
	hi, lo := bits.Mul64(pair^0x9E3779B97F4A7C15, t.seed)
	return (hi ^ lo) * 0x9E3779B97F4A7C15 >> t.shift
}

// set adds a pair; a pair that is there already gets the new rank.
func (t *mergeTable) set(left, right int32, rank, id uint32) {
	pair := uint64(left)<<32 | uint64(right)
	mask := uint64(len(t.slots) - 1)
	i := t.home(pair)
	for t.slots[i].rank != noMerge && t.slots[i].pair != pair {
		i = (i + 1) & mask
	}
	t.slots[i] = mergeSlot{pair, rank, id}
}

// find returns the rank of a pair and the id it merges to, or noMerge.
func (t *mergeTable) find(left, right int32) (rank, id uint32) {
	pair := uint64(left)<<32 | uint64(right)
	mask := uint64(len(t.slots) - 1)
	for i := t.home(pair); ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.rank == noMerge || s.pair == pair {
			return s.rank, s.id
		}
	}
}

// readMerges reads the merge list in either form, "left right" or ["left","right"].
// A pair listed twice has the later rank, as in the reference.
func readMerges(r *jsonReader, ids map[string]int32) (mergeTable, error) {
	type merge struct{ left, right, id int32 }
	// A byte-level vocabulary has about one merge per token.
	list := make([]merge, 0, min(len(ids), len(r.data)/8))
	var pair []byte
	err := r.array(func() error {
		cut := -1
		pair = pair[:0]
		if r.peek() == '"' {
			s, err := r.str()
			if err != nil {
				return err
			}
			pair = append(pair, s...)
			for i, c := range pair {
				if c != ' ' {
					continue
				}
				if cut >= 0 {
					return fmt.Errorf("merge %d, %s, has more than two parts", len(list), quoted(string(s)))
				}
				cut = i
			}
			if cut < 0 {
				return fmt.Errorf("merge %d, %s, has no space between its parts", len(list), quoted(string(s)))
			}
			pair = append(pair[:cut], pair[cut+1:]...)
		} else {
			parts := 0
			if err := r.array(func() error {
				s, err := r.str()
				pair = append(pair, s...)
				if parts++; parts == 1 {
					cut = len(pair)
				}
				return err
			}); err != nil {
				return err
			}
			if parts != 2 {
				return fmt.Errorf("merge %d has %d parts instead of 2", len(list), parts)
			}
		}
		left, ok1 := ids[string(pair[:cut])]
		right, ok2 := ids[string(pair[cut:])]
		id, ok3 := ids[string(pair)]
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("merge %d of %s and %s: a part or the result is not in the vocabulary",
				len(list), quoted(string(pair[:cut])), quoted(string(pair[cut:])))
		}
		list = append(list, merge{left, right, id})
		return nil
	})
	if err != nil {
		return mergeTable{}, err
	}
	t := newMergeTable(len(list))
	for rank, m := range list {
		t.set(m.left, m.right, uint32(rank), uint32(m.id))
	}
	return t, nil
}

const (
	cacheSlots   = 1 << 14
	maxCacheWord = 48 // bytes; longer words are rare and would only fill memory
)

// wordCache remembers the ids of recent words: direct-mapped, so it is bounded
// (a few megabytes) and needs no lock. A collision overwrites.
type wordCache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[cachedWord]
}

type cachedWord struct {
	word string
	ids  []int32
}

func newWordCache() wordCache {
	return wordCache{maphash.MakeSeed(), make([]atomic.Pointer[cachedWord], cacheSlots)}
}

// slot returns the place of w, nil when w is too long to be kept.
func (c *wordCache) slot(w string) *atomic.Pointer[cachedWord] {
	if len(w) > maxCacheWord {
		return nil
	}
	return &c.slots[maphash.String(c.seed, w)%cacheSlots]
}
