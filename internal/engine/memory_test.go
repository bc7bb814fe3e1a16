package engine

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/budget"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// TestScratchOfArchitectures: for a model of every architecture, what was fitted from a few rehearsals is what steps of any size
// take: never less, and little more.
func TestScratchOfArchitectures(t *testing.T) {
	files, err := filepath.Glob(filepath.FromSlash("../model/testdata/*/*.json"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d goldens, %v", len(files), err)
	}
	folder, models := "", 0
	r := rand.New(rand.NewPCG(3, 5))
	for _, file := range files {
		if filepath.Dir(file) == folder { // one of each
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var g struct {
			Config json.RawMessage `json:"config"`
			Type   quant.DType     `json:"type"`
			KVB    bool            `json:"kv_b"`
			Decode []int32         `json:"decode"`
		}
		if err := json.Unmarshal(b, &g); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(g.Decode) == 0 { // of a model that generates nothing
			continue
		}
		folder = filepath.Dir(file)
		models++
		be := cpu.New()
		stored := func(path string) bool { return g.KVB && strings.HasSuffix(path, ".kv_b_proj") }
		m, err := model.Synthetic{Config: g.Config, Seed: 1, Type: g.Type, Stored: stored}.Load(be, backend.Options{Threads: 1})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		fits(t, file, be, m, r)
		if err := errors.Join(m.Close(), be.Close()); err != nil {
			t.Error(err)
		}
	}
	if models < 50 {
		t.Errorf("%d models", models)
	}
}

// fits compares the fitted function with rehearsals, and with a step that runs.
func fits(t *testing.T, name string, be *cpu.Backend, m *model.Loaded, r *rand.Rand) {
	t.Helper()
	cfg := &Config{Model: m.Generator, Backend: be, MaxSequences: 4, PrefillChunk: 300}
	store, err := be.NewStore(m.States(), cfg.KV)
	if err != nil {
		t.Fatal(err)
	}
	tables, capacity := store.Geometry().Preallocate(1, 320)
	if err := store.Resize(capacity); err != nil {
		t.Fatal(err)
	}
	s, err := stepScratch(cfg, store, 4096)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for range 12 {
		st := budget.Step{Rows: 1 + r.IntN(304)}
		st.Outs = 1 + r.IntN(st.Rows)
		if r.IntN(3) > 0 {
			st.Outs = 1 + r.IntN(min(st.Rows, 4))
		}
		if store.Geometry().Sliceable() {
			st.Depth = r.IntN(4096)
		}
		took, err := be.Rehearse(func() error { return rehearse(cfg, store, st) })
		if err != nil {
			t.Fatalf("%s: %+v: %v", name, st, err)
		}
		if got := s.Of(st); got < took-took/200 || st.Outs < 5 && float64(got) > 1.3*float64(took)+1<<18 {
			t.Errorf("%s: %+v takes %d bytes, %d were fitted", name, st, took, got)
		}
	}
	const rows = 30
	if err := store.Open(0, kv.Match{}, nil); err != nil {
		t.Fatal(err)
	}
	b := backend.Batch{Tokens: make([]int32, rows), Out: []int32{rows - 1}, Spans: []backend.Span{{Len: rows, Table: &tables[0]}}}
	for i := range rows {
		b.Pos[0] = append(b.Pos[0], int32(i))
	}
	be.Trim()
	o := be.Begin(store, &b)
	h := o.Keep(m.Forward(o, &b))
	if _, err := o.Floats(m.Logits(o, h)); err != nil {
		t.Fatal(err)
	}
	o.End()
	if got, took := s.Of(budget.Step{Rows: rows, Outs: 1}), be.StepBytes(); got < took-took/200 || float64(got) > 1.3*float64(took)+1<<18 {
		t.Errorf("%s: a step of %d rows took %d bytes, %d were fitted", name, rows, took, got)
	}
}

// shared is a machine for engines of tests.
type shared struct{ *budget.Machine }

func sharedMachine(total int64) *shared {
	return &shared{budget.New(budget.Readers{Total: func() int64 { return total }}, 0)}
}

// start runs a tiny model, of which a token of state takes 512 bytes, until the test ends. Alone it has a machine of its own.
func (s *shared) start(t *testing.T, name string, chunk int) (*Engine, *budget.Share) {
	t.Helper()
	be := cpu.New()
	m, err := model.Synthetic{Config: []byte(tiny4), Seed: 3, Type: quant.F32}.Load(be, backend.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Model: m.Generator, Vocab: m.Vocab, Backend: be, Budget: 64 << 20, MaxContext: 4096, MaxSequences: 4, MaxQueue: 32, PrefillChunk: chunk}
	var share *budget.Share
	if s != nil {
		if share, err = s.Ask(t.Context(), budget.Claim{Name: name, Use: budget.Use{Weights: 1000}}); err != nil {
			t.Fatal(err)
		}
		cfg.Share = share
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), m.Close(), be.Close()); err != nil {
			t.Error(err)
		}
	})
	return e, share
}

