package jsonschema

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

// Parts are the values of a member, apart by how notations write them in which a text stands as it is.
type Parts struct {
	Value *grammar.Expr            // all of them, as the options say
	Text  *grammar.Expr            // texts as they are; regular
	Other map[string]*grammar.Expr // those of other types, by the names of those that there are, as the options say
}

// Members say how the members of an object are written one by one.
type Members struct {
	Options
	Between string
	Others  int                                             // members at most that no name is declared for: no grammar can tell that they differ
	Member  func(name *grammar.Expr, p Parts) *grammar.Expr // both as they are
}

// BuildObject is Build of the objects alone that follow a schema.
func (s *Schema) BuildObject(ctx context.Context, b *grammar.Builder, o Options) (*grammar.Expr, []Unheld, error) {
	return s.build(ctx, func() (*grammar.Expr, *compiler) {
		c := newCompiler(s.reader, b, o)
		var alts []*grammar.Expr
		for _, f := range c.forms([]*rule{s.root}) {
			if values, listed := c.values(f); listed {
				alts = append(alts, b.Choice(c.spellings(of(object, values))...))
			} else if f.kinds&object != 0 {
				alts = append(alts, c.container("object", f, c.object))
			}
		}
		return b.Or(alts...), c
	}, b)
}

// of are those values that are of some kinds.
func of(k kinds, values []*schema.Node) []*schema.Node {
	return slices.DeleteFunc(slices.Clone(values), func(v *schema.Node) bool { return kindOf(v)&k == 0 })
}

// BuildMembers adds to a grammar the members of the objects that follow a schema, as Build adds the whole.
func (s *Schema) BuildMembers(ctx context.Context, b *grammar.Builder, m Members) (e *grammar.Expr, unheld []Unheld, err error) {
	return s.build(ctx, func() (*grammar.Expr, *compiler) {
		names := m.Options
		names.plain = true
		c := newCompiler(s.reader, b, names)
		c.others = m.Others
		c.comma, c.each, c.within = b.Literal(m.Between), m.Member, newCompiler(s.reader, b, m.Options)
		var alts []*grammar.Expr
		for _, f := range c.forms([]*rule{s.root}) {
			if _, listed := c.values(f); listed {
				c.lacks(f.rules[0].at, "enum", "objects whose members are written one by one are not held to it")
			}
			if f.kinds&object != 0 {
				alts = append(alts, c.members(f))
			}
		}
		return b.Or(alts...), c.within
	}, b)
}

// parts are the values of a member.
func (c *compiler) parts(rules []*rule) Parts {
	v, b := c.within, c.b
	p := Parts{Value: v.value(rules), Other: map[string]*grammar.Expr{}}
	var texts []*grammar.Expr
	other := map[string][]*grammar.Expr{}
	for _, f := range c.forms(rules) {
		values, listed := v.values(f)
		for name, k := range kindNames {
			if name == "number" && f.kinds&number == integer || name == "integer" && f.kinds&fraction != 0 || f.kinds&k == 0 {
				continue
			}
			only := *f
			only.kinds &= k
			switch {
			case listed && k == text:
				texts = append(texts, b.Choice(c.spellings(of(k, values))...))
			case listed:
				other[name] = append(other[name], b.Choice(v.spellings(of(k, values))...))
			case k == text:
				texts = append(texts, c.text(f))
			default:
				end, num := v.form(&only)
				other[name] = append(other[name], end, num)
			}
		}
	}
	p.Text = b.Or(texts...)
	for name, e := range other {
		p.Other[name] = b.Or(e...)
	}
	return p
}

// spellings are values as they are written, without those that can't be.
func (c *compiler) spellings(values []*schema.Node) (out []string) {
	o := c.o
	for _, v := range values {
		if o.allows(c.b, v) {
			var s strings.Builder
			o.write(&s, v)
			out = append(out, s.String())
		}
	}
	return out
}

func (o Options) bare() bool { return o.plain || o.Mark != "" }

// chars is chars where texts are quoted.
func (o Options) chars(b *grammar.Builder, set []grammar.RuneRange) *grammar.Expr {
	if o.bare() {
		return b.Runes(set...)
	}
	return chars(b, set)
}

// spelled is a text as chars writes it.
func (o Options) spelled(s string) string {
	if o.bare() {
		return s
	}
	return spelled(s)
}

func (o Options) quoted(text string) string {
	q := cmp.Or(o.Mark, `"`)
	if o.plain {
		q = ""
	}
	return q + o.spelled(text) + q
}

// name is the name of a member, without a colon.
func (o Options) name(name string) string {
	if o.bare() {
		return name
	}
	return o.quoted(name)
}

// word is true, false or null.
func (o Options) word(w string) string {
	if o.Python {
		return map[string]string{"true": "True", "false": "False", "null": "None"}[w]
	}
	return w
}

// allows tells whether all names and texts in a value may be written.
func (o Options) allows(b *grammar.Builder, v *schema.Node) bool {
	switch v.Kind() {
	case schema.String:
		return o.Texts == nil || b.Matches(o.Texts, o.spelled(v.Text))
	case schema.Array, schema.Object:
		for i := range v.Items {
			if v.Kind() == schema.Object && !o.allowsName(b, v.Items[i].Key) || !o.allows(b, &v.Items[i]) {
				return false
			}
		}
	}
	return true
}

func (o Options) allowsName(b *grammar.Builder, name string) bool {
	return (o.Names == nil || b.Matches(o.Names, o.spelled(name))) && (o.Texts == nil || o.bare() || b.Matches(o.Texts, o.spelled(name)))
}

// declared is a member of that name: what comes before its value, and that.
func (c *compiler) declared(name string, rules []*rule) (key, value *grammar.Expr) {
	if c.each != nil {
		return c.b.Empty(), c.each(c.b.Literal(name), c.parts(rules))
	}
	return c.b.Seq(c.b.Literal(c.o.name(name)), c.colon), c.value(rules)
}

// undeclared are members of any of some names.
func (c *compiler) undeclared(name *grammar.Expr, rules []*rule) *grammar.Expr {
	if name = c.name(name); c.each != nil {
		return c.each(name, c.parts(rules))
	}
	return c.b.Seq(name, c.value(rules))
}

// name is the names of members, with a colon.
func (c *compiler) name(e *grammar.Expr) *grammar.Expr {
	if c.o.Names != nil {
		e = c.b.And(e, c.o.Names)
	}
	switch {
	case c.each != nil:
		return e
	case c.o.bare():
		return c.b.Seq(e, c.colon)
	}
	return c.b.Seq(c.quoted(e), c.colon)
}

// fewer is a bound of the members that no name is declared for.
func (c *compiler) fewer(n span) span {
	if c.each != nil && (n.max == none || n.max > c.others) {
		n.max = c.others
	}
	return n
}
