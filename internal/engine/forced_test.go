package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/demo"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/sample"
)

// forcing makes a hook that forces stretches of up to so many tokens and masks some of what comes between, whatever the model
// says. One by one, it forces the next token of a stretch when it is told of the one before.
func forcing(seed uint64, longest int, oneByOne bool) func(int32) Constraint {
	r := rand.New(rand.NewPCG(seed, 21))
	var stretch []int32 // its tokens that have not come
	free := r.IntN(4)
	return func(id int32) (c Constraint) {
		if len(stretch) > 0 {
			if id != stretch[0] {
				return Constraint{Err: fmt.Errorf("told of %d, not %d", id, stretch[0])}
			}
			if stretch = stretch[1:]; len(stretch) > 0 {
				if oneByOne {
					c.Forced = stretch[:1]
				}
				return c
			}
		}
		if free--; free > 0 {
			c.Mask = sample.Set{r.Uint64() | 1<<r.IntN(64), r.Uint64() & (1<<32 - 1)}
			return c
		}
		free = r.IntN(4)
		for range 1 + r.IntN(longest) {
			stretch = append(stretch, r.Int32N(96))
		}
		if c.Forced = stretch; oneByOne {
			c.Forced = stretch[:1]
		}
		return c
	}
}

// TestSpans: sequences whose forced tokens run as spans say what they say when each has a step of its own: with and without
// logprobs, greedy and not, beside each other, a free one and prompts read in chunks, whatever their layers remember. What they
// leave in the prefix cache is as good as what prompts leave.
func TestSpans(t *testing.T) {
	for _, name := range []string{"llama", "deepseek_v3", "gemma3_text", "gpt_oss", "qwen3_next", "kimi_linear", "bailing_moe_linear", "jamba", "mamba2", "falcon_h1", "lfm2"} {
		t.Run(name, func(t *testing.T) {
			var g struct {
				Config json.RawMessage `json:"config"`
			}
			golden.Load(t, "../model/testdata/"+name+"/4bit.json", &g)
			compareSpans(t, func(change func(*Config)) *Engine {
				return start(t, &hooked{Backend: cpu.New(), config: string(g.Config)}, func(c *Config) {
					c.Vocab, c.PrefillChunk = 96, 48
					change(c)
				})
			})
		})
	}
	t.Run("demo", func(t *testing.T) {
		compareSpans(t, func(change func(*Config)) *Engine {
			ckpt, err := model.OpenCheckpoint(demo.FS(), demo.Name)
			if err != nil {
				t.Fatal(err)
			}
			be := cpu.New()
			m, err := ckpt.Load(be, backend.Options{Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			c := Config{Model: m.Generator, Vocab: m.Vocab, Backend: be, Budget: 1 << 26, MaxContext: 1000}
			change(&c)
			e, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := errors.Join(e.Close(), m.Close(), be.Close(), ckpt.Close()); err != nil {
					t.Error(err)
				}
			})
			return e
		})
	})
}

// compareSpans has engines on one model with 96 tokens or more generate, turn by turn.
func compareSpans(t *testing.T, open func(change func(*Config)) *Engine) {
	e := open(func(*Config) {})
	slow := open(func(*Config) {})
	fresh := open(func(c *Config) { c.NoCache = true })
	ask := func(e *Engine, said [][]int32, turn uint64, oneByOne bool) (all [][]Token) {
		var streams []*Stream
		held, hold := make(chan struct{}), make(chan struct{})
		go between(e, func() { close(held); <-hold }) // all begin together
		<-held
		for i := range said {
			for _, id := range prompt(30+40*(i%3), turn*10+uint64(i)) {
				said[i] = append(said[i], id%96)
			}
			p := Prompt{Tokens: said[i], MaxTokens: 70, Logprobs: -1, Marks: []int{len(said[i])}}
			if i > 0 {
				p.Constrain = forcing(uint64(i), []int{0, 3, 30, 90, 30, 3}[i], oneByOne)
			}
			switch i {
			case 0:
				p.MaxTokens = 30
			case 2:
				p.Logprobs = 2
			case 3:
				p.Sampling = sample.Params{Temperature: 1.1, Seed: 5}
				p.Sampling.Set("frequency_penalty", 0.7)
			case 4:
				p.Sampling = sample.Params{Temperature: 0.9, Seed: 6, TopP: 0.9}
				p.Sampling.Set("repetition_penalty", 1.3)
				p.Logprobs = 0
			case 5:
				p.Logprobs = 1
			}
			streams = append(streams, submit(t, e, p))
		}
		close(hold)
		for i, s := range streams {
			all = append(all, read(t, s))
			if n := s.Usage().Generated; n != 70 && i > 0 || len(all[i]) != n || s.Finish() != Length {
				t.Errorf("sequence %d: %d tokens, %d generated, %v", i, len(all[i]), n, s.Finish())
			}
			for _, tok := range all[i] {
				said[i] = append(said[i], tok.ID)
			}
		}
		return all
	}
	said, saidSlow, saidFresh := make([][]int32, 6), make([][]int32, 6), make([][]int32, 6)
	for turn := range uint64(2) {
		got := ask(e, said, turn, false)
		if d := cmp.Diff(ask(slow, saidSlow, turn, true), got); d != "" {
			t.Errorf("turn %d, one by one -, spans +\n%s", turn, d)
		}
		if d := cmp.Diff(ask(fresh, saidFresh, turn, false), got); d != "" {
			t.Errorf("turn %d, nothing cached -, cached +\n%s", turn, d)
		}
	}
	s, o := e.Stats(), slow.Stats()
	if s.GeneratedTokens != o.GeneratedTokens || s.Cache.Enabled && s.Cache.Hits < 5 || s.Steps >= o.Steps {
		t.Errorf("%+v\none by one: %+v", s, o)
	}
	t.Logf("%d steps, one by one %d", s.Steps, o.Steps)
}

