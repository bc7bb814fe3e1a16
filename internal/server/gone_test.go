package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

// waiting is every kind of model and monitor there is, and whatever is asked of it waits until nobody wants it any more.
type waiting struct {
	*wiretest.Generator
	asked chan struct{}
}

func newWaiting() *waiting {
	w := &waiting{Generator: wiretest.New(), asked: make(chan struct{}, 1)}
	w.Script = func(*chat.Request) ([]wiretest.Step, error) {
		return []wiretest.Step{{Before: func(ctx context.Context) { _ = w.wait(ctx) }}}, nil
	}
	return w
}

func (w *waiting) wait(ctx context.Context) error {
	w.asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (w *waiting) Open(ctx context.Context, name string) (chat.Generator, error) {
	if name == "loading" {
		return nil, w.wait(ctx)
	}
	return w, nil
}

func (w *waiting) Count(ctx context.Context, _ *chat.Request) (int, error) { return 0, w.wait(ctx) }

func (w *waiting) OpenEmbedder(ctx context.Context, _ string) (chat.Embedder, error) {
	return nil, w.wait(ctx)
}

func (w *waiting) OpenRanker(ctx context.Context, _ string) (chat.Ranker, error) {
	return nil, w.wait(ctx)
}

// clearing is a monitor whose cache takes its time.
type clearing struct {
	figures
	w *waiting
}

func (c *clearing) ClearCache(ctx context.Context) (Cleared, error) { return Cleared{}, c.w.wait(ctx) }

// lines are those of a log, one a piece.
type lines chan []byte

func (l lines) Write(b []byte) (int, error) {
	l <- bytes.Clone(b)
	return len(b), nil
}

// A client that closes its half of the connection behind its request, as nc -N does, counts as gone: its connection is closed
// without a word, on every path that waits. net/http would tell it 200.
func TestHalfClosed(t *testing.T) {
	w := newWaiting()
	logged := make(lines, 1)
	o := options()
	o.Models, o.Encoders, o.Monitor = w, w, &clearing{w: w}
	o.Log = slog.New(slog.NewJSONHandler(logged, nil))
	addr, stop := serve(t, o)
	defer func() { _ = stop() }()
	streamed := strings.Replace(messages, "{", `{"stream":true,`, 1)
	loading := strings.Replace(messages, "{", `{"model":"loading",`, 1)
	for _, tc := range []struct{ method, path, body string }{
		{"POST", "/v1/messages", messages}, {"POST", "/v1/messages", streamed}, {"POST", "/v1/messages", loading},
		{"POST", "/v1/messages/count_tokens", messages}, {"POST", "/v1/messages/count_tokens", loading},
		{"POST", "/v1/chat/completions", messages}, {"POST", "/v1/chat/completions", streamed}, {"POST", "/v1/chat/completions", loading},
		{"POST", "/v1/completions", `{"prompt":"Hi"}`}, {"POST", "/v1/completions", `{"stream":true,"prompt":"Hi"}`},
		{"POST", "/v1/embeddings", `{"model":"e","input":"Hi"}`}, {"POST", "/v1/rerank", `{"model":"r","query":"Hi","documents":["a"]}`},
		{"GET", "/v1/models/loading", ""}, {"DELETE", "/v1/cache", ""},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(addr, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", tc.method, tc.path, len(tc.body), tc.body)
		<-w.asked
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(conn); len(got) > 0 { // a reset is as good as an end
			t.Errorf("%s %s %s was told %q", tc.method, tc.path, tc.body, got)
		}
		conn.Close()
		if line := logLine(t, bytes.NewBuffer(<-logged)); line["status"] != 499.0 || line["level"] != "INFO" {
			t.Errorf("%s %s %s: logged %v", tc.method, tc.path, tc.body, line)
		}
	}
}

// silent is a protocol that says nothing.
type silent struct{ wire.Protocol }

func (silent) Mount(mux wire.Mux, _ wire.Options) {
	mux.HandleFunc("/silent", func(http.ResponseWriter, *http.Request) {})
}

// A stream whose client left ends without the mark of its end, and a handler that says nothing has not said 200.
func TestCutReply(t *testing.T) {
	w := newWaiting()
	w.Script = func(*chat.Request) ([]wiretest.Step, error) {
		return []wiretest.Step{{Event: chat.Event{Kind: chat.EventText, Text: "a"}}, {Before: func(ctx context.Context) { _ = w.wait(ctx) }}}, nil
	}
	o := options()
	o.Models, o.Protocols = w, append([]wire.Protocol{silent{}}, o.Protocols...)
	o.Protocols[0] = silent{o.Protocols[1]}
	addr, stop := serve(t, o)
	defer func() { _ = stop() }()
	conn, err := net.Dial("tcp", strings.TrimPrefix(addr, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	streamed := strings.Replace(messages, "{", `{"stream":true,`, 1)
	fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(streamed), streamed)
	<-w.asked
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(conn); !bytes.Contains(got, []byte("content_block_delta")) || bytes.HasSuffix(got, []byte("\r\n0\r\n\r\n")) {
		t.Errorf("the stream was told %q", got)
	}
	if res, err := http.Get(addr + "/silent"); err == nil {
		t.Errorf("a handler that says nothing: %s", res.Status)
		res.Body.Close()
	}
}

// pipes is a listener whose connections have no buffers: what is not read is not written.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.conns) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// long is a generator whose reply is one piece of text.
func long(bytes int) *wiretest.Generator {
	return wiretest.New(
		wiretest.Step{Event: chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: 1}}},
		wiretest.Step{Event: chat.Event{Kind: chat.EventText, Text: strings.Repeat("x", bytes)}},
		wiretest.Step{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: &chat.Usage{Prompt: 1, Output: 1}}})
}

