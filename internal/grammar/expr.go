package grammar

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
)

// Expr is an expression of a Builder: a set of texts, which are rows of bytes. It does not change. Equal expressions are one, so
// they may be compared by their addresses; one that no text matches is Builder.Never, but for intersections: see Builder.IsNever.
type Expr struct {
	content
	state state
}

// content is what an expression is.
type content struct {
	kind     exprKind
	nullable bool  // the empty text is one of them
	regular  bool  // it refers to no rule
	boolean  bool  // it is made of intersections or complements: it may be empty without looking so
	calling  bool  // it may begin with a reference to a rule
	counts   bool  // there are counters in it
	short    int32 // if a text matches, one of at most so many bytes does
	depth    int32 // of expressions within each other other than in sequences
	a, b     *Expr
	text     string
	args     []*Expr // in the order of their digests
	*group           // of members
	min, max int32   // of a repetition of a
	rule     *Rule
	first    Set // bytes that its texts begin with; with intersections or complements there may be more
	digest   digest
}

type exprKind uint8

const (
	isNever   exprKind = iota
	isEmpty            // the empty text
	isByte             // one byte of first
	isText             // text, and then b: see table.text
	isCat              // a, which is neither isCat nor isText nor a single byte, and then b
	isOr               // of args
	isAnd              // all of args
	isNot              // a
	isRepeat           // of a
	isRef              // rule
	isMembers          // one or more of family, see members.go
	isMore             // what follows a member: nothing, or what is between and isMembers
)

// unlimited is the max of a repetition without an end.
const unlimited = math.MaxInt32

// Set is a set of bytes.
type Set [4]uint64

// Add adds the bytes from lo to hi.
func (s *Set) Add(lo, hi byte) {
	for b := int(lo); b <= int(hi); b++ {
		s[b>>6] |= 1 << (b & 63)
	}
}

// Has tells whether a byte is in the set.
func (s *Set) Has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }

// Not are the other bytes.
func (s Set) Not() Set { return Set{^s[0], ^s[1], ^s[2], ^s[3]} }

// Or is the bytes of either set.
func (s Set) Or(o Set) Set { return Set{s[0] | o[0], s[1] | o[1], s[2] | o[2], s[3] | o[3]} }

// And is the bytes that are in both sets.
func (s Set) And(o Set) Set { return Set{s[0] & o[0], s[1] & o[1], s[2] & o[2], s[3] & o[3]} }

// each calls f for every byte of the set.
func (s *Set) each(f func(b byte)) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			f(byte(i<<6 | bits.TrailingZeros64(w)))
		}
	}
}

var allBytes = Set{}.Not()

// digest stands for what an expression is: those of different builders are equal if and only if their expressions are. It is a
// keyed hash, so that nobody can make two that collide.
type digest [2]uint64

func (p digest) compare(o digest) int {
	if c := cmp.Compare(p[0], o[0]); c != 0 {
		return c
	}
	return cmp.Compare(p[1], o[1])
}

func (p digest) append(dst []byte) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, p[0]), p[1])
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func digestOf(text []byte) digest {
	return digest{maphash.Bytes(seeds[0], text), maphash.Bytes(seeds[1], text)}
}

// table makes expressions, each once. It belongs to one goroutine at a time.
type table struct {
	all     exprs
	charged int // of all: those that a budget was charged for
	marks   uint32
	scratch []byte
	never   *Expr
	empty   *Expr
	any     *Expr           // every text
	slopes  map[slope]*Expr // derivatives, see derive
}

func newTable() *table {
	t := &table{slopes: map[slope]*Expr{}}
	t.never = t.intern(content{kind: isNever, regular: true})
	t.empty = t.intern(content{kind: isEmpty, nullable: true, regular: true})
	t.any = t.intern(content{kind: isRepeat, a: t.class(allBytes), max: unlimited})
	return t
}

