package tokenizer

import "fmt"

// maxRegexBytes bounds a split expression.
const maxRegexBytes = 1 << 14

// newRegexFinder compiles an expression that has no scanner of its own.
func newRegexFinder(pattern string) (finding, error) {
	if len(pattern) > maxRegexBytes {
		return nil, fmt.Errorf("the expression has %d bytes, more than %d", len(pattern), maxRegexBytes)
	}
	pattern, err := translate(pattern)
	if err != nil {
		return nil, err
	}
	m, err := newMachine(pattern)
	if err != nil {
		return nil, err
	}
	return m.find, nil
}
