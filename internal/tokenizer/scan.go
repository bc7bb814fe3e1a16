package tokenizer

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The split expressions of the common models, cut by hand-written scanners: the
// text must match byte for byte, anything else goes to the regular expression
// engine. FuzzScanners holds each scanner equal to the engine.
const (
	contractionRegex = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	wordEndRegex     = `|\s*[\r\n]+|\s+(?!\S)|\s+`

	gpt2Regex    = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	qwen2Regex   = contractionRegex + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + wordEndRegex
	llama3Regex  = contractionRegex + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + wordEndRegex
	qwen35Regex  = contractionRegex + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + wordEndRegex
	casedStart   = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	casedEnd     = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	o200kRegex   = casedStart + `*` + casedEnd + `+` + contractionRegex + `?|` + casedStart + `+` + casedEnd + `*` + contractionRegex + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + wordEndRegex
	mistralRegex = casedStart + `*` + casedEnd + `+|` + casedStart + `+` + casedEnd + `*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + wordEndRegex

	// DeepSeek V3 cuts three times.
	numberRegex   = `\p{N}{1,3}`
	cjkRegex      = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
	deepseekRegex = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" +
		`|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*` + wordEndRegex

	// Kimi's is GPT-4o's with Chinese runs apart, in a tiktoken.model.
	kimiStart = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	kimiEnd   = `[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
	kimiRegex = `[\p{Han}]+|` + kimiStart + `*` + kimiEnd + `+` + contractionRegex + `?|` + kimiStart + `+` + kimiEnd + `*` + contractionRegex + `?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + wordEndRegex
)

// scanFunc returns the end of the piece that begins at s[i], i < len(s): a match of
// the expression, or what lies before the next one. It is always past i.
type scanFunc func(s string, i int) int

// scanners has the scanner of each known split expression, where a line break may
// stand for itself too.
var scanners = map[string]scanFunc{
	gpt2Regex:    scanGPT2,
	qwen2Regex:   wordRules{letters: clsLetter, digits: 1}.next,
	llama3Regex:  wordRules{letters: clsLetter, digits: 3}.next,
	qwen35Regex:  wordRules{letters: clsLetter | clsMark, digits: 1}.next,
	o200kRegex:   casedRules{digits: 3, contractions: true, slash: true}.next,
	mistralRegex: casedRules{digits: 1, slash: true}.next,
	kimiRegex:    casedRules{digits: 3, contractions: true, hanApart: true}.next,

	numberRegex:   scanNumbers,
	cjkRegex:      scanCJK,
	deepseekRegex: scanDeepSeek,
}

// camelRegex matches the ends of words inside of names like sponsorMail; the demo model has it.
const camelRegex = `\p{Ll}(?=\p{Lu})`

// findCamel finds the matches of camelRegex.
func findCamel(s string, _ *watch, found func(from, to int)) error {
	lower := -1 // where the rune before begins, if it is a small letter
	for i, r := range s {
		if lower >= 0 && unicode.IsUpper(r) {
			found(lower, i)
		}
		lower = -1
		if unicode.IsLower(r) {
			lower = i
		}
	}
	return nil
}

// leavesGaps has the known expressions that do not match all of a text.
var leavesGaps = map[string]bool{numberRegex: true, cjkRegex: true, deepseekRegex: true}

// scanner returns the scanner for an expression.
func scanner(regex string) (scanFunc, bool) {
	f, ok := scanners[plainRegex(regex)]
	return f, ok
}

// plainRegex is an expression with its line ends as escapes.
func plainRegex(regex string) string {
	return strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(regex)
}

// class is the set of regular expression classes a rune is in, as bits.
type class uint16

const (
	clsUpper  class = 1 << iota // Lu, Lt
	clsLower                    // Ll
	clsOther                    // Lm, Lo
	clsMark                     // M
	clsNumber                   // N
	clsSpace                    // \s
	clsBreak                    // \r, \n; clsSpace too
	clsSign                     // P, S
	clsHan                      // script Han; some are clsOther or clsNumber or clsMark too

	clsLetter = clsUpper | clsLower | clsOther
)

// classPages is the class of every rune in two levels: 256-rune pages, equal pages
// shared (about 120 KB; asking package unicode per rune costs several times more
// than the scan itself).
type classPages struct {
	page  [(unicode.MaxRune + 1) / 256]uint16
	class [][256]class
}

// loadClasses builds the table on first use, in about a millisecond.
var loadClasses = sync.OnceValue(func() *classPages {
	all := make([]class, unicode.MaxRune+1)
	for _, set := range []struct {
		table *unicode.RangeTable
		bit   class
	}{
		{unicode.Lu, clsUpper}, {unicode.Lt, clsUpper}, {unicode.Ll, clsLower},
		{unicode.Lm, clsOther}, {unicode.Lo, clsOther}, {unicode.M, clsMark},
		{unicode.N, clsNumber}, {unicode.White_Space, clsSpace}, {unicode.P, clsSign}, {unicode.S, clsSign},
		{unicode.Han, clsHan},
	} {
		for _, r := range set.table.R16 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				all[c] |= set.bit
			}
		}
		for _, r := range set.table.R32 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				all[c] |= set.bit
			}
		}
	}
	all['\r'] |= clsBreak
	all['\n'] |= clsBreak
	t := &classPages{}
	seen := map[[256]class]uint16{}
	for i := range t.page {
		p := [256]class(all[i*256:])
		n, ok := seen[p]
		if !ok {
			n = uint16(len(t.class))
			seen[p] = n
			t.class = append(t.class, p)
		}
		t.page[i] = n
	}
	return t
})

// of returns the class of the rune at s[i] and its length.
func (t *classPages) of(s string, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return t.class[t.page[0]][c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return t.class[t.page[r>>8]][r&255], n
}

// run returns the end of the longest run of runes that begins at s[i] and has a
// class in want.
func (t *classPages) run(s string, i int, want class) int {
	for i < len(s) {
		c, n := t.of(s, i)
		if c&want == 0 {
			break
		}
		i += n
	}
	return i
}

// runNot is run for runes with no class in stop.
func (t *classPages) runNot(s string, i int, stop class) int {
	for i < len(s) {
		c, n := t.of(s, i)
		if c&stop != 0 {
			break
		}
		i += n
	}
	return i
}

// runMost is run with at most limit runes.
func (t *classPages) runMost(s string, i int, want class, limit int) int {
	for ; i < len(s) && limit > 0; limit-- {
		c, n := t.of(s, i)
		if c&want == 0 {
			break
		}
		i += n
	}
	return i
}

// spaces cuts white space that begins at s[i]: with breaks, `\s*[\r\n]+` first (up
// to the last line break of the run); then `\s+(?!\S)|\s+`: the run less its last
// rune when a word follows, because that rune goes with the word.
func (t *classPages) spaces(s string, i int, breaks bool) int {
	end, last, lastBreak := i, i, -1
	for end < len(s) {
		c, n := t.of(s, end)
		if c&clsSpace == 0 {
			break
		}
		last = end
		end += n
		if c&clsBreak != 0 {
			lastBreak = end
		}
	}
	switch {
	case breaks && lastBreak >= 0:
		return lastBreak
	case end == len(s) || last == i:
		return end
	}
	return last
}

// contraction returns the length of 's 't 're 've 'm 'll 'd at the start of s, or
// 0. With fold, letters of either case match, and U+017F, which folds to s.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	lower := func(c byte) byte {
		if fold && c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}
	switch lower(s[1]) {
	case 's', 't', 'm', 'd':
		return 2
	case "ſ"[0]:
		if fold && len(s) > 2 && s[2] == "ſ"[1] {
			return 3
		}
	case 'r', 'v':
		if len(s) > 2 && lower(s[2]) == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && lower(s[2]) == 'l' {
			return 3
		}
	}
	return 0
}

func scanGPT2(s string, i int) int {
	if n := contraction(s[i:], false); n > 0 {
		return i + n
	}
	t := loadClasses()
	c, n := t.of(s, i)
	j := i
	if s[i] == ' ' && i+1 < len(s) {
		j++
		c, n = t.of(s, j)
	}
	switch {
	case c&clsLetter != 0:
		return t.run(s, j+n, clsLetter)
	case c&clsNumber != 0:
		return t.run(s, j+n, clsNumber)
	case c&clsSpace == 0:
		return t.runNot(s, j+n, clsSpace|clsLetter|clsNumber)
	}
	return t.spaces(s, i, false)
}

// wordRules is the shape that Llama 3 and the Qwen models share.
type wordRules struct {
	letters class // what a word is a run of
	digits  int   // most digits in one piece
}

func (w wordRules) next(s string, i int) int {
	if n := contraction(s[i:], true); n > 0 {
		return i + n
	}
	t := loadClasses()
	c, n := t.of(s, i)
	if c&w.letters != 0 {
		return t.run(s, i+n, w.letters)
	}
	if c&(clsNumber|clsBreak) == 0 && i+n < len(s) {
		// One other rune, a space most often, goes with the word it precedes.
		if c2, n2 := t.of(s, i+n); c2&w.letters != 0 {
			return t.run(s, i+n+n2, w.letters)
		}
	}
	if c&clsNumber != 0 {
		return t.runMost(s, i, clsNumber, w.digits)
	}
	j := i
	if s[i] == ' ' && i+1 < len(s) {
		j++
		c, n = t.of(s, j)
	}
	if stop := clsSpace | clsNumber | clsLetter | w.letters; c&stop == 0 {
		return t.run(s, t.runNot(s, j+n, stop), clsBreak)
	}
	return t.spaces(s, i, true)
}
