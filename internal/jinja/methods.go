package jinja

import (
	"slices"
	"strings"
)

// method returns an attribute an object's type gives it: methods, and what loop, macro and namespace objects offer.
// Names the sandbox refuses exist, but as undefined values: using one is an error, testing for it is not.
func (r *renderer) method(o Value, name string) (Value, bool) {
	if strings.HasPrefix(name, "_") {
		if strings.HasPrefix(name, "__") {
			return refusedAttr(o, name), true
		}
		return nil, false
	}
	switch x := o.(type) {
	case string, Markup:
		s, _ := asString(x)
		if f := stringMethods[name]; f != nil {
			return &function{name, func(r *renderer, a *args) Value { return r.likeAll(x, f(r, s, a)) }}, true
		}
	case *Dict:
		if slices.Contains([]string{"clear", "pop", "popitem", "setdefault", "update"}, name) {
			return refusedAttr(o, name), true
		}
		if f := dictMethods[name]; f != nil {
			return &function{name, func(r *renderer, a *args) Value { return f(r, x, a) }}, true
		}
	case *List, Tuple:
		if _, isList := x.(*List); isList && slices.Contains([]string{"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"}, name) {
			return refusedAttr(o, name), true
		}
		if f := listMethods[name]; f != nil && (name != "copy" || typeName(o) == "list") {
			return &function{name, func(r *renderer, a *args) Value { return f(r, x, a) }}, true
		}
	case float64:
		if name == "is_integer" {
			return &function{name, func(*renderer, *args) Value { return x-x == 0 && x == float64(int64(x)) }}, true
		}
	case *namespace:
		return x.attrs.Get(name)
	case *loopState:
		return x.attr(name)
	case *macro:
		r.spend(len(x.def.params))
		return x.attr(name)
	case *cycler:
		return x.attr(name)
	}
	return nil, false
}

func refusedAttr(o Value, name string) undefined {
	return undefined{"access to attribute '" + name + "' of '" + typeName(o) + "' object is unsafe."}
}

func (m *macro) attr(name string) (Value, bool) {
	switch name {
	case "name":
		return m.def.name, true
	case "arguments":
		var t Tuple
		for _, p := range m.def.params {
			t = append(t, p)
		}
		return t, true
	case "caller":
		return m.def.usesCaller, true
	case "catch_kwargs":
		return m.def.usesKwargs, true
	case "catch_varargs":
		return m.def.usesVarargs, true
	}
	return nil, false
}

// likeAll makes the strings a method returned Markup if its object was.
func (r *renderer) likeAll(o, v Value) Value {
	if _, ok := o.(Markup); !ok {
		return v
	}
	switch x := v.(type) {
	case string:
		return Markup(x)
	case *List:
		for i := range x.Items {
			r.step()
			x.Items[i] = r.likeAll(o, x.Items[i])
		}
	}
	return v
}

type dictMethod func(r *renderer, d *Dict, a *args) Value

var dictMethods = map[string]dictMethod{
	"items":  func(r *renderer, d *Dict, a *args) Value { a.atMost(r, 0); return view{"dict_items", r.pairs(d)} },
	"keys":   viewMethod("dict_keys", (*Dict).keys),
	"values": viewMethod("dict_values", (*Dict).values),
	"copy": func(r *renderer, d *Dict, a *args) Value {
		a.atMost(r, 0)
		r.spend(entrySteps * d.Len())
		return d.Clone()
	},
	"get": func(r *renderer, d *Dict, a *args) Value {
		a.atMost(r, 2)
		if i := d.find(r.hash(a.need(r, 0, "key"))); i >= 0 {
			return d.entries[i].val
		}
		return a.get(1, "default", nil)
	},
}

func viewMethod(kind string, items func(*Dict) []Value) dictMethod {
	return func(r *renderer, d *Dict, a *args) Value {
		a.atMost(r, 0)
		r.made(16 * d.Len())
		return view{kind, items(d)}
	}
}

func (r *renderer) pairs(d *Dict) []Value {
	r.spend(2 * len(d.entries))
	ps := make([]Value, len(d.entries))
	for i, e := range d.entries {
		ps[i] = Tuple{e.key, e.val}
	}
	return ps
}

func (d *Dict) values() []Value {
	vs := make([]Value, len(d.entries))
	for i := range d.entries {
		vs[i] = d.entries[i].val
	}
	return vs
}

var listMethods = map[string]func(r *renderer, o Value, a *args) Value{
	"count": func(r *renderer, o Value, a *args) Value {
		items, _ := sequence(o)
		v, n := a.need(r, 0, "value"), int64(0)
		for _, e := range items {
			if r.equal(e, v, 0) {
				n++
			}
		}
		return n
	},
	"index": func(r *renderer, o Value, a *args) Value {
		items, _ := sequence(o)
		v := a.need(r, 0, "value")
		for i, e := range items {
			if r.equal(e, v, 0) {
				return int64(i)
			}
		}
		r.fail("%s is not in list", r.repr(v))
		return nil
	},
	"copy": func(r *renderer, o Value, _ *args) Value {
		items, _ := sequence(o)
		r.made(16 * len(items))
		return &List{slices.Clone(items)}
	},
}
