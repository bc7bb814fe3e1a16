//go:build linux

package hostile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// outcome of a row that is no request: what was seen, and what is wrong with it.
func outcome(t *testing.T, name, seen string, faults ...error) {
	t.Helper()
	verdict := "ok"
	if err := errors.Join(faults...); err != nil {
		verdict = "**failed**: " + strings.NewReplacer("|", "¦", "\n", "; ").Replace(err.Error())
		t.Error(err)
	}
	record("| %s | %s | %s |", name, seen, verdict)
}

// whole tells whether what came over a connection is one whole reply, or nothing of one, as of a connection that was aborted.
func whole(raw []byte, a api) (string, error) {
	if len(raw) == 0 {
		return "aborted", nil
	}
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		return "aborted in the head", nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Sprintf("%d, aborted", res.StatusCode), nil
	}
	if len(body) == 0 {
		return fmt.Sprintf("%d, empty", res.StatusCode), fmt.Errorf("status %d without a body", res.StatusCode)
	}
	return fmt.Sprintf("%d, whole", res.StatusCode), reply{code: res.StatusCode, body: body}.check(a)
}

// TestHalfClosed: a client that closes its side after the request is not told that an empty reply is one.
func TestHalfClosed(t *testing.T) {
	skipUnlessAsked(t)
	record("\n| connection | seen | |\n|---|---|---|")
	s := newServer(t, "--prefix-cache-dir", "off")
	long := strings.Repeat("Tell me more of it. ", 300)
	for _, q := range []struct {
		name string
		request
	}{
		{"chat", openai.say(long, "")}, {"chat, streamed", openai.say(long, `, "stream": true`)},
		{"messages", anthropic.say(long, "")}, {"messages, streamed", anthropic.say(long, `, "stream": true`)},
		{"count_tokens", request{api: anthropic, path: "/v1/messages/count_tokens", body: anthropic.say(long, "").body}},
		{"completions", request{api: openai, path: "/v1/completions", body: []byte(`{"max_tokens": 64, "prompt": ` + quote(long) + `}`)}},
		{"completions, streamed", request{api: openai, path: "/v1/completions", body: []byte(`{"stream": true, "max_tokens": 64, "prompt": ` + quote(long) + `}`)}},
		{"completions, several choices", request{api: openai, path: "/v1/completions", body: []byte(`{"n": 4, "max_tokens": 64, "prompt": ` + quote(long) + `}`)}},
		{"a body that ends too soon", request{api: openai, path: "/v1/completions", body: nil}},
	} {
		t.Run(q.name, func(t *testing.T) {
			seen := map[string]bool{}
			var faults []error
			for range 5 {
				c, err := s.dial()
				if err != nil {
					t.Fatal(err)
				}
				length := len(q.body)
				if length == 0 {
					length = 100
				}
				_, _ = c.Write(append([]byte(head(q.path, length)), q.body...))
				_ = c.CloseWrite()
				_ = c.SetReadDeadline(time.Now().Add(helloLimit))
				raw, err := io.ReadAll(c)
				c.Close()
				if errors.Is(err, os.ErrDeadlineExceeded) {
					faults = append(faults, errors.New("the connection stays open"))
				}
				what, err := whole(raw, q.api)
				seen[what] = true
				if err != nil {
					faults = append(faults, err)
					break
				}
			}
			if _, err := s.hello(context.Background()); err != nil {
				faults = append(faults, err)
			}
			outcome(t, "half closed: "+q.name, strings.Join(sorted(seen), ", "), faults...)
		})
	}
}

func sorted(m map[string]bool) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// story is so many numbers: a text that repeats itself would be broken off.
func story(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%x and ", i*7919%1_000_003)
	}
	return b.String()
}

// unreadLimit is more than the write deadline of replies, and what finding out takes.
const unreadLimit = 100 * time.Second

