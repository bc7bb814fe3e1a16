package jinja

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// function is a callable: a method bound to its object or a global.
type function struct {
	name string
	call func(r *renderer, a *args) Value
}

// args are a call's arguments, keyword ones in the order they were written.
type args struct {
	pos   []Value
	named []namedArg
}

// noArgs are those of a call without any. Nobody may add to them.
var noArgs = new(args)

type namedArg struct {
	name string
	val  Value
}

func (a *args) set(name string, v Value) { a.named = append(a.named, namedArg{name, v}) }

// get returns argument i, known to keyword callers by name, or def.
func (a *args) get(i int, name string, def Value) Value {
	if i >= 0 && i < len(a.pos) {
		return a.pos[i]
	}
	for _, k := range a.named {
		if k.name == name {
			return k.val
		}
	}
	return def
}

// need is get for an argument that must be there.
func (a *args) need(r *renderer, i int, name string) Value {
	v := a.get(i, name, r)
	if v == Value(r) {
		r.fail("missing argument '%s'", name)
	}
	return v
}

// atMost refuses more than n positional arguments and keywords other than names.
func (a *args) atMost(r *renderer, n int, names ...string) {
	if len(a.pos) > n {
		r.fail("takes at most %d argument(s), got %d", n, len(a.pos))
	}
	for _, k := range a.named {
		known := false
		for i, name := range names {
			known = known || name == k.name && i >= len(a.pos)
		}
		if !known {
			r.fail("got an unexpected keyword argument '%s'", k.name)
		}
	}
}

func (r *renderer) eval(e expr, s *scope) Value {
	r.step()
	switch e := e.(type) {
	case *constExpr:
		return e.value
	case *nameExpr:
		if v, ok := r.get(e.sym, s); ok {
			return v
		}
		return e.missing
	case *listExpr:
		items := r.evalAll(e.items, s)
		if e.tuple {
			return Tuple(items)
		}
		return &List{items}
	case *dictExpr:
		d := NewDict()
		r.step()
		for i := range e.keys {
			k := r.eval(e.keys[i], s)
			r.setKey(d, k, r.eval(e.values[i], s))
		}
		return d
	case *attrExpr:
		o := r.eval(e.obj, s)
		r.line = e.exprLine()
		return r.member(o, &e.member)
	case *itemExpr:
		o := r.eval(e.obj, s)
		if d, ok := o.(*Dict); ok && e.member != nil {
			r.scanned(len(e.name))
			if i := d.findText(e.name); i >= 0 || !e.own {
				return d.valueAt(i, e.missing)
			}
		}
		if sl, ok := e.key.(*sliceExpr); ok {
			return r.slice(o, sl, s)
		}
		k := r.eval(e.key, s)
		r.line = e.exprLine()
		return r.item(o, k)
	case *callExpr:
		return r.evalCall(e, s)
	case *filterExpr:
		return r.evalFilter(e, r.eval(e.obj, s), s)
	case *testExpr:
		v := r.eval(e.obj, s)
		a := r.args(&e.args, s)
		r.line = e.exprLine()
		return e.fn(r, v, a)
	}
	return r.evalOperator(e, s)
}

// member is obj.name, where the parser has looked name up beforehand.
func (r *renderer) member(o Value, m *member) Value {
	if d, ok := o.(*Dict); ok && !m.own {
		r.scanned(len(m.name))
		return d.valueAt(d.findText(m.name), m.missing)
	}
	return r.attr(o, m.name)
}

// evalCall calls the common methods without making an object of them first.
func (r *renderer) evalCall(e *callExpr, s *scope) Value {
	var fn Value
	if at, ok := e.fn.(*attrExpr); ok {
		r.step()
		o := r.eval(at.obj, s)
		r.line = e.exprLine()
		switch x := o.(type) {
		case string:
			if at.ofString != nil {
				a := r.args(&e.args, s)
				r.line = e.exprLine()
				return at.ofString(r, x, a)
			}
		case *Dict:
			if at.ofDict != nil {
				a := r.args(&e.args, s)
				r.line = e.exprLine()
				return at.ofDict(r, x, a)
			}
		}
		fn = r.member(o, &at.member)
	} else {
		fn = r.eval(e.fn, s)
	}
	a := r.args(&e.args, s)
	r.line = e.exprLine()
	return r.call(fn, a)
}

