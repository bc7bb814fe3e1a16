// Package mcp is a host of MCP servers (Model Context Protocol): it starts those that a file names, as programs or at a URL,
// keeps them connected, knows their tools, and runs those that the file allows. The protocol itself is the official SDK's.
// Models lets a model call such tools in a reply: this package runs the calls and asks the model again. What a
// server says, schemas and results alike, is somebody else's text: it is bounded, and never more than data to a model.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hearth/internal/chat"
	"hearth/internal/regular"
	"hearth/internal/wire"
)

// Options say how a Host does its work.
type Options struct {
	Version string // of hearth, which servers are told
	// Lookup finds variables of this process's environment.
	Lookup func(string) (string, bool)
	// Log is told what becomes of servers, a line each; nil: nobody.
	Log func(line string)
}

// State is how it stands with a server.
type State string

const (
	Connecting State = "connecting"
	Connected  State = "connected"
	Failed     State = "error" // it is tried again
)

// Status is a server as /v1/mcp/servers has it.
type Status struct {
	Name      string   `json:"name"`
	State     State    `json:"state"`
	Transport string   `json:"transport"` // stdio or http
	Tools     int      `json:"tools_count"`
	Allowed   int      `json:"tools_allowed"`
	LeftOut   []string `json:"tools_left_out,omitempty"` // and why
	Error     *string  `json:"error"`                    // why it is not connected
	Since     string   `json:"since,omitempty"`          // when it came into this state
	Restarts  int      `json:"restarts"`
}

// Result is what came of a call. It is data, whoever wrote it.
type Result struct {
	Text    string
	IsError bool
}

// Pauses between attempts to connect: the first, which doubles each time, and the longest.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

const (
	connectTimeout = 30 * time.Second // from the start of a program until its tools are known
	pingEvery      = 30 * time.Second // of a server that says nothing; two without an answer end the session
	mostAtOnce     = 32               // calls of one server
)

// Host has servers. Make it with Start.
type Host struct {
	o       Options
	ctx     context.Context // ends with the Host
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex // for what Reload changes
	cfg     *Config
	servers []*server
}

// Start starts the servers of cfg, and comes back at once. Close must be called.
func Start(cfg *Config, o Options) *Host {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	h := &Host{o: o}
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.Reload(cfg)
	return h
}

// Reload makes the servers those of cfg, and comes back at once: those that cfg has as they were go on untouched, with the calls
// that run there; others end, and those that are new start, one that has changed when it has ended as it was. It must not come
// after Close.
func (h *Host) Reload(cfg *Config) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := map[string]*server{}
	for _, s := range h.servers {
		before[s.Name] = s
	}
	var servers []*server
	for _, next := range cfg.Servers {
		old := before[next.Name]
		if old != nil && reflect.DeepEqual(old.Server, next) {
			delete(before, next.Name)
			servers = append(servers, old)
			continue
		}
		s := &server{Server: next, host: h, state: Connecting, since: time.Now(), tried: make(chan struct{}), ended: make(chan struct{}),
			slots: make(chan struct{}, mostAtOnce)}
		s.ctx, s.stop = context.WithCancel(h.ctx)
		servers = append(servers, s)
		h.running.Go(func() {
			defer s.end()
			if old != nil {
				<-old.ended
			}
			if s.ctx.Err() == nil {
				s.run(s.ctx)
			}
		})
	}
	for name, old := range before {
		old.stop()
		if !slices.ContainsFunc(servers, func(s *server) bool { return s.Name == name }) {
			h.o.Log("MCP server " + name + ": is ended; the file names it no more")
		} else {
			h.o.Log("MCP server " + name + ": is started again, the file has it otherwise")
		}
	}
	h.cfg, h.servers = cfg, servers
}

// now is the configuration and the servers of this moment.
func (h *Host) now() (*Config, []*server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cfg, h.servers
}

// Close ends the servers and comes back when they have ended.
func (h *Host) Close() {
	h.stop()
	h.running.Wait()
}

// Servers says how it stands with each, those that the file could not name properly too.
func (h *Host) Servers() []Status {
	cfg, servers := h.now()
	all := make([]Status, 0, len(servers)+len(cfg.Faults))
	for _, s := range servers {
		all = append(all, s.status())
	}
	for _, f := range cfg.Faults {
		text := f.Error()
		all = append(all, Status{Name: f.Server, State: Failed, Error: &text})
	}
	return all
}

// Tools are those of all servers that are connected.
func (h *Host) Tools() []*Tool {
	all := []*Tool{}
	_, servers := h.now()
	for _, s := range servers {
		s.mu.Lock()
		all = append(all, s.tools...)
		s.mu.Unlock()
	}
	return all
}