// TestUnread: a reply that nobody reads does not keep its connection for good.
func TestUnread(t *testing.T) {
	skipUnlessAsked(t)
	args := scripted(t, story(1_000_000), "--context-length", "20000000", "--prefix-cache-dir", "off") // more than the buffers of both sides of a connection
	var wg sync.WaitGroup
	type seen struct {
		name string
		took time.Duration
		err  error
	}
	var mu sync.Mutex
	var all []seen
	for _, a := range both {
		for _, more := range []string{``, `, "stream": true`} {
			wg.Go(func() {
				name := a.name + map[bool]string{true: ", whole", false: ", streamed"}[more == ""]
				took, err := unread(t.TempDir(), args, a, more)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, seen{name, took, err})
			})
		}
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b seen) int { return strings.Compare(a.name, b.name) })
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			outcome(t, "reply that nobody reads: "+c.name, fmt.Sprintf("closed after %.0f s", c.took.Seconds()), c.err)
		})
	}
}

// unread asks for a long reply and leaves it where it is.
func unread(dir string, args []string, a api, more string) (took time.Duration, err error) {
	s, err := serve(dir, nil, args...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.stop(syscall.SIGTERM)) }()
	before := s.sockets()
	c, err := s.dial()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if err := c.SetReadBuffer(4096); err != nil {
		return 0, err
	}
	body := bytes.Replace(a.say("Hello", more).body, []byte(`"max_tokens": 64`), []byte(`"max_tokens": 10000000`), 1)
	if _, err := c.Write(append([]byte(head(a.path, len(body))), body...)); err != nil {
		return 0, err
	}
	began := time.Now()
	for range time.Tick(time.Second) {
		took = time.Since(began)
		switch {
		case s.gone():
			return took, fmt.Errorf("the server ended: %w", s.err)
		case took > 3*time.Second && s.sockets() <= before:
			return took, nil
		case took > unreadLimit:
			return took, fmt.Errorf("the connection is open after %v", unreadLimit)
		}
	}
	return took, nil
}

// TestOutput: nobody who reads the server's log, or does not, keeps it from answering.
func TestOutput(t *testing.T) {
	skipUnlessAsked(t)
	calls := func(s *server, n int) error {
		for i := range n {
			q := openai.say("Hi", "")
			q.body = []byte(`{"messages": []}`)
			if i%100 == 99 {
				q = anthropic.say("Hi", "")
			}
			ctx, cancel := context.WithTimeout(context.Background(), helloLimit/4)
			p := q.send(ctx, s.url)
			cancel()
			if p.err != nil {
				return fmt.Errorf("request %d: %w", i+1, p.err)
			}
		}
		_, err := s.hello(context.Background())
		return err
	}
	try := func(name string, n int, prepare func(t *testing.T, cmd *exec.Cmd) (then func(*server) error)) {
		t.Run(name, func(t *testing.T) {
			var then func(*server) error
			s, err := serve(t.TempDir(), func(cmd *exec.Cmd) { then = prepare(t, cmd) }, "--log-level", "debug", "--prefix-cache-dir", "off")
			if err != nil {
				outcome(t, name, "no start", err)
				return
			}
			faults := []error{calls(s, n)}
			if then != nil && faults[0] == nil {
				faults = append(faults, then(s), calls(s, 1))
			}
			seen := "answered"
			switch {
			case faults[0] != nil:
				seen = "not answered"
			case s.gone():
				seen = fmt.Sprintf("the server ended: %v", s.err)
				faults = append(faults, s.err)
			}
			if err := s.stop(syscall.SIGTERM); err != nil {
				faults = append(faults, err)
			}
			outcome(t, name, seen, faults...)
		})
	}
	pipe := func(t *testing.T) (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return r, w
	}
	for _, n := range []int{1000, 8000} {
		try(fmt.Sprintf("a log that nobody reads, %d requests", n), n, func(t *testing.T, cmd *exec.Cmd) func(*server) error {
			r, w := pipe(t)
			cmd.Stderr = w
			t.Cleanup(func() { r.Close() })
			return func(s *server) error {
				w.Close()
				got := make(chan bool, 1)
				go func() {
					seen, told := 0, false
					for lines := bufio.NewScanner(r); lines.Scan(); {
						switch line := lines.Text(); {
						case strings.Contains(line, "msg=request "):
							seen++
						case strings.Contains(line, "log lines were dropped"):
							told = true
						}
						if seen >= n || told {
							select {
							case got <- true:
							default:
							}
						}
					}
				}()
				for range 20 { // a line gives the log a reason to say what was lost
					if err := calls(s, 1); err != nil {
						return err
					}
					select {
					case <-got:
						return nil
					case <-time.After(200 * time.Millisecond):
					}
				}
				return errors.New("lines of the log are missing, and nothing says so")
			}
		})
	}
	try("a log whose reader has gone", 50, func(t *testing.T, cmd *exec.Cmd) func(*server) error {
		r, w := pipe(t)
		cmd.Stderr = w
		go func() { <-time.After(200 * time.Millisecond); r.Close(); w.Close() }()
		return nil
	})
	try("a log that was closed before", 50, func(t *testing.T, cmd *exec.Cmd) func(*server) error {
		r, w := pipe(t)
		cmd.Stderr = w
		r.Close()
		t.Cleanup(func() { w.Close() })
		return nil
	})
	try("an output whose reader has gone", 50, func(t *testing.T, cmd *exec.Cmd) func(*server) error {
		cmd.Env = append([]string{closedOutput}, cmd.Env...)
		return nil
	})
	try("a full disk under the log", 50, func(t *testing.T, cmd *exec.Cmd) func(*server) error {
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = f
		t.Cleanup(func() { f.Close() })
		return nil
	})
}

