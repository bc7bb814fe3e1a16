// Package server is the HTTP front of hearth: it mounts the protocols it is given behind a request log, panic recovery, the Host
// and Origin checks, CORS, the key check and the limits of clients, answers /, the probes, /metrics, and what manages models,
// caches, requests and MCP servers, and drains on shutdown. Package cli builds it and brings the listeners. What goes wrong here
// is answered in the shape of the protocol the caller speaks; it never looks into bodies of protocols.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"hearth/internal/access"
	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/metrics"
	"hearth/internal/wire"
)

// Timeouts of connections. Bodies and replies have their own (package wire).
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	// terminalGrace is how long streams may take, after being told to end, to write their last events.
	terminalGrace = 2 * time.Second
	// DefaultDrain is how long running replies may go on after shutdown began.
	DefaultDrain = 10 * time.Second
)

// Options configures a Server. Models, Protocols and Health are required.
type Options struct {
	Models    chat.Models
	Encoders  chat.Encoders   // nil: nothing embeds or ranks
	Protocols []wire.Protocol // in this order asked whether they speak to a caller; the last also answers all others

	Keys []access.Key // accepted credentials; empty: no check, any or none is accepted
	// Isolation says whether what is stored for the prompts of one key does not help others.
	Isolation      access.Isolation
	Limits         Limits
	Proxies        config.Proxies // believed whom they ask for
	AllowedHosts   []string       // besides the local ones: names, *.suffix, or *
	AllowedOrigins []string       // besides those on loopback: origins with at most one * in each, or *; none given with Keys: all
	HostNames      []string       // the machine's own names; nil: what the system says
	// Addresses gives the machine's own; nil: what the system says.
	Addresses func() []netip.Addr
	Network   bool // other machines can reach a listener, as its operator wants: names without a dot may be this machine's

	Version, Commit string
	Health          func() Health // the state of the model and its cache; version and commit are filled in here
	State           func() State  // Health's Status for probes, which must not wait for a model; nil: they ask Health
	Monitor         Monitor       // for /v1/status and /v1/cache; nil: there are no such routes

	// Manager, if not nil, is what the routes under /hearth/ are about. Without Keys they want Token: made at start, known to who
	// may read the state of this user's servers, and to pages that this server serves itself.
	Manager Manager
	Token   string
	// MCP, if not nil, is what the routes under /v1/mcp/ are about. They want a key, or without Keys the Token.
	MCP MCP

	// Metrics, if not nil, counts all calls. They are served under /metrics, unless MetricsApart: then by ServeMetrics alone.
	Metrics      *metrics.Metrics
	MetricsApart bool

	Log  *slog.Logger // one line per request; nil: none
	Perf io.Writer    // a [cache] and a [perf] line per request, in one Write; nil: none
	// PerfLog has both in Log instead, as records.
	PerfLog bool
	// LogPrompts lets text of prompts into all of them.
	LogPrompts bool
	// Origin says where the setting of a flag comes from, for a model; "" or nil: not known.
	Origin func(model, flag string) string
	// PeakMemory is the most bytes the process has had resident; nil: not known.
	PeakMemory func() int64

	RequestDir string // a folder for a summary of every request; "": none are written

	MaxBody   int64 // bytes; 0: wire.DefaultMaxBody
	MaxBodies int64 // bytes of all bodies that are held at once; 0: wire.DefaultMaxBodies
	// HugeBodies, with MaxBodies, is wire.Bodies.Huge.
	HugeBodies func(held bool)
	// Fetch gets images by their URLs; nil: nothing does.
	Fetch     *Fetcher
	KeepAlive time.Duration // 0: wire.DefaultKeepAlive
	Interval  int           // see wire.Options
	Drain     time.Duration // 0: DefaultDrain

	// Certificate, if not nil, is that of connections over TCP, which then speak TLS. Each handshake asks for it.
	Certificate func() *tls.Certificate
}

// Server serves the protocols over HTTP. Make it with New.
type Server struct {
	o        Options
	keys     *access.Keys
	rate     *access.Rate
	slots    access.Slots
	proxies  proxies
	watch    *watch
	guard    guard
	keyless  guard // for what shows figures to those who have no key, also where there are keys
	handler  http.Handler
	calls    calls
	base     context.Context // of all calls; ended by end
	end      context.CancelCauseFunc
	draining chan struct{} // closed when a shutdown begins
	began    time.Time
	totals   totals
	bounds   bounds
	shares   shares
	requests requests
	routes   routes
}