// Call runs a tool by its full name. What goes wrong in the tool, or on the way to it, is a Result; the error, a *chat.Error, is
// for a call that was not made, and ctx's for one whose caller left.
func (h *Host) Call(ctx context.Context, name string, args json.RawMessage) (*Result, error) {
	_, servers := h.now()
	for _, s := range servers {
		if t, session := s.find(name); t != nil {
			return s.call(ctx, session, t, args)
		}
	}
	for _, s := range servers {
		if strings.HasPrefix(name, prefix(s.Name)) && s.status().State != Connected {
			return nil, s.absent()
		}
	}
	return nil, &chat.Error{Kind: chat.NotFound, Code: "tool_not_found", Msg: "there is no MCP tool named " + regular.Quote(name) + "; GET /v1/mcp/tools lists them"}
}

// server is one that is being kept connected.
//
// Invariant: session is not nil, and tools are its, while state is Connected.
type server struct {
	Server
	host  *Host
	ctx   context.Context // ends when the file has it no more, with the calls that run
	stop  context.CancelFunc
	tried chan struct{} // closed when the first attempt to connect has ended
	ended chan struct{} // closed when it is to be connected no more, and is not
	slots chan struct{} // of calls that run

	first    sync.Once // for tried
	mu       sync.Mutex
	state    State
	reason   string // of Failed
	since    time.Time
	restarts int
	session  *sdk.ClientSession
	tools    []*Tool
	leftOut  []string
}

func (s *server) transport() string {
	if s.Command != "" {
		return "stdio"
	}
	return "http"
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Name: s.Name, State: s.state, Transport: s.transport(), Tools: len(s.tools), LeftOut: s.leftOut, Since: s.since.UTC().Format(time.RFC3339), Restarts: s.restarts}
	for _, t := range s.tools {
		if t.Allowed {
			st.Allowed++
		}
	}
	if s.state == Failed {
		st.Error = &s.reason
	}
	return st
}

// absent is what a call is told of a server that is not connected.
func (s *server) absent() *chat.Error {
	st := s.status()
	msg := "the MCP server " + regular.Quote(s.Name) + " is not connected"
	if st.Error != nil {
		msg += ": " + *st.Error
	}
	return &chat.Error{Kind: chat.Overloaded, Code: "mcp_server_not_connected", Msg: msg, RetryAfter: firstPause}
}

// noMore is why a server is there no more.
const noMore = "the file of MCP servers names it no more, or has it otherwise"

// end notes that s is not kept connected any more.
func (s *server) end() {
	s.stop()
	s.mu.Lock()
	s.state, s.reason, s.since, s.session, s.tools, s.leftOut = Failed, noMore, time.Now(), nil, nil, nil
	s.mu.Unlock()
	s.first.Do(func() { close(s.tried) })
	close(s.ended)
}

// run keeps s connected until ctx ends.
func (s *server) run(ctx context.Context) {
	told := ""
	for pause, attempt := firstPause, 0; ; attempt++ {
		began := time.Now()
		// One that did not answer the newest beginning of a session gets the one before it.
		err := s.connect(ctx, attempt%2 == 1, func() {
			told = ""
			s.first.Do(func() { close(s.tried) })
		})
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > longestPause { // it worked for a while
			pause = firstPause
		}
		s.mu.Lock()
		s.state, s.reason, s.since, s.session, s.tools, s.leftOut = Failed, regular.Short(err).Error(), time.Now(), nil, nil, nil
		s.restarts++
		reason := s.reason
		s.mu.Unlock()
		s.first.Do(func() { close(s.tried) })
		if reason != told { // the same every minute would fill the log
			told = reason
			s.host.o.Log("MCP server " + s.Name + ": " + reason + "; it is tried again")
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// connect has a session with s from its beginning to its end, which the error tells. older begins it as servers did before
// 2026. connected is called when the tools are known.
func (s *server) connect(ctx context.Context, older bool, connected func()) (err error) {
	changed := make(chan struct{}, 1)
	client := sdk.NewClient(&sdk.Implementation{Name: "hearth", Version: cmp.Or(s.host.o.Version, "dev")}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, KeepAlive: pingEvery, KeepAliveFailureThreshold: 2,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	var over sdk.Transport
	if s.Command != "" {
		p, fault := s.start()
		if fault != nil {
			return fault
		}
		defer func() {
			p.stop()
			if why := p.lastWords(); why != "" && ctx.Err() == nil {
				err = fmt.Errorf("%w: %s", err, why)
			}
		}()
		over = &sdk.IOTransport{Reader: p, Writer: p.stdin, MaxLineLength: maxMessage}
	} else {
		client := s.client()
		defer client.CloseIdleConnections()
		over = &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxRetries: 2, MaxEventSize: maxMessage}
	}
	var o *sdk.ClientSessionOptions
	if older {
		o = &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"}
	}
	starting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	session, err := client.Connect(starting, over, o)
	if err != nil {
		return cmp.Or(late(starting, ctx), err)
	}
	ended, how := make(chan struct{}), error(nil)
	go func() {
		how = session.Wait()
		close(ended)
	}()
	defer func() {
		_ = session.Close()
		<-ended
	}()
	if err := s.list(starting, session); err != nil {
		return cmp.Or(late(starting, ctx), err)
	}
	connected()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return cmp.Or(how, errors.New("it has ended"))
		case <-changed:
			again, cancel := context.WithTimeout(ctx, connectTimeout)
			err := s.list(again, session)
			cancel()
			if err != nil {
				return err
			}
		}
	}
}

// late is the error of a server that took too long to begin; nil if it did not.
func late(starting, ctx context.Context) error {
	if starting.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("it did not answer within %s", connectTimeout)
	}
	return nil
}

