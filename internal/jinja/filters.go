package jinja

import (
	"html"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filter is a filter's function: v|name(args). It accounts for its own work.
type filter func(r *renderer, v Value, a *args) Value

// filterNamed is the filter of that name. An unknown one fails when it is applied and not before: published templates keep
// filters of other programs behind conditions that are never true here.
func filterNamed(name string) filter {
	if f := filters[name]; f != nil {
		return f
	}
	return func(r *renderer, _ Value, _ *args) Value {
		r.fail("no filter named '%s'", name)
		return nil
	}
}

var filters map[string]filter

func init() {
	filters = map[string]filter{
		"abs":            absFilter,
		"attr":           attrFilter,
		"capitalize":     textFilter(capitalize),
		"center":         centerFilter,
		"count":          lengthFilter,
		"d":              defaultFilter,
		"default":        defaultFilter,
		"e":              escapeFilter,
		"escape":         escapeFilter,
		"filesizeformat": fileSizeFilter,
		"float":          floatFilter,
		"forceescape":    func(r *renderer, v Value, _ *args) Value { return Markup(r.escapeHTML(r.str(v))) },
		"format":         formatFilter,
		"indent":         indentFilter,
		"int":            intFilter,
		"length":         lengthFilter,
		"lower":          textFilter(lower),
		"pprint":         prettyFilter,
		"replace":        replaceFilter,
		"round":          roundFilter,
		"safe":           func(r *renderer, v Value, _ *args) Value { return Markup(r.str(v)) },
		"string": func(r *renderer, v Value, a *args) Value {
			a.atMost(r, 0)
			return like(v, r.str(v))
		},
		"striptags": func(r *renderer, v Value, a *args) Value {
			a.atMost(r, 0)
			s := r.str(v)
			r.spend(len(s))
			r.checkSize(len(s))
			return r.stripTags(s)
		},
		"title":     textFilter(titleFilter),
		"tojson":    tojsonFilter,
		"trim":      trimFilter,
		"truncate":  truncateFilter,
		"upper":     textFilter(upper),
		"urlencode": urlencodeFilter,
		"wordcount": wordcountFilter,
		"xmlattr":   xmlattrFilter,
		"batch":     batchFilter,
		"dictsort":  dictsortFilter,
		"first":     firstFilter,
		"groupby":   groupbyFilter,
		"items":     itemsFilter,
		"join":      joinFilter,
		"last":      lastFilter,
		"list": func(r *renderer, v Value, _ *args) Value {
			items := r.iterate(v)
			r.made(16 * len(items))
			return &List{slices.Clone(items)}
		},
		"map":        mapFilter,
		"max":        extremeFilter(1),
		"min":        extremeFilter(-1),
		"reject":     selectFilter(false, false),
		"rejectattr": selectFilter(false, true),
		"reverse":    reverseFilter,
		"select":     selectFilter(true, false),
		"selectattr": selectFilter(true, true),
		"slice":      sliceFilter,
		"sort":       sortFilter,
		"sum":        sumFilter,
		"unique":     uniqueFilter,
	}
}

// textFilter makes a filter from a function that maps text rune by rune. Markup stays Markup.
func textFilter(f func(string) string) filter {
	return func(r *renderer, v Value, a *args) Value {
		a.atMost(r, 0)
		return like(v, r.mapText(r.str(v), f))
	}
}

func tojsonFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 4, "ensure_ascii", "indent", "separators", "sort_keys")
	d := &dumper{r: r, itemSep: ", ", kSep: ": "}
	d.ascii = truth(a.get(0, "ensure_ascii", false))
	d.sort = truth(a.get(3, "sort_keys", false))
	if indent := a.get(1, "indent", nil); indent != nil {
		d.pretty, d.itemSep = true, ","
		if s, ok := asString(indent); ok {
			d.indent = s
		} else {
			d.indent = strings.Repeat(" ", r.width(indent))
		}
	}
	if sep := a.get(2, "separators", nil); sep != nil {
		pair := r.iterate(sep)
		if len(pair) != 2 {
			r.fail("separators must be a pair")
		}
		d.itemSep, d.kSep = r.str(pair[0]), r.str(pair[1])
	}
	d.dump(v, 0)
	r.checkSize(d.b.Len())
	return d.b.String()
}

