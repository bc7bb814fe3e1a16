package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"hearth/internal/backend/cpu"
	"hearth/internal/chat"
	"hearth/internal/demo"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/server"
	"hearth/internal/wire"
	"hearth/internal/wire/anthropic"
	"hearth/internal/wire/openai"
)

const (
	// streamPace is how long a step takes while streams are measured. If steps took no time, tokens would pile up, and
	// several are written at once for less.
	streamPace    = 10 * time.Millisecond
	streamTime    = 2 * time.Second // of each measurement
	streamRounds  = 5               // of measurements, in turns
	streamsAtOnce = 64              // of the widest run
	streamStart   = 20 * time.Second
)

// streamCost is processor time beside the model's steps and what a process takes anyway, in microseconds per token.
type streamCost struct {
	idle  float64 // what a process takes anyway, per step
	bare  float64 // of a bare server
	total float64
	loop  float64 // time of the engine's loop
	rate  float64 // tokens per second
}

// stream measures the processor time of a token from the scheduler to the socket: a whole server over a model that computes
// nothing but keeps a processor as busy. Another process reads the streams, half of them in each protocol. Beside it stands
// what the least server takes for the same: most of a lone stream's token is waking a thread on an idle processor.
func (b *engineBench) stream() ([]figure, error) {
	if !cpuClocks {
		return nil, errors.New("the processor time of a process is not known on this system")
	}
	runtime.GOMAXPROCS(cpu.Threads() + 2) // as in serve
	s, err := startIdle(b.ctx, streamPace)
	if err != nil {
		return nil, err
	}
	defer s.close()
	while := time.Duration(float64(streamTime) * b.f.scale)
	var figures []figure
	for _, n := range []int{1, 8, streamsAtOnce} {
		var rounds []streamCost
		for range streamRounds {
			c, err := s.round(b.ctx, n, while)
			if err != nil {
				return nil, err
			}
			b.progress(fmt.Sprintf("%d streams: %.1f us per token, %.1f from a bare handler", n, c.total, c.bare))
			rounds = append(rounds, c)
		}
		figures = append(figures, streamFigures(n, rounds)...)
	}
	return figures, nil
}

// streamFigures are medians of the rounds.
func streamFigures(n int, rounds []streamCost) []figure {
	row := func(name, unit string, limit float64, of func(streamCost) float64) figure {
		var all []float64
		for _, c := range rounds {
			all = append(all, of(c))
		}
		return figure{fmt.Sprintf("%d streams, %s", n, name), median(all), unit, limit}
	}
	limit := 50.0
	if n == streamsAtOnce {
		limit = 20
	}
	return []figure{
		row("a process that only computes, besides", "us per step", 0, func(c streamCost) float64 { return c.idle }),
		row("processor time per token", "us", limit, func(c streamCost) float64 { return c.total }),
		row("the same from a bare handler", "us", 0, func(c streamCost) float64 { return c.bare }),
		row("the difference", "us", 50, func(c streamCost) float64 { return c.total - c.bare }),
		row("time of the engine's loop", "us", 0, func(c streamCost) float64 { return c.loop }),
		row("tokens", "per second", 0, func(c streamCost) float64 { return c.rate }),
	}
}

// round measures an idle process, a bare server and the whole one, each for a while.
func (s *idleServer) round(ctx context.Context, n int, while time.Duration) (streamCost, error) {
	idle := s.baseline(while)
	bare, err := s.bare(ctx, n, while, idle)
	if err != nil {
		return streamCost{}, err
	}
	stop, err := readStreams(ctx, s.url, n)
	if err != nil {
		return streamCost{}, err
	}
	var c streamCost
	if err = s.settled(ctx, n); err == nil {
		c = s.measure(while, idle)
		c.idle, c.bare = idle*1e6*streamPace.Seconds(), bare
	}
	stop()
	return c, errors.Join(err, s.settled(ctx, 0))
}

// idleServer serves a model that computes nothing.
type idleServer struct {
	model  *idle
	engine *engine.Engine
	loop   atomic.Int64 // nanoseconds that the engine's goroutine took beside the model's steps
	url    string
	stop   context.CancelFunc
	served chan struct{}
}

