package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// attrGetter returns a function that looks up a path such as "function.name" or "0.id".
func (r *renderer) attrGetter(path Value) func(Value) Value {
	var parts []Value
	switch s, isText := asString(path); {
	case path == nil:
	case isText:
		n := strings.Count(s, ".") + 1
		r.made(64 * n) // a value each, and what it holds
		r.walked(len(s))
		parts = make([]Value, 0, n)
		for p := range strings.SplitSeq(s, ".") {
			if p != "" && isDecimal(p[0]) {
				if i, err := strconv.ParseInt(p, 10, 64); err == nil {
					parts = append(parts, i)
					continue
				}
			}
			parts = append(parts, p)
		}
	default:
		parts = []Value{path}
	}
	return func(v Value) Value {
		for _, p := range parts {
			r.step()
			v = r.item(v, p)
		}
		return v
	}
}

// getterOr is attrGetter with a value for what is missing, nil for none.
func (r *renderer) getterOr(path, def Value) func(Value) Value {
	get := r.attrGetter(path)
	return func(v Value) Value {
		x := get(v)
		if _, missing := x.(undefined); missing && def != nil {
			return def
		}
		return x
	}
}

// foldCase is the key that sorting and grouping compare by: text ignores case unless asked not to.
func (r *renderer) foldCase(v Value, caseSensitive bool) Value {
	if s, ok := asString(v); ok && !caseSensitive {
		return r.mapText(s, strings.ToLower)
	}
	return v
}

func firstFilter(r *renderer, v Value, _ *args) Value {
	if g, ok := v.(*generator); ok {
		if x, ok := g.next(); ok {
			return x
		}
	} else if items := r.iterate(v); len(items) > 0 {
		return items[0]
	}
	return undefined{"No first item, sequence was empty."}
}

func lastFilter(r *renderer, v Value, _ *args) Value {
	if _, ok := v.(*generator); ok {
		r.fail("'%s' object is not reversible", typeName(v))
	}
	if items := r.iterate(v); len(items) > 0 {
		return items[len(items)-1]
	}
	return undefined{"No last item, sequence was empty."}
}

func itemsFilter(r *renderer, v Value, _ *args) Value {
	switch x := v.(type) {
	case *Dict:
		return sliceGenerator("generator", r.pairs(x))
	case undefined:
		return sliceGenerator("generator", nil)
	}
	return &generator{"generator", func() (Value, bool) { // it fails where it is read, not here
		r.fail("Can only get item pairs from a mapping.")
		return nil, false
	}}
}

func reverseFilter(r *renderer, v Value, _ *args) Value {
	if s, ok := asString(v); ok {
		r.mapped(len(s))
		runes := []rune(s)
		slices.Reverse(runes)
		return like(v, string(runes))
	}
	items := r.iterate(v)
	r.made(16 * len(items))
	items = slices.Clone(items)
	slices.Reverse(items)
	if _, ok := v.(*generator); ok {
		return &List{items}
	}
	return sliceGenerator(typeName(v)+"_reverseiterator", items)
}

func joinFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 2, "d", "attribute")
	get := r.attrGetter(a.get(1, "attribute", nil))
	items := r.iterate(v)
	r.made(16 * len(items))
	parts := make([]string, len(items))
	size := 0
	for i, e := range items {
		r.step()
		parts[i] = r.str(get(e))
		size += len(parts[i])
		r.checkSize(size)
	}
	return r.joinStrings(parts, r.str(a.get(0, "d", "")))
}

// mapFilter is lazy like the reference's: a value that cannot be iterated over, or is false, only matters when read.
func mapFilter(r *renderer, v Value, a *args) Value {
	var f func(Value) Value
	if path := a.get(-1, "attribute", nil); len(a.pos) == 0 && path != nil {
		a.atMost(r, 0, "attribute", "default")
		f = r.getterOr(path, a.get(-1, "default", nil))
	} else {
		if len(a.pos) == 0 {
			r.fail("map requires a filter argument")
		}
		each, rest := filterNamed(r.str(a.pos[0])), &args{pos: a.pos[1:], named: a.named}
		f = func(e Value) Value { return each(r, e, rest) }
	}
	return r.lazy(v, func(e Value) (Value, bool) { return f(e), true })
}

// lazy is a generator over v's items that f maps and keeps or drops.
func (r *renderer) lazy(v Value, f func(Value) (Value, bool)) *generator {
	var items []Value
	started := false
	return &generator{"generator", func() (Value, bool) {
		if !started {
			started = true
			if truth(v) {
				items = r.iterate(v)
			}
		}
		r.descend()
		defer func() { r.depth-- }()
		for len(items) > 0 {
			r.step()
			e := items[0]
			items = items[1:]
			if x, keep := f(e); keep {
				return x, true
			}
		}
		return nil, false
	}}
}

// selectFilter makes select, reject, selectattr and rejectattr.
func selectFilter(want, byAttr bool) filter {
	return func(r *renderer, v Value, a *args) Value {
		get := func(e Value) Value { return e }
		rest := a.pos
		if byAttr {
			if len(rest) == 0 {
				r.fail("missing parameter for attribute name")
			}
			get, rest = r.attrGetter(rest[0]), rest[1:]
		}
		is := truth
		if len(rest) > 0 {
			each, more := testNamed(r.str(rest[0])), &args{pos: rest[1:], named: a.named}
			is = func(e Value) bool { return each(r, e, more) }
		}
		return r.lazy(v, func(e Value) (Value, bool) { return e, is(get(e)) == want })
	}
}

func sortFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 3, "reverse", "case_sensitive", "attribute")
	sensitive := truth(a.get(1, "case_sensitive", false))
	var getters []func(Value) Value
	path := a.get(2, "attribute", nil)
	if s, ok := asString(path); ok {
		r.spend(4 * strings.Count(s, ","))
		for p := range strings.SplitSeq(s, ",") {
			getters = append(getters, r.attrGetter(p))
		}
	} else {
		getters = append(getters, r.attrGetter(path))
	}
	items := r.iterate(v)
	return &List{r.sorted(items, truth(a.get(0, "reverse", false)), func(e Value) Value {
		r.made(16 * len(getters))
		key := make(Tuple, len(getters))
		for i, get := range getters {
			key[i] = r.foldCase(get(e), sensitive)
		}
		return key
	})}
}

// sorted is Python's sorted: stable, also in reverse.
func (r *renderer) sorted(items []Value, reverse bool, key func(Value) Value) []Value {
	r.spend(4 * len(items))
	items = slices.Clone(items)
	if reverse {
		slices.Reverse(items)
	}
	keys := make([]Value, len(items))
	for i, e := range items {
		keys[i] = key(e)
	}
	out := make([]Value, len(items))
	r.sortBy(len(items), func(i int) Value { return keys[i] }, func(order []int) {
		for i, j := range order {
			out[i] = items[j]
		}
	})
	if reverse {
		slices.Reverse(out)
	}
	return out
}

func dictsortFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 3, "case_sensitive", "by", "reverse")
	d, ok := v.(*Dict)
	if !ok {
		r.fail("'%s' object has no attribute 'items'", typeName(v))
	}
	sensitive := truth(a.get(0, "case_sensitive", false))
	at := 0
	switch by := r.str(a.get(1, "by", "key")); by {
	case "key":
	case "value":
		at = 1
	default:
		r.fail(`You can only sort by either "key" or "value"`)
	}
	return &List{r.sorted(r.pairs(d), truth(a.get(2, "reverse", false)), func(e Value) Value {
		return r.foldCase(e.(Tuple)[at], sensitive)
	})}
}

func groupbyFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 3, "attribute", "default", "case_sensitive")
	sensitive := truth(a.get(2, "case_sensitive", false))
	value := r.getterOr(a.need(r, 0, "attribute"), a.get(1, "default", nil))
	out := new(List)
	var last Value
	for i, e := range r.sorted(r.iterate(v), false, func(e Value) Value { return r.foldCase(value(e), sensitive) }) {
		r.spend(2)
		k := r.foldCase(value(e), sensitive)
		if i == 0 || !r.equal(k, last, 0) {
			r.spend(4)
			out.Items = append(out.Items, Tuple{value(e), new(List)})
			last = k
		}
		group := out.Items[len(out.Items)-1].(Tuple)[1].(*List)
		group.Items = append(group.Items, e)
	}
	return out
}

func uniqueFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 2, "case_sensitive", "attribute")
	get, sensitive := r.attrGetter(a.get(1, "attribute", nil)), truth(a.get(0, "case_sensitive", false))
	seen := map[any]bool{}
	return r.lazy(NewList(r.iterate(v)...), func(e Value) (Value, bool) {
		r.spend(entrySteps)
		h := r.hash(r.foldCase(get(e), sensitive))
		keep := !seen[h]
		seen[h] = true
		return e, keep
	})
}

// extremeFilter makes min (sign -1) and max (sign 1): the first of the items no other one beats.
func extremeFilter(sign int) filter {
	return func(r *renderer, v Value, a *args) Value {
		a.atMost(r, 2, "case_sensitive", "attribute")
		get, sensitive := r.attrGetter(a.get(1, "attribute", nil)), truth(a.get(0, "case_sensitive", false))
		items := r.iterate(v)
		if len(items) == 0 {
			return undefined{"No aggregated item, sequence was empty."}
		}
		best := items[0]
		for _, e := range items[1:] {
			r.step()
			if r.compareValues(r.foldCase(get(e), sensitive), r.foldCase(get(best), sensitive), 0)*sign > 0 {
				best = e
			}
		}
		return best
	}
}

func sumFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 2, "attribute", "start")
	get, sum := r.attrGetter(a.get(0, "attribute", nil)), a.get(1, "start", int64(0))
	if _, ok := asString(sum); ok {
		r.fail("sum() can't sum strings")
	}
	for _, e := range r.iterate(v) {
		r.step()
		sum = r.binary("+", sum, get(e))
	}
	return sum
}

func batchFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 2, "linecount", "fill_with")
	n, fill := r.width(a.need(r, 0, "linecount")), a.get(1, "fill_with", nil)
	if n == 0 {
		r.fail("batch needs a positive number of items")
	}
	var out []Value
	for chunk := range slices.Chunk(r.iterate(v), n) {
		r.spend(4)
		r.made(16 * len(chunk))
		if fill != nil {
			r.made(16 * n)
		}
		chunk = slices.Clone(chunk)
		for fill != nil && len(chunk) < n {
			chunk = append(chunk, fill)
		}
		out = append(out, &List{chunk})
	}
	return sliceGenerator("generator", out)
}

func sliceFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 2, "slices", "fill_with")
	n, fill := r.width(a.need(r, 0, "slices")), a.get(1, "fill_with", nil)
	if n == 0 {
		r.fail("integer division or modulo by zero")
	}
	r.made(128 * n)
	items := r.iterate(v)
	r.made(16 * len(items))
	per, extra := len(items)/n, len(items)%n
	var out []Value
	for i := range n {
		size := per
		if i < extra {
			size++
		}
		part := slices.Clone(items[:size])
		items = items[size:]
		if fill != nil && i >= extra {
			part = append(part, fill)
		}
		out = append(out, &List{part})
	}
	return sliceGenerator("generator", out)
}
