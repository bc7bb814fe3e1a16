package engine

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/sample"
)

// drawingDevice makes a backend on the host look like one that draws tokens on a device.
type drawingDevice struct {
	*hooked
	ids  map[uint32][]int32
	next uint32
	poor bool // what it draws is not finite
}

type deviceScope struct {
	backend.Scope
	f *drawingDevice
}

const deviceGen = 1<<32 - 1

func (f *drawingDevice) Caps() backend.Caps {
	c := f.hooked.Caps()
	c.LateTokens = true
	return c
}

func (f *drawingDevice) Begin(s backend.Store, b *backend.Batch) backend.Scope {
	known := *b
	if !b.Late.IsZero() {
		slot, _ := b.Late.Slot()
		known.Tokens = slices.Clone(b.Tokens)
		for i, id := range b.Tokens {
			if id < 0 {
				known.Tokens[i] = max(f.ids[slot][^id], 0) // a device reads some row
			}
		}
		b.Tokens, b.Late = known.Tokens, backend.Array{}
	}
	return &deviceScope{f.hooked.Begin(s, b), f}
}

func (f *drawingDevice) Sample(o backend.Scope, logits backend.Array, p []sample.Draw) backend.Array {
	all, err := o.Floats(logits)
	if err != nil { // Ints gives it, too
		all = make([]float32, logits.Rows()*logits.Cols())
	}
	f.next++
	ids, n := make([]int32, logits.Rows()), logits.Cols()
	for i := range ids {
		ids[i] = pickOne(all[i*n:][:n], &p[i])
		if f.poor {
			ids[i] = -1
		}
	}
	f.ids[f.next] = ids
	return backend.Handle(f.next, deviceGen, len(ids), 1, backend.I32)
}

func pickOne(logits []float32, p *sample.Draw) int32 {
	best := slices.Max(logits)
	if p.Temperature <= 0 {
		return int32(slices.Index(logits, best))
	}
	var sum float64
	weights := make([]float64, len(logits))
	for i, v := range logits {
		weights[i] = math.Exp(float64(v-best) / float64(p.Temperature))
		sum += weights[i]
	}
	left := p.Uniform * sum
	for i, w := range weights {
		if left -= w; left < 0 {
			return int32(i)
		}
	}
	return int32(len(logits) - 1)
}

func (f *drawingDevice) Unpin(a backend.Array) {
	if slot, gen := a.Slot(); gen == deviceGen {
		delete(f.ids, slot)
		return
	}
	f.hooked.Unpin(a)
}

func (s *deviceScope) Pin(a backend.Array) backend.Array { return a }
func (s *deviceScope) Submit(...backend.Array)           {}
func (s *deviceScope) Ints(a backend.Array) ([]int32, error) {
	slot, _ := a.Slot()
	return s.f.ids[slot], s.f.fail
}

// startOverlap starts an engine on such a backend, and one without overlap scheduling.
func startOverlap(t *testing.T, config string, change func(*Config)) (e, plain *Engine, f *drawingDevice) {
	t.Helper()
	f = &drawingDevice{ids: map[uint32][]int32{}}
	f.hooked = &hooked{Backend: cpu.New(), config: config, precision: backend.Float32}
	e = start(t, f.hooked, func(c *Config) {
		if change != nil {
			change(c)
		}
		c.Backend = f
	})
	plain = start(t, &hooked{Backend: cpu.New(), config: config, precision: backend.Float32}, change)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if len(f.ids) != 0 {
			t.Errorf("%d arrays are still pinned", len(f.ids))
		}
	})
	return e, plain, f
}

// TestOverlap: sequences that come and go, end by stop ids and lengths, and share steps with some that the device cannot draw
// for, say the same with and without overlap scheduling; so do their next turns.
func TestOverlap(t *testing.T) {
	for name, config := range map[string]string{"paged": tiny, "hybrid": hybrid} {
		t.Run(name, func(t *testing.T) {
			e, plain, _ := startOverlap(t, config, func(c *Config) { c.MaxSequences = 3 })
			ask := func(e *Engine) (all [][]Token) {
				said := make([][]int32, 6)
				for turn := range 2 {
					streams := make([]*Stream, len(said))
					for i := range said {
						said[i] = append(said[i], prompt(20+15*i, uint64(10*turn+i))...)
						p := Prompt{Tokens: said[i], MaxTokens: 20 + 11*i, Logprobs: -1, Marks: []int{len(said[i])}}
						switch i {
						case 1, 4:
							p.Sampling = sample.Params{Temperature: 1.2, Seed: 5}
							p.StopIDs = []int32{3, 17, 40, 41, 42, 60}
						case 2:
							p.Logprobs = 1
						case 3:
							p.Sampling.Set("repetition_penalty", 1.3)
						case 0:
							p.Constrain = stretches
						}
						streams[i] = submit(t, e, p)
					}
					for i, s := range streams {
						toks := read(t, s)
						for _, tok := range toks {
							said[i] = append(said[i], tok.ID)
						}
						all = append(all, toks)
					}
				}
				return all
			}
			want, got := ask(plain), ask(e)
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			s, p := e.Stats(), plain.Stats()
			if s.Ahead == 0 || p.Ahead != 0 {
				t.Errorf("%d of %d steps were overlapped, %d without overlap scheduling", s.Ahead, s.Steps, p.Ahead)
			}
			t.Logf("%d of %d steps were overlapped", s.Ahead, s.Steps)
		})
	}
}

