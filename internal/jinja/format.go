package jinja

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is a parsed format directive: of the % operator and, in its own grammar, of str.format.
type spec struct {
	fill      rune
	align     byte // '<', '>', '^', '=' or 0
	sign      byte // '+', ' ' or 0
	alternate bool // "#"
	zero      bool
	comma     byte // thousands separator or 0
	width     int
	precision int // -1 unset
	verb      byte
}

const maxFormatWidth = 1 << 16

// formatPercent is the % operator of strings.
func (r *renderer) formatPercent(f string, arg Value) string {
	values, isTuple := arg.(Tuple)
	if !isTuple {
		values = Tuple{arg}
	}
	dict, _ := arg.(*Dict)
	var b strings.Builder
	used := 0
	for {
		r.step()
		i := strings.IndexByte(f, '%')
		if i < 0 {
			break
		}
		r.made(i)
		r.checkSize(b.Len() + i)
		b.WriteString(f[:i])
		f = f[i+1:]
		var v Value
		var sp spec
		named := false
		if strings.HasPrefix(f, "(") {
			end := strings.IndexByte(f, ')')
			if end < 0 || dict == nil {
				r.fail("format requires a mapping")
			}
			r.scanned(end)
			v = r.item(dict, f[1:end])
			r.mustExist(v)
			f, named, used = f[end+1:], true, len(values)
		}
		next := func() Value {
			if used >= len(values) {
				r.fail("not enough arguments for format string")
			}
			used++
			return values[used-1]
		}
		f = r.percentSpec(f, &sp, next)
		if sp.verb == '%' {
			b.WriteByte('%')
			continue
		}
		if !named {
			v = next()
		}
		text := r.formatValue(v, sp)
		r.made(len(text))
		r.checkSize(b.Len() + len(text))
		b.WriteString(text)
	}
	r.made(len(f))
	b.WriteString(f)
	if used < len(values) && (isTuple || dict == nil) {
		if _, isList := arg.(*List); !isList {
			r.fail("not all arguments converted during string formatting")
		}
	}
	r.checkSize(b.Len())
	return b.String()
}

// percentSpec reads flags, width, precision and verb, and returns what follows.
func (r *renderer) percentSpec(f string, sp *spec, star func() Value) string {
	sp.fill, sp.precision, sp.align = ' ', -1, '>'
	for f != "" && strings.IndexByte("#0- +", f[0]) >= 0 {
		switch f[0] {
		case '#':
			sp.alternate = true
		case '0':
			sp.zero = true
		case '-':
			sp.align = '<'
		case '+', ' ':
			if sp.sign != '+' {
				sp.sign = f[0]
			}
		}
		f = f[1:]
	}
	size := func() int {
		if strings.HasPrefix(f, "*") {
			f = f[1:]
			n, ok := asInt(star())
			if !ok || n < 0 || n > maxFormatWidth {
				r.fail("* wants int")
			}
			return int(n)
		}
		n := 0
		n, f = r.formatSize(f)
		return n
	}
	sp.width = size()
	if strings.HasPrefix(f, ".") {
		f = f[1:]
		sp.precision = size()
	}
	f = strings.TrimLeft(f, "hlL")
	if f == "" {
		r.fail("incomplete format")
	}
	sp.verb = f[0]
	if sp.align == '>' && sp.zero && strings.IndexByte("diouxXeEfFgG", sp.verb) >= 0 {
		sp.fill, sp.align = '0', '='
	}
	return f[1:]
}

// formatSize reads a width or a precision, 0 if there is none, and returns what follows.
func (r *renderer) formatSize(f string) (int, string) {
	n := digitsLen(f, isDecimal)
	size, err := strconv.Atoi("0" + f[:n])
	if err != nil || size > maxFormatWidth {
		r.fail("format width too large")
	}
	return size, f[n:]
}

func (r *renderer) formatValue(v Value, sp spec) string {
	switch sp.verb {
	case 's', 'r', 'a':
		s := r.str(v)
		if sp.verb != 's' {
			s = r.repr(v)
		}
		if sp.precision >= 0 {
			r.walked(min(len(s), utf8.UTFMax*sp.precision))
			s = firstRunes(s, sp.precision)
		}
		return r.pad("", s, sp)
	case 'c':
		if s, ok := asString(v); ok && len(s) <= utf8.UTFMax && utf8.RuneCountInString(s) == 1 {
			return r.pad("", s, sp)
		}
		if n, ok := asInt(v); ok && n >= 0 && n <= utf8.MaxRune {
			return r.pad("", string(rune(n)), sp)
		}
		r.fail("%%c requires int or char")
	case 'd', 'i', 'u', 'o', 'x', 'X', 'b':
		return r.formatInt(v, sp)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		x, ok := asFloat(v)
		if !ok {
			r.fail("must be real number, not %s", typeName(v))
		}
		return r.formatFloat(x, sp)
	}
	r.fail("unsupported format character '%c'", sp.verb)
	return ""
}