// TestSpansAlone: a sequence that has no company takes few steps, and a stretch longer than a span takes several.
func TestSpansAlone(t *testing.T) {
	var rows []int
	e := start(t, &hooked{begin: func(b *backend.Batch) { rows = append(rows, len(b.Tokens), len(b.Out)) }}, nil)
	for top, want := range map[int][]int{
		-1: {5, 1, 1, 1, LongestSpan, 1, 36, 1}, // the first token of the stretch is taken from the row that reaches it
		0:  {5, 1, 1, 1, LongestSpan, LongestSpan, 35, 35, 1, 1},
	} {
		rows = nil
		n := 0
		toks := read(t, submit(t, e, Prompt{Tokens: prompt(5, uint64(top+10)), MaxTokens: 102, Logprobs: top, Constrain: func(int32) (c Constraint) {
			if n++; n == 1 {
				c.Forced = make([]int32, 100)
			}
			return c
		}}))
		between(e, func() {
			if d := cmp.Diff(want, rows); d != "" || len(toks) != 102 {
				t.Errorf("logprobs %d: %d tokens; tokens and rows of steps: want -, got +\n%s", top, len(toks), d)
			}
		})
	}
}

// TestSpanEnds: a stop id and the last token that is allowed end a sequence in the middle of a stretch, and nothing behind them
// is given out or counted.
func TestSpanEnds(t *testing.T) {
	e := start(t, &hooked{}, nil)
	for top := -1; top < 2; top++ {
		for at := range 6 {
			for _, byLength := range []bool{false, true} {
				p := Prompt{Tokens: prompt(9, 1), MaxTokens: 40, Logprobs: top, StopIDs: []int32{96}}
				forced, reason, given := []int32{10, 11, 12, 13, 14, 15}, Stop, at+2
				if byLength {
					p.MaxTokens, reason = at+3, Length
					given++
				} else {
					forced[at] = 96
				}
				told := 0
				n := 0
				p.Constrain = func(int32) (c Constraint) {
					if n++; n == 2 {
						c.Forced = forced
					}
					told++
					return c
				}
				s := submit(t, e, p)
				toks := read(t, s)
				between(e, func() {})
				u := s.Usage()
				if len(toks) != given || u.Generated != at+3 || s.Finish() != reason || !byLength && s.StopID() != 96 || byLength && s.StopID() != -1 {
					t.Errorf("logprobs %d, end at %d of %v: %d tokens, %d generated, %v, stop id %d", top, at, reason, len(toks), u.Generated, s.Finish(), s.StopID())
				}
				for i, tok := range toks[2:] {
					if tok.ID != forced[i] || (tok.Logprob != 0) != (top >= 0) || len(tok.Top) != max(top, 0) {
						t.Errorf("logprobs %d: %+v, want %d", top, tok, forced[i])
					}
				}
			}
		}
	}
}

// TestSpanRefused: what the hook says of a token in a stretch ends the sequence, and so does a token that there is not.
func TestSpanRefused(t *testing.T) {
	e := start(t, &hooked{}, nil)
	no := errors.New("no")
	other := submit(t, e, Prompt{Tokens: prompt(9, 2), MaxTokens: 200, Logprobs: -1})
	for top := -1; top < 1; top++ {
		n := 0
		toks, err := readAll(submit(t, e, Prompt{Tokens: prompt(9, 1), MaxTokens: 40, Logprobs: top, Constrain: func(int32) Constraint {
			switch n++; n {
			case 2:
				return Constraint{Forced: []int32{1, 2, 3, 4}}
			case 4:
				return Constraint{Err: no}
			}
			return Constraint{}
		}}))
		if !errors.Is(err, no) || len(toks) < 4 || len(toks) > 6 {
			t.Errorf("logprobs %d: %d tokens, %v", top, len(toks), err)
		}
		toks, err = readAll(submit(t, e, Prompt{Tokens: prompt(9, 1), MaxTokens: 40, Logprobs: top, Constrain: func(int32) Constraint {
			return Constraint{Forced: []int32{1, vocab}}
		}}))
		if err == nil || err.Error() != "what may come next: token 97 is outside the vocabulary of 97" || len(toks) != 1 {
			t.Errorf("logprobs %d: %d tokens, %v", top, len(toks), err)
		}
	}
	if n := len(read(t, other)); n != 200 {
		t.Errorf("who shared the steps said %d tokens", n)
	}
}

