//go:build unix

package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hearth/internal/engine"
	"hearth/internal/kv"
)

// fake is a worker process that is played in this process.
type fake struct {
	net.Conn
	once sync.Once
	end  chan struct{}
	how  string
}

func (f *fake) Kill() {
	f.finish("signal: killed")
}

func (f *fake) Wait() string {
	<-f.end
	return f.how
}

func (f *fake) PID() int { return 1 }

func (f *fake) finish(how string) {
	f.once.Do(func() {
		f.how = how
		f.Close()
		close(f.end)
	})
}

// actor plays a worker process at its end of the connection.
type actor struct {
	conn net.Conn
	in   *receiver
	t    *testing.T
}

// send writes a frame. The other end may be gone.
func (a *actor) send(k kind, contents []byte) {
	b := append(begin(nil, k), contents...)
	_, _ = a.conn.Write(finish(b, 0))
}

// load is what a worker process does until prompts come.
func (a *actor) load() {
	if k, _, err := a.in.read(); k != kindGreeting || err != nil {
		a.t.Errorf("the first frame is %v, error %v", k, err)
	}
	a.send(kindGreeting, appendJSON(nil, greeting{Version: version, Build: "test"}))
	a.send(kindLoaded, appendJSON(nil, facts{Limits: Limits{Vocab: 100, MaxSequences: 2, MaxQueue: 2}, Context: 50}))
}

// hear reads a frame, or finds that the connection has ended.
func (a *actor) hear() { _, _, _ = a.in.read() }

// until reads to a frame of a kind and gives its contents; false: the connection has ended. Pings are answered.
func (a *actor) until(want kind) (*contents, bool) {
	for {
		k, b, err := a.in.read()
		switch {
		case err != nil:
			return nil, false
		case k == want:
			return &contents{b: slices.Clone(b)}, true
		case k == kindPing:
			a.send(kindPong, nil)
		}
	}
}

// began waits for a prompt and says that it has begun.
func (a *actor) began() (id uint64) {
	c, ok := a.until(kindPrompt)
	if !ok {
		return 0
	}
	id = c.uint()
	now := time.Now()
	a.send(kindUpdates, (&sent{}).appendUpdate(nil, id, &engine.Update{StopID: -1, Usage: engine.Usage{Submitted: now, Started: now.Add(1), Prompt: 4}}, false))
	return id
}

// answer answers a prompt with one token.
func (a *actor) answer() {
	a.load()
	if c, ok := a.until(kindPrompt); ok {
		var s sent
		a.send(kindUpdates, s.appendUpdate(nil, c.uint(), &engine.Update{Tokens: []engine.Token{{ID: 5}}, Reason: engine.Stop, StopID: 3,
			Usage: engine.Usage{Prompt: 4, Generated: 2}}, false))
		a.stay()
	}
}

// swallow ends on a prompt before it says that it has begun.
func (a *actor) swallow() {
	a.load()
	a.until(kindPrompt)
}

// stay lives until it is to end, and says how.
func (a *actor) stay() {
	if _, ok := a.until(kindEnd); ok {
		a.send(kindClosed, appendError(nil, nil))
	}
}

// troupe gives every worker process that is started its part; the last one is played by all further ones.
func troupe(t *testing.T, started *[]time.Duration, parts ...func(*actor)) Config {
	var mu sync.Mutex
	n := 0
	began := time.Now()
	return Config{Build: "test", Spec: []byte("{}"), Warn: func(string) {}, Start: func() (Process, error) {
		mu.Lock()
		defer mu.Unlock()
		ours, theirs := net.Pipe()
		f := &fake{Conn: ours, end: make(chan struct{})}
		part := parts[min(n, len(parts)-1)]
		n++
		if started != nil {
			*started = append(*started, time.Since(began))
		}
		go func() {
			part(&actor{conn: theirs, in: newReceiver(theirs), t: t})
			theirs.Close()
			f.finish("exit status 7")
		}()
		return f, nil
	}}
}

