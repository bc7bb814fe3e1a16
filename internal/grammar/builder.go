package grammar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Bounds of a grammar. What is beyond them is an error that names them (LimitError).
const (
	maxExprs   = 1 << 18 // of a Builder: a text takes one for each of its bytes
	maxRules   = 1 << 14
	maxWork    = 1 << 26 // steps of a Builder, as a Budget counts them
	maxNesting = 1 << 12 // of expressions within each other, other than sequences
	MaxRepeat  = 1 << 20 // of a counter
)

// LimitError is a grammar that is too large.
type LimitError struct {
	What  string
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the grammar is too large: it has more than %d %s", e.Limit, e.What)
}

// ErrNothing is a grammar that no text ends.
var ErrNothing = errors.New("no text of finite length follows the grammar")

// Rule is a named expression, which may refer to itself and to others by Builder.Ref.
type Rule struct {
	name     string
	body     *Expr
	nullable bool
	first    Set
	digest   digest
	inline   bool // it is put in the place of references to it
}

// Builder makes a Grammar out of rules, each of which is an expression: see the package's documentation. Mistakes and limits are
// told by Compile; until then what a Builder gives after one has no meaning, but may be used further. It belongs to one
// goroutine.
type Builder struct {
	t      *table
	rules  int // made so far
	named  map[string]int
	sets   map[string]*Expr // that Runes made, by their ranges
	budget *Budget
	err    error

	compiled map[*Rule]*Rule // what Compile has made of rules
}

// NewBuilder begins a grammar.
func NewBuilder() *Builder {
	return &Builder{t: newTable(), named: map[string]int{}, sets: map[string]*Expr{}, budget: &Budget{maxWork}}
}

// Err is the first mistake made so far, nil if there was none. Compile gives it too.
func (b *Builder) Err() error { return b.err }

func (b *Builder) fail(err error) *Expr {
	if b.err == nil {
		b.err = err
	}
	return b.t.never
}

// made checks the bounds after an expression was made of so many parts.
func (b *Builder) made(e *Expr, parts int) *Expr {
	b.budget.spend(parts + len(e.args))
	switch b.worked(); {
	case b.t.all.n > maxExprs:
		return b.fail(&LimitError{"expressions", maxExprs})
	case e.depth > maxNesting:
		return b.fail(&LimitError{"expressions within each other", maxNesting})
	}
	return e
}

// Never matches nothing.
func (b *Builder) Never() *Expr { return b.t.never }

// Empty matches the empty text alone.
func (b *Builder) Empty() *Expr { return b.t.empty }

// Any matches every row of bytes, also one that is no UTF-8.
func (b *Builder) Any() *Expr { return b.t.any }

// Literal matches a text.
func (b *Builder) Literal(text string) *Expr {
	if len(text) > maxExprs {
		return b.fail(&LimitError{"expressions", maxExprs})
	}
	return b.made(b.t.text(text, b.t.empty), len(text))
}

// Choice matches each of several texts. What they begin with in common is looked at once, so there may be thousands.
func (b *Builder) Choice(texts ...string) *Expr {
	sorted := slices.Compact(slices.Sorted(slices.Values(texts)))
	size := 0
	for _, t := range sorted {
		size += len(t)
	}
	if size > maxExprs {
		return b.fail(&LimitError{"expressions", maxExprs})
	}
	return b.made(b.t.choice(sorted, 0), size)
}

// Byte matches one byte of a set.
func (b *Builder) Byte(s Set) *Expr { return b.made(b.t.class(s), 1) }

// Runes matches one character of any of the ranges, as UTF-8. What is no character (surrogates) is left out.
func (b *Builder) Runes(ranges ...RuneRange) *Expr {
	if b.err != nil {
		return b.t.never
	}
	in := Ranges(ranges...)
	key := make([]byte, 0, 8*len(in))
	for _, r := range in {
		key = binary.BigEndian.AppendUint64(key, uint64(r.Lo)<<32|uint64(r.Hi))
	}
	e := b.sets[string(key)]
	if e == nil {
		b.budget.spend(rangeSteps * len(in))
		e = b.t.runes(in)
		b.sets[string(key)] = e
	}
	return b.made(e, len(ranges))
}

// Seq matches what its parts match, one after the other. Without parts it is Empty.
func (b *Builder) Seq(parts ...*Expr) *Expr {
	e, text := b.t.empty, ""
	for _, p := range slices.Backward(parts) {
		if lead, rest := b.t.lead(p); lead != "" && rest == b.t.empty { // texts behind each other are put together first
			text = lead + text
			continue
		}
		e, text = b.t.cat(p, b.t.text(text, e)), ""
	}
	return b.made(b.t.text(text, e), len(parts))
}

