// Package callform makes grammars of the calls of tools as each family of models writes them: names are those of tools,
// required parameters are there, values follow their schemas, and what closes a call comes. A grammar is of the calls alone, or
// of a whole reply that is free but for its calls. How a family writes is dialect's; here that meets the schemas. What a grammar
// lets through the family's parser reads as it was meant, without mending anything (NoRepair): what would end a value early, or
// be taken for another type, is not let through.
package callform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"hearth/internal/dialect"
	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/schema"
)

// Options say which calls a reply has.
type Options struct {
	One bool // one call; else one or more
	// Literal is how a text of the notation is asked for, where a part of it is a token of its own (grammar.Mark). Nil: as text.
	Literal func(text string) string
	// Texts are of tools that have one parameter, which is a text, what that is made of; by the tool.
	Texts map[string]Text
	// Loose tells of which tools members may come in any order; the arguments of those are any object where no grammar can be
	// made of their schema. Nil: of none.
	Loose func(tool string) bool
	// Object is written in place of the notation: a call as one JSON object, with any white space in it.
	Object *dialect.Object
	// Begins makes the form that of a whole reply: it has as many calls as the model likes, and what is beside them is free, but
	// for these beginnings of calls. Nil: the reply is the calls.
	Begins *dialect.Beginnings
	Within bool // such a reply goes on with a text: none of its answers begins with it
}

// Text adds the texts of a parameter to a grammar.
type Text func(ctx context.Context, b *grammar.Builder) (*grammar.Expr, error)

// Form is the calls that may be written.
type Form struct {
	*grammar.Grammar
	Unheld map[string][]jsonschema.Unheld // keywords that the grammar does not hold, by the tool
	Any    map[string]error               // why the arguments of a tool are any object: what a *ToolError would have
}

// ToolError is a tool whose schema, or the text of whose parameter, is wrong or too large.
type ToolError struct {
	Name string
	Err  error // *jsonschema.Error, *grammar.LimitError or grammar.ErrNothing, or of the context, or of a Text
}

func (e *ToolError) Error() string {
	return fmt.Sprintf("the parameters of the tool %q: %v", e.Name, e.Err)
}

func (e *ToolError) Unwrap() error { return e.Err }

// New is the form of calls of these tools. The error is a *ToolError, grammar.ErrNothing where no call can be written (a name
// cannot stand in the notation, or no arguments follow a schema), or a *grammar.LimitError. Of tools with the same name the
// first counts.
func New(ctx context.Context, n *dialect.Notation, tools []dialect.Tool, o Options) (*Form, error) {
	known := map[string]bool{}
	m := &maker{notation: n, Options: o, any: map[string]error{}}
	for _, t := range tools {
		if !known[t.Name] {
			known[t.Name] = true
			m.tools = append(m.tools, t)
		}
	}
	for {
		form, err := m.form(ctx)
		if err == nil || !m.loosen(err) {
			return form, err
		}
	}
}

// maker makes a form, again where a loose tool has a schema that no grammar can be made of.
type maker struct {
	Options
	notation *dialect.Notation
	tools    []dialect.Tool // each name once
	any      map[string]error
}

// emptyError is of loose tools whose schemas no arguments follow.
type emptyError struct{ names []string }

func (*emptyError) Error() string { return grammar.ErrNothing.Error() }

// loosen takes the schemas away that an error is due to, and reports whether there were any: of all loose tools where they are
// too large together.
func (m *maker) loosen(err error) bool {
	var empty *emptyError
	var limit *grammar.LimitError
	if errors.As(err, &empty) {
		err = grammar.ErrNothing
	} else if !errors.As(err, &limit) {
		return false
	}
	any := false
	for _, t := range m.tools {
		if (empty == nil || slices.Contains(empty.names, t.Name)) && m.isLoose(t.Name) && m.any[t.Name] == nil {
			m.any[t.Name], any = err, true
		}
	}
	return any
}

func (m *maker) isLoose(tool string) bool { return m.Loose != nil && m.Loose(tool) }

