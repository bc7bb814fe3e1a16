package tokenizer

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// model turns one pre-tokenized word into ids.
type model interface {
	// appendWord appends the ids of w, which is not empty.
	appendWord(dst []int32, w string, sc *wordScratch) []int32
}

// wordScratch is the working memory of a model, reused between words.
type wordScratch struct {
	text  []byte
	syms  []symbol
	heap  []candidate
	paths []path
	watch *watch
}

// longScratch is how many symbols or bytes of a word its memory is kept for.
const longScratch = 1 << 18

// shrink lets go of what a very long word has needed.
func (sc *wordScratch) shrink() {
	if cap(sc.syms) > longScratch || cap(sc.heap) > longScratch || cap(sc.paths) > longScratch || cap(sc.text) > longScratch {
		sc.text, sc.syms, sc.heap, sc.paths = nil, nil, nil, nil
	}
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

// appendWord appends the ids of w, from the cache or else from m.
func (c *wordCache) appendWord(dst []int32, w string, sc *wordScratch, m model) []int32 {
	if len(w) > maxCacheWord {
		return m.appendWord(dst, w, sc)
	}
	slot := &c.slots[maphash.String(c.seed, w)%cacheSlots]
	if hit := slot.Load(); hit != nil && hit.word == w {
		return append(dst, hit.ids...)
	}
	start := len(dst)
	dst = m.appendWord(dst, w, sc)
	slot.Store(&cachedWord{strings.Clone(w), append([]int32(nil), dst[start:]...)})
	return dst
}