func mustOpen(t *testing.T, cfg Config) *Engine {
	t.Helper()
	e, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustClose(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func (a *actor) die() { a.load() }

// TestBackOff: a worker process that ends is started again, later each time, and at once again after a minute of health.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := slices.Repeat([]func(*actor){(*actor).die}, 8)
		parts = append(parts, func(a *actor) {
			a.load()
			go func() {
				time.Sleep(61 * time.Second)
				a.conn.Close()
			}()
			a.stay()
		}, (*actor).die, func(a *actor) { a.load(); a.stay() })
		var started []time.Duration
		e := mustOpen(t, troupe(t, &started, parts...))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		var gaps []string
		for i := 1; i < len(started); i++ {
			gaps = append(gaps, (started[i] - started[i-1]).Round(time.Millisecond).String())
		}
		if got, want := strings.Join(gaps, " "), "0s 500ms 1s 2s 4s 8s 16s 30s 1m1s 500ms"; got != want {
			t.Errorf("workers start %s after each other, want %s", got, want)
		}
		if pid, loaded := e.Worker(); pid == 0 || loaded != len(started) {
			t.Errorf("process %d, %d loaded of %d", pid, loaded, len(started))
		}
		mustClose(t, e)
	})
}

// TestPatience: prompts wait for a worker process that comes back soon, and are refused at once where it does not.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 10 * time.Second
		cfg := troupe(t, nil, (*actor).die, (*actor).answer)
		cfg.Delay = func(int) time.Duration { return delay }
		e := mustOpen(t, cfg)
		synctest.Wait()
		began := time.Now()
		s, err := e.Submit(t.Context(), prompt(4, 1))
		if took := time.Since(began); err != nil || took != delay {
			t.Fatalf("waited %v: %v", took, err)
		}
		if r := read(s); r.Err != nil || r.Stop != 3 || len(r.Tokens) != 1 || r.Usage.Generated != 2 {
			t.Errorf("reply %+v", r)
		}
		mustClose(t, e)
	})
	synctest.Test(t, func(t *testing.T) {
		cfg := troupe(t, nil, (*actor).die, func(a *actor) { a.load(); a.stay() })
		cfg.Delay = func(int) time.Duration { return 40 * time.Second }
		e := mustOpen(t, cfg)
		synctest.Wait()
		began := time.Now()
		_, err := e.Submit(t.Context(), prompt(4, 1))
		var lost *engine.LostError
		if !errors.As(err, &lost) || lost.Began || lost.After != 40*time.Second || lost.Times != 1 || time.Since(began) > 0 ||
			!strings.Contains(err.Error(), "exit status 7") {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		time.Sleep(15 * time.Second)
		if _, err := e.Submit(ctx, prompt(4, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a prompt that cannot wait: %v", err)
		}
		if st := e.Stats(); st.Context != 50 || st.Running != 0 {
			t.Errorf("stats %+v", st)
		}
		mustClose(t, e)
	})
}

// TestAgain: a prompt that a worker process had not begun when it ended is given to the next one, but not for ever.
func TestAgain(t *testing.T) {
	stay := func(a *actor) { a.load(); a.stay() }
	takes := func(a *actor) { // a prompt, which ends it, or its end
		a.load()
		for {
			switch k, _, err := a.in.read(); {
			case k == kindEnd:
				a.send(kindClosed, appendError(nil, nil))
				return
			case k == kindPrompt || err != nil:
				return
			}
		}
	}
	for name, c := range map[string]struct {
		parts []func(*actor)
		delay time.Duration
		then  func(e *Engine, s *engine.Stream)
		check func(r reply, took time.Duration) bool
	}{
		"another answers": {[]func(*actor){(*actor).swallow, (*actor).answer}, time.Second, nil,
			func(r reply, took time.Duration) bool { return r.Err == nil && r.Stop == 3 && took == time.Second }},
		"it ends two": {[]func(*actor){(*actor).swallow, (*actor).swallow, takes, stay}, time.Second, nil,
			func(r reply, took time.Duration) bool {
				var lost *engine.LostError
				return errors.As(r.Err, &lost) && lost.Began && took == time.Second
			}},
		"none comes": {[]func(*actor){(*actor).swallow, stay}, time.Minute, nil,
			func(r reply, took time.Duration) bool {
				var lost *engine.LostError
				return errors.As(r.Err, &lost) && !lost.Began && lost.After == 30*time.Second && took == 30*time.Second
			}},
		"nobody reads it": {[]func(*actor){(*actor).swallow, stay}, time.Second, func(_ *Engine, s *engine.Stream) { s.Close() },
			func(r reply, took time.Duration) bool { return errors.Is(r.Err, context.Canceled) && took == 0 }},
		"the engine is closed": {[]func(*actor){(*actor).swallow, stay}, time.Second, func(e *Engine, _ *engine.Stream) { mustClose(t, e) },
			func(r reply, took time.Duration) bool { return errors.Is(r.Err, engine.ErrClosed) && took == 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := troupe(t, nil, c.parts...)
				cfg.Delay = func(int) time.Duration { return c.delay }
				e := mustOpen(t, cfg)
				began := time.Now()
				s := mustSubmit(t, e, prompt(4, 1))
				if c.then != nil {
					synctest.Wait()
					c.then(e, s)
				}
				if r := read(s); !c.check(r, time.Since(began)) || len(e.Live()) != 0 {
					t.Errorf("after %v: %+v, %d live", time.Since(began), r, len(e.Live()))
				}
				mustClose(t, e)
			})
		})
	}
}

