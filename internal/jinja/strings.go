package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

type stringMethod func(r *renderer, s string, a *args) Value

// walking makes a method without arguments from a function that looks at text rune by rune, and maybe maps it to compare.
func walking(f func(string) bool) stringMethod {
	return func(r *renderer, s string, a *args) Value {
		a.atMost(r, 0)
		r.spend(len(s) >> 2)
		return f(s)
	}
}

// mapping makes a method without arguments from a function that maps text rune by rune.
func mapping(f func(string) string) stringMethod {
	return func(r *renderer, s string, a *args) Value {
		a.atMost(r, 0)
		return r.mapText(s, f)
	}
}

// mapText is f of a text, which maps it rune by rune.
func (r *renderer) mapText(s string, f func(string) string) string {
	r.spend(2)
	r.mapped(len(s))
	out := f(s)
	r.made(max(len(out)-len(s), 0))
	r.checkSize(len(out))
	return out
}

var stringMethods map[string]stringMethod

func init() {
	stringMethods = map[string]stringMethod{
		"strip":        stripMethod(true, true),
		"lstrip":       stripMethod(true, false),
		"rstrip":       stripMethod(false, true),
		"split":        splitMethod,
		"rsplit":       rsplitMethod,
		"splitlines":   splitLinesMethod,
		"startswith":   affixMethod(strings.HasPrefix),
		"endswith":     affixMethod(strings.HasSuffix),
		"removeprefix": removeAffixMethod(strings.TrimPrefix),
		"removesuffix": removeAffixMethod(strings.TrimSuffix),
		"upper":        mapping(upper),
		"lower":        mapping(lower),
		"casefold":     mapping(lower),
		"swapcase":     mapping(swapCase),
		"title":        mapping(titleCase),
		"capitalize":   mapping(capitalize),
		"replace":      replaceMethod,
		"join": func(r *renderer, s string, a *args) Value {
			a.atMost(r, 1)
			items := r.iterate(a.need(r, 0, "iterable"))
			r.made(16 * len(items))
			parts := make([]string, len(items))
			for i, e := range items {
				t, ok := asString(e)
				if !ok {
					r.fail("sequence item %d: expected str instance, %s found", i, typeName(e))
				}
				parts[i] = t
			}
			return r.joinStrings(parts, s)
		},
		"find":   findMethod(strings.Index, false),
		"rfind":  findMethod(strings.LastIndex, false),
		"index":  findMethod(strings.Index, true),
		"rindex": findMethod(strings.LastIndex, true),
		"count": func(r *renderer, s string, a *args) Value {
			area := within(r, s, a)
			r.searched(len(area))
			return int64(strings.Count(area, a.text(r, 0)))
		},
		"partition":  partitionMethod(strings.Index, false),
		"rpartition": partitionMethod(strings.LastIndex, true),
		"format":     func(r *renderer, s string, a *args) Value { return r.formatBraces(s, a) },
		"format_map": func(r *renderer, s string, a *args) Value {
			d, ok := a.need(r, 0, "mapping").(*Dict)
			if !ok {
				r.fail("format_map() needs a mapping")
			}
			named := new(args)
			for _, e := range d.entries {
				r.spend(2)
				named.set(r.str(e.key), e.val)
			}
			return r.formatBraces(s, named)
		},
		"center": alignMethod('^'),
		"ljust":  alignMethod('<'),
		"rjust":  alignMethod('>'),
		"zfill": func(r *renderer, s string, a *args) Value {
			sp := spec{fill: '0', align: '=', width: r.width(a.need(r, 0, "width"))}
			if s != "" && (s[0] == '+' || s[0] == '-') {
				return r.pad(s[:1], s[1:], sp)
			}
			return r.pad("", s, sp)
		},
		"isdigit":      walking(all(unicode.IsDigit)),
		"isdecimal":    walking(all(unicode.IsDigit)),
		"isnumeric":    walking(all(unicode.IsNumber)),
		"isalpha":      walking(all(unicode.IsLetter)),
		"isalnum":      walking(all(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) })),
		"isspace":      walking(all(isSpace)),
		"isascii":      walking(isASCII),
		"isprintable":  walking(func(s string) bool { return s == "" || all(unicode.IsPrint)(s) }),
		"isupper":      walking(func(s string) bool { return s == strings.ToUpper(s) && s != strings.ToLower(s) }),
		"islower":      walking(func(s string) bool { return s == strings.ToLower(s) && s != strings.ToUpper(s) }),
		"istitle":      walking(func(s string) bool { return s == titleCase(s) && s != strings.ToLower(s) }),
		"isidentifier": walking(isIdentifier),
		"expandtabs": func(r *renderer, s string, a *args) Value {
			size := r.width(a.get(0, "tabsize", int64(8)))
			r.mapped(len(s))
			r.made(len(s) + size*strings.Count(s, "\t"))
			return expandTabs(s, size)
		},
	}
}

