package jsonschema

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"hearth/internal/grammar"
)

// Bounds of numbers as they are written.
const (
	mostDigits    = 64      // before the point and behind it, where the schema has none of more: a model in a loop comes to an end
	surely        = 15      // digits that float64 tells apart
	mostMultiples = 1 << 12 // that are listed
	mostRemainder = 1 << 12 // states of a search for multiples
	mostFractions = 1000    // multiples of a step between 0 and 1
)

// digits makes expressions of decimal numbers.
type digits struct{ b *grammar.Builder }

func (d digits) class(lo, hi byte) *grammar.Expr {
	var s grammar.Set
	s.Add(lo, hi)
	return d.b.Byte(s)
}

// some is from least to most digits.
func (d digits) some(least, most int) *grammar.Expr {
	return d.b.Repeat(d.class('0', '9'), least, most)
}

// from is whole numbers from lo to hi, an empty hi for no end. Neither begins with a zero; zero is "0".
func (d digits) from(lo, hi string) *grammar.Expr {
	b := d.b
	most := max(mostDigits, len(lo)+1)
	if hi != "" {
		most = len(hi)
	}
	var alts []*grammar.Expr
	if hi == "" || len(lo) < len(hi) {
		alts = append(alts, d.atLeast(lo))
		least, last := len(lo)+1, most
		if hi != "" {
			last--
			alts = append(alts, d.atMost(hi, true))
		}
		if least <= last {
			alts = append(alts, b.Seq(d.class('1', '9'), d.some(least-1, last-1)))
		}
	} else if len(lo) == len(hi) && lo <= hi {
		alts = append(alts, d.between(lo, hi))
	}
	return b.Or(alts...)
}

// between is the numbers of as many digits as lo and hi have.
func (d digits) between(lo, hi string) *grammar.Expr {
	same := 0
	for same < len(lo) && lo[same] == hi[same] {
		same++
	}
	head := d.b.Literal(lo[:same])
	if same == len(lo) {
		return head
	}
	a, z, rest := lo[same], hi[same], len(lo)-same-1
	alts := []*grammar.Expr{
		d.b.Seq(d.class(a, a), d.atLeast(lo[same+1:])),
		d.b.Seq(d.class(z, z), d.atMost(hi[same+1:], false)),
	}
	if a+1 < z {
		alts = append(alts, d.b.Seq(d.class(a+1, z-1), d.some(rest, rest)))
	}
	return d.b.Seq(head, d.b.Or(alts...))
}

// atLeast is the numbers of as many digits that are not below lo.
func (d digits) atLeast(lo string) *grammar.Expr {
	e := d.b.Empty()
	for i := len(lo) - 1; i >= 0; i-- {
		rest := len(lo) - i - 1
		e = d.b.Seq(d.class(lo[i], lo[i]), e)
		if lo[i] < '9' {
			e = d.b.Or(e, d.b.Seq(d.class(lo[i]+1, '9'), d.some(rest, rest)))
		}
	}
	return e
}

// atMost is the numbers of as many digits that are not above hi, and if whole do not begin with a zero.
func (d digits) atMost(hi string, whole bool) *grammar.Expr {
	e := d.b.Empty()
	for i := len(hi) - 1; i >= 0; i-- {
		rest, first := len(hi)-i-1, byte('0')
		if whole && i == 0 && len(hi) > 1 {
			first = '1'
		}
		e = d.b.Seq(d.class(hi[i], hi[i]), e)
		if hi[i] > first {
			e = d.b.Or(e, d.b.Seq(d.class(first, hi[i]-1), d.some(rest, rest)))
		}
	}
	return e
}

// behind is a point and any digits, or nothing.
func (d digits) behind() *grammar.Expr {
	return d.b.Optional(d.b.Seq(d.b.Literal("."), d.some(1, mostDigits)))
}

// notZero is digits of which one is no zero.
func (d digits) notZero() *grammar.Expr {
	return d.b.Seq(d.b.Repeat(d.class('0', '0'), 0, mostDigits), d.class('1', '9'), d.some(0, mostDigits))
}

func (d digits) zeros() *grammar.Expr { return d.b.Repeat(d.class('0', '0'), 0, mostDigits) }

