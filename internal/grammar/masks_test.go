package grammar

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"hearth/internal/tokenizer"
)

// realVocab is the vocabulary of the model in the folder $HEARTH_TEST_TOKENIZER, or one that is as large as those of today.
func realVocab(tb testing.TB) *Vocab {
	dir := os.Getenv("HEARTH_TEST_TOKENIZER")
	if dir == "" {
		return wideVocab()
	}
	tok, err := tokenizer.Load(os.DirFS(dir))
	if err != nil {
		tb.Fatal(err)
	}
	return NewVocab(tok.Size(), func(id int32) []byte {
		if tok.Special(id) {
			return nil
		}
		return tok.Bytes(id)
	})
}

func compiled(tb testing.TB, build func(b *Builder) *Rule) *Grammar {
	tb.Helper()
	b := NewBuilder()
	g, err := b.Compile(build(b))
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

var maskPlaces = map[string]struct {
	build   func(b *Builder) *Rule
	written string
}{
	"any":      {anyJSON, `{"a": `},
	"nested":   {anyJSON, `[[[{"a": [[`},
	"text":     {anyJSON, `{"a": "x`},
	"key":      {anyJSON, `{"`},
	"number":   {anyJSON, `{"a": 1`},
	"bounded":  {func(b *Builder) *Rule { return jsonText(b, 0, 50) }, `"abc`},
	"short":    {func(b *Builder) *Rule { return jsonText(b, 0, 20) }, `"abc`},
	"selected": {someTexts, `"abcd`},
	"pattern":  {func(b *Builder) *Rule { return wordTexts(b, 200) }, `"abc def`},
	"tight":    {func(b *Builder) *Rule { return wordTexts(b, 12) }, `"abc def`},
}

// someTexts are strings of at least three characters that are none of some.
func someTexts(b *Builder) *Rule {
	r := b.Rule("selected")
	b.Define(r, b.Seq(b.Literal(`"`), b.Except(b.Repeat(jsonChar(b), 3, -1), b.Choice("name", "type", "value")), b.Literal(`"`)))
	return r
}

// wordTexts are strings of words, which are of at least three letters, with at most so many characters.
func wordTexts(b *Builder, most int) *Rule {
	r := b.Rule("words")
	var letters Set
	letters.Add('a', 'z')
	word := b.Repeat(b.Byte(letters), 3, -1)
	b.Define(r, b.Seq(b.Literal(`"`), b.And(b.Repeat(jsonChar(b), 0, most), b.Seq(word, b.Repeat(b.Seq(b.Literal(" "), word), 1, -1))), b.Literal(`"`)))
	return r
}

// BenchmarkMask: what a mask costs whose states were met before, and what it costs the first time ever.
func BenchmarkMask(b *testing.B) {
	v := realVocab(b)
	for name, p := range maskPlaces {
		g := compiled(b, p.build)
		m := v.Matcher(g, NewBudget(1))
		if !m.AcceptBytes([]byte(p.written)) {
			b.Fatal(name)
		}
		again := func() {
			m.since, m.s.budget.left = 0, burst
			m.Allowed()
		}
		b.Run(name+"/met", func(b *testing.B) {
			again()
			b.ReportAllocs()
			for b.Loop() {
				again()
			}
			b.ReportMetric(float64(burst-m.s.budget.left), "steps")
		})
		b.Run(name+"/new", func(b *testing.B) {
			for b.Loop() {
				v.cache = maskCache{}
				m.s.top()[0].at.state.masks.Store(nil)
				again()
			}
			b.ReportMetric(float64(burst-m.s.budget.left), "steps")
		})
	}
}

// TestMasks: the mask at each place is the tokens that fit there, each tried by itself.
func TestMasks(t *testing.T) {
	v := wideVocab()
	for name, p := range maskPlaces {
		m := v.Matcher(compiled(t, p.build), NewBudget(1))
		for i := range p.written {
			if !m.AcceptBytes([]byte(p.written[i : i+1])) {
				t.Fatalf("%s: %q does not fit", name, p.written[:i+1])
			}
			mask := m.Allowed()
			for id := int32(i % 37); int(id) < len(v.ends); id += 37 {
				m.s.budget.left = burst
				fits := m.Accept(id)
				if fits {
					m.Rollback(1)
				}
				if got := mask[id/64]>>(id%64)&1 != 0; got != fits {
					t.Fatalf("%s: after %q %q may come: %v, want %v", name, p.written[:i+1], v.text(id), got, fits)
				}
			}
		}
	}
}

// TestMaskCost: what was met before costs next to nothing, wherever it is, and so does what counts, whatever it counts to.
func TestMaskCost(t *testing.T) {
	budget := NewBudget(1)
	cost := func(v *Vocab, build func(b *Builder) *Rule, written string) int {
		budget.left = burst
		m := v.Matcher(compiled(t, build), budget)
		if !m.AcceptBytes([]byte(written)) {
			t.Fatalf("%q does not fit", written)
		}
		before := budget.left
		m.Allowed()
		return before - budget.left
	}
	text := func(most int) func(b *Builder) *Rule {
		return func(b *Builder) *Rule { return jsonText(b, 0, most) }
	}
	anded := func(most int) func(b *Builder) *Rule {
		return func(b *Builder) *Rule { return wordTexts(b, most) }
	}
	for name, c := range map[string]struct {
		build, met     func(b *Builder) *Rule
		written, first string
		most           int
	}{
		"value":  {anyJSON, anyJSON, `{"a": [`, `{"b": [`, 500},
		"text":   {anyJSON, anyJSON, `{"a": {"b": "c`, `{"a": "`, 2000},
		"length": {text(100), text(10_000), `"abc`, `"abcdef`, 2000},
		"and":    {anded(100), anded(10_000), `"abc`, `"abcdef`, 2000},
	} {
		v := wideVocab()
		first := cost(v, c.met, c.first)
		if again := cost(v, c.build, c.written); again > c.most || again > first/4 {
			t.Errorf("%s: %d steps the first time, %d in another grammar", name, first, again)
		}
	}
}

// TestMaskMemory: masks are bounded together; those that were dropped are made again.
func TestMaskMemory(t *testing.T) {
	v := wideVocab()
	m := v.Matcher(compiled(t, func(b *Builder) *Rule { return jsonText(b, 0, 4000) }), NewBudget(1))
	m.AcceptBytes([]byte(`"`))
	want := slices.Clone(m.Allowed())
	for i := range 4000 {
		m.s.budget.left = burst
		v.cache.put(maskKey{tier: 1000 + i}, &mask{words: make([]uint64, len(m.mask))})
		if v.cache.bytes > mostMasks {
			t.Fatalf("%d bytes", v.cache.bytes)
		}
	}
	if n := len(v.cache.all); n != len(v.cache.ring) || n > mostMasks/(8*len(m.mask)) {
		t.Errorf("%d masks are there, %d in the ring", n, len(v.cache.ring))
	}
	m.since, m.s.budget.left = 0, burst
	if !slices.Equal(m.Allowed(), want) {
		t.Error("the mask is another one")
	}
}

// TestLikeLeaves: a state whose mask is told by that of another one is not taken for it behind a place where only one of them may
// leave the rule.
func TestLikeLeaves(t *testing.T) {
	words := []string{"\n", "</p>\n", "</p>\n</f>", "</p>\n<p>"}
	for c := 'a'; c <= 'z'; c++ {
		words = append(words, string(c), string(c)+string(c))
	}
	v := NewVocab(len(words), func(id int32) []byte { return []byte(words[id]) })
	g := compiled(t, func(b *Builder) *Rule {
		text := b.Not(b.Or(b.Seq(b.Any(), b.Literal("\n")), b.Seq(b.Any(), b.Literal("</p>\n</f>"), b.Any()))) // does not end in a line end
		more := b.Choice(strings.Split(strings.Repeat("x y z long enough not to be put elsewhere ", 4), " ")...)
		args, root := b.Rule("arguments"), b.Rule("call")
		b.Define(args, b.Repeat(b.Seq(b.Optional(b.Seq(b.Literal("<p "), more)), b.Literal("<p>"), text, b.Literal("</p>\n")), 0, -1))
		b.Define(root, b.Seq(b.Ref(args), b.Literal("</f>")))
		return root
	})
	for _, written := range []string{"<p>a", "<p>a\n", "<p>a</p>\n"} {
		m := v.Matcher(g, NewBudget(1))
		if !m.AcceptBytes([]byte(written)) {
			t.Fatalf("%q does not fit", written)
		}
		may := slices.Clone(m.Allowed())
		for id, word := range words {
			if fits := m.Accept(int32(id)); fits != (may[id/64]>>(id%64)&1 == 1) {
				t.Errorf("behind %q, %q: fits %v", written, word, fits)
			} else if fits {
				m.Rollback(1)
			}
		}
	}
}

// TestVocabMemory: the tokens of the largest vocabularies of today, with as many masks as are kept, take less than 64 MB.
func TestVocabMemory(t *testing.T) {
	const most = 64 << 20
	size, text := wideTokens(262_144)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // what has a finalizer or was in a pool
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	v := NewVocab(size, text)
	tokens := heap() - before
	for n := 0; v.cache.bytes < mostMasks-(1<<20); n++ {
		e := &mask{ids: []int32{1, 2, 3}} // as most are
		switch n % 4 {
		case 0:
			e.leaving = newTrie([]token{{[]byte(`", "`), 4}, {[]byte(`"`), 5}})
		case 1:
			e.ids = make([]int32, n%1000)
		case 2:
			e = &mask{words: make([]uint64, v.words())}
		}
		v.cache.put(maskKey{tier: n}, e)
	}
	all := heap() - before
	t.Logf("%d MB, %d MB with %d masks that count as %d MB", tokens>>20, all>>20, len(v.cache.ring), v.cache.bytes>>20)
	if all > most {
		t.Errorf("%d bytes of tokens, %d with masks", tokens, all)
	}
	runtime.KeepAlive(v)
	runtime.KeepAlive(text) // which was there before
}

// TestLikeIsKept: what a mask in the cache is like is there too, as long as that mask is, so that all memory is counted.
func TestLikeIsKept(t *testing.T) {
	c, n := &maskCache{}, 0
	put := func(m *mask) *cached {
		n++
		return c.put(maskKey{tier: n}, m)
	}
	large := func() *mask { return &mask{words: make([]uint64, mostMasks/8/16)} }
	like := large()
	put(like)
	held := put(&mask{like: like})
	for range 100 {
		held.used.Store(true)
		put(large())
		kept := map[*mask]bool{}
		for _, p := range c.ring {
			kept[p.mask.Load()] = true
		}
		for m := range kept {
			if m.like != nil && !kept[m.like] {
				t.Fatalf("of %d masks the one that another is like is dropped", n)
			}
		}
	}
	for range 100 {
		put(large())
	}
	if held.mask.Load() != nil || like.likes != 0 || len(c.ring) > 16 || c.bytes > mostMasks {
		t.Errorf("held %v, liked by %d, %d masks of %d bytes", held.mask.Load() != nil, like.likes, len(c.ring), c.bytes)
	}
}

// TestForget: a grammar that has found out too much forgets it, and what follows it goes on.
func TestForget(t *testing.T) {
	g := compiled(t, anyJSON)
	m := bytesVocab(words...).Matcher(g, NewBudget(1))
	forgot := 0
	for i, c := range []byte(`{"a": ["b", 1.5e3, {"c": null}], "d": "\u00e9"}`) {
		if g.least >= 0 {
			forgot++
			g.least = -mostLearned
		}
		if m.Allowed() == nil || !m.AcceptBytes([]byte{c}) {
			t.Fatalf("at %d", i)
		}
	}
	if !m.Done() || forgot < 10 {
		t.Error(m.Done(), forgot)
	}
}

// TestWide: a rule that many tokens leave is not remembered by them, and the mask is the same.
func TestWide(t *testing.T) {
	texts := []string{"a", "b", "!", "a!"}
	for i := range mostLeaving { // each goes on where the rule may end
		texts = append(texts, fmt.Sprintf("ab!%d", i))
	}
	v := NewVocab(len(texts), func(id int32) []byte { return []byte(texts[id]) })
	m := v.Matcher(compiled(t, func(b *Builder) *Rule {
		word, start := b.Rule("word"), b.Rule("start")
		b.Define(word, b.Or(b.Literal("a"), b.Seq(b.Literal("a"), b.Ref(word)), b.Literal("ab"))) // which refers to itself, so it stays a rule
		b.Define(start, b.Seq(b.Ref(word), b.Choice("!", "!7", "!99")))
		return start
	}), NewBudget(1))
	m.w.s.budget = m.s.budget
	if e := v.entry(&m.w, m.s.g.start.body, everyTier); !e.wide {
		t.Fatal("it is remembered")
	}
	m.AcceptBytes([]byte("a"))
	m.Allowed()
	for id := range texts {
		m.s.budget.left = burst
		mask, fits := m.Allowed(), m.Accept(int32(id))
		if mask[id/64]>>(id%64)&1 != 0 != fits {
			t.Fatal(texts[id])
		}
		if fits {
			m.Rollback(1)
		}
	}
}

// TestHeld: a matcher whose ways take too much memory has spent its budget.
func TestHeld(t *testing.T) {
	m := bytesVocab().Matcher(compiled(t, anyJSON), NewBudget(1))
	m.AcceptBytes([]byte(`[`))
	m.s.links = append(m.s.links, make([]chained, mostHeld)...)
	if m.AcceptBytes([]byte(`1`)) || !m.s.budget.Spent() {
		t.Error("it goes on")
	}
}

// TestManyAtOnce: a grammar and a vocabulary are used by many goroutines.
func TestManyAtOnce(t *testing.T) {
	for text, build := range map[string]func(b *Builder) *Rule{
		`{"name": ["x", 12, {"y": true}], "z": "\n"}`: anyJSON,
		`"names and types"`:                           func(b *Builder) *Rule { return wordTexts(b, 20) },
		`"namely"`:                                    someTexts,
	} {
		g, v := compiled(t, build), bytesVocab(words...)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				m := v.Matcher(g, NewBudget(1))
				for j := range 4 * len(text) {
					if j%len(text) == 0 {
						m.Rollback(m.Tokens())
					}
					c := text[j%len(text)]
					if mask := m.Allowed(); mask[c/64]>>(c%64)&1 == 0 || !m.AcceptBytes([]byte{c}) {
						t.Errorf("%d: %q at %d of %s", i, c, j, text)
						return
					}
				}
			})
		}
		all.Wait()
	}
}

