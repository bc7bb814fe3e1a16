package tokenizer

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/dlclark/regexp2/v2"
)

// stage is one pre-tokenizer: it cuts s, never empty, into pieces and calls emit
// for each in order. atStart tells that nothing precedes s in the text.
type stage interface {
	split(s string, atStart bool, emit func(string)) error
}

// byteLevel is the ByteLevel pre-tokenizer. Its rewriting of bytes to printable
// runes happens in the model, which looks bytes up directly; so it must be last.
type byteLevel struct {
	prefixSpace bool
	words       bool // cut by GPT-2's expression
}

func (b byteLevel) split(s string, atStart bool, emit func(string)) error {
	if b.prefixSpace && s[0] != ' ' {
		s = " " + s
	}
	if b.words {
		return scanStage(scanGPT2).split(s, atStart, emit)
	}
	emit(s)
	return nil
}

// scanStage is a Split by a known expression; every piece is kept.
type scanStage scanFunc

func (f scanStage) split(s string, _ bool, emit func(string)) error {
	for i := 0; i < len(s); {
		j := f(s, i)
		emit(s[i:j])
		i = j
	}
	return nil
}

// digits is the Digits pre-tokenizer: numbers apart from the rest, or each digit
// on its own.
type digits struct{ each bool }

func (d digits) split(s string, _ bool, emit func(string)) error {
	from, inNumber := 0, false
	for i, r := range s {
		number := unicode.IsNumber(r)
		if i > from && (number != inNumber || number && d.each) {
			emit(s[from:i])
			from = i
		}
		inNumber = number
	}
	emit(s[from:])
	return nil
}

// metaspace is the Metaspace pre-tokenizer: spaces become a mark, one is put before
// the text, and with words the text is cut before each.
type metaspace struct {
	mark          string
	always, first bool // where a mark is put before the text: everywhere, at its start
	words         bool
}

func (m metaspace) split(s string, atStart bool, emit func(string)) error {
	s = strings.ReplaceAll(s, " ", m.mark)
	if (m.always || m.first && atStart) && !strings.HasPrefix(s, m.mark) {
		s = m.mark + s
	}
	for m.words {
		// A mark at the very start opens the first word.
		i := strings.Index(s[1:], m.mark)
		if i < 0 {
			break
		}
		emit(s[:i+1])
		s = s[i+1:]
	}
	emit(s)
	return nil
}

// behavior says what becomes of the stretches that a Split's pattern matches.
type behavior string

const (
	isolated           behavior = "Isolated"
	removed            behavior = "Removed"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

// splitStage is the Split pre-tokenizer with any pattern.
type splitStage struct {
	find   func(s string) ([][]int, error) // the matches as [start, end], in order
	how    behavior
	invert bool
}

type span struct {
	from, to int
	match    bool
}

func (p splitStage) split(s string, _ bool, emit func(string)) error {
	found, err := p.find(s)
	var spans []span
	at := 0
	add := func(to int, match bool) {
		if to > at {
			spans = append(spans, span{at, to, match != p.invert})
			at = to
		}
	}
	for _, m := range found {
		add(m[0], false)
		add(m[1], true)
	}
	add(len(s), false)
	for _, sp := range p.how.join(spans) {
		emit(s[sp.from:sp.to])
	}
	return err
}

// join turns matched and unmatched spans, which cover the text without gaps, into
// the pieces. It works in place.
func (how behavior) join(spans []span) []span {
	out := spans[:0]
	for i, sp := range spans {
		last := len(out) - 1
		glue := false
		switch how {
		case removed:
			if sp.match {
				continue
			}
		case mergedWithPrevious:
			glue = sp.match && last >= 0 && !out[last].match
		case mergedWithNext:
			glue = !sp.match && i > 0 && out[last].match
		case contiguous:
			glue = last >= 0 && out[last].match == sp.match
		}
		if glue {
			// What follows a glued pair starts afresh, except in a contiguous run.
			out[last].to = sp.to
			out[last].match = sp.match
			continue
		}
		out = append(out, sp)
	}
	return out
}

const (
	// Limits on an unknown expression, which may backtrack without end: the time
	// for one match, and the text given to the engine at once (it holds four bytes
	// a rune and its own stack).
	regexTimeout   = 2 * time.Second
	maxRegexText   = 1 << 20
	regexStackSize = 1 << 20
	maxRegexBytes  = 1 << 14 // of the expression itself
)

// newRegexFinder compiles a pattern for the backtracking engine.
func newRegexFinder(pattern string) (func(string) ([][]int, error), error) {
	if len(pattern) > maxRegexBytes {
		return nil, fmt.Errorf("the expression has %d bytes, more than %d", len(pattern), maxRegexBytes)
	}
	re, err := regexp2.Compile(pattern, regexp2.OptionMaxBacktrackingStackSize(regexStackSize))
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = regexTimeout
	return func(s string) ([][]int, error) {
		if len(s) <= maxRegexText {
			return re.FindAllStringIndex(s, -1)
		}
		return findInParts(re, s)
	}, nil
}

// findInParts searches a text over maxRegexText bytes part by part. The two last
// matches of a part, which may have looked past its end, are searched for again at
// the start of the next one. So the parts show only in a single match of about
// that size, and to expressions that look behind their match.
func findInParts(re *regexp2.Regexp, s string) (all [][]int, err error) {
	for from := 0; from < len(s); {
		part := s[from:]
		final := len(part) <= maxRegexText
		if !final {
			part = strings.ToValidUTF8(part[:maxRegexText], "")
		}
		found, err := re.FindAllStringIndex(part, -1)
		next := from + len(part)
		if !final && len(found) > 1 {
			// The two last matches may have looked past the end of the part.
			keep := max(len(found)-2, 1)
			next = from + found[keep][0]
			found = found[:keep]
		}
		for _, m := range found {
			all = append(all, []int{from + m[0], from + m[1]})
		}
		if err != nil {
			return all, err
		}
		from = next
	}
	return all, nil
}

// newStringFinder finds a fixed string.
func newStringFinder(sep string) func(string) ([][]int, error) {
	return func(s string) (all [][]int, _ error) {
		for at := 0; ; {
			i := strings.Index(s[at:], sep)
			if i < 0 {
				return all, nil
			}
			all = append(all, []int{at + i, at + i + len(sep)})
			at += i + len(sep)
		}
	}
}
