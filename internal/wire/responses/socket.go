package responses

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"hearth/internal/chat"
	"hearth/internal/wire"
	"hearth/internal/wire/openai"
)

const (
	// maxWaiting bounds the messages of a connection that wait for the one that is being answered.
	maxWaiting = 16
	// socketIdle is after how long without a message a connection is closed.
	socketIdle = time.Hour
	// maxStream bounds the bytes of a message's stream_id.
	maxStream = 128
)

// sockets are the WebSockets of a server.
type sockets struct {
	open atomic.Int64
	most int64        // bytes that all may keep, see session
	kept atomic.Int64 // bytes
}

// socket serves a WebSocket, if there may be one more. Who asks in vain is told so by the status that has Codex post at once; at
// others it tries again for a while.
func (h handler) socket(w http.ResponseWriter, r *http.Request) {
	defer h.sockets.open.Add(-1)
	if h.sockets.open.Add(1) > int64(h.Sockets) {
		w.Header().Set("Connection", "close")
		http.Error(w, "no WebSocket is free here: send the request by POST", http.StatusUpgradeRequired)
		return
	}
	// Whoever came here was let in, pages included.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		wire.InfoFrom(r.Context()).Err = err
		return
	}
	conn.SetReadLimit(-1) // ReadMessage has one
	s := &socket{handler: h, conn: conn, upgrade: r, session: &session{of: h.sockets, most: h.MaxBody}}
	s.ctx, s.cancel = context.WithCancel(r.Context())
	s.serve()
}

// socket is a connection by which requests come as messages, each answered before the next.
type socket struct {
	handler
	conn    *websocket.Conn
	upgrade *http.Request
	session *session
	ctx     context.Context // ends with the connection
	cancel  context.CancelFunc
}

// serve answers until the connection is closed, by either side.
func (s *socket) serve() {
	queue := make(chan *wire.Message, maxWaiting)
	var wg sync.WaitGroup
	wg.Go(func() { s.read(queue) })
	wg.Go(s.ping)
	defer func() {
		s.cancel()
		_ = s.conn.CloseNow()
		for m := range queue {
			m.Close()
		}
		wg.Wait()
		s.session.drop()
	}()
	idle := time.NewTimer(socketIdle)
	defer idle.Stop()
	for {
		select {
		case <-s.Server.Draining():
			s.conn.Close(websocket.StatusGoingAway, "the server is shutting down")
			return
		default:
		}
		select {
		case <-s.Server.Draining():
		case <-idle.C:
			s.conn.Close(websocket.StatusGoingAway, "nothing was asked for "+socketIdle.String())
			return
		case m, ok := <-queue:
			if !ok || !s.answer(m) {
				return
			}
			if m.More() {
				s.conn.Close(websocket.StatusMessageTooBig, "the message is too long")
				return
			}
			idle.Reset(socketIdle)
		}
	}
}

// read queues the messages that come. Its end is the connection's.
func (s *socket) read(queue chan<- *wire.Message) {
	defer close(queue)
	defer s.cancel()
	for {
		ctx, cut := context.WithCancel(context.WithoutCancel(s.ctx)) // what the server has still to say is not cut off
		kind, r, err := s.conn.Reader(ctx)
		var m *wire.Message
		if err == nil && kind == websocket.MessageText {
			m = s.ReadMessage(r, cut)
		}
		cut()
		if err == nil && kind != websocket.MessageText {
			s.conn.Close(websocket.StatusUnsupportedData, "messages are JSON as text")
		}
		if m == nil {
			return
		}
		select {
		case queue <- m:
		default:
			m.Refuse(&chat.Error{Kind: chat.RateLimited, RetryAfter: time.Second, Bound: chat.BoundSocket,
				Msg: "too many messages wait for an answer on this connection"})
			s.answer(m)
		}
		if m.More() {
			return
		}
	}
}

// ping looks whether the client is still there, which also keeps the connection from looking idle on its way.
func (s *socket) ping() {
	t := time.NewTicker(s.KeepAlive)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
		}
		if s.within(s.conn.Ping) != nil {
			_ = s.conn.CloseNow()
			return
		}
	}
}

// within gives f the time that a client may take to read.
func (s *socket) within(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), wire.WriteTimeout)
	defer cancel()
	return f(ctx)
}

func (s *socket) send(frame []byte) error {
	return s.within(func(ctx context.Context) error { return s.conn.Write(ctx, websocket.MessageText, frame) })
}