func absFilter(r *renderer, v Value, _ *args) Value {
	if f, ok := v.(float64); ok {
		return math.Abs(f)
	}
	z, ok := asBig(v)
	if !ok {
		r.fail("bad operand type for abs(): '%s'", typeName(v))
	}
	r.number(v)
	return normInt(new(big.Int).Abs(z))
}

func attrFilter(r *renderer, v Value, a *args) Value {
	name := r.str(a.need(r, 0, "name"))
	r.made(len(name))
	if x, ok := r.method(v, name); ok {
		return x
	}
	return missingAttr(v, name)
}

func centerFilter(r *renderer, v Value, a *args) Value {
	return alignMethod('^')(r, r.str(v), &args{pos: []Value{a.get(0, "width", int64(80))}})
}

func lengthFilter(r *renderer, v Value, _ *args) Value {
	if s, ok := asString(v); ok {
		r.scanned(len(s))
	}
	n, ok := length(v)
	if !ok {
		r.fail("object of type '%s' has no len()", typeName(v))
	}
	return n
}

func defaultFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 2, "default_value", "boolean")
	_, missing := v.(undefined)
	if missing || truth(a.get(1, "boolean", false)) && !truth(v) {
		return a.get(0, "default_value", "")
	}
	return v
}

func escapeFilter(r *renderer, v Value, _ *args) Value {
	if m, ok := v.(Markup); ok {
		return m
	}
	return Markup(r.escapeHTML(r.str(v)))
}

func formatFilter(r *renderer, v Value, a *args) Value {
	if len(a.named) == 0 {
		return like(v, r.formatPercent(r.str(v), Tuple(a.pos)))
	}
	if len(a.pos) > 0 {
		r.fail("can't handle positional and keyword arguments at the same time")
	}
	return like(v, r.formatPercent(r.str(v), r.newDict(a)))
}

func trimFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 1, "chars")
	strip := &args{}
	if c := a.get(0, "chars", nil); c != nil {
		strip.pos = []Value{c}
	}
	return r.likeAll(v, stripMethod(true, true)(r, r.str(v), strip))
}

func replaceFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 3, "old", "new", "count")
	n, ok := asInt(a.get(2, "count", nil))
	if !ok {
		n = -1
	}
	return r.replaceText(r.str(v), r.str(a.need(r, 0, "old")), r.str(a.need(r, 1, "new")), n)
}

func indentFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 3, "width", "first", "blank")
	s, ok := asString(v)
	if !ok {
		r.mustExist(v)
		r.fail("cannot indent '%s'", typeName(v))
	}
	width := a.get(0, "width", int64(4))
	by, ok := asString(width)
	if !ok {
		by = strings.Repeat(" ", r.width(width))
	}
	blank := truth(a.get(2, "blank", false))
	r.mapped(len(s))
	lines := splitLines(s+"\n", false)
	r.spend(2 * len(lines))
	r.made(len(s) + len(by)*len(lines))
	for i, line := range lines {
		if i > 0 && (blank || line != "") {
			lines[i] = by + line
		}
	}
	out := strings.Join(lines, "\n")
	if truth(a.get(1, "first", false)) {
		out = by + out
	}
	return like(v, out)
}

// parseInt reads an integer as Python's int(s, base) does.
func parseInt(s string, base int) (Value, bool) {
	s = strings.TrimFunc(s, isSpace)
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" || strings.HasPrefix(digits, "_") || strings.HasSuffix(digits, "_") ||
		strings.Contains(digits, "__") || len(digits) > maxDigits {
		return nil, false
	}
	lower := strings.ToLower(digits)
	for b, prefix := range map[int]string{2: "0b", 8: "0o", 16: "0x"} {
		if base == b && strings.HasPrefix(lower, prefix) {
			digits = digits[2:]
		}
	}
	z, ok := new(big.Int).SetString(strings.ReplaceAll(digits, "_", ""), base)
	if !ok {
		return nil, false
	}
	if s[0] == '-' {
		z.Neg(z)
	}
	return normInt(z), true
}

// parseFloat reads a float as Python's float(s) does.
func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	if strings.ContainsAny(s, "xXpP") || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || math.IsInf(f, 0)
}

func intFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 2, "default", "base")
	def := a.get(0, "default", int64(0))
	base, ok := asInt(a.get(1, "base", int64(10)))
	if !ok || base < 2 || base > 36 {
		base = 10
	}
	switch x := v.(type) {
	case undefined:
		r.failUndefined(x)
	case string, Markup:
		s, _ := asString(x)
		r.mapped(len(s))
		if i, ok := parseInt(s, int(base)); ok {
			return i
		}
		if f, ok := parseFloat(s); ok && f-f == 0 {
			return truncFloat(f)
		}
		return def
	case float64:
		if x-x != 0 {
			if x == x {
				r.fail("cannot convert float infinity to integer")
			}
			return def
		}
		return truncFloat(x)
	}
	if z, ok := asBig(v); ok {
		return normInt(z)
	}
	return def
}

func truncFloat(f float64) Value {
	z, _ := big.NewFloat(f).Int(nil)
	return normInt(z)
}

func floatFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 1, "default")
	if f, ok := r.toFloat(v); ok {
		return f
	}
	return a.get(0, "default", 0.0)
}

// toFloat is Python's float(v); ok is false where that raises ValueError or TypeError.
func (r *renderer) toFloat(v Value) (f float64, ok bool) {
	r.mustExist(v)
	if s, ok := asString(v); ok {
		r.mapped(len(s))
		return parseFloat(s)
	}
	r.number(v)
	return asFloat(v)
}

// roundSteps is what rounding to hundreds of digits takes.
const roundSteps = 64

func roundFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 2, "precision", "method")
	r.number(v)
	prec, ok := asInt(a.get(0, "precision", int64(0)))
	method := r.str(a.get(1, "method", "common"))
	x, isNumber := asFloat(v)
	if !ok || !isNumber {
		r.fail("type %s doesn't define round", typeName(v))
	}
	prec = min(max(prec, -400), 400)
	scale := math.Pow(10, float64(prec))
	switch method {
	case "ceil":
		return math.Ceil(x*scale) / scale
	case "floor":
		return math.Floor(x*scale) / scale
	case "common":
	default:
		r.fail("method must be common, ceil or floor")
	}
	if z, isInt := asBig(v); isInt { // round(int, n) stays an int
		if prec >= 0 {
			return normInt(z)
		}
		return truncFloat(math.RoundToEven(x*scale) / scale)
	}
	if prec < 0 {
		return math.RoundToEven(x*scale) / scale
	}
	if x-x != 0 {
		return x
	}
	r.spend(roundSteps)
	f, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', int(prec), 64), 64) // its own output always parses
	return f
}

// titleFilter upper-cases what follows blanks and opening brackets; unlike str.title, not what follows an apostrophe.
func titleFilter(s string) string {
	start := true
	return strings.Map(func(c rune) rune {
		if isSpace(c) || strings.ContainsRune("-({[<", c) {
			start = true
			return c
		}
		if start {
			start = false
			return unicode.ToUpper(c)
		}
		return unicode.ToLower(c)
	}, s)
}

// stripTags drops tags and comments, joins blanks and resolves entities.
func (r *renderer) stripTags(s string) string {
	var kept strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			break
		}
		skip, mark := 1, ">"
		if strings.HasPrefix(s[i:], "<!--") {
			skip, mark = 4, "-->"
		}
		end := strings.Index(s[i+skip:], mark)
		if end < 0 {
			break
		}
		kept.WriteString(s[:i])
		s = s[i+skip+end+len(mark):]
	}
	kept.WriteString(s)
	r.look()
	words := strings.FieldsFunc(kept.String(), isSpace)
	r.look()
	s = strings.Join(words, " ")
	r.look()
	return html.UnescapeString(s)
}

// fileSizeFilter prints a number of bytes in decimal or binary units.
func fileSizeFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 1, "binary")
	n, ok := r.toFloat(v)
	if !ok {
		r.fail("could not convert %s to float", typeName(v))
	}
	base, unit := 1000.0, "B"
	if truth(a.get(0, "binary", false)) {
		base, unit = 1024, "iB"
	}
	switch {
	case n == 1:
		return "1 Byte"
	case n != n:
		r.fail("cannot convert float NaN to integer")
	case n < base:
		return r.str(truncFloat(n)) + " Bytes"
	}
	units := "kMGTPEZY"
	if unit == "iB" {
		units = "KMGTPEZY"
	}
	i, top := 0, base*base
	for i < len(units)-1 && n >= top {
		i++
		top *= base
	}
	return strconv.FormatFloat(base*n/top, 'f', 1, 64) + " " + units[i:i+1] + unit
}