// Or matches what any of its parts matches. Without parts it is Never.
func (b *Builder) Or(parts ...*Expr) *Expr { return b.made(b.t.or(parts...), len(parts)) }

// Repeat matches e from least to most times, any number of times from least on if most is negative. Counters are not unrolled.
func (b *Builder) Repeat(e *Expr, least, most int) *Expr {
	switch {
	case least < 0 || most >= 0 && most < least:
		return b.fail(fmt.Errorf("a repetition of at least %d and at most %d times does not exist", least, most))
	case max(least, most) > MaxRepeat:
		return b.fail(&LimitError{"repetitions of one expression", MaxRepeat})
	}
	return b.made(b.t.repeat(e, least, most), 1)
}

// Optional matches e or the empty text.
func (b *Builder) Optional(e *Expr) *Expr { return b.Or(e, b.t.empty) }

// Members matches members in any order, with between after each but the last: all of required, any of optional, none twice, and
// others any number of times, which may be Never. Without a member it is empty, where none is required. No member may be empty.
// Which came is found out while a text is followed, not before, so there may be a hundred.
func (b *Builder) Members(between *Expr, required, optional []*Expr, others *Expr) *Expr {
	e := b.t.members(b.t.newFamily(between, others, required, optional))
	if len(required) == 0 {
		e = b.t.or(e, b.t.empty)
	}
	return b.made(e, len(required)+len(optional))
}

// And matches what all of its parts match, which must be regular: none refers to a rule. Without parts it is Any.
func (b *Builder) And(parts ...*Expr) *Expr {
	for _, p := range parts {
		if !p.regular {
			return b.fail(fmt.Errorf("an intersection is of regular expressions only, not of %s, which refers to a rule", p))
		}
	}
	return b.made(b.t.and(parts...), len(parts))
}

// Not matches every row of bytes that e does not match, which must be regular. Mind that bytes are more than text: what is not
// "a" is also what is no UTF-8. And with what may be written at all makes it text.
func (b *Builder) Not(e *Expr) *Expr {
	if !e.regular {
		return b.fail(fmt.Errorf("a complement is of regular expressions only, not of %s, which refers to a rule", e))
	}
	return b.made(b.t.not(e), 1)
}

// Except matches what e matches and none of the others do.
func (b *Builder) Except(e *Expr, others ...*Expr) *Expr { return b.And(e, b.Not(b.Or(others...))) }

// Rule makes a rule, whose expression Define gives. The name is for errors alone; several rules may have the same.
func (b *Builder) Rule(name string) *Rule {
	r := &Rule{name: name}
	r.digest = digestOf(fmt.Appendf(nil, "%d %s", b.named[name], name)) // not of its place: grammars that differ elsewhere share masks
	b.named[name]++
	if b.rules++; b.rules > maxRules {
		b.fail(&LimitError{"rules", maxRules})
	}
	return r
}

// Define gives a rule its expression, once.
func (b *Builder) Define(r *Rule, e *Expr) {
	if r.body != nil {
		b.fail(fmt.Errorf("the rule %q is defined twice", r.name))
		return
	}
	r.body = e
}

// Ref matches what a rule matches, which may be defined later. Within a rule it may refer to that rule, also as what comes first.
func (b *Builder) Ref(r *Rule) *Expr { return b.made(b.t.intern(content{kind: isRef, rule: r}), 1) }

// Regular tells whether an expression refers to no rule, so that And and Not take it.
func (e *Expr) Regular() bool { return e.regular }

// IsNever tells whether no text matches a regular expression. Of others it does not know before Compile: see there.
func (b *Builder) IsNever(e *Expr) bool {
	if e.regular && e.boolean {
		if e.state.fate != unknown {
			return e.state.fate == dead
		}
		defer b.worked()
		p := b.t.classes(e)
		return !b.t.matched(e, &p, b.budget)
	}
	return e == b.t.never
}

// Matches tells whether a text matches a regular expression.
func (b *Builder) Matches(e *Expr, text string) bool { return b.After(e, text).nullable }

// After is what a regular expression may go on with behind a text.
func (b *Builder) After(e *Expr, text string) *Expr {
	if !e.regular {
		return b.fail(fmt.Errorf("only regular expressions tell whether they match, not %s, which refers to a rule", e))
	}
	for i := 0; i < len(text) && e != b.t.never; i++ {
		e = b.t.derive(e, text[i], b.budget)
	}
	b.worked()
	return e
}

// Allow sets how many steps of work may follow, as a Budget counts them; Left is how many of them are left.
func (b *Builder) Allow(steps int) { b.budget.left = steps }

