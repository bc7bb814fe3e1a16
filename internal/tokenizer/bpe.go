package tokenizer

import "unicode/utf8"

// bpe is the byte-pair-encoding model: a word begins as one symbol per byte in
// byte-level vocabularies and one per character in others, and the adjacent pair
// with the lowest rank (leftmost on ties) is merged until no pair has a rank.
type bpe struct {
	index          *tokenIndex
	merges         mergeTable
	byteLevel      bool       // words are text, their bytes are the symbols
	ignoreMerges   bool       // a word that is a token is not cut at all
	fallback       bool       // an unknown character becomes its bytes' tokens
	fuseUnk        bool       // one unk for a run of unknown bytes or characters
	unk            int32      // stands for them; -1: they are dropped
	unit           [256]int32 // id of each byte's token; -1: not in the vocabulary
	prefix, suffix string     // around a word's later characters, after its last one
	char           [lowRunes]int32
	seam           seam
	cache          wordCache
}

// lowRunes is how many characters' ids are kept in an array: Latin, Greek,
// Cyrillic, and the printable forms of bytes.
const lowRunes = 0x530

// shortWord is the most symbols merged by repeated scans rather than a heap; the
// crossing point is flat, both are within a few percent between 24 and 64.
const shortWord = 40

// appendWord appends the ids of one non-empty pre-tokenized word.
func (m *bpe) appendWord(dst []int32, w string, sc *wordScratch) []int32 {
	if m.byteLevel && len(w) == 1 && m.unit[w[0]] >= 0 {
		return append(dst, m.unit[w[0]])
	}
	for m.seam.cuts {
		n := m.seam.next(w)
		if n == 0 {
			break
		}
		sc.watch.pass(n)
		dst = m.cache.appendWord(dst, w[:n], sc, (*wordMerger)(m))
		w = w[n:]
	}
	return m.cache.appendWord(dst, w, sc, (*wordMerger)(m))
}

// fill looks up what the model asks for often. The merges must be there.
func (m *bpe) fill(v *vocabulary) {
	for r := range m.char {
		m.char[r], _ = v.index.find(string(rune(r)))
	}
	if m.byteLevel {
		for b := range m.unit {
			m.unit[b], _ = v.index.find(string(byteRune[b]))
		}
	} else {
		m.unit = byteTokens(&v.index)
	}
	m.seam.enable(m)
}

// wordMerger is bpe without the cache.
type wordMerger bpe

func (m *wordMerger) appendWord(dst []int32, w string, sc *wordScratch) []int32 {
	return (*bpe)(m).mergeWord(dst, w, sc)
}

func (m *bpe) mergeWord(dst []int32, w string, sc *wordScratch) []int32 {
	sc.watch.whole(len(w))
	if m.ignoreMerges {
		if id, ok := m.whole(w, sc); ok {
			return append(dst, id)
		}
	}
	syms := sc.syms[:0]
	if m.byteLevel {
		syms = m.byteSymbols(syms, w)
	} else {
		syms = m.runeSymbols(syms, w, sc)
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
		return m.index.find(w)
	}
	sc.text = appendByteRunes(sc.text[:0], w)
	return m.index.findBytes(sc.text)
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
func (m *bpe) runeSymbols(syms []symbol, w string, sc *wordScratch) []symbol {
	waiting := false
	for i := 0; i < len(w); {
		r, n := utf8.DecodeRuneInString(w[i:])
		char := w[i : i+n]
		if m.prefix != "" && i > 0 || m.suffix != "" && i+n == len(w) {
			char = m.affixed(char, i > 0, i+n == len(w))
		}
		i += n
		if id, ok := m.runeID(r, char, n); ok {
			if waiting {
				syms, waiting = append(syms, symbol{id: m.unk}), false
			}
			syms = append(syms, symbol{id: id})
			continue
		}
		if m.fallback && m.hasBytes(char) {
			for k := range len(char) {
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

// runeID returns the id of a character, which is rune r of n bytes unless char is
// longer: then something has been put around it.
func (m *bpe) runeID(r rune, char string, n int) (int32, bool) {
	if r < lowRunes && len(char) == n {
		return m.char[r], m.char[r] >= 0
	}
	return m.index.find(char)
}

func (m *bpe) affixed(char string, later, last bool) string {
	if later {
		char = m.prefix + char
	}
	if last {
		char += m.suffix
	}
	return char
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
	if len(syms) > longScratch { // at once, not by doubling
		heap = make([]candidate, 0, len(syms))
	}
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
		sc.watch.pass(1)
		consider(int32(i), int32(i)+1)
	}
	for len(heap) > 0 {
		var c candidate
		c, heap = popCandidate(heap)
		sc.watch.pass(1)
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
