package callform

import (
	"hearth/internal/dialect"
	"hearth/internal/grammar"
)

// reply is text with calls in it. With One nothing follows the call.
func (w *writer) reply(m *maker, calls *grammar.Expr) *grammar.Expr {
	b := w.b
	first := w.free(m, !m.Within, false)
	if m.One {
		return b.Seq(first, b.Optional(calls))
	}
	return b.Seq(first, b.Repeat(b.Seq(calls, w.free(m, true, true)), 0, -1))
}

// free is text in which the reader finds no beginning of a call. An answer may begin with it, or a call be before it.
func (w *writer) free(m *maker, begins, behind bool) *grammar.Expr {
	b := w.b
	names, quoted := make([]string, len(m.tools)), make([]string, len(m.tools))
	for i, t := range m.tools {
		names[i], quoted[i] = t.Name, dialect.JSONString(t.Name)
	}
	blanks := b.Repeat(b.Choice(" ", "\t", "\r", "\n"), 0, -1)
	var ends grammar.Set
	ends.Add('"', '"')
	ends.Add('\\', '\\')
	chars := b.Repeat(b.Byte(ends.Not()), 0, -1)
	str := b.Seq(b.Literal(`"`), chars, b.Literal(`"`))
	escaped := b.Seq(b.Literal(`"`), chars, b.Literal(`\`)) // it may be any name
	ids := b.Seq(b.Choice(`"type"`, `"id"`, `"tool_call_id"`), blanks, b.Literal(":"), blanks, str, blanks, b.Literal(","), blanks)
	words := map[string]*grammar.Expr{"name": b.Choice(names...), "quoted": b.Or(b.Choice(quoted...), escaped), "blanks": blanks, "ids": b.Repeat(ids, 1, -1)}
	var calls []*grammar.Expr
	spelled := func(w *writer) { // markers that are tokens may also be spelled as text
		words["head"] = b.Any()
		if m.Begins.Body != "" {
			words["head"] = w.without(w.ask(m.Begins.Body))
		}
		texts := func(list []string) *grammar.Expr {
			var all []*grammar.Expr
			for _, text := range list {
				if e := w.text(text, words); !b.Matches(e, "") { // of a token that ends the reply nothing is left
					all = append(all, e)
				}
			}
			return b.Or(all...)
		}
		calls = append(calls, b.Seq(b.Any(), texts(m.Begins.Anywhere), b.Any()))
		at := b.Seq(b.Any(), texts(m.Begins.Behind))
		if begins {
			at = b.Or(at, b.Empty())
		}
		calls = append(calls, b.Seq(at, blanks, texts(m.Begins.Answers), b.Any()))
		if behind {
			calls = append(calls, b.Seq(blanks, texts(m.Begins.Again), b.Any()))
		}
	}
	spelled(w)
	if w.literal != nil && m.Object == nil {
		plain := *w
		plain.literal = nil
		spelled(&plain)
	}
	return b.Not(b.Or(calls...))
}