// TestCallLimits: figures, and what goes through the disk, are waited for only so long.
func TestCallLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustOpen(t, troupe(t, nil, func(a *actor) { a.load(); a.stay() }))
		for name, c := range map[string]struct {
			call func() bool
			want time.Duration
		}{
			"stats":  {func() bool { return e.Stats().Running == 0 }, 2 * time.Second},
			"stored": {func() bool { return e.Stored(kv.Salt{1}) == engine.Stored{} }, 2 * time.Second},
			"save":   {func() bool { return e.Save("x", nil) != nil }, 10 * time.Second},
			"saved":  {func() bool { return e.Saved("x") == nil }, 10 * time.Second},
		} {
			began := time.Now()
			if ok, took := c.call(), time.Since(began); !ok || took != c.want {
				t.Errorf("%s: %t after %v, want %v", name, ok, took, c.want)
			}
		}
		mustClose(t, e)
	})
}

// TestSilence: a worker process that says nothing, and answers nothing, is killed.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started []time.Duration
		cfg := troupe(t, &started, func(a *actor) {
			a.load()
			a.began()
			for {
				if _, _, err := a.in.read(); err != nil {
					return
				}
			}
		}, func(a *actor) { a.load(); a.stay() })
		var warn log
		cfg.Warn = warn.add
		e := mustOpen(t, cfg)
		s, err := e.Submit(t.Context(), prompt(4, 1))
		if err != nil {
			t.Fatal(err)
		}
		r := read(s)
		var lost *engine.LostError
		if !errors.As(r.Err, &lost) || !lost.Began || !strings.Contains(r.Err.Error(), "said nothing for 1m0s") || r.Reason != engine.Error {
			t.Errorf("reply %+v", r)
		}
		time.Sleep(10 * time.Minute) // the next one answers
		synctest.Wait()
		if len(started) != 2 || started[1] > 75*time.Second {
			t.Errorf("workers started at %v: %q", started, warn.all())
		}
		mustClose(t, e)
	})
}

// TestNonsense: a worker process that makes no sense is ended, and so are its streams.
func TestNonsense(t *testing.T) {
	encode := func(id uint64, n engine.Update) []byte {
		var s sent
		return s.appendUpdate(nil, id, &n, false)
	}
	for name, nonsense := range map[string]func(a *actor, id uint64){
		"length":       func(a *actor, _ uint64) { _, _ = a.conn.Write([]byte{0xff, 0xff, 0xff, 0xff, 9}) },
		"empty":        func(a *actor, _ uint64) { _, _ = a.conn.Write([]byte{0, 0, 0, 0}) },
		"kind":         func(a *actor, _ uint64) { a.send(200, nil) },
		"parent's":     func(a *actor, _ uint64) { a.send(kindPrompt, nil) },
		"greets again": func(a *actor, _ uint64) { a.send(kindGreeting, []byte("{}")) },
		"loads again":  func(a *actor, _ uint64) { a.send(kindLoaded, []byte("{}")) },
		"no stream":    func(a *actor, id uint64) { a.send(kindUpdates, encode(id+1, engine.Update{StopID: -1})) },
		"flags":        func(a *actor, id uint64) { a.send(kindUpdates, append(appendUint(nil, id), 0xff)) },
		"too much": func(a *actor, id uint64) {
			a.send(kindUpdates, encode(id, engine.Update{Tokens: make([]engine.Token, 21), StopID: -1}))
		},
		"cut off": func(a *actor, id uint64) {
			b := encode(id, engine.Update{Tokens: make([]engine.Token, 3), StopID: -1})
			a.send(kindUpdates, b[:len(b)-1])
		},
		"reason": func(a *actor, id uint64) { a.send(kindUpdates, encode(id, engine.Update{Reason: 9, StopID: -1})) },
		"reply":  func(a *actor, _ uint64) { a.send(kindReply, []byte{0x80}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := mustOpen(t, troupe(t, nil, func(a *actor) {
					a.load()
					nonsense(a, a.began())
					a.stay()
				}, func(a *actor) { a.load(); a.stay() }))
				s, err := e.Submit(t.Context(), prompt(4, 1))
				if err != nil {
					t.Fatal(err)
				}
				r := read(s)
				var lost *engine.LostError
				if !errors.As(r.Err, &lost) || !lost.Began || r.Reason != engine.Error || len(e.Live()) != 0 {
					t.Errorf("reply %+v, %d live", r, len(e.Live()))
				}
				synctest.Wait()
				if _, loaded := e.Worker(); loaded != 2 {
					t.Errorf("%d workers", loaded)
				}
				mustClose(t, e)
			})
		})
	}
}

