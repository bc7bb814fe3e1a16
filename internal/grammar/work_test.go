package grammar

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// hostile are grammars that would cost much if their work were not counted.
var hostile = map[string]func(b *Builder, r *Rule){
	"optionals": func(b *Builder, r *Rule) {
		var parts []*Expr
		for i := range 20_000 {
			parts = append(parts, b.Optional(b.Literal(fmt.Sprint("x", i%9000))))
		}
		b.Define(r, b.Seq(parts...))
	},
	"alternatives": func(b *Builder, r *Rule) {
		e := b.Empty()
		for i := range 5000 {
			e = b.Or(e, b.Seq(b.Byte(allBytes), b.Literal(fmt.Sprint(i))))
		}
		b.Define(r, e)
	},
	"window": func(b *Builder, r *Rule) { // a set of places for each text
		letter := b.Choice("a", "b")
		b.Define(r, b.Seq(b.Repeat(letter, 0, -1), b.Literal("a"), b.Repeat(letter, 5000, 5000)))
	},
	"rules": func(b *Builder, r *Rule) {
		var parts []*Expr
		for i := range 4000 {
			q := b.Rule("q")
			b.Define(q, b.Seq(b.Byte(allBytes), b.Literal(fmt.Sprint(i)), b.Optional(b.Ref(r))))
			parts = append(parts, b.Ref(q))
		}
		b.Define(r, b.Or(parts...))
	},
	"chain": func(b *Builder, r *Rule) {
		at := r
		for range 8000 {
			q := b.Rule("q")
			b.Define(at, b.Or(b.Ref(q), b.Seq(b.Ref(q), b.Literal("a"))))
			at = q
		}
		b.Define(at, b.Literal("a"))
	},
	"products": func(b *Builder, r *Rule) {
		var parts []*Expr
		for i := range 30 {
			parts = append(parts, b.Repeat(b.Repeat(b.Byte(allBytes), i+2, i+2), 1, -1))
		}
		b.Define(r, b.And(parts...))
	},
	"lengths": func(b *Builder, r *Rule) {
		var parts []*Expr
		for i := range 1000 {
			parts = append(parts, b.Seq(b.Literal("z"), b.And(b.Repeat(b.Byte(allBytes), i, i+3000), b.Seq(b.Repeat(b.Literal("ab"), 1, -1), b.Literal(fmt.Sprint(i))))))
		}
		b.Define(r, b.Or(parts...))
	},
	"ambiguous": func(b *Builder, r *Rule) {
		b.Define(r, b.Or(b.Seq(b.Ref(r), b.Ref(r)), b.Seq(b.Ref(r), b.Ref(r), b.Ref(r)), b.Byte(allBytes)))
	},
	"members": func(b *Builder, r *Rule) { // twice as many ways to the innermost with each level
		e := b.Optional(b.Ref(r))
		for range 60 {
			e = b.Members(b.Literal(","), []*Expr{b.Seq(b.Literal("a"), e), b.Seq(b.Literal("b"), e)}, nil, b.Never())
		}
		b.Define(r, e)
	},
	"counters": func(b *Builder, r *Rule) {
		inner := b.Repeat(b.Repeat(b.Choice("a", "aa", "b"), 3, 70_000), 5, 80_000)
		b.Define(r, b.Seq(b.Repeat(inner, 2, MaxRepeat), b.Optional(b.Seq(b.Literal("a"), b.Ref(r)))))
	},
}

// follow compiles a grammar and goes through one of its texts for some tokens. It tells how many steps were taken in all, how
// many beyond what there was, and how many bytes were allocated.
func follow(v *Vocab, r *rand.Rand, build func(b *Builder, r *Rule)) (steps, over, bytes int) {
	b := NewBuilder()
	bytes = allocated(func() {
		start := b.Rule("start")
		build(b, start)
		g, err := b.Compile(start)
		if steps, over = maxWork-b.budget.left, max(-b.budget.left, 0); err != nil {
			return
		}
		budget := NewBudget(1)
		m := v.Matcher(g, budget)
		for range 30 {
			before := budget.left
			mask := m.Allowed()
			if mask == nil || budget.Spent() {
				steps += before - budget.left
				break
			}
			id := r.IntN(len(v.ends) - 1)
			for mask[id/64]>>(id%64)&1 == 0 {
				id = (id + 1) % (len(v.ends) - 1)
			}
			m.Accept(int32(id))
			steps += before - budget.left
			budget.Token()
		}
		over = max(over, -budget.left)
	})
	return steps, over, bytes
}