func (r *renderer) evalFilter(e *filterExpr, v Value, s *scope) Value {
	a := r.args(&e.args, s)
	r.line = e.exprLine()
	return e.fn(r, v, a)
}

func (r *renderer) evalOperator(e expr, s *scope) Value {
	switch e := e.(type) {
	case *logicExpr:
		if a := r.eval(e.a, s); truth(a) != e.and {
			return a
		}
		return r.eval(e.b, s)
	case *condExpr:
		switch {
		case truth(r.eval(e.cond, s)):
			return r.eval(e.then, s)
		case e.orElse == nil:
			return undefined{"the inline if-expression evaluated to false and no else section was defined"}
		}
		return r.eval(e.orElse, s)
	case *unaryExpr:
		a := r.eval(e.a, s)
		if e.op == '!' {
			return !truth(a)
		}
		r.line = e.exprLine()
		return r.sign(e.op, a)
	case *binExpr:
		a := r.eval(e.a, s)
		b := r.eval(e.b, s)
		r.line = e.exprLine()
		return r.binary(e.op, a, b)
	case *sumExpr:
		base := len(r.parts)
		v := r.sum(e, s)
		if v == nil {
			v = r.concat(r.parts[base:])
		}
		r.parts = r.parts[:base]
		return v
	case *concatExpr:
		base := len(r.parts)
		for _, item := range e.items {
			text := r.str(r.eval(item, s))
			r.parts = append(r.parts, text)
		}
		out := r.concat(r.parts[base:])
		r.parts = r.parts[:base]
		return out
	case *compareExpr:
		a := r.eval(e.first, s)
		for i, op := range e.ops {
			b := r.eval(e.rest[i], s)
			r.line = e.exprLine()
			if !r.compare(op, a, b) {
				return false
			}
			a = b
		}
		return true
	case *sliceExpr:
		r.line = e.exprLine()
		r.fail("a slice cannot be part of a tuple of subscripts")
	}
	panic(fmt.Sprintf("jinja: unknown expression %T", e))
}

// sum adds a chain up. As long as all are plain strings they are only collected: v is then nil, and the caller finds them
// at the end of r.parts, joins or writes them, and takes them off.
func (r *renderer) sum(e *sumExpr, s *scope) (v Value) {
	base := len(r.parts)
	for i, item := range e.items {
		x := r.eval(item, s)
		r.line = e.exprLine()
		text, isText := x.(string)
		switch {
		case v != nil:
			v = r.binary("+", v, x)
		case isText:
			r.parts = append(r.parts, text)
		case i == 0 && x != nil:
			v = x
		case i == 0: // None takes part in no addition
			v = r.binary("+", nil, r.eval(e.items[1], s))
		default:
			v = r.binary("+", r.concat(r.parts[base:]), x)
		}
	}
	return v
}

func (r *renderer) evalAll(es []expr, s *scope) []Value {
	vs := make([]Value, len(es))
	for i, e := range es {
		vs[i] = r.eval(e, s)
	}
	return vs
}

// hash is the hash of a key.
func (r *renderer) hash(k Value) any {
	h, ok := hashKey(k, maxValueDepth)
	if !ok {
		r.fail("unhashable type: '%s'", typeName(k))
	}
	r.hashed(h)
	return h
}

// hashed accounts for the work of hashing a key and looking it up.
func (r *renderer) hashed(h any) {
	switch h := h.(type) {
	case string:
		r.walked(len(h)) // a small dict may have ten more of that length
	case tupleHash:
		r.spend(len(h))
	case bigHash:
		r.spend(len(h))
	}
}

// entrySteps is what an entry takes in a dict: its memory and that of the index.
const entrySteps = 4

func (r *renderer) setKey(d *Dict, k, v Value) {
	r.spend(entrySteps)
	d.set(k, r.hash(k), v)
}