// text is an argument that must be a string.
func (a *args) text(r *renderer, i int) string {
	if i >= len(a.pos) {
		r.fail("missing argument %d", i+1)
	}
	s, ok := asString(a.pos[i])
	if !ok {
		r.fail("must be str, not %s", typeName(a.pos[i]))
	}
	return s
}

// width is an argument that says how wide or how many, within sane bounds.
func (r *renderer) width(v Value) int {
	n := max(r.integer(v), 0)
	if n > maxFormatWidth {
		r.throw(Limit, "width over %d", maxFormatWidth)
	}
	r.made(int(n))
	return int(n)
}

func all(is func(rune) bool) func(string) bool {
	return func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(c rune) bool { return !is(c) }) < 0
	}
}

func isIdentifier(s string) bool {
	for i, c := range s {
		if c != '_' && !unicode.IsLetter(c) && (i == 0 || !unicode.IsDigit(c)) {
			return false
		}
	}
	return s != ""
}

func stripMethod(left, right bool) stringMethod {
	return func(r *renderer, s string, a *args) Value {
		a.atMost(r, 1)
		cut, whole := isSpace, s
		if len(a.pos) > 0 && a.pos[0] != nil {
			cut = r.oneOf(a.text(r, 0))
		}
		if left {
			s = strings.TrimLeftFunc(s, cut)
		}
		if right {
			s = strings.TrimRightFunc(s, cut)
		}
		r.walked(len(whole) - len(s))
		return s
	}
}

// oneOf tells whether a rune is in a set.
func (r *renderer) oneOf(set string) func(rune) bool {
	const few = 16
	if len(set) <= few {
		return func(c rune) bool { return strings.ContainsRune(set, c) }
	}
	r.spend(2 * len(set))
	in := make(map[rune]bool)
	for _, c := range set {
		in[c] = true
	}
	return func(c rune) bool { return in[c] }
}

func (r *renderer) list(parts []string) *List {
	l := &List{make([]Value, len(parts))}
	for i, p := range parts {
		r.step()
		l.Items[i] = p
	}
	return l
}

// splitArgs reads separator and limit; max is -1 for none.
func splitArgs(r *renderer, a *args) (sep string, bySpace bool, most int) {
	a.atMost(r, 2, "sep", "maxsplit")
	v := a.get(0, "sep", nil)
	sep, ok := asString(v)
	if !ok && v != nil {
		r.fail("must be str or None, not %s", typeName(v))
	}
	if ok && sep == "" {
		r.fail("empty separator")
	}
	n, ok := asInt(a.get(1, "maxsplit", int64(-1)))
	if !ok {
		r.fail("maxsplit must be an integer")
	}
	return sep, v == nil, int(min(n, 1<<31))
}

func splitMethod(r *renderer, s string, a *args) Value {
	sep, bySpace, most := splitArgs(r, a)
	if !bySpace {
		r.searched(len(s))
		n := strings.Count(s, sep)
		if most >= 0 {
			n = min(n, most)
		}
		parts := make([]string, 0, n+1)
		for range n {
			r.step()
			i := strings.Index(s, sep)
			parts = append(parts, s[:i])
			s = s[i+len(sep):]
		}
		return r.list(append(parts, s))
	}
	var parts []string
	r.walked(len(s))
	s = strings.TrimLeftFunc(s, isSpace)
	for s != "" && (most < 0 || len(parts) < most) {
		r.step()
		i := strings.IndexFunc(s, isSpace)
		if i < 0 {
			return r.list(append(parts, s))
		}
		parts = append(parts, s[:i])
		s = strings.TrimLeftFunc(s[i:], isSpace)
	}
	if s != "" {
		parts = append(parts, s)
	}
	return r.list(parts)
}