// intern gives the one expression that is e, of which the fields up to rule are set.
func (t *table) intern(e content) *Expr {
	s := append(t.scratch[:0], byte(e.kind))
	switch e.kind {
	case isByte:
		for _, w := range e.first {
			s = binary.LittleEndian.AppendUint64(s, w)
		}
	case isText:
		s = append(e.b.digest.append(s), e.text...)
	case isCat:
		s = e.b.digest.append(e.a.digest.append(s))
	case isOr, isAnd:
		for _, a := range e.args {
			s = a.digest.append(s)
		}
	case isNot:
		s = e.a.digest.append(s)
	case isRepeat:
		s = e.a.digest.append(s)
		s = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(s, uint32(e.min)), uint32(e.max))
	case isMembers, isMore:
		s = e.family.digest.append(s)
		for _, w := range e.left {
			s = binary.LittleEndian.AppendUint64(s, w)
		}
	case isRef:
		s = e.rule.digest.append(s)
	}
	t.scratch = s
	e.digest = digestOf(s)
	if known := t.all.get(e.digest); known != nil {
		return known
	}
	e.describe()
	e.args = slices.Clone(e.args)
	n := &Expr{content: e}
	n.state.as.next = n
	t.all.put(n)
	return n
}

// exprs finds expressions by their digests, which need no hash of their own.
type exprs struct {
	slots []*Expr
	n     int
}

func (x *exprs) get(d digest) *Expr {
	for i := x.slot(d); len(x.slots) > 0; i = (i + 1) % len(x.slots) {
		if e := x.slots[i]; e == nil || e.digest == d {
			return e
		}
	}
	return nil
}

func (x *exprs) slot(d digest) int { return int(d[0]) & (len(x.slots) - 1) } // the number of which is a power of two

// put adds an expression, which is not there yet.
func (x *exprs) put(e *Expr) {
	if x.n++; 4*x.n > 3*len(x.slots) {
		old := x.slots
		x.slots = make([]*Expr, max(2*len(old), 128))
		for _, e := range old {
			if e != nil {
				x.place(e)
			}
		}
	}
	x.place(e)
}

func (x *exprs) place(e *Expr) {
	i := x.slot(e.digest)
	for x.slots[i] != nil {
		i = (i + 1) % len(x.slots)
	}
	x.slots[i] = e
}

// describe fills what follows from the parts of an expression.
func (e *content) describe() {
	switch e.kind {
	case isByte:
		e.regular, e.short = true, 1
	case isText:
		e.short = min(int32(len(e.text))+e.b.short, longestRest)
		e.first.Add(e.text[0], e.text[0])
		e.inherit(e.b)
	case isCat:
		e.nullable, e.short = e.a.nullable && e.b.nullable, min(e.a.short+e.b.short, longestRest)
		e.first, e.calling = e.a.first, e.a.calling
		if e.a.nullable {
			e.first, e.calling = e.first.Or(e.b.first), e.calling || e.b.calling
		}
		e.inherit(e.a, e.b)
	case isOr:
		e.short = longestRest
		for _, a := range e.args {
			e.short = min(e.short, a.short)
			e.nullable, e.calling, e.first = e.nullable || a.nullable, e.calling || a.calling, e.first.Or(a.first)
		}
		e.inherit(e.args...)
	case isAnd:
		e.nullable, e.first, e.short = true, allBytes, longestRest
		for _, a := range e.args {
			e.nullable, e.first = e.nullable && a.nullable, e.first.And(a.first)
		}
		e.inherit(e.args...)
		e.boolean = true
	case isNot:
		e.nullable, e.first, e.short = !e.a.nullable, allBytes, longestRest
		e.inherit(e.a)
		e.boolean = true
	case isRepeat:
		e.nullable, e.first, e.calling = e.min == 0 || e.a.nullable, e.a.first, e.a.calling
		e.short = int32(min(int64(e.min)*int64(e.a.short), longestRest))
		e.inherit(e.a)
		e.counts = e.counts || e.max != unlimited && e.max > 1 || e.min > 1
	case isMembers, isMore:
		e.describeMembers()
	case isRef:
		e.nullable, e.first, e.calling, e.short = e.rule.nullable, e.rule.first, true, longestRest
	}
}