// prettyFilter prints as pprint does what fits one line of 80 characters. It refuses the rest: how pprint breaks lines is
// not reproduced.
func prettyFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 0)
	s := r.repr(r.keysSorted(v, 0))
	if utf8.RuneCountInString(s) > 80 {
		r.fail("pprint of more than one line is not supported")
	}
	return s
}

// keysSorted is v with the keys of all its dicts in order.
func (r *renderer) keysSorted(v Value, depth int) Value {
	r.step()
	if depth > maxValueDepth {
		tooDeep()
	}
	switch x := v.(type) {
	case *Dict:
		d := NewDict()
		r.sortBy(x.Len(), func(i int) Value { return x.entries[i].key }, func(order []int) {
			for _, i := range order {
				e := x.entries[i]
				r.spend(entrySteps)
				d.set(e.key, e.hash, r.keysSorted(e.val, depth+1))
			}
		})
		return d
	case *List:
		return &List{r.allSorted(x.Items, depth)}
	case Tuple:
		return Tuple(r.allSorted(x, depth))
	}
	return v
}

func (r *renderer) allSorted(items []Value, depth int) []Value {
	r.made(16 * len(items))
	out := make([]Value, len(items))
	for i, e := range items {
		out[i] = r.keysSorted(e, depth+1)
	}
	return out
}

func truncateFilter(r *renderer, v Value, a *args) Value {
	a.atMost(r, 4, "length", "killwords", "end", "leeway")
	s, end := r.str(v), r.str(a.get(2, "end", "..."))
	r.made(len(s) + len(end))
	n := r.width(a.get(0, "length", int64(255)))
	leeway := 5
	if l := a.get(3, "leeway", nil); l != nil {
		leeway = r.width(l)
	}
	tail := utf8.RuneCountInString(end)
	if n < tail {
		r.fail("expected length >= %d, got %d", tail, n)
	}
	if utf8.RuneCountInString(s) <= n+leeway {
		return s
	}
	s = firstRunes(s, n-tail)
	if !truth(a.get(1, "killwords", false)) {
		if i := strings.LastIndexByte(s, ' '); i >= 0 {
			s = s[:i]
		}
	}
	return s + end
}

func wordcountFilter(r *renderer, v Value, _ *args) Value {
	s := r.str(v)
	r.spend(len(s) >> 1) // a word takes 16 bytes
	n, inside := 0, false
	for _, c := range s {
		was := inside
		if inside = c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c); inside && !was {
			n++
		}
	}
	return int64(n)
}

func urlencodeFilter(r *renderer, v Value, _ *args) Value {
	d, ok := v.(*Dict)
	quote := func(v Value, safe string) string {
		s := r.str(v)
		r.checkSize(3 * len(s))
		r.spend(len(s))
		return quoteURL(s, safe)
	}
	if _, isText := asString(v); isText || !ok && !isIterable(v) {
		return quote(v, "/")
	}
	var pairs []Value
	if ok {
		pairs = r.pairs(d)
	} else {
		pairs = r.iterate(v)
	}
	r.made(16 * len(pairs))
	parts := make([]string, len(pairs))
	for i, p := range pairs {
		r.spend(4)
		kv := r.iterate(p)
		if len(kv) != 2 {
			r.fail("urlencode needs pairs")
		}
		enc := func(v Value) string { return strings.ReplaceAll(quote(v, ""), "%20", "+") }
		parts[i] = enc(kv[0]) + "=" + enc(kv[1])
	}
	return r.joinStrings(parts, "&")
}

func quoteURL(s, safe string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || isDecimal(c) || strings.IndexByte("_.-~"+safe, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

func xmlattrFilter(r *renderer, v Value, a *args) Value {
	d, ok := v.(*Dict)
	if !ok {
		r.fail("'%s' object has no attribute 'items'", typeName(v))
	}
	var parts []string
	size := 0
	for _, e := range d.entries {
		r.spend(4)
		if _, missing := e.val.(undefined); missing || e.val == nil {
			continue
		}
		k := r.str(e.key)
		r.walked(len(k))
		if strings.ContainsAny(k, " \t\n\f\r\v/>=") {
			r.fail("invalid character in attribute name: %s", r.repr(e.key))
		}
		p := r.escapeHTML(k) + `="` + r.escapeHTML(r.str(e.val)) + `"`
		size += len(p)
		r.made(len(p))
		r.checkSize(size)
		parts = append(parts, p)
	}
	out := r.joinStrings(parts, " ")
	if out != "" && truth(a.get(0, "autospace", true)) {
		out = " " + out
	}
	return out
}
