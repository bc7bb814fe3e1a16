package bench

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"time"

	"hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/tokenizer"
)

// idle is a backend and a model that compute nothing: every step takes as long as it is told to, and every row's most
// likely token is the next of a few words. What is left to measure is everything around a model. Only what an engine calls
// is there.
type idle struct {
	backend.Backend
	words []int32
	vocab int // rows of the logits: no more than the words need
	pace  time.Duration
	busy  atomic.Int64 // nanoseconds of a processor that steps have used up

	logits []float32
	tokens int       // so far
	due    time.Time // when the step ends
}

// newIdle has some of the first words of a vocabulary, and steps that take as long as pace.
func newIdle(tok *tokenizer.Tokenizer, pace time.Duration) *idle {
	m := &idle{pace: pace}
	for id := int32(0); len(m.words) < 8 && int(id) < tok.Size(); id++ {
		if text := tok.Bytes(id); len(text) > 1 && !tok.Special(id) && !bytes.ContainsFunc(text[1:], func(r rune) bool { return r < 'a' || r > 'z' }) {
			m.words, m.vocab = append(m.words, id), int(id)+1
		}
	}
	return m
}

func (m *idle) Caps() backend.Caps { return backend.Caps{Eager: true, Invariant: true, World: 1} }
func (m *idle) Close() error       { return nil }

func (m *idle) NewStore([]backend.StateSpec, backend.KVPolicy) (backend.Store, error) {
	return idleStore{}, nil
}

func (m *idle) Begin(backend.Store, *backend.Batch) backend.Scope {
	return &idleScope{m: m}
}

func (m *idle) States() []backend.StateSpec { return nil }
func (m *idle) Sizes() (vocab, context int) { return m.vocab, 0 }
func (m *idle) Forward(_ backend.Ops, b *backend.Batch) backend.Array {
	return backend.Handle(1, 1, len(b.Out), 1, backend.F32)
}
func (m *idle) Logits(_ backend.Ops, h backend.Array) backend.Array {
	return backend.Handle(2, 1, h.Rows(), m.vocab, backend.F32)
}

// idleStore has pages of a byte.
type idleStore struct{ backend.Store }

func (idleStore) Geometry() kv.Geometry {
	return kv.Geometry{PageTokens: backend.PageTokens, Groups: []kv.Group{{PageBytes: 1}}}
}
func (idleStore) Policy() backend.KVPolicy                    { return backend.KVPolicy{} }
func (idleStore) Resize(kv.Capacity) error                    { return nil }
func (idleStore) Open(kv.SlotID, kv.Match, []kv.PageID) error { return nil }
func (idleStore) Close(kv.SlotID)                             {}

type idleScope struct {
	backend.Scope
	m *idle
}

func (s *idleScope) Keep(a backend.Array) backend.Array { return a }
func (s *idleScope) Submit(...backend.Array)            {}
func (s *idleScope) Sweep(backend.Array)                {}
func (s *idleScope) Err() error                         { return nil }

func (s *idleScope) Gather(_ backend.Array, rows []int32) backend.Array {
	return backend.Handle(3, 1, len(rows), 1, backend.F32)
}

func (s *idleScope) Floats(a backend.Array) ([]float32, error) {
	m := s.m
	n := a.Rows() * a.Cols()
	if len(m.logits) < n {
		m.logits = make([]float32, n)
	}
	l := m.logits[:n]
	clear(l)
	for row := range a.Rows() {
		l[row*m.vocab+int(m.words[m.tokens%len(m.words)])] = 1
		m.tokens++
	}
	return l, nil
}

func (s *idleScope) End() { s.m.step() }

// step keeps a processor busy until it is due, as a model does: a process that sleeps between steps pays for waking up.
func (m *idle) step() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from, now := threadTime(), time.Now()
	if m.due = m.due.Add(m.pace); m.due.Before(now) {
		m.due = now
	}
	for time.Now().Before(m.due) {
	}
	m.busy.Add(int64(threadTime() - from))
}