func (r *renderer) formatInt(v Value, sp spec) string {
	z, ok := asBig(v)
	if f, isFloat := v.(float64); isFloat && (sp.verb == 'd' || sp.verb == 'i' || sp.verb == 'u') && f-f == 0 {
		z, _ = big.NewFloat(f).Int(nil)
		ok = true
	}
	if !ok {
		r.fail("%%%c format: a real number is required, not %s", sp.verb, typeName(v))
	}
	base, prefix := 10, ""
	switch sp.verb {
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0"+string(sp.verb)
	case 'b':
		base, prefix = 2, "0b"
	}
	r.spend(z.BitLen() / 8)
	r.made(max(sp.precision, 0))
	digits := new(big.Int).Abs(z).Text(base)
	if sp.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if n := sp.precision - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	if !sp.alternate {
		prefix = ""
	}
	return r.pad(signOf(z.Sign() < 0, sp)+prefix, group(digits, sp.comma), sp)
}

func (r *renderer) formatFloat(x float64, sp spec) string {
	verb := sp.verb
	prec := sp.precision
	if prec < 0 {
		prec = 6
	}
	r.spend(roundSteps)
	r.made(prec)
	neg := x < 0 || x == 0 && 1/x < 0
	if neg {
		x = -x
	}
	var s string
	switch {
	case x-x != 0: // NaN or infinite
		s = floatRepr(x)
	case verb == 'g' || verb == 'G':
		r.spend(roundSteps) // written twice
		s = strconv.FormatFloat(x, 'e', max(prec-1, 0), 64)
		exp, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:]) // FormatFloat always writes an exponent here
		mant := s[:strings.IndexByte(s, 'e')]
		if exp < -4 || exp >= max(prec, 1) {
			s = trimZeros(mant, sp.alternate) + s[len(mant):]
		} else {
			s = trimZeros(strconv.FormatFloat(x, 'f', max(prec, 1)-1-exp, 64), sp.alternate)
		}
	default:
		s = strconv.FormatFloat(x, verb|0x20, prec, 64)
	}
	if verb == 'E' || verb == 'F' || verb == 'G' {
		s = strings.ToUpper(s)
	}
	if whole, frac, ok := strings.Cut(s, "."); ok {
		s = group(whole, sp.comma) + "." + frac
	} else {
		s = group(s, sp.comma)
	}
	return r.pad(signOf(neg, sp), s, sp)
}

