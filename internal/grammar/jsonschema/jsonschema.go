// Package jsonschema makes grammars of JSON Schemas (draft 2020-12, and what is left of those before it), and checks values
// against them. A schema is read into rules once; what is wrong in it is an Error.
//
// There are two readings of a schema. Written is the grammar: what a model is held to. Members come in the order in which the
// schema has them, those that it does not name last; there is one spacing, and strings, numbers of an enum and whole numbers have
// one spelling each. Accepted is the check: members in any order, any white space, any spelling. What is written is accepted,
// but for the keywords that Grammar reports: those are not held and have to be checked afterwards. A Checker bounds the
// work of its checks, all together.
package jsonschema

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

// Options say how values are written.
type Options struct {
	Compact bool   // "," and ":" instead of ", " and ": "
	Blanks  bool   // any white space where JSON has some, but for lists and objects that a schema spells out
	Python  bool   // True, False and None
	Mark    string // stands around texts, which are written as they are, instead of quotes; names stand bare
	// AnyOrder lets members come in any order, but where which of them are there is counted or depends on others.
	AnyOrder bool
	// Declared leaves out members that no schema names, where one names some and none says what others there are.
	Declared bool

	// Names and Texts are what may be written of the names of members and of texts, between their quotes; both are regular, and
	// nil is all.
	Names, Texts *grammar.Expr

	plain bool // texts and names are as they are, with nothing around them
}

// Unheld is a keyword that a grammar is not held to, or not in all cases.
type Unheld struct {
	Pointer string // JSON Pointer of the schema that has it
	Keyword string
	Why     string
}

func (u Unheld) String() string {
	return fmt.Sprintf("%s at %s: %s", u.Keyword, quotePointer(u.Pointer), u.Why)
}

// Schema is a JSON Schema that was read. Any number of goroutines may have a Checker of it; Grammar and Build belong to one
// goroutine, beside which there is no other.
type Schema struct {
	reader *reader
	root   *rule
}

// Read reads a schema, with all that it refers to. What is wrong in it is an *Error; a *grammar.LimitError is one that is too
// large.
func Read(ctx context.Context, root *schema.Node) (s *Schema, err error) {
	defer caught(&err)
	r := &reader{ctx: ctx, root: root, rules: map[*schema.Node]*rule{},
		combined: combined{map[string][]*form{}, 0, map[*rule][][]*rule{}, map[*rule]*rule{}, map[*rule]*negation{}, map[both]bool{}, map[*rule]kinds{}, map[*rule]map[*rule]bool{}, map[string]bool{}}}
	if root.Kind() != schema.Object && root.Kind() != schema.Bool {
		return nil, &Error{"", "schema", "is neither an object nor a boolean"}
	}
	s = &Schema{r, r.rule(root, &place{}, 0)}
	r.loops()
	return s, nil
}

// Grammar is the grammar of what is written, with the keywords that it does not hold. The error is grammar.ErrNothing where no
// value follows the schema, and a *grammar.LimitError where the grammar is too large.
func (s *Schema) Grammar(ctx context.Context, o Options) (*grammar.Grammar, []Unheld, error) {
	b := grammar.NewBuilder()
	root := b.Rule("schema")
	e, unheld, err := s.Build(ctx, b, o)
	if err != nil {
		return nil, nil, err
	}
	b.Define(root, e)
	g, err := b.Compile(root)
	return g, unheld, err
}

// Build adds the values of a schema to a grammar of which they are a part.
func (s *Schema) Build(ctx context.Context, b *grammar.Builder, o Options) (e *grammar.Expr, unheld []Unheld, err error) {
	return s.build(ctx, func() (*grammar.Expr, *compiler) {
		c := newCompiler(s.reader, b, o)
		return c.value([]*rule{s.root}), c
	}, b)
}

func (s *Schema) build(ctx context.Context, what func() (*grammar.Expr, *compiler), b *grammar.Builder) (e *grammar.Expr, unheld []Unheld, err error) {
	defer caught(&err)
	r := s.reader
	r.ctx = ctx
	r.checks = nil // with bounds of its own
	e, c := what()
	c.define()
	unheld = slices.Clone(r.unheld)
	slices.SortFunc(unheld, func(a, b Unheld) int { return strings.Compare(a.Pointer+a.Keyword, b.Pointer+b.Keyword) })
	return e, unheld, b.Err()
}
