package grammar

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Grammar is what a text must follow from its beginning to its end. It may be used by many at once: what they find out about it
// on the way is kept for all of them.
type Grammar struct {
	start   *Rule
	classes partition
	end     *Expr // what follows the start
	beyond  *Expr // a character that ASCII has not

	mu       sync.Mutex // for what follows, and for making states
	t        *table
	rules    []*Rule
	least    int // expressions that are always there
	steps    int // places for steps of states
	horizons map[horizon]seen
}

// Compile makes the grammar whose texts are those of start. What can never end is left out: an alternative that always needs
// another one within it, an intersection that no text is in. If nothing remains the error is ErrNothing. It is a LimitError where
// the grammar is too large. A Builder compiles once.
func (b *Builder) Compile(start *Rule) (*Grammar, error) {
	if b.err != nil {
		return nil, b.err
	}
	c := &compiler{from: b, t: b.t, budget: b.budget}
	c.collect(start)
	if b.worked(); b.err != nil {
		return nil, b.err
	}
	c.nullable()
	c.productive()
	c.first()
	c.components()
	var bodies []*Expr
	for _, r := range c.order {
		bodies = append(bodies, r.body)
	}
	g := &Grammar{t: c.t, classes: c.t.classes(bodies...), end: c.t.empty, beyond: c.t.runes(Ranges(RuneRange{utf8.RuneSelf, utf8.MaxRune}))}
	c.classes = &g.classes
	for _, group := range c.groups {
		c.translate(group)
	}
	if b.worked(); b.err != nil {
		return nil, b.err
	}
	b.compiled = c.rules
	if g.start = c.rules[start]; g.start.body == c.t.never {
		return nil, ErrNothing
	}
	for _, r := range c.order {
		g.rules = append(g.rules, c.rules[r])
	}
	g.forget()
	return g, nil
}

// Ends tells, after Compile, whether a text of finite length follows a rule that the start leads to.
func (b *Builder) Ends(r *Rule) bool {
	made := b.compiled[r]
	return made != nil && made.body != nil && made.body.kind != isNever
}

// compiler makes the rules of a grammar out of those of a Builder. Expressions that refer to rules are made anew: what a rule may
// begin with, and that it may be empty, is known only when all are there.
type compiler struct {
	from    *Builder
	t       *table
	budget  *Budget
	classes *partition
	order   []*Rule           // those that are reached
	uses    map[*Rule][]*Rule // the rules that each of them refers to
	users   map[*Rule][]*Rule // and those that refer to it
	ends    map[*Rule]bool    // whether texts of finite length follow it
	groups  [][]*Rule         // rules that refer to each other, after those that they refer to
	rules   map[*Rule]*Rule   // the new ones, by the old ones
}

// collect finds the rules that are reached.
func (c *compiler) collect(start *Rule) {
	c.uses, c.users, c.rules = map[*Rule][]*Rule{}, map[*Rule][]*Rule{}, map[*Rule]*Rule{}
	todo, known := []*Rule{start}, map[*Rule]bool{}
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if known[r] {
			continue
		}
		known[r] = true
		if r.body == nil {
			c.from.fail(fmt.Errorf("the rule %q is not defined", r.name))
			return
		}
		var uses []*Rule
		met := map[*Rule]bool{}
		c.order = append(c.order, r)
		r.body.parts(c.t.look(), func(e *Expr) bool {
			if c.budget.spend(1); e.kind == isRef && !met[e.rule] {
				met[e.rule] = true
				uses = append(uses, e.rule)
				c.users[e.rule] = append(c.users[e.rule], r)
			}
			return !c.budget.Spent()
		})
		c.uses[r], todo = uses, append(todo, uses...)
	}
}

