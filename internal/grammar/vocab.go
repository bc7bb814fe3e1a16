package grammar

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
)

// Vocab is the tokens of a model, ordered for asking which of them a form lets through. It does not change and may be used by
// many at once.
type Vocab struct {
	texts   []byte           // of all tokens
	ends    []uint32         // of texts, by id
	longest int              // token
	tries   [everyTier]*trie // by tier
	cache   maskCache
}

// longestToken bounds the depth of a tree; longer ones are never allowed. The longest of known vocabularies have 256 bytes.
const longestToken = 1 << 10

// NewVocab takes a vocabulary of size ids. text gives what a token stands for, and nothing for tokens that are no text.
func NewVocab(size int, text func(id int32) []byte) *Vocab {
	v := &Vocab{ends: make([]uint32, size+1)}
	all := slices.DeleteFunc(tokens(size, text), func(t token) bool { return bytes.IndexByte(t.text, markByte) >= 0 && string(t.text) != Mark(t.id) })
	for _, t := range all {
		v.ends[t.id+1] = uint32(len(t.text))
		v.texts = append(v.texts, t.text...)
		v.longest = max(v.longest, len(t.text))
	}
	v.texts = slices.Clone(v.texts) // without room for more
	for id := range size {
		v.ends[id+1] += v.ends[id]
	}
	for i, most := range tierBytes {
		var tier []token
		all = slices.DeleteFunc(all, func(t token) bool {
			if len(t.text) > most {
				return false
			}
			tier = append(tier, t)
			return true
		})
		v.tries[i] = newTrie(tier)
	}
	return v
}

// tokens are those that a form may let through, by id.
func tokens(size int, text func(id int32) []byte) (all []token) {
	for id := range int32(size) {
		if t := text(id); len(t) > 0 && len(t) <= longestToken {
			all = append(all, token{t, id})
		}
	}
	return all
}

// maskWords is how many words the mask of a vocabulary has.
func maskWords(size int) int { return (size + 63) / 64 }

// triesOf are those with the tokens of a tier.
func (v *Vocab) triesOf(tier int) []*trie {
	if tier == everyTier {
		return v.tries[:]
	}
	return v.tries[tier : tier+1]
}

func (v *Vocab) words() int { return maskWords(len(v.ends) - 1) }

// text is what a token stands for, nothing if it is no text.
func (v *Vocab) text(id int32) []byte {
	if id < 0 || int(id) >= len(v.ends)-1 {
		return nil
	}
	return v.texts[v.ends[id]:v.ends[id+1]]
}

// Mark stands for a token that is no text: where a Vocab is given it as the token's text, a grammar can ask for the token by it.
// It begins with a byte that no UTF-8 has. A token with that byte is never let through: the tokens of single bytes that most
// vocabularies have could spell a mark.
func Mark(id int32) string { return fmt.Sprintf("%s%08x", []byte{markByte}, uint32(id)) }

const markByte = 0xff

// CutMark gives what comes before the first Mark in a text, the token of that, and what follows it; -1 where it is not whole, or
// there is none.
func CutMark(text []byte) (before []byte, id int32, after []byte, found bool) {
	const size = 9
	before, after, found = bytes.Cut(text, []byte{0xff})
	if len(after) < size-1 {
		return before, -1, nil, found
	}
	n, err := strconv.ParseUint(string(after[:size-1]), 16, 32)
	if err != nil {
		return before, -1, nil, found
	}
	return before, int32(n), after[size-1:], found
}

// All tells whether a mask has all tokens that may be asked for.
func (v *Vocab) All(mask []uint64) bool {
	n := 0
	for _, t := range v.tries {
		n -= len(t.ids)
	}
	for _, w := range mask {
		n += bits.OnesCount64(w)
	}
	return n == 0
}