func (m *maker) form(ctx context.Context) (*Form, error) {
	b := grammar.NewBuilder()
	w := &writer{Notation: m.notation, b: b, literal: m.Literal, held: m.Texts, blanks: jsonschema.Blanks(b)}
	if w.spaced = m.Object != nil; w.spaced {
		w.Notation = m.Object.Notation()
	}
	form := &Form{Unheld: map[string][]jsonschema.Unheld{}, Any: m.any}
	var calls []*grammar.Expr
	args := make([]*grammar.Rule, len(m.tools))
	for i, t := range m.tools {
		isLoose := m.isLoose(t.Name)
		if m.any[t.Name] != nil {
			t.Schema = nil
		}
		e, unheld, err := w.arguments(ctx, t, isLoose)
		if wrong := (*jsonschema.Error)(nil); isLoose && errors.As(err, &wrong) {
			m.any[t.Name], t.Schema = wrong, nil
			e, unheld, err = w.arguments(ctx, t, isLoose)
		}
		if err != nil {
			return nil, &ToolError{t.Name, err}
		}
		if len(unheld) > 0 {
			form.Unheld[t.Name] = unheld
		}
		args[i] = b.Rule("arguments")
		b.Define(args[i], e)
		calls = append(calls, w.call(t.Name, b.Ref(args[i])))
	}
	call, all, root := b.Rule("call"), b.Rule("calls"), b.Rule("reply")
	b.Define(call, b.Or(calls...))
	more := b.Empty()
	if !m.One {
		more = b.Repeat(b.Seq(w.text(w.Between, nil), b.Ref(call)), 0, -1)
	}
	b.Define(all, b.Seq(w.text(w.Open, nil), b.Ref(call), more, w.text(w.Close, nil)))
	if b.Define(root, b.Ref(all)); m.Begins != nil {
		root = b.Rule("text")
		b.Define(root, w.reply(m, b.Ref(all)))
	}
	g, err := b.Compile(root)
	if err != nil && !errors.Is(err, grammar.ErrNothing) {
		return nil, err
	}
	var empty []string
	for i, t := range m.tools {
		switch {
		case b.Ends(args[i]):
		case !m.isLoose(t.Name) && m.Begins != nil: // the reply can do without
			return nil, &ToolError{t.Name, grammar.ErrNothing}
		case m.isLoose(t.Name) && m.any[t.Name] == nil && calls[i] != b.Never():
			empty = append(empty, t.Name)
		}
	}
	if len(empty) > 0 {
		return nil, &emptyError{empty}
	}
	form.Grammar = g
	return form, err
}

// writer makes expressions of a notation.
type writer struct {
	*dialect.Notation
	b       *grammar.Builder
	literal func(string) string
	held    map[string]Text
	blanks  *grammar.Expr
	spaced  bool // there may be blanks in JSON
}

// text is a text of the notation, with what its words stand for.
func (w *writer) text(text string, words map[string]*grammar.Expr) *grammar.Expr {
	e, rest := w.choice(text, words)
	if rest != "" {
		panic(fmt.Sprintf("callform: %q has no beginning in the notation %q", rest, text))
	}
	return e
}

// choice reads up to what ends an alternative within $[ and $], and what that is of.
func (w *writer) choice(text string, words map[string]*grammar.Expr) (e *grammar.Expr, rest string) {
	b := w.b
	var parts []*grammar.Expr
	for text != "" {
		plain, after, ok := strings.Cut(text, "$")
		if plain != "" {
			parts = append(parts, b.Literal(w.ask(plain)))
		}
		if !ok {
			break
		}
		switch after[0] {
		case '|', ']':
			return b.Seq(parts...), "$" + after
		case '[':
			one, rest := w.choice(after[1:], words)
			other := b.Empty()
			if strings.HasPrefix(rest, "$|") {
				other, rest = w.choice(rest[2:], words)
			}
			parts, text = append(parts, b.Or(one, other)), strings.TrimPrefix(rest, "$]")
		default:
			i := strings.IndexFunc(after, func(r rune) bool { return r < 'a' || r > 'z' })
			if i < 0 {
				i = len(after)
			}
			word := words[after[:i]]
			if word == nil {
				panic(fmt.Sprintf("callform: nothing stands for $%s in the notation", after[:i]))
			}
			parts, text = append(parts, word), after[i:]
		}
	}
	return b.Seq(parts...), ""
}

func (w *writer) ask(text string) string {
	if w.literal == nil {
		return text
	}
	return w.literal(text)
}

// call is a call of one tool.
func (w *writer) call(name string, args *grammar.Expr) *grammar.Expr {
	b := w.b
	if strings.Contains(w.Call, "$name") && !b.Matches(w.names(), name) {
		return b.Never()
	}
	return w.text(w.Call, map[string]*grammar.Expr{"name": b.Literal(name), "quoted": b.Literal(dialect.JSONString(name)), "args": args, "blanks": w.blanks,
		"number": b.Repeat(b.Runes(digits), 1, 6), "id": b.Repeat(b.Runes(digits, small, capitals), 9, 32)})
}

// What names, numbers and ids are made of.
var (
	digits   = grammar.RuneRange{Lo: '0', Hi: '9'}
	small    = grammar.RuneRange{Lo: 'a', Hi: 'z'}
	capitals = grammar.RuneRange{Lo: 'A', Hi: 'Z'}
)

// mostName is the longest name that can stand bare, in characters.
const mostName = 200

// names are what can stand bare as the name of a tool or a parameter, whatever is around it.
func (w *writer) names() *grammar.Expr {
	not := []grammar.RuneRange{{Lo: 0, Hi: ' '}, {Lo: 0x7f, Hi: 0x9f}}
	for _, c := range "\"'`<>&=()[]{},:;\\|#$" {
		not = append(not, grammar.RuneRange{Lo: c, Hi: c})
	}
	return w.b.Repeat(w.b.Runes(grammar.OtherRanges(append(not, spaces...)...)...), 1, mostName)
}