// same demands that engines say what one does that has a machine of its own.
func same(t *testing.T, alone *Engine, p Prompt, engines ...*Engine) {
	t.Helper()
	want := read(t, submit(t, alone, p))
	for i, e := range engines {
		if got := read(t, submit(t, e, p)); !reflect.DeepEqual(got, want) {
			t.Fatalf("engine %d says %v, want %v", i, got, want)
		}
	}
}

// TestOthersPrefixesGo: what only one model's prompt cache holds goes when another model's prompt needs the memory, and every
// prompt is answered as if there were no others.
func TestOthersPrefixesGo(t *testing.T) {
	alone, _ := (*shared)(nil).start(t, "", 64)
	s := sharedMachine(7 << 20)
	a, shareA := s.start(t, "a", 64)
	b, shareB := s.start(t, "b", 64)
	for i := range uint64(6) { // 1.5 MB each
		same(t, alone, Prompt{Tokens: prompt(3000, i), MaxTokens: 3, Logprobs: -1}, a, b)
		if n := shareA.Use().Sum() + shareB.Use().Sum(); n > s.Capacity() {
			t.Fatalf("%d bytes are promised of %d", n, s.Capacity())
		}
	}
	settle(a)
	settle(b)
	if n := a.Stats().Cache.Bytes + b.Stats().Cache.Bytes; n > s.Capacity() || n < 2<<20 {
		t.Errorf("%d bytes are cached", n)
	}
}

// TestChunkShrinks: where the arrays of a whole chunk have no memory, prompts run in halves of it.
func TestChunkShrinks(t *testing.T) {
	alone, _ := (*shared)(nil).start(t, "", 2048)
	full := alone.Stats().Step
	s := sharedMachine(full/2 + 3<<20)
	a, share := s.start(t, "a", 2048)
	p := Prompt{Tokens: prompt(4000, 1), MaxTokens: 3, Logprobs: -1}
	same(t, alone, p, a)
	if got := share.Use().Scratch; got >= full || got < full/8 {
		t.Errorf("steps have %d bytes, those of a whole chunk take %d", got, full)
	}
	if n := a.Stats().Steps; n < 4 {
		t.Errorf("%d steps", n)
	}
}

// TestWaitsForMemory: a prompt waits while others use the memory it needs, and one that never can have it is told the numbers.
func TestWaitsForMemory(t *testing.T) {
	alone, _ := (*shared)(nil).start(t, "", 64)
	s := sharedMachine(8 << 20)
	a, _ := s.start(t, "a", 64)
	other, err := s.Ask(t.Context(), budget.Claim{Name: "other", Unload: func() {}, Use: budget.Use{Weights: s.Free("") - 100<<10}})
	if err != nil {
		t.Fatal(err)
	}
	end, ok := other.Begin()
	if !ok {
		t.Fatal("the other is gone")
	}
	p := Prompt{Tokens: prompt(3000, 1), MaxTokens: 3, Logprobs: -1}
	stream := submit(t, a, p)
	for a.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	between(a, func() {})
	end()
	other.Close()
	if got, want := read(t, stream), read(t, submit(t, alone, p)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	settle(a)
	if _, err := s.Ask(t.Context(), budget.Claim{Name: "pinned", Pinned: true, Use: budget.Use{Weights: s.Free("")}}); err != nil {
		t.Fatal(err)
	}
	_, err = readAll(submit(t, a, Prompt{Tokens: prompt(4000, 2), MaxTokens: 3, Logprobs: -1}))
	var none *NoMemoryError
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "pinned has") {
		t.Errorf("got %v", err)
	}
	same(t, alone, p, a) // goes on with what it has
}
