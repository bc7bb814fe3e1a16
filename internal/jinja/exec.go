package jinja

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// scope is a level of variables. Loops, macros, with and set blocks open one; if does not, as in Jinja.
// Variables are numbered by the parser. The nil scope is the template's top level, which is renderer.top; the others are
// small and are searched from their first variable on.
type scope struct {
	vars []binding
	up   *scope
}

type binding struct {
	sym int
	val Value
}

// variable is one of the top level.
type variable struct {
	val Value
	set bool
}

func (r *renderer) get(sym int, s *scope) (Value, bool) {
	for far := 0; s != nil; s = s.up {
		for i := range s.vars {
			if s.vars[i].sym == sym {
				return s.vars[i].val, true
			}
		}
		if far += 1 + len(s.vars); far >= 16 {
			r.steps -= far >> 4 // the next step looks whether they are spent
			far &= 15
		}
	}
	v := r.top[sym]
	return v.val, v.set
}

func (r *renderer) set(sym int, v Value, s *scope) {
	if s == nil {
		r.top[sym] = variable{v, true}
		return
	}
	r.steps -= len(s.vars) >> 4
	s.set(sym, v)
}

func (s *scope) set(sym int, v Value) {
	for i := range s.vars {
		if s.vars[i].sym == sym {
			s.vars[i].val = v
			return
		}
	}
	s.vars = append(s.vars, binding{sym, v})
}

// has tells whether the scope itself has the variable.
func (s *scope) has(sym int) bool {
	return slices.ContainsFunc(s.vars, func(b binding) bool { return b.sym == sym })
}

// renderer is the state of one Render.
type renderer struct {
	ctx    context.Context
	limits Limits
	now    func() time.Time
	out    *strings.Builder
	main   *strings.Builder // out, but where output is captured
	spans  *[]Span          // wanted, or nil
	top    []variable
	parts  []string // of the sums being made
	tails  [4]*tail // of long texts made last, the oldest at
	oldest int
	depth  int // macro calls, recursive loops and lazy sequences we are in
	line   int // of the node being worked on

	steps int // left
	check int // look at the context when fewer steps are left than this
}

// control says how a list of statements ended.
type control uint8

const (
	done control = iota
	broke
	continued
)

func (r *renderer) throw(kind Kind, format string, args ...any) {
	panic(&Error{Kind: kind, Line: r.line, Msg: fmt.Sprintf(format, args...)})
}

func (r *renderer) fail(format string, args ...any) { r.throw(Runtime, format, args...) }

// failUndefined is the error of using an undefined value for anything but printing, testing and looping.
func (r *renderer) failUndefined(u undefined) { r.throw(Runtime, "%s", u.msg) }

// mustExist fails for an undefined value.
func (r *renderer) mustExist(vs ...Value) {
	for _, v := range vs {
		if u, ok := v.(undefined); ok {
			r.failUndefined(u)
		}
	}
}

// integer is an argument that must be an int or bool which fits int64.
func (r *renderer) integer(v Value) int64 {
	n, ok := asInt(v)
	if !ok {
		r.mustExist(v)
		r.fail("'%s' object cannot be interpreted as an integer", typeName(v))
	}
	return n
}

// stepsPerCheck is how many steps go by between two looks at the context.
const stepsPerCheck = 1024

// step counts a unit of work. What an operation does to the bytes and items that it is given is counted by made, scanned and
// walked, before it is done.
func (r *renderer) step() { r.spend(1) }

func (r *renderer) spend(n int) {
	if r.steps -= n; r.steps < r.check {
		r.checkpoint()
	}
}

func (r *renderer) checkpoint() {
	if r.steps < 0 {
		r.throw(Limit, "template does more than %d steps of work", r.limits.Steps)
	}
	r.look()
	r.check = max(r.steps-stepsPerCheck, 0)
}

// look looks at the context, in the middle of work that was counted all at once.
func (r *renderer) look() {
	if err := r.ctx.Err(); err != nil {
		panic(gone{err})
	}
}

// checkSize refuses strings and lists over the output limit; n is in bytes.
func (r *renderer) checkSize(n int) {
	if n > r.limits.Output {
		r.throw(Limit, "text over %d bytes", r.limits.Output)
	}
}

// made accounts for a string or list of n bytes that is made or copied.
func (r *renderer) made(n int) {
	r.checkSize(n)
	r.spend(n >> 5)
}

// scanned accounts for n bytes that are searched or compared many at a time.
func (r *renderer) scanned(n int) {
	if n >= 1<<7 {
		r.spend(n >> 7)
	}
}

// walked accounts for n bytes of text that are looked at rune by rune.
func (r *renderer) walked(n int) { r.spend(n >> 4) }

// mapped accounts for n bytes of text of which another text is made rune by rune.
func (r *renderer) mapped(n int) {
	r.checkSize(n)
	r.spend(n >> 3)
}