// TestSpanCancelled: a client that leaves while a span runs leaves what has run in the prefix cache, and it is right.
func TestSpanCancelled(t *testing.T) {
	for top := -1; top < 1; top++ {
		st := newSteps()
		e := start(t, &hooked{begin: st.begin}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		forced := prompt(60, 3)
		p := Prompt{Tokens: prompt(100, 1), MaxTokens: 100, Logprobs: top, Constrain: func(int32) Constraint { return Constraint{Forced: forced} }}
		s, err := e.Submit(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		for rows := st.wait(); rows == 100 || rows == 1; rows = st.wait() {
			st.next()
		}
		cancel()
		st.release()
		toks, err := readAll(s)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d tokens, %v", len(toks), err)
		}
		settle(e)
		next := Prompt{Tokens: slices.Concat(p.Tokens, []int32{toks[0].ID}, forced, prompt(3, 4)), MaxTokens: 9, Logprobs: 1}
		again := submit(t, e, next)
		if d := cmp.Diff(read(t, submit(t, start(t, &hooked{}, nil), next)), read(t, again)); d != "" || again.Usage().Cached < 128 {
			t.Errorf("%d tokens cached; fresh -, cached +\n%s", again.Usage().Cached, d)
		}
	}
}

// TestSpanPreempted: what a sequence says is the same after it had to give its memory away in the middle of its stretches.
func TestSpanPreempted(t *testing.T) {
	for name, config := range map[string]string{"paged": tiny, "hybrid": hybrid} {
		for top := -1; top < 1; top++ {
			t.Run(fmt.Sprint(name, top), func(t *testing.T) {
				oneByOne := true
				long := func(i uint64) Prompt {
					return Prompt{Tokens: prompt(10, i), MaxTokens: 390, Logprobs: top, Constrain: forcing(i, 20, oneByOne)}
				}
				model := func() *hooked { return &hooked{Backend: cpu.New(), config: config} }
				fresh := start(t, model(), func(c *Config) { c.NoCache, c.MaxSequences = true, 1 })
				want := [][]Token{read(t, submit(t, fresh, long(1))), read(t, submit(t, fresh, long(2)))}
				oneByOne = false
				geo := fresh.alloc.Geometry()
				both, h := make(chan struct{}), model()
				h.begin = func(*backend.Batch) { <-both } // they begin together
				e := start(t, h, func(c *Config) {
					c.Budget = 11*geo.Groups[0].PageBytes + 2*geo.FixedBytes + 2*geo.SnapBytes
				})
				streams := []*Stream{submit(t, e, long(1)), submit(t, e, long(2))}
				close(both)
				for i, s := range streams {
					if d := cmp.Diff(want[i], read(t, s)); d != "" {
						t.Error(d)
					}
				}
				if e.Stats().Preempted == 0 {
					t.Error("nobody was preempted")
				}
			})
		}
	}
}

// TestSpelled: what has to follow runs with the token that it follows where that is known in time, and what a constraint proposes
// behind it with both: replies are those without drafts, in a step for each token that is the model's choice.
func TestSpelled(t *testing.T) {
	const period, length = 5, 60
	said := []int32(nil) // tokens of the reply without drafts
	ask := func(right bool, top int) Prompt {
		n := 0
		p := Prompt{Tokens: prompt(20, 1), MaxTokens: length, Logprobs: top}
		p.Constrain = func(id int32) (c Constraint) {
			n++
			if at := n % period; at == 1 {
				c.Forced = []int32{int32(n), id, 7}
			} else if at == 4 {
				c.Mask = sample.Set{1<<(n%60) | 1<<(n%50), 0}
			}
			return c
		}
		p.Draft = func(forced, looked []int32, most int) []int32 {
			if at := n + len(forced); at%period == 4 && at < len(said) && most > 0 {
				if right {
					return said[at : at+1]
				}
				return []int32{(said[at] + 1) % vocab}
			}
			return []int32{}
		}
		return p
	}
	for name, config := range map[string]string{"attention": tiny4, "hybrid": hybrid} {
		steps := 0
		h := func() *hooked {
			return &hooked{Backend: cpu.New(), config: config, begin: func(*backend.Batch) { steps++ }}
		}
		plain := start(t, h(), nil)
		on := start(t, h(), func(c *Config) { c.Speculate, c.draftAll, c.NoCache = true, true, true })
		for _, top := range []int{-1, 2} {
			said, steps = nil, 0
			want := hear(t, submit(t, plain, ask(false, top)))
			said = want.ids()
			slow := steps
			for _, right := range []bool{true, false} {
				steps = 0
				if d := cmp.Diff(want, hear(t, submit(t, on, ask(right, top)))); d != "" {
					t.Errorf("%s: %s", name, d)
				}
				a := 1 // steps that a period takes
				if !right {
					a++
				}
				if top >= 0 { // the last one that is forced is taken where it is scored
					a++
				}
				if steps > a*length/period+1 || slow < (a+1)*length/period {
					t.Errorf("%s: logprobs %d, proposed rightly %v: %d steps, %d without drafts", name, top, right, steps, slow)
				}
			}
		}
	}
}