// above is numbers not below lo, which is not negative, or only those above it.
func (d digits) above(lo decimal, exclusive bool) *grammar.Expr {
	b := d.b
	whole, frac := lo.parts()
	next, _ := new(big.Int).SetString(whole, 10)
	larger := b.Seq(d.from(next.Add(next, big.NewInt(1)).String(), ""), d.behind())
	var e *grammar.Expr // what is behind the point, for the same whole part
	switch {
	case frac == "" && exclusive:
		e = b.Seq(b.Literal("."), d.notZero())
	case frac == "":
		e = d.behind()
	default:
		if e = d.some(0, mostDigits); exclusive {
			e = d.notZero()
		}
		for i := len(frac) - 1; i >= 0; i-- {
			e = b.Seq(d.class(frac[i], frac[i]), e)
			if frac[i] < '9' {
				e = b.Or(e, b.Seq(d.class(frac[i]+1, '9'), d.some(0, mostDigits)))
			}
		}
		e = b.Seq(b.Literal("."), e)
	}
	return b.Or(larger, b.Seq(b.Literal(whole), e))
}

// below is numbers not above hi, which is not negative, or only those below it. They are not negative.
func (d digits) below(hi decimal, exclusive bool) *grammar.Expr {
	b := d.b
	whole, frac := hi.parts()
	smaller := b.Never()
	if whole != "0" {
		last, _ := new(big.Int).SetString(whole, 10)
		smaller = b.Seq(d.from("0", last.Sub(last, big.NewInt(1)).String()), d.behind())
	}
	e := b.Never()
	switch {
	case frac == "" && !exclusive:
		e = b.Optional(b.Seq(b.Literal("."), d.class('0', '0'), d.zeros()))
	case frac != "":
		if !exclusive {
			e = d.zeros()
		}
		for i := len(frac) - 1; i >= 0; i-- {
			e = b.Seq(d.class(frac[i], frac[i]), e)
			if i < len(frac)-1 { // to end before the last digit is to be smaller
				e = b.Or(e, b.Literal(frac[i:i+1]))
			}
			if frac[i] > '0' {
				e = b.Or(e, b.Seq(d.class('0', frac[i]-1), d.some(0, mostDigits)))
			}
		}
		e = b.Optional(b.Seq(b.Literal("."), e))
	}
	return b.Or(smaller, b.Seq(b.Literal(whole), e))
}

// any is all numbers.
func (d digits) any() *grammar.Expr {
	b := d.b
	exponent := b.Seq(b.Choice("e", "E"), b.Optional(b.Choice("+", "-")), d.some(1, 2))
	return b.Seq(b.Optional(b.Literal("-")), d.from("0", ""), d.behind(), b.Optional(exponent))
}

// decimals is numbers between two bounds, either of which may be missing, without exponents.
func (d digits) decimals(low, high *bound) *grammar.Expr {
	b := d.b
	within := func(low, high *bound) *grammar.Expr { // of numbers from 0 on
		switch {
		case high == nil:
			return d.above(low.decimal, low.exclusive)
		case low.digits == "" && !low.exclusive:
			return d.below(high.decimal, high.exclusive)
		}
		return b.And(d.above(low.decimal, low.exclusive), d.below(high.decimal, high.exclusive))
	}
	flip := func(x *bound) *bound { return &bound{decimal{!x.neg && x.digits != "", x.digits, x.exp}, x.exclusive} }
	var alts []*grammar.Expr
	if high == nil || !high.neg {
		lo := low
		if lo == nil || lo.neg {
			lo = &bound{}
		}
		alts = append(alts, within(lo, high))
	}
	if low == nil || low.neg {
		near, far := &bound{exclusive: true}, (*bound)(nil)
		if high != nil && high.neg {
			near = flip(high)
		}
		if low != nil {
			far = flip(low)
		}
		alts = append(alts, b.Seq(b.Literal("-"), within(near, far)))
	}
	return b.Or(alts...)
}

// apart leaves out the numbers of so many digits that a reader with float64 would take them for a bound that is not among them.
func (d digits) apart(e *grammar.Expr, low, high *bound) *grammar.Expr {
	b, most, needed := d.b, mostDigits, 1
	for _, x := range []*bound{low, high} {
		if x == nil {
			continue
		}
		whole, fraction := x.parts()
		if needed = max(needed, len(fraction)+1); x.exclusive && x.digits != "" { // nothing so short is taken for 0
			most = min(most, surely-len(whole))
		}
	}
	if most == mostDigits {
		return e
	}
	return b.And(e, b.Seq(b.Optional(b.Literal("-")), d.some(1, -1), b.Optional(b.Seq(b.Literal("."), d.some(1, max(most, needed))))))
}