// inherit takes over what holds for an expression if it holds for its parts.
func (e *content) inherit(parts ...*Expr) {
	e.depth = 0
	if e.regular = true; e.nullable {
		e.short = 0
	}
	for _, p := range parts {
		e.depth = max(e.depth, p.depth)
		e.regular, e.boolean, e.counts = e.regular && p.regular, e.boolean || p.boolean, e.counts || p.counts
	}
	if e.kind != isCat && e.kind != isText {
		e.depth++
	}
}

// class is one byte of a set.
func (t *table) class(s Set) *Expr {
	if s == (Set{}) {
		return t.never
	}
	return t.intern(content{kind: isByte, first: s})
}

// mostText bounds the bytes of one isText, as what is left of it behind each byte is one too.
const mostText = 64

// text is a text and what follows it. Single bytes behind each other are in one expression, as many as may be, counted from the
// last one: so it is the same expression whatever it was made of.
func (t *table) text(s string, then *Expr) *Expr {
	if then == t.never {
		return then
	}
	if lead, rest := t.lead(then); lead != "" && len(lead) < mostText {
		n := max(len(s)+len(lead)-mostText, 0)
		s, lead = s[:n], s[n:]+lead
		then = t.run(lead, rest)
	}
	for len(s) > 0 {
		n := max(len(s)-mostText, 0)
		then = t.run(s[n:], then)
		s = s[:n]
	}
	return then
}

func (t *table) run(s string, then *Expr) *Expr {
	if len(s) == 1 && then == t.empty {
		var one Set
		one.Add(s[0], s[0])
		return t.class(one)
	}
	return t.intern(content{kind: isText, text: s, b: then})
}

// lead is the text that an expression begins with, as far as it is in one, and what follows it.
func (t *table) lead(e *Expr) (string, *Expr) {
	if e.kind == isText {
		return e.text, e.b
	}
	if b, ok := e.single(); ok {
		return string([]byte{b}), t.empty
	}
	return "", e
}

// behind is what follows the first n bytes of the text that an expression begins with.
func (t *table) behind(e *Expr, n int) *Expr {
	lead, rest := t.lead(e)
	if n == len(lead) {
		return rest
	}
	return t.run(lead[n:], rest)
}

// single tells whether an expression is one byte that is known.
func (e *Expr) single() (b byte, ok bool) {
	if e.kind != isByte {
		return 0, false
	}
	for i, w := range e.first {
		if w == 0 {
			continue
		}
		if ok || w&(w-1) != 0 {
			return 0, false
		}
		b, ok = byte(i<<6|bits.TrailingZeros64(w)), true
	}
	return b, ok
}

// cat is a and then b.
func (t *table) cat(a, b *Expr) *Expr {
	switch {
	case a == t.never || b == t.never:
		return t.never
	case a == t.empty:
		return b
	case b == t.empty:
		return a
	}
	var parts []*Expr
	for ; a.kind == isCat || a.kind == isText && a.b != t.empty; a = a.b {
		parts = append(parts, a)
	}
	b = t.cat2(a, b)
	for _, p := range slices.Backward(parts) {
		b = t.again(p, b)
	}
	return b
}

// again is an isCat or isText with something else behind it.
func (t *table) again(e, then *Expr) *Expr {
	if e.kind == isText {
		return t.text(e.text, then)
	}
	return t.cat2(e.a, then)
}

// cat2 is cat of what is not empty, where a is no isCat. Repetitions of the same are one.
func (t *table) cat2(a, b *Expr) *Expr {
	if b == t.empty {
		return a
	}
	if lead, _ := t.lead(a); lead != "" {
		return t.text(lead, b)
	}
	next, rest := t.split(b)
	if a.kind == isRepeat && next.kind == isRepeat && a.a == next.a {
		if least, most := int(a.min)+int(next.min), a.most(next); least <= MaxRepeat && most <= MaxRepeat {
			if a = t.repeat(a.a, least, most); rest == t.empty {
				return a
			}
			return t.intern(content{kind: isCat, a: a, b: rest})
		}
	}
	return t.intern(content{kind: isCat, a: a, b: b})
}