// fixpoint repeats what changes a rule because of those that it refers to, until nothing changes.
func (c *compiler) fixpoint(change func(r *Rule) bool) {
	todo, waits := slices.Clone(c.order), map[*Rule]bool{}
	slices.Reverse(todo) // what is referred to tends to come later
	for _, r := range todo {
		waits[r] = true
	}
	for len(todo) > 0 && !c.budget.Spent() {
		r := todo[0]
		todo = todo[1:]
		if delete(waits, r); !change(r) {
			continue
		}
		for _, u := range c.users[r] {
			if !waits[u] {
				waits[u] = true
				todo = append(todo, u)
			}
		}
	}
}

// nullable finds the rules that match the empty text.
func (c *compiler) nullable() {
	c.fixpoint(func(r *Rule) bool {
		if r.nullable {
			return false
		}
		r.nullable = c.holds(empties, false)(r.body)
		return r.nullable
	})
}

// empties tells whether the empty text matches a leaf, as far as that is known of rules.
func empties(e *Expr) bool {
	return e.kind == isRef && e.rule.nullable || e.regular && e.nullable || e.kind == isMore && !e.requires()
}

// productive finds the rules that texts of finite length follow.
func (c *compiler) productive() {
	c.ends = map[*Rule]bool{}
	c.fixpoint(func(r *Rule) bool {
		if c.ends[r] {
			return false
		}
		var ends func(e *Expr) bool
		ends = c.holds(func(e *Expr) bool {
			switch e.kind {
			case isRef:
				return c.ends[e.rule]
			case isMembers, isMore:
				all, one := true, e.kind == isMore
				e.each(func(i int, m *Expr) {
					if i >= 0 && i < e.family.required {
						all = all && ends(m)
						one = true
					} else {
						one = one || ends(m)
					}
				})
				return all && one
			}
			return !c.from.IsNever(e)
		}, true)
		c.ends[r] = ends(r.body)
		return c.ends[r]
	})
}

// holds tells of expressions whether what is true of leaves, and of texts, is true of them: of both parts of a sequence, of one
// alternative. Of a repetition that may be empty everything is. Each expression is looked at once.
func (c *compiler) holds(leaf func(*Expr) bool, text bool) func(*Expr) bool {
	look := c.t.look()
	var is func(e *Expr) bool
	is = func(e *Expr) (yes bool) {
		members := e.kind == isMembers || e.kind == isMore
		if c.budget.spend(1); e.kind == isRef || e.regular && !members {
			return leaf(e)
		}
		if e.met(look) {
			return e.state.yes
		}
		switch e.kind {
		case isMembers, isMore: // leaf may ask for what is in them
			yes = leaf(e)
		case isText, isCat:
			at := e
			for yes = true; yes && (at.kind == isText || at.kind == isCat) && !at.regular; at = at.b {
				if at.kind == isText {
					yes = text
				} else {
					yes = is(at.a)
				}
			}
			yes = yes && is(at)
		case isOr:
			yes = slices.ContainsFunc(e.args, is)
		case isRepeat:
			yes = e.min == 0 || is(e.a)
		}
		e.state.yes = yes
		return yes
	}
	return is
}

// first finds the bytes that texts of rules begin with. Which rules may be empty is known.
func (c *compiler) first() {
	empty := c.holds(empties, false)
	c.fixpoint(func(r *Rule) bool {
		met := map[*Expr]bool{}
		s := r.first
		var begin func(e *Expr)
		begin = func(e *Expr) {
			switch c.budget.spend(1); {
			case e.regular, e.kind == isText:
				s = s.Or(e.first)
				return
			case e.kind == isRef:
				s = s.Or(e.rule.first)
				return
			case met[e]:
				return
			}
			met[e] = true
			switch e.kind {
			case isCat:
				for ; e.kind == isCat && !e.regular; e = e.b {
					if begin(e.a); !empty(e.a) {
						return
					}
				}
				begin(e)
			case isOr:
				for _, a := range e.args {
					begin(a)
				}
			case isRepeat:
				begin(e.a)
			case isMembers:
				e.each(func(_ int, m *Expr) { begin(m) })
			case isMore:
				begin(e.family.between)
			}
		}
		begin(r.body)
		changed := s != r.first
		r.first = s
		return changed
	})
}