// spaces are the characters that parsers trim values by.
var spaces = func() (all []grammar.RuneRange) {
	for _, r := range unicode.White_Space.R16 {
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			all = append(all, grammar.RuneRange{Lo: c, Hi: c})
		}
	}
	return all
}()

// anyObject is the schema of the arguments of a tool that has no schema, noArguments that of one whose schema names none.
var anyObject, noArguments = schema.MustParse("{}"), schema.MustParse(`{"type": "object", "additionalProperties": false}`)

// arguments are those that follow the schema of a tool.
func (w *writer) arguments(ctx context.Context, of dialect.Tool, anyOrder bool) (*grammar.Expr, []jsonschema.Unheld, error) {
	root := of.Schema.Root()
	if root == nil {
		root = anyObject
	}
	if make, of := w.held[of.Name], root.Member("properties").Written(); make != nil && len(of) == 1 {
		e, err := make(ctx, w.b)
		if err != nil {
			return nil, nil, err
		}
		return w.argument(of[0].Key, e), nil, w.b.Err()
	}
	if props := root.Member("properties"); props.Kind() == schema.Object && len(props.Items) == 0 && !root.Member("additionalProperties").Given() {
		root = noArguments
	}
	s, err := jsonschema.Read(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	switch w.Args {
	case dialect.ArgsJSON:
		return s.BuildObject(ctx, w.b, jsonschema.Options{Declared: true, AnyOrder: anyOrder, Blanks: w.spaced})
	case dialect.ArgsMarked:
		return s.BuildMembers(ctx, w.b, jsonschema.Members{Between: ",", Member: w.pair(":"), Others: 1,
			Options: jsonschema.Options{Declared: true, AnyOrder: anyOrder, Compact: true, Mark: w.ask(w.Mark), Names: w.names(), Texts: w.without(w.Mark)}})
	case dialect.ArgsPython:
		return s.BuildMembers(ctx, w.b, jsonschema.Members{Between: ", ", Member: w.pair("="), Others: 1,
			Options: jsonschema.Options{Declared: true, AnyOrder: anyOrder, Python: true, Names: w.pythonNames()}})
	}
	t := w.tags()
	m := jsonschema.Members{Member: t.member, Others: 1, Options: jsonschema.Options{Declared: true, AnyOrder: anyOrder, Names: w.names(), Texts: t.texts}}
	if strings.Count(w.Param, "$key") > 1 { // nothing could tell that both are the same
		m.Others = 0
	}
	return s.BuildMembers(ctx, w.b, m)
}

// argument is arguments of which there is one, a text.
func (w *writer) argument(name string, e *grammar.Expr) *grammar.Expr {
	b := w.b
	quoted := func(before, after string) *grammar.Expr {
		return b.Seq(b.Literal(before+`"`), jsonschema.Spelled(b, e), b.Literal(`"`+after))
	}
	switch w.Args {
	case dialect.ArgsJSON:
		return quoted("{"+dialect.JSONString(name)+": ", "}")
	case dialect.ArgsPython:
		return quoted(name+"=", "")
	case dialect.ArgsMarked:
		mark := b.Literal(w.ask(w.Mark))
		return b.Seq(b.Literal(name+":"), mark, w.lacking(e, w.Mark), mark)
	}
	t := w.tags()
	return t.member(b.Literal(name), jsonschema.Parts{Text: b.Flat(e)})
}

// pair writes a member as its name and its value.
func (w *writer) pair(between string) func(*grammar.Expr, jsonschema.Parts) *grammar.Expr {
	return func(name *grammar.Expr, p jsonschema.Parts) *grammar.Expr {
		return w.b.Seq(name, w.b.Literal(between), p.Value)
	}
}

// pythonNames are the names of parameters as Python has them, and with dashes and dots.
func (w *writer) pythonNames() *grammar.Expr {
	letters := []grammar.RuneRange{small, capitals, {Lo: '_', Hi: '_'}}
	more := append(letters, digits, grammar.RuneRange{Lo: '-', Hi: '.'})
	return w.b.Seq(w.b.Runes(letters...), w.b.Repeat(w.b.Runes(more...), 0, mostName))
}

// lacking is texts that hold none of some others, which may be of a grammar with rules.
func (w *writer) lacking(e *grammar.Expr, others ...string) *grammar.Expr {
	if e.Regular() {
		return w.within(e, w.without(others...), others...)
	}
	return w.b.Without(e, grammar.Lacks{Words: others})
}

// within is the texts of a regular expression that are also of another one, which all are that hold no byte that some words begin
// with: it costs less to follow then.
func (w *writer) within(e, in *grammar.Expr, words ...string) *grammar.Expr {
	var bytes grammar.Set
	for _, s := range words {
		bytes.Add(s[0], s[0])
	}
	if w.b.Bytes(e).And(bytes) == (grammar.Set{}) {
		return e
	}
	return w.b.And(e, in)
}

// without is what a text is that holds none of some others.
func (w *writer) without(others ...string) *grammar.Expr {
	b := w.b
	return b.Not(b.Seq(b.Any(), b.Choice(others...), b.Any()))
}
