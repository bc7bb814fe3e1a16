package tokenizer

import "unicode/utf8"

const (
	// maxTokens bounds token ids; the largest vocabularies have about 260,000.
	maxTokens = 1 << 22
	// maxGap bounds the unused ids below the largest one, so that memory stays
	// proportional to the file.
	maxGap = 1 << 16
	// maxTokenBytes bounds a token's text. maxAddedBytes bounds that of an added token,
	// maxTrieBytes that of the tokens that are looked up at every place of a text, and
	// maxJoinedBytes that of tokens whose parts are looked for. The longest that are
	// known are runs of some hundred spaces or dots.
	maxTokenBytes  = 1 << 14
	maxAddedBytes  = 1 << 10
	maxTrieBytes   = 1 << 9
	maxJoinedBytes = 1 << 10
)

// vocabulary maps between token text and ids. The slices are indexed by id.
type vocabulary struct {
	index   tokenIndex // the model's tokens; added tokens have their own map
	count   int        // how many of them there are
	text    []string   // as written in tokenizer.json; "" where no token has the id
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