// answer has the server answer a message as it would answer a POST. false: the connection has to be cut.
func (s *socket) answer(m *wire.Message) bool {
	defer m.Close()
	x := &exchange{socket: s}
	w := s.innerFrom(context.WithValue(s.ctx, exchangeKey{}, x), s.upgrade, m, -1)
	refused := w.status >= http.StatusBadRequest
	if refused || x.failed {
		s.session.evict(x.link)
	}
	return !w.cut && (!refused || x.frame(w.frame()) == nil)
}

// exchange is a message and its answer.
type exchange struct {
	socket *socket
	stream []byte // the end of every frame, if the message names its stream
	link   *link  // that the message builds on
	failed bool   // its response
}

type exchangeKey struct{}

// exchangeOf is that by which a request came; nil: none.
func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// frame sends an event, which is an object.
func (x *exchange) frame(event []byte) error {
	if x.stream != nil {
		event = append(event[:len(event)-1], x.stream...)
	}
	return x.socket.send(event)
}

// find is a response of the connection's own, which is then what the message builds on; nil: it has none of that id.
func (x *exchange) find(id string) *link {
	if x == nil {
		return nil
	}
	x.link = x.socket.session.find(id)
	return x.link
}

// envelope reads what is only in a message.
func (d *decoder) envelope(body wire.Value) {
	x := d.past.exchange
	if x == nil {
		return
	}
	if v := body.Get("stream_id"); !v.Absent() {
		id := d.String(v)
		if len(id) > maxStream {
			d.Fail(v, "may have at most %d bytes", maxStream)
		}
		if d.Err() == nil {
			x.stream = append(wire.AppendString([]byte(`,"stream_id":`), id), '}')
		}
	}
	if kind := d.OptString(body.Get("type")); kind != "response.create" {
		d.Fail(body.Get("type"), "unknown message %s: must be response.create", wire.Quote(kind))
	}
	if v := body.Get("background"); d.Bool(v) {
		d.Fail(v, "is not for messages: ask by POST")
	}
	if v := body.Get("generate"); !v.Absent() {
		d.r.warm = !d.Bool(v)
	}
}

// frame is the error as an event. There, clients check that it has a code.
func (w *innerReply) frame() []byte {
	var body struct{ Error openai.ErrorDetail }
	if json.Unmarshal(w.body.Bytes(), &body) != nil || body.Error.Type == "" {
		body.Error = openai.ErrorDetail{Message: http.StatusText(w.status), Type: "server_error"}
	}
	if body.Error.Code == nil {
		body.Error.Code = &body.Error.Type
	}
	headers := map[string]string{}
	for _, name := range []string{"Retry-After", "Retry-After-Ms"} {
		if v := w.header.Get(name); v != "" {
			headers[strings.ToLower(name)] = v
		}
	}
	return wire.Marshal(struct {
		Type    string             `json:"type"`
		Status  int                `json:"status"`
		Error   openai.ErrorDetail `json:"error"`
		Headers map[string]string  `json:"headers,omitempty"`
	}{"error", w.status, body.Error, headers})
}

// warming is chat.Models whose replies say nothing: their prompts are computed, and are in the prompt cache for those that go
// on from there.
type warming struct{ chat.Models }

func (w warming) Open(ctx context.Context, name string) (chat.Generator, error) {
	g, err := w.Models.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return warmingOne{g}, nil
}

type warmingOne struct{ chat.Generator }

func (w warmingOne) Generate(ctx context.Context, r *chat.Request) (iter.Seq2[chat.Event, error], error) {
	short := *r
	short.MaxTokens, short.ClampMaxTokens = 1, true
	events, err := w.Generator.Generate(ctx, &short)
	if err != nil {
		if chat.AsError(err).Kind != chat.Invalid {
			return nil, err
		}
		return nothing, nil // many templates want a message of the user's, which is still to come
	}
	return func(yield func(chat.Event, error) bool) {
		for e, err := range events {
			switch {
			case err != nil:
			case e.Kind == chat.EventStart && e.Usage != nil: // there is nothing that could be of a form
				u := *e.Usage
				u.Form = ""
				e.Usage = &u
			case e.Kind == chat.EventStart:
			case e.Kind == chat.EventFinish:
				e.Finish = chat.FinishStop
				if e.Usage != nil {
					u := *e.Usage
					u.Output, u.Reasoning = 0, 0
					e.Usage = &u
				}
			default:
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}, nil
}

// nothing is a reply that says nothing to no prompt.
func nothing(yield func(chat.Event, error) bool) {
	_ = yield(chat.Event{Kind: chat.EventStart, Usage: &chat.Usage{}}, nil) &&
		yield(chat.Event{Kind: chat.EventFinish, Finish: chat.FinishStop, Usage: &chat.Usage{}}, nil)
}
