package server

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"hearth/internal/chat"
	"hearth/internal/metrics"
	"hearth/internal/wire"
)

// metricsPath is where Prometheus looks.
const metricsPath = "/metrics"

// scrape answers with the metrics. Who asks shows no key, so pages that are not the operator's get none, whatever they call this
// machine.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) {
	switch {
	case !s.keyless.host(r.Host):
		s.fail(w, r, strangeHost(r))
	case crossOrigin(r) && !s.keyless.origin(r.Header.Get("Origin")):
		s.fail(w, r, strangeOrigin(r))
	default:
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wire.WriteTimeout))
		s.o.Metrics.ServeHTTP(w, r)
	}
}

// ServeMetrics serves /metrics, and nothing else, on a listener of its own, until ctx ends.
func (s *Server) ServeMetrics(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle(metricsPath, wire.Method(s.fail, http.MethodGet, s.scrape))
	mux.HandleFunc("/", s.notFound)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, WriteTimeout: wire.WriteTimeout}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// count tells the metrics of a call that has been answered.
func (s *Server) count(r *http.Request, status int, info *wire.Info, began time.Time, took time.Duration) {
	if s.o.Metrics == nil {
		return
	}
	c := metrics.Request{Route: s.routes.of(r), Status: status, Model: info.Served, Took: took, Refused: refusal(info), ToolCalls: info.ToolCalls, Finish: string(info.Finish)}
	for _, b := range met(info) {
		c.Bounds = append(c.Bounds, string(b))
	}
	if u := info.Usage; u != nil {
		c.Images = len(u.Images)
		c.Hit, c.Prompt, c.Output, c.Queued, c.Prefill, c.Decode = u.Hit, u.Prompt, u.Output, u.Queued, u.Prefill, u.Decode
	}
	if !info.First.IsZero() {
		c.First = info.First.Sub(began)
	}
	s.o.Metrics.End(&c)
}

// router is a mux that knows its patterns.
type router struct {
	http.ServeMux
	patterns []string
}

// Handle implements wire.Mux.
func (m *router) Handle(pattern string, h http.Handler) {
	m.patterns = append(m.patterns, pattern)
	m.ServeMux.Handle(pattern, h)
}

// HandleFunc implements wire.Mux.
func (m *router) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	m.Handle(pattern, http.HandlerFunc(h))
}

// routes finds the names of paths for metrics and traces: their patterns, so that there are no more than those.
type routes struct {
	mux       *router
	protocols int      // how many of the patterns, the first ones, are protocols'
	names     sync.Map // by pattern
}

// of is "other" where there is no such path; where callers may leave /v1 out, that makes no difference.
func (s *routes) of(r *http.Request) string {
	_, pattern := s.mux.Handler(r)
	return s.name(pattern)
}

// api is of, and whether a protocol answers there.
func (s *routes) api(r *http.Request) (name string, protocol bool) {
	_, pattern := s.mux.Handler(r)
	return s.name(pattern), slices.Contains(s.mux.patterns[:s.protocols], pattern)
}

func (s *routes) name(pattern string) string {
	if name, ok := s.names.Load(pattern); ok {
		return name.(string)
	}
	name := pattern
	switch pattern {
	case "/", "":
		name = "other"
	case "/{$}":
		name = "/"
	default:
		if long := "/v1" + pattern; slices.Contains(s.mux.patterns, long) {
			name = long
		}
	}
	s.names.Store(pattern, name)
	return name
}

// imageCause is what was wrong with an image, as package vision names it, or with fetching it; "": nothing was.
func imageCause(info *wire.Info) string {
	var e *chat.Error
	if errors.As(info.Err, &e) && strings.HasPrefix(e.Code, chat.ImageCodes) {
		return e.Code
	}
	return ""
}

// refusals are words for the kinds of errors that are the caller's to mend.
var refusals = map[chat.ErrorKind]string{
	chat.Invalid: "invalid", chat.Unauthenticated: "unauthenticated", chat.Forbidden: "forbidden", chat.NotFound: "not_found", chat.TooLarge: "too_large",
	chat.ContextLength: "context_length", chat.Overloaded: "overloaded", chat.RateLimited: "rate_limited",
}

// Refusals are those words.
func Refusals() []string { return slices.Sorted(maps.Values(refusals)) }

// refusal is why a call was refused: the bound it met, or the kind of the error; "": it was not.
func refusal(info *wire.Info) string {
	var e *chat.Error
	if !errors.As(info.Err, &e) {
		return ""
	}
	if e.Bound != "" {
		return string(e.Bound)
	}
	if cause := imageCause(info); cause != "" {
		return cause
	}
	return refusals[e.Kind]
}