// list takes the tools of a session over.
func (s *server) list(ctx context.Context, session *sdk.ClientSession) error {
	tools, leftOut, err := toolsOf(ctx, &s.Server, session)
	if err != nil {
		return fmt.Errorf("list its tools: %w", err)
	}
	s.mu.Lock()
	if s.state != Connected {
		s.since = time.Now()
	}
	s.state, s.session, s.tools, s.leftOut = Connected, session, tools, leftOut
	s.mu.Unlock()
	s.host.o.Log(s.summary(tools, leftOut))
	return nil
}

// mostNamed is how many tools a line of the log names.
const mostNamed = 20

// summary is what the log has of the tools of s.
func (s *server) summary(tools []*Tool, leftOut []string) string {
	var allowed []string
	missing := slices.Clone(s.Allow)
	for _, t := range tools {
		if t.Allowed {
			allowed = append(allowed, t.Own)
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == t.Own || name == anyTool })
	}
	some := func(names []string) string {
		if len(names) > mostNamed {
			names = append(slices.Clone(names[:mostNamed]), "…")
		}
		return regular.Clip(strings.Join(names, ", "))
	}
	line := fmt.Sprintf("MCP server %s: connected, %d tools", s.Name, len(tools))
	if len(allowed) == 0 {
		line += ", none of them allowed: name those that may be run in mcpServers." + s.Name + ".allow"
	} else {
		line += fmt.Sprintf(", %d allowed: %s", len(allowed), some(allowed))
	}
	if len(missing) > 0 && len(tools) > 0 {
		line += "; it has none of these, which allow names: " + some(missing)
	}
	if len(leftOut) > 0 {
		line += "; left out: " + some(leftOut)
	}
	return line
}

// find is the tool of that full name and the session to call it in; nil if s has none.
func (s *server) find(name string) (*Tool, *sdk.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tools {
		if t.Name == name {
			return t, s.session
		}
	}
	return nil, nil
}

func (s *server) call(ctx context.Context, session *sdk.ClientSession, t *Tool, args json.RawMessage) (*Result, error) {
	if !t.Allowed {
		return nil, &chat.Error{Kind: chat.Forbidden, Code: "tool_not_allowed",
			Msg: fmt.Sprintf("the tool %s of the MCP server %s may not be run here: its file would have to name it in mcpServers.%s.allow", regular.Quote(t.Own), s.Name, s.Name)}
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return nil, &chat.Error{Kind: chat.Overloaded, Code: "mcp_server_busy", Bound: chat.BoundMCP, RetryAfter: firstPause,
			Msg: fmt.Sprintf("%d calls of the MCP server %s run already", mostAtOnce, regular.Quote(s.Name))}
	}
	within, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	info := wire.InfoFrom(ctx)
	info.BeginTimed()
	defer info.EndTimed()
	began := time.Now()
	r, err := session.CallTool(within, &sdk.CallToolParams{Name: t.Own, Arguments: args})
	s.host.o.Log(fmt.Sprintf("MCP call of %s: %.3f s, failed %t", t.Name, time.Since(began).Seconds(), err != nil || r.IsError))
	switch {
	case err == nil:
		cfg, _ := s.host.now()
		return &Result{resultText(r, cfg.ResultBytes), r.IsError}, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.ctx.Err() != nil:
		err = errors.New(noMore)
	case within.Err() != nil:
		err = fmt.Errorf("the tool did not answer within %s (mcpServers.%s.timeout)", s.Timeout, s.Name)
	}
	return &Result{regular.Short(err).Error(), true}, nil
}

// maxMessage bounds the bytes of one message of a server.
const maxMessage = 8 << 20

// client is an HTTP client that sends the headers of the file, to that address alone: redirects are not followed.
func (s *server) client() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	return &http.Client{
		Transport:     &transport{t, s.Headers},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// transport adds headers to requests and bounds replies that are one document; a stream of events is bounded by event.
type transport struct {
	*http.Transport
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range t.headers {
		r.Header.Set(name, value)
	}
	resp, err := t.Transport.RoundTrip(r)
	if err == nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxMessage)
	}
	return resp, err
}
