package engine

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/golden"
	"hearth/internal/kv"
	"hearth/internal/sample"
	"hearth/internal/sched"
	"hearth/internal/tier/tiertest"
)

var replies = flag.Int("replies", 48, "replies, greedy and sampled each, that TestSpeculationEqual compares")

// speculated are the models: attention alone, windows, latents, experts, and recurrent layers of all rules.
var speculated = []string{"tiny4", "hybrid", "gpt_oss", "qwen3_moe", "deepseek_v3", "gemma3_text", "qwen3_next", "kimi_linear", "jamba", "mamba", "falcon_h1", "lfm2"}

// speculatedConfig is a model's config and how many tokens it knows.
func speculatedConfig(t *testing.T, name string) (string, int) {
	switch name {
	case "tiny4":
		return tiny4, vocab
	case "hybrid":
		return hybrid, vocab
	}
	var g struct {
		Config json.RawMessage `json:"config"`
	}
	golden.Load(t, "../model/testdata/"+name+"/4bit.json", &g)
	return string(g.Config), 96
}

// asked is a prompt, and what may come next in its answers: a function of the tokens before.
type asked struct {
	Prompt
	rules bool
}

// prompt gives each submission a hook of its own.
func (a *asked) prompt(vocab int) Prompt {
	p := a.Prompt
	if !a.rules {
		return p
	}
	h, forced := fnv.New64a(), 0
	p.Draft = func(_, looked []int32, most int) []int32 { // right or wrong, of what was looked up and not
		r := rand.New(rand.NewPCG(h.Sum64(), 2))
		ids := append([]int32{}, looked[:r.IntN(len(looked)+1)]...)
		for len(ids) < most && r.IntN(3) > 0 {
			ids = append(ids, r.Int32N(int32(vocab)))
		}
		return ids
	}
	p.Constrain = func(id int32) Constraint {
		h.Write([]byte{byte(id)})
		forced = max(forced-1, 0)
		r := rand.New(rand.NewPCG(h.Sum64(), 1))
		switch r.IntN(150) % 9 {
		case 8:
			if r.IntN(8) == 0 && forced == 0 { // after a forced token an error may come later
				return Constraint{Err: errors.New("nothing may follow")}
			}
		case 0:
			c := Constraint{}
			for range 1 + r.IntN(5) {
				c.Forced = append(c.Forced, r.Int32N(int32(vocab)))
			}
			forced += len(c.Forced)
			return c
		case 1, 2, 3, 4:
			m := make(sample.Set, 2)
			for range 20 {
				m.Add(r.Int32N(int32(vocab)))
			}
			return Constraint{Mask: m}
		}
		return Constraint{}
	}
	return p
}

// ask makes a request of what users ask for. Prompts repeat themselves and each other.
func ask(r *rand.Rand, vocab int, sampled bool, old [][]int32) asked {
	a := asked{Prompt: Prompt{MaxTokens: 1 + r.IntN([]int{20, 150}[r.IntN(2)]), Logprobs: r.IntN(4) - 1}}
	if len(old) > 0 && r.IntN(2) == 0 {
		said := old[r.IntN(len(old))]
		a.Tokens = append(a.Tokens, said[:1+r.IntN(len(said))]...)
	}
	for n := 1 + r.IntN(70); n > 0; n-- {
		a.Tokens = append(a.Tokens, r.Int32N(int32(vocab)))
	}
	if len(a.Tokens) > 300 {
		a.Tokens = a.Tokens[:300]
	}
	p := &a.Sampling
	if sampled {
		p.Temperature, p.Seed = []float32{0.05, 0.3, 1}[r.IntN(3)], r.Uint64()
		p.TopP, p.MinP, p.TopK = []float32{0, 0.9}[r.IntN(2)], []float32{0, 0.05}[r.IntN(2)], []int{0, 20}[r.IntN(2)]
	}
	for _, name := range []string{"repetition_penalty", "frequency_penalty", "presence_penalty"} {
		if r.IntN(4) == 0 && !p.Set(name, 0.5+r.Float64()) {
			panic(name)
		}
	}
	if r.IntN(3) == 0 {
		p.LogitBias = map[int32]float32{r.Int32N(int32(vocab)): 1, r.Int32N(int32(vocab)): -2}
	}
	if r.IntN(3) == 0 {
		a.StopIDs = []int32{r.Int32N(int32(vocab)), r.Int32N(int32(vocab))}
	}
	a.rules = r.IntN(3) == 0
	if r.IntN(4) == 0 {
		a.Marks = []int{len(a.Tokens) / 2}
	}
	a.Salt = kv.Salt{byte(r.IntN(2))}
	return a
}