// most is how often two repetitions after each other go on at most, as repeat takes it.
func (e *Expr) most(o *Expr) int {
	if e.max == unlimited || o.max == unlimited {
		return -1
	}
	return int(e.max) + int(o.max)
}

// or is any of several. What begins alike is in it once, and so is what ends alike behind a byte.
func (t *table) or(args ...*Expr) *Expr {
	list, set, empty := t.flatten(nil, args, isOr), Set{}, false
	list = slices.DeleteFunc(list, func(a *Expr) bool {
		switch a.kind {
		case isByte:
			set = set.Or(a.first)
		case isEmpty:
			empty = true
		case isNever:
		default:
			return false
		}
		return true
	})
	if set != (Set{}) {
		list = append(list, t.class(set))
	}
	list = t.tails(t.heads(unique(list)))
	if empty && !slices.ContainsFunc(list, func(a *Expr) bool { return a.nullable }) {
		if len(list) == 1 && list[0].kind == isRepeat && list[0].min == 1 { // e+ or nothing is e*
			return t.repeat(list[0].a, 0, maxOf(list[0].max))
		}
		list = append(list, t.empty)
	}
	if slices.Contains(list, t.any) {
		list = slices.DeleteFunc(list, func(a *Expr) bool { return a.regular && a != t.any })
	}
	switch list = unique(list); len(list) {
	case 0:
		return t.never
	case 1:
		return list[0]
	}
	return t.intern(content{kind: isOr, args: list})
}

func maxOf(n int32) int {
	if n == unlimited {
		return -1
	}
	return int(n)
}

// flatten appends the arguments, and those of arguments of the same kind.
func (t *table) flatten(dst, args []*Expr, kind exprKind) []*Expr {
	for _, a := range args {
		if a.kind == kind {
			dst = append(dst, a.args...) // none of which is of that kind
		} else {
			dst = append(dst, a)
		}
	}
	return dst
}

// unique puts expressions in order, each once.
func unique(list []*Expr) []*Expr {
	slices.SortFunc(list, func(a, b *Expr) int { return a.digest.compare(b.digest) })
	return slices.Compact(list)
}

// split is an alternative's head and what follows it.
func (t *table) split(e *Expr) (head, rest *Expr) {
	if e.kind == isCat {
		return e.a, e.b
	}
	return e, t.empty
}

// headed is what alternatives are joined by: the same head, or repetitions of the same before the same.
type headed struct{ head, repeated, rest *Expr }

func (t *table) headed(e *Expr) headed {
	head, rest := t.split(e)
	if head.kind == isRepeat {
		return headed{repeated: head.a, rest: rest}
	}
	return headed{head: head}
}

// places finds keys again that were met. There are few most of the time, and then it needs no memory.
type places[K comparable] struct {
	few  [16]K
	n    int
	more map[K]int
}

// at is the number of a key, in the order in which they come, and whether it was met.
func (p *places[K]) at(key K) (int, bool) {
	for i := range min(p.n, len(p.few)) {
		if p.few[i] == key {
			return i, true
		}
	}
	if i, ok := p.more[key]; ok {
		return i, true
	}
	if p.n < len(p.few) {
		p.few[p.n] = key
	} else {
		if p.more == nil {
			p.more = map[K]int{}
		}
		p.more[key] = p.n
	}
	p.n++
	return p.n - 1, false
}

