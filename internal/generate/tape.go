package generate

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"hearth/internal/chat"
)

// tape follows the bytes of tokens through decoding, parsing and the search for stop strings, so that every piece of text goes
// out with the logprobs of its own tokens. Bytes that do not become text (markup, dropped blanks, stop strings) are left out of
// their token's Bytes, so that the Bytes of a text's tokens, joined, are the text. What is no UTF-8 is U+FFFD in the text.
//
// A byte moves from list to list: raw until it is decoded, read until the parser has taken it, kept until no stop string can
// have it, out until all bytes of its token are there, because a token is told once.
type tape struct {
	markers []string // the family's markup

	tokens []taped // those with bytes on their way; the first is number base
	base   int

	raw   []bit
	read  []bit
	fresh int // read[fresh:] was decoded last
	text  []byte
	kept  []bit
	out   []bit
	runes int // runes that no token began; they count for the next token
}

// taped is a token on its way.
type taped struct {
	of   chat.Logprob
	left int // bytes in raw, read and kept
}

// bit is a byte of text with the byte of a token that it was decoded from. A U+FFFD is three bits for one to three bytes.
type bit struct {
	token int // number; -1: none's
	text  byte
	raw   byte
	none  bool // it stands for no byte of its token
}

// prime takes bytes of the prompt's last tokens that the decoder still holds.
func (t *tape) prime(held []byte) {
	for _, b := range held {
		t.raw = append(t.raw, bit{token: -1, raw: b})
	}
}

// add takes a token, its bytes, and the text that the decoder gave when it got them.
func (t *tape) add(lp chat.Logprob, raw []byte, text string) {
	n := t.base + len(t.tokens)
	t.tokens = append(t.tokens, taped{of: lp})
	for _, b := range raw {
		t.raw = append(t.raw, bit{token: n, raw: b})
	}
	t.count(t.raw[len(t.raw)-len(raw):], 1)
	t.decoded(text)
}

// mostRaw bounds the bytes that wait for the decoder, which holds back a character or a run of bytes.
const mostRaw = 1 << 10

// decoded takes text from the decoder and finds its bytes in raw.
func (t *tape) decoded(text string) {
	t.fresh = len(t.read)
	spare := 0 // bits of a U+FFFD before, which may stand for more bytes
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		char := text[:n]
		text = text[n:]
		at := t.find(char)
		if r == utf8.RuneError && at != 0 {
			t.replaced(char)
			spare = n - 1
			continue
		}
		for range max(at, 0) { // what is left of a broken character, or a blank that begins a text and is none of it
			if spare > 0 {
				free := t.read[len(t.read)-spare:]
				for k := range free { // in order: a token is told once
					free[k].token = t.raw[0].token
				}
				free[0].raw, free[0].none = t.raw[0].raw, false
				spare--
			} else {
				t.count(t.raw[:1], -1)
			}
			t.raw = t.raw[1:]
		}
		spare = 0
		for i := range n {
			b := bit{token: t.last(), raw: char[i]}
			if at >= 0 {
				b = t.raw[0]
				t.raw = t.raw[1:]
			} else { // the decoder's own spelling
				t.count([]bit{b}, 1)
			}
			b.text = char[i]
			t.read = append(t.read, b)
		}
	}
	for _, b := range t.read[t.fresh:] {
		t.text = append(t.text, b.text)
	}
	if len(t.raw) > mostRaw {
		t.count(t.raw, -1)
		t.raw = nil
	}
}

// find is where in raw a character's bytes are, -1 if nowhere.
func (t *tape) find(char string) int {
	for i := 0; i+len(char) <= len(t.raw); i++ {
		for k := 0; t.raw[i+k].raw == char[k]; k++ {
			if k == len(char)-1 {
				return i
			}
		}
	}
	return -1
}

// replaced takes a U+FFFD, which stands for the first byte there is.
func (t *tape) replaced(char string) {
	b := bit{token: t.last(), none: true}
	if len(t.raw) > 0 {
		b = t.raw[0]
		t.raw = t.raw[1:]
	}
	for i := range len(char) {
		b.text = char[i]
		t.read = append(t.read, b)
		b.none = true
	}
}

// last is the number of the last token, -1 before the first.
func (t *tape) last() int {
	if len(t.tokens) == 0 {
		return -1
	}
	return t.base + len(t.tokens) - 1
}

// opening takes the text of a forced opening, which is no token's.
func (t *tape) opening(text string) {
	t.fresh = len(t.read)
	for i := range len(text) {
		t.read = append(t.read, bit{token: -1, text: text[i], none: true})
	}
	t.text = append(t.text, text...)
}

// opened drops the forced opening when the parser has given it back. The same text later is the model's.
func (t *tape) opened() {
	n := 0
	for n < len(t.read) && t.read[n].token < 0 {
		n++
	}
	t.drop(n)
}

// count notes bytes that are on their way, or no more.
func (t *tape) count(bits []bit, by int) {
	for _, b := range bits {
		if i := b.token - t.base; b.token >= 0 && i >= 0 && !b.none {
			t.tokens[i].left += by
		}
	}
}

// passed drops what was read before the last text: the parser took it as markup.
func (t *tape) passed() { t.drop(t.fresh) }

// drop drops so many bytes of what was read.
func (t *tape) drop(n int) {
	t.count(t.read[:n], -1)
	t.read, t.text, t.fresh = t.read[n:], t.text[n:], max(t.fresh-n, 0)
}

