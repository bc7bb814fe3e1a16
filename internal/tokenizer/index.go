package tokenizer

import (
	"fmt"
	"hash/maphash"
	"math/bits"
)

// tokenIndex finds tokens by their text: open addressing with linear probing, at
// most half full. A map would do the same, but filling and asking it was most of
// the time that loading a large vocabulary took.
type tokenIndex struct {
	seed  maphash.Seed
	slots []indexSlot // power of two
	text  string      // the texts of all tokens, back to back
}

type indexSlot struct {
	tag      uint32 // upper half of the text's hash
	id       int32
	from, to uint32 // the token's place in text; to is 0 when the slot is free
}

// find returns the id of the token with text s, -1 if there is none.
func (x *tokenIndex) find(s string) (int32, bool) {
	if s != "" && len(x.slots) > 0 {
		if slot, ok := x.lookup(maphash.String(x.seed, s), s); ok {
			return slot.id, true
		}
	}
	return -1, false
}

// findBytes is find for text in a buffer.
func (x *tokenIndex) findBytes(s []byte) (int32, bool) {
	if len(s) == 0 || len(x.slots) == 0 {
		return 0, false
	}
	slot, ok := x.lookup(maphash.Bytes(x.seed, s), string(s))
	return slot.id, ok
}

// lookup returns the slot of the token with text s, or the free one where it would
// go.
func (x *tokenIndex) lookup(hash uint64, s string) (slot *indexSlot, ok bool) {
	mask := uint64(len(x.slots) - 1)
	tag := uint32(hash >> 32)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := &x.slots[i]
		if slot.to == 0 {
			return slot, false
		}
		if slot.tag == tag && x.text[slot.from:slot.to] == s {
			return slot, true
		}
	}
}

// batch is how many texts findBatch looks for at once.
const batch = 32

// findBatch looks up some texts, at most batch of them, none empty; an id of -1 says
// that there is no such token. The look-ups are done side by side because nearly all
// of their time is waiting for memory.
func (x *tokenIndex) findBatch(texts [][]byte, ids []int32) {
	var hash [batch]uint64
	var first [batch]indexSlot
	mask := uint64(len(x.slots) - 1)
	for i, s := range texts {
		hash[i] = maphash.Bytes(x.seed, s)
	}
	for i := range texts {
		first[i] = x.slots[hash[i]&mask]
	}
	for i, s := range texts {
		if f := &first[i]; f.tag == uint32(hash[i]>>32) && f.to > 0 && x.text[f.from:f.to] == string(s) {
			ids[i] = f.id
			continue
		}
		slot, ok := x.lookup(hash[i], string(s))
		if ids[i] = slot.id; !ok {
			ids[i] = -1
		}
	}
}

// vocabBuilder collects tokens for a vocabulary.
type vocabBuilder struct {
	text    []byte
	entries []indexEntry
}

type indexEntry struct {
	end uint32 // of the token in text
	id  int32
}

// add appends a token. The text is copied.
func (b *vocabBuilder) add(text []byte, id int32) {
	b.text = append(b.text, text...)
	b.entries = append(b.entries, indexEntry{uint32(len(b.text)), id})
}

// build makes the vocabulary. A text given twice keeps its last id, as a key of a
// JSON object does. An empty text is no token.
func (b *vocabBuilder) build() (vocabulary, error) {
	x := tokenIndex{
		seed:  maphash.MakeSeed(),
		slots: make([]indexSlot, 1<<bits.Len(uint(2*len(b.entries)))),
		text:  string(b.text),
	}
	v := vocabulary{count: len(b.entries)}
	top := int32(-1)
	for _, e := range b.entries {
		top = max(top, e.id)
	}
	if err := v.grow(int(top)+1, len(b.entries)); err != nil {
		return vocabulary{}, err
	}
	from := uint32(0)
	for _, e := range b.entries {
		text := x.text[from:e.end]
		if len(text) > maxTokenBytes {
			return vocabulary{}, fmt.Errorf("token %s has %d bytes, more than %d", quoted(text), len(text), maxTokenBytes)
		}
		if text != "" {
			hash := maphash.String(x.seed, text)
			slot, ok := x.lookup(hash, text)
			if ok && v.text[slot.id] == text {
				v.text[slot.id], v.used[slot.id] = "", false
			}
			*slot = indexSlot{uint32(hash >> 32), e.id, from, e.end}
		}
		v.text[e.id], v.used[e.id] = text, true
		from = e.end
	}
	v.index = x
	return v, nil
}

// readVocab reads the object of token text to id.
func readVocab(r *jsonReader) (vocabulary, error) {
	var b vocabBuilder
	err := r.object(func(key []byte) error {
		// The key may lie in the reader's buffer, so it is copied before the id is read.
		b.add(key, 0)
		id, err := r.id()
		b.entries[len(b.entries)-1].id = id
		return err
	})
	if err != nil {
		return vocabulary{}, err
	}
	return b.build()
}

// grow makes room for ids below size, of which at least count are in use.
func (v *vocabulary) grow(size, count int) error {
	if size > 2*count+maxGap {
		return fmt.Errorf("the largest token id is %d but there are only %d tokens", size-1, count)
	}
	if n := size - len(v.text); n > 0 {
		v.text = append(v.text, make([]string, n)...)
		v.used = append(v.used, make([]bool, n)...)
		v.special = append(v.special, make([]bool, n)...)
	}
	return nil
}
