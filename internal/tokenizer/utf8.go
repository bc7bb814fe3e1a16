package tokenizer

import "unicode/utf8"

const replacement = "\uFFFD"

// nextRune examines the start of b, which must not be empty. For a valid rune it
// returns its length and true. Otherwise n is the length of the longest prefix
// that could begin a rune (at least 1), which a lossy decoder replaces by one
// U+FFFD; more reports that b ends inside it, so that further bytes could still
// complete the rune.
func nextRune(b []byte) (n int, valid, more bool) {
	c := b[0]
	if c < utf8.RuneSelf {
		return 1, true, false
	}
	if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
		return n, true, false
	}
	// Second-byte ranges as in table 3-7 of the Unicode standard.
	low, high, need := byte(0x80), byte(0xBF), 0
	switch {
	case c >= 0xC2 && c <= 0xDF:
		need = 2
	case c >= 0xE0 && c <= 0xEF:
		need = 3
		if c == 0xE0 {
			low = 0xA0
		} else if c == 0xED {
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		need = 4
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 {
			high = 0x8F
		}
	default:
		return 1, false, false
	}
	for n = 1; n < need; n++ {
		if n == len(b) {
			return n, false, true
		}
		if b[n] < low || b[n] > high {
			return n, false, false
		}
		low, high = 0x80, 0xBF
	}
	return n, false, false
}

// appendLossy appends src to dst with each maximal invalid sequence replaced by
// one U+FFFD, as Rust's from_utf8_lossy and Python's errors="replace" do.
func appendLossy(dst, src []byte) []byte {
	dst, rest := appendCertain(dst, src)
	if len(rest) > 0 {
		dst = append(dst, replacement...)
	}
	return dst
}

// appendCertain is appendLossy but for the rest of src that further bytes could make a rune of.
func appendCertain(dst, src []byte) (out, rest []byte) {
	for len(src) > 0 {
		n, valid, more := nextRune(src)
		switch {
		case more:
			return dst, src
		case valid:
			dst = append(dst, src[:n]...)
		default:
			dst = append(dst, replacement...)
		}
		src = src[n:]
	}
	return dst, nil
}