// integers is whole numbers between two, either of which may be nil.
func (d digits) integers(low, high *big.Int) *grammar.Expr {
	b := d.b
	var alts []*grammar.Expr
	if high == nil || high.Sign() >= 0 {
		lo, hi := "0", ""
		if low != nil && low.Sign() > 0 {
			lo = low.String()
		}
		if high != nil {
			hi = high.String()
		}
		alts = append(alts, d.from(lo, hi))
	}
	if low == nil || low.Sign() < 0 {
		lo, hi := "1", ""
		if high != nil && high.Sign() < 0 {
			lo = new(big.Int).Neg(high).String()
		}
		if low != nil {
			hi = new(big.Int).Neg(low).String()
		}
		alts = append(alts, b.Seq(b.Literal("-"), d.from(lo, hi)))
	}
	return b.Or(alts...)
}

// least is the first whole number of a bound below, most the last one of a bound above; nil without one.
func (x *bound) least() *big.Int {
	if x == nil {
		return nil
	}
	n, exact := x.floor()
	if !exact || x.exclusive {
		n.Add(n, big.NewInt(1))
	}
	return n
}

func (x *bound) most() *big.Int {
	if x == nil {
		return nil
	}
	n, exact := x.floor()
	if exact && x.exclusive {
		n.Sub(n, big.NewInt(1))
	}
	return n
}

func (d decimal) floor() (n *big.Int, exact bool) {
	if d.isInteger() {
		return d.scaled(0), true
	}
	whole, _ := d.parts()
	n, _ = new(big.Int).SetString(whole, 10)
	if d.neg {
		n.Neg(n)
		n.Sub(n, big.NewInt(1))
	}
	return n, false
}

// number is the numbers of a form.
func (c *compiler) number(f *form) *grammar.Expr {
	n, want, d, b := f.numbers(), f.kinds&number, digits{c.b}, c.b
	if slices.ContainsFunc(n.steps, decimal.isInteger) {
		want &= integer
	}
	if want == 0 {
		return b.Never()
	}
	if list, ok := n.multiples(); ok {
		if want != number {
			list = slices.DeleteFunc(list, func(x decimal) bool { return x.isInteger() != (want == integer) })
		}
		return c.without(f, number, b.Choice(texts(list)...))
	}
	var e *grammar.Expr
	switch {
	case want == integer:
		if step := n.step(); step != nil {
			return c.stepped(f, &n, step)
		}
		e = d.integers(n.min.least(), n.max.most())
	case n.free() && want == number:
		e = d.any()
	default:
		e = d.apart(d.decimals(n.min, n.max), n.min, n.max)
	}
	if want == fraction {
		e = b.And(e, b.Seq(b.Optional(b.Literal("-")), d.from("0", ""), b.Literal("."), d.notZero()))
	}
	for _, step := range n.steps {
		grid := d.grid(step)
		if grid == nil {
			c.lacksStep(f)
			continue
		}
		e = b.And(e, grid)
	}
	return c.without(f, number, e)
}

func (c *compiler) lacksStep(f *form) {
	for _, s := range f.rules {
		if len(s.number.steps) > 0 {
			c.lacks(s.at, "multipleOf", "it is held for steps that divide 1 or a power of ten, for whole steps up to a few thousand, and where few multiples are within bounds")
		}
	}
}

func texts(list []decimal) (out []string) {
	for _, x := range list {
		out = append(out, x.String())
	}
	return out
}

// multiples lists the multiples within both bounds, if there are few.
func (n *numberRule) multiples() (out []decimal, ok bool) {
	if n.min == nil || n.max == nil || len(n.steps) == 0 {
		return nil, false
	}
	step := n.steps[0]
	places := max(-step.exp, -n.min.exp, -n.max.exp, 0)
	lo, hi, by := n.min.scaled(places), n.max.scaled(places), step.scaled(places)
	first := new(big.Int).Div(lo, by) // towards minus infinity, for by is positive
	if new(big.Int).Mul(first, by).Cmp(lo) < 0 {
		first.Add(first, big.NewInt(1))
	}
	last := new(big.Int).Div(hi, by)
	if many := new(big.Int).Sub(last, first); !many.IsInt64() || many.Int64() > mostMultiples {
		return nil, false
	}
	for ; first.Cmp(last) <= 0; first.Add(first, big.NewInt(1)) {
		if x := fromInt(new(big.Int).Mul(first, by), -places); n.takes(x) {
			out = append(out, x)
		}
	}
	return out, true
}

