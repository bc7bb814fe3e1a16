package responses

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"hearth/internal/access"
	"hearth/internal/chat"
	"hearth/internal/server"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/wiretest"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	b    bytes.Buffer
	more sync.Cond
}

func newLines() *lines {
	l := &lines{}
	l.more.L = &l.mu
	return l
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.more.Broadcast()
	return l.b.Write(b)
}

// all are the lines so far.
func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.b.String()), "\n")
}

// wait waits until text was written n times.
func (l *lines) wait(text string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for bytes.Count(l.b.Bytes(), []byte(text)) < n {
		l.more.Wait()
	}
}

// answering gives replies that say what was asked.
func answering() *wiretest.Generator {
	g := wiretest.New()
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) { return echo(r), nil }
	return g
}

// echo is a reply that says the conversation in short.
func echo(r *chat.Request) []wiretest.Step {
	return []wiretest.Step{
		{Event: chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{Prompt: 3}}}, {Event: chat.Event{Kind: chat.EventText, Text: said(r)}},
		{Event: chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: &chat.Usage{Prompt: 3, Output: 2}}},
	}
}

// sockets serves the protocol behind the whole server.
type socketServer struct {
	url string
	log *lines
	*server.Server
}

func serveSockets(t *testing.T, g *wiretest.Generator, set func(p *Protocol, o *server.Options)) *socketServer {
	t.Helper()
	s := &socketServer{log: newLines()}
	p := Protocol{Sockets: 8}
	o := server.Options{Models: g, HostNames: []string{}, Health: func() server.Health { return server.Health{} },
		Log: slog.New(slog.NewJSONHandler(s.log, nil))}
	if set != nil {
		set(&p, &o)
	}
	o.Protocols = []wire.Protocol{p}
	s.Server = server.New(o)
	h := httptest.NewServer(s.Server)
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

// client is the other end of a socket.
type client struct {
	t *testing.T
	*websocket.Conn
}

func (s *socketServer) dial(t *testing.T, headers ...string) *client {
	t.Helper()
	c, status := s.try(t, "/v1/responses", headers...)
	if c == nil {
		t.Fatal(status)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// try asks for a socket; a nil client got another status than that of an upgrade.
func (s *socketServer) try(t *testing.T, path string, headers ...string) (_ *client, status int) {
	t.Helper()
	h := http.Header{}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		h.Set(name, value)
	}
	c, resp, err := websocket.Dial(t.Context(), s.url+path, &websocket.DialOptions{HTTPHeader: h})
	if resp == nil {
		t.Fatal(err)
	}
	if resp.Body != nil {
		resp.Body.Close()
	}
	if err != nil {
		return nil, resp.StatusCode
	}
	c.SetReadLimit(-1)
	return &client{t, c}, resp.StatusCode
}

func (c *client) send(message string) {
	c.t.Helper()
	if err := c.Write(c.t.Context(), websocket.MessageText, []byte(message)); err != nil {
		c.t.Fatal(err)
	}
}

// event is what tests look at in one.
type event struct {
	Type     string
	Number   int    `json:"sequence_number"`
	Stream   string `json:"stream_id"`
	Status   int
	Delta    string
	Error    struct{ Code, Message, Param, Type string }
	Headers  map[string]string
	Response document
}

func (c *client) next() *event {
	c.t.Helper()
	kind, b, err := c.Read(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	e := &event{}
	if err := json.Unmarshal(b, e); err != nil || kind != websocket.MessageText {
		c.t.Fatalf("%v %s: %v", kind, b, err)
	}
	return e
}

// ask sends a message and gives the last event of its answer, whose numbers have no gap.
func (c *client) ask(message string) *event {
	c.t.Helper()
	c.send(message)
	return c.last()
}

func (c *client) last() *event {
	c.t.Helper()
	for n := 0; ; n++ {
		e := c.next()
		if e.Type == "error" {
			return e
		}
		if e.Number != n {
			c.t.Fatalf("%s is number %d, want %d", e.Type, e.Number, n)
		}
		if slices.Contains(terminal, e.Type) {
			return e
		}
	}
}

// says is the text of the response of an event.
func (e *event) says() string {
	var all []string
	for _, i := range e.Response.Output {
		b, _ := json.Marshal(i["content"])
		var parts []struct{ Text string }
		_ = json.Unmarshal(b, &parts)
		for _, p := range parts {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, " ")
}

func create(fields string) string { return `{"type": "response.create", ` + fields + `}` }

// TestSocket: a message is answered by the events of a stream, in which the next may build on the last without its being stored.
func TestSocket(t *testing.T) {
	g := answering()
	var asked []string
	var tokens []int
	g.Got = func(r *chat.Request) { asked, tokens = append(asked, said(r)), append(tokens, r.MaxTokens) }
	s := serveSockets(t, g, nil)
	for _, path := range []string{"/v1/responses", "/responses", "/openai/responses", "/openai/v1/responses", "/openai/deployments/test-model/responses"} {
		asked, tokens = nil, nil
		c, status := s.try(t, path)
		if c == nil {
			t.Fatal(status)
		}
		warm := c.ask(create(`"generate": false, "store": false, "instructions": "Be.", "input": [{"role": "developer", "content": "Do."}]`))
		if warm.Type != "response.completed" || len(warm.Response.Output) > 0 || warm.Response.ID == "" {
			t.Fatalf("%s: %+v", path, warm)
		}
		first := c.ask(create(`"previous_response_id": "` + warm.Response.ID + `", "store": false, "input": "One"`))
		second := c.ask(create(`"previous_response_id": "` + first.Response.ID + `", "stream": false, "stream_id": "a", "input": [{"role": "user", "content": "Two"}]`))
		if second.Stream != "a" || second.Response.PreviousID != first.Response.ID || second.Response.Store {
			t.Errorf("%s: %+v", path, second)
		}
		want := []string{"system:Be. system:Do.", "system:Do. user:One", "system:Do. user:One assistant:system:Do. user:One user:Two"}
		if !slices.Equal(asked, want) || tokens[0] != 1 || tokens[1] != 0 || second.says() != want[2] {
			t.Errorf("%s: asked %q for %d, want %q; it says %q", path, asked, tokens, want, second.says())
		}
		c.Close(websocket.StatusNormalClosure, "")
	}
}

// TestSocketBadMessages: each bad message has one answer, and the next good one is answered as ever.
func TestSocketBadMessages(t *testing.T) {
	s := serveSockets(t, answering(), func(_ *Protocol, o *server.Options) { o.MaxBody = 4 << 10 })
	c := s.dial(t)
	for _, tt := range []struct {
		message string
		status  int
		says    string
	}{
		{"", 400, "is empty"}, {"{", 400, "not valid JSON"}, {"[]", 400, "expected an object"}, {`{}`, 400, `must be response.create`},
		{`{"type": "response.steer", "input": "Hi"}`, 400, `unknown message "response.steer"`},
		{create(`"input": 1`), 400, "expected a string or an array"},
		{create(`"input": "Hi", "background": true`), 400, "background"},
		{create(`"input": "Hi", "model": "no"`), 404, "there is no model"},
		{create(`"input": "Hi", "previous_response_id": "resp_1"`), 400, "there is no response"},
		{create(`"input": "Hi", "stream_id": "` + strings.Repeat("x", maxStream+1) + `"`), 400, "at most 128 bytes"},
		{create(`"input": "` + strings.Repeat("x", 5<<10) + `"`), 413, "larger than the limit"},
		{"\xff\x00", 400, "not valid JSON"},
	} {
		e := c.ask(tt.message)
		if e.Type != "error" || e.Status != tt.status || !strings.Contains(e.Error.Message, tt.says) || e.Error.Type == "" || e.Error.Code == "" {
			t.Errorf("%.60s: %+v, want %d %s", tt.message, e, tt.status, tt.says)
		}
	}
	if e := c.ask(create(`"input": "Hi"`)); e.says() != "user:Hi" {
		t.Errorf("then %+v", e)
	}
	s.log.wait(`"method":"POST","path":"/v1/responses"`, 13) // each has its line
	// One that goes on and on ends the connection, after its error.
	e := c.ask(create(`"input": "` + strings.Repeat("x", 10<<10) + `"`))
	_, _, err := c.Read(t.Context())
	if e.Status != 413 || websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("%+v, then %v", e, err)
	}
	// Fragments are one message, binary is none.
	c = s.dial(t)
	w, err := c.Writer(t.Context(), websocket.MessageText)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []byte(create(`"input": "Hi"`)) {
		if _, err := w.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if e := c.last(); e.says() != "user:Hi" {
		t.Errorf("of fragments %+v", e)
	}
	if err := c.Write(t.Context(), websocket.MessageBinary, []byte(create(`"input": "Hi"`))); err != nil {
		t.Fatal(err)
	}
	if _, _, err = c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Errorf("binary ends with %v", err)
	}
}

// TestSocketUpgrade: who may not post gets no socket, and who gets none because there are enough posts.
func TestSocketUpgrade(t *testing.T) {
	s := serveSockets(t, answering(), func(p *Protocol, o *server.Options) {
		p.Sockets = 1
		o.Keys = []access.Key{access.PlainKey("secret"), access.PlainKey("second")}
		o.AllowedOrigins = []string{"http://page.example"}
	})
	key, open := "Authorization: Bearer secret", 0
	for _, tt := range []struct {
		headers []string
		status  int
	}{
		{nil, 401}, {[]string{"Authorization: Bearer wrong"}, 401}, {[]string{key, "Origin: http://evil.example"}, 403},
		{[]string{key, "Origin: http://page.example"}, 101}, {[]string{key, "Origin: http://127.0.0.1:8"}, 101}, {[]string{key}, 101},
	} {
		c, status := s.try(t, "/v1/responses", tt.headers...)
		if status != tt.status {
			t.Errorf("%q: %d, want %d", tt.headers, status, tt.status)
		}
		if c == nil {
			continue
		}
		if e := c.ask(create(`"input": "Hi"`)); e.says() != "user:Hi" {
			t.Errorf("%q: %+v", tt.headers, e)
		}
		if _, status := s.try(t, "/v1/responses", key); status != http.StatusUpgradeRequired {
			t.Errorf("a second socket: %d", status)
		}
		c.Close(websocket.StatusNormalClosure, "")
		open++
		s.log.wait(`"status":101`, open) // it is closed here too
	}
	for _, tt := range []struct {
		method, upgrade, version, key string
		status                        int
	}{
		{"GET", "", "13", "AAAAAAAAAAAAAAAAAAAAAA==", 426}, {"GET", "Upgrade", "8", "AAAAAAAAAAAAAAAAAAAAAA==", 400}, {"GET", "Upgrade", "13", "", 400},
		{"GET", "Upgrade", "13", "AA", 400}, {"POST", "Upgrade", "13", "AAAAAAAAAAAAAAAAAAAAAA==", 415},
	} {
		r := httptest.NewRequest(tt.method, "http://localhost/v1/responses", nil)
		for name, value := range map[string]string{"X-Api-Key": "secret", "Upgrade": "websocket", "Connection": tt.upgrade, "Sec-Websocket-Version": tt.version,
			"Sec-Websocket-Key": tt.key} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != tt.status || w.Body.Len() == 0 {
			t.Errorf("%+v: %d %s", tt, w.Code, w.Body)
		}
	}
}

// TestSocketAsPost: a message is for the generator, its caller's cache and the Host check what a POST is.
func TestSocketAsPost(t *testing.T) {
	g := answering()
	var got []*chat.Request
	g.Got = func(r *chat.Request) { got = append(got, r) }
	s := serveSockets(t, g, func(_ *Protocol, o *server.Options) {
		o.Isolation, o.Keys = "key", []access.Key{access.PlainKey("ada"), access.PlainKey("bob")}
	})
	headers := []string{"X-Api-Key: ada", "Session-Id: abc", "X-Hearth-Priority: background", "Content-Encoding: gzip"}
	body := `"input": [{"role": "user", "content": "Hi"}], "temperature": 0.5, "prompt_cache_key": "k"`
	s.dial(t, headers...).ask(create(body))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/responses", strings.NewReader("{"+body+"}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range append(headers[:3:3], "Content-Type: application/json") {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for _, r := range got {
		if !strings.HasPrefix(r.Origin.ID, "req_") {
			t.Errorf("%+v", r.Origin)
		}
		r.Origin.ID = ""
	}
	if len(got) != 2 || got[0].Origin.Salt == [16]byte{} || !reflect.DeepEqual(got[0], got[1]) {
		t.Errorf("%+v\n%+v", got[0], got[1])
	}
	s = serveSockets(t, g, nil)
	_, resp, err = websocket.Dial(t.Context(), s.url+"/v1/responses", &websocket.DialOptions{Host: "evil.example"}) //nolint:bodyclose // of an upgrade
	if err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("for another's name: %v", err)
	}
}

// TestSocketOwners: what is not stored is the connection's alone, and what is stored is the key's.
func TestSocketOwners(t *testing.T) {
	s := serveSockets(t, answering(), func(p *Protocol, o *server.Options) {
		p.Store = store.New(store.Options{Mode: store.Memory})
		t.Cleanup(func() { p.Store.Close() })
		o.Keys = []access.Key{access.PlainKey("ada"), access.PlainKey("bob")}
	})
	ada, again, bob := s.dial(t, "X-Api-Key: ada"), s.dial(t, "X-Api-Key: ada"), s.dial(t, "X-Api-Key: bob")
	on := func(c *client, id, more string) *event {
		return c.ask(create(`"input": "On", "previous_response_id": "` + id + `"` + more))
	}
	local, stored := ada.ask(create(`"input": "One", "store": false`)).Response, ada.ask(create(`"input": "Two"`)).Response
	if local.Store || !stored.Store {
		t.Fatalf("%+v %+v", local, stored)
	}
	for _, tt := range []struct {
		name string
		c    *client
		id   string
		says string
	}{
		{"its own", ada, local.ID, "user:One assistant:user:One user:On"}, {"stored", ada, stored.ID, "user:Two assistant:user:Two user:On"},
		{"another connection's", again, local.ID, ""}, {"stored, another connection", again, stored.ID, "user:Two assistant:user:Two user:On"},
		{"another key's connection's", bob, local.ID, ""}, {"another key's", bob, stored.ID, ""},
	} {
		e := on(tt.c, tt.id, `, "store": false`)
		if e.says() != tt.says || tt.says == "" && (e.Status != 400 || e.Error.Code != "previous_response_not_found") {
			t.Errorf("%s: %+v, want %q", tt.name, e, tt.says)
		}
	}
	// What is stored on top of what is not has it all; what is not on top of what is finds that.
	top := on(ada, local.ID, "").Response
	if e := on(again, top.ID, ""); e.says() != "user:One assistant:user:One user:On assistant:user:One assistant:user:One user:On user:On" {
		t.Errorf("on top of it %q", e.says())
	}
	mixed := on(ada, stored.ID, `, "store": false`).Response
	if e := on(ada, mixed.ID, `, "store": false`); e.says() != "user:Two assistant:user:Two user:On assistant:user:Two assistant:user:Two user:On user:On" {
		t.Errorf("mixed %q", e.says())
	}
}

// TestSocketEvicts: after a failure nothing builds on what it built on, but for what is stored.
func TestSocketEvicts(t *testing.T) {
	g := answering()
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		switch text := r.Messages[len(r.Messages)-1].Text(); text {
		case "refuse":
			return nil, &chat.Error{Kind: chat.RateLimited, Msg: "later", RetryAfter: 1500e6}
		case "fail":
			return append(echo(r)[:2], wiretest.Step{Err: errors.New("broken")}), nil
		}
		return echo(r), nil
	}
	s := serveSockets(t, g, nil)
	c := s.dial(t)
	for _, tt := range []struct{ input, kind string }{{`"refuse"`, "error"}, {`"fail"`, "response.failed"}, {`1`, "error"}} {
		first := c.ask(create(`"input": "One", "store": false`)).Response
		second := c.ask(create(`"input": "Two", "store": false, "previous_response_id": "` + first.ID + `"`)).Response
		e := c.ask(create(`"store": false, "previous_response_id": "` + second.ID + `", "input": ` + tt.input))
		if e.Type != tt.kind || tt.input == `"refuse"` && (e.Status != 429 || e.Headers["retry-after-ms"] != "1500") {
			t.Errorf("%s: %+v", tt.input, e)
		}
		if e := c.ask(create(`"input": "On", "previous_response_id": "` + second.ID + `"`)); e.Error.Code != "previous_response_not_found" {
			t.Errorf("%s: then %+v", tt.input, e)
		}
		if e := c.ask(create(`"input": "On", "previous_response_id": "` + first.ID + `"`)); e.says() != "user:One assistant:user:One user:On" {
			t.Errorf("%s: the one before says %+v", tt.input, e)
		}
	}
}

// TestSocketQueue: messages are answered one after another, and too many that wait are refused; a client that leaves ends
// what it waited for.
func TestSocketQueue(t *testing.T) {
	began, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	g := answering()
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		steps := echo(r)
		if said(r) == "user:slow" {
			steps[1].Before = func(ctx context.Context) {
				began <- struct{}{}
				select {
				case <-release:
				case <-ctx.Done():
					close(ended)
				}
			}
		}
		return steps, nil
	}
	s := serveSockets(t, g, nil)
	c := s.dial(t)
	c.send(create(`"input": "slow"`))
	<-began
	for i := range maxWaiting {
		c.send(create(fmt.Sprintf(`"input": "%d"`, i)))
	}
	c.send(create(`"input": "too many"`))
	e := c.next()
	if e.Type != "response.created" {
		t.Fatalf("%+v", e)
	}
	if e := s.dial(t).ask(create(`"input": "On", "previous_response_id": "` + e.Response.ID + `"`)); e.Error.Code != "previous_response_not_found" {
		t.Errorf("another connection is told %+v", e)
	}
	if e := c.next(); e.Type != "response.in_progress" {
		t.Fatalf("%+v", e)
	}
	if e := c.next(); e.Status != 429 || e.Headers["retry-after"] != "1" {
		t.Fatalf("%+v", e)
	}
	s.log.wait(`"status":429`, 1) // it has its line as others have
	release <- struct{}{}
	for e := c.next(); e.Type != "response.completed"; e = c.next() {
	}
	for i := range maxWaiting {
		if e := c.last(); e.says() != fmt.Sprint("user:", i) {
			t.Errorf("%+v, want %d", e, i)
		}
	}
	c.send(create(`"input": "slow"`))
	<-began
	c.send(create(`"input": "never"`))
	_ = c.CloseNow()
	<-ended
}

// pipes are connections in memory, which clocks of tests know.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// inBubble runs f with a protocol that is reached through memory, under a clock of its own.
func inBubble(t *testing.T, g *wiretest.Generator, o wire.Options, f func(t *testing.T, dial func(ponging bool) (c *client, pings *int))) {
	synctest.Test(t, func(t *testing.T) {
		mux, p := http.NewServeMux(), make(pipes)
		o.Models = g
		Protocol{Sockets: 8}.Mount(mux, o)
		srv := &http.Server{Handler: mux}
		done := make(chan struct{})
		go func() { defer close(done); _ = srv.Serve(p) }()
		f(t, func(ponging bool) (*client, *int) {
			tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				here, there := net.Pipe()
				p <- there
				return here, nil
			}}
			pings := 0
			o := &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}, OnPingReceived: func(context.Context, []byte) bool { pings++; return ponging }}
			c, _, err := websocket.Dial(t.Context(), "ws://here/v1/responses", o) //nolint:bodyclose // of an upgrade
			if err != nil {
				t.Fatal(err)
			}
			c.SetReadLimit(-1)
			return &client{t, c}, &pings
		})
		_ = srv.Close()
		<-done
	})
}

