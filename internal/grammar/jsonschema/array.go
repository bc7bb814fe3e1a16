package jsonschema

import (
	"math/bits"
	"slices"
	"strings"

	"hearth/internal/grammar"
	"hearth/internal/schema"
)

// Bounds of what is counted by states.
const (
	mostCounts = 1 << 12 // states of an array's contains, or of an object's numbers of members and dependencies
	mostUnique = 6       // values that an array of unique ones has in any order
)

// array is the arrays of a form.
func (c *compiler) array(f *form) *grammar.Expr {
	least, most := f.count(func(s *rule) (int, int) { return s.array.min, s.array.max })
	if least == 0 && f.excludesEmpty(schema.Array) {
		least = 1
	}
	prefix := 0
	var found []contains
	unique := false
	for _, s := range f.rules {
		prefix = max(prefix, len(s.array.prefix))
		unique = unique || s.array.unique
		for _, k := range s.array.contains {
			if k.min > 0 || k.max != none {
				found = append(found, k)
			}
		}
	}
	if most != none {
		prefix = min(prefix, most)
	}
	if most != none && least > most || slices.ContainsFunc(found, func(k contains) bool { return k.max != none && k.min > k.max }) {
		return c.b.Never()
	}
	var body *grammar.Expr
	if unique && most != 0 && most != 1 {
		if body = c.unique(f, prefix, least, most, found); body == nil {
			for _, s := range f.rules {
				if s.array.unique {
					c.lacks(s.at, "uniqueItems", "it is held for a few listed values")
				}
			}
		}
	}
	if body == nil && len(found) > 0 {
		body = c.containing(f, prefix, least, most, found)
	}
	if body == nil {
		body = c.elements(f, prefix, least, most)
	}
	return c.b.Seq(c.b.Literal("["), body, c.b.Literal("]"))
}

// elements is the elements of an array.
func (c *compiler) elements(f *form, prefix, least, most int) *grammar.Expr {
	rest := c.value(f.elementRules(prefix))
	if prefix == 0 {
		return c.list(rest, least, most)
	}
	left := most
	if most != none {
		left -= prefix
	}
	e := c.more(rest, max(least-prefix, 0), left)
	for i := prefix - 1; i >= 0; i-- {
		if e = c.b.Seq(c.value(f.elementRules(i)), e); i > 0 {
			e = c.b.Seq(c.comma, e)
		}
		if i >= least {
			e = c.b.Optional(e)
		}
	}
	return e
}

// unique is the arrays of a few values, each at most once, nil if there are more or others.
func (c *compiler) unique(f *form, prefix, least, most int, found []contains) *grammar.Expr {
	values, ok := c.finite(f.elementRules(prefix))
	if !ok || prefix > 0 || len(found) > 0 || len(values) > mostUnique {
		return nil
	}
	texts := make([]*grammar.Expr, len(values))
	for i, v := range values {
		var s strings.Builder
		c.o.write(&s, v)
		texts[i] = c.b.Literal(s.String())
	}
	tails := make([]*grammar.Expr, 1<<len(values)) // by the values that are there
	for used := len(tails) - 1; used >= 0; used-- {
		n := bits.OnesCount(uint(used))
		var alts []*grammar.Expr
		if n >= least {
			alts = append(alts, c.b.Empty())
		}
		for i, e := range texts {
			if used>>i&1 == 1 || most != none && n >= most {
				continue
			}
			if e = c.b.Seq(e, tails[used|1<<i]); n > 0 {
				e = c.b.Seq(c.comma, e)
			}
			alts = append(alts, e)
		}
		tails[used] = c.b.Or(alts...)
	}
	return tails[0]
}

// finite lists the values that rules take, if they are listed.
func (c *compiler) finite(rules []*rule) (out []*schema.Node, ok bool) {
	check := c.checker()
	for _, f := range c.forms(rules) {
		values, ok := c.values(f)
		if !ok {
			if f.kinds&^(null|boolean) != 0 {
				return nil, false
			}
			for _, v := range words {
				if kindOf(v)&f.kinds != 0 && !slices.ContainsFunc(f.rules, func(s *rule) bool { return !check.own(s, v) }) {
					values = append(values, v)
				}
			}
		}
		for _, v := range values {
			if !slices.ContainsFunc(out, func(o *schema.Node) bool { return check.equal(o, v) }) {
				out = append(out, v)
			}
		}
		if len(out) > mostUnique {
			return nil, false
		}
	}
	return out, true
}

var words = func() (out []*schema.Node) {
	for _, s := range []string{"null", "true", "false"} {
		v, err := schema.Parse([]byte(s))
		if err != nil {
			panic(err)
		}
		out = append(out, v)
	}
	return out
}()

// containing is the elements of an array of which so many follow another schema too, nil if that takes too many states.
func (c *compiler) containing(f *form, prefix, least, most int, found []contains) *grammar.Expr {
	k := found[0]
	told := func(why string) {
		for _, s := range f.rules {
			if len(s.array.contains) > 0 {
				c.lacks(s.at, "contains", why)
			}
		}
	}
	var not *rule
	if k.max != none {
		if not = c.opposite(k.rule); not == nil {
			told("maxContains is held where not is")
			k.max = none
		}
	}
	if len(found) > 1 {
		told("of several only one is held")
	}
	items, hits := max(prefix, least, 1), k.min // counted up to these, from where on it is all the same
	if most != none {
		items = most
	}
	if k.max != none {
		hits = k.max
	}
	if (items+1)*(hits+1) > mostCounts {
		told("that many are not counted")
		return nil
	}
	t := &tally{c: c, f: f, least: least, most: most, items: items, k: k, not: not, known: map[[2]int]*grammar.Expr{}}
	return t.tail(0, 0)
}

// tally makes the elements of an array that are counted.
type tally struct {
	c           *compiler
	f           *form
	least, most int
	items       int
	k           contains
	not         *rule
	known       map[[2]int]*grammar.Expr
}

// element is the i-th one, with a rule more.
func (t *tally) element(i int, more *rule) *grammar.Expr {
	rules := t.f.elementRules(i)
	if more != nil {
		rules = append(rules, more)
	}
	e := t.c.value(rules)
	if i > 0 {
		e = t.c.b.Seq(t.c.comma, e)
	}
	return e
}

// tail is what follows i elements of which n are hits.
func (t *tally) tail(i, n int) *grammar.Expr {
	if e := t.known[[2]int{i, n}]; e != nil {
		return e
	}
	b := t.c.b
	var ends *grammar.Expr
	if ends = b.Never(); i >= t.least && n >= t.k.min {
		ends = b.Empty()
	}
	alts := []*grammar.Expr{ends}
	hits := n < t.k.min || t.k.max != none && n < t.k.max // else there is no need to count, or no more may be
	next := min(i+1, t.items)
	if i != t.most && hits {
		alts = append(alts, b.Seq(t.element(i, t.k.rule), t.tail(next, n+1)))
	}
	if i != t.most && next > i {
		alts = append(alts, b.Seq(t.element(i, t.not), t.tail(next, n)))
	}
	e := b.Or(alts...)
	if next == i && t.most == none { // as many as there may be
		e = b.Seq(b.Repeat(t.element(i, t.not), 0, -1), e)
	}
	t.known[[2]int{i, n}] = e
	return e
}
