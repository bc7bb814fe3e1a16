package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// maxValueDepth bounds how deep a value may nest where it is walked: printed, compared, dumped or read from JSON.
const maxValueDepth = 300

// maxRepr bounds the printed form of one list or dict, in bytes: shared parts print again and again.
const maxRepr = 2 << 20

func tooDeep() {
	panic(&Error{Kind: Limit, Msg: fmt.Sprintf("value nested deeper than %d levels", maxValueDepth)})
}

// str is Python's str(v).
func (r *renderer) str(v Value) string {
	switch x := v.(type) {
	case string:
		return x
	case Markup:
		return string(x)
	case undefined:
		return ""
	}
	return r.repr(v)
}

// repr is Python's repr(v).
func (r *renderer) repr(v Value) string {
	r.step()
	switch x := v.(type) {
	case nil:
		return "None"
	case bool:
		if x {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		r.spend(4)
		return floatRepr(x)
	}
	var b strings.Builder
	r.writeRepr(&b, v, 0)
	return b.String()
}

// writeRepr prints a value, of which every part is a step: shared parts print again and again.
func (r *renderer) writeRepr(b *strings.Builder, v Value, depth int) {
	r.step()
	if depth > maxValueDepth {
		tooDeep()
	}
	if b.Len() > maxRepr {
		panic(&Error{Kind: Limit, Msg: fmt.Sprintf("value prints as more than %d bytes", maxRepr)})
	}
	switch x := v.(type) {
	case string:
		r.quote(b, x)
	case Markup:
		b.WriteString("Markup(")
		r.quote(b, string(x))
		b.WriteByte(')')
	case *big.Int:
		r.number(x)
		b.WriteString(x.String())
	case *List:
		b.WriteByte('[')
		r.writeReprs(b, x.Items, depth)
		b.WriteByte(']')
	case Tuple:
		b.WriteByte('(')
		r.writeReprs(b, x, depth)
		if len(x) == 1 {
			b.WriteByte(',')
		}
		b.WriteByte(')')
	case *Dict:
		b.WriteByte('{')
		for i, e := range x.entries {
			if i > 0 {
				b.WriteString(", ")
			}
			r.writeRepr(b, e.key, depth+1)
			b.WriteString(": ")
			r.writeRepr(b, e.val, depth+1)
		}
		b.WriteByte('}')
	case view:
		b.WriteString(x.kind + "([")
		r.writeReprs(b, x.items, depth)
		b.WriteString("])")
	case rangeValue:
		fmt.Fprintf(b, "range(%d, %d", x.start, x.stop)
		if x.step != 1 {
			fmt.Fprintf(b, ", %d", x.step)
		}
		b.WriteByte(')')
	case undefined:
		b.WriteString("Undefined")
	case *namespace:
		b.WriteString("<Namespace ")
		r.writeRepr(b, x.attrs, depth+1)
		b.WriteByte('>')
	case *macro:
		b.WriteString("<Macro " + r.repr(x.def.name) + ">")
	case *loopState:
		fmt.Fprintf(b, "<LoopContext %d/%d>", x.index+1, len(x.items))
	case nil, bool, int64, float64:
		b.WriteString(r.repr(x))
	default: // the reference prints an address here
		b.WriteString("<" + typeName(v) + " object>")
	}
}

func (r *renderer) writeReprs(b *strings.Builder, items []Value, depth int) {
	for i, e := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		r.writeRepr(b, e, depth+1)
	}
}

// quote writes a string as Python's repr does: single quotes unless only double quotes avoid an escape, and everything
// str.isprintable refuses as an escape.
func (r *renderer) quote(b *strings.Builder, s string) {
	r.mapped(len(s))
	q := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		q = '"'
	}
	b.WriteRune(q)
	for _, c := range s {
		switch {
		case c == q || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			r.step()
			writeHex(b, `\x`, c, 2)
		case c < 0x10000:
			r.step()
			writeHex(b, `\u`, c, 4)
		default:
			r.step()
			writeHex(b, `\U`, c, 8)
		}
	}
	b.WriteRune(q)
}

// writeHex writes an escape of so many digits.
func writeHex(b *strings.Builder, mark string, c rune, digits int) {
	b.WriteString(mark)
	for digits--; digits >= 0; digits-- {
		b.WriteByte("0123456789abcdef"[c>>(4*digits)&15])
	}
}

// floatRepr is Python's repr of a float: the shortest digits that read back, in scientific form from 1e16 and below 1e-4.
func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	e := strconv.FormatFloat(f, 'e', -1, 64)
	exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:]) // FormatFloat always writes an exponent here
	if f != 0 && (exp < -4 || exp >= 16) {
		return e
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