func rsplitMethod(r *renderer, s string, a *args) Value {
	sep, bySpace, most := splitArgs(r, a)
	if most < 0 {
		return splitMethod(r, s, a)
	}
	r.walked(len(s))
	var parts []string
	for most > 0 {
		r.step()
		if bySpace {
			s = strings.TrimRightFunc(s, isSpace)
		}
		i, n := strings.LastIndex(s, sep), len(sep)
		if bySpace {
			i = strings.LastIndexFunc(s, isSpace)
			if i >= 0 {
				_, n = utf8.DecodeRuneInString(s[i:])
			}
		}
		if i < 0 {
			break
		}
		parts = append(parts, s[i+n:])
		s = s[:i]
		most--
	}
	if bySpace {
		s = strings.TrimRightFunc(s, isSpace)
	}
	if !bySpace || s != "" {
		parts = append(parts, s)
	}
	slices.Reverse(parts)
	return r.list(parts)
}

// splitLines splits at every line break Python knows; breaks are dropped.
func splitLines(s string, keep bool) []string {
	var lines []string
	for s != "" {
		i := strings.IndexFunc(s, breaksLine)
		if i < 0 {
			return append(lines, s)
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		if keep {
			lines = append(lines, s[:i+n])
		} else {
			lines = append(lines, s[:i])
		}
		s = s[i+n:]
	}
	return lines
}

func breaksLine(c rune) bool {
	return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
}

func splitLinesMethod(r *renderer, s string, a *args) Value {
	a.atMost(r, 1, "keepends")
	r.mapped(len(s))
	lines := splitLines(s, truth(a.get(0, "keepends", false)))
	r.spend(len(lines))
	return r.list(lines)
}

func affixMethod(has func(s, affix string) bool) stringMethod {
	return func(r *renderer, s string, a *args) Value {
		v := a.need(r, 0, "prefix")
		s = within(r, s, a)
		if t, ok := v.(Tuple); ok {
			for _, e := range t {
				r.step()
				if p, ok := asString(e); ok && r.affixed(has, s, p) {
					return true
				}
			}
			return false
		}
		return r.affixed(has, s, a.text(r, 0))
	}
}

func (r *renderer) affixed(has func(s, affix string) bool, s, affix string) bool {
	r.scanned(min(len(s), len(affix)))
	return has(s, affix)
}

// within cuts s to the optional start and end arguments that follow the first.
func within(r *renderer, s string, a *args) string {
	if len(a.pos) < 2 {
		return s
	}
	r.mapped(len(s))
	runes := []rune(s)
	bounds := [2]int{0, len(runes)}
	for i := range bounds {
		v := a.get(i+1, "", nil)
		if v == nil {
			continue
		}
		n, ok := asInt(v)
		if !ok {
			r.fail("slice indices must be integers or None")
		}
		if n < 0 {
			n += int64(len(runes))
		}
		bounds[i] = int(min(max(n, 0), int64(len(runes))))
	}
	return string(runes[bounds[0]:max(bounds[0], bounds[1])])
}

func removeAffixMethod(cut func(s, affix string) string) stringMethod {
	return func(r *renderer, s string, a *args) Value {
		affix := a.text(r, 0)
		r.scanned(len(affix))
		return cut(s, affix)
	}
}

func replaceMethod(r *renderer, s string, a *args) Value {
	a.atMost(r, 3, "old", "new", "count")
	n, ok := asInt(a.get(2, "count", int64(-1)))
	if !ok {
		r.fail("count must be an integer")
	}
	return r.replaceText(s, a.text(r, 0), a.text(r, 1), n)
}

// replaceText is str.replace within the size limit.
func (r *renderer) replaceText(s, old, with string, n int64) string {
	r.searched(len(s))
	times := strings.Count(s, old)
	if n >= 0 && int64(times) > n {
		times = int(n)
	}
	if times == 0 {
		return s
	}
	r.spend(times)
	r.made(len(s) + times*(len(with)-len(old)))
	return strings.Replace(s, old, with, int(max(n, -1)))
}

func findMethod(find func(s, sub string) int, must bool) stringMethod {
	return func(r *renderer, s string, a *args) Value {
		sub, area := a.text(r, 0), within(r, s, a)
		r.searched(len(area))
		i := find(area, sub)
		if i < 0 {
			if must {
				r.fail("substring not found")
			}
			return int64(-1)
		}
		skipped := 0
		if n, ok := asInt(a.get(1, "", nil)); ok {
			if n < 0 {
				n = max(n+int64(utf8.RuneCountInString(s)), 0)
			}
			skipped = int(n)
		}
		return int64(utf8.RuneCountInString(area[:i]) + skipped)
	}
}

func partitionMethod(find func(s, sub string) int, last bool) stringMethod {
	return func(r *renderer, s string, a *args) Value {
		sep := a.text(r, 0)
		if sep == "" {
			r.fail("empty separator")
		}
		r.searched(len(s))
		i := find(s, sep)
		switch {
		case i >= 0:
			return Tuple{s[:i], sep, s[i+len(sep):]}
		case last:
			return Tuple{"", "", s}
		}
		return Tuple{s, "", ""}
	}
}

func alignMethod(align byte) stringMethod {
	return func(r *renderer, s string, a *args) Value {
		sp := spec{fill: ' ', align: align, width: r.width(a.need(r, 0, "width"))}
		if len(a.pos) > 1 {
			sp.fill, _ = utf8.DecodeRuneInString(a.text(r, 1))
		}
		r.scanned(len(s))
		if align == '^' { // str.center puts the odd blank left when the width is odd
			n := sp.width - utf8.RuneCountInString(s)
			if n <= 0 {
				return s
			}
			left := n/2 + n&sp.width&1
			fill := string(sp.fill)
			r.made(len(s) + n*len(fill))
			return strings.Repeat(fill, left) + s + strings.Repeat(fill, n-left)
		}
		return r.pad("", s, sp)
	}
}

func (r *renderer) joinStrings(parts []string, sep string) string {
	n := len(sep) * max(len(parts)-1, 0)
	for _, p := range parts {
		n += len(p)
	}
	r.spend(len(parts) >> 2)
	r.made(n)
	return strings.Join(parts, sep)
}

// tail is a text that was made by adding to another, with room behind it. Templates make prompts piece by piece, each time of
// all that was there; the next one of such a chain is written behind the last and shares its bytes, which never change.
type tail struct{ strings.Builder }

// tailFrom is the length from which a text is worth a tail.
const tailFrom = 1 << 10

// ends tells whether s is all of the text, and not only equal to it.
func (t *tail) ends(s string) bool {
	return t != nil && len(s) == t.Len() && unsafe.StringData(s) == unsafe.StringData(t.String())
}

// concat joins texts of which the first may be long.
func (r *renderer) concat(parts []string) string {
	if len(parts) == 0 || len(parts[0]) < tailFrom {
		return r.joinStrings(parts, "")
	}
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	r.checkSize(n)
	first, more := parts[0], n-len(parts[0])
	if more == 0 {
		return first
	}
	slot := slices.IndexFunc(r.tails[:], func(t *tail) bool { return t.ends(first) })
	if slot < 0 {
		slot, r.oldest = r.oldest, (r.oldest+1)%len(r.tails)
		r.tails[slot] = nil
	}
	at := r.tails[slot]
	if at == nil || at.Cap() < n {
		room := n + n/2
		r.spend(room >> 5)
		at = new(tail)
		at.Grow(room)
		at.WriteString(first)
		r.tails[slot] = at
	}
	r.spend(more >> 5)
	for _, p := range parts[1:] {
		at.WriteString(p)
	}
	return at.String()
}

// upper and lower are Python's, with the mappings that change the number of letters.
func upper(s string) string {
	if isASCII(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func swapCase(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, s)
}

// titleCase is str.title: an upper-case letter after anything that has no case.
func titleCase(s string) string {
	inWord := false
	return strings.Map(func(c rune) rune {
		cased := unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c)
		out := c
		if cased && inWord {
			out = unicode.ToLower(c)
		} else if cased {
			out = unicode.ToTitle(c)
		}
		inWord = cased
		return out
	}, s)
}

func capitalize(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToTitle(c)) + lower(s[n:])
}

func expandTabs(s string, size int) string {
	var b strings.Builder
	col := 0
	for _, c := range s {
		switch c {
		case '\t':
			if size > 0 {
				n := size - col%size
				b.WriteString(strings.Repeat(" ", n))
				col += n
			}
			continue
		case '\n', '\r':
			col = -1
		}
		b.WriteRune(c)
		col++
	}
	return b.String()
}
