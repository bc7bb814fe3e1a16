package engine

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/quant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const vocab = 97

// tiny and tiny4 are configs of a float and a 4-bit model with random weights.
const (
	tiny = `{"model_type":"llama","hidden_size":16,"num_hidden_layers":2,"intermediate_size":24,"num_attention_heads":2,
"num_key_value_heads":1,"head_dim":8,"rms_norm_eps":1e-6,"vocab_size":97,"rope_theta":10000,"max_position_embeddings":4096,
"tie_word_embeddings":true}`
	tiny4 = `{"model_type":"qwen3","hidden_size":64,"num_hidden_layers":2,"intermediate_size":128,"num_attention_heads":4,
"num_key_value_heads":2,"head_dim":32,"rms_norm_eps":1e-6,"vocab_size":97,"rope_theta":10000,"max_position_embeddings":4096,
"tie_word_embeddings":true,"quantization":{"group_size":32,"bits":4}}`
)

// hooked is the oracle with places to interfere.
type hooked struct {
	backend.Backend // nil: a new oracle
	precision       backend.Precision
	config          string // "": tiny
	kv              backend.KVPolicy
	begin           func(*backend.Batch) // runs on the engine's goroutine before every step
	fail            error                // what Floats gives
	open            func(kv.SlotID) error
	weight          func(*backend.WeightSpec) // may change what a weight is before it is loaded
}

type hookedStore struct {
	backend.Store
	h *hooked
}

type hookedScope struct {
	backend.Scope
	h *hooked
}

func (h *hooked) NewLoader(o backend.Options) backend.Loader {
	l := h.Backend.NewLoader(o)
	return backend.Visitor(func(s backend.WeightSpec) (backend.Weight, error) {
		if h.weight != nil {
			h.weight(&s)
		}
		return l.Load(s)
	}).NewLoader(o)
}

func (h *hooked) NewStore(s []backend.StateSpec, p backend.KVPolicy) (backend.Store, error) {
	st, err := h.Backend.NewStore(s, p)
	return &hookedStore{st, h}, err
}

func (h *hooked) Begin(s backend.Store, b *backend.Batch) backend.Scope {
	if h.begin != nil {
		h.begin(b)
	}
	if s == nil {
		return h.Backend.Begin(nil, b) // of a tower
	}
	return &hookedScope{h.Backend.Begin(s.(*hookedStore).Store, b), h}
}

// Workers and Spread are those of the backend below, or of none.
func (h *hooked) Workers() int {
	if s, ok := h.Backend.(backend.Spreader); ok {
		return s.Workers()
	}
	return 1
}

func (h *hooked) Spread(n int, f func(worker, i int)) {
	if s, ok := h.Backend.(backend.Spreader); ok {
		s.Spread(n, f)
		return
	}
	for i := range n {
		f(0, i)
	}
}

func (s *hookedStore) Open(slot kv.SlotID, m kv.Match, dst []kv.PageID) error {
	if s.h.open != nil {
		if err := s.h.open(slot); err != nil {
			return err
		}
	}
	return s.Store.Open(slot, m, dst)
}

func (s *hookedScope) Floats(a backend.Array) ([]float32, error) {
	if s.h.fail != nil {
		return nil, s.h.fail
	}
	return s.Scope.Floats(a)
}

// start runs an engine on a tiny random model until the test ends, and then checks that all memory came back.
func start(t *testing.T, h *hooked, change func(*Config)) *Engine {
	t.Helper()
	if h.Backend == nil {
		h.Backend = ref.New()
	}
	if h.config == "" {
		h.config = tiny
	}
	l, err := model.Synthetic{Config: []byte(h.config), Seed: 3, Type: quant.F32}.Load(h, backend.Options{Precision: h.precision, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Model: l.Generator, Vocab: l.Vocab, Backend: h, KV: h.kv, Budget: 1 << 24, MaxContext: 400, MaxSequences: 8, MaxQueue: 32}
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), l.Close(), h.Close()); err != nil {
			t.Error(err)
		}
		if s := e.Stats(); s.Running != 0 || s.Waiting != 0 || s.PagesUsed != 0 || s.Used != 0 {
			t.Errorf("after Close: %+v", s)
		}
	})
	return e
}

// between runs f on the engine's goroutine between two steps: a reader has a reply before the step that ended it has ended.
func between(e *Engine, f func()) {
	done := make(chan struct{})
	e.mu.Lock()
	e.calls = append(e.calls, func() { defer close(done); f() })
	e.mu.Unlock()
	e.signal()
	<-done
}

// steps makes every step wait for the test: next lets one run and open stops holding them.
type steps struct {
	gate chan struct{}
	free atomic.Bool
	at   chan int // rows of the step that waits
}

func newSteps() *steps { return &steps{gate: make(chan struct{}), at: make(chan int)} }

func (s *steps) begin(b *backend.Batch) {
	if s.free.Load() {
		return
	}
	s.at <- b.Rows()
	<-s.gate
}

// wait returns the rows of the step that is about to run.
func (s *steps) wait() int { return <-s.at }
func (s *steps) next()     { s.gate <- struct{}{} }

// release lets the step that waits and all later ones run.
func (s *steps) release() {
	s.free.Store(true)
	s.next()
}

// settle waits until no sequence is left, however its stream has ended.
func settle(e *Engine) {
	for s := e.Stats(); s.Running+s.Waiting > 0; s = e.Stats() {
		runtime.Gosched()
	}
}

func prompt(n int, seed uint64) []int32 {
	r := rand.New(rand.NewPCG(seed, 7))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = r.Int32N(vocab)
	}
	return ids
}

func submit(t *testing.T, e *Engine, p Prompt) *Stream {
	t.Helper()
	s, err := e.Submit(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read takes a stream to its end.
func read(t *testing.T, s *Stream) []Token {
	t.Helper()
	toks, err := readAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return toks
}

func readAll(s *Stream) (toks []Token, err error) {
	for {
		tok, err := s.Next()
		if errors.Is(err, io.EOF) {
			return toks, nil
		}
		if err != nil {
			return toks, err
		}
		tok.More = false // those whose drafts were right come together
		toks = append(toks, tok)
	}
}

// preempts runs two prompts in an engine that has no room for both: one is preempted, and each says what it says in fresh.
func preempts(t *testing.T, e, fresh *Engine, long func(uint64) Prompt) {
	t.Helper()
	streams := []*Stream{submit(t, e, long(1)), submit(t, e, long(2))}
	for i, s := range streams {
		if d := cmp.Diff(read(t, submit(t, fresh, long(uint64(i+1)))), read(t, s)); d != "" {
			t.Error(d)
		}
	}
	if e.Stats().Preempted == 0 {
		t.Error("nobody was preempted")
	}
}
