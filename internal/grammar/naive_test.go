package grammar

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
)

// naive is an expression that is matched by its definition, span by span: what those of a Builder are compared with.
type naive struct {
	op    string // byte, seq, or, and, not, repeat, ref, literal; members: what is between, others, least required ones, optional ones
	chars string // of a byte or a literal
	parts []*naive
	least int
	most  int
	rule  int
}

// naiveSpans has, for each place in a text, a bit for each place up to which something is matched from there on.
type naiveSpans [16]uint16

// join is what matches a and then b.
func (a naiveSpans) join(b naiveSpans) (both naiveSpans) {
	for i, ends := range a {
		for ; ends != 0; ends &= ends - 1 {
			both[i] |= b[bits.TrailingZeros16(ends)]
		}
	}
	return both
}

// match gives the naiveSpans of a text that an expression matches, where rules match what is known of them.
func (x *naive) match(text string, rules []naiveSpans) (out naiveSpans) {
	var empty naiveSpans
	for i := 0; i <= len(text); i++ {
		empty[i] = 1 << i
	}
	switch x.op {
	case "byte":
		for i := range len(text) {
			if strings.IndexByte(x.chars, text[i]) >= 0 {
				out[i] = 1 << (i + 1)
			}
		}
	case "literal":
		for i := 0; i+len(x.chars) <= len(text); i++ {
			if text[i:i+len(x.chars)] == x.chars {
				out[i] = 1 << (i + len(x.chars))
			}
		}
	case "seq":
		out = empty
		for _, p := range x.parts {
			out = out.join(p.match(text, rules))
		}
	case "or":
		for _, p := range x.parts {
			for i, ends := range p.match(text, rules) {
				out[i] |= ends
			}
		}
	case "and", "not":
		for i := 0; i <= len(text); i++ {
			out[i] = (1<<(len(text)+1) - 1) &^ (1<<i - 1)
		}
		for _, p := range x.parts {
			for i, ends := range p.match(text, rules) {
				if x.op == "not" {
					ends = ^ends
				}
				out[i] &= ends
			}
		}
	case "repeat":
		once, at := x.parts[0].match(text, rules), empty
		for n := 0; x.most < 0 && n <= x.least+len(text) || n <= x.most; n++ {
			if n >= x.least {
				for i, ends := range at {
					out[i] |= ends
				}
			}
			at = at.join(once)
		}
	case "ref":
		return rules[x.rule]
	case "members":
		between, others, list := x.parts[0].match(text, rules), x.parts[1].match(text, rules), x.parts[2:]
		if x.least == 0 {
			out = empty
		}
		var walk func(at naiveSpans, left []int, need int)
		walk = func(at naiveSpans, left []int, need int) {
			for more := at.join(between).join(others); ; more = more.join(between).join(others) {
				before := at
				for i, ends := range more {
					at[i] |= ends
				}
				if at == before {
					break
				}
			}
			if need == 0 {
				for i, ends := range at {
					out[i] |= ends
				}
			}
			for k, m := range left {
				rest := need
				if m < x.least {
					rest--
				}
				walk(at.join(between).join(list[m].match(text, rules)), slices.Delete(slices.Clone(left), k, k+1), rest)
			}
		}
		var all []int
		for m := range list {
			all = append(all, m)
		}
		walk(others, all, x.least)
		for k, m := range all {
			rest := x.least
			if m < x.least {
				rest--
			}
			walk(list[m].match(text, rules), slices.Delete(slices.Clone(all), k, k+1), rest)
		}
	}
	return out
}

// naiveGrammar are rules, the first of which is where texts start.
type naiveGrammar []*naive

// matches tells whether a text follows the grammar: rules match more and more until nothing changes.
func (g naiveGrammar) matches(text string) bool {
	rules := make([]naiveSpans, len(g))
	for changed := true; changed; {
		changed = false
		for i, x := range g {
			next := x.match(text, rules)
			if next != rules[i] {
				rules[i], changed = next, true
			}
		}
	}
	return rules[0][0]>>len(text)&1 != 0
}

// build makes the same of a Builder.
func (x *naive) build(b *Builder, rules []*Rule) *Expr {
	parts := make([]*Expr, len(x.parts))
	for i, p := range x.parts {
		parts[i] = p.build(b, rules)
	}
	switch x.op {
	case "byte":
		var s Set
		for _, c := range []byte(x.chars) {
			s.Add(c, c)
		}
		return b.Byte(s)
	case "literal":
		return b.Literal(x.chars)
	case "seq":
		return b.Seq(parts...)
	case "or":
		return b.Or(parts...)
	case "and":
		return b.And(parts...)
	case "not":
		return b.Not(parts[0])
	case "repeat":
		return b.Repeat(parts[0], x.least, x.most)
	case "members":
		return b.Members(parts[0], parts[2:2+x.least], parts[2+x.least:], parts[1])
	}
	return b.Ref(rules[x.rule])
}

