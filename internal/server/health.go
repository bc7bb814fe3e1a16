package server

import (
	"net/http"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// Health is the body of GET /health.
type Health struct {
	Status  State  `json:"status"`
	Model   string `json:"model"`
	Context int    `json:"context,omitempty"` // tokens; not there while the model loads
	// Kind is what a model is for that does not chat; "" for others, and while it is not known.
	Kind        chat.ModelKind `json:"kind,omitempty"`
	Thinking    Thinking       `json:"thinking"`
	PromptCache PromptCache    `json:"prompt_cache"`
	Version     string         `json:"version"`
	Commit      string         `json:"commit"`
}

// State is whether the main model answers.
type State string

const (
	OK       State = "ok"
	Loading  State = "loading"  // requests wait for it, also while the process of a model is started again
	Stuck    State = "stuck"    // a step of it does not end: it has to be started again
	Draining State = "draining" // the server is shutting down
)

// Thinking says whether the model reasons and whether clients get to see it.
type Thinking struct {
	Enabled bool `json:"enabled"`
	Exposed bool `json:"exposed"`
}

// PromptCache is the state of the prefix cache.
type PromptCache struct {
	Enabled  bool  `json:"enabled"`
	Entries  int   `json:"entries"`
	Bytes    int64 `json:"bytes"`
	CapBytes int64 `json:"cap_bytes"`
	TTL      int64 `json:"ttl_ms"`
}

// Paths of probes, which need no key.
var (
	livePaths  = []string{"/livez", "/healthz"}
	readyPaths = []string{"/readyz", "/health/ready"}
)

// probes reports paths that stay open where keys are asked for, as / does.
func probes(path string) bool {
	return path == "/health" || slices.Contains(livePaths, path) || slices.Contains(readyPaths, path)
}

// mountHealth registers the routes of probes.
func (s *Server) mountHealth(mux wire.Mux) {
	mux.Handle("/health", wire.Method(s.fail, http.MethodGet, s.health))
	for _, path := range livePaths {
		mux.Handle(path, wire.Method(s.fail, http.MethodGet, s.live))
	}
	for _, path := range readyPaths {
		mux.Handle(path, wire.Method(s.fail, http.MethodGet, s.ready))
	}
}

// state is what probes are told. It waits for nothing.
func (s *Server) state() State {
	if s.isDraining() {
		return Draining
	}
	if s.o.State != nil {
		return s.o.State()
	}
	return s.o.Health().Status
}

// probed is the body of an answer to a probe.
type probed struct {
	Status State `json:"status"`
}

// live says whether the process is of use: one that loads or drains is, and must not be killed for it.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	state, status := s.state(), http.StatusOK
	if state == Stuck {
		status = http.StatusServiceUnavailable
	}
	wire.WriteJSON(w, status, probed{state})
}

// ready says whether a request would be answered now.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	state, status := s.state(), http.StatusOK
	if state != OK {
		status = http.StatusServiceUnavailable
	}
	wire.WriteJSON(w, status, probed{state})
}

// health answers probes, which need no key. Where there are keys, it says no more than they ask for to pages of others, and to
// what calls this machine by a name that may be another's.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	h := s.o.Health()
	h.Version, h.Commit = s.o.Version, s.o.Commit
	if s.isDraining() {
		h.Status = Draining
	}
	status := http.StatusOK
	if h.Status == Stuck {
		status = http.StatusServiceUnavailable // a probe need not read the body
	}
	if s.keys.Asked() && (crossOrigin(r) || !s.guard.host(r.Host)) {
		wire.WriteJSON(w, status, probed{h.Status})
		return
	}
	wire.WriteJSON(w, status, h)
}

// crossOrigin reports requests of web pages that this server has not served itself.
func crossOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	_, host, _ := strings.Cut(origin, "://")
	return origin != "" && !strings.EqualFold(host, r.Host)
}
