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

// finding calls found for each match in s, in order. It is told of a watch, which may be nil.
type finding func(s string, on *watch, found func(from, to int)) error

// splitStage is the Split pre-tokenizer with any pattern.
type splitStage struct {
	find   finding
	how    behavior
	invert bool
}

type span struct {
	from, to int
	match    bool
}

func (p splitStage) split(s string, _ bool, on *watch, emit func(string)) error {
	j := joining{how: p.how, emit: func(sp span) { emit(s[sp.from:sp.to]) }}
	at := 0
	add := func(to int, match bool) {
		if to > at {
			j.add(span{at, to, match != p.invert})
			at = to
		}
	}
	err := p.find(s, on, func(from, to int) {
		add(from, false)
		add(to, true)
	})
	add(len(s), false)
	j.end()
	return err
}

// joining turns matched and unmatched spans, which cover the text without gaps, into the pieces, as they come: a text has as many
// as it has words.
type joining struct {
	how  behavior
	emit func(span)
	last span // what may still grow
	has  bool // there is one
}

func (j *joining) add(sp span) {
	glue := false
	switch j.how {
	case removed:
		if sp.match {
			return
		}
	case mergedWithPrevious:
		glue = sp.match && j.has && !j.last.match
	case mergedWithNext:
		glue = !sp.match && j.has && j.last.match
	case contiguous:
		glue = j.has && j.last.match == sp.match
	}
	if glue {
		// What follows a glued pair starts afresh, except in a contiguous run.
		j.last.to, j.last.match = sp.to, sp.match
		return
	}
	j.end()
	j.last, j.has = sp, true
}

// end gives out what is left.
func (j *joining) end() {
	if j.has {
		j.emit(j.last)
		j.has = false
	}
}

// newStringFinder finds a fixed string.
func newStringFinder(sep string) finding {
	return func(s string, _ *watch, found func(from, to int)) error {
		for at := 0; ; {
			i := strings.Index(s[at:], sep)
			if i < 0 {
				return nil
			}
			found(at+i, at+i+len(sep))
			at += i + len(sep)
		}
	}
}
