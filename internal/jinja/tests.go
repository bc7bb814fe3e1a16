package jinja

import "strings"

type test func(r *renderer, v Value, a *args) bool

// testNamed is the test of that name: "v is name(args)". An unknown one fails when it is run, as filters do.
func testNamed(name string) test {
	if t := tests[name]; t != nil {
		return t
	}
	return func(r *renderer, _ Value, _ *args) bool {
		r.fail("no test named '%s'", name)
		return false
	}
}

// isType makes a test from a predicate without arguments.
func isType(is func(v Value) bool) test {
	return func(r *renderer, v Value, a *args) bool {
		a.atMost(r, 0)
		return is(v)
	}
}

// isCased tells whether text stays as it is in one case, and changes in the other.
func isCased(own, other func(string) string) test {
	return func(r *renderer, v Value, _ *args) bool {
		s := r.str(v)
		r.spend(len(s) >> 2)
		return s == own(s) && s != other(s)
	}
}

func comparing(op string) test {
	return func(r *renderer, v Value, a *args) bool { return r.compare(op, v, a.need(r, 0, "other")) }
}

var tests map[string]test

func init() {
	eq, ne := comparing("=="), comparing("!=")
	lt, le, gt, ge := comparing("<"), comparing("<="), comparing(">"), comparing(">=")
	tests = map[string]test{
		"==": eq, "eq": eq, "equalto": eq, "!=": ne, "ne": ne,
		"<": lt, "lt": lt, "lessthan": lt, "<=": le, "le": le,
		">": gt, "gt": gt, "greaterthan": gt, ">=": ge, "ge": ge,
		"defined":   isType(func(v Value) bool { _, ok := v.(undefined); return !ok }),
		"undefined": isType(func(v Value) bool { _, ok := v.(undefined); return ok }),
		"none":      isType(func(v Value) bool { return v == nil }),
		"boolean":   isType(func(v Value) bool { _, ok := v.(bool); return ok }),
		"true":      isType(func(v Value) bool { return v == true }),
		"false":     isType(func(v Value) bool { return v == false }),
		"integer":   isType(func(v Value) bool { return typeName(v) == "int" }),
		"float":     isType(func(v Value) bool { return typeName(v) == "float" }),
		"number":    isType(func(v Value) bool { _, ok := asFloat(v); return ok }),
		"string":    isType(func(v Value) bool { _, ok := asString(v); return ok }),
		"mapping":   isType(func(v Value) bool { _, ok := v.(*Dict); return ok }),
		"escaped":   isType(func(v Value) bool { _, ok := v.(Markup); return ok }),
		"lower":     isCased(strings.ToLower, strings.ToUpper),
		"upper":     isCased(strings.ToUpper, strings.ToLower),
		"iterable":  isType(isIterable),
		"sequence":  isType(isSequence),
		"callable": isType(func(v Value) bool {
			switch v.(type) {
			case *function, *macro, *loopState, undefined:
				return true
			}
			return false
		}),
		"filter": func(r *renderer, v Value, _ *args) bool {
			s, _ := asString(v)
			r.walked(len(s))
			return filters[s] != nil
		},
		"test": func(r *renderer, v Value, _ *args) bool {
			s, _ := asString(v)
			r.walked(len(s))
			return tests[s] != nil
		},
		"odd":  func(r *renderer, v Value, _ *args) bool { return r.equal(r.binary("%", v, int64(2)), int64(1), 0) },
		"even": func(r *renderer, v Value, _ *args) bool { return r.equal(r.binary("%", v, int64(2)), int64(0), 0) },
		"divisibleby": func(r *renderer, v Value, a *args) bool {
			return r.equal(r.binary("%", v, a.need(r, 0, "num")), int64(0), 0)
		},
		"in":     func(r *renderer, v Value, a *args) bool { return r.contains(a.need(r, 0, "seq"), v) },
		"sameas": func(r *renderer, v Value, a *args) bool { return r.same(v, a.need(r, 0, "other")) },
	}
}

func isIterable(v Value) bool {
	switch v.(type) {
	case string, Markup, *List, Tuple, *Dict, view, rangeValue, *generator, *loopState, undefined:
		return true
	}
	return false
}

// isSequence is whether v has a length and can be subscribed.
func isSequence(v Value) bool {
	switch v.(type) {
	case string, Markup, *List, Tuple, *Dict, rangeValue, undefined:
		return true
	}
	return false
}

// same is Python's "is": identity. Equal strings and small integers count as identical, as they usually are there.
func (r *renderer) same(a, b Value) bool {
	if typeName(a) != typeName(b) {
		return false
	}
	switch x := a.(type) {
	case nil, bool, int64, string, Markup, undefined:
		return r.equal(a, b, 0)
	case Tuple:
		y := b.(Tuple)
		return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	case *List, *Dict, *namespace, *macro, *generator, *loopState, *function:
		return a == b
	}
	return false
}