// heads joins alternatives that begin with the same byte or have the same head, and repetitions of the same before the same.
func (t *table) heads(list []*Expr) []*Expr {
	if len(list) < 2 {
		return list
	}
	list = t.texts(list)
	var met places[headed]
	var more map[int][]*Expr // rests of alternatives that have a head in common, by place
	joined, apart := list[:0], []*Expr(nil)
	for _, e := range list {
		i, ok := met.at(t.headed(e))
		switch head, rest := t.split(e); {
		case !ok:
			joined = append(joined, e)
		case head.kind != isRepeat:
			if more == nil {
				more = map[int][]*Expr{}
			}
			more[i] = append(more[i], rest)
		default:
			before, _ := t.split(joined[i])
			if before.kind != isRepeat || !before.meets(head) {
				apart = append(apart, e)
				continue
			}
			joined[i] = t.cat(t.repeat(head.a, int(min(before.min, head.min)), maxOf(max(before.max, head.max))), rest)
		}
	}
	for i, rests := range more {
		head, rest := t.split(joined[i])
		joined[i] = t.cat(head, t.or(append(rests, rest)...))
	}
	return append(joined, apart...)
}

// texts joins alternatives that begin with the same byte.
func (t *table) texts(list []*Expr) []*Expr {
	var met places[byte]
	var alike map[int][]*Expr // further ones that begin with the same byte, by place
	joined, others := list[:0], []*Expr(nil)
	for _, e := range list {
		lead, _ := t.lead(e)
		if lead == "" {
			others = append(others, e)
		} else if i, ok := met.at(lead[0]); !ok {
			joined = append(joined, e)
		} else {
			if alike == nil {
				alike = map[int][]*Expr{}
			}
			alike[i] = append(alike[i], e)
		}
	}
	for i, more := range alike {
		common, _ := t.lead(joined[i])
		for _, e := range more {
			lead, _ := t.lead(e)
			common = common[:shared(common, lead)]
		}
		more = append(more, joined[i])
		for k, e := range more {
			more[k] = t.behind(e, len(common))
		}
		joined[i] = t.text(common, t.or(more...))
	}
	return append(joined, others...)
}

// shared is how many bytes two texts begin with in common.
func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// meets tells whether two repetitions of the same together are one.
func (e *Expr) meets(o *Expr) bool {
	return int(e.min) <= int(o.max)+1 && int(o.min) <= int(e.max)+1
}

// tail is what follows the first byte of an alternative.
type tail struct {
	text string
	rest *Expr
}

// tails joins single bytes before the same rest.
func (t *table) tails(list []*Expr) []*Expr {
	if len(list) < 2 {
		return list
	}
	var met places[tail]
	joined, others := list[:0], []*Expr(nil)
	for _, e := range list {
		var rest tail
		switch {
		case e.kind == isText && len(e.text) > 1:
			rest = tail{e.text[1:], e.b}
		case e.kind == isText, e.kind == isCat && e.a.kind == isByte:
			rest.text, rest.rest = t.lead(e.b)
		default:
			others = append(others, e)
			continue
		}
		if i, ok := met.at(rest); ok {
			before := joined[i]
			then := before.b
			if before.kind == isText {
				then = t.behind(before, 1)
			}
			firsts := e.first.Or(before.first)
			joined[i] = t.cat2(t.class(firsts), then)
		} else {
			joined = append(joined, e)
		}
	}
	return append(joined, others...)
}

// and is what all of several regular expressions have in common.
func (t *table) and(args ...*Expr) *Expr {
	list, set, one, empty := t.flatten(nil, args, isAnd), allBytes, false, false
	list = slices.DeleteFunc(list, func(a *Expr) bool {
		switch {
		case a.kind == isByte:
			set, one = set.And(a.first), true
		case a == t.empty:
			empty = true
		case a == t.any:
		default:
			return false
		}
		return true
	})
	if one {
		list = append(list, t.class(set))
	}
	list = unique(list)
	for _, a := range list {
		if a == t.never || a.kind == isNot && a.a.takes(list) || empty && !a.nullable {
			return t.never
		}
	}
	switch {
	case empty:
		return t.empty
	case len(list) == 0:
		return t.any
	case len(list) == 1:
		return list[0]
	}
	e := content{kind: isAnd, args: list}
	if e.describe(); e.first == (Set{}) {
		if e.nullable {
			return t.empty
		}
		return t.never
	}
	return t.intern(e)
}

