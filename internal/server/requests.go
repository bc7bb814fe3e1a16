package server

import (
	"context"
	"net/http"
	"sync"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// errCancelled is why a request ends that its caller cancels.
var errCancelled = &chat.Error{Kind: chat.Invalid, Code: "request_cancelled", Msg: "the request was cancelled"}

// requests are those that have not been answered, by their ids.
type requests struct {
	mu sync.Mutex
	of map[string]cancellable
}

type cancellable struct {
	owner  [16]byte // see wire.Info
	cancel context.CancelCauseFunc
}

func (q *requests) enter(info *wire.Info, cancel context.CancelCauseFunc) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.of == nil {
		q.of = map[string]cancellable{}
	}
	q.of[info.RequestID] = cancellable{info.Owner, cancel}
}

func (q *requests) leave(info *wire.Info) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.of, info.RequestID)
}

// cancel ends the request id if it is the caller's of info, or that is an operator. Of others' it says what it says of none.
func (q *requests) cancel(id string, info *wire.Info) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.of[id]
	if ok = ok && (info.Operator || c.owner == info.Owner); ok {
		c.cancel(errCancelled)
	}
	return ok
}

// track makes requests that compute something known, so that they can be cancelled: what is told on a WebSocket too, which comes
// here as a request.
func (s *Server) track(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		info := wire.InfoFrom(ctx)
		s.requests.enter(info, cancel)
		defer s.requests.leave(info)
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
