package tokenizer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// charsMap is the compiled rewriting table of SentencePiece models: a double-array
// trie (darts-clone) from byte strings to offsets in a list of replacements that
// end in a zero byte.
type charsMap struct {
	units []uint32
	texts []byte
}

// maxMapped bounds one replacement and what it is for; the longest in the published
// tables has 33 bytes.
const maxMapped = 64

// newCharsMap reads the table; an empty one maps nothing.
func newCharsMap(data []byte) (*charsMap, error) {
	if len(data) == 0 {
		return &charsMap{}, nil
	}
	if len(data) < 4 {
		return nil, fmt.Errorf("the character map has %d bytes", len(data))
	}
	size := uint64(binary.LittleEndian.Uint32(data))
	if size == 0 || size%4 != 0 || size > uint64(len(data)-4) {
		return nil, fmt.Errorf("the character map of %d bytes names a trie of %d", len(data), size)
	}
	m := &charsMap{units: make([]uint32, size/4), texts: data[4+size:]}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(data[4+4*i:])
	}
	if !utf8.Valid(m.texts) {
		return nil, fmt.Errorf("the character map's texts are not valid UTF-8")
	}
	for _, text := range bytes.Split(m.texts, []byte{0}) {
		if len(text) > maxMapped {
			return nil, fmt.Errorf("the character map has a text of %d bytes, more than %d", len(text), maxMapped)
		}
	}
	return m, nil
}

// lookup looks for keys at the start of s and returns the replacement for the
// shortest or the longest, and that key's length, 0 for none.
func (m *charsMap) lookup(s string, longest bool) (to []byte, n int) {
	if len(m.units) == 0 {
		return nil, 0
	}
	pos := trieOffset(m.units[0])
	for i := 0; i < min(len(s), maxMapped) && s[i] != 0; i++ {
		pos ^= uint32(s[i])
		if int(pos) >= len(m.units) {
			break
		}
		unit := m.units[pos]
		if unit&(1<<31|0xFF) != uint32(s[i]) {
			break
		}
		pos ^= trieOffset(unit)
		if unit>>8&1 == 1 && int(pos) < len(m.units) {
			if value := m.units[pos] &^ (1 << 31); int(value) <= len(m.texts) {
				to, n = m.texts[value:], i+1
				if !longest {
					break
				}
			}
		}
	}
	if end := bytes.IndexByte(to, 0); end >= 0 {
		to = to[:end]
	}
	return to, n
}

// trieOffset is the distance to a node's children in a darts-clone unit.
func trieOffset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// rewriteGraphemes is the Precompiled normaliser. Odd as it is, this is what the
// reference does: a grapheme cluster under six bytes that begins with a key becomes
// that key's text as a whole; in others each rune is looked up.
func (m *charsMap) rewriteGraphemes(s string) string {
	var b strings.Builder
	most := grown(len(s))
	for len(s) > 0 && b.Len() <= most { // else normalizer.apply leaves it all
		n := graphemeLen(s)
		cluster := s[:n]
		s = s[n:]
		if n < 6 {
			if to, hit := m.lookup(cluster, false); hit > 0 {
				b.Write(to)
				continue
			}
		}
		for i, r := range cluster {
			part := cluster[i : i+utf8.RuneLen(r)]
			if to, hit := m.lookup(part, false); hit > 0 {
				b.Write(to)
			} else {
				b.WriteString(part)
			}
		}
	}
	return b.String()
}

// graphemeLen returns the length of the first extended grapheme cluster of s. Only
// the rules that can apply to a cluster under six bytes are here: flags, Hangul
// syllables, emoji sequences and Indic conjuncts are longer, and their parts are
// looked up one by one either way.
func graphemeLen(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if r == '\r' && n < len(s) && s[n] == '\n' {
		return 2
	}
	if isBreaker(r) {
		return n
	}
	for n < len(s) {
		next, size := utf8.DecodeRuneInString(s[n:])
		if isBreaker(next) || !isExtending(next) && !isPrepended(r) {
			break
		}
		r = next
		n += size
	}
	return n
}

// isPrepended reports whether the rune after r goes with it.
func isPrepended(r rune) bool {
	return r >= 0x600 && (unicode.Is(unicode.Prepended_Concatenation_Mark, r) || r == 0xD4E || r == 0x111C2 || r == 0x111C3)
}

// isBreaker reports whether r is a cluster of its own: a control character.
func isBreaker(r rune) bool {
	if r >= ' ' && r < 0x7F {
		return false
	}
	return r != 0x200C && r != 0x200D && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) &&
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !isExtending(r)
}

// isExtending reports whether r goes with the rune before it.
func isExtending(r rune) bool {
	return r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc, unicode.Other_Grapheme_Extend) ||
		r == 0x200D || r == 0xE33 || r == 0xEB3 || r >= 0x1F3FB && r <= 0x1F3FF
}
