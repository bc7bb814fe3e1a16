package tokenizer

import (
	"fmt"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

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
	pattern, err := translate(pattern)
	if err != nil {
		return nil, err
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