// New builds the handler chain. It panics on missing required options.
func New(o Options) *Server {
	if o.Models == nil || len(o.Protocols) == 0 || o.Health == nil {
		panic("server: Options needs Models, Protocols and Health")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Drain == 0 {
		o.Drain = DefaultDrain
	}
	if o.HostNames == nil {
		if name, err := os.Hostname(); err == nil {
			o.HostNames = []string{name}
		}
	}
	if o.Addresses == nil {
		o.Addresses = config.OwnAddresses
	}
	keys, keyless := access.NewKeys(o.Keys), newGuard(&o)
	if keys.Asked() && len(o.AllowedOrigins) == 0 { // a page without the key gets nothing
		o.AllowedOrigins = []string{"*"}
	}
	s := &Server{o: o, began: time.Now(), keys: keys, guard: newGuard(&o), keyless: keyless, draining: make(chan struct{}),
		rate: access.NewRate(nil), proxies: proxies(o.Proxies)}
	s.watch = newWatch(o.Limits, nil)
	if o.Monitor != nil {
		s.watch.look = o.Monitor.Progress
	}
	s.base, s.end = context.WithCancelCause(context.Background())
	mux := &router{}
	wo := wire.Options{Models: o.Models, Encoders: o.Encoders, MaxBody: o.MaxBody, KeepAlive: o.KeepAlive, Interval: o.Interval, Version: o.Version, Server: s}
	if o.MaxBodies > 0 {
		wo.Bodies = wire.NewBodies(o.MaxBodies)
		wo.Bodies.Huge = o.HugeBodies
	}
	if o.Fetch != nil {
		wo.Fetch = o.Fetch
	}
	wo = wo.WithDefaults() // before the protocols do: they share it
	if o.RequestDir != "" {
		wo.Seen = (&summaries{dir: o.RequestDir}).write
	}
	debug := o.Log.Enabled(context.Background(), slog.LevelDebug)
	if debug {
		wo.Decided = s.decided
	}
	write := wo.Seen
	wo.Seen = func(r *http.Request, req *chat.Request) {
		s.requests.seen(wire.InfoFrom(r.Context()), req.Model)
		if debug {
			s.debug(r, req)
			if req.Explain = chat.ExplainDecisions; o.LogPrompts {
				req.Explain = chat.ExplainText
			}
		}
		if write != nil {
			write(r, req)
		}
	}
	wo.Encodes = func(r *http.Request, model string) { s.requests.encodes(wire.InfoFrom(r.Context()), model) }
	for _, p := range o.Protocols {
		p.Mount(mux, wo)
	}
	s.routes.mux, s.routes.protocols = mux, len(mux.patterns)
	wire.MountModels(mux, "", wo, s.fail)
	if o.Monitor != nil {
		s.mountMonitor(mux)
	}
	if o.Manager != nil {
		s.mountManage(mux)
	}
	s.mountHealth(mux)
	s.mountRequests(mux)
	if o.Metrics != nil && !o.MetricsApart {
		mux.Handle(metricsPath, wire.Method(s.fail, http.MethodGet, s.scrape))
	}
	if o.MCP != nil {
		s.mountMCP(mux, wo)
	}
	s.mountAPIDoc(mux)
	mux.Handle("/{$}", wire.Method(s.fail, http.MethodGet, s.root))
	s.mountPages(mux)
	mux.HandleFunc("/", s.notFound)
	s.handler = s.observe(s.checkManage(s.checkSource(s.checkKey(s.limit(s.track(mux))))))
	return s
}

// SetKeys has other keys accepted from now on. Where none were asked for when the server was made, none ever are.
func (s *Server) SetKeys(list []access.Key) {
	if s.keys.Asked() {
		s.keys.Replace(list)
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.calls.enter()()
	s.handler.ServeHTTP(w, r)
}

// Serve accepts connections on all listeners until ctx ends or a listener fails. Then it refuses new connections, lets
// running replies go on for Options.Drain, ends what still runs with an error of the protocol's own, and returns. The
// error is that of a listener; a shutdown by ctx returns nil.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	defer s.end(nil)
	srv := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		WriteTimeout:      wire.WriteTimeout,                                    // for what net/http itself answers; handlers set their own
		BaseContext:       func(net.Listener) context.Context { return s.base }, // requests outlive ctx by the drain
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
		// A connection has the requests of several streams, whose deadlines do not reach what is stuck in it as a whole.
		HTTP2: &http.HTTP2Config{WriteByteTimeout: wire.WriteTimeout},
	}
	if s.o.Certificate != nil {
		srv.TLSConfig = s.tlsConfig()
	}
	failed := make(chan error, len(listeners))
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() {
			serve := srv.Serve
			if s.o.Certificate != nil && l.Addr().Network() == "tcp" {
				serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
			}
			if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.shutdown(srv)
	wg.Wait()
	return err
}

// tlsConfig is how TLS is spoken. A client's first bytes say whether it wants HTTP/2.
func (s *Server) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.o.Certificate(), nil },
	}
}

func (s *Server) shutdown(srv *http.Server) {
	close(s.draining)
	drain, cancel := context.WithTimeout(context.Background(), s.o.Drain)
	defer cancel()
	if srv.Shutdown(drain) == nil && s.calls.wait(drain) {
		return
	}
	s.end(&chat.Error{Kind: chat.Overloaded, Code: "shutting_down", Msg: "the server is shutting down"})
	grace, cancel := context.WithTimeout(context.Background(), terminalGrace)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		_ = srv.Close() // what did not end by now is cut
	}
	s.calls.wait(grace)
}

// fail answers with e in the caller's shape.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, e *chat.Error) {
	for _, p := range s.o.Protocols {
		if p.Speaks(r) {
			p.WriteError(w, r, e)
			return
		}
	}
	s.o.Protocols[len(s.o.Protocols)-1].WriteError(w, r, e)
}

func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	msg := "there is nothing at " + clip(r.Method) + " " + clip(r.URL.Path)
	if ofMCP(r) {
		if s.o.MCP == nil {
			msg += ": start hearth with --mcp-config FILE to have MCP servers"
		} else {
			msg += ": there are GET /v1/mcp/servers, GET /v1/mcp/tools and POST /v1/mcp/execute"
		}
	}
	s.fail(w, r, &chat.Error{Kind: chat.NotFound, Code: "not_found", Msg: msg})
}

// cleanPath undoes what base URLs do to paths: doubled slashes, a slash at the end, the version twice.
func cleanPath(p string) string {
	for strings.Contains(p, "//") {
		p = strings.ReplaceAll(p, "//", "/")
	}
	for strings.HasPrefix(p, "/v1/v1/") {
		p = p[len("/v1"):]
	}
	if len(p) > 1 {
		p = strings.TrimSuffix(p, "/")
	}
	return p
}
