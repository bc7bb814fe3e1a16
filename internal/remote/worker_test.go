//go:build unix

package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hearth/internal/backend"
	"hearth/internal/engine"
	"hearth/internal/sample"
)

// TestKilled: the streams of a worker process that is killed keep what they got and end with an error that says how; the next
// prompts are answered by another worker process, and what counts goes on counting.
func TestKilled(t *testing.T) {
	var warn log
	e, c := open(t, spec{}, func(c *Config) { c.Warn = warn.add })
	want := read(mustSubmit(t, e, prompt(50, 1)))
	before := e.Stats()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGABRT, syscall.SIGSEGV} {
		streams := make([]*engine.Stream, 3)
		for i := range streams {
			p := prompt(50, i+1)
			p.MaxTokens, p.Sampling = 1900, sample.Params{Temperature: 1, Seed: 1}
			streams[i] = mustSubmit(t, e, p)
		}
		for _, s := range streams {
			<-s.Started()
		}
		for range 5 {
			if _, err := streams[1].Next(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.current().cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		for i, s := range streams {
			r := read(s)
			var lost *engine.LostError
			how := map[syscall.Signal]string{syscall.SIGKILL: "signal: killed", syscall.SIGABRT: "SIGABRT: abort",
				syscall.SIGSEGV: "SIGSEGV: segmentation violation"}[sig]
			if !errors.As(r.Err, &lost) || !lost.Began || !strings.Contains(r.Err.Error(), how) || strings.Contains(r.Err.Error(), "goroutine") {
				t.Errorf("%v: stream %d ends with %v", sig, i, r.Err)
			}
			if u := r.Usage; u.Prompt != 50 || i == 1 && u.Generated != len(r.Tokens)+5 || u.Ended.IsZero() || r.Reason != engine.Error {
				t.Errorf("%v: stream %d: %d tokens, usage %+v", sig, i, len(r.Tokens), u)
			}
		}
		if l := e.Live(); len(l) != 0 {
			t.Errorf("%v: live: %+v", sig, l)
		}
		if got := read(mustSubmit(t, e, prompt(50, 1))); len(got.Tokens) != len(want.Tokens) || got.Tokens[19].ID != want.Tokens[19].ID || got.Usage.Cached != 0 {
			t.Errorf("%v: afterwards %+v, before %+v", sig, got, want)
		}
		after := e.Stats()
		if after.GeneratedTokens < before.GeneratedTokens+20 || after.Cache.Queries <= before.Cache.Queries || after.Running != 0 {
			t.Errorf("%v: %+v, before %+v; %q", sig, after, before, warn.all())
		}
		before = after
	}
	if _, loaded := e.Worker(); loaded != 4 {
		t.Errorf("%d workers", loaded)
	}
}

// TestStuckStep: a worker process whose step does not end is ended, and the next prompts are answered by another one.
func TestStuckStep(t *testing.T) {
	var warn log
	e, c := open(t, spec{Stuck: 5}, func(c *Config) { c.Warn = warn.add })
	r := read(mustSubmit(t, e, prompt(50, 1)))
	var lost *engine.LostError
	if !errors.As(r.Err, &lost) || !lost.Began || !strings.Contains(r.Err.Error(), "a step did not end for 2m0s") {
		t.Errorf("reply %+v", r)
	}
	p := prompt(50, 1)
	p.MaxTokens = 2
	if r := read(mustSubmit(t, e, p)); r.Err != nil || len(r.Tokens) != 2 {
		t.Errorf("afterwards %+v; %q", r, warn.all())
	}
	if c.n != 2 {
		t.Errorf("%d workers", c.n)
	}
}

// TestConstrainFails: what a hook says of why its sequence cannot go on comes back as it was.
func TestConstrainFails(t *testing.T) {
	e, _ := open(t, spec{}, nil)
	no := errors.New("no")
	for name, hook := range map[string]func() engine.Constraint{
		"no":    func() engine.Constraint { return engine.Constraint{Err: no} },
		"panic": func() engine.Constraint { panic("oh") },
	} {
		p := prompt(9, 1)
		n := 0
		p.Constrain = func(int32) engine.Constraint {
			if n++; n < 3 {
				return engine.Constraint{}
			}
			return hook()
		}
		r := read(mustSubmit(t, e, p))
		var refused *engine.ConstraintError
		if !errors.As(r.Err, &refused) || name == "no" && !errors.Is(r.Err, no) || len(r.Tokens) != 3 || r.Reason != engine.Error {
			t.Errorf("%s: %+v", name, r)
		}
		if r := read(mustSubmit(t, e, prompt(9, 1))); r.Err != nil {
			t.Errorf("after %s: %v", name, r.Err)
		}
	}
}

// TestConstrainIsApart: a hook that does not answer holds up nobody who only reads.
func TestConstrainIsApart(t *testing.T) {
	e, _ := open(t, spec{}, nil)
	never, told := make(chan struct{}), make(chan struct{}, 20)
	defer close(never)
	ctx, cancel := context.WithCancel(t.Context())
	p := prompt(9, 1)
	p.Constrain = func(int32) engine.Constraint {
		told <- struct{}{}
		<-never
		return engine.Constraint{}
	}
	s, err := e.Submit(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	<-told
	if st := e.Stats(); st.Steps == 0 { // the reader reads
		t.Errorf("%+v", st)
	}
	cancel()
	if r := read(s); !errors.Is(r.Err, context.Canceled) {
		t.Errorf("%+v", r)
	}
	if r := read(mustSubmit(t, e, prompt(9, 1))); r.Err != nil {
		t.Error(r.Err)
	}
}

func mustSubmit(t *testing.T, e *Engine, p engine.Prompt) *engine.Stream {
	t.Helper()
	s, err := e.Submit(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCancel: a stream that is closed, or whose context ends, leaves the worker process, also while what is settled is on its
// way.
func TestCancel(t *testing.T) {
	e, _ := open(t, spec{Sequences: 1, Queue: 4}, nil)
	for _, constrained := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		asked, hold := make(chan struct{}, 2000), make(chan struct{})
		p := prompt(30, 1)
		p.MaxTokens = 1900
		if constrained {
			p.Constrain = func(int32) engine.Constraint { asked <- struct{}{}; <-hold; return engine.Constraint{} }
		}
		s, err := e.Submit(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		if constrained {
			<-asked
		} else {
			<-s.Started()
		}
		cancel()
		close(hold)
		if r := read(s); !errors.Is(r.Err, context.Canceled) || r.Reason != engine.Cancel {
			t.Errorf("constrained %t: %+v", constrained, r)
		}
		s = mustSubmit(t, e, p)
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if r := read(mustSubmit(t, e, prompt(10, 2))); r.Err != nil || len(r.Tokens) != 20 { // there is only one place
			t.Errorf("constrained %t: the next is %+v", constrained, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Submit(ctx, prompt(3, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a prompt that was cancelled before: %v", err)
	}
	if _, err := e.Score(ctx, prompt(3, 1).Tokens, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("likewise, scored: %v", err)
	}
	if l := e.Live(); len(l) != 0 {
		t.Errorf("live after all have ended: %+v", l)
	}
}

// TestDisk: what a worker process had on disk is there for the next one, whether it was killed or ended in order; a killed one's
// lock is no obstacle.
func TestDisk(t *testing.T) {
	dir := t.TempDir()
	e, c := open(t, spec{Disk: dir}, nil)
	p := prompt(600, 1)
	for range 2 { // a turn that goes on from another is written
		r := read(mustSubmit(t, e, p))
		for _, tok := range r.Tokens {
			p.Tokens = append(p.Tokens, tok.ID)
		}
		p.Tokens = append(p.Tokens, prompt(100, 2).Tokens...)
	}
	for e.Stats().Cache.Disk.Writes == 0 { // the tier's own goroutine does it
		if t.Context().Err() != nil {
			t.Fatal("nothing is written")
		}
	}
	if err := e.Save("name", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	c.current().Kill()
	if r := read(mustSubmit(t, e, p)); r.Err != nil || r.Usage.Disk == 0 || r.Usage.Disk != r.Usage.Cached {
		t.Errorf("after a kill: %+v", r.Usage)
	}
	if got := e.Saved("name"); string(got) != "kept" {
		t.Errorf("saved %q", got)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, _ = open(t, spec{Disk: dir}, nil)
	if r := read(mustSubmit(t, e, p)); r.Usage.Disk < 700 {
		t.Errorf("after an orderly end: %+v", r.Usage)
	}
	if got := e.Saved("other"); got != nil {
		t.Errorf("saved %q", got)
	}
	if d, err := e.DropCache(t.Context()); err != nil || d.DiskEntries == 0 || e.Saved("name") != nil {
		t.Errorf("dropped %+v, error %v", d, err)
	}
	if err := e.Save("big", make([]byte, maxFrame)); err == nil || !strings.Contains(err.Error(), "MiB") {
		t.Errorf("more than a frame: %v", err)
	}
}

// TestRealFailures: what a real worker process says, and what it dies of, reaches who opened it.
func TestRealFailures(t *testing.T) {
	c := &workers{}
	var warn log
	_, err := Open(t.Context(), config(spec{Refuse: "no such folder"}, c, &warn))
	var r *Refused
	if !errors.As(err, &r) || r.Msg != "no such folder" || r.Hint() != "have another" || c.n != 1 {
		t.Errorf("%d starts: %v", c.n, err)
	}
	_, err = Open(t.Context(), config(spec{Die: "libc++abi: terminating due to uncaught exception"}, c, &warn))
	var crash *CrashError
	if !errors.As(err, &crash) || !strings.Contains(err.Error(), "ended 3 times while it loaded, the last time with exit status 3: libc++abi: terminating") || c.n != 4 {
		t.Errorf("%d starts: %v", c.n, err)
	}
	if out := c.out.all(); len(out) != 4 { // the refused one says why it ends, too
		t.Errorf("they printed %q", out)
	}
	if _, err := Exec(exec.Command("/nowhere/hearth"), c.out.add); err == nil {
		t.Error("a program that does not exist has started")
	}
}

// serve runs the worker process's side in this process.
func serve(t *testing.T) (parent net.Conn, in *receiver, ended chan error) {
	t.Helper()
	ours, theirs := net.Pipe()
	ended = make(chan error, 1)
	go func() {
		ended <- Serve(theirs, "test", func(b json.RawMessage, h Hooks) (*Loaded, error) { return load(spec{}, h.Trace, h.Stuck) })
	}()
	return ours, newReceiver(ours), ended
}

// say writes a frame as the parent.
func say(t *testing.T, conn net.Conn, k kind, b []byte) {
	t.Helper()
	if _, err := conn.Write(finish(append(begin(nil, k), b...), 0)); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, in *receiver, want kind) *contents {
	t.Helper()
	for {
		k, b, err := in.read()
		if err != nil {
			t.Fatalf("wait for %v: %v", want, err)
		}
		if k == want {
			return &contents{b: b}
		}
	}
}

// TestOrphan: a worker process whose parent goes, or talks nonsense, ends by itself, whatever it is doing.
func TestOrphan(t *testing.T) {
	long := prompt(100, 1)
	long.MaxTokens = 1900
	constrained := long
	constrained.Constrain = func(int32) engine.Constraint { return engine.Constraint{} }
	hello := appendJSON(nil, greeting{Version: version, Build: "test", Spec: json.RawMessage("{}")})
	for name, c := range map[string]struct {
		say  func(conn net.Conn, in *receiver)
		want error
	}{
		"goes at once":          {func(net.Conn, *receiver) {}, nil},
		"goes before the model": {func(conn net.Conn, in *receiver) { say(t, conn, kindGreeting, hello) }, nil},
		"another build": {func(conn net.Conn, in *receiver) {
			say(t, conn, kindGreeting, []byte(`{"Version":1,"Build":"old"}`))
			hear(t, in, kindGreeting)
		}, nil},
		"no greeting":               {func(conn net.Conn, in *receiver) { say(t, conn, kindPing, nil) }, errFrame},
		"goes with the model":       {func(conn net.Conn, in *receiver) { say(t, conn, kindGreeting, hello); hear(t, in, kindLoaded) }, ErrGone},
		"goes in the middle":        {func(conn net.Conn, in *receiver) { start(t, conn, in, hello, &long); hear(t, in, kindUpdates) }, ErrGone},
		"goes before it constrains": {func(conn net.Conn, in *receiver) { start(t, conn, in, hello, &constrained); hear(t, in, kindUpdates) }, ErrGone},
		"half a prompt": {func(conn net.Conn, in *receiver) {
			say(t, conn, kindGreeting, hello)
			hear(t, in, kindLoaded)
			b := appendPrompt(appendUint(nil, 1), &long)
			say(t, conn, kindPrompt, b[:len(b)/2])
		}, errFrame},
		"another method": {func(conn net.Conn, in *receiver) {
			say(t, conn, kindGreeting, hello)
			hear(t, in, kindLoaded)
			say(t, conn, kindCall, []byte{1, 99})
		}, errFrame},
		"settles what nobody asked": {func(conn net.Conn, in *receiver) {
			start(t, conn, in, hello, &constrained)
			b := finish(append(begin(nil, kindConstraint), appendConstraint(appendUint(nil, 1), engine.Constraint{Forced: []int32{1}})...), 0)
			// It asks for some, so these are far more than it can ask for while it reads them. It may have ended before the last.
			_, _ = conn.Write(bytes.Repeat(b, 20*engine.LongestSpan))
		}, errFrame},
		"allows more than there can be": {func(conn net.Conn, in *receiver) {
			start(t, conn, in, hello, &constrained)
			say(t, conn, kindConstraint, appendConstraint(appendUint(nil, 1), engine.Constraint{Mask: make(sample.Set, longestSet+1)}))
		}, errFrame},
		"ends it": {func(conn net.Conn, in *receiver) {
			start(t, conn, in, hello, &long)
			say(t, conn, kindEnd, nil)
			hear(t, in, kindClosed)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			conn, in, ended := serve(t)
			drained := make(chan struct{})
			c.say(conn, in)
			go func() { // what it still says
				defer close(drained)
				for {
					if _, _, err := in.read(); err != nil {
						return
					}
				}
			}()
			if c.want != errFrame {
				conn.Close()
			}
			select {
			case err := <-ended:
				if c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("it ends with %v, want %v", err, c.want)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it does not end")
			}
			conn.Close()
			<-drained
		})
	}
}

// TestOrphanLimit: a worker process whose parent is gone waits only so long for its caches to be written.
func TestOrphanLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, theirs := net.Pipe()
		written, ended := make(chan struct{}), make(chan error)
		go func() {
			ended <- Serve(theirs, "test", func(json.RawMessage, Hooks) (*Loaded, error) {
				forward := func(*backend.Batch, func([]float32)) error { return nil }
				return &Loaded{Forward: forward, Close: func() error { <-written; return nil }}, nil
			})
		}()
		in := newReceiver(conn)
		say(t, conn, kindGreeting, appendJSON(nil, greeting{Version: version, Build: "test", Spec: json.RawMessage("{}")}))
		hear(t, in, kindLoaded)
		conn.Close()
		began := time.Now()
		if err := <-ended; !errors.Is(err, ErrGone) || time.Since(began) != 15*time.Second {
			t.Errorf("it ends after %v: %v", time.Since(began), err)
		}
		close(written)
	})
}

func start(t *testing.T, conn net.Conn, in *receiver, hello []byte, p *engine.Prompt) {
	t.Helper()
	say(t, conn, kindGreeting, hello)
	hear(t, in, kindLoaded)
	say(t, conn, kindPrompt, appendPrompt(appendUint(nil, 1), p))
}
