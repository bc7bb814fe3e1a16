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
func str(v Value) string {
	switch x := v.(type) {
	case string:
		return x
	case Markup:
		return string(x)
	case undefined:
		return ""
	}
	return repr(v)
}

// repr is Python's repr(v).
func repr(v Value) string {
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
		return floatRepr(x)
	}
	var b strings.Builder
	writeRepr(&b, v, 0)
	return b.String()
}

func writeRepr(b *strings.Builder, v Value, depth int) {
	if depth > maxValueDepth {
		tooDeep()
	}
	if b.Len() > maxRepr {
		panic(&Error{Kind: Limit, Msg: fmt.Sprintf("value prints as more than %d bytes", maxRepr)})
	}
	switch x := v.(type) {
	case string:
		quote(b, x)
	case Markup:
		b.WriteString("Markup(")
		quote(b, string(x))
		b.WriteByte(')')
	case *big.Int:
		b.WriteString(x.String())
	case *List:
		b.WriteByte('[')
		writeReprs(b, x.Items, depth)
		b.WriteByte(']')
	case Tuple:
		b.WriteByte('(')
		writeReprs(b, x, depth)
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
			writeRepr(b, e.key, depth+1)
			b.WriteString(": ")
			writeRepr(b, e.val, depth+1)
		}
		b.WriteByte('}')
	case view:
		b.WriteString(x.kind + "([")
		writeReprs(b, x.items, depth)
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
		writeRepr(b, x.attrs, depth+1)
		b.WriteByte('>')
	case *macro:
		b.WriteString("<Macro " + repr(x.def.name) + ">")
	case *loopState:
		fmt.Fprintf(b, "<LoopContext %d/%d>", x.index+1, len(x.items))
	case nil, bool, int64, float64:
		b.WriteString(repr(x))
	default: // the reference prints an address here
		b.WriteString("<" + typeName(v) + " object>")
	}
}

func writeReprs(b *strings.Builder, items []Value, depth int) {
	for i, e := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		writeRepr(b, e, depth+1)
	}
}

// quote writes a string as Python's repr does: single quotes unless only double quotes avoid an escape, and everything
// str.isprintable refuses as an escape.
func quote(b *strings.Builder, s string) {
	q := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		q = '"'
	}
	b.WriteRune(q)
	for _, r := range s {
		switch {
		case r == q || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			fmt.Fprintf(b, `\U%08x`, r)
		}
	}
	b.WriteRune(q)
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