// components groups rules that refer to each other, what they refer to first (Tarjan's algorithm).
func (c *compiler) components() {
	type visit struct {
		rule *Rule
		next int // of its uses
	}
	index, low, onStack := map[*Rule]int{}, map[*Rule]int{}, map[*Rule]bool{}
	var stack []*Rule
	var path []visit
	enter := func(r *Rule) {
		index[r] = len(index) + 1
		low[r] = index[r]
		stack, onStack[r] = append(stack, r), true
		path = append(path, visit{rule: r})
	}
	enter(c.order[0])
	for len(path) > 0 {
		v := &path[len(path)-1]
		r := v.rule
		if uses := c.uses[r]; v.next < len(uses) {
			o := uses[v.next]
			if v.next++; index[o] == 0 {
				enter(o)
			} else if onStack[o] {
				low[r] = min(low[r], index[o])
			}
			continue
		}
		if path = path[:len(path)-1]; len(path) > 0 {
			parent := path[len(path)-1].rule
			low[parent] = min(low[parent], low[r])
		}
		if low[r] != index[r] {
			continue
		}
		at := slices.Index(stack, r)
		group := slices.Clone(stack[at:])
		for _, o := range group {
			delete(onStack, o)
		}
		stack = stack[:at]
		c.groups = append(c.groups, group)
	}
}

// mostGroup bounds the work of digests of rules that refer to each other, which is the square of their number. Masks of larger
// groups are not shared with other grammars.
const mostGroup = 64

var unshared atomic.Uint64 // groups that have no digest

// translate makes new rules of those of a group.
func (c *compiler) translate(group []*Rule) {
	for _, r := range group {
		c.rules[r] = &Rule{name: r.name, nullable: r.nullable, first: r.first}
	}
	if r := group[0]; len(group) == 1 && !slices.Contains(c.uses[r], r) {
		n := c.rules[r]
		n.body = c.body(r)
		n.digest = digestOf(n.body.digest.append([]byte("rule")))
		n.inline = c.inlines(n.body)
		return
	}
	members := map[*Rule]bool{}
	for _, r := range group {
		members[r] = true
	}
	for _, r := range group {
		if n := c.rules[r]; len(group) > mostGroup {
			n.digest = digestOf(binary.LittleEndian.AppendUint64([]byte("unshared"), unshared.Add(1)))
		} else {
			n.digest = c.digest(r, members)
		}
	}
	for _, r := range group {
		c.rules[r].body = c.body(r)
	}
}

func (c *compiler) body(r *Rule) *Expr {
	if !c.ends[r] {
		return c.t.never
	}
	return c.expr(r.body)
}

// expr is an expression with references to the new rules, without what can never end.
func (c *compiler) expr(e *Expr) *Expr {
	if e.regular && !e.boolean {
		return e
	}
	if e.state.made != nil {
		return e.state.made
	}
	var n *Expr
	switch e.kind {
	case isText, isCat:
		var parts []*Expr
		at := e
		for ; at.kind == isText || at.kind == isCat; at = at.b {
			parts = append(parts, at)
		}
		n = c.expr(at)
		for _, p := range slices.Backward(parts) {
			if p.kind == isText {
				n = c.t.text(p.text, n)
			} else {
				n = c.t.cat(c.expr(p.a), n)
			}
		}
	case isOr:
		parts := make([]*Expr, len(e.args))
		for i, a := range e.args {
			parts[i] = c.expr(a)
		}
		n = c.t.or(parts...)
	case isRepeat:
		n = c.t.repeat(c.expr(e.a), int(e.min), maxOf(e.max))
	case isMembers, isMore:
		n = c.members(e)
	case isRef:
		switch r := c.rules[e.rule]; {
		case !c.ends[e.rule]:
			n = c.t.never
		case r.inline:
			n = r.body
		default:
			n = c.t.intern(content{kind: isRef, rule: r})
		}
	default:
		if n = e; !c.t.matched(e, c.classes, c.budget) {
			n = c.t.never
		}
	}
	c.budget.spend(1)
	e.state.made = n
	return n
}