func (r *renderer) args(e *argExprs, s *scope) *args {
	if len(e.list)+len(e.names) == 0 && e.star == nil && e.star2 == nil {
		return noArgs
	}
	room := new(struct {
		args
		pos [2]Value
	})
	a := &room.args
	a.pos = room.pos[:0]
	for _, x := range e.list {
		a.pos = append(a.pos, r.eval(x, s))
	}
	for i, name := range e.names {
		a.set(name, r.eval(e.values[i], s))
	}
	if e.star != nil {
		more := r.iterate(r.eval(e.star, s))
		r.made(16 * len(more))
		a.pos = append(a.pos, more...)
	}
	if e.star2 != nil {
		d, ok := r.eval(e.star2, s).(*Dict)
		if !ok {
			r.fail("argument after ** must be a mapping")
		}
		for _, en := range d.entries {
			r.spend(2)
			k, ok := asString(en.key)
			if !ok {
				r.fail("keywords must be strings")
			}
			a.set(k, en.val)
		}
	}
	return a
}

func (r *renderer) call(fn Value, a *args) Value {
	switch fn := fn.(type) {
	case *function:
		return fn.call(r, a)
	case *macro:
		return fn.call(r, a)
	case *loopState:
		a.atMost(r, 1, "iterable")
		return fn.recurse(a.need(r, 0, "iterable"))
	case undefined:
		r.failUndefined(fn)
	}
	r.fail("'%s' object is not callable", typeName(fn))
	return nil
}

// letters are the strings of the bytes that stand for a rune, as values.
var letters = func() (out [utf8.RuneSelf]Value) {
	for c := range out {
		out[c] = string(rune(c))
	}
	return out
}()

// iterate returns what a loop over v sees, which the caller does not change. A generator is used up by it. What is done with
// the items is for the caller to account for.
func (r *renderer) iterate(v Value) []Value {
	if items, ok := sequence(v); ok {
		return items
	}
	switch x := v.(type) {
	case *Dict:
		r.made(16 * x.Len())
		return x.keys()
	case view:
		return x.items
	case undefined:
		return nil
	case string, Markup:
		s, _ := asString(x)
		r.scanned(len(s))
		n := utf8.RuneCountInString(s)
		r.spend(n >> 1)
		items := make([]Value, 0, n)
		for _, c := range s {
			r.step()
			if c < utf8.RuneSelf {
				items = append(items, letters[c])
			} else {
				items = append(items, string(c))
			}
		}
		return items
	case rangeValue:
		r.spend(int(x.len()))
		items := make([]Value, x.len())
		for i := range items {
			items[i] = x.start + int64(i)*x.step
		}
		return items
	case *generator:
		r.descend()
		defer func() { r.depth-- }()
		var items []Value
		for v, ok := x.next(); ok; v, ok = x.next() {
			r.step()
			items = append(items, v)
		}
		return items
	}
	r.fail("'%s' object is not iterable", typeName(v))
	return nil
}

func (d *Dict) keys() []Value {
	ks := make([]Value, len(d.entries))
	for i := range d.entries {
		ks[i] = d.entries[i].key
	}
	return ks
}

// item is obj[key]: the item, else the attribute of that name, else undefined.
func (r *renderer) item(o, k Value) Value {
	switch x := o.(type) {
	case *Dict:
		if h, ok := hashKey(k, maxValueDepth); ok {
			r.hashed(h)
			if i := x.find(h); i >= 0 {
				return x.entries[i].val
			}
		}
	case *List, Tuple:
		items, _ := sequence(x)
		if i, ok := index(k, int64(len(items))); ok {
			return items[i]
		}
	case string, Markup:
		if s, _ := asString(x); isInt(k) {
			r.walked(len(s))
			if v, ok := runeAt(s, k); ok {
				return v
			}
		}
	case rangeValue:
		if i, ok := index(k, x.len()); ok {
			return x.start + i*x.step
		}
	case undefined:
		r.failUndefined(x)
	}
	name, ok := asString(k)
	if !ok {
		what := typeName(k)
		if i, isInt := k.(int64); isInt {
			what = r.repr(i)
		}
		return undefined{objectName(o) + " has no element " + what}
	}
	r.made(len(name))
	if v, ok := r.method(o, name); ok {
		return v
	}
	r.step() // its message
	return missingAttr(o, name)
}

func isInt(v Value) bool {
	_, ok := asInt(v)
	return ok
}

// index resolves a possibly negative index into n items.
func index(k Value, n int64) (int64, bool) {
	i, ok := asInt(k)
	if i < 0 {
		i += n
	}
	return i, ok && i >= 0 && i < n
}

func runeAt(s string, k Value) (Value, bool) {
	i, ok := index(k, int64(utf8.RuneCountInString(s)))
	if !ok {
		return nil, false
	}
	for _, c := range s {
		if i == 0 {
			return string(c), true
		}
		i--
	}
	return nil, false
}

