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

// Clip is s as an error shows it: at most a line of it, and what would not print is escaped.
func Clip(s string) string { return clip(s, Line) }

// Quote is Clip in quotation marks, escaped as in Go.
func Quote(s string) string {
	if len(s) <= Line {
		return strconv.Quote(s)
	}
	return strconv.Quote(cut(s, Line) + "…")
}

func clip(s string, most int) string {
	if len(s) <= most && !strings.ContainsFunc(s, odd) {
		return s
	}
	var b strings.Builder
	for i, r := range cut(s, most) {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|1<<8, 16)[1:])
		case odd(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	if len(s) > most {
		b.WriteString("…")
	}
	return b.String()
}

// cut is the start of s, of whole characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for i := most; i > most-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:most]
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

func (e *short) Error() string { return clip(e.error.Error(), lineErr) }

func (e *short) Unwrap() error { return e.error }
