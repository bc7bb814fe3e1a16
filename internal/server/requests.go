package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// errCancelled is why a request ends that its caller cancels.
var errCancelled = &chat.Error{Kind: chat.Invalid, Code: "request_cancelled", Msg: "the request was cancelled"}

// requests are those that have not been answered, by their ids, and those that have been lately.
type requests struct {
	mu    sync.Mutex
	of    map[string]*running
	ended []*ended // up to mostEnded, then the oldest is at next
	next  int
}

// running is a request that has not been answered.
type running struct {
	owner   [16]byte // see wire.Info
	cancel  context.CancelCauseFunc
	info    *wire.Info // of which others may only ask how far it has come
	began   time.Time
	api     string // its path's pattern
	ofModel bool   // which is a protocol's

	seen           bool // it is decoded: it has the next ones
	encodes        bool // it asks for vectors or scores, of which no engine knows
	model, session string
}

func (q *requests) enter(info *wire.Info, x *running) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = map[string]*running{}
	}
	q.of[info.RequestID] = x
}

// mayReach reports whether the caller of info may see and cancel the requests of an owner.
func mayReach(owner [16]byte, info *wire.Info) bool { return info.Operator || owner == info.Owner }

// cancel ends the request id if it is the caller's of info, or that is an operator. Of others' it says what it says of none.
func (q *requests) cancel(id string, info *wire.Info) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	x := q.of[id]
	if x == nil || !mayReach(x.owner, info) {
		return false
	}
	x.cancel(errCancelled)
	return true
}

// track makes requests that compute something known, so that they can be cancelled and looked at: what is told on a WebSocket
// too, which comes here as a request. observe forgets them.
func (s *Server) track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		info := wire.InfoFrom(ctx)
		api, ofModel := s.routes.api(r)
		s.requests.enter(info, &running{owner: info.Owner, cancel: cancel, info: info, began: info.Began, api: api, ofModel: ofModel})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// mountRequests registers the routes of a request.
func (s *Server) mountRequests(mux wire.Mux) {
	cancel := func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if !s.requests.cancel(id, wire.InfoFrom(r.Context())) {
			s.fail(w, r, &chat.Error{Kind: chat.NotFound, Code: "request_not_found",
				Msg: "no request of yours with the id " + wire.Quote(id) + " waits or runs; GET /v1/status lists those that do"})
			return
		}
		wire.WriteJSON(w, http.StatusOK, map[string]string{"id": id, "status": "cancelled"})
	}
	wire.Handle(mux, "", "/requests/{id}/cancel", wire.Method(s.fail, http.MethodPost, cancel))
	one := map[string]http.HandlerFunc{http.MethodDelete: cancel}
	if s.o.Monitor != nil {
		one[http.MethodGet] = s.answer(s.showRequest)
	}
	wire.Handle(mux, "", "/requests/{id}", wire.Methods(s.fail, one))
}
