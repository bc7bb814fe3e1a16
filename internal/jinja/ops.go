package jinja

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"
)

// equal is Python's ==. Every value compared is a step: shared parts make small values large to walk.
func (r *renderer) equal(a, b Value, depth int) bool {
	r.step()
	switch x := a.(type) { // the common ones, without making big integers
	case string:
		if y, ok := b.(string); ok {
			if len(x) == len(y) {
				r.scanned(len(x))
			}
			return x == y
		}
	case int64:
		if y, ok := b.(int64); ok {
			return x == y
		}
	case bool:
		if y, ok := b.(bool); ok {
			return x == y
		}
	}
	if depth > maxValueDepth {
		tooDeep()
	}
	if x, ok := asBig(a); ok {
		r.number(a)
		if y, ok := asBig(b); ok {
			return x.Cmp(y) == 0
		}
		y, ok := b.(float64)
		f, _ := asFloat(a)
		return ok && f == y
	}
	if s, ok := asString(a); ok {
		t, ok := asString(b)
		if !ok || len(s) != len(t) {
			return false
		}
		r.scanned(len(s))
		return s == t
	}
	switch x := a.(type) {
	case nil:
		return b == nil
	case float64:
		y, ok := asFloat(b)
		return ok && x == y
	case undefined:
		_, ok := b.(undefined)
		return ok
	case *List:
		y, ok := b.(*List)
		return ok && r.equalItems(x.Items, y.Items, depth)
	case Tuple:
		y, ok := b.(Tuple)
		return ok && r.equalItems(x, y, depth)
	case *Dict:
		y, ok := b.(*Dict)
		return ok && r.equalDicts(x, y, depth)
	case rangeValue:
		return b == a
	case view:
		y, ok := b.(view)
		return ok && x.kind != "dict_values" && x.kind == y.kind && r.equalItems(x.items, y.items, depth)
	case *namespace, *macro, *loopState, *generator, *function, *cycler:
		return a == b
	}
	return false
}

func (r *renderer) equalItems(a, b []Value, depth int) bool {
	return slices.EqualFunc(a, b, func(x, y Value) bool { return r.equal(x, y, depth+1) })
}

func (r *renderer) equalDicts(a, b *Dict, depth int) bool {
	if a.Len() != b.Len() {
		return false
	}
	for _, e := range a.entries {
		r.hashed(e.hash)
		i := b.find(e.hash)
		if i < 0 || !r.equal(e.val, b.entries[i].val, depth+1) {
			return false
		}
	}
	return true
}

// compareValues orders two values as Python's < does: negative, zero or positive. NaN orders as equal.
func (r *renderer) compareValues(a, b Value, depth int) int {
	if depth > maxValueDepth {
		tooDeep()
	}
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y)
		}
	}
	r.number(a)
	r.number(b)
	if x, ok := asBig(a); ok {
		if y, ok := asBig(b); ok {
			return x.Cmp(y)
		}
	}
	if x, ok := asFloat(a); ok {
		if y, ok := asFloat(b); ok {
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		}
	}
	if x, ok := asString(a); ok {
		if y, ok := asString(b); ok {
			r.scanned(min(len(x), len(y)))
			return strings.Compare(x, y)
		}
	}
	if x, ok := sequence(a); ok && typeName(a) == typeName(b) {
		y, _ := sequence(b)
		for i := range min(len(x), len(y)) {
			if !r.equal(x[i], y[i], depth+1) {
				return r.compareValues(x[i], y[i], depth+1)
			}
		}
		return len(x) - len(y)
	}
	r.mustExist(a, b)
	r.fail("'<' not supported between instances of '%s' and '%s'", typeName(a), typeName(b))
	return 0
}

// sortBy sorts the numbers 0 to n-1 by their keys, stably, and hands the order to use.
func (r *renderer) sortBy(n int, key func(int) Value, use func(order []int)) {
	r.spend(n)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		r.spend(2) // with the moves that go with a comparison
		return r.compareValues(key(i), key(j), 0)
	})
	use(order)
}

