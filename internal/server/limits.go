package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"hearth/internal/access"
	"hearth/internal/chat"
	"hearth/internal/wire"
)

// Limits are what clients may ask of a server. 0 is no limit.
type Limits struct {
	PerMinute         int           // requests of a client
	Requests          int           // at a time
	RequestsPerClient int           // of those
	Timeout           time.Duration // that a request may take without getting on; see watch
	QueueWait         time.Duration // that one may wait for its turn; 0: Timeout
}

// counted reports requests that limits are for: those that may make a model work. Messages of a WebSocket are among them, as
// requests of their own.
func counted(r *http.Request) bool {
	if r.Method != http.MethodPost || strings.HasPrefix(r.URL.Path, managePrefix) {
		return false
	}
	switch r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:] {
	case "", "health", "metrics", "markdown", "count_tokens", "input_tokens", "cancel":
		return false
	}
	return true
}

// ticket is a request's place among those that are answered. A response in the background has that of the request that asked for
// it.
type ticket struct {
	mu    sync.Mutex
	users int
	leave func()
}

func (t *ticket) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users++
}

func (t *ticket) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 {
		t.leave()
	}
}

type ticketKey struct{}

// limit has requests that are too many come back later, and ends those that do not get on.
func (s *Server) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !counted(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx := r.Context()
		t, ok := ctx.Value(ticketKey{}).(*ticket)
		if !ok {
			var err *chat.Error
			if t, err = s.admit(w, r); err != nil {
				s.fail(w, r, err)
				return
			}
			ctx = context.WithValue(ctx, ticketKey{}, t)
		}
		t.hold()
		defer t.release()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer s.watch.add(wire.InfoFrom(ctx), cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// admit counts a request, if there may be one more.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (*ticket, *chat.Error) {
	info, limits := wire.InfoFrom(r.Context()), s.o.Limits
	id, of := s.clientID(r, info)
	own, knob := limits.RequestsPerClient, "the server's flag --max-requests-per-client"
	if info.MaxRequests > 0 {
		own, knob = info.MaxRequests, "max-requests of the key"
	}
	leave, full := s.slots.Enter(id, limits.Requests, own)
	switch full {
	case access.FullClient:
		return nil, &chat.Error{Kind: chat.RateLimited, Bound: chat.BoundRequests, RetryAfter: time.Second,
			Msg: fmt.Sprintf("%d requests of %s are being answered, as many as %s lets at a time; come back when one has ended", own, of, knob)}
	case access.FullServer:
		return nil, &chat.Error{Kind: chat.Overloaded, Bound: chat.BoundRequests, RetryAfter: time.Second,
			Msg: fmt.Sprintf("the server is busy: %d requests are being answered, as many as its flag --max-concurrent-requests lets; try again later", limits.Requests)}
	}
	if err := s.rateLimit(w, r, info, id, of); err != nil {
		leave()
		return nil, err
	}
	return &ticket{leave: leave}, nil
}

// rateLimit counts a request among those of its minute, and says in the headers how its client stands.
func (s *Server) rateLimit(w http.ResponseWriter, r *http.Request, info *wire.Info, id, of string) *chat.Error {
	most, knob := s.o.Limits.PerMinute, "the server's flag --rate-limit"
	if info.PerMinute > 0 {
		most, knob = info.PerMinute, "rate-limit of the key"
	}
	if most == 0 {
		return nil
	}
	now := s.rate.Take(id, most)
	s.tellRate(w.Header(), r, wire.Rate{Limit: now.Limit, Left: now.Left, Reset: now.Reset})
	if now.OK {
		return nil
	}
	return &chat.Error{Kind: chat.RateLimited, Bound: chat.BoundRate, RetryAfter: now.Next,
		Msg: fmt.Sprintf("%d requests a minute are as many as %s may send (%s); the next one in %s", most, of, knob, seconds(now.Next))}
}

// seconds is a time as a sentence has it, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10) + " s"
}

// tellRate sets the headers of the protocol that the caller speaks.
func (s *Server) tellRate(h http.Header, r *http.Request, rate wire.Rate) {
	for i, p := range s.o.Protocols {
		if p.Speaks(r) || i == len(s.o.Protocols)-1 {
			p.TellRate(h, rate)
			return
		}
	}
}

// clientID tells clients apart for limits, and says who it is in words: the key where there are several or it has limits of its
// own, else the address.
func (s *Server) clientID(r *http.Request, info *wire.Info) (id, of string) {
	if info.Caller == [16]byte{} && info.PerMinute == 0 && info.MaxRequests == 0 {
		return access.AddressID(s.proxies.client(r)), "this address"
	}
	if info.Name != "" {
		return "key " + string(info.Owner[:]), "the key " + info.Name
	}
	return "key " + string(info.Owner[:]), "this key"
}