// Left is how many steps of work are left, none or less where an error says so.
func (b *Builder) Left() int { return b.budget.left }

// Next are the bytes that may come behind a text of e where the two together begin a text of in. Both must be regular. If looking
// for them is too much work they are all.
func (b *Builder) Next(e, in *Expr) (s Set) {
	if !e.regular || !in.regular {
		b.fail(fmt.Errorf("only regular expressions tell what comes next, not %s in %s, which refer to rules", e, in))
		return s
	}
	p := b.t.classes(e, in)
	found := make([]bool, len(p.reps))
	type pair struct{ e, in *Expr }
	list := []pair{{e, in}}
	met := map[pair]bool{list[0]: true}
	for i := 0; i < len(list); i++ {
		at := list[i]
		for n, c := range p.reps {
			b.budget.spend(1)
			to := pair{b.t.derive(at.e, c, b.budget), b.t.derive(at.in, c, b.budget)}
			if to.in == b.t.never || to.in.boolean && !b.t.matched(to.in, &p, b.budget) {
				continue
			}
			found[n] = found[n] || at.e.nullable
			if to.e != b.t.never && !met[to] {
				met[to] = true
				list = append(list, to)
			}
		}
		if b.budget.Spent() {
			b.worked()
			return allBytes
		}
	}
	for c := range 256 {
		if found[p.of[c]] {
			s.Add(byte(c), byte(c))
		}
	}
	return s
}

func (b *Builder) worked() {
	if b.budget.Spent() {
		b.fail(&LimitError{"steps of work to it", maxWork})
	}
}

// RuneRange is the characters from Lo to Hi.
type RuneRange struct{ Lo, Hi rune }

// Ranges puts ranges in order, joins those that touch each other, and leaves out what is no character.
func Ranges(ranges ...RuneRange) []RuneRange {
	var in []RuneRange
	for _, r := range ranges {
		r.Lo, r.Hi = max(r.Lo, 0), min(r.Hi, utf8.MaxRune)
		for _, part := range []RuneRange{{r.Lo, min(r.Hi, 0xD7FF)}, {max(r.Lo, 0xE000), r.Hi}} {
			if part.Lo <= part.Hi {
				in = append(in, part)
			}
		}
	}
	slices.SortFunc(in, func(a, b RuneRange) int { return int(a.Lo - b.Lo) })
	var out []RuneRange
	for _, r := range in {
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// OtherRanges are the characters in none of the ranges.
func OtherRanges(ranges ...RuneRange) []RuneRange {
	var out []RuneRange
	next := rune(0)
	for _, r := range Ranges(ranges...) {
		out = append(out, RuneRange{next, r.Lo - 1})
		next = r.Hi + 1
	}
	return Ranges(append(out, RuneRange{next, utf8.MaxRune})...)
}

// runes is one character of ranges that are in order.
func (t *table) runes(ranges []RuneRange) *Expr {
	var alts []*Expr
	for _, r := range ranges {
		for _, bound := range []rune{0x7F, 0x7FF, 0xFFFF, utf8.MaxRune} { // characters of as many bytes
			if r.Lo > bound || r.Lo > r.Hi {
				continue
			}
			part := RuneRange{r.Lo, min(r.Hi, bound)}
			var lo, hi [utf8.UTFMax]byte
			n := utf8.EncodeRune(lo[:], part.Lo)
			utf8.EncodeRune(hi[:], part.Hi)
			alts = append(alts, t.between(lo[:n], hi[:n]))
			r.Lo = part.Hi + 1
		}
	}
	return t.or(alts...)
}

// between is the rows of bytes from lo to hi, which have as many, those after the first being any continuation bytes.
func (t *table) between(lo, hi []byte) *Expr {
	class := func(lo, hi byte) *Expr {
		var s Set
		s.Add(lo, hi)
		return t.class(s)
	}
	switch {
	case len(lo) == 1:
		return class(lo[0], hi[0])
	case lo[0] == hi[0]:
		return t.cat(class(lo[0], lo[0]), t.between(lo[1:], hi[1:]))
	}
	least, most := slices.Repeat([]byte{0x80}, len(lo)-1), slices.Repeat([]byte{0xBF}, len(lo)-1)
	alts := []*Expr{
		t.cat(class(lo[0], lo[0]), t.between(lo[1:], most)),
		t.cat(class(hi[0], hi[0]), t.between(least, hi[1:])),
	}
	if lo[0]+1 < hi[0] {
		alts = append(alts, t.cat(class(lo[0]+1, hi[0]-1), t.between(least, most)))
	}
	return t.or(alts...)
}