func (r *renderer) compare(op string, a, b Value) bool {
	switch op {
	case "==":
		return r.equal(a, b, 0)
	case "!=":
		return !r.equal(a, b, 0)
	case "in":
		return r.contains(b, a)
	case "not in":
		return !r.contains(b, a)
	}
	if isNaN(a) || isNaN(b) {
		return false
	}
	c := r.compareValues(a, b, 0)
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func isNaN(v Value) bool {
	f, ok := v.(float64)
	return ok && f != f
}

// contains is "v in c".
func (r *renderer) contains(c, v Value) bool {
	switch x := c.(type) {
	case string, Markup:
		s, _ := asString(x)
		sub, ok := asString(v)
		if !ok {
			r.fail("'in <string>' requires string as left operand, not %s", typeName(v))
		}
		r.searched(len(s))
		return strings.Contains(s, sub)
	case *Dict:
		return x.find(r.hash(v)) >= 0
	case *namespace, *macro, *function, *loopState, nil, bool, int64, *big.Int, float64:
		r.fail("argument of type '%s' is not iterable", typeName(c))
	}
	for _, e := range r.iterate(c) {
		r.step()
		if r.equal(e, v, 0) {
			return true
		}
	}
	return false
}

func (r *renderer) sign(op byte, v Value) Value {
	switch x := v.(type) {
	case float64:
		if op == '-' {
			return -x
		}
		return x
	case undefined:
		r.failUndefined(x)
	}
	r.number(v)
	z, ok := asBig(v)
	if !ok {
		r.fail("bad operand type for unary %c: '%s'", op, typeName(v))
	}
	if op == '-' {
		z = new(big.Int).Neg(z)
	}
	return normInt(z)
}

// binary is an arithmetic operator, on strings and lists too.
func (r *renderer) binary(op string, a, b Value) Value {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			switch {
			case op == "%" && x >= 0 && y > 0:
				return x % y
			case abs64(x) >= 1<<61 || abs64(y) >= 1<<61: // may overflow
			case op == "+":
				return x + y
			case op == "-":
				return x - y
			}
		}
	}
	r.mustExist(a, b)
	if v, ok := r.binaryText(op, a, b); ok {
		return v
	}
	if v, ok := r.binaryList(op, a, b); ok {
		return v
	}
	if x, ok := asBig(a); ok {
		if y, ok := asBig(b); ok {
			return r.binaryInt(op, x, y)
		}
	}
	if x, ok := asFloat(a); ok {
		if y, ok := asFloat(b); ok {
			return r.binaryFloat(op, x, y)
		}
	}
	r.fail("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
	return nil
}

