package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// statusGone is logged for calls whose client left before the reply began (nginx's number for it).
const statusGone = 499

// observe is the outermost handler: it gives the request its id, cleans its path, recovers from panics, writes the
// request log, bounds the time that the end of a reply takes to be read, and sees to it that what is no reply is not taken
// for one.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		s.o.Metrics.Enter()
		info := &wire.Info{RequestID: wire.NewID("req_"), Began: began}
		rec := &recorder{ResponseWriter: w}
		rec.Header().Set("Request-Id", info.RequestID)
		rec.Header().Set("X-Request-Id", info.RequestID)
		r = r.WithContext(wire.WithInfo(r.Context(), info))
		u := *r.URL
		u.Path, u.RawPath = cleanPath(u.Path), cleanPath(u.RawPath)
		r.URL = &u
		conn := http.NewResponseController(w)
		if r.ProtoMajor == 2 { // there a deadline that passes ends the stream, also while nobody writes
			_ = conn.SetWriteDeadline(time.Time{})
		} else if r.ContentLength != 0 {
			wire.LeaveBody(w)
		}
		defer func() {
			p := recover()
			if p != nil && p != http.ErrAbortHandler {
				info.Err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
				s.panicked(rec, r, info)
			}
			if rec.failed && info.Err == nil {
				info.Err = wire.ErrClientGone
			}
			took := time.Since(began)
			status := rec.final(r)
			s.log(r, status, info, took)
			s.count(r, status, info, began, took)
			s.measure(info, began, took)
			s.totals.add(info)
			s.bounds.add(met(info))
			s.bounds.addImage(imageCause(info))
			s.shares.leave(info)
			s.requests.end(info, took)
			// A reply that is cut, or was never begun, must not be taken for a complete one, which net/http would make of it.
			if p == http.ErrAbortHandler || p != nil && rec.status != 0 && !rec.whole || rec.status == 0 || errors.Is(info.Err, wire.ErrClientGone) {
				panic(http.ErrAbortHandler)
			}
			// For what net/http has still to flush. A test recorder has no deadlines.
			_ = conn.SetWriteDeadline(time.Now().Add(wire.WriteTimeout))
		}()
		next.ServeHTTP(rec, r)
	})
}

// panicked answers 500 if nothing was sent yet.
func (s *Server) panicked(rec *recorder, r *http.Request, info *wire.Info) {
	if rec.status != 0 {
		return
	}
	cause := info.Err
	s.fail(rec, r, &chat.Error{Kind: chat.Internal, Msg: "internal error"})
	info.Err, rec.whole = cause, true
}

// longestError is the bytes of an error in the log: of a panic that is where it was, and whose fault.
const longestError = 8 << 10

func (s *Server) log(r *http.Request, status int, info *wire.Info, took time.Duration) {
	s.logWait(r, info)
	const usual = 12 // attributes of a request in which nothing went wrong
	attrs := append(make([]slog.Attr, 0, usual), slog.String("method", clip(r.Method)), slog.String("path", clip(r.URL.Path)), slog.Int("status", status),
		slog.Float64("ms", float64(took.Microseconds())/1000), slog.String("id", info.RequestID))
	if info.Name != "" {
		attrs = append(attrs, slog.String("key", info.Name))
	}
	if info.Model != "" {
		attrs = append(attrs, slog.String("model", clip(info.Model)))
	}
	if u := info.Usage; u != nil {
		attrs = append(attrs, slog.Int("prompt_tokens", u.Prompt), slog.Int("cached_tokens", u.Cached), slog.Int("spliced_tokens", u.Spliced), slog.Int("output_tokens", u.Output))
	}
	if info.Finish != "" {
		attrs = append(attrs, slog.String("finish", string(info.Finish)))
	}
	if list := met(info); len(list) > 0 {
		attrs = append(attrs, slog.Any("bounds", list))
		if u := info.Usage; u != nil && len(u.Loose) > 0 {
			attrs = append(attrs, slog.Any("loose_tools", u.Loose))
		}
	}
	if u := info.Usage; u != nil && u.Prediction != nil && u.Prediction.Ignored != "" {
		attrs = append(attrs, slog.String("ignored", u.Prediction.Ignored))
	}
	if u := info.Usage; u != nil && u.Drafted > 0 {
		attrs = append(attrs, slog.Int("drafted_tokens", u.Drafted), slog.Int("accepted_tokens", u.Accepted))
	}
	if u := info.Usage; u != nil && len(u.Mended) > 0 {
		attrs = append(attrs, slog.Any("mended_calls", u.Mended))
	}
	level := slog.LevelInfo
	if status < 400 && (probes(r.URL.Path) || ofPage(r.URL.Path)) {
		level = slog.LevelDebug
	}
	if info.Err != nil {
		attrs = append(attrs, slog.String("error", wire.Clip(info.Err.Error(), longestError)))
		if status >= 500 {
			level = slog.LevelError
		}
		var e *chat.Error
		if errors.As(info.Err, &e) && e.Err != nil {
			attrs = append(attrs, slog.String("cause", wire.Clip(e.Err.Error(), longestError)))
		}
	}
	s.o.Log.LogAttrs(r.Context(), level, "request", attrs...)
}

// longWait is how long a request waits before that is worth a line of its own.
const longWait = time.Second

// logWait says that a request has waited, and what for: its model, or a place beside those that run.
func (s *Server) logWait(r *http.Request, info *wire.Info) {
	wait := func(d time.Duration, what string) {
		if d >= longWait {
			s.o.Log.LogAttrs(r.Context(), slog.LevelInfo, "waited", slog.String("id", info.RequestID), slog.Float64("ms", float64(d.Microseconds())/1000), slog.String("for", what))
		}
	}
	wait(info.Load, "model")
	if u := info.Usage; u != nil {
		wait(u.Queued, cmp.Or(u.Waited, "step"))
	}
}

// recorder notes the status of a reply.
type recorder struct {
	http.ResponseWriter
	status int
	whole  bool // an error reply was written in full after a panic
	failed bool // to write
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.failed = w.failed || err != nil
	return n, err
}

// final is the status of a reply that has ended.
func (w *recorder) final(r *http.Request) int {
	switch {
	case w.status != 0:
		return w.status
	case r.Context().Err() != nil:
		return statusGone
	}
	return http.StatusOK
}

// Unwrap lets http.ResponseController reach flushing and deadlines.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