// TestOpenFails: what keeps a model from being loaded is said, and nothing is left running.
func TestOpenFails(t *testing.T) {
	refusal := &Refused{Msg: "no tensor", Advice: "convert it again", NoBackend: true}
	for name, c := range map[string]struct {
		part   func(*actor)
		want   string
		starts int
	}{
		"refuses": {func(a *actor) {
			a.hear()
			a.send(kindGreeting, appendJSON(nil, greeting{Version: version, Build: "test"}))
			a.send(kindFailed, appendJSON(nil, refusal))
		}, "no tensor", 1},
		"dies": {(*actor).hear, "ended 3 times while it loaded, the last time with exit status 7", 3},
		"another build": {func(a *actor) {
			a.hear()
			a.send(kindGreeting, appendJSON(nil, greeting{Version: version, Build: "new"}))
			a.hear()
		}, "replaced by another build", 3},
		"facts": {func(a *actor) {
			a.hear()
			a.send(kindGreeting, appendJSON(nil, greeting{Version: version, Build: "test"}))
			a.send(kindLoaded, []byte("{"))
			a.hear()
		}, "JSON", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var started []time.Duration
				e, err := Open(t.Context(), troupe(t, &started, c.part))
				if err == nil {
					e.Close()
					t.Fatal("it opens")
				}
				if !strings.Contains(err.Error(), c.want) || len(started) != c.starts {
					t.Errorf("%d starts: %v", len(started), err)
				}
				var r *Refused
				if errors.As(err, &r) && *r != *refusal {
					t.Errorf("refused %+v", r)
				}
				synctest.Wait()
			})
		})
	}
	t.Run("no program", func(t *testing.T) {
		cfg := Config{Start: func() (Process, error) { return nil, errors.New("no such file") }, Warn: func(string) {}}
		if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "start the process of the model: no such file") {
			t.Errorf("error %v", err)
		}
	})
}

// TestLastWords: what a worker process said of loading counts, be it gone when that is looked at.
func TestLastWords(t *testing.T) {
	refusal, died := &Refused{Msg: "no tensor"}, &diedError{"exit status 7"}
	for _, said := range []error{nil, refusal} {
		for range 50 {
			s := &session{e: &Engine{}, loaded: make(chan error, 1), ended: make(chan struct{}), err: died}
			s.loaded <- said
			close(s.ended)
			if err := s.load(t.Context()); err != said {
				t.Fatalf("it said %v; error %v", said, err)
			}
			if err := s.load(t.Context()); err != died {
				t.Fatalf("it said nothing; error %v", err)
			}
		}
	}
}