// TestBackAndElsewhere: what was found before a way back does not tell what comes after it, though it looks the same.
func TestBackAndElsewhere(t *testing.T) {
	g, v := compiled(t, anyJSON), bytesVocab(words...)
	m := v.Matcher(g, NewBudget(1))
	for _, text := range []string{`["a`, `{"a`, `["a`, `[["a`, `[{"a`} {
		if !m.AcceptBytes([]byte(text)) {
			t.Fatal(text)
		}
		fresh := v.Matcher(g, NewBudget(1))
		fresh.AcceptBytes([]byte(text))
		if !slices.Equal(m.Allowed(), fresh.Allowed()) {
			t.Errorf("after %s", text)
		}
		m.Prefix([]int32{'b', '"'})
		m.Rollback(1)
	}
	if m.Rollback(9); m.Tokens() != 0 || m.Allowed() == nil {
		t.Error("it is not at the beginning")
	}
}

// TestNoAllocations: what was met before is followed without any memory.
func TestNoAllocations(t *testing.T) {
	g, v := compiled(t, anyJSON), bytesVocab(words...)
	m := v.Matcher(g, NewBudget(1))
	text := []byte(`{"name": ["x", 12, {"y": true}], "z": "\n"}`)
	follow := func() {
		m.s.budget.left = burst
		m.Rollback(m.Tokens())
		for i := range text {
			if m.Allowed() == nil || !m.AcceptBytes(text[i:i+1]) {
				t.Fatalf("at %d", i)
			}
		}
		m.Rollback(3)
		m.Prefix([]int32{'"', '}', '}'})
	}
	if n := testing.AllocsPerRun(10, follow); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSpentLearnsNothing: what was found out up to where a budget ran out is not taken for all there is by who follows the same
// grammar.
func TestSpentLearnsNothing(t *testing.T) {
	v := bytesVocab(words...)
	build := func(b *Builder) *Rule {
		start, list := b.Rule("start"), []*Expr{}
		for c := byte('a'); c <= 'z'; c++ {
			r := b.Rule(string(c))
			b.Define(r, b.Seq(b.Literal(string(c)), b.Optional(b.Ref(start))))
			list = append(list, b.Ref(r))
		}
		b.Define(start, b.Seq(b.Or(list...), b.Except(b.Repeat(b.Choice("!", "?"), 0, 30), b.Literal("!?"))))
		return start
	}
	const text = "az!?!"
	allowed := func(g *Grammar) (all [][]uint64) {
		m := v.Matcher(g, NewBudget(1))
		for _, c := range []byte(text) {
			all = append(all, slices.Clone(m.Allowed()))
			if !m.AcceptBytes([]byte{c}) {
				return all
			}
		}
		return append(all, slices.Clone(m.Allowed()))
	}
	want := allowed(compiled(t, build))
	if len(want) != len(text)+1 {
		t.Fatalf("%q does not fit from %d on", text, len(want)-1)
	}
	for left := 100; left < 40_000; left += left / 16 {
		v.cache = maskCache{}
		g := compiled(t, build)
		m := v.Matcher(g, &Budget{left})
		for _, c := range []byte(text) {
			m.AcceptBytes([]byte{c})
			m.Allowed()
		}
		if got := allowed(g); !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("after a reply with %d steps %d of %d masks are as they were", left, len(got), len(want))
		}
	}
}
