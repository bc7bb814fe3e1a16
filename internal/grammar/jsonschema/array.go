package jsonschema

import (
	"math/bits"
	"slices"

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
	n := f.count(elements)
	if n.min == 0 && f.excludesEmpty(schema.Array) {
		n.min = 1
	}
	prefix := 0
	var found []contains
	unique := false
	for _, s := range f.rules {
		prefix = max(prefix, len(s.array.prefix))
		unique = unique || s.array.unique
		if s.array.left != nil && slices.ContainsFunc(f.rules, func(o *rule) bool { return len(o.array.contains) > 0 }) {
			c.lacks(s.at, "unevaluatedItems", "it is not held beside contains")
		}
		for _, k := range s.array.contains {
			if k.min > 0 || k.max != none {
				found = append(found, k)
			}
		}
	}
	if n.max != none {
		prefix = min(prefix, n.max)
	}
	if n.empty() || slices.ContainsFunc(found, func(k contains) bool { return k.empty() }) {
		return c.b.Never()
	}
	var body *grammar.Expr
	if unique && n.max != 0 && n.max != 1 {
		if body = c.unique(f, prefix, n, found); body == nil {
			for _, s := range f.rules {
				if s.array.unique {
					c.lacks(s.at, "uniqueItems", "it is held for a few listed values")
				}
			}
		}
	}
	if body == nil && len(found) > 0 {
		body = c.containing(f, prefix, n, found)
	}
	if body == nil {
		body = c.elements(f, prefix, n)
	}
	return c.between("[", "]", body)
}

// elements is the elements of an array.
func (c *compiler) elements(f *form, prefix int, n span) *grammar.Expr {
	rest := c.value(c.elementRules(f, prefix))
	if prefix == 0 {
		return c.list(rest, n)
	}
	e := c.more(rest, n.behind(prefix))
	for i := prefix - 1; i >= 0; i-- {
		if e = c.b.Seq(c.value(c.elementRules(f, i)), e); i > 0 {
			e = c.b.Seq(c.comma, e)
		}
		if i >= n.min {
			e = c.b.Optional(e)
		}
	}
	return e
}

// unique is the arrays of a few values, each at most once, nil if there are more or others.
func (c *compiler) unique(f *form, prefix int, n span, found []contains) *grammar.Expr {
	values, ok := c.finite(c.elementRules(f, prefix))
	if !ok || prefix > 0 || len(found) > 0 || len(values) > mostUnique {
		return nil
	}
	var texts []*grammar.Expr
	for _, s := range c.spellings(values) {
		texts = append(texts, c.b.Literal(s))
	}
	tails := make([]*grammar.Expr, 1<<len(texts)) // by the values that are there
	for used := len(tails) - 1; used >= 0; used-- {
		many := bits.OnesCount(uint(used))
		var alts []*grammar.Expr
		if many >= n.min {
			alts = append(alts, c.b.Empty())
		}
		for i, e := range texts {
			if used>>i&1 == 1 || n.max != none && many >= n.max {
				continue
			}
			if e = c.b.Seq(e, tails[used|1<<i]); many > 0 {
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

var words = []*schema.Node{schema.MustParse("null"), schema.MustParse("true"), schema.MustParse("false")}

// mostContains is how many schemas an array contains elements of at once.
const mostContains = 3

// containing is the elements of an array of which so many follow other schemas too, nil if that takes too many states.
func (c *compiler) containing(f *form, prefix int, n span, found []contains) *grammar.Expr {
	told := func(why string) {
		for _, s := range f.rules {
			if len(s.array.contains) > 0 {
				c.lacks(s.at, "contains", why)
			}
		}
	}
	if len(found) > mostContains {
		told("so many at once are not held")
		found = found[:mostContains]
	}
	t := &tally{c: c, f: f, span: n, items: max(prefix, n.min, 1), known: map[[1 + mostContains]int]*grammar.Expr{}}
	if n.max != none {
		t.items = n.max
	}
	states := t.items + 1
	for _, k := range found {
		count := counted{k, nil, k.min}
		if k.max != none {
			if count.not, count.enough = c.opposite(k.rule), k.max; count.not == nil {
				told("maxContains is held where not is")
				count.max, count.enough = none, k.min
			}
		}
		if states *= count.enough + 1; states > mostCounts {
			told("that many are not counted")
			return nil
		}
		t.counts = append(t.counts, count)
	}
	return t.tail([1 + mostContains]int{})
}

// counted is a schema of contains, the opposite of it where that matters, and up to how many elements of it are counted.
type counted struct {
	contains
	not    *rule
	enough int
}

// tally makes the elements of an array that are counted, up to items.
type tally struct {
	c *compiler
	f *form
	span
	items  int
	counts []counted
	known  map[[1 + mostContains]int]*grammar.Expr
}

// tail is what follows so many elements, of which so many are counted.
func (t *tally) tail(at [1 + mostContains]int) *grammar.Expr {
	if e := t.known[at]; e != nil {
		return e
	}
	b, i := t.c.b, at[0]
	enough := i >= t.min
	for k, count := range t.counts {
		enough = enough && at[1+k] >= count.min
	}
	var alts []*grammar.Expr
	if enough {
		alts = append(alts, b.Empty())
	}
	same := b.Never() // an element that changes nothing
	for set := 0; set < 1<<len(t.counts) && i != t.max; set++ {
		next, rules, ok := at, t.c.elementRules(t.f, i), true
		next[0] = min(i+1, t.items)
		for k, count := range t.counts {
			switch {
			case set>>k&1 == 1:
				ok = ok && at[1+k] < count.enough
				next[1+k]++
				rules = append(rules, count.rule)
			case count.not != nil:
				rules = append(rules, count.not)
			}
		}
		if !ok {
			continue
		}
		e := t.c.value(rules)
		if i > 0 {
			e = b.Seq(t.c.comma, e)
		}
		if next == at {
			same = e
		} else {
			alts = append(alts, b.Seq(e, t.tail(next)))
		}
	}
	e := b.Seq(b.Repeat(same, 0, -1), b.Or(alts...))
	t.known[at] = e
	return e
}
