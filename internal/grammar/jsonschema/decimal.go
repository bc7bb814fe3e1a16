package jsonschema

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// decimal is a number as it is written: digits times ten to the exp. Of zero there are no digits; else the first and the last one
// are none.
type decimal struct {
	neg    bool
	digits string
	exp    int
}

// maxExponent bounds the exponents of numbers in schemas, so that they can be written out. Values have none above what float64
// has, which package schema sees to, and are 0 if they are nearer to it than that has.
const maxExponent = 400

// newDecimal reads a number of JSON. It reports false if its exponent is beyond what float64 has.
func newDecimal(text string) (decimal, bool) {
	var d decimal
	text, d.neg = strings.CutPrefix(text, "-")
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, _ := strconv.Atoi(text[i+1:]) // of what is beyond an int it is the first or last one
		text, d.exp = text[:i], max(e, math.MinInt32)
	}
	whole, fraction, _ := strings.Cut(text, ".")
	d.exp -= len(fraction)
	d.digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(d.digits, "0")
	d.exp += len(d.digits) - len(trimmed)
	if d.digits = trimmed; d.digits == "" {
		return decimal{}, true
	}
	if d.exp+len(d.digits) < -maxExponent {
		return decimal{}, false
	}
	return d, d.exp >= -maxExponent && d.exp+len(d.digits) <= maxExponent
}

func (d decimal) isInteger() bool { return d.exp >= 0 }

// parts are the digits before and after the point. A whole number has none after it.
func (d decimal) parts() (whole, fraction string) {
	switch n := len(d.digits) + d.exp; {
	case d.digits == "":
		return "0", ""
	case d.exp >= 0:
		return d.digits + strings.Repeat("0", d.exp), ""
	case n <= 0:
		return "0", strings.Repeat("0", -n) + d.digits
	default:
		return d.digits[:n], d.digits[n:]
	}
}

// String writes the number out, without an exponent.
func (d decimal) String() string {
	whole, fraction := d.parts()
	if fraction != "" {
		whole += "." + fraction
	}
	if d.neg {
		whole = "-" + whole
	}
	return whole
}

func (d decimal) compare(o decimal) int {
	switch {
	case d.neg != o.neg:
		if d.neg {
			return -1
		}
		return 1
	case d.neg:
		d, o = o, d
	}
	if d.digits == "" || o.digits == "" {
		return cmp.Compare(len(d.digits), len(o.digits))
	}
	if c := cmp.Compare(d.exp+len(d.digits), o.exp+len(o.digits)); c != 0 {
		return c
	}
	return strings.Compare(d.digits, o.digits)
}

// scaled is the number times ten to the n, which must make it whole.
func (d decimal) scaled(n int) *big.Int {
	x, _ := new(big.Int).SetString("0"+d.digits+strings.Repeat("0", d.exp+n), 10)
	if d.neg {
		x.Neg(x)
	}
	return x
}

// multipleOf tells whether the number is a whole number of times the other, which is positive.
func (d decimal) multipleOf(o decimal) bool {
	if d.digits == "" || d.exp < o.exp { // its last digit is none of the other's multiples
		return d.digits == ""
	}
	return new(big.Int).Rem(d.scaled(-o.exp), o.scaled(-o.exp)).Sign() == 0
}

// fromInt is x times ten to the exp.
func fromInt(x *big.Int, exp int) decimal {
	d, _ := newDecimal(x.String())
	if d.digits != "" {
		d.exp += exp
	}
	return d
}