// TestSocketSilence: who answers pings may be silent for an hour, and wait for an answer longer; who does not is gone after a
// minute, and so is who does not read.
func TestSocketSilence(t *testing.T) {
	g := answering()
	var ended error
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		steps := echo(r)
		switch said(r) {
		case "user:slow":
			steps[0].Before = func(context.Context) { time.Sleep(2 * socketIdle) }
		case "user:much":
			steps[1].Before = func(ctx context.Context) { ended = ctx.Err() }
		}
		return steps, nil
	}
	inBubble(t, g, wire.Options{}, func(t *testing.T, dial func(bool) (*client, *int)) {
		began := time.Now()
		c, pings := dial(true)
		if e := c.ask(create(`"input": "slow"`)); e.says() != "user:slow" {
			t.Errorf("%+v", e)
		}
		_, _, err := c.Read(t.Context())
		if took := time.Since(began); websocket.CloseStatus(err) != websocket.StatusGoingAway || took.Truncate(time.Second) != 3*socketIdle {
			t.Errorf("after %v: %v", took, err)
		}
		if want := int(3 * socketIdle / wire.DefaultKeepAlive); *pings < want-1 || *pings > want {
			t.Errorf("%d pings, want %d", *pings, want)
		}

		began = time.Now()
		c, _ = dial(false)
		_, _, err = c.Read(t.Context())
		if took := time.Since(began); err == nil || took != wire.DefaultKeepAlive+wire.WriteTimeout {
			t.Errorf("without an answer to pings after %v: %v", took, err)
		}

		c, _ = dial(true)
		c.send(create(`"input": "much"`))
		time.Sleep(2 * wire.WriteTimeout)
		synctest.Wait()
		if ended == nil {
			t.Error("what nobody reads is generated on")
		}
		_ = c.CloseNow()
	})
}