// unread runs f with a server whose clients read when f says, in a time that stands still while anybody has something to do.
func unread(t *testing.T, o Options, f func(p *pipes, logged lines)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		logged := make(lines, 10)
		o.Log = slog.New(slog.NewJSONHandler(logged, nil))
		p := &pipes{conns: make(chan net.Conn)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- New(o).Serve(ctx, p) }()
		f(p, logged)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestUnsentBody: a body that does not come is waited for two minutes, whichever route it is for, and one without a body waits no
// longer. The client is told, and the connection ends.
func TestUnsentBody(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		answer       int
	}{
		{"POST", "/v1/messages", 400}, {"POST", "/v1/chat/completions", 400}, {"POST", "/hearth/models/load", 400},
		{"POST", "/hearth/models/unload", 400}, {"POST", "/hearth/models/pull", 400}, {"DELETE", "/hearth/models", 400},
		{"PUT", "/hearth/aliases", 400}, {"DELETE", "/hearth/aliases", 400},
		{"GET", "/v1/models", 200}, {"GET", "/health", 200}, {"POST", "/nothing", 404}, {"DELETE", "/v1/cache", 200},
	} {
		o := managed(&shelf{})
		o.Keys = plain("k")
		unread(t, o, func(p *pipes, _ lines) {
			began := time.Now()
			conn := p.dial()
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", tc.method, tc.path)
			_ = conn.SetReadDeadline(began.Add(10 * time.Minute))
			got, err := io.ReadAll(conn)
			if took := time.Since(began); err != nil || took > 2*time.Minute+10*time.Second || !strings.HasPrefix(string(got), fmt.Sprintf("HTTP/1.1 %d ", tc.answer)) {
				t.Errorf("%s %s: %v, after %v %.300q", tc.method, tc.path, err, took, got)
			}
			conn.Close()
		})
	}
}