// startIdle serves with the text side of the demo model. Steps take as long as pace.
func startIdle(ctx context.Context, pace time.Duration) (*idleServer, error) {
	text, err := generate.Load(demo.FS(), "")
	if err != nil {
		return nil, err
	}
	const tokens = 1 << 16 // of context
	s := &idleServer{model: newIdle(text.Tokenizer, pace), served: make(chan struct{})}
	if s.engine, err = engine.New(engine.Config{Model: s.model, Backend: s.model, Vocab: text.Tokenizer.Size(), Budget: streamsAtOnce * tokens,
		MaxContext: tokens, MaxSequences: streamsAtOnce, StepTarget: 150 * time.Millisecond,
		Trace: func(st engine.Step) { s.loop.Add(int64(st.Plan + st.Book)) }}); err != nil {
		return nil, err
	}
	text.Engine, text.Info.ID = generate.Over(s.engine), "idle"
	gen, err := generate.New(text)
	if err != nil {
		return nil, errors.Join(err, s.engine.Close())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.engine.Close())
	}
	s.url = "http://" + l.Addr().String()
	ctx, s.stop = context.WithCancel(ctx)
	srv := server.New(server.Options{Models: oneModel{gen}, Protocols: []wire.Protocol{anthropic.Protocol{}, openai.Protocol{}},
		Health: func() server.Health { return server.Health{Status: "ok", Model: "idle"} }, Drain: time.Millisecond})
	go func() {
		defer close(s.served)
		_ = srv.Serve(ctx, l) // the streams say what is wrong
	}()
	return s, nil
}

func (s *idleServer) close() {
	s.stop()
	<-s.served
	_ = s.engine.Close() // streams that it cuts off are nobody's
}

// oneModel answers to every name.
type oneModel struct{ gen *generate.Generator }

func (m oneModel) Open(context.Context, string) (chat.Generator, error) { return m.gen, nil }
func (m oneModel) List(context.Context) []chat.Model                    { return []chat.Model{m.gen.Model()} }

// readStreams starts a process that reads n streams, and says how to end it.
func readStreams(ctx context.Context, url string, n int) (stop func(), err error) {
	name, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, name, "bench", "read", url, strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	return func() {
		cancel()
		_ = cmd.Wait() // killed
	}, nil
}

// settled waits until so many sequences run.
func (s *idleServer) settled(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, streamStart)
	defer cancel()
	for {
		if st := s.engine.Stats(); st.Running == n && st.Waiting == 0 {
			return nil
		}
		select {
		case <-time.After(5 * streamPace):
		case <-ctx.Done():
			return fmt.Errorf("wait for %d streams to run: %d do: %w", n, s.engine.Stats().Running, ctx.Err())
		}
	}
}

// besides is the processor time that the process has used besides the model's steps.
func (s *idleServer) besides() time.Duration {
	return processTime() - time.Duration(s.model.busy.Load())
}

// baseline is the share of a processor that the process takes besides steps that nobody is served by: the run time wakes up
// to look after those that run.
func (s *idleServer) baseline(while time.Duration) float64 {
	start, from := time.Now(), s.besides()
	for time.Since(start) < while {
		s.model.step()
	}
	return (s.besides() - from).Seconds() / time.Since(start).Seconds()
}

// measure takes what a while costs in which streams run, besides idle of a processor.
func (s *idleServer) measure(while time.Duration, idle float64) streamCost {
	start, from := time.Now(), s.besides()
	loop, tokens := s.loop.Load(), s.engine.Stats().GeneratedTokens
	time.Sleep(while)
	took, used := time.Since(start).Seconds(), (s.besides() - from).Seconds()
	tokens, loop = s.engine.Stats().GeneratedTokens-tokens, s.loop.Load()-loop
	each := 1e6 / float64(max(tokens, 1))
	return streamCost{total: (used - idle*took) * each, loop: float64(loop) / 1e9 * each, rate: float64(tokens) / took}
}
