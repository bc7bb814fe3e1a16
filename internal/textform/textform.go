// Package textform makes grammars of the forms of texts that requests ask for.
package textform

import (
	"context"
	"fmt"

	"hearth/internal/chat"
	"hearth/internal/grammar"
	"hearth/internal/grammar/gbnf"
	"hearth/internal/grammar/jsonschema"
	"hearth/internal/grammar/lark"
	"hearth/internal/grammar/regex"
	"hearth/internal/schema"
)

// python is how regular expressions are read: clients of other servers write them for Python.
var python = regex.Options{Python: true}

// Grammar is of the texts of a form, with the keywords of its schema that it does not hold. Errors say where in the form they
// are, or are a *grammar.LimitError, grammar.ErrNothing, or the cause of ctx's end.
func Grammar(ctx context.Context, f *chat.Form) (g *grammar.Grammar, unheld []jsonschema.Unheld, err error) {
	switch f.Kind {
	case chat.FormObject:
		return ofSchema(ctx, `{"type": "object"}`)
	case chat.FormSchema:
		return ofSchema(ctx, f.Source)
	case chat.FormRegex:
		g, err = regex.Grammar(f.Source, python)
	case chat.FormChoice:
		g, err = grammar.OneOf(f.Choices...)
	case chat.FormGBNF:
		g, err = gbnf.Compile(ctx, f.Source, gbnf.Options{})
	case chat.FormLark:
		g, err = lark.Compile(ctx, f.Source)
	default:
		panic(fmt.Sprintf("textform: no grammars of kind %d", f.Kind))
	}
	return g, nil, err
}

func ofSchema(ctx context.Context, source string) (*grammar.Grammar, []jsonschema.Unheld, error) {
	root, err := schema.Parse([]byte(source))
	if err != nil {
		return nil, nil, err
	}
	s, err := jsonschema.Read(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	return s.Grammar(ctx, jsonschema.Options{Declared: true})
}

// Build adds the texts of a form in Lark, or of a regular expression, to a grammar of which they are a part.
func Build(ctx context.Context, b *grammar.Builder, f *chat.Form) (*grammar.Expr, error) {
	if f.Kind == chat.FormLark {
		return lark.Build(ctx, b, f.Source)
	}
	return regex.Compile(b, f.Source, python)
}