// A reply that nobody reads is given up after WriteTimeout, whatever it is and however much of it net/http holds back.
func TestUnreadReply(t *testing.T) {
	for _, tc := range []struct{ method, path, body, key string }{
		{"POST", "/v1/messages", messages, "k"}, {"POST", "/v1/chat/completions", messages, "k"},
		{"POST", "/v1/messages", "{", "k"}, {"POST", "/v1/chat/completions", "{", "k"}, {"POST", "/v1/messages/count_tokens", messages, "k"},
		{"GET", "/v1/models", "", "k"}, {"GET", "/v1/models/nope", "", "k"}, {"GET", "/nothing", "", "k"}, {"GET", "/v1/models", "", ""},
		{"GET", "/v1/status", "", "k"}, {"GET", "/v1/cache/stats", "", "k"}, {"DELETE", "/v1/cache", "", "k"},
		{"GET", "/health", "", "k"}, {"GET", "/", "", "k"}, {"OPTIONS", "/v1/messages", "", "k"},
	} {
		o := options()
		o.Models, o.Monitor, o.Keys = long(300<<10), &figures{}, plain("k")
		unread(t, o, func(p *pipes, logged lines) {
			began := time.Now()
			conn := p.dial()
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", tc.method, tc.path, tc.key, len(tc.body), tc.body)
			time.Sleep(wire.WriteTimeout + time.Second) // of the bubble's time
			got, _ := io.ReadAll(conn)
			if took := time.Since(began); took > wire.WriteTimeout+time.Second || len(got) > 0 {
				t.Errorf("%s %s %s: after %v there is still %.80q", tc.method, tc.path, tc.body, took, got)
			}
			if tc.path == "/health" {
				return // what probes are answered is not logged
			}
			long := tc.body == messages && tc.path != "/v1/messages/count_tokens"
			if line := <-logged; long && !bytes.Contains(line, []byte("the client closed the connection")) {
				t.Errorf("%s %s: logged %s", tc.method, tc.path, line)
			}
		})
	}
}

// Nor does net/http wait for ever with what it answers by itself.
func TestUnreadRefusal(t *testing.T) {
	unread(t, options(), func(p *pipes, _ lines) {
		conn := p.dial()
		_, _ = io.WriteString(conn, "GET\r\n\r\n")
		time.Sleep(wire.WriteTimeout + time.Second)
		if got, _ := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("there is still %q", got)
		}
	})
}

// A client that reads slowly gets all of a long reply, however long the model took for it, and the next one on the same
// connection, however old that is.
func TestSlowReader(t *testing.T) {
	o := options()
	slow := long(300 << 10)
	steps, _ := slow.Script(nil)
	steps[1].Before = func(context.Context) { time.Sleep(2 * wire.WriteTimeout) }
	o.Models = slow
	unread(t, o, func(p *pipes, _ lines) {
		began := time.Now()
		conn := p.dial()
		defer conn.Close()
		in := bufio.NewReaderSize(conn, 16)
		for range 2 {
			fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(messages))
			if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
				t.Fatalf("%q, %v", line, err)
			}
			_, _ = in.ReadString('\n')
			_, _ = io.WriteString(conn, messages)
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for err == nil {
				time.Sleep(time.Second)
				_, err = io.CopyN(&got, res.Body, 4<<10)
			}
			_ = res.Body.Close()
			if err != io.EOF || got.Len() < 300<<10 {
				t.Errorf("%d bytes, %v", got.Len(), err)
			}
			time.Sleep(90 * time.Second)
		}
		if took := time.Since(began); took < 6*wire.WriteTimeout {
			t.Errorf("it took %v: this shows nothing", took)
		}
	})
}

// A connection on which nothing comes is closed: before a request's header is whole, and when there is no request.
func TestSilentClient(t *testing.T) {
	for sent, limit := range map[string]time.Duration{"": readHeaderTimeout, "GET / HT": readHeaderTimeout, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ": readHeaderTimeout,
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n": idleTimeout} {
		unread(t, options(), func(p *pipes, _ lines) {
			began := time.Now()
			conn := p.dial()
			_, _ = io.WriteString(conn, sent)
			_, _ = io.ReadAll(conn)
			if took := time.Since(began); took != limit {
				t.Errorf("%q: closed after %v, want %v", sent, took, limit)
			}
		})
	}
}
