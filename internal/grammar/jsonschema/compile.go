package jsonschema

import (
	"cmp"
	"slices"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

// compiler makes a grammar of rules.
type compiler struct {
	*reader
	b            *grammar.Builder
	o            Options
	comma, colon *grammar.Expr
	blanks       *grammar.Expr
	char         *grammar.Expr            // any character within quotes
	exprOf       map[string]*grammar.Expr // of values, by the rules that they follow
	ruleOf       map[string]*grammar.Rule // of arrays and objects likewise
	named        map[*grammar.Expr]*grammar.Rule
	patternExprs map[string]*grammar.Expr
	formatExprs  map[pattern]*grammar.Expr
	steps        map[int]*grammar.Expr
	todo         []func() // rules to be defined

	each     func(*grammar.Expr, Parts) *grammar.Expr // how members are written that are not those of JSON; nil: as JSON
	others   int                                      // so many members at most that no name is declared for, where each is set
	within   *compiler                                // of their values
	anything *grammar.Expr
}

func newCompiler(r *reader, b *grammar.Builder, o Options) *compiler {
	comma, colon := o.between()
	c := &compiler{reader: r, b: b, o: o, comma: b.Literal(comma), colon: b.Literal(colon), char: o.chars(b, everyChar),
		exprOf: map[string]*grammar.Expr{}, ruleOf: map[string]*grammar.Rule{}, named: map[*grammar.Expr]*grammar.Rule{},
		patternExprs: map[string]*grammar.Expr{}, formatExprs: map[pattern]*grammar.Expr{}, steps: map[int]*grammar.Expr{}}
	if c.blanks = b.Empty(); o.Blanks {
		c.blanks = Blanks(b)
		c.comma, c.colon = b.Seq(c.blanks, b.Literal(","), c.blanks), b.Seq(c.blanks, b.Literal(":"), c.blanks)
	}
	return c
}

// mostBlanks is how many blanks may come in a row: a model that writes nothing else comes to an end.
const mostBlanks = 64

// Blanks is white space as JSON has it.
func Blanks(b *grammar.Builder) *grammar.Expr {
	return b.Repeat(b.Choice(" ", "\t", "\r", "\n"), 0, mostBlanks)
}

// between is what stands within brackets.
func (c *compiler) between(open, close string, e *grammar.Expr) *grammar.Expr {
	return c.b.Seq(c.b.Literal(open), c.blanks, e, c.blanks, c.b.Literal(close))
}

// define gives the rules that were met their expressions, and those that are met by that.
func (c *compiler) define() {
	for n := 0; len(c.todo) > 0; n++ {
		next := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		next()
		if err := c.b.Err(); err != nil {
			panic(stop{err})
		}
		if n%64 == 0 && c.ctx.Err() != nil {
			panic(stop{c.ctx.Err()})
		}
	}
}

// shared is a rule of an expression, one for equal ones.
func (c *compiler) shared(name string, e *grammar.Expr) *grammar.Expr {
	if e == c.b.Never() {
		return e
	}
	r := c.named[e]
	if r == nil {
		r = c.b.Rule(name)
		c.b.Define(r, e)
		c.named[e] = r
	}
	return c.b.Ref(r)
}

// quoted is the strings of what is within quotes.
func (c *compiler) quoted(e *grammar.Expr) *grammar.Expr {
	if c.o.Texts != nil {
		e = c.b.And(e, c.o.Texts)
	}
	q := c.b.Literal(cmp.Or(c.o.Mark, `"`))
	return c.shared("string", c.b.Seq(q, e, q))
}

// value is what follows several rules. A form that ends by itself is apart from numbers, which may go on.
func (c *compiler) value(rules []*rule) *grammar.Expr {
	k := key('v', rules)
	if e, ok := c.exprOf[k]; ok {
		return e
	}
	var ending, numbers []*grammar.Expr
	for _, f := range c.forms(rules) {
		end, num := c.form(f)
		ending, numbers = append(ending, end), append(numbers, num)
	}
	end := c.b.Or(ending...)
	if end.Regular() || len(ending) > 1 {
		end = c.shared("value", end)
	}
	e := c.b.Or(append(numbers, end)...)
	c.exprOf[k] = e
	return e
}

// form is what follows a form: what ends by itself, and numbers.
func (c *compiler) form(f *form) (ending, numbers *grammar.Expr) {
	b := c.b
	if len(f.rules) == 0 && f.kinds == all {
		return c.any(), digits{b}.any()
	}
	if values, ok := c.values(f); ok {
		return b.Choice(c.spellings(of(all&^number, values))...), b.Choice(c.spellings(of(number, values))...)
	}
	var words []string
	if f.kinds&null != 0 {
		words = append(words, "null")
	}
	if f.kinds&boolean != 0 {
		words = append(words, "true", "false")
	}
	for _, s := range f.rules {
		for _, v := range s.not {
			if k := v.Kind(); k == schema.Null || k == schema.Bool {
				words = slices.DeleteFunc(words, func(w string) bool { return w == v.Text })
			} else if (k == schema.Array || k == schema.Object) && f.kinds&kindOf(v) != 0 && len(v.Items) > 0 {
				c.lacks(s.at, "not", "of single arrays and objects it is held for empty ones")
			}
		}
	}
	for i, w := range words {
		words[i] = c.o.word(w)
	}
	alts := []*grammar.Expr{b.Choice(words...)}
	numbers = b.Never()
	if f.kinds&number != 0 {
		numbers = c.number(f)
	}
	if f.kinds&text != 0 {
		alts = append(alts, c.quoted(c.text(f)))
	}
	if f.kinds&array != 0 {
		alts = append(alts, c.container("array", f, c.array))
	}
	if f.kinds&object != 0 {
		alts = append(alts, c.container("object", f, c.object))
	}
	return b.Or(alts...), numbers
}

// container is the rule of a form's arrays or objects, which is defined later: they hold themselves where a schema is recursive.
func (c *compiler) container(name string, f *form, body func(*form) *grammar.Expr) *grammar.Expr {
	k := key(name[0], f.rules)
	r := c.ruleOf[k]
	if r == nil {
		r = c.b.Rule(name)
		c.ruleOf[k] = r
		c.todo = append(c.todo, func() { c.b.Define(r, body(f)) })
	}
	return c.b.Ref(r)
}

// excludesEmpty tells whether a form excludes the empty array or object.
func (f *form) excludesEmpty(k schema.Kind) bool {
	return slices.ContainsFunc(f.rules, func(s *rule) bool {
		return slices.ContainsFunc(s.not, func(v *schema.Node) bool { return v.Kind() == k && len(v.Items) == 0 })
	})
}

// any is all values but numbers.
func (c *compiler) any() *grammar.Expr {
	if c.anything != nil {
		return c.anything
	}
	b := c.b
	value, list, members := b.Rule("json.value"), b.Rule("json.array"), b.Rule("json.object")
	c.anything = b.Ref(value)
	str := c.quoted(b.Repeat(c.char, 0, -1))
	each := b.Or(c.anything, digits{b}.any())
	b.Define(list, c.between("[", "]", c.list(each, anyMany)))
	b.Define(members, c.between("{", "}", c.list(b.Seq(c.name(b.Repeat(c.char, 0, -1)), each), anyMany)))
	b.Define(value, b.Or(str, b.Ref(list), b.Ref(members), b.Choice(c.o.word("true"), c.o.word("false"), c.o.word("null"))))
	return c.anything
}

// list is so many elements with commas between them.
func (c *compiler) list(e *grammar.Expr, n span) *grammar.Expr {
	l := c.b.Seq(e, c.more(e, n.behind(1)))
	if n.min == 0 {
		l = c.b.Optional(l)
	}
	return l
}

// more is so many elements, each behind a comma.
func (c *compiler) more(e *grammar.Expr, n span) *grammar.Expr {
	return c.repeat(c.b.Seq(c.comma, e), n)
}

// repeat is an expression so many times.
func (c *compiler) repeat(e *grammar.Expr, n span) *grammar.Expr {
	if n.empty() {
		return c.b.Never()
	}
	if n.max > grammar.MaxRepeat {
		n.max = none
	}
	return c.b.Repeat(e, n.min, n.max)
}
