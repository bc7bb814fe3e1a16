// Package regex makes expressions of grammars out of regular expressions, as ECMA-262 writes them with its flag u, which JSON
// Schema means, or as Python's re and Rust's regex do. Anchors, word boundaries and looking ahead are kept to; what isn't,
// references back and looking behind, is an UnsupportedError, and what is no regular expression a SyntaxError.
package regex

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"hearth/internal/grammar"
)

// Bounds of a pattern; the Builder has its own for what it expands to.
const (
	maxPattern = 1 << 16 // bytes
	maxLevels  = 200     // of groups within each other
	mostParts  = 1 << 14 // parts that are looked at, those of repetitions with assertions in them once for each time
	mostRanges = 1 << 22 // of characters, in all classes: \w is some 700
	mostTimes  = 16      // that something with assertions in it is repeated
)

// Options say what a pattern is held to.
type Options struct {
	// Search lets the pattern be anywhere in the text. Without it the text is what the pattern matches, from end to end.
	Search bool
	// Flags are i (cases are the same), s (a dot is a line's end too) and u, which is always so; of Python also m, x and a.
	Flags string
	// Python lets the pattern mean what it means to Python's re, or what Rust's regex adds to that: \d, \w and \s are those of
	// Unicode, a dot is all but \n, flags may stand anywhere, and there are \A, \Z, \pL and [[:alpha:]].
	Python bool
	// Part is of a pattern that is a part of a text whose other parts are not known. What it matches may not depend on them, and
	// a quantifier that takes as little as it can is not supported, because where it ends does.
	Part bool
	// Chars is how one character of a set is written, of which each has one way: see grammar.Builder.Not. Nil writes UTF-8.
	Chars func(b *grammar.Builder, set []grammar.RuneRange) *grammar.Expr
}

// SyntaxError is a pattern that is none.
type SyntaxError struct {
	Pattern string
	At      int // byte
	What    string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("the regular expression %s %s (at byte %d)", short(e.Pattern), e.What, e.At)
}

// UnsupportedError is a pattern with something that no expression can be made of.
type UnsupportedError struct {
	Pattern string
	At      int // byte, -1 if it is of no one place
	What    string
}

func (e *UnsupportedError) Error() string {
	place := ""
	if e.At >= 0 {
		place = fmt.Sprintf(" (at byte %d)", e.At)
	}
	return fmt.Sprintf("the regular expression %s has %s, which is not supported%s", short(e.Pattern), e.What, place)
}

// short is a pattern as errors quote it.
func short(s string) string {
	if len(s) > 80 {
		s = s[:77] + "…"
	}
	return fmt.Sprintf("%q", s)
}

// Check tells whether a text is a pattern of ECMA-262, and makes nothing of it. Compile may find more that is not supported.
func Check(pattern string) error {
	_, _, err := parse(pattern, Options{}, true)
	return err
}

// Compile makes a regular expression of a Builder out of a pattern. An error of the Builder itself stays with it.
func Compile(b *grammar.Builder, pattern string, o Options) (e *grammar.Expr, err error) {
	n, words, err := parse(pattern, o, false)
	if err != nil {
		return nil, err
	}
	c := &compiler{b: b, pattern: pattern, chars: o.Chars}
	if asks(n, opWord, opNoWord) {
		c.words = words
	}
	if asks(n, opLineStart) {
		c.lines = lineFeed
	}
	if c.chars == nil {
		c.chars = func(b *grammar.Builder, set []grammar.RuneRange) *grammar.Expr { return b.Runes(set...) }
	}
	all := newNode(opSet)
	all.set = []grammar.RuneRange{{Lo: 0, Hi: utf8.MaxRune}}
	any := newNode(opRepeat, all)
	any.max = -1
	c.any = c.plain(any)
	if o.Search {
		n = newNode(opSeq, any, n, any)
	}
	if e = c.follow(n, begin, func(side) *grammar.Expr { return b.Empty() }); c.err != nil {
		return nil, c.err
	}
	return e, nil
}

// asks tells whether there is one of some assertions in a pattern.
func asks(n *node, ops ...op) bool {
	return slices.Contains(ops, n.op) || n.asserts && slices.ContainsFunc(n.parts, func(p *node) bool { return asks(p, ops...) })
}

// compiler makes an expression of nodes.
type compiler struct {
	b       *grammar.Builder
	pattern string
	chars   func(b *grammar.Builder, set []grammar.RuneRange) *grammar.Expr
	any     *grammar.Expr       // any characters
	words   []grammar.RuneRange // if the pattern asks for word boundaries: what a word is made of
	lines   []grammar.RuneRange // if it asks where lines begin: their ends
	parts   int                 // that were looked at
	err     error
}

// side is what stands left of a place.
type side uint8

const (
	begin     side = iota // nothing
	afterWord             // a character of a word
	afterLine             // a line's end
	afterOther
	sides
)

// rest makes what a text goes on with up to its end, by what stands left of there.
type rest func(side) *grammar.Expr

func (c *compiler) fail(err error) *grammar.Expr {
	if c.err == nil {
		c.err = err
	}
	return c.b.Never()
}

