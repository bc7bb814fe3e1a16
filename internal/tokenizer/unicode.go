package tokenizer

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// form is one of the two ways to decompose text: canonical, or compatible too.
// Package norm has them, but in the "stream-safe" variant that inserts U+034F into
// runs of more than 30 marks, which the reference does not do: texts with long runs
// are handled here rune by rune.
type form struct {
	decompose, compose norm.Form
	newer              func() *unicode.RangeTable // runes that the reference does not decompose
	newerFrom          rune                       // the first of them
}

var (
	canonical  = form{norm.NFD, norm.NFC, ranges("11938"), 0x11938}
	compatible = form{norm.NFKD, norm.NFKC, ranges("32FF A7F2-A7F4 AB69 10781-10785 10787-107B0 107B2-107BA 11938 1E030-1E06D 1F16C 1FBF0-1FBF9"), 0x32FF}
)

func (f *form) isNewer(r rune) bool { return r >= f.newerFrom && unicode.Is(f.newer(), r) }

func (f *form) composed(s string) string {
	if f.plain(s) {
		return f.compose.String(s)
	}
	runes := f.runes(s)
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

func (f *form) decomposed(s string) string {
	if f.plain(s) {
		return f.decompose.String(s)
	}
	return string(f.runes(s))
}

// safeMarkRun is a length of mark runs that cannot exceed 30 after decomposition.
const safeMarkRun = 8

// plain reports whether package norm does what the reference does: s has no long
// run of marks, or of the letters that it counts like marks, and no rune that only
// one of the two decomposes or reorders.
func (f *form) plain(s string) bool {
	t := loadClasses()
	run := 0
	for i := 0; i < len(s); {
		if s[i] < 0xCC { // below U+0300, the first mark
			run = 0
			i++
			continue
		}
		c, n := t.of(s, i)
		r, _ := utf8.DecodeRuneInString(s[i:])
		if c&clsMark != 0 || r >= 0x1160 && r <= 0x11FF || r == 0xFF9E || r == 0xFF9F {
			run++
		} else {
			run = 0
		}
		if run > safeMarkRun || f.isNewer(r) || c&clsMark != 0 && isNewMark(r) {
			return false
		}
		i += n
	}
	return true
}

// runes decomposes s and puts marks in canonical order.
func (f *form) runes(s string) []rune {
	var out []rune
	var buf []byte
	for _, r := range s {
		if f.isNewer(r) {
			out = append(out, r)
			continue
		}
		buf = f.decompose.AppendString(buf[:0], string(r))
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

// isNewMark reports whether r is a mark that the reference does not know.
func isNewMark(r rune) bool { return r >= 0x7FD && unicode.Is(oldMarks.less(), r) }

// combiningClass is 0 for marks that the reference does not know, so that they stay
// where they are.
func combiningClass(r rune) uint8 {
	if isNewMark(r) {
		return 0
	}
	return norm.NFC.PropertiesString(string(r)).CCC()
}

// composite returns the one rune that a and b compose to.
func composite(a, b rune) (rune, bool) {
	s := norm.NFC.String(string([]rune{a, b}))
	r, n := utf8.DecodeRuneInString(s)
	return r, n == len(s)
}

// oldClass is a class of runes as the reference has it, whose tables for some
// components are of Unicode 8 or 9: a class of package unicode less the runes that
// have come since, plus some that have left.
type oldClass struct {
	tables     []*unicode.RangeTable
	less, plus func() *unicode.RangeTable
}

func (c *oldClass) has(r rune) bool {
	if unicode.In(r, c.tables...) {
		return !unicode.Is(c.less(), r)
	}
	return unicode.Is(c.plus(), r)
}

// ranges reads a list of runes and ranges of them in hexadecimal when it is first
// asked for.
func ranges(list string) func() *unicode.RangeTable {
	return sync.OnceValue(func() *unicode.RangeTable {
		t := &unicode.RangeTable{}
		for _, item := range strings.Fields(list) {
			low, high, isRange := strings.Cut(item, "-")
			if !isRange {
				high = low
			}
			lo, _ := strconv.ParseUint(low, 16, 32)
			hi, _ := strconv.ParseUint(high, 16, 32)
			if hi <= 0xFFFF {
				t.R16 = append(t.R16, unicode.Range16{Lo: uint16(lo), Hi: uint16(hi), Stride: 1})
			} else {
				t.R32 = append(t.R32, unicode.Range32{Lo: uint32(lo), Hi: uint32(hi), Stride: 1})
			}
		}
		return t
	})
}

// The differences were found by giving the reference every rune; TestOldClasses
// holds them.
var (
	// oldControl is what BertNormalizer removes.
	oldControl = &oldClass{
		tables: []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Co},
		less:   ranges("890-891 8E2 110CD 13430-1343F"),
		plus:   ranges(""),
	}
	// oldPunct is where Punctuation and BertPreTokenizer cut.
	oldPunct = &oldClass{
		tables: []*unicode.RangeTable{unicode.P, asciiSymbols},
		less: ranges(`61D 9FD A76 C77 C84 1B7D-1B7E 2E43-2E4F 2E52-2E5D 10EAD 10F55-10F59 10F86-10F89 1144B-1144F 1145A-1145B
			1145D 11660-1166C 116B9 1183B 11944-11946 119E2 11A3F-11A46 11A9A-11A9C 11A9E-11AA2 11B00-11B09 11C41-11C45
			11C70-11C71 11EF7-11EF8 11F43-11F4F 11FFF 12FF1-12FF2 16E97-16E9A 16FE2 1E95E-1E95F`),
		plus: ranges("166D 111C9"),
	}
	// oldNonspacing is what BertNormalizer takes for accents.
	oldNonspacing = &oldClass{
		tables: []*unicode.RangeTable{unicode.Mn},
		less: ranges(`7FD 898-89F 8CA-8E1 9FE AFA-AFF B55 C04 C3C D00 D3B-D3C D81 EBA ECE 180F 1885-1886 1ABF-1ACE 1DF6-1DFB
			A82C A8C5 A8FF A9BD 10D24-10D27 10EAB-10EAC 10EFD-10EFF 10F46-10F50 10F82-10F85 11070 11073-11074 110C2 111C9 111CF
			1123E 11241 1133B 11438-1143F 11442-11444 11446 1145E 1182F-11837 11839-1183A 1193B-1193C 1193E 11943 119D4-119D7
			119DA-119DB 119E0 11A01-11A0A 11A33-11A38 11A3B-11A3E 11A47 11A51-11A56 11A59-11A5B 11A8A-11A96 11A98-11A99
			11C30-11C36 11C38-11C3D 11C3F 11C92-11CA7 11CAA-11CB0 11CB2-11CB3 11CB5-11CB6 11D31-11D36 11D3A 11D3C-11D3D
			11D3F-11D45 11D47 11D90-11D91 11D95 11D97 11EF3-11EF4 11F00-11F01 11F36-11F3A 11F40 11F42 13440 13447-13455 16F4F
			16FE4 1CF00-1CF2D 1CF30-1CF46 1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024 1E026-1E02A 1E08F 1E130-1E136 1E2AE
			1E2EC-1E2EF 1E4EC-1E4EF 1E944-1E94A`),
		plus: ranges("1734"),
	}
	// oldMarks is what StripAccents removes.
	oldMarks = &oldClass{
		tables: []*unicode.RangeTable{unicode.M},
		less: ranges(`7FD 898-89F 8CA-8D3 9FE AFA-AFF B55 C04 C3C CF3 D00 D3B-D3C D81 EBA ECE 1715 180F 1ABF-1ACE 1CF7 1DF6-1DFA
			A82C A8FF 10D24-10D27 10EAB-10EAC 10EFD-10EFF 10F46-10F50 10F82-10F85 11070 11073-11074 110C2 11145-11146 111C9
			111CE-111CF 11241 1133B 1145E 1182C-1183A 11930-11935 11937-11938 1193B-1193E 11940 11942-11943 119D1-119D7
			119DA-119E0 119E4 11A01-11A0A 11A33-11A39 11A3B-11A3E 11A47 11A51-11A5B 11A8A-11A99 11D31-11D36 11D3A 11D3C-11D3D
			11D3F-11D45 11D47 11D8A-11D8E 11D90-11D91 11D93-11D97 11EF3-11EF6 11F00-11F01 11F03 11F34-11F3A 11F3E-11F42 13440
			13447-13455 16F4F 16F7F-16F87 16FE4 16FF0-16FF1 1CF00-1CF2D 1CF30-1CF46 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF
			1E4EC-1E4EF`),
		plus: ranges("1CF2-1CF3"),
	}
)

// asciiSymbols is the ASCII punctuation that Unicode calls symbols.
var asciiSymbols = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: '$', Hi: '$', Stride: 1}, {Lo: '+', Hi: '+', Stride: 1}, {Lo: '<', Hi: '>', Stride: 1},
	{Lo: '^', Hi: '^', Stride: 1}, {Lo: '`', Hi: '`', Stride: 1}, {Lo: '|', Hi: '|', Stride: 1}, {Lo: '~', Hi: '~', Stride: 1},
}, LatinOffset: 7}
