package responses

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"hearth/internal/chat"
	"hearth/internal/config"
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

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.more.Broadcast()
	return l.b.Write(b)
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
	s := &socketServer{log: &lines{}}
	s.log.more.L = &s.log.mu
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
		if e.Type != "error" || e.Status != tt.status || !strings.Contains(e.Error.Message, tt.says) || e.Error.Type == "" {
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
		o.Keys = []config.Key{config.PlainKey("secret"), config.PlainKey("second")}
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
}

// TestSocketOwners: what is not stored is the connection's alone, and what is stored is the key's.
func TestSocketOwners(t *testing.T) {
	s := serveSockets(t, answering(), func(p *Protocol, o *server.Options) {
		p.Store = store.New(store.Options{Mode: store.Memory})
		t.Cleanup(func() { p.Store.Close() })
		o.Keys = []config.Key{config.PlainKey("ada"), config.PlainKey("bob")}
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
	if e := c.next(); e.Type != "response.created" {
		t.Fatalf("%+v", e)
	}
	if e := c.next(); e.Type != "response.in_progress" {
		t.Fatalf("%+v", e)
	}
	if e := c.next(); e.Status != 429 || e.Headers["retry-after"] != "1" {
		t.Fatalf("%+v", e)
	}
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