// members is expr of members.
func (c *compiler) members(e *Expr) *Expr {
	between, others := c.expr(e.family.between), c.t.never
	var required, optional []*Expr
	e.each(func(i int, m *Expr) {
		n := c.expr(m)
		if n.nullable || between.nullable && between != c.t.empty {
			c.from.fail(fmt.Errorf("members in any order, and what is between them, must not be empty, as %s may be", n))
		}
		switch {
		case i < 0:
			others = n
		case i < e.family.required:
			required = append(required, n)
		default:
			optional = append(optional, n)
		}
	})
	f, all := c.t.newFamily(between, others, required, optional)
	if f == nil || e.kind == isMembers {
		return c.t.members(f, all)
	}
	return c.t.more(f, all)
}

// digest is that of a rule of a group, which is the same for the same rules of another grammar.
func (c *compiler) digest(r *Rule, members map[*Rule]bool) digest {
	var out []byte
	numbers := map[*Rule]int{r: 0}
	met := map[*Expr]int{}
	todo := []*Rule{r}
	number := func(n int) { out = binary.LittleEndian.AppendUint32(out, uint32(n)) }
	var write func(e *Expr)
	write = func(e *Expr) {
		for {
			c.budget.spend(1)
			if e.regular {
				out = e.digest.append(append(out, 'e'))
				return
			}
			if n, ok := met[e]; ok {
				out = append(out, 'm')
				number(n)
				return
			}
			met[e] = len(met)
			out = append(out, 'A'+byte(e.kind))
			if e.kind == isText {
				number(len(e.text))
				out = append(out, e.text...)
			} else if e.kind == isCat {
				write(e.a)
			} else {
				break
			}
			e = e.b
		}
		switch e.kind {
		case isOr:
			number(len(e.args))
			for _, a := range e.args {
				write(a)
			}
		case isRepeat:
			number(int(e.min))
			number(int(e.max))
			write(e.a)
		case isMembers, isMore:
			number(e.family.required)
			number(len(e.family.list))
			e.each(func(i int, m *Expr) {
				number(i)
				write(m)
			})
			write(e.family.between)
		case isRef:
			if !members[e.rule] {
				out = c.rules[e.rule].digest.append(append(out, 'r'))
				return
			}
			n, ok := numbers[e.rule]
			if !ok {
				n = len(numbers)
				numbers[e.rule], todo = n, append(todo, e.rule)
			}
			out = append(out, 'n')
			number(n)
		}
	}
	for i := 0; i < len(todo); i++ {
		out = append(out, 'b')
		write(todo[i].body)
	}
	return digestOf(out)
}

const (
	mostInline  = 64      // expressions of a rule that is put in the place of references to it
	mostInlined = 1 << 12 // steps to find that out
)

// inlines tells whether a rule is better put in the place of references to it: one that may go on where it may end. Whether a
// token fits there depends on what follows, and that is known at once where it is in the same rule.
func (c *compiler) inlines(body *Expr) bool {
	if !body.regular {
		return false
	}
	n := 0
	if !body.parts(c.t.look(), func(e *Expr) bool { n += 1 + len(e.text); return n <= mostInline }) {
		return false
	}
	u := &Budget{mostInlined}
	longer := c.t.and(body, c.t.cat(body, c.t.repeat(c.t.class(allBytes), 1, -1)))
	goesOn := longer != c.t.never && (!longer.boolean || c.t.matched(longer, c.classes, u))
	c.budget.spend(mostInlined - u.left)
	return goesOn && !u.Spent()
}