func (r *renderer) descend() {
	if r.depth++; r.depth > r.limits.Depth {
		r.throw(Limit, "nested deeper than %d calls", r.limits.Depth)
	}
}

func (r *renderer) write(s string) {
	r.checkSize(r.out.Len() + len(s))
	if len(s) >= 1<<5 {
		r.spend(len(s) >> 5)
	}
	r.out.WriteString(s)
}

// capture runs f with the output going into a string.
func (r *renderer) capture(f func()) string {
	outer := r.out
	r.out = new(strings.Builder)
	f()
	s := r.out.String()
	r.out = outer
	return s
}

func (r *renderer) exec(body []node, s *scope) control {
	for _, n := range body {
		r.line = n.nodeLine()
		r.step()
		if c := r.execNode(n, s); c != done {
			return c
		}
	}
	return done
}

func (r *renderer) execNode(n node, s *scope) control {
	switch n := n.(type) {
	case *textNode:
		r.write(n.text)
	case *outputNode:
		r.output(n.value, s)
	case *ifNode:
		for i, c := range n.conds {
			if truth(r.eval(c, s)) {
				return r.exec(n.bodies[i], s)
			}
		}
		return r.exec(n.orElse, s)
	case *forNode:
		r.loop(n, r.eval(n.iter, s), s, 0)
	case *setNode:
		r.assign(&n.target, r.eval(n.value, s), s)
	case *setBlockNode:
		text := r.capture(func() { r.exec(n.body, &scope{up: s}) })
		r.assign(&n.target, r.applyFilters(n.filters, text, s), s)
	case *filterBlockNode:
		text := r.capture(func() { r.exec(n.body, &scope{up: s}) })
		r.write(r.str(r.applyFilters(n.filters, text, s)))
	case *macroNode:
		r.set(n.sym, &macro{n, s}, s)
	case *callNode:
		a := *r.args(&n.call.args, s)
		a.set("caller", &macro{n.caller, s})
		r.write(r.str(r.call(r.eval(n.call.fn, s), &a)))
	case *scopeNode:
		return r.exec(n.body, &scope{up: s})
	case *withNode:
		inner := &scope{up: s}
		for i := range n.targets {
			r.assign(&n.targets[i], r.eval(n.values[i], s), inner)
		}
		return r.exec(n.body, inner)
	case *breakNode:
		return broke
	case *continueNode:
		return continued
	}
	return done
}

// output writes what an expression prints; sums of strings without making one of them.
func (r *renderer) output(e expr, s *scope) {
	sum, ok := e.(*sumExpr)
	if !ok {
		v := r.eval(e, s)
		if text, ok := v.(string); ok {
			r.write(text)
			return
		}
		r.write(r.str(v))
		return
	}
	base := len(r.parts)
	if v := r.sum(sum, s); v != nil {
		r.write(r.str(v))
	} else {
		for _, p := range r.parts[base:] {
			r.write(p)
		}
	}
	r.parts = r.parts[:base]
}

func (r *renderer) applyFilters(fs []*filterExpr, v Value, s *scope) Value {
	for _, f := range fs {
		v = r.evalFilter(f, v, s)
	}
	return v
}

func (r *renderer) assign(t *target, v Value, s *scope) {
	switch {
	case t.isTuple:
		items := r.iterate(v)
		if len(items) != len(t.tuple) {
			r.fail("cannot unpack %d values into %d names", len(items), len(t.tuple))
		}
		for i := range items {
			r.step()
			r.assign(&t.tuple[i], items[i], s)
		}
	case t.attr != "":
		o, _ := r.get(t.sym, s)
		ns, ok := o.(*namespace)
		if !ok {
			r.fail("cannot assign attribute on non-namespace object")
		}
		if strings.HasPrefix(t.attr, "_") {
			r.fail("cannot store the attribute '%s' on a namespace: names that begin with an underscore are refused", t.attr)
		}
		r.scanned(len(t.attr))
		ns.attrs.Set(t.attr, v)
	default:
		r.set(t.sym, v, s)
	}
}

// loopState is the loop variable.
type loopState struct {
	r       *renderer
	node    *forNode
	scope   *scope // the loop was entered from
	items   []Value
	index   int // 0-based
	depth   int // of a recursive loop, 0-based
	changed Tuple
	seen    bool // changed has a value
}

func (r *renderer) loop(n *forNode, over Value, s *scope, depth int) {
	items := r.iterate(over)
	if n.filter != nil {
		items = r.filterItems(n, items, s)
	}
	if len(items) == 0 {
		r.exec(n.orElse, &scope{up: s})
		return
	}
	l := &loopState{r: r, node: n, scope: s, items: items, depth: depth}
	var inner *scope
	for i, item := range items {
		r.step()
		l.index = i
		if inner == nil || n.captured {
			inner = &scope{vars: make([]binding, 0, 4), up: s}
		}
		inner.vars = inner.vars[:0]
		r.assign(&n.target, item, inner)
		inner.set(symLoop, l)
		from := r.out.Len()
		c := r.exec(n.body, inner)
		if r.spans != nil {
			r.note(item, from)
		}
		if c == broke {
			return
		}
	}
}

