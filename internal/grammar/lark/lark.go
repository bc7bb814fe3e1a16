// Package lark makes grammars out of texts in Lark's notation, as far as custom tools use it:
//
//	start: "set" NAME "=" value
//	value: NUMBER | NAME
//	NAME: /[a-z]+/
//	%import common (NUMBER, WS)
//	%ignore WS
//
// A text follows the rule start. Held are rules and terminals, alternatives, groups, options in brackets, * + ? and ~ n..m,
// strings and patterns with flags, ranges, %ignore, the terminals of common, and priorities. Aliases, ! and ? before names change
// what Lark makes of a text, not which texts there are. What isn't held is refused: templates, %declare, other imports, and in
// patterns what depends on what is around (see regex.Options.Part).
//
// # Terminals take as much as they can
//
// Lark reads a text by a lexer, which takes as much as a terminal matches. Expressions of a grammar have no such rule: "if" and a
// name would also be read out of "iffy". So each terminal is kept from what would be read otherwise:
//
//   - Behind a terminal no character comes that it, or another terminal that may stand in its place, could have gone on with.
//     That is told by the one character, so a few texts are missing: where numbers may be 1 or 1.5, there is no ".." right
//     behind 1. A blank in between helps, if blanks are ignored.
//   - A pattern does not match what is also a string that may stand in its place: keywords are no names.
//   - A terminal does not begin with a text of one that may stand in its place and has a higher priority.
//
// Which terminals may stand in a place is told by what comes before it: those that may follow the terminal there, wherever that
// is. Texts that are left are read by Lark as they were made, by its default parser, or by a lexer that takes the longest match.
package lark

import (
	"context"
	"errors"
	"strings"

	"hearth/internal/grammar"
	"hearth/internal/grammar/notation"
	"hearth/internal/grammar/regex"
)

// Compile makes a grammar out of a text. Its errors are a notation.Error that names the place, a grammar.LimitError,
// grammar.ErrNothing, or the cause of ctx's end.
func Compile(ctx context.Context, text string) (*grammar.Grammar, error) {
	b := grammar.NewBuilder()
	e, err := Build(ctx, b, text)
	if err != nil {
		return nil, err
	}
	root := b.Rule("text")
	b.Define(root, e)
	return b.Compile(root)
}

// Build adds the texts that follow a grammar to another one, of which they are a part.
func Build(ctx context.Context, b *grammar.Builder, text string) (e *grammar.Expr, err error) {
	p := &parser{rules: map[string]*node{}, terminals: map[string]*terminal{}, common: common()}
	c := &compiler{parser: p, b: b, exprs: map[*terminal]*grammar.Expr{}, byExpr: map[*grammar.Expr]int{}}
	err = notation.Read(ctx, text, func(r *notation.Reader) {
		p.read(r)
		c.resolve()
		c.follow()
		c.separate()
		e = c.build()
	})
	return e, err
}

// compiler makes a grammar of what was parsed.
type compiler struct {
	*parser
	b      *grammar.Builder
	exprs  map[*terminal]*grammar.Expr // nil while one is made
	byExpr map[*grammar.Expr]int       // lexemes
	lexer
	builder
}

// resolve replaces what stands in rules for strings, patterns and terminals by lexemes, and finds names that are not defined.
func (c *compiler) resolve() {
	if c.rules["start"] == nil {
		c.Fail(0, "there is no rule start, which whole texts follow; add start: …")
	}
	for _, name := range c.named { // so that a string in a rule has the priority of the terminal that is the same
		c.lexeme(&node{op: opTerminal, text: name, at: c.terminals[name].at})
	}
	for _, n := range c.ignored {
		e := c.expr(n, c.terminals)
		if e = c.b.Except(e, c.b.Empty()); !c.b.IsNever(e) {
			c.skipped = append(c.skipped, c.add(e, n.op == opString, c.priority(n)))
		}
	}
	for _, name := range c.order {
		c.lexemes(c.rules[name])
	}
}