func (g naiveGrammar) compile() (*Grammar, error) {
	return g.compileAs(nil)
}

// compileAs compiles what is made of the first rule, or that.
func (g naiveGrammar) compileAs(of func(b *Builder, start *Expr) *Expr) (*Grammar, error) {
	b := NewBuilder()
	rules := make([]*Rule, len(g))
	for i := range g {
		rules[i] = b.Rule(fmt.Sprintf("r%d", i))
	}
	for i, x := range g {
		b.Define(rules[i], x.build(b, rules))
	}
	if of == nil {
		return b.Compile(rules[0])
	}
	root := b.Rule("root")
	b.Define(root, of(b, b.Ref(rules[0])))
	return b.Compile(root)
}

func (x *naive) String() string {
	var parts []string
	for _, p := range x.parts {
		parts = append(parts, p.String())
	}
	switch x.op {
	case "byte":
		return "[" + x.chars + "]"
	case "literal":
		return fmt.Sprintf("%q", x.chars)
	case "repeat":
		return fmt.Sprintf("(%s){%d,%d}", parts[0], x.least, x.most)
	case "ref":
		return fmt.Sprintf("r%d", x.rule)
	case "not":
		return "!(" + parts[0] + ")"
	case "members":
		return fmt.Sprintf("members%d(%s)", x.least, strings.Join(parts, ", "))
	}
	between := map[string]string{"seq": " ", "or": " | ", "and": " & "}[x.op]
	return "(" + strings.Join(parts, between) + ")"
}

// randomExpr is an expression over a, b and c. It refers to rules below rules, or to none.
func randomExpr(r *rand.Rand, depth, rules int) *naive {
	if depth == 0 || r.IntN(6) == 0 {
		switch k := r.IntN(6); {
		case k < 2 && rules > 0:
			return &naive{op: "ref", rule: r.IntN(rules)}
		case k < 4:
			return &naive{op: "byte", chars: []string{"a", "b", "ab", "abc", "c"}[r.IntN(5)]}
		default:
			return &naive{op: "literal", chars: []string{"", "ab", "ba", "abc", "a"}[r.IntN(5)]}
		}
	}
	some := func(n, rules int) []*naive {
		parts := make([]*naive, n)
		for i := range parts {
			parts[i] = randomExpr(r, depth-1, rules)
		}
		return parts
	}
	switch k := r.IntN(10); {
	case k < 4:
		return &naive{op: "seq", parts: some(1+r.IntN(3), rules)}
	case k < 7:
		return &naive{op: "or", parts: some(1+r.IntN(3), rules)}
	case k < 9:
		least := r.IntN(3)
		most := least + r.IntN(3)
		switch r.IntN(6) {
		case 0, 1:
			most = -1
		case 2: // more than a token is long
			least = r.IntN(10)
			most = least + r.IntN(20)
		}
		return &naive{op: "repeat", parts: some(1, rules), least: least, most: most}
	case r.IntN(3) == 0:
		return randomMembers(r, some(2+r.IntN(3), rules))
	case r.IntN(2) == 0:
		return &naive{op: "and", parts: some(2, 0)}
	default:
		return &naive{op: "and", parts: []*naive{randomExpr(r, depth-1, 0), {op: "not", parts: some(1, 0)}}}
	}
}

// randomMembers makes members of some expressions. Each begins with a byte of its own kind, so that none is empty.
func randomMembers(r *rand.Rand, parts []*naive) *naive {
	for i, p := range parts {
		parts[i] = &naive{op: "seq", parts: []*naive{{op: "byte", chars: []string{"a", "b", "c", "ab"}[r.IntN(4)]}, p}}
	}
	if r.IntN(2) == 0 {
		parts[0] = &naive{op: "literal"} // nothing between them
	}
	if r.IntN(2) == 0 {
		parts[1] = &naive{op: "or"} // no others
	}
	for i := len(parts) - 1; i > 2; i-- { // the same one twice would be one
		if slices.ContainsFunc(parts[2:i], func(p *naive) bool { return p.String() == parts[i].String() }) {
			parts = slices.Delete(parts, i, i+1)
		}
	}
	return &naive{op: "members", parts: parts, least: r.IntN(len(parts) - 1)}
}

// texts calls f for all texts of at most n characters out of a, b and c.
func texts(n int, f func(text string)) {
	all := []string{""}
	for i := 0; i < len(all); i++ {
		f(all[i])
		if len(all[i]) < n {
			for _, c := range "abc" {
				all = append(all, all[i]+string(c))
			}
		}
	}
}