// TestHostile: what a grammar costs is counted, in time and in memory, and there is an end to it.
func TestHostile(t *testing.T) {
	v := bytesVocab(words...)
	for name, build := range hostile {
		steps, over, bytes := follow(v, rand.New(rand.NewPCG(1, 2)), build)
		if over > 1<<23 {
			t.Errorf("%s: %d steps too many", name, over)
		}
		if most := 256<<20 + 8*steps; bytes > most {
			t.Errorf("%s: %d steps allocate %d bytes, more than %d", name, steps, bytes, most)
		}
		t.Logf("%s: %d steps, %d MiB", name, steps, bytes>>20)
	}
}

// TestLongSequence: a sequence is looked at from part to part, not deeper and deeper.
func TestLongSequence(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	compiled(t, func(b *Builder) *Rule {
		r := b.Rule("long")
		b.Define(r, b.Or(b.Literal("x"), b.Seq(b.Literal(strings.Repeat("ab", 60_000)), b.Ref(r))))
		return r
	})
	runtime.ReadMemStats(&after)
	if after.StackInuse > before.StackInuse+8<<20 {
		t.Errorf("it takes %d MiB of stack", (after.StackInuse-before.StackInuse)>>20)
	}
}

// TestMembers: members come in any order, each once, and a hundred of them cost no more than there is.
func TestMembers(t *testing.T) {
	const n = 100
	g := compiled(t, func(b *Builder) *Rule {
		var required, optional []*Expr
		for i := range n {
			m := b.Seq(b.Literal(fmt.Sprintf(`"field_%d": `, i)), b.Ref(jsonText(b, 0, -1)))
			if i%2 == 0 {
				required = append(required, m)
			} else {
				optional = append(optional, m)
			}
		}
		r := b.Rule("object")
		b.Define(r, b.Seq(b.Literal("{"), b.Members(b.Literal(", "), required, optional, b.Never()), b.Literal("}")))
		return r
	})
	text := func(order []int) string {
		var members []string
		for _, i := range order {
			members = append(members, fmt.Sprintf(`"field_%d": "x"`, i))
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	order := rand.New(rand.NewPCG(3, 3)).Perm(n)
	v := bytesVocab(words...)
	budget := NewBudget(1)
	m := v.Matcher(g, budget)
	worst := 0
	for i, c := range []byte(text(order)) {
		before := budget.left
		if mask := m.Allowed(); mask == nil || mask[c/64]>>(c%64)&1 == 0 || !m.Accept(int32(c)) {
			t.Fatalf("at %d", i)
		}
		worst = max(worst, before-budget.left)
		budget.Token()
	}
	if !m.Done() || worst > perToken {
		t.Errorf("done %v, %d steps at worst", m.Done(), worst)
	}
	even := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return i%2 == 1 })
	for what, c := range map[string]struct {
		order []int
		want  bool
	}{"required alone": {even, true}, "one is missing": {even[1:], false}, "one is there twice": {append(slices.Clone(even), even[0]), false}} {
		budget.left = burst
		m.Rollback(m.Tokens())
		if got := m.AcceptBytes([]byte(text(c.order))) && m.Done(); got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// FuzzWork looks for grammars that cost more than is counted.
func FuzzWork(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	v := abcVocab()
	f.Fuzz(func(t *testing.T, x, y uint64) {
		r := rand.New(rand.NewPCG(x, y))
		rules := make(naiveGrammar, 1+r.IntN(6))
		for i := range rules {
			rules[i] = randomExpr(r, 2+r.IntN(4), len(rules))
			rules[i].enlarge(r)
		}
		steps, over, bytes := follow(v, r, func(b *Builder, start *Rule) {
			all := []*Rule{start}
			for range rules[1:] {
				all = append(all, b.Rule("r"))
			}
			for i, x := range rules {
				b.Define(all[i], x.build(b, all))
			}
		})
		if over > 1<<23 || bytes > 64<<20+8*steps {
			t.Errorf("%v: %d steps, %d too many, %d bytes", rules, steps, over, bytes)
		}
	})
}

// enlarge makes numbers and texts of an expression large.
func (x *naive) enlarge(r *rand.Rand) {
	switch {
	case x.op == "repeat" && r.IntN(2) == 0:
		x.least = r.IntN(1 << r.IntN(20))
		x.most = x.least + r.IntN(1<<r.IntN(19))
	case x.op == "literal" && r.IntN(4) == 0:
		x.chars = strings.Repeat(x.chars, 1+r.IntN(200))
	}
	for _, p := range x.parts {
		p.enlarge(r)
	}
}