// spend counts a part.
func (c *compiler) spend() bool {
	if c.parts++; c.parts > mostParts {
		c.fail(&grammar.LimitError{What: "parts of a regular expression", Limit: mostParts})
	}
	return c.err == nil
}

// plain is what a part without assertions matches.
func (c *compiler) plain(n *node) *grammar.Expr {
	if !c.spend() {
		return c.b.Never()
	}
	if n.op == opSet {
		return c.chars(c.b, n.set)
	}
	parts := make([]*grammar.Expr, len(n.parts))
	for i, p := range n.parts {
		parts[i] = c.plain(p)
	}
	switch n.op {
	case opAlt:
		return c.b.Or(parts...)
	case opRepeat:
		return c.b.Repeat(parts[0], n.min, n.max)
	}
	return c.b.Seq(parts...)
}

// follow is what a part matches and then the rest, to the end of the text: assertions are about that.
func (c *compiler) follow(n *node, left side, next rest) *grammar.Expr {
	if !n.asserts {
		return c.join(c.plain(n), left, next)
	}
	if !c.spend() {
		return c.b.Never()
	}
	b := c.b
	switch n.op {
	case opSeq:
		for _, p := range slices.Backward(n.parts) {
			after := next
			next = remembered(func(left side) *grammar.Expr { return c.follow(p, left, after) })
		}
		return next(left)
	case opAlt:
		alts := make([]*grammar.Expr, len(n.parts))
		for i, p := range n.parts {
			alts[i] = c.follow(p, left, next)
		}
		return b.Or(alts...)
	case opRepeat:
		return c.times(n.parts[0], n.min, n.max, left, next)
	case opStart:
		if left != begin {
			return b.Never()
		}
		return next(left)
	case opLineStart:
		if left != begin && left != afterLine {
			return b.Never()
		}
		return next(left)
	case opEnd:
		if !b.Matches(next(left), "") {
			return b.Never()
		}
		return b.Empty()
	case opLastEnd:
		return b.And(next(left), b.Optional(c.chars(b, lineFeed)))
	case opLineEnd:
		return b.And(next(left), b.Optional(b.Seq(c.chars(b, lineFeed), c.any)))
	case opWord, opNoWord:
		word := b.Seq(c.chars(b, c.words), c.any)
		if (left == afterWord) != (n.op == opNoWord) {
			return b.Except(next(left), word)
		}
		return b.And(next(left), word)
	}
	ahead := c.follow(n.parts[0], left, func(side) *grammar.Expr { return c.any })
	if n.op == opNoAhead {
		return b.Except(next(left), ahead)
	}
	return b.And(next(left), ahead)
}

// remembered asks for what follows once for each side.
func remembered(f rest) rest {
	var known [sides]*grammar.Expr
	return func(left side) *grammar.Expr {
		if known[left] == nil {
			known[left] = f(left)
		}
		return known[left]
	}
}

// join is e and then the rest.
func (c *compiler) join(e *grammar.Expr, left side, next rest) *grammar.Expr {
	b := c.b
	if !b.Matches(e, "") {
		return c.parted(e, next)
	}
	here := next(left)
	if here == next(afterOther) && (c.words == nil || here == next(afterWord)) && (c.lines == nil || here == next(afterLine)) {
		return b.Seq(e, here)
	}
	return b.Or(here, c.parted(b.Except(e, b.Empty()), next))
}

// parted is e, which is not empty, and what follows by its last character.
func (c *compiler) parted(e *grammar.Expr, next rest) *grammar.Expr {
	b, other := c.b, next(afterOther)
	var parts []*grammar.Expr
	rest := e
	for _, side := range []struct {
		side side
		set  []grammar.RuneRange
	}{{afterWord, c.words}, {afterLine, c.lines}} {
		if after := next(side.side); side.set != nil && after != other {
			ends := b.Seq(c.any, c.chars(b, side.set))
			parts = append(parts, b.Seq(b.And(e, ends), after))
			rest = b.Except(rest, ends)
		}
	}
	return b.Or(append(parts, b.Seq(rest, other))...)
}

// times is a part with assertions in it, several times.
func (c *compiler) times(n *node, least, most int, left side, next rest) *grammar.Expr {
	switch {
	case most < 0 || most > mostTimes:
		return c.fail(&UnsupportedError{Pattern: c.pattern, At: -1, What: "an assertion in what is repeated"})
	case most == 0:
		return next(left)
	}
	more := remembered(func(left side) *grammar.Expr { return c.times(n, max(least-1, 0), most-1, left, next) })
	again := c.follow(n, left, more)
	if least > 0 {
		return again
	}
	return c.b.Or(again, next(left))
}

// Grammar makes a grammar whose texts are those that a pattern matches from end to end.
func Grammar(pattern string, o Options) (*grammar.Grammar, error) {
	b := grammar.NewBuilder()
	e, err := Compile(b, pattern, o)
	if err != nil {
		return nil, err
	}
	root := b.Rule("root")
	b.Define(root, e)
	return b.Compile(root)
}
