package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// Value is a template value: nil (None), bool, int64, *big.Int, float64, string, *List, Tuple, *Dict, or one of the
// types a template itself brings up (undefined, Markup, namespace, macro, loop, generator …).
type Value = any

// List is a Python list. The sandbox forbids changing one, so a template never alters the caller's.
type List struct{ Items []Value }

// Tuple is a Python tuple.
type Tuple []Value

// NewList makes a list of items.
func NewList(items ...Value) *List { return &List{items} }

// Markup is a string that the safe filter or escape made. Adding a plain string to it escapes that string.
type Markup string

// Dict is a Python dict: keys keep the order of insertion.
type Dict struct {
	Tag     int // of the caller's own: templates do not see it, copies keep it; see Template.RenderSpans
	entries []entry
	index   map[any]int // hash key -> entry; nil while the dict is small
}

type entry struct{ key, hash, val Value }

// indexFrom is the size from which a Dict keeps a map; below, scanning is faster.
const indexFrom = 12

// NewDict returns an empty dict.
func NewDict() *Dict { return new(Dict) }

// Len returns the number of keys.
func (d *Dict) Len() int {
	if d == nil {
		return 0
	}
	return len(d.entries)
}

// Set adds or replaces a key, which must be a string.
func (d *Dict) Set(key string, v Value) { d.set(key, key, v) }

// Get returns the value of a string key.
func (d *Dict) Get(key string) (Value, bool) {
	if i := d.findText(key); i >= 0 {
		return d.entries[i].val, true
	}
	return nil, false
}

// Keys returns the string keys in order.
func (d *Dict) Keys() []string {
	var ks []string
	for _, e := range d.entries {
		if s, ok := e.key.(string); ok {
			ks = append(ks, s)
		}
	}
	return ks
}

// Delete removes a string key.
func (d *Dict) Delete(key string) {
	i := d.find(key)
	if i < 0 {
		return
	}
	d.entries = append(d.entries[:i:i], d.entries[i+1:]...)
	d.index = nil
	d.reindex()
}

// Clone returns a copy that shares the values.
func (d *Dict) Clone() *Dict {
	c := &Dict{Tag: d.Tag, entries: append([]entry(nil), d.entries...)}
	c.reindex()
	return c
}

func (d *Dict) reindex() {
	if len(d.entries) < indexFrom {
		return
	}
	d.index = make(map[any]int, 2*len(d.entries))
	for i, e := range d.entries {
		d.index[e.hash] = i
	}
}

func (d *Dict) find(hash any) int {
	if d == nil {
		return -1
	}
	if d.index != nil {
		if i, ok := d.index[hash]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if d.entries[i].hash == hash {
			return i
		}
	}
	return -1
}

// findText is find for a string.
func (d *Dict) findText(key string) int {
	if d == nil {
		return -1
	}
	if d.index != nil {
		return d.find(key)
	}
	for i := range d.entries {
		if s, ok := d.entries[i].hash.(string); ok && s == key {
			return i
		}
	}
	return -1
}

// valueAt is the value at i, or missing for an i that find did not find.
func (d *Dict) valueAt(i int, missing Value) Value {
	if i < 0 {
		return missing
	}
	return d.entries[i].val
}

func (d *Dict) set(key, hash, v Value) {
	if i := d.find(hash); i >= 0 {
		d.entries[i].val = v
		return
	}
	d.entries = append(d.entries, entry{key, hash, v})
	if d.index != nil {
		d.index[hash] = len(d.entries) - 1
	} else {
		d.reindex()
	}
}

// tupleHash and bigHash keep the hashes of tuples and big integers apart from those of strings.
type (
	tupleHash string
	bigHash   string
)

// maxKey bounds a tuple used as a key, in bytes of its hash.
const maxKey = 1 << 16

// hashKey maps v to a comparable value that is equal exactly when Python's keys are; ok is false for unhashable values.
func hashKey(v Value, depth int) (h any, ok bool) {
	switch x := v.(type) {
	case nil, string:
		return x, true
	case Markup:
		return string(x), true
	case bool:
		if x {
			return int64(1), true
		}
		return int64(0), true
	case int64:
		return x, true
	case *big.Int:
		return bigHash(x.String()), true
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<62 {
			return int64(x), true
		}
		return x, true
	case Tuple:
		if depth <= 0 {
			return nil, false
		}
		var b strings.Builder
		for _, e := range x {
			h, ok := hashKey(e, depth-1)
			if !ok {
				return nil, false
			}
			fmt.Fprintf(&b, "%#v,", h)
			if b.Len() > maxKey {
				panic(&Error{Kind: Limit, Msg: fmt.Sprintf("tuple of more than %d bytes as a key", maxKey)})
			}
		}
		return tupleHash(b.String()), true
	case undefined:
		return tupleHash("undefined"), true
	case *namespace, *macro, *loopState, *generator, *function, *cycler:
		return x, true
	}
	return nil, false
}