// takes tells whether an expression, or an alternative of it, is one of some: then it matches what they have in common.
func (e *Expr) takes(list []*Expr) bool {
	return slices.ContainsFunc(list, func(a *Expr) bool {
		if a == e || e.kind != isOr {
			return a == e
		}
		_, ok := slices.BinarySearchFunc(e.args, a, func(x, y *Expr) int { return x.digest.compare(y.digest) })
		return ok
	})
}

// not is every text that a regular expression does not match.
func (t *table) not(e *Expr) *Expr {
	switch {
	case e.kind == isNot:
		return e.a
	case e == t.any:
		return t.never
	case e == t.never:
		return t.any
	}
	return t.intern(content{kind: isNot, a: e})
}

// repeat is e, from least to most times, most < 0 for any number.
func (t *table) repeat(e *Expr, least, most int) *Expr {
	switch {
	case most == 0 || e == t.empty || e == t.never && least == 0:
		return t.empty
	case e == t.never || least == 1 && most == 1:
		return e
	case e.nullable:
		least = 0
		if e.kind == isRepeat && e.max == unlimited {
			return e
		}
		if e.kind == isOr && slices.Contains(e.args, t.empty) {
			e = t.or(slices.DeleteFunc(slices.Clone(e.args), func(a *Expr) bool { return a == t.empty })...)
			return t.repeat(e, least, most)
		}
	}
	if least == 0 && most == 1 {
		return t.or(e, t.empty)
	}
	r := content{kind: isRepeat, a: e, min: int32(least), max: int32(most)}
	if most < 0 {
		r.max = unlimited
	}
	return t.intern(r)
}

// choice is one of several texts, which are in order and each there once, without their first n bytes, which are alike.
func (t *table) choice(texts []string, n int) *Expr {
	var alts []*Expr
	for len(texts) > 0 {
		if len(texts[0]) == n {
			alts, texts = append(alts, t.empty), texts[1:]
			continue
		}
		i := 1
		for i < len(texts) && texts[i][n] == texts[0][n] {
			i++
		}
		last := texts[i-1]
		common := n + shared(texts[0][n:], last[n:])
		rest := t.empty
		if i > 1 {
			rest = t.choice(texts[:i], common)
		} else {
			common = len(last)
		}
		alts, texts = append(alts, t.text(last[n:common], rest)), texts[i:]
	}
	return t.or(alts...)
}

// String shows an expression in errors and tests, cut after some 200 bytes.
func (e *Expr) String() string {
	var b bytes.Buffer
	e.show(&b)
	return b.String()
}

func (e *Expr) show(b *bytes.Buffer) {
	list := func(open, between string, args []*Expr) {
		b.WriteString(open)
		for i, a := range args {
			if i > 0 {
				b.WriteString(between)
			}
			a.show(b)
		}
		b.WriteString(")")
	}
	if b.Len() > 200 {
		b.WriteString("…")
		return
	}
	switch e.kind {
	case isNever:
		b.WriteString("∅")
	case isEmpty:
		b.WriteString(`""`)
	case isByte:
		var all []byte
		e.first.each(func(c byte) { all = append(all, c) })
		if fmt.Fprintf(b, "%q", all[0]); len(all) > 1 {
			fmt.Fprintf(b, "…%q", all[len(all)-1])
		}
	case isText:
		fmt.Fprintf(b, "%q ", e.text)
		e.b.show(b)
	case isCat:
		e.a.show(b)
		b.WriteByte(' ')
		e.b.show(b)
	case isOr:
		list("(", " | ", e.args)
	case isAnd:
		list("(", " & ", e.args)
	case isNot:
		list("!(", "", []*Expr{e.a})
	case isRepeat:
		list("(", "", []*Expr{e.a})
		if fmt.Fprintf(b, "{%d,", e.min); e.max != unlimited {
			fmt.Fprint(b, e.max)
		}
		b.WriteByte('}')
	case isMembers, isMore:
		list("members(", ", ", e.family.list)
	case isRef:
		b.WriteString(e.rule.name)
	}
}
