package tokenizer

import (
	"fmt"
	"strings"
)

// behavior says what becomes of the stretches that a Split's pattern matches.
type behavior string

const (
	isolated           behavior = "Isolated"
	removed            behavior = "Removed"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

// behavior reads the setting, isolated by default.
func (c *component) behavior(what string) (behavior, error) {
	switch c.Behavior {
	case "":
		return isolated, nil
	case isolated, removed, mergedWithPrevious, mergedWithNext, contiguous:
		return c.Behavior, nil
	}
	return "", unsupported("pre_tokenizer", what+" with behavior "+quoted(string(c.Behavior)))
}

// splitStage reads Split.
func (c *component) splitStage() (stage, error) {
	how, err := c.behavior("Split")
	if err != nil {
		return nil, err
	}
	p := splitStage{how: how, invert: c.Invert}
	switch {
	case c.Pattern.String != nil && *c.Pattern.String != "":
		p.find = newStringFinder(*c.Pattern.String)
		return p, nil
	case c.Pattern.Regex == nil || *c.Pattern.Regex == "":
		return nil, fmt.Errorf("pre_tokenizer: Split without a pattern")
	}
	// What a scanner leaves between its matches is a piece too, as isolated has it.
	if scan, ok := scanner(*c.Pattern.Regex); ok && (how == isolated || how == removed && c.Invert && !leavesGaps[*c.Pattern.Regex]) {
		return scanStage(scan), nil
	}
	if *c.Pattern.Regex == camelRegex {
		p.find = findCamel
		return p, nil
	}
	find, err := newRegexFinder(*c.Pattern.Regex)
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: Split expression %s: %w", quoted(*c.Pattern.Regex), err)
	}
	p.find = find
	return p, nil
}

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