// piece finds the bits that a piece of the parser was read from, and keeps them if it is part of the answer. last says that no
// other piece was read with it, so that the parser holds back everything after it.
func (t *tape) piece(s string, last, answer bool) {
	if s == "" {
		return
	}
	from, at := t.locate(s, last), []int(nil)
	if from < 0 {
		at = t.scattered(s)
	}
	end := 0 // of the piece in read
	for i := range len(s) {
		b := bit{token: -1, text: s[i], none: true}
		if from >= 0 || at != nil {
			k := from + i
			if at != nil {
				k = at[i]
			}
			b, end = t.read[k], k+1
			t.read[k].none = true // dropping what was read must not count it
			if !answer {
				t.count([]bit{b}, -1)
			}
		}
		if answer {
			t.kept = append(t.kept, b)
		}
	}
	t.drop(end)
}

// locate is where s stands in what was read, -1 if nowhere. What was read is markup, then s, then what the parser holds back as
// the possible beginning of markup. So it is the first place with nothing but such a beginning after it, or else the last place.
// An s that begins like markup is the first of its kind, as more of it may be held back. A place that is too early swaps equal
// bytes of two tokens; one that is too late loses what is before it.
func (t *tape) locate(s string, last bool) int {
	best, inside := -1, -1
	spoken := slices.ContainsFunc(t.markers, func(m string) bool { return strings.HasPrefix(s, m) })
	for end, n := len(t.text), 0; end >= len(s) && n < mostPlaces; n++ {
		i := bytes.LastIndex(t.text[:end], []byte(s))
		if i < 0 {
			break
		}
		end = i + len(s) - 1
		switch {
		case spoken:
			best = i
		case t.within(i, len(s)):
			inside = max(inside, i)
		case best < 0, last && t.holdable(i+len(s)), !last && i+len(s) > t.fresh:
			best = i
		}
	}
	if best < 0 {
		return inside
	}
	return best
}

// mostPlaces is how many places of a piece are looked at.
const mostPlaces = 256

// holdable tells whether what was read from i on can be held back: line ends, and the beginning of markup.
func (t *tape) holdable(i int) bool {
	rest := t.text[i:]
	if len(rest) > mostHeld {
		return false
	}
	rest = bytes.TrimLeft(rest, " \r\n\t")
	return len(rest) == 0 || slices.ContainsFunc(t.markers, func(m string) bool { return strings.HasPrefix(m, string(rest)) })
}

// mostHeld is more than a piece of markup and the blanks before it.
const mostHeld = 256

// within tells whether n bytes from i on are part of a longer piece of markup.
func (t *tape) within(i, n int) bool {
	for _, m := range t.markers {
		if len(m) > n && bytes.Contains(t.text[max(0, i+n-len(m)):min(len(t.text), i+len(m))], []byte(m)) {
			return true
		}
	}
	return false
}

// scattered is where the bytes of s stand in what was read, with other bytes between them; nil if they do not.
func (t *tape) scattered(s string) []int {
	at, k := make([]int, len(s)), len(t.text)
	for i := len(s) - 1; i >= 0; i-- {
		if k = bytes.LastIndexByte(t.text[:k], s[i]); k < 0 {
			return nil
		}
		at[i] = k
	}
	return at
}

// emit moves n bytes from kept to out.
func (t *tape) emit(n int) {
	t.count(t.kept[:n], -1)
	t.out, t.kept = append(t.out, t.kept[:n]...), t.kept[n:]
}

// truncate drops what is kept: a stop string, and what follows it.
func (t *tape) truncate() {
	t.count(t.kept, -1)
	t.kept = nil
	t.drop(len(t.read))
}

// take gives the text that may go out now with its tokens: all, or up to the first token that is not complete.
func (t *tape) take(all bool) (string, []chat.Logprob) {
	end := len(t.out)
	for !all && end > 0 && t.busy(t.out[end-1].token) {
		end--
	}
	text := make([]byte, end)
	var lps []chat.Logprob
	last := -1
	for i, b := range t.out[:end] {
		text[i] = b.text
		began := b.text&0xC0 != 0x80
		if b.token < 0 {
			if began {
				t.runes++
			}
			continue
		}
		if b.token != last {
			last = b.token
			lp := t.tokens[last-t.base].of
			lp.Bytes, lp.Runes, t.runes = nil, t.runes, 0
			lps = append(lps, lp)
		}
		lp := &lps[len(lps)-1]
		if !b.none {
			lp.Bytes = append(lp.Bytes, b.raw)
		}
		if began {
			lp.Runes++
		}
	}
	for i := range lps {
		lps[i].Token = strings.ToValidUTF8(string(lps[i].Bytes), "\uFFFD")
	}
	t.out = t.out[end:]
	t.forget()
	return string(text), lps
}

// busy tells whether a token has bytes that are not in out yet.
func (t *tape) busy(token int) bool { return token >= 0 && t.tokens[token-t.base].left > 0 }

// forget drops tokens that have no more bits.
func (t *tape) forget() {
	n := len(t.tokens)
	for _, b := range [][]bit{t.out, t.kept, t.read, t.raw} {
		for i := range b {
			if b[i].token >= 0 {
				n = min(n, b[i].token-t.base)
			}
		}
	}
	t.tokens, t.base = t.tokens[n:], t.base+n
}