func (c *compiler) priority(n *node) int {
	if n.op == opTerminal {
		return c.terminals[n.text].priority
	}
	return 0
}

func (c *compiler) lexemes(n *node) {
	c.Step()
	switch n.op {
	case opSeq, opAlt, opRepeat:
		for _, p := range n.parts {
			c.lexemes(p)
		}
		if n.op == opRepeat && n.most == 0 {
			*n = node{op: opSeq, at: n.at}
		}
	case opRule:
		if c.rules[n.text] == nil {
			c.Fail(n.at, "the rule %s is not defined; add %s: …", n.text, n.text)
		}
	default:
		c.lexeme(n)
	}
}

// lexeme makes a node one of a lexeme, which is optional where it may be empty.
func (c *compiler) lexeme(n *node) {
	e := c.expr(n, c.terminals)
	full := e
	empty := c.b.Matches(e, "")
	if empty {
		e = c.b.Except(e, c.b.Empty())
	}
	of := n
	if n.op == opTerminal {
		of = c.terminals[n.text].body
	}
	l := &node{op: opLexeme, at: n.at, lexeme: c.add(e, of.op == opString, c.priority(n))}
	switch {
	case full == c.b.Empty():
		*n = node{op: opSeq, at: n.at}
	case empty:
		*n = node{op: opRepeat, at: n.at, most: 1, parts: []*node{l}}
	default:
		*n = *l
	}
}

// add gives the number of a lexeme.
func (c *compiler) add(e *grammar.Expr, plain bool, priority int) int {
	n, ok := c.byExpr[e]
	if !ok {
		n = len(c.all)
		if n == maxLexemes {
			c.Stop(&grammar.LimitError{What: "different strings, patterns and terminals", Limit: maxLexemes})
		}
		c.byExpr[e] = n
		c.all = append(c.all, lexeme{e: e, plain: plain, priority: priority})
	}
	return n
}

// expr is what a part of a terminal matches.
func (c *compiler) expr(n *node, scope map[string]*terminal) *grammar.Expr {
	c.Step()
	var parts []*grammar.Expr
	for _, p := range n.parts {
		parts = append(parts, c.expr(p, scope))
	}
	switch n.op {
	case opSeq:
		return c.b.Seq(parts...)
	case opAlt:
		return c.b.Or(parts...)
	case opRepeat:
		return c.b.Repeat(parts[0], n.least, n.most)
	case opRange:
		return c.b.Runes(grammar.RuneRange{Lo: []rune(n.text)[0], Hi: []rune(n.last)[0]})
	case opPattern:
		return c.regex(n, n.text)
	case opString:
		if n.flags == "" {
			return c.b.Literal(n.text)
		}
		var quoted strings.Builder
		for _, r := range n.text {
			if r > ' ' && r < 0x7f && !nameByte(byte(r)) {
				quoted.WriteByte('\\')
			}
			quoted.WriteRune(r)
		}
		return c.regex(n, quoted.String())
	case opRule:
		c.Fail(n.at, "a terminal cannot ask for the rule %s; terminals are made of terminals, whose names are in capitals", n.text)
	}
	t := scope[n.text]
	if t == nil {
		c.Fail(n.at, "the terminal %s is not defined; add %s: … or %%import common.%s", n.text, n.text, n.text)
	}
	e, met := c.exprs[t]
	switch {
	case !met:
		c.exprs[t] = nil
		e = c.expr(t.body, t.scope)
		c.exprs[t] = e
	case e == nil:
		c.Fail(n.at, "the terminal %s is in itself; only rules can be, whose names are in small letters", n.text)
	}
	return e
}

func (c *compiler) regex(n *node, pattern string) *grammar.Expr {
	e, err := regex.Compile(c.b, pattern, regex.Options{Python: true, Part: true, Flags: n.flags})
	var large *grammar.LimitError
	switch {
	case errors.As(err, &large):
		c.Stop(err)
	case err != nil:
		c.Fail(n.at, "%v", err)
	case c.b.Err() != nil: // no need to read the patterns that follow
		c.Stop(c.b.Err())
	}
	return e
}