// undefined is what a missing variable, attribute or item evaluates to. It prints as nothing and counts as false and
// empty; any other use is the error its message tells.
type undefined struct{ msg string }

// view is what a dict's keys, values and items methods return.
type view struct {
	kind  string // "dict_keys", "dict_values", "dict_items"
	items []Value
}

// rangeValue is Python's range object.
type rangeValue struct{ start, stop, step int64 }

func (r rangeValue) len() int64 {
	if r.step > 0 && r.start < r.stop {
		return (r.stop-r.start-1)/r.step + 1
	}
	if r.step < 0 && r.start > r.stop {
		return (r.start-r.stop-1)/-r.step + 1
	}
	return 0
}

// generator is a Python generator or iterator: true whatever it holds, without length or items, and used up by
// iterating over it once.
type generator struct {
	kind string // as Python prints its type: "generator", "list_reverseiterator"
	next func() (Value, bool)
}

// sliceGenerator yields the given items.
func sliceGenerator(kind string, items []Value) *generator {
	return &generator{kind, func() (Value, bool) {
		if len(items) == 0 {
			return nil, false
		}
		v := items[0]
		items = items[1:]
		return v, true
	}}
}

// namespace is the one object a template may change.
type namespace struct{ attrs *Dict }

func truth(v Value) bool {
	switch x := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return x
	case int64:
		return x != 0
	case float64:
		return x != 0
	case string:
		return x != ""
	case Markup:
		return x != ""
	case *List:
		return len(x.Items) > 0
	case Tuple:
		return len(x) > 0
	case *Dict:
		return x.Len() > 0
	case view:
		return len(x.items) > 0
	case rangeValue:
		return x.len() > 0
	}
	return true
}

// asString returns the text of a string or Markup.
func asString(v Value) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case Markup:
		return string(x), true
	}
	return "", false
}

// asInt returns the value of an int or bool that fits int64.
func asInt(v Value) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, true
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// asBig is asInt for integers of any size.
func asBig(v Value) (*big.Int, bool) {
	if z, ok := v.(*big.Int); ok {
		return z, true
	}
	if i, ok := asInt(v); ok {
		return big.NewInt(i), true
	}
	return nil, false
}

// asFloat returns the value of any number.
func asFloat(v Value) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case *big.Int:
		f, _ := new(big.Float).SetInt(x).Float64()
		return f, true
	}
	i, ok := asInt(v)
	return float64(i), ok
}

// normInt returns z as an int64 when it fits.
func normInt(z *big.Int) Value {
	if z.IsInt64() {
		return z.Int64()
	}
	return z
}

// sequence returns the items of values that can be indexed like a list.
func sequence(v Value) ([]Value, bool) {
	switch x := v.(type) {
	case *List:
		return x.Items, true
	case Tuple:
		return x, true
	}
	return nil, false
}

// length is Python's len; ok is false for values without one.
func length(v Value) (int64, bool) {
	switch x := v.(type) {
	case string:
		return int64(utf8.RuneCountInString(x)), true
	case Markup:
		return int64(utf8.RuneCountInString(string(x))), true
	case *List:
		return int64(len(x.Items)), true
	case Tuple:
		return int64(len(x)), true
	case *Dict:
		return int64(x.Len()), true
	case view:
		return int64(len(x.items)), true
	case rangeValue:
		return x.len(), true
	case *loopState:
		return int64(len(x.items)), true
	case undefined:
		return 0, true
	}
	return 0, false
}

// typeName is type(v).__name__.
func typeName(v Value) string {
	switch x := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case Markup:
		return "Markup"
	case *List:
		return "list"
	case Tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case view:
		return x.kind
	case rangeValue:
		return "range"
	case *generator:
		return x.kind
	case *namespace:
		return "Namespace"
	case *macro:
		return "Macro"
	case *loopState:
		return "LoopContext"
	case undefined:
		return "Undefined"
	case *function:
		return "function"
	case *cycler:
		return "Cycler"
	}
	return "object"
}