// step is the whole number that all steps together come to for whole numbers, nil if it is 1.
func (n *numberRule) step() *big.Int {
	all := big.NewInt(1)
	for _, s := range n.steps {
		one := s.scaled(max(-s.exp, 0)) // the smallest whole multiple of k/10^n is k/gcd(k, 10^n)
		if s.exp < 0 {
			ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-s.exp)), nil)
			one.Div(one, new(big.Int).GCD(nil, nil, one, ten))
		}
		all.Div(new(big.Int).Mul(all, one), new(big.Int).GCD(nil, nil, all, one))
	}
	if all.IsInt64() && all.Int64() == 1 {
		return nil
	}
	return all
}

// stepped is the whole numbers of a form that a step divides.
func (c *compiler) stepped(f *form, n *numberRule, step *big.Int) *grammar.Expr {
	b, d := c.b, digits{c.b}
	low, high := n.min.least(), n.max.most()
	any := c.without(f, number, d.integers(low, high))
	if !step.IsInt64() || step.Int64() > mostRemainder {
		c.lacksStep(f)
		return any
	}
	m := int(step.Int64())
	for k, power := 1, 10; k <= 4; k, power = k+1, power*10 {
		if power%m != 0 {
			continue
		}
		var last, short []string // the last k digits; all of those that have no more
		for x := 0; x < power; x += m {
			short, last = append(short, strconv.Itoa(x)), append(last, fmt.Sprintf("%0*d", k, x))
		}
		grid := b.Or(b.Choice(short...), b.Seq(d.class('1', '9'), d.some(0, mostDigits), b.Choice(last...)))
		return c.without(f, number, b.And(d.integers(low, high), b.Seq(b.Optional(b.Literal("-")), grid)))
	}
	if excluded := slices.ContainsFunc(f.rules, func(s *rule) bool { return len(s.not) > 0 }); high == nil && !excluded {
		switch {
		case low == nil:
			return b.Or(b.Literal("0"), b.Seq(b.Optional(b.Literal("-")), c.divisible(m)))
		case low.Sign() == 0:
			return b.Or(b.Literal("0"), c.divisible(m))
		case low.Sign() > 0 && low.Cmp(step) <= 0:
			return c.divisible(m)
		}
	}
	c.lacksStep(f)
	return any
}

// divisible is the positive whole numbers that m divides: a rule for each remainder of what was written.
func (c *compiler) divisible(m int) *grammar.Expr {
	if e := c.steps[m]; e != nil {
		return e
	}
	b := c.b
	rules := make([]*grammar.Rule, m)
	for i := range rules {
		rules[i] = b.Rule("multiple")
	}
	byRemainder := func(from int, first byte) *grammar.Expr {
		alts := map[int]*grammar.Set{}
		for x := first; x <= '9'; x++ {
			to := (from*10 + int(x-'0')) % m
			if alts[to] == nil {
				alts[to] = &grammar.Set{}
			}
			alts[to].Add(x, x)
		}
		var list []*grammar.Expr
		for to, s := range alts {
			list = append(list, b.Seq(b.Byte(*s), b.Ref(rules[to])))
		}
		return b.Or(list...)
	}
	for i := range rules {
		e := byRemainder(i, '0')
		if i == 0 {
			e = b.Optional(e)
		}
		b.Define(rules[i], e)
	}
	e := byRemainder(0, '1')
	c.steps[m] = e
	return e
}

// grid is the multiples of a step that divides 1 or is a power of ten, nil for others.
func (d digits) grid(step decimal) *grammar.Expr {
	b := d.b
	sign := b.Optional(b.Literal("-"))
	if step.digits == "1" && step.exp < 0 {
		return b.Seq(sign, d.from("0", ""), b.Optional(b.Seq(b.Literal("."), d.some(1, -step.exp), d.zeros())))
	}
	one := decimal{digits: "1"}
	if step.compare(one) > 0 || !one.multipleOf(step) {
		return nil
	}
	var fractions []string
	for x := new(big.Int); len(fractions) <= mostFractions; x.Add(x, step.scaled(-step.exp)) {
		y := fromInt(x, step.exp)
		if y.compare(one) >= 0 {
			break
		}
		if _, frac := y.parts(); frac != "" {
			fractions = append(fractions, frac)
		}
	}
	if len(fractions) > mostFractions {
		return nil
	}
	behind := b.Or(b.Seq(b.Choice(fractions...), d.zeros()), b.Repeat(d.class('0', '0'), 1, mostDigits))
	return b.Seq(sign, d.from("0", ""), b.Optional(b.Seq(b.Literal("."), behind)))
}
