package tokenizer

import (
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
)

// scanFunc returns the end of the word that begins at s[i], i < len(s). It is
// always past i.
type scanFunc func(s string, i int) int

// scanners has the scanner of each known split expression.
var scanners = map[string]scanFunc{
	gpt2Regex:    scanGPT2,
	qwen2Regex:   wordRules{letters: clsLetter, digits: 1}.next,
	llama3Regex:  wordRules{letters: clsLetter, digits: 3}.next,
	qwen35Regex:  wordRules{letters: clsLetter | clsMark, digits: 1}.next,
	o200kRegex:   casedRules{digits: 3, contractions: true}.next,
	mistralRegex: casedRules{digits: 1}.next,
}

// class is the set of regular expression classes a rune is in, as bits.
type class uint8

const (
	clsUpper  class = 1 << iota // Lu, Lt
	clsLower                    // Ll
	clsOther                    // Lm, Lo
	clsMark                     // M
	clsNumber                   // N
	clsSpace                    // \s
	clsBreak                    // \r, \n; clsSpace too

	clsLetter = clsUpper | clsLower | clsOther
)

// classPages is the class of every rune in two levels: 256-rune pages, equal pages
// shared (about 60 KB; asking package unicode per rune costs several times more
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
		{unicode.N, clsNumber}, {unicode.White_Space, clsSpace},
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

// casedRules is the shape of GPT-4o's expression and of Mistral's newer ones: a
// word is upper-case runes, then lower-case ones, caseless runes counting as both.
type casedRules struct {
	digits       int  // most digits in one piece
	contractions bool // a word takes a contraction that follows it
}

func (w casedRules) next(s string, i int) int {
	t := loadClasses()
	c, n := t.of(s, i)
	if end := w.word(t, s, i, c, n); end > 0 {
		if w.contractions {
			end += contraction(s[end:], true)
		}
		return end
	}
	if c&clsNumber != 0 {
		return t.runMost(s, i, clsNumber, w.digits)
	}
	j := i
	if s[i] == ' ' && i+1 < len(s) {
		j++
		c, n = t.of(s, j)
	}
	if stop := clsSpace | clsNumber | clsLetter; c&stop == 0 {
		end := t.runNot(s, j+n, stop)
		for end < len(s) && (s[end] == '\r' || s[end] == '\n' || s[end] == '/') {
			end++
		}
		return end
	}
	return t.spaces(s, i, true)
}

// word returns the end of a cased word at s[i], whose first rune has class c and
// length n, or 0. It does by hand what the engine does by backtracking over
// `P?U*L+|P?U+L*`, where P is any rune but a line break, letter or number, and
// both U and L hold the caseless letters and the marks.
func (w casedRules) word(t *classPages, s string, i int, c class, n int) int {
	const both = clsOther | clsMark
	if c&(clsBreak|clsLetter|clsNumber) == 0 {
		// With the optional first rune taken.
		if end := casedRun(t, s, i+n, true); end > 0 {
			return end
		}
		if c&clsMark != 0 {
			// A mark not followed by L: it is itself U*L+ with no first rune taken.
			return casedRun(t, s, i, true)
		}
		return casedRun(t, s, i+n, false)
	}
	if c&(clsUpper|clsLower|both) == 0 {
		return 0
	}
	if end := casedRun(t, s, i, true); end > 0 {
		return end
	}
	return casedRun(t, s, i, false)
}

// casedRun matches at s[i] U*L+ when needLower is set, else U+L*; 0: no match.
func casedRun(t *classPages, s string, i int, needLower bool) int {
	const upper, lower = clsUpper | clsOther | clsMark, clsLower | clsOther | clsMark
	end, caseless := i, 0 // caseless: end of the last rune of the run that is in L too
	for end < len(s) {
		c, n := t.of(s, end)
		if c&upper == 0 {
			break
		}
		end += n
		if c&lower != 0 {
			caseless = end
		}
	}
	low := t.run(s, end, lower)
	switch {
	case !needLower && end > i:
		return low
	case needLower && low > end:
		return low
	case needLower:
		// U* gives runes back until the last one given back is in L.
		return caseless
	}
	return 0
}
