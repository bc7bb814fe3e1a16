//go:build unix

package load

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"hearth/internal/chat"
	"hearth/internal/server"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
)

// usage is what the server says of itself at /usage.
type usage struct {
	CPU      time.Duration // user and system time so far
	Resident int64         // bytes, garbage given back
	Behind   int           // streams that nobody reads: so many tokens wait for them
}

// runServer is the child process: hearth's HTTP front over a stub in a model's place, on a free port whose URL it prints.
func runServer(steps float64, interval int) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	own, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	stub := newStub(ctx, steps)
	s := server.New(server.Options{
		Models: stub, Protocols: []wire.Protocol{anthropic.Protocol{}, openai.Protocol{}}, Interval: interval,
		Health: func() server.Health { return server.Health{Status: "ok"} },
		Drain:  time.Second,
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/bare", stub.serveBare)
	mux.HandleFunc("/", stub.serveUsage)
	go func() { _ = http.Serve(own, mux) }() // ends with the process
	fmt.Printf("http://%s http://%s\n", l.Addr(), own.Addr())
	return s.Serve(ctx, l)
}

func (s *stub) serveUsage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/free" {
		debug.FreeOSMemory()
	}
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	u := usage{CPU: time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), Resident: resident(), Behind: s.behind()}
	_ = json.NewEncoder(w).Encode(u)
}

// serveBare writes what a stream of Chat Completions has by nothing but net/http: what is left when hearth costs nothing.
func (s *stub) serveBare(w http.ResponseWriter, r *http.Request) {
	x := s.join()
	defer s.leave(x)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	var b []byte
	for {
		made, err := s.next(r.Context(), x)
		if err != nil {
			return
		}
		b = append(b[:0], `data: {"id":"chatcmpl-0123456789abcdef01234567","object":"chat.completion.chunk","created":1767323045,"model":"stub","system_fingerprint":"hearth-dev","choices":[{"index":0,"delta":{"content":" `...)
		b = append(strconv.AppendInt(b, made.UnixNano(), 10), "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n"...)
		if _, err := w.Write(b); err != nil || out.Flush() != nil {
			return
		}
	}
}

// resident is the process's memory; 0 where there is no /proc.
func resident() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(kb, 10, 64)
	return n << 10
}

// stub generates tokens in steps, one for every stream, as an engine does: it never waits for a stream. Without a rate
// every stream is as fast as it is read.
type stub struct {
	steps   float64 // per second; 0: no steps
	mu      sync.Mutex
	streams map[*stubStream]bool
}

type stubStream struct {
	ready chan struct{} // holds one while there are tokens that were not taken
	mu    sync.Mutex
	made  []time.Time // of those
}

func newStub(ctx context.Context, steps float64) *stub {
	s := &stub{steps: steps, streams: map[*stubStream]bool{}}
	if steps > 0 {
		go s.run(ctx)
	}
	return s
}

func (s *stub) run(ctx context.Context) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / s.steps))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		s.mu.Lock()
		for x := range s.streams {
			x.mu.Lock()
			if len(x.made) < maxHeld {
				x.made = append(x.made, now)
			}
			x.mu.Unlock()
			select {
			case x.ready <- struct{}{}:
			default:
			}
		}
		s.mu.Unlock()
	}
}

// maxHeld is how many tokens a stream holds for a client that does not read, and behindAt how many make one of it.
const (
	maxHeld  = 1000
	behindAt = 20
)

func (s *stub) behind() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.streams {
		x.mu.Lock()
		if len(x.made) >= behindAt {
			n++
		}
		x.mu.Unlock()
	}
	return n
}

// Model implements chat.Generator.
func (s *stub) Model() chat.Model { return chat.Model{ID: "stub", Context: 1 << 20} }

// List implements chat.Models.
func (s *stub) List(context.Context) []chat.Model { return []chat.Model{s.Model()} }

// Open implements chat.Models.
func (s *stub) Open(context.Context, string) (chat.Generator, error) { return s, nil }

// Count implements chat.Generator.
func (s *stub) Count(context.Context, *chat.Request) (int, error) { return 1, nil }

// Generate implements chat.Generator: tokens without an end. Each is the time at which it was made, in nanoseconds, behind as
// many spaces as the request's message asks for.
func (s *stub) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	spaces, _ := strconv.Atoi(r.Messages[0].Text())
	pad := strings.Repeat(" ", max(spaces, 1))
	x := s.join()
	return func(yield func(chat.Event, error) bool) {
		defer s.leave(x)
		if !yield(chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: 1}}, nil) {
			return
		}
		for {
			made, err := s.next(ctx, x)
			if err != nil {
				yield(chat.Event{}, err)
				return
			}
			if !yield(chat.Event{Kind: chat.EventText, Text: pad + strconv.FormatInt(made.UnixNano(), 10)}, nil) {
				return
			}
		}
	}, nil
}

// join begins a stream.
func (s *stub) join() *stubStream {
	x := &stubStream{ready: make(chan struct{}, 1)}
	if s.steps > 0 {
		s.mu.Lock()
		s.streams[x] = true
		s.mu.Unlock()
	}
	return x
}

func (s *stub) leave(x *stubStream) {
	s.mu.Lock()
	delete(s.streams, x)
	s.mu.Unlock()
}

// next takes a stream's next token.
func (s *stub) next(ctx context.Context, x *stubStream) (time.Time, error) {
	if s.steps == 0 {
		return time.Now(), ctx.Err()
	}
	for {
		x.mu.Lock()
		if len(x.made) > 0 {
			made := x.made[0]
			x.made = x.made[1:]
			x.mu.Unlock()
			return made, nil
		}
		x.mu.Unlock()
		select {
		case <-x.ready:
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}
