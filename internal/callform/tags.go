package callform

import (
	"slices"
	"strings"

	"hearth/internal/grammar"
	"hearth/internal/grammar/jsonschema"
)

// tags makes parameters that are written one by one.
type tags struct {
	*writer
	closer []string      // what may end a value
	texts  *grammar.Expr // what holds no end of a value
	bare   *grammar.Expr // a text that stands as it is
	cdata  *grammar.Expr // one within CDATA; nil where there is none
}

const cdataOpen = "<![CDATA["

func (w *writer) tags() *tags {
	b := w.b
	_, behind, _ := strings.Cut(w.Param, "$value")
	behind, _, _ = strings.Cut(behind, "$")
	closer := strings.TrimSpace(behind)
	t := &tags{writer: w}
	if len(w.Ends) > 0 {
		t.closer = []string{closer}
	}
	t.texts = t.endless(closer)
	t.bare = t.texts
	if w.CData {
		t.bare = b.Except(t.bare, b.Seq(b.Literal(cdataOpen), b.Any()))
		t.cdata = t.endless("]]>" + closer)
	}
	if w.Trim { // before the line end that is none of the value another one would be one with it
		t.bare = b.Except(t.bare, b.Seq(b.Any(), b.Literal("\r")))
	}
	return t
}

// endless is texts in which no value ends: a closing tag alone does not end one.
func (t *tags) endless(closer string) *grammar.Expr {
	b := t.b
	e := b.Any()
	if len(t.Ends) > 0 {
		e = b.Not(b.Seq(b.Any(), b.Literal(closer), b.Repeat(b.Choice(" ", "\t", "\r", "\n"), 0, -1), b.Choice(t.Ends...), b.Any()))
	}
	if len(t.Never) > 0 {
		e = b.And(e, t.without(t.Never...))
	}
	return e
}

// member is a parameter with its value.
func (t *tags) member(name *grammar.Expr, p jsonschema.Parts) *grammar.Expr {
	b := t.b
	if t.Kind != nil {
		byKind := map[string][]*grammar.Expr{t.Kind("string"): {t.stands(p.Text)}}
		for of, e := range p.Other {
			byKind[t.Kind(of)] = append(byKind[t.Kind(of)], e)
		}
		var alts []*grammar.Expr
		for kind, values := range byKind {
			alts = append(alts, t.text(t.Param, map[string]*grammar.Expr{"key": name, "kind": b.Literal(kind), "value": b.Or(values...)}))
		}
		return b.Or(alts...)
	}
	is := func(kind string) bool { return p.Other[kind] != nil && p.Other[kind] != b.Never() }
	blank := b.Repeat(b.Runes(spaces...), 0, -1)
	var others, alike []*grammar.Expr
	for _, of := range []struct {
		kind string
		e    func() *grammar.Expr
	}{
		{"array", func() *grammar.Expr { return b.Seq(b.Literal("["), b.Any()) }},
		{"object", func() *grammar.Expr { return b.Seq(b.Literal("{"), b.Any()) }},
		{"null", func() *grammar.Expr { return b.Seq(b.Choice("null", "None"), blank) }},
		{"boolean", func() *grammar.Expr { return b.Seq(b.Choice("true", "false"), blank) }},
		{"integer", func() *grammar.Expr { return b.Seq(t.numbers(), blank) }},
		{"number", func() *grammar.Expr { return b.Seq(t.numbers(), blank) }},
	} {
		scalar := of.kind != "array" && of.kind != "object"
		if !is(of.kind) || scalar && p.Text != b.Never() && is("null") && is("boolean") && is("number") && is("array") && is("object") {
			continue // of values of any type only lists and objects are read as what they are
		}
		others, alike = append(others, p.Other[of.kind]), append(alike, of.e())
	}
	text := p.Text
	if len(alike) > 0 {
		text = b.Except(text, b.Seq(blank, b.Or(alike...)))
	}
	return t.text(t.Param, map[string]*grammar.Expr{"key": name, "value": b.Or(append(others, t.stands(text))...)})
}

// stands is texts as they stand between tags.
func (t *tags) stands(e *grammar.Expr) *grammar.Expr {
	b := t.b
	if !e.Regular() {
		return t.ruled(e)
	}
	begins := slices.Concat(t.Never, t.closer)
	if t.Trim {
		begins = append(begins, "\r")
	}
	bare := t.within(e, t.bare, begins...)
	switch {
	case t.cdata != nil:
		return b.Or(bare, b.Seq(b.Literal(cdataOpen), t.within(e, t.cdata, append(begins, "]]>")...), b.Literal("]]>")))
	case t.Trim && !t.ownLines():
		edge := b.Choice("\n", "\r")
		inLines := b.Seq(b.Literal("\n"), bare, b.Literal("\n"))
		return b.Or(inLines, b.Except(bare, b.Seq(edge, b.Any()), b.Seq(b.Any(), edge)))
	}
	return bare
}

// ruled is stands of texts of a grammar with rules. They hold no tag that may end a value, whatever follows it.
func (t *tags) ruled(e *grammar.Expr) *grammar.Expr {
	b := t.b
	lacks := grammar.Lacks{Words: slices.Concat(t.Never, t.closer)}
	switch {
	case t.CData:
		lacks.Begins = []string{cdataOpen}
		cdata := grammar.Lacks{Words: append(slices.Clone(t.Never), "]]>")}
		return b.Or(b.Without(e, lacks), b.Seq(b.Literal(cdataOpen), b.Without(e, cdata), b.Literal("]]>")))
	case t.Trim:
		lacks.Ends = []string{"\r"}
		if t.ownLines() {
			return b.Without(e, lacks)
		}
		edge := []string{"\n", "\r"}
		inLines := b.Seq(b.Literal("\n"), b.Without(e, lacks), b.Literal("\n"))
		return b.Or(inLines, b.Without(e, grammar.Lacks{Words: lacks.Words, Begins: edge, Ends: edge}))
	}
	return b.Without(e, lacks)
}

// ownLines tells whether values stand in lines of their own.
func (t *tags) ownLines() bool { return strings.Contains(t.Param, "$value\n") }

// numbers are those of JSON.
func (t *tags) numbers() *grammar.Expr {
	b := t.b
	some, first := b.Repeat(b.Runes(digits), 1, -1), b.Runes(grammar.RuneRange{Lo: '1', Hi: '9'})
	return b.Seq(b.Optional(b.Literal("-")), b.Or(b.Literal("0"), b.Seq(first, b.Optional(some))),
		b.Optional(b.Seq(b.Literal("."), some)), b.Optional(b.Seq(b.Choice("e", "E"), b.Optional(b.Choice("+", "-")), some)))
}