// TestSocketBodies: messages count as bodies from their first byte until their prompt is made, also those that wait, that break
// off or that are not answered any more. What there is no room for is refused, and read over.
func TestSocketBodies(t *testing.T) {
	var release chan struct{}
	g := answering()
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		steps := echo(r)
		if said(r) == "user:slow" {
			steps[1].Before = func(ctx context.Context) {
				select {
				case <-release:
				case <-ctx.Done():
				}
			}
		}
		return steps, nil
	}
	o := wire.Options{Bodies: wire.NewBodies(1 << 20)}
	inBubble(t, g, o, func(t *testing.T, dial func(bool) (*client, *int)) {
		release = make(chan struct{})
		held := func(what string, least, most int64) {
			t.Helper()
			synctest.Wait()
			if n := o.Bodies.Held(); n < least || n > most {
				t.Errorf("%s: %d bytes are held, want %d to %d", what, n, least, most)
			}
		}
		long := create(`"input": "` + strings.Repeat("x", 300<<10) + `"`)
		c, _ := dial(true)
		c.send(create(`"input": "slow"`))
		for range 2 {
			c.next()
		}
		held("under way", 0, 0)
		c.send(long)
		held("waiting", 300<<10, 1<<20)
		c.send(long)
		c.send(create(`"input": "short"`))
		release <- struct{}{}
		for e := c.next(); e.Type != "response.completed"; e = c.next() {
		}
		if e := c.last(); e.Type != "response.completed" {
			t.Errorf("%+v", e)
		}
		if e := c.last(); e.Status != 503 || !strings.Contains(e.Error.Message, "the server is busy") || e.Headers["retry-after"] != "1" {
			t.Errorf("%+v", e)
		}
		if e := c.last(); e.says() != "user:short" {
			t.Errorf("%+v", e)
		}
		held("answered", 0, 0)
		c.send(create(`"input": "slow"`))
		for range 2 {
			c.next()
		}
		c.send(long)
		held("waiting again", 300<<10, 1<<20)
		_ = c.CloseNow()
		held("closed", 0, 0)
		c, _ = dial(true)
		w, err := c.Writer(t.Context(), websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.Write([]byte(long)); err != nil {
			t.Fatal(err)
		}
		held("begun", 300<<10, 1<<20)
		_ = c.CloseNow()
		held("broken off", 0, 0)
		c, _ = dial(true)
		if w, err = c.Writer(t.Context(), websocket.MessageText); err == nil {
			_, err = w.Write([]byte(long))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Read(t.Context()); err == nil {
			t.Error("a message may take for ever")
		}
		held("too slow", 0, 0)
	})
}

// TestSocketDrain: at the end of the server a socket that waits is closed, one that is being answered is so after its answer, or
// after its error when the time for that is over.
func TestSocketDrain(t *testing.T) {
	for _, tt := range []struct {
		name, input string
		drain       time.Duration
		ends        string
	}{{"idle", "", time.Minute, ""}, {"finishes", "slow", time.Minute, "response.completed"}, {"is ended", "slow", time.Millisecond, "response.failed"}} {
		t.Run(tt.name, func(t *testing.T) {
			began, release := make(chan struct{}), make(chan struct{})
			g := answering()
			g.Script = func(r *chat.Request) ([]wiretest.Step, error) {
				steps := echo(r)
				steps[1].Before = func(ctx context.Context) {
					close(began)
					select {
					case <-release:
					case <-ctx.Done():
					}
				}
				return steps, nil
			}
			s := server.New(server.Options{Models: g, Protocols: []wire.Protocol{Protocol{Sockets: 1}}, HostNames: []string{}, Drain: tt.drain,
				Health: func() server.Health { return server.Health{} }})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error)
			go func() { served <- s.Serve(ctx, l) }()
			c := (&socketServer{url: "http://" + l.Addr().String()}).dial(t)
			if tt.input != "" {
				c.send(create(`"input": "slow"`))
				<-began
				c.send(create(`"input": "never"`))
			}
			stop()
			<-s.Draining()
			if tt.drain == time.Minute {
				close(release)
			}
			if tt.input != "" {
				if e := c.last(); e.Type != tt.ends || e.Type == "response.failed" && !strings.Contains(e.Response.Error.Message, "shutting down") {
					t.Errorf("%+v", e)
				}
			}
			if _, b, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
				t.Errorf("then %s %v", b, err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSocketPrewarm: a prompt that no template takes alone is no error, others are; of what is generated nothing is told.
func TestSocketPrewarm(t *testing.T) {
	g := answering()
	var refuse error
	script := g.Script
	g.Script = func(r *chat.Request) ([]wiretest.Step, error) {
		if refuse != nil {
			return nil, refuse
		}
		return script(r)
	}
	c := serveSockets(t, g, nil).dial(t)
	warm := func() *event { return c.ask(create(`"generate": false, "instructions": "Be.", "store": false`)) }
	if e := warm(); e.Type != "response.completed" || len(e.Response.Output) > 0 {
		t.Errorf("%+v", e)
	}
	refuse = &chat.Error{Kind: chat.RateLimited, Msg: "later"}
	if e := warm(); e.Status != 429 {
		t.Errorf("%+v", e)
	}
	refuse = &chat.Error{Kind: chat.Invalid, Msg: "no user query found"}
	e := warm()
	if e.Type != "response.completed" {
		t.Fatalf("%+v", e)
	}
	refuse = nil
	if e := c.ask(create(`"previous_response_id": "` + e.Response.ID + `", "input": "Hi"`)); e.says() != "user:Hi" {
		t.Errorf("%+v", e)
	}
}

// FuzzSocket: whatever a message says it has one answer, whatever comes on the connection ends it at worst, and nothing is held
// afterwards.
func FuzzSocket(f *testing.F) {
	f.Add([]byte(create(`"input": "Hi"`)+"\n"+create(`"generate": false, "store": false, "stream_id": "a"`)+"\n{"), []byte("\x81\x80abcd"))
	f.Add([]byte(create(`"input": [{"role": "user", "content": "Hi"}], "previous_response_id": "resp_1"`)), []byte("\x01\xfe\xff\xffabcd"))
	f.Add([]byte(create(`"input": 1, "background": true, "stream_id": 1, "generate": 1`)), []byte("\x88\x82abcd\x00\x00"))
	f.Add([]byte{}, []byte("\x89\xff\xff\xff\xff\xff\xff\xff\xff\xffabcd"))
	f.Add([]byte{}, []byte("\xf1\x03abc"))
	o := wire.Options{Models: answering(), Bodies: wire.NewBodies(1 << 20), MaxBody: 64 << 10}
	mux, served := http.NewServeMux(), make(chan struct{})
	Protocol{Sockets: 8}.Mount(mux, o)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r)
		served <- struct{}{}
	}))
	f.Cleanup(srv.Close)
	f.Fuzz(func(t *testing.T, messages, raw []byte) {
		var conn net.Conn
		tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
			return conn, err
		}}
		c, _, err := websocket.Dial(t.Context(), srv.URL+"/v1/responses", &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}}) //nolint:bodyclose // of an upgrade
		if err != nil {
			t.Fatal(err)
		}
		c.SetReadLimit(-1)
		for _, message := range bytes.SplitN(messages, []byte("\n"), 4) {
			(&client{t, c}).ask(string(message))
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		_, _ = conn.Write(raw)
		_ = conn.Close()
		<-served
		if n := o.Bodies.Held(); n != 0 {
			t.Fatalf("%d bytes are held", n)
		}
	})
}
