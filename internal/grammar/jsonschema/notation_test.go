package jsonschema

import (
	"context"
	"testing"

	"hearth/internal/grammar"
)

// TestNotations: values are written with Python's words, between marks, and member by member.
func TestNotations(t *testing.T) {
	const text = `{"type": "object", "properties": {"a": {"type": ["string", "boolean"]}, "b": {"enum": ["x\"", null, {"c": [true, "\n"]}]}}, "required": ["a"]}`
	names := func(b *grammar.Builder) *grammar.Expr {
		return b.Repeat(b.Runes(grammar.RuneRange{Lo: 'a', Hi: 'z'}), 1, 9)
	}
	pair := func(b *grammar.Builder) func(*grammar.Expr, Parts) *grammar.Expr {
		return func(name *grammar.Expr, p Parts) *grammar.Expr {
			alts := []*grammar.Expr{b.Except(p.Text, b.Seq(b.Any(), b.Choice("<", ";"), b.Any()))}
			for _, of := range p.Other {
				alts = append(alts, of)
			}
			return b.Seq(b.Literal("<"), name, b.Literal(">"), b.Or(alts...))
		}
	}
	for _, c := range []struct {
		name      string
		build     func(s *Schema, b *grammar.Builder) (*grammar.Expr, []Unheld, error)
		good, bad []string
	}{
		{"an object", func(s *Schema, b *grammar.Builder) (*grammar.Expr, []Unheld, error) {
			return s.BuildObject(context.Background(), b, Options{})
		}, []string{`{"a": "\n", "b": null}`, `{"a": true, "z": 1, "z": 2}`}, []string{`null`, `{"b": null}`, `{"a": True}`}},
		{"Python", func(s *Schema, b *grammar.Builder) (*grammar.Expr, []Unheld, error) {
			return s.Build(context.Background(), b, Options{Python: true})
		}, []string{`{"a": True, "b": None}`, `{"a": "x", "b": {"c": [True, "\n"]}}`, `{"a": "", "z": [False]}`}, []string{`{"a": true}`, `{"a": "", "z": [false]}`}},
		{"marks", func(s *Schema, b *grammar.Builder) (*grammar.Expr, []Unheld, error) {
			without := b.Not(b.Seq(b.Any(), b.Literal("|"), b.Any()))
			return s.Build(context.Background(), b, Options{Compact: true, Mark: "|", Names: names(b), Texts: without})
		}, []string{"{a:|\"\n\\|,b:|x\"|}", "{a:true,b:{c:[true,|\n|]},zz:|q|}"}, []string{`{a:|x||}`, `{"a":true}`, `{a:"x"}`, `{a:true,Z:true}`}},
		{"members", func(s *Schema, b *grammar.Builder) (*grammar.Expr, []Unheld, error) {
			return s.BuildMembers(context.Background(), b, Members{Between: ";", Others: 1, Member: pair(b), Options: Options{Names: names(b)}})
		}, []string{"<a>any \"text\"", "<a>true;<b>x\"", `<a>;<b>{"c": [true, "\n"]};<z>null`}, []string{`<b>null`, `<a>;<b>y`, "<a>;<Z>null", "{<a>}"}},
		{"declared members alone", func(s *Schema, b *grammar.Builder) (*grammar.Expr, []Unheld, error) {
			without := b.Not(b.Seq(b.Any(), b.Choice(";", `"`), b.Any()))
			m := Members{Between: ";", Options: Options{Names: names(b)}}
			m.Member = func(name *grammar.Expr, p Parts) *grammar.Expr { return b.Seq(name, b.And(p.Text, without)) }
			return s.BuildMembers(context.Background(), b, m)
		}, []string{"a", "atext"}, []string{`ax;bx"`, "a;z", ""}},
	} {
		b := grammar.NewBuilder()
		root := b.Rule("root")
		e, unheld, err := c.build(read(t, text), b)
		if err != nil || len(unheld) > 0 {
			t.Fatalf("%s: %v, %v", c.name, unheld, err)
		}
		b.Define(root, e)
		g, err := b.Compile(root)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for list, want := range map[*[]string]bool{&c.good: true, &c.bad: false} {
			for _, s := range *list {
				if g.Matches(s, grammar.NewBudget(1)) != want {
					t.Errorf("%s: %q is written: %v", c.name, s, !want)
				}
			}
		}
	}
}
