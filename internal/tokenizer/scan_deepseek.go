package tokenizer

// DeepSeek V3 cuts out numbers, then Chinese and Japanese, then words. The three
// expressions do not match all text; what lies between matches is a piece too.

func scanNumbers(s string, i int) int {
	t := loadClasses()
	if end := t.runMost(s, i, clsNumber, 3); end > i {
		return end
	}
	return t.runNot(s, i, clsNumber)
}

// isCJK reports whether r is one of the ideographs or kana that cjkRegex names.
func isCJK(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FA5 || r >= 0x3040 && r <= 0x30FF
}

func scanCJK(s string, i int) int {
	inside := false
	for j, r := range s[i:] {
		if j == 0 {
			inside = isCJK(r)
		} else if isCJK(r) != inside {
			return i + j
		}
	}
	return len(s)
}

func scanDeepSeek(s string, i int) int {
	t := loadClasses()
	if end := deepSeekWord(t, s, i); end > 0 {
		return end
	}
	for i < len(s) {
		_, n := t.of(s, i)
		if i += n; i < len(s) && deepSeekWord(t, s, i) > 0 {
			break
		}
	}
	return i
}

// deepSeekWord returns the end of the match at s[i], 0 when there is none.
func deepSeekWord(t *classPages, s string, i int) int {
	const letters = clsLetter | clsMark
	if isASCIIPunct(s[i]) && i+1 < len(s) && isASCIILetter(s[i+1]) {
		for i += 2; i < len(s) && isASCIILetter(s[i]); {
			i++
		}
		return i
	}
	c, n := t.of(s, i)
	if c&letters != 0 {
		return t.run(s, i+n, letters)
	}
	if c&(clsBreak|clsSign) == 0 && i+n < len(s) {
		// One other rune, a space most often, goes with the word it precedes.
		if c2, n2 := t.of(s, i+n); c2&letters != 0 {
			return t.run(s, i+n+n2, letters)
		}
	}
	j := i
	if s[i] == ' ' && i+1 < len(s) {
		j++
		c, n = t.of(s, j)
	}
	if c&clsSign != 0 {
		return t.run(s, t.run(s, j+n, clsSign), clsBreak)
	}
	if c, _ := t.of(s, i); c&clsSpace != 0 {
		return t.spaces(s, i, true)
	}
	return 0
}

func isASCIIPunct(c byte) bool {
	return c >= '!' && c <= '/' || c >= ':' && c <= '@' || c >= '[' && c <= '`' || c >= '{' && c <= '~'
}

func isASCIILetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