// TestOverlapPreempted: a sequence that gives its memory away while a step with it is in flight goes on later.
func TestOverlapPreempted(t *testing.T) {
	long := func(i uint64) Prompt { return Prompt{Tokens: prompt(10, i), MaxTokens: 390, Logprobs: -1} }
	for name, config := range map[string]string{"paged": tiny, "hybrid": hybrid} {
		t.Run(name, func(t *testing.T) {
			_, fresh, _ := startOverlap(t, config, func(c *Config) { c.NoCache, c.MaxSequences = true, 1 })
			geo := fresh.alloc.Geometry()
			e, _, _ := startOverlap(t, config, func(c *Config) { c.Budget = 11*geo.Groups[0].PageBytes + 3*geo.FixedBytes + 2*geo.SnapBytes })
			streams := []*Stream{submit(t, e, long(1)), submit(t, e, long(2))}
			for i, s := range streams {
				if d := cmp.Diff(read(t, submit(t, fresh, long(uint64(i+1)))), read(t, s)); d != "" {
					t.Error(d)
				}
			}
			if s := e.Stats(); s.Preempted == 0 || s.Ahead == 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestOverlapDrafts: where there is something to draft the device is not given steps ahead, else it is, and replies are the same.
func TestOverlapDrafts(t *testing.T) {
	e, plain, _ := startOverlap(t, tiny4, func(c *Config) { c.MaxSequences, c.Speculate, c.draftAll, c.NoCache = 3, true, true, true })
	_, off, _ := startOverlap(t, tiny4, func(c *Config) { c.NoCache = true })
	if !e.spec.on || !plain.spec.on {
		t.Fatal("nothing is drafted")
	}
	ask := func(e *Engine, said [][]int32) (all []reply) {
		var streams []*Stream
		for i := range 6 {
			p := Prompt{Tokens: prompt(20+15*i, uint64(i)), MaxTokens: 50 + 11*i, Logprobs: -1}
			if i%2 == 1 {
				p.Sampling, p.StopIDs = sample.Params{Temperature: 1.2, Seed: 5}, []int32{3}
			}
			if said != nil { // right for a while, and again later
				p.Prediction = slices.Concat(said[i][:min(len(said[i]), 12)], prompt(3, 9), said[i][min(len(said[i]), 20):])
			}
			streams = append(streams, submit(t, e, p))
		}
		for _, s := range streams {
			all = append(all, hear(t, s))
		}
		return all
	}
	want := ask(off, nil)
	var said [][]int32
	for i := range want {
		said = append(said, want[i].ids())
	}
	if d := cmp.Diff(want, ask(e, said)); d != "" {
		t.Error(d)
	}
	before := e.Stats()
	alone := Prompt{Tokens: prompt(9, 70), MaxTokens: 6, Logprobs: -1} // nothing repeats itself
	if d := cmp.Diff(read(t, submit(t, off, alone)), read(t, submit(t, e, alone))); d != "" {
		t.Error(d)
	}
	between(e, func() {})
	s := e.Stats()
	if s.Ahead == before.Ahead || s.Speculation.Drafted > before.Speculation.Drafted || s.Speculation.Accepted == 0 || s.Steps >= off.Stats().Steps {
		t.Errorf("%d of %d steps were overlapped, %d without drafts: %+v", s.Ahead, s.Steps, off.Stats().Steps, s.Speculation)
	}
	t.Logf("%d of %d steps were overlapped, %d without drafts: %+v", s.Ahead, s.Steps, off.Stats().Steps, s.Speculation)
}

// TestOverlapEnds: a reader that leaves, logits that are not finite and a device that fails end what they must and no more.
func TestOverlapEnds(t *testing.T) {
	e, plain, f := startOverlap(t, tiny, nil)
	p := Prompt{Tokens: prompt(9, 1), MaxTokens: 60, Logprobs: -1}
	want := read(t, submit(t, plain, p))

	ctx, cancel := context.WithCancel(context.Background())
	gone, err := e.Submit(ctx, Prompt{Tokens: prompt(9, 2), MaxTokens: 300, Logprobs: -1})
	if err != nil {
		t.Fatal(err)
	}
	stays := submit(t, e, p)
	if _, err := gone.Next(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if d := cmp.Diff(want, read(t, stays)); d != "" {
		t.Error(d)
	}

	for _, c := range []struct {
		set  func()
		want string
	}{
		{func() { f.poor = true }, sample.ErrLogits.Error()},
		{func() { f.poor, f.fail = false, context.DeadlineExceeded }, "run step: " + context.DeadlineExceeded.Error()},
	} {
		first := true
		between(e, func() {
			f.begin = func(*backend.Batch) {
				if !first {
					c.set()
				}
				first = false
			}
		})
		if _, err := readAll(submit(t, e, Prompt{Tokens: prompt(12, 3), MaxTokens: 50, Logprobs: -1})); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
		between(e, func() { f.begin, f.poor, f.fail = nil, false, nil })
		if d := cmp.Diff(want, read(t, submit(t, e, p))); d != "" {
			t.Error(d)
		}
	}
}