// TestSignals: whatever the server is at, a signal ends it.
func TestSignals(t *testing.T) {
	skipUnlessAsked(t)
	paced := script(t, map[string]any{"raw": story(1000), "tokens_per_s": 50})
	for _, c := range []struct {
		name  string
		sig   syscall.Signal
		args  []string
		q     request
		ended bool // the stream must end as its protocol says
	}{
		{"SIGTERM during a forced recursive call", syscall.SIGTERM, nil, anthropic.say("Hello", anthropic.forced(ending(30))), false},
		{"SIGTERM during a forced recursive call, model in a process of its own", syscall.SIGTERM, []string{"--model-process", "always"}, anthropic.say("Hello", anthropic.forced(ending(30))), false},
		{"SIGTERM during 200,000 text parts", syscall.SIGTERM, nil, anthropic.ask(list(200_000, `{"type": "text", "text": "abcdefghijklmnopqrst"}`), ""), false},
		{"SIGTERM during a check with diamonds", syscall.SIGTERM, scripted(t, `{"x": "`+letters(60)+`!"}`), checked(diamonds(17, leaf)), false},
		{"SIGTERM during a stream", syscall.SIGTERM, nil, openai.say("Hello", `, "stream": true, "n": 8`), true},
		{"SIGHUP during a stream of chat", syscall.SIGHUP, paced, slow(openai), true},
		{"SIGHUP during a stream of messages", syscall.SIGHUP, paced, slow(anthropic), true},
		{"SIGTERM during a stream of messages", syscall.SIGTERM, paced, slow(anthropic), true},
		{"SIGINT during a forced recursive call", syscall.SIGINT, nil, openai.say("Hello", openai.forced(ending(30))), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.sig == syscall.SIGHUP && signal.Ignored(c.sig) {
				t.Skip("run under nohup, which servers inherit")
			}
			s, err := serve(t.TempDir(), nil, append(c.args, "--prefix-cache-dir", "off")...)
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan reply, 1)
			go func() { got <- c.q.send(context.Background(), s.url) }()
			for i, before := 0, s.cpu(); i < 1000 && s.cpu()-before < 30*time.Millisecond && len(got) == 0; i++ {
				time.Sleep(time.Millisecond)
			}
			began := time.Now()
			faults := []error{s.stop(c.sig)}
			seen := fmt.Sprintf("ended after %.1f s", time.Since(began).Seconds())
			p := <-got
			if p.err != nil {
				seen += ", reply cut"
			} else {
				seen += fmt.Sprintf(", reply %d", p.code)
			}
			if c.ended {
				faults = append(faults, p.check(c.q.api))
			}
			outcome(t, c.name, seen, faults...)
		})
	}
}

// slow is a stream that goes on until its server ends.
func slow(a api) request {
	q := a.say("Hello", `, "stream": true`)
	q.body = bytes.Replace(q.body, []byte(`"max_tokens": 64`), []byte(`"max_tokens": 10000`), 1)
	return q
}