// TestCloseAnytime: closing ends what waits for a worker process, and a worker process that is just being started.
func TestCloseAnytime(t *testing.T) {
	for name, second := range map[string]func(*actor){
		"while it loads":   func(a *actor) { a.hear(); a.hear() },
		"before it starts": nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := troupe(t, nil, (*actor).die, second)
				if second == nil {
					cfg.Delay = func(int) time.Duration { return 20 * time.Second }
				}
				e := mustOpen(t, cfg)
				synctest.Wait()
				waiting := make(chan error)
				go func() {
					_, err := e.Submit(t.Context(), prompt(4, 1))
					waiting <- err
				}()
				synctest.Wait()
				began := time.Now()
				mustClose(t, e)
				if err := <-waiting; !errors.Is(err, engine.ErrClosed) || time.Since(began) > 0 {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				if _, err := e.Submit(t.Context(), prompt(4, 1)); !errors.Is(err, engine.ErrClosed) {
					t.Errorf("a prompt afterwards: %v", err)
				}
				mustClose(t, e) // again
			})
		})
	}
}

// TestStuckClose: a worker process that does not end when it is told to is killed.
func TestStuckClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustOpen(t, troupe(t, nil, func(a *actor) {
			a.load()
			for {
				if k, _, err := a.in.read(); err != nil {
					return
				} else if k == kindPing {
					a.send(kindPong, nil)
				}
			}
		}))
		s, err := e.Submit(t.Context(), prompt(4, 1))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		mustClose(t, e)
		if took := time.Since(began); took != closeLimit {
			t.Errorf("it took %v", took)
		}
		if r := read(s); !errors.Is(r.Err, engine.ErrClosed) {
			t.Errorf("its stream ends with %v", r.Err)
		}
	})
}

// TestAdmission: prompts that the worker process would refuse are refused here, also while it has not heard of cancellations yet.
func TestAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mustOpen(t, troupe(t, nil, func(a *actor) { a.load(); a.stay() }))
		submit := func(client uint64, change func(*engine.Prompt)) (*engine.Stream, error) {
			p := prompt(4, 1)
			p.Client = client
			if change != nil {
				change(&p)
			}
			return e.Submit(t.Context(), p)
		}
		var long *engine.TooLongError
		if _, err := submit(0, func(p *engine.Prompt) { p.Tokens = make([]int32, 50) }); !errors.As(err, &long) || long.Max != 49 {
			t.Errorf("too long: %v", err)
		}
		for text, tokens := range map[string][]int32{"no tokens": nil, "token 1: id 100": {0, 100}, "token 0: id -1": {-1}} {
			if _, err := submit(0, func(p *engine.Prompt) { p.Tokens = tokens }); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v: %v", tokens, err)
			}
		}
		var many *engine.ClientFullError
		for n := range 3 {
			s, err := submit(7, nil)
			if n < 2 && err == nil {
				s.Close()
			} else if !errors.As(err, &many) || many.Live != 2 {
				t.Errorf("prompt %d of one client: %v", n+1, err)
			}
		}
		var full *engine.QueueFullError
		for n := range 3 {
			if _, err := submit(0, nil); n < 2 && err != nil || n == 2 && (!errors.As(err, &full) || full.Waiting != 4) {
				t.Errorf("prompt %d: %v", n+3, err)
			}
		}
		if l := e.Live(); len(l) != 4 || l[3].Max != 20 || l[3].Prompt != 4 {
			t.Errorf("live: %+v", l)
		}
		mustClose(t, e)
		if l := e.Live(); len(l) != 0 {
			t.Errorf("live after closing: %+v", l)
		}
	})
}

// TestTail: the last lines of a worker process are remembered, and of a crash its beginning.
func TestTail(t *testing.T) {
	var passed log
	w := &tail{pass: passed.add}
	for i := range 20 {
		fmt.Fprintf(w, "line %d\r\n", i)
	}
	fmt.Fprint(w, "[METAL] Insufficient Memory\nSIGABRT: abort\nPC=0x1 m=0\n\ngoroutine 1 [running]:\nmain.main()\n\tmain.go:5\n")
	if got, want := w.last(), "line 16; line 17; line 18; line 19; [METAL] Insufficient Memory; SIGABRT: abort"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if n := len(passed.all()); n != 27 {
		t.Errorf("%d lines were passed on", n)
	}
	long := &tail{pass: func(s string) {
		if len(s) > tailWidth {
			t.Errorf("a line of %d bytes", len(s))
		}
	}}
	fmt.Fprint(long, strings.Repeat("x", 5000), "\nno end\xff")
	if got := long.last(); got != strings.Repeat("x", tailWidth)+"; no end\xff" {
		t.Errorf("%q", got)
	}
}