// attr is obj.name: the attribute, else the item of that name, else undefined. So a dict's methods win over its keys.
func (r *renderer) attr(o Value, name string) Value {
	r.mustExist(o)
	r.made(len(name))
	if v, ok := r.method(o, name); ok {
		return v
	}
	if d, ok := o.(*Dict); ok {
		if i := d.findText(name); i >= 0 {
			return d.entries[i].val
		}
	}
	return missingAttr(o, name)
}

func missingAttr(o Value, name string) undefined {
	return undefined{"'" + objectName(o) + "' has no attribute '" + name + "'"}
}

// objectName is how the reference names an object in errors.
func objectName(o Value) string {
	switch o.(type) {
	case nil:
		return "None"
	case *namespace:
		return "jinja2.utils.Namespace object"
	}
	return typeName(o) + " object"
}

// slice is obj[start:stop:step].
func (r *renderer) slice(o Value, e *sliceExpr, s *scope) Value {
	var bounds [3]*int64
	for i, b := range []expr{e.start, e.stop, e.step} {
		if b == nil {
			continue
		}
		v := r.eval(b, s)
		if v == nil {
			continue
		}
		n, ok := asInt(v)
		if !ok {
			r.mustExist(v)
			return undefined{"slice indices must be integers or None"}
		}
		bounds[i] = &n
	}
	r.line = e.exprLine()
	if bounds[2] != nil && *bounds[2] == 0 {
		r.fail("slice step cannot be zero")
	}
	switch x := o.(type) {
	case string, Markup:
		text, _ := asString(x)
		return like(x, r.sliceText(text, bounds))
	case *List, Tuple:
		items, _ := sequence(x)
		n := countIndices(len(items), bounds)
		r.made(16 * n)
		out := make([]Value, 0, n)
		eachIndex(len(items), bounds, func(i int) { out = append(out, items[i]) })
		if _, ok := x.(Tuple); ok {
			return Tuple(out)
		}
		return &List{out}
	case rangeValue:
		n := countIndices(int(x.len()), bounds)
		r.spend(n)
		out := make([]Value, 0, n)
		eachIndex(int(x.len()), bounds, func(i int) { out = append(out, x.start+int64(i)*x.step) })
		return &List{out}
	case undefined:
		r.failUndefined(x)
	}
	return undefined{objectName(o) + " cannot be sliced"}
}

// sliceText is slice for a text. What has only ASCII is cut without a copy.
func (r *renderer) sliceText(text string, bounds [3]*int64) string {
	r.scanned(len(text))
	lo, hi, step := resolve(len(text), bounds)
	if step == 1 && isASCII(text) {
		return text[lo:max(lo, hi)]
	}
	r.spend(len(text) >> 2)
	runes := []rune(text)
	var b strings.Builder
	eachIndex(len(runes), bounds, func(i int) {
		if i%(1<<16) == 0 {
			r.look()
		}
		b.WriteRune(runes[i])
	})
	return b.String()
}

// countIndices is how many indices eachIndex gives.
func countIndices(n int, bounds [3]*int64) int {
	lo, hi, step := resolve(n, bounds)
	return int(rangeValue{lo, hi, step}.len())
}

// eachIndex calls f with every index that the slice bounds select from n items, as Python counts them.
func eachIndex(n int, bounds [3]*int64, f func(int)) {
	lo, _, step := resolve(n, bounds)
	for i := range countIndices(n, bounds) {
		f(int(lo + int64(i)*step))
	}
}

// resolve gives the bounds of a slice of n items as those of a range.
func resolve(n int, bounds [3]*int64) (lo, hi, step int64) {
	step = 1
	if bounds[2] != nil {
		step = *bounds[2]
	}
	first, last := int64(0), int64(n) // of valid bounds: for a negative step both one lower
	lo, hi = first, last
	if step < 0 {
		first, last = -1, int64(n)-1
		lo, hi = last, first
	}
	clamp := func(p *int64, def int64) int64 {
		if p == nil {
			return def
		}
		v := *p
		if v < 0 {
			v += int64(n)
		}
		return min(max(v, first), last)
	}
	return clamp(bounds[0], lo), clamp(bounds[1], hi), step
}