func abs64(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

func (r *renderer) binaryText(op string, a, b Value) (Value, bool) {
	s, aText := asString(a)
	t, bText := asString(b)
	switch {
	case op == "+" && aText && bText:
		r.made(len(s) + len(t))
		_, aMark := a.(Markup)
		_, bMark := b.(Markup)
		switch {
		case !aMark && !bMark:
			return s + t, true
		case !aMark:
			s = r.escapeHTML(s)
		case !bMark:
			t = r.escapeHTML(t)
		}
		r.made(len(s) + len(t))
		return Markup(s + t), true
	case op == "*" && aText:
		if n, ok := asInt(b); ok {
			return like(a, r.repeat(s, n)), true
		}
	case op == "*" && bText:
		if n, ok := asInt(a); ok {
			return like(b, r.repeat(t, n)), true
		}
	case op == "%" && aText:
		return like(a, r.formatPercent(s, b)), true
	}
	return nil, false
}

// like returns s as a Markup if v is one.
func like(v Value, s string) Value {
	if _, ok := v.(Markup); ok {
		return Markup(s)
	}
	return s
}

// repeat is s*n within the size limit.
func (r *renderer) repeat(s string, n int64) string {
	if n <= 0 || s == "" {
		return ""
	}
	if n > int64(r.limits.Output/len(s)) {
		r.checkSize(math.MaxInt)
	}
	r.made(len(s) * int(n))
	return strings.Repeat(s, int(n))
}

func (r *renderer) binaryList(op string, a, b Value) (Value, bool) {
	x, aList := sequence(a)
	y, bList := sequence(b)
	var out []Value
	switch {
	case op == "+" && aList && bList && typeName(a) == typeName(b):
		r.made(16 * (len(x) + len(y)))
		out = append(append(out, x...), y...)
	case op == "*" && aList != bList:
		n, ok := asInt(b)
		if bList {
			n, ok = asInt(a)
			a, x = b, y
		}
		if !ok {
			return nil, false
		}
		if n > 0 && len(x) > 0 {
			if n > int64(r.limits.Output/16/len(x)) {
				r.checkSize(math.MaxInt)
			}
			r.made(16 * len(x) * int(n))
			out = slices.Repeat(x, int(n))
		}
	default:
		return nil, false
	}
	if _, ok := a.(Tuple); ok {
		return Tuple(out), true
	}
	return &List{out}, true
}

// maxBits bounds integers, so that a template cannot make the machine multiply for ever.
const maxBits = 1 << 14

func (r *renderer) binaryInt(op string, x, y *big.Int) Value {
	r.spend((x.BitLen() + y.BitLen()) / 16)
	floats := func() Value {
		fx, _ := asFloat(x)
		fy, _ := asFloat(y)
		return r.binaryFloat(op, fx, fy)
	}
	z := new(big.Int)
	switch op {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		z.Mul(x, y)
	case "//", "%":
		if y.Sign() == 0 {
			r.fail("integer division or modulo by zero")
		}
		m := new(big.Int)
		z.QuoRem(x, y, m) // truncates; Python floors
		if m.Sign() != 0 && m.Sign() != y.Sign() {
			z.Sub(z, big.NewInt(1))
			m.Add(m, y)
		}
		if op == "%" {
			z = m
		}
	case "**":
		if y.Sign() < 0 {
			return floats()
		}
		if x.BitLen() > 1 && (!y.IsInt64() || y.Int64() > int64(maxBits/(x.BitLen()-1))) {
			r.throw(Limit, "integer over %d bits", maxBits)
		}
		if x.BitLen() <= 1 && y.BitLen() > 1 { // 0, 1 and -1 need only the parity of a large exponent
			y = big.NewInt(2 + int64(y.Bit(0)))
		}
		if y.IsInt64() {
			r.spend(x.BitLen() * int(y.Int64()) / 16)
		}
		z.Exp(x, y, nil)
	default:
		return floats()
	}
	if z.BitLen() > maxBits {
		r.throw(Limit, "integer over %d bits", maxBits)
	}
	return normInt(z)
}

func (r *renderer) binaryFloat(op string, x, y float64) Value {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		if x == 0 && y < 0 {
			r.fail("0.0 cannot be raised to a negative power")
		}
		z := math.Pow(x, y)
		if math.IsNaN(z) && !math.IsNaN(x) && !math.IsNaN(y) {
			r.fail("a complex number is not supported")
		}
		if math.IsInf(z, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			r.fail("result too large")
		}
		return z
	}
	if y == 0 {
		r.fail("float division by zero")
	}
	if op == "/" {
		return x / y
	}
	m := math.Mod(x, y)
	q := (x - m) / y
	if m != 0 && (m < 0) != (y < 0) {
		m += y
		q--
	}
	if op == "%" {
		if m == 0 {
			return math.Copysign(0, y)
		}
		return m
	}
	if q == 0 {
		return math.Copysign(0, x/y)
	}
	f := math.Floor(q)
	if q-f > 0.5 {
		f++
	}
	return f
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func (r *renderer) escapeHTML(s string) string {
	return r.mapText(s, htmlEscaper.Replace)
}

// number accounts for work on an integer that has many digits.
func (r *renderer) number(v Value) {
	if z, ok := v.(*big.Int); ok {
		r.spend(z.BitLen() / 16)
	}
}

// searched accounts for a search in n bytes of text.
func (r *renderer) searched(n int) { r.spend(n >> 5) }
