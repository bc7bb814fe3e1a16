//go:build unix

package remote

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"hearth/internal/engine"
)

// mill is the worker process's side of streams that get a token each whenever it is told.
type mill struct {
	w     *worker
	usage []engine.Usage
	list  []*workerStream
}

func newMill(t testing.TB, n int) (*Engine, *mill) {
	t.Helper()
	m := &mill{w: &worker{out: newOutbox(), streams: map[uint64]*workerStream{}, ctx: context.Background()}}
	m.w.out.more = m.w.appendUpdates
	e, err := Open(context.Background(), Config{Build: "test", Spec: []byte("{}"), Warn: func(string) {}, Start: func() (Process, error) {
		ours, theirs, err := pair()
		if err != nil {
			return nil, err
		}
		f := &inProcess{fake: fake{end: make(chan struct{})}, file: ours}
		m.w.out.put(kindGreeting, func(b []byte) []byte { return appendJSON(b, greeting{Version: version, Build: "test"}) })
		m.w.out.put(kindLoaded, func(b []byte) []byte {
			return appendJSON(b, facts{Limits: Limits{Vocab: 1 << 17, MaxSequences: n, MaxQueue: n}, Context: 1 << 30})
		})
		go func() {
			_ = m.w.out.run(theirs)
			theirs.Close()
			f.once.Do(func() { close(f.end) })
		}()
		go func() {
			defer m.w.out.close()
			for in := newReceiver(theirs); ; {
				k, b, err := in.read()
				if err != nil || k == kindEnd {
					return
				}
				if k == kindPrompt {
					m.add(&contents{b: b})
				}
			}
		}()
		return f, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return e, m
}

// inProcess is a worker process that runs in this process.
type inProcess struct {
	fake
	file interface {
		Read([]byte) (int, error)
		Write([]byte) (int, error)
		Close() error
	}
}

func (p *inProcess) Read(b []byte) (int, error)  { return p.file.Read(b) }
func (p *inProcess) Write(b []byte) (int, error) { return p.file.Write(b) }
func (p *inProcess) Close() error                { return p.file.Close() }

func (m *mill) add(c *contents) {
	s := &workerStream{id: c.uint(), ctx: context.Background(), cancel: func() {}}
	s.stream = engine.NewStream(s.ctx, 1, func() {})
	u := s.stream.Usage()
	u.Started = u.Submitted.Add(1)
	m.w.mu.Lock()
	m.w.streams[s.id] = s
	m.w.mu.Unlock()
	m.list, m.usage = append(m.list, s), append(m.usage, u)
	s.stream.Apply(engine.Update{StopID: -1, Usage: u})
	m.w.touch(s, true)
}

// step gives every stream a token, as the engine does at the end of one.
func (m *mill) step(id int32) {
	for i, s := range m.list {
		m.usage[i].Generated++
		s.stream.Apply(engine.Update{Tokens: []engine.Token{{ID: id}}, StopID: -1, Usage: m.usage[i]})
		m.w.touch(s, false)
	}
	m.w.out.signal()
}

// readers read streams; got counts down with every token.
func readers(streams []*engine.Stream, got *sync.WaitGroup) *sync.WaitGroup {
	var all sync.WaitGroup
	for _, s := range streams {
		all.Go(func() {
			for {
				if _, err := s.Next(); err != nil {
					return
				}
				got.Done()
			}
		})
	}
	return &all
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHop is one step of so many streams, from the engine's goroutine to all that read them: in one process, and through
// a connection between two. Its cost is the difference; cpu-ns/token counts both ends.
func BenchmarkHop(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("here/%d", n), func(b *testing.B) {
			streams := make([]*engine.Stream, n)
			for i := range streams {
				streams[i] = engine.NewStream(b.Context(), 1, func() {})
			}
			measure(b, streams, func() {
				for _, s := range streams {
					s.Apply(engine.Update{Tokens: []engine.Token{{ID: 77777}}, StopID: -1})
				}
			})
		})
		b.Run(fmt.Sprintf("away/%d", n), func(b *testing.B) {
			e, m := newMill(b, n)
			defer e.Close()
			streams := make([]*engine.Stream, n)
			for i := range streams {
				s, err := e.Submit(context.Background(), engine.Prompt{Tokens: []int32{1}, Logprobs: -1})
				if err != nil {
					b.Fatal(err)
				}
				streams[i] = s
				<-s.Started()
			}
			measure(b, streams, func() { m.step(77777) })
		})
	}
}

func measure(b *testing.B, streams []*engine.Stream, step func()) {
	var got sync.WaitGroup
	all := readers(streams, &got)
	b.ResetTimer()
	began := cpuTime(b)
	for range b.N {
		got.Add(len(streams))
		step()
		got.Wait()
	}
	b.StopTimer()
	b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N*len(streams)), "cpu-ns/token")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N*len(streams)), "ns/token")
	for _, s := range streams {
		s.Close()
	}
	all.Wait()
}

// BenchmarkReplies are whole replies of a tiny model, many at once, from an engine in this process and from one in a worker
// process.
func BenchmarkReplies(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		s := spec{Sequences: n, Queue: n}
		run := func(b *testing.B, e submitter) {
			tokens := 0
			for b.Loop() {
				streams := make([]*engine.Stream, n)
				for i := range streams {
					p := prompt(20, i+1)
					p.MaxTokens = 200
					var err error
					if streams[i], err = e.Submit(context.Background(), p); err != nil {
						b.Fatal(err)
					}
				}
				for _, s := range streams {
					tokens += len(read(s).Tokens)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(tokens/n), "µs/step")
		}
		b.Run(fmt.Sprintf("here/%d", n), func(b *testing.B) {
			l, err := load(s, nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			run(b, l.Engine)
		})
		b.Run(fmt.Sprintf("away/%d", n), func(b *testing.B) {
			e, err := Open(b.Context(), config(s, &workers{}, &log{}))
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			run(b, e)
		})
	}
}