// note records what a pass of a loop has written, if it was over a tagged dict.
func (r *renderer) note(item Value, from int) {
	if d, ok := item.(*Dict); ok && d.Tag != 0 && r.out == r.main && r.out.Len() > from {
		*r.spans = append(*r.spans, Span{d.Tag, from, r.out.Len()})
	}
}

func (r *renderer) filterItems(n *forNode, items []Value, s *scope) []Value {
	var kept []Value
	for _, item := range items {
		r.spend(2)
		inner := &scope{up: s}
		r.assign(&n.target, item, inner)
		if truth(r.eval(n.filter, inner)) {
			kept = append(kept, item)
		}
	}
	return kept
}

// recurse renders the loop's body over other items: loop(children).
func (l *loopState) recurse(over Value) Value {
	r := l.r
	if !l.node.recursive {
		r.fail("the loop must have the 'recursive' marker to be called recursively")
	}
	r.descend()
	defer func() { r.depth-- }()
	return r.capture(func() { r.loop(l.node, over, l.scope, l.depth+1) })
}

func (l *loopState) attr(name string) (Value, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.index + 1), true
	case "index0":
		return int64(l.index), true
	case "revindex":
		return int64(n - l.index), true
	case "revindex0":
		return int64(n - l.index - 1), true
	case "first":
		return l.index == 0, true
	case "last":
		return l.index == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(l.depth + 1), true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		if l.index == 0 {
			return undefined{"there is no previous item"}, true
		}
		return l.items[l.index-1], true
	case "nextitem":
		if l.index == n-1 {
			return undefined{"there is no next item"}, true
		}
		return l.items[l.index+1], true
	case "cycle":
		return &function{"cycle", func(r *renderer, a *args) Value {
			if len(a.pos) == 0 {
				r.fail("no items for cycling given")
			}
			return a.pos[l.index%len(a.pos)]
		}}, true
	case "changed":
		return &function{"changed", func(r *renderer, a *args) Value {
			changed := !l.seen || !r.equal(l.changed, Tuple(a.pos), 0)
			l.changed, l.seen = a.pos, true
			return changed
		}}, true
	}
	return nil, false
}

// macro is a macro or the body of a call block, with the scope it was defined in.
type macro struct {
	def   *macroNode
	scope *scope
}

func (m *macro) call(r *renderer, a *args) Value {
	r.descend()
	defer func() { r.depth-- }()
	d := m.def
	r.spend(4 + len(d.params)*len(d.params)>>5 + len(a.named)*len(d.params)>>5)
	inner := &scope{vars: make([]binding, 0, len(d.params)+1), up: m.scope}
	extra := a.pos[min(len(d.params), len(a.pos)):]
	if len(extra) > 0 && !d.usesVarargs {
		r.fail("macro '%s' takes not more than %d argument(s)", d.name, len(d.params))
	}
	if d.usesVarargs {
		inner.set(symVarargs, Tuple(extra))
	}
	m.bindKeywords(r, a, inner)
	for i, p := range d.syms {
		if i < len(a.pos) {
			inner.set(p, a.pos[i])
		} else if !inner.has(p) {
			inner.set(p, m.missing(r, i, inner))
		}
	}
	return r.capture(func() { r.exec(d.body, inner) })
}

// bindKeywords sets the parameters given by name, and caller and kwargs where the body mentions them.
func (m *macro) bindKeywords(r *renderer, a *args, inner *scope) {
	d := m.def
	var rest *Dict
	if d.usesKwargs {
		rest = NewDict()
		inner.set(symKwargs, rest)
	}
	if d.usesCaller {
		inner.set(symCaller, undefined{"No caller defined"})
	}
	for _, k := range a.named {
		i := slices.Index(d.params, k.name)
		switch {
		case i >= 0 && i >= len(a.pos):
			inner.set(d.syms[i], k.val)
		case i < 0 && k.name == "caller" && d.usesCaller:
			inner.set(symCaller, k.val)
		case rest != nil:
			rest.Set(k.name, k.val)
		default:
			r.fail("macro '%s' takes no keyword argument '%s'", d.name, k.name)
		}
	}
}

// missing is the value of a parameter that a call leaves out. Defaults see the parameters before them.
func (m *macro) missing(r *renderer, i int, inner *scope) Value {
	d := m.def
	if first := len(d.params) - len(d.defaults); i >= first {
		return r.eval(d.defaults[i-first], inner)
	}
	return undefined{fmt.Sprintf("parameter '%s' was not provided", d.params[i])}
}
