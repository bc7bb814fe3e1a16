package regular

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is the most bytes that an error shows of something that others have written.
const Line = 200

// lineErr is the most bytes of an error's own words with what it shows.
const lineErr = 3 * Line

// Clip is s as an error shows it: at most a line of it, its two ends, and what would not print is escaped.
func Clip(s string) string { return ClipTo(s, Line) }

// Quote is Clip in quotation marks, escaped as in Go.
func Quote(s string) string {
	return strconv.Quote(truncate(s, Line))
}

// ClipTo is Clip for text of several parts, each of which is kept short already.
func ClipTo(s string, most int) string {
	if len(s) <= most && !strings.ContainsFunc(s, odd) {
		return s
	}
	var b strings.Builder
	s = truncate(s, most)
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|1<<8, 16)[1:])
		case odd(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// truncate leaves out the middle of s if it is longer: an error has its own words at its ends.
func truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, tail := most*2/3, len(s)-most/3
	for n := 1; n < utf8.UTFMax && !utf8.RuneStart(s[head]); n++ {
		head--
	}
	for n := 1; n < utf8.UTFMax && !utf8.RuneStart(s[tail]); n++ {
		tail++
	}
	return s[:head] + "…" + s[tail:]
}

func odd(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// Short is err with its text kept short: errors of others' making (of a decoder, of a system call) may show all of what
// they complain about.
func Short(err error) error {
	if err == nil || len(err.Error()) <= lineErr && !strings.ContainsFunc(err.Error(), odd) {
		return err
	}
	return &short{err}
}

type short struct{ error }

func (e *short) Error() string { return ClipTo(e.error.Error(), lineErr) }

func (e *short) Unwrap() error { return e.error }
