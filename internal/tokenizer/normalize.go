package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer is the list of rewritings applied to text between added tokens.
type normalizer []func(string) string

func (n normalizer) apply(s string) string {
	for _, f := range n {
		s = f(s)
	}
	return s
}

// replaceAll is the Replace normaliser with a fixed string.
func replaceAll(from, to string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, from, to) }
}

// prepend is the Prepend normaliser: empty text stays empty.
func prepend(prefix string) func(string) string {
	return func(s string) string {
		if s == "" {
			return s
		}
		return prefix + s
	}
}

// nfc is Unicode's normalisation form C. Package norm has it too, but in the
// "stream-safe" variant that inserts U+034F into runs of more than 30 marks, which
// the reference does not do: texts with long runs are composed here.
func nfc(s string) string {
	if longestMarkRun(s) <= safeMarkRun {
		return norm.NFC.String(s)
	}
	runes := decompose(s)
	out := runes[:0]
	starter, last := -1, uint8(0) // position in out; class of the rune before
	for _, r := range runes {
		ccc := combiningClass(r)
		adjacent := starter == len(out)-1
		if starter >= 0 && (adjacent || last < ccc) {
			if c, ok := composite(out[starter], r); ok {
				out[starter] = c
				continue
			}
		}
		if ccc == 0 {
			starter = len(out)
		}
		last = ccc
		out = append(out, r)
	}
	return string(out)
}

// safeMarkRun is a length of mark runs that cannot exceed 30 after decomposition.
const safeMarkRun = 8

func longestMarkRun(s string) int {
	t := loadClasses()
	longest, run := 0, 0
	for i := 0; i < len(s); {
		if s[i] < 0xCC { // below U+0300, the first mark
			run = 0
			i++
			continue
		}
		c, n := t.of(s, i)
		if run++; c&clsMark == 0 {
			run = 0
		}
		longest = max(longest, run)
		i += n
	}
	return longest
}

// decompose is normalisation form D without the stream-safe limit.
func decompose(s string) []rune {
	var out []rune
	var buf []byte
	for _, r := range s {
		buf = norm.NFD.AppendString(buf[:0], string(r))
		out = append(out, []rune(string(buf))...)
	}
	for from := 0; from < len(out); from++ {
		to := from
		for to < len(out) && combiningClass(out[to]) != 0 {
			to++
		}
		slices.SortStableFunc(out[from:to], func(a, b rune) int {
			return int(combiningClass(a)) - int(combiningClass(b))
		})
		from = to
	}
	return out
}

func combiningClass(r rune) uint8 {
	return norm.NFC.PropertiesString(string(r)).CCC()
}

// composite returns the one rune that a and b compose to.
func composite(a, b rune) (rune, bool) {
	s := norm.NFC.String(string([]rune{a, b}))
	r, n := utf8.DecodeRuneInString(s)
	return r, n == len(s)
}