// reply is all that a stream says.
type reply struct {
	Tokens []Token
	Reason Reason
	StopID int32
	Err    string
}

func hear(t *testing.T, s *Stream) reply {
	t.Helper()
	toks, err := readAll(s)
	a := reply{Tokens: toks, Reason: s.Finish(), StopID: s.StopID()}
	if err != nil {
		var none *ConstraintError
		if a.Err = err.Error(); !errors.As(err, &none) {
			t.Fatal(err)
		}
	}
	return a
}

func (r *reply) ids() (ids []int32) {
	for _, tok := range r.Tokens {
		ids = append(ids, tok.ID)
	}
	return ids
}

// TestSpeculationEqual: replies are those without drafts, in ids, logprobs, alternatives and ends, to the bit: greedy and
// sampled, under penalties, biases, limits and rules, with stop ids and several answers to a prompt, from the cache, from disk
// after a restart and after preemption, beside each other and beside prompts in chunks, by models of all kinds of memory.
func TestSpeculationEqual(t *testing.T) {
	each := (*replies + len(speculated) - 1) / len(speculated)
	for m, name := range speculated {
		t.Run(name, func(t *testing.T) {
			config, vocab := speculatedConfig(t, name)
			h := func() *hooked { return &hooked{Backend: cpu.New(), config: config} }
			plain := start(t, h(), func(c *Config) { c.NoCache, c.Vocab = true, vocab })
			var drafted, accepted, preempted, cached int64
			for _, sampled := range []bool{false, true} {
				r := rand.New(rand.NewPCG(uint64(m), 5))
				var old [][]int32
				dir := t.TempDir()
				var n tiertest.Notes
				for left := each; left > 0; {
					e := start(t, h(), onDisk(dir, &n, func(c *Config) {
						c.Speculate, c.draftAll, c.PrefillChunk, c.Vocab = true, true, 32, vocab
						geo := plain.alloc.Geometry()
						c.Budget, c.MaxSequences = 1<<24, 6
						if r.IntN(2) == 0 && geo.Sliceable() { // little memory
							c.Budget = (geo.Need(400, 32) + 2*geo.Need(64, 32)) * 8 / 7
						}
					}))
					for range 3 {
						var list []asked
						var want []reply
						for range min(4, left) {
							a := ask(r, vocab, sampled, old)
							for range 1 + r.IntN(2) { // answers to it
								a.Sampling.Seed++
								w := hear(t, submit(t, plain, a.prompt(vocab)))
								old = append(old, slices.Concat(a.Tokens, w.ids()))
								if a.Prediction = nil; r.IntN(3) > 0 { // with some mistakes
									a.Prediction = w.ids()
									for i := range a.Prediction {
										if r.IntN(12) == 0 {
											a.Prediction[i] = (a.Prediction[i] + 1) % int32(vocab)
										}
									}
								}
								list, want = append(list, a), append(want, w)
							}
							left--
						}
						var streams []*Stream
						for i := range list {
							streams = append(streams, submit(t, e, list[i].prompt(vocab)))
						}
						for i, s := range streams {
							if d := cmp.Diff(want[i], hear(t, s)); d != "" {
								t.Fatalf("%+v: %s", list[i].Sampling, d)
							}
							u := s.Usage()
							drafted, accepted, cached = drafted+int64(u.Drafted), accepted+int64(u.Accepted), cached+int64(u.Cached)
						}
						if left == 0 {
							break
						}
					}
					settle(e)
					preempted += e.Stats().Preempted
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if *replies > 40 && (accepted == 0 || accepted == drafted) {
				t.Errorf("%d drafts, %d accepted: this shows nothing", drafted, accepted)
			}
			t.Logf("%d drafts, %d accepted, %d preempted, %d cached", drafted, accepted, preempted, cached)
		})
	}
}

// TestSpeculationPreempted: drafts take no memory from others, and who gives way comes back with the same answer.
func TestSpeculationPreempted(t *testing.T) {
	for name, config := range map[string]string{"attention": tiny4, "hybrid": hybrid} {
		t.Run(name, func(t *testing.T) {
			model := func() *hooked { return &hooked{Backend: cpu.New(), config: config} }
			fresh := start(t, model(), func(c *Config) { c.NoCache, c.MaxSequences = true, 1 })
			long := func(i uint64) Prompt { return Prompt{Tokens: prompt(10, i), MaxTokens: 390, Logprobs: 1} }
			a := hear(t, submit(t, fresh, long(1)))
			said := a.ids()
			for k := 0; k < len(said); k += 6 {
				said[k] = (said[k] + 1) % vocab
			}
			with := func(uint64) Prompt { // both grow alike
				p := long(1)
				p.Prediction = said
				return p
			}
			geo := start(t, model(), func(c *Config) { c.Speculate = true }).alloc.Geometry()
			var e *Engine
			both, h := false, model()
			h.begin = func(*backend.Batch) { // they begin together
				for !both {
					s := e.Stats()
					both = s.Running+s.Waiting == 2
				}
			}
			e = start(t, h, func(c *Config) {
				c.Speculate, c.draftAll = true, true
				c.Budget = (11*geo.Groups[0].PageBytes+2*geo.FixedBytes+2*geo.SnapBytes)*8/7 + 1
			})
			preempts(t, e, fresh, with)
			if s := e.Stats().Speculation; s.Accepted == 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestSpeculationShadows: a model with recurrent state takes memory for drafts in steps that run some, and only what is free. As
// many sequences run at once as without speculation.
func TestSpeculationShadows(t *testing.T) {
	var e *Engine
	var sequences, drafts int
	var wrong []string
	begin := func(b *backend.Batch) {
		n := 0
		for i := range b.Spans {
			if b.Spans[i].Tentative {
				n++
			}
		}
		sequences, drafts = max(sequences, len(b.Spans)), max(drafts, n)
		geo := e.alloc.Geometry()
		pages, _ := e.alloc.PagesInUse()
		running, _ := e.sched.Counts()
		if got, want := e.alloc.InUse(), int64(pages)*geo.Groups[0].PageBytes+int64(running)*geo.FixedBytes+int64(n)*geo.DraftBytes; got != want {
			wrong = append(wrong, fmt.Sprintf("%d bytes in use by %d sequences of which %d draft, want %d", got, running, n, want))
		}
	}
	plain := start(t, &hooked{Backend: cpu.New(), config: hybrid}, func(c *Config) { c.NoCache = true })
	geo := plain.alloc.Geometry()
	p := Prompt{Tokens: prompt(10, 1), MaxTokens: 40, Logprobs: 0}
	want := hear(t, submit(t, plain, p))
	for _, speculate := range []bool{false, true} {
		for _, prediction := range [][]int32{nil, want.ids()} {
			for _, roomy := range []bool{false, true} {
				h := &hooked{Backend: cpu.New(), config: hybrid, begin: begin}
				e = start(t, h, func(c *Config) {
					c.NoCache, c.Speculate, c.draftAll = true, speculate, prediction != nil
					c.Budget = 3 * (geo.FixedBytes + geo.Groups[0].PageBytes)
					if speculate {
						c.Budget = c.Budget*8/7 + 1 // a part is for the index
					}
					if roomy {
						c.Budget *= 40
					}
				})
				sequences, drafts = 0, 0
				var streams []*Stream
				between(e, func() {
					for range 5 {
						p.Prediction = prediction
						streams = append(streams, submit(t, e, p))
					}
				})
				for _, s := range streams {
					if d := cmp.Diff(want, hear(t, s)); d != "" {
						t.Error(d)
					}
				}
				settle(e)
				if most := map[bool]int{false: 3, true: 5}[roomy]; sequences != most {
					t.Errorf("speculation %t, drafts %t: %d sequences at once, want %d", speculate, prediction != nil, sequences, most)
				}
				if draft := speculate && prediction != nil; !draft && drafts > 0 || draft && roomy && drafts != 5 {
					t.Errorf("speculation %t, prediction %t: %d drafted at once", speculate, prediction != nil, drafts)
				}
			}
		}
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// TestSpeculationForgets: what is generated is remembered under its salt alone, as long as the cache is.
func TestSpeculationForgets(t *testing.T) {
	salts := []kv.Salt{{1}, {2}}
	known := func(e *Engine) (out []bool) {
		between(e, func() {
			e.spec.work.Wait()
			for _, s := range salts {
				out = append(out, e.spec.histories[s] != nil)
			}
			if sum := int64(0); e.spec.bytes.Load() != sum {
				for _, h := range e.spec.histories {
					if sum += h.bytes; h.Bytes() > h.bytes {
						t.Errorf("a history of %d bytes, %d counted", h.Bytes(), h.bytes)
					}
				}
				if e.spec.bytes.Load() != sum {
					t.Errorf("%d bytes are taken, histories have %d", e.spec.bytes.Load(), sum)
				}
			}
		})
		return out
	}
	run := func(e *Engine, salt kv.Salt) {
		read(t, submit(t, e, Prompt{Tokens: prompt(20, 1), MaxTokens: 30, Logprobs: -1, Salt: salt}))
		settle(e)
	}
	on := func(more func(*Config)) *Engine {
		return start(t, &hooked{Backend: cpu.New()}, func(c *Config) {
			c.Speculate = true
			more(c)
		})
	}
	e := on(func(*Config) {})
	run(e, salts[0])
	if k := known(e); !k[0] || k[1] {
		t.Errorf("of one salt: %v", k)
	}
	run(e, salts[1])
	if k := known(e); !k[0] || !k[1] {
		t.Errorf("of both: %v", k)
	}
	between(e, func() {
		if a, b := e.spec.histories[salts[0]], e.spec.histories[salts[1]]; a == b {
			t.Error("two salts share a history")
		}
	})
	if _, err := e.DropSalt(context.Background(), salts[0]); err != nil {
		t.Fatal(err)
	}
	if k := known(e); k[0] || !k[1] {
		t.Errorf("one was dropped: %v", k)
	}
	if _, err := e.DropCache(context.Background()); err != nil {
		t.Fatal(err)
	}
	if k := known(e); k[0] || k[1] {
		t.Errorf("all were dropped: %v", k)
	}
	run(e, salts[0])
	between(e, func() {
		e.spec.histories[salts[0]].at = e.spec.histories[salts[0]].at.Add(-2 * time.Hour)
		e.spec.expire(time.Hour, time.Now())
	})
	if k := known(e); k[0] {
		t.Errorf("it has expired: %v", k)
	}
	e = on(func(c *Config) { c.NoCache = true })
	run(e, salts[0])
	if k := known(e); k[0] {
		t.Errorf("without a cache: %v", k)
	}
}

// TestSpeculationFails: a step that fails ends its sequences, drafts or not, and their slots serve others.
func TestSpeculationFails(t *testing.T) {
	var h *hooked
	want := errors.New("the device is gone")
	failed := false
	h = &hooked{Backend: cpu.New(), config: hybrid, begin: func(b *backend.Batch) {
		h.fail = nil
		if !failed && len(b.Spans) == 1 && b.Spans[0].Tentative {
			h.fail, failed = want, true
		}
	}}
	e := start(t, h, func(c *Config) { c.Speculate, c.draftAll, c.MaxSequences = true, true, 1 })
	p := Prompt{Tokens: []int32{1, 2, 3, 1, 2, 3, 1, 2, 3}, MaxTokens: 40, Logprobs: 0}
	fresh := start(t, &hooked{Backend: cpu.New(), config: hybrid}, nil)
	all := hear(t, submit(t, fresh, p))
	p.Prediction = all.ids()
	if _, err := readAll(submit(t, e, p)); !errors.Is(err, want) {
		t.Errorf("%v", err)
	}
	if d := cmp.Diff(all, hear(t, submit(t, e, p))); d != "" {
		t.Error(d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := e.Submit(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err != nil {
		t.Error(err)
	}
	cancel()
	settle(e)
	if d := cmp.Diff(all, hear(t, submit(t, e, p))); d != "" {
		t.Error(d)
	}
}

// TestContextBeforeDrafts: where a context that was asked for fits only without the memory of drafts, there are none.
func TestContextBeforeDrafts(t *testing.T) {
	const tokens, span = 400, 64
	on := func(budget int64) *Engine {
		return start(t, &hooked{Backend: cpu.New()}, func(c *Config) {
			c.Speculate, c.PrefillChunk, c.MaxContext, c.MinContext = true, span, tokens, tokens
			c.Budget = budget
		})
	}
	need := on(1<<24).alloc.Geometry().Need(tokens, span)
	if e := on(need); e.context != tokens || e.Stats().Speculation.Enabled {
		t.Errorf("a context of %d tokens, speculation %+v", e.context, e.Stats().Speculation)
	}
	if e := on(4 * need); e.context != tokens || !e.Stats().Speculation.Enabled {
		t.Errorf("with four times the memory: a context of %d tokens, speculation %+v", e.context, e.Stats().Speculation)
	}
}

// A step counts as one that ran drafts whether prompts ran in it, too, or not.
func TestDraftStepsBesidePrompts(t *testing.T) {
	for _, tc := range []struct{ drafts, prompt, want int64 }{{2, 0, 1}, {2, 64, 1}, {0, 64, 0}, {0, 0, 0}} {
		e := &Engine{}
		e.spec.on, e.cfg.fixedCosts = true, true
		p := sched.Plan{Items: []sched.Item{{Decode: true, Tokens: 1, Drafts: int(tc.drafts)}}}
		if tc.prompt > 0 {
			p.Items = append(p.Items, sched.Item{Tokens: int(tc.prompt)})
		}
		e.learn(p, []result{{seq: &sequence{}}, {seq: &sequence{}}})
		if got := e.spec.stats.Steps; got != tc.want {
			t.Errorf("%+v: %d steps", tc, got)
		}
	}
}
