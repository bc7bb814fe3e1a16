package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

const ranks = 2

// ring adds up what all ranks have.
type ring struct {
	ctx context.Context
	to  [ranks]chan []float32 // by rank: what the others have
}

func (r *ring) sum(rank int, x []float32) []float32 {
	for other := range ranks {
		if other != rank {
			select {
			case r.to[other] <- x:
			case <-r.ctx.Done():
				panic("another rank has stopped")
			}
		}
	}
	all := slices.Clone(x)
	select {
	case y := <-r.to[rank]:
		for i, v := range y {
			all[i] += v
		}
	case <-r.ctx.Done():
		panic("another rank has stopped")
	}
	return all
}

// ranked is the cpu backend as one of several ranks.
type ranked struct {
	*cpu.Backend
	rank int
	ring *ring
}

// partial is a weight of which every rank has some columns.
type partial struct{ backend.Weight }

func (partial) Partial() bool { return true }

// whole is the weight that the backend below made.
func whole(w backend.Weight) backend.Weight {
	if p, ok := w.(partial); ok {
		return p.Weight
	}
	return w
}

func (r *ranked) Caps() backend.Caps {
	c := r.Backend.Caps()
	c.World, c.Rank = ranks, r.rank
	return c
}

func (r *ranked) NewLoader(o backend.Options) backend.Loader {
	l := r.Backend.NewLoader(o)
	return backend.Visitor(func(s backend.WeightSpec) (backend.Weight, error) {
		axis := s.Shard
		s, err := r.local(s)
		if err != nil {
			return nil, err
		}
		s.Shard = backend.Whole
		w, err := l.Load(s)
		if axis == backend.RowPar {
			w = partial{w}
		}
		return w, err
	}).NewLoader(o)
}

// local is this rank's share of a weight, or of each of a stack.
func (r *ranked) local(s backend.WeightSpec) (backend.WeightSpec, error) {
	if !s.Stacked() {
		return s.Local(r.rank, ranks)
	}
	var parts []backend.Part
	for e := range s.Count {
		one, err := s.Expert(e)
		if err == nil {
			one, err = one.Local(r.rank, ranks)
		}
		if err != nil {
			return s, err
		}
		for i, p := range one.Parts { // experts of a part after one another
			parts = slices.Insert(parts, i*(e+1)+e, p)
		}
	}
	s.Parts = parts
	return s, nil
}

type rankedScope struct {
	backend.Scope
	r *ranked
}

func (r *ranked) Begin(s backend.Store, b *backend.Batch) backend.Scope {
	return &rankedScope{r.Backend.Begin(s, b), r}
}

func (s *rankedScope) Linear(x backend.Array, w backend.Weight) backend.Array {
	return s.Scope.Linear(x, whole(w))
}

func (s *rankedScope) MoE(x backend.Array, r backend.Routing, e *backend.Experts) backend.Array {
	one := *e
	one.Down = whole(e.Down)
	return s.Scope.MoE(x, r, &one)
}

func (s *rankedScope) AllSum(x backend.Array) backend.Array {
	f, err := s.Floats(x)
	if err != nil {
		panic(err)
	}
	return s.Upload(s.r.ring.sum(s.r.rank, slices.Clone(f)), x.Rows(), x.Cols())
}

// folder is a model of random weights as it is stored.
func folder(t *testing.T, config string) fstest.MapFS {
	t.Helper()
	var all []safetensors.Tensor
	_, err := model.Synthetic{Config: []byte(config), Seed: 5, Type: quant.F32}.Load(backend.Visitor(func(s backend.WeightSpec) (backend.Weight, error) {
		for _, p := range s.Parts {
			for _, t := range []*backend.Tensor{p.Weight, p.Scales, p.Biases, p.Bias} {
				if t != nil {
					all = append(all, safetensors.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.Bytes})
				}
			}
		}
		return nil, nil
	}), backend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, all, map[string]string{"format": "mlx"}); err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"config.json": {Data: []byte(config)}, "model.safetensors": {Data: b.Bytes()}}
}

// TestRanks: two engines with half of a model's heads and widths each say what one says with all of them.
func TestRanks(t *testing.T) {
	configs := map[string]string{"one key head, which both have": tiny, "4 bit": tiny4}
	for _, name := range []string{"llama", "qwen3_moe", "gemma4_text", "jamba", "nemotron_h", "bailing_moe_linear"} {
		file := "f32"
		if name == "gemma4_text" { // where layers share keys and values
			file = "dense"
		}
		var g struct {
			Config json.RawMessage `json:"config"`
		}
		golden.Load(t, fmt.Sprintf("../model/testdata/%s/%s.json", name, file), &g)
		configs[name] = string(g.Config)
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) { compareRanks(t, folder(t, config)) })
	}
}

func compareRanks(t *testing.T, fsys fstest.MapFS) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := Prompt{Tokens: prompt(90, 1), MaxTokens: 40, Logprobs: 3}
	for i := range p.Tokens {
		p.Tokens[i] %= 96
	}
	open := func(be backend.Backend) *Engine {
		c, err := model.OpenCheckpoint(fsys, "m")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		l, err := c.Load(be, backend.Options{Precision: backend.Float32, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(Config{Model: l.Generator, Vocab: l.Vocab, Backend: be, Budget: 1 << 24, MaxContext: 400, PrefillChunk: 50})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cancel() // who waits for another rank
			if err := errors.Join(e.Close(), l.Close(), be.Close()); err != nil {
				t.Error(err)
			}
		})
		return e
	}
	r := &ring{ctx: ctx}
	var streams []*Stream
	for rank := range ranks {
		r.to[rank] = make(chan []float32, 1)
	}
	for rank := range ranks {
		streams = append(streams, submit(t, open(&ranked{cpu.New(), rank, r}), p))
	}
	want := read(t, submit(t, open(cpu.New()), p))
	for rank, s := range streams {
		got, worst := read(t, s), 0.0
		if len(got) != len(want) {
			t.Fatalf("rank %d: %d tokens, want %d", rank, len(got), len(want))
		}
		for i := range got {
			if got[i].ID != want[i].ID {
				t.Fatalf("rank %d: token %d is %d, want %d", rank, i, got[i].ID, want[i].ID)
			}
			for k, top := range got[i].Top {
				worst = max(worst, math.Abs(float64(top.Logprob-want[i].Top[k].Logprob)))
			}
		}
		if t.Logf("rank %d: logprobs differ by %.1e", rank, worst); !(worst < 1e-4) {
			t.Errorf("rank %d: logprobs differ by %g", rank, worst)
		}
	}
}
