package generate

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"hearth/internal/chat"
)

// tape follows the bytes of tokens through decoding, parsing and the search for stop strings, so that every piece of text goes
// out with the logprobs of the tokens it is made of and no others. What of a token is no text, because markup is read, blanks are
// dropped or a stop string cuts it, is in nobody's bytes: put together, those of a text's tokens are the text, but for what a model
// writes that is no UTF-8 and stands as U+FFFD there.
//
// A token's bytes are in raw until the decoder makes text of them, then in read until the parser says what of them is text, then
// in kept until it is certain that they are no part of a stop string, then in out until no other byte of the same token is on
// its way: a token is told once.
type tape struct {
	markers []string // of the family: what stands in one is markup

	tokens []taped // those with bytes on their way; the first is number base
	base   int

	raw   []bit
	read  []bit
	fresh int // where what was read last begins in read
	text  []byte
	kept  []bit
	out   []bit
	runes int // that began in bytes of no token and count for the next one told
}

// taped is a token on its way.
type taped struct {
	of   chat.Logprob
	left int // bytes in raw, read and kept
}

// bit is a byte of text, and the one byte of a token that it stands for. U+FFFD is three bits, which stand for one to three bytes.
type bit struct {
	token int // number; -1: none's
	text  byte
	raw   byte
	none  bool // it stands for no byte of its token
}

func newTape(markers []string) *tape {
	return &tape{markers: markers}
}

// prime begins with what the decoder holds of a prompt's last tokens: bytes of no token told here.
func (t *tape) prime(held []byte) {
	for _, b := range held {
		t.raw = append(t.raw, bit{token: -1, raw: b})
	}
}

// add takes a token that stands for raw, and the text that the decoder made with it, of it or of those before.
func (t *tape) add(lp chat.Logprob, raw []byte, text string) {
	n := t.base + len(t.tokens)
	t.tokens = append(t.tokens, taped{of: lp})
	for _, b := range raw {
		t.raw = append(t.raw, bit{token: n, raw: b})
	}
	t.count(t.raw[len(t.raw)-len(raw):], 1)
	t.decoded(text)
}

// mostRaw is how many bytes may wait for the decoder: it holds back no more than a character, or a run of bytes.
const mostRaw = 1 << 10

// decoded takes text of the decoder's and finds the bytes it was made of.
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

// opened drops the forced opening: the parser has given all of it back, and what reads like it later is the model's.
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

// passed drops what was read before the text that was read last: the parser says that it is markup.
func (t *tape) passed() { t.drop(t.fresh) }

// drop drops so many bytes of what was read.
func (t *tape) drop(n int) {
	t.count(t.read[:n], -1)
	t.read, t.text, t.fresh = t.read[n:], t.text[n:], max(t.fresh-n, 0)
}

// piece finds what a piece of the parser's was read from and, if it is part of the answer, keeps it. last says that no other
// piece was read with it: the parser then holds back what follows, if anything does.
func (t *tape) piece(s string, last, answer bool) {
	if s == "" {
		return
	}
	from, at := t.locate(s, last), []int(nil)
	if from < 0 {
		at = t.scattered(s)
	}
	end := 0 // of what of it stands in what was read
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

// locate is where s stands in what was read, -1 if nowhere. That is markup which is gone, then s, then what the parser holds back
// because markup may come of it: so it is the first place behind which there is nothing but that, or else the last one. Markup that
// turned out to be none is the first of its kind: more of it may be held back. Too early a place costs nothing but that a token
// stands for the same bytes of another, too late a one loses what is before it.
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

// emit lets n bytes of what is kept out.
func (t *tape) emit(n int) {
	t.count(t.kept[:n], -1)
	t.out, t.kept = append(t.out, t.kept[:n]...), t.kept[n:]
}

// cut drops what is kept: a stop string, and what follows it.
func (t *tape) cut() {
	t.count(t.kept, -1)
	t.kept = nil
	t.drop(len(t.read))
}

// take gives the text that may go out now, with its tokens: all of it, or as much as no token has more of.
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

// busy tells whether bytes of a token are still on their way.
func (t *tape) busy(token int) bool { return token >= 0 && t.tokens[token-t.base].left > 0 }

// forget lets go of tokens that nothing is on its way of.
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
