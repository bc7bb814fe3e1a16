package tokenizer

// casedRules is the shape of GPT-4o's expression and of Mistral's newer ones: a
// word is upper-case runes, then lower-case ones, caseless runes counting as both.
type casedRules struct {
	digits       int  // most digits in one piece
	contractions bool // a word takes a contraction that follows it
	slash        bool // signs take slashes that follow them, not only line breaks
	hanApart     bool // runs of Han are words, and no part of others
}

func (w casedRules) next(s string, i int) int {
	t := loadClasses()
	c, n := t.of(s, i)
	if w.hanApart && c&clsHan != 0 {
		return t.run(s, i+n, clsHan)
	}
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
		for end < len(s) && (s[end] == '\r' || s[end] == '\n' || w.slash && s[end] == '/') {
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
		if end := w.run(t, s, i+n, true); end > 0 {
			return end
		}
		if c&clsMark != 0 {
			// A mark not followed by L: it is itself U*L+ with no first rune taken.
			return w.run(t, s, i, true)
		}
		return w.run(t, s, i+n, false)
	}
	if c&(clsUpper|clsLower|both) == 0 {
		return 0
	}
	if end := w.run(t, s, i, true); end > 0 {
		return end
	}
	return w.run(t, s, i, false)
}

// run matches at s[i] U*L+ when needLower is set, else U+L*; 0: no match.
func (w casedRules) run(t *classPages, s string, i int, needLower bool) int {
	const upper, lower = clsUpper | clsOther | clsMark, clsLower | clsOther | clsMark
	end, caseless := i, 0 // caseless: end of the last rune of the run that is in L too
	for end < len(s) {
		c, n := t.of(s, end)
		if c&upper == 0 || w.hanApart && c&clsHan != 0 {
			break
		}
		end += n
		if c&lower != 0 {
			caseless = end
		}
	}
	low := end
	for low < len(s) {
		c, n := t.of(s, low)
		if c&lower == 0 || w.hanApart && c&clsHan != 0 {
			break
		}
		low += n
	}
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
