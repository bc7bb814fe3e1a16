package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

const (
	// maxTokens bounds token ids; the largest vocabularies have about 260,000.
	maxTokens = 1 << 22
	// maxGap bounds the unused ids below the largest one, so that memory stays
	// proportional to the file.
	maxGap = 1 << 16
	// maxAddedBytes bounds an added token's text (see matcher).
	maxAddedBytes = 1 << 12
)

// vocabulary maps between token text and ids. The slices are indexed by id.
type vocabulary struct {
	ids     map[string]int32 // the model's tokens; added tokens have their own map
	text    []string         // as written in tokenizer.json; "" where no token has the id
	used    []bool
	special []bool
	raw     []byte   // the bytes of all tokens, back to back
	rawEnd  []uint32 // where each token's bytes end in raw
}

func (v *vocabulary) has(id int32) bool { return id >= 0 && int(id) < len(v.used) && v.used[id] }

func (v *vocabulary) bytes(id int32) []byte {
	from, to := uint32(0), v.rawEnd[id]
	if id > 0 {
		from = v.rawEnd[id-1]
	}
	return v.raw[from:to:to]
}

// readVocab reads the object of token text to id. A text given twice keeps its
// last id, as a JSON object does.
func readVocab(r *jsonReader) (vocabulary, error) {
	// All texts share one backing string: one allocation instead of one each, and
	// nothing keeps the file's bytes alive.
	var arena []byte
	type entry struct{ end, id int32 }
	var entries []entry
	err := r.object(func(key []byte) error {
		arena = append(arena, key...)
		id, err := r.id()
		entries = append(entries, entry{int32(len(arena)), id})
		return err
	})
	if err != nil {
		return vocabulary{}, err
	}
	texts := string(arena)
	v := vocabulary{ids: make(map[string]int32, len(entries))}
	top := int32(-1)
	for _, e := range entries {
		top = max(top, e.id)
	}
	if err := v.grow(int(top)+1, len(entries)); err != nil {
		return vocabulary{}, err
	}
	from := int32(0)
	for _, e := range entries {
		text := texts[from:e.end]
		v.ids[text] = e.id
		v.text[e.id] = text
		v.used[e.id] = true
		from = e.end
	}
	return v, nil
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

// byteRune gives the printable rune that a byte-level vocabulary writes for each
// byte: itself where that is printable, else the next unused one from U+0100 on.
// runeByte is the inverse, -1 for runes that stand for no byte.
var byteRune, runeByte = func() (to [256]rune, from [maxByteRune]int16) {
	for i := range from {
		from[i] = -1
	}
	next := rune(256)
	for b := range to {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			to[b] = rune(b)
		} else {
			to[b] = next
			next++
		}
		from[to[b]] = int16(b)
	}
	return to, from
}()

const maxByteRune = 256 + 68

// appendByteLevel appends the bytes that byte-level token text stands for. Text
// with any rune outside the byte alphabet (an added token with a space in it)
// stands for itself.
func appendByteLevel(dst []byte, text string) []byte {
	n := len(dst)
	for _, r := range text {
		if r >= maxByteRune || runeByte[r] < 0 {
			return append(dst[:n], text...)
		}
		dst = append(dst, byte(runeByte[r]))
	}
	return dst
}

// appendByteRunes appends the byte-level form of s.
func appendByteRunes(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = utf8.AppendRune(dst, byteRune[s[i]])
	}
	return dst
}