func trimZeros(s string, keep bool) string {
	if keep || !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

func signOf(neg bool, sp spec) string {
	if neg {
		return "-"
	}
	if sp.sign == '+' || sp.sign == ' ' {
		return string(sp.sign)
	}
	return ""
}

// group puts a separator between thousands.
func group(digits string, sep byte) string {
	if sep == 0 {
		return digits
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

// pad fills prefix+s up to the width; with '=' the fill goes between them.
func (r *renderer) pad(prefix, s string, sp spec) string {
	r.spend(4)
	r.scanned(len(s))
	n := sp.width - utf8.RuneCountInString(prefix) - utf8.RuneCountInString(s)
	if n <= 0 {
		if prefix == "" {
			return s
		}
		n = 0
	}
	fill := string(sp.fill)
	r.made(len(prefix) + len(s) + n*len(fill))
	switch sp.align {
	case '<':
		return prefix + s + strings.Repeat(fill, n)
	case '^':
		return strings.Repeat(fill, n/2) + prefix + s + strings.Repeat(fill, n-n/2)
	case '=':
		return prefix + strings.Repeat(fill, n) + s
	}
	return strings.Repeat(fill, n) + prefix + s
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// formatBraces is str.format.
func (r *renderer) formatBraces(f string, a *args) string {
	r.mapped(len(f))
	var b strings.Builder
	auto := 0
	for i := 0; i < len(f); i++ {
		switch c := f[i]; {
		case (c == '{' || c == '}') && i+1 < len(f) && f[i+1] == c:
			b.WriteByte(c)
			i++
		case c == '}':
			r.fail("single '}' encountered in format string")
		case c == '{':
			end := closingBrace(f, i)
			if end < 0 {
				r.fail("expected '}' before end of string")
			}
			r.spend(4)
			text := r.formatField(f[i+1:end], a, &auto)
			r.made(len(text))
			r.checkSize(b.Len() + len(text))
			b.WriteString(text)
			i = end
		default:
			b.WriteByte(c)
		}
	}
	r.checkSize(b.Len())
	return b.String()
}

// closingBrace finds the brace that ends the field opened at i.
func closingBrace(f string, i int) int {
	depth := 0
	for ; i < len(f); i++ {
		switch f[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// formatField formats one replacement field: name[.attr|[key]]…[!conversion][:spec].
func (r *renderer) formatField(field string, a *args, auto *int) string {
	field, specText, _ := strings.Cut(field, ":")
	if strings.ContainsAny(specText, "{}") {
		r.fail("nested replacement fields are not supported")
	}
	field, conv, _ := strings.Cut(field, "!")
	n := strings.IndexAny(field, ".[")
	if n < 0 {
		n = len(field)
	}
	v := r.formatArg(field[:n], a, auto)
	for rest := field[n:]; rest != ""; {
		if rest[0] == '[' {
			r.step()
			key, tail, ok := strings.Cut(rest[1:], "]")
			if !ok {
				r.fail("missing ']' in format string")
			}
			if i, err := strconv.ParseInt(key, 10, 64); err == nil {
				v = r.item(v, i)
			} else {
				v = r.item(v, key)
			}
			rest = tail
			continue
		}
		rest = strings.TrimPrefix(rest, ".")
		n := strings.IndexAny(rest, ".[")
		if n < 0 {
			n = len(rest)
		}
		if n == 0 {
			r.fail("empty attribute in format string")
		}
		r.step()
		v = r.attr(v, rest[:n])
		rest = rest[n:]
	}
	switch conv {
	case "":
	case "s":
		v = r.str(v)
	case "r", "a":
		v = r.repr(v)
	default:
		r.fail("unknown conversion specifier '%s'", conv)
	}
	if specText == "" {
		return r.str(v)
	}
	return r.formatSpec(v, specText)
}

func (r *renderer) formatArg(name string, a *args, auto *int) Value {
	if name == "" {
		name = strconv.Itoa(*auto)
		*auto++
	}
	if i, err := strconv.Atoi(name); err == nil {
		if i < 0 || i >= len(a.pos) {
			r.fail("replacement index %d out of range for positional args", i)
		}
		return a.pos[i]
	}
	r.spend(len(a.named) >> 3)
	for _, k := range a.named {
		if k.name == name {
			r.scanned(len(name))
			return k.val
		}
	}
	r.fail("missing argument '%s' of format", name)
	return nil
}

// formatSpec applies a format specification: [[fill]align][sign][#][0][width][,][.precision][type].
func (r *renderer) formatSpec(v Value, s string) string {
	sp := spec{fill: ' ', precision: -1}
	if c, n := utf8.DecodeRuneInString(s); n < len(s) && strings.IndexByte("<>^=", s[n]) >= 0 {
		sp.fill, sp.align, s = c, s[n], s[n+1:]
	} else if strings.IndexByte("<>^=", s[0]) >= 0 {
		sp.align, s = s[0], s[1:]
	}
	take := func(set string) byte {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	sp.sign = take("+- ")
	sp.alternate = take("#") != 0
	if take("0") != 0 && sp.align == 0 {
		sp.fill, sp.align = '0', '='
	}
	sp.width, s = r.formatSize(s)
	sp.comma = take(",_")
	if take(".") != 0 {
		sp.precision, s = r.formatSize(s)
	}
	sp.verb = take("bcdeEfFgGnosxX%")
	if s != "" {
		r.fail("invalid format specifier")
	}
	return r.formatTyped(v, sp)
}

// formatTyped fills in what str.format takes from the value's type.
func (r *renderer) formatTyped(v Value, sp spec) string {
	_, isText := asString(v)
	_, isInt := asBig(v)
	_, isFloat := v.(float64)
	if _, isBool := v.(bool); isBool && sp.verb == 0 {
		v, isInt, isText = r.str(v), false, true
	}
	if sp.align == 0 {
		sp.align = '<'
		if isInt || isFloat {
			sp.align = '>'
		}
	}
	switch {
	case sp.verb == '%':
		f, _ := asFloat(v)
		sp.verb = 'f'
		sp.width--
		return r.formatFloat(f*100, sp) + "%"
	case sp.verb == 0 && isInt && sp.precision < 0:
		sp.verb = 'd'
	case sp.verb == 0 && isFloat && sp.precision >= 0:
		sp.verb = 'g'
	case sp.verb == 0 && isFloat:
		f := v.(float64)
		return r.pad(signOf(f < 0, sp), strings.TrimPrefix(floatRepr(f), "-"), sp)
	case sp.verb == 0:
		if !isText {
			r.fail("unsupported format string passed to %s", typeName(v))
		}
		sp.verb = 's'
	case isFloat && strings.IndexByte("bcdoxX", sp.verb) >= 0, isText != (sp.verb == 's'):
		r.fail("unknown format code '%c' for object of type '%s'", sp.verb, typeName(v))
	case sp.verb == 'n':
		sp.verb = 'd'
		if isFloat {
			sp.verb = 'g'
		}
	}
	return r.formatValue(v, sp)
}
