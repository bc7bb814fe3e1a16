// Package wire is what the protocols share: the Protocol interface, reading and decoding of request bodies with errors
// that name the JSON path, the SSE writer with its keep-alive, the /v1/models routes, the ids of replies, and calls that
// come by other ways than a request of their own (Server, Message). Packages anthropic, openai and responses translate
// between bytes and package chat with it; server mounts them. Nothing here knows tokens, templates or the engine: a reply
// is only ever a sequence of chat.Events.
package wire

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"hearth/internal/access"
	"hearth/internal/chat"
)

// Limits and intervals used when Options leaves them zero.
const (
	DefaultMaxBody   = 64 << 20        // bytes of a request body
	DefaultMaxBodies = 256 << 20       // bytes of all that are held at once
	DefaultKeepAlive = 5 * time.Second // silence on the wire before a keep-alive
)

// Protocol is one API. Implementations hold no state of their own besides what Mount is given.
type Protocol interface {
	// Mount registers the protocol's routes, with and without the /v1 prefix.
	Mount(mux Mux, o Options)
	// Speaks reports whether the sender of r expects this protocol's shapes, by path or header. Errors that arise
	// outside a route (no key, no such path) and the shared models routes are answered by the first that says yes.
	Speaks(r *http.Request) bool
	// WriteError answers r with e as status, headers and body of this protocol.
	WriteError(w http.ResponseWriter, r *http.Request, e *chat.Error)
	// TellRate sets the headers by which this protocol says how a client stands.
	TellRate(h http.Header, rate Rate)
}

// Mux is where routes are registered; *http.ServeMux is one.
type Mux interface {
	http.Handler
	Handle(pattern string, h http.Handler)
	HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request))
}

// Rate is how a client stands with its requests.
type Rate struct {
	Limit int           // requests a minute
	Left  int           // that may come at once
	Reset time.Duration // until all of Limit may
}

// Options is what a protocol works with. Models is required; the zero value of the rest means its default.
type Options struct {
	Models    chat.Models
	Encoders  chat.Encoders // nil: nothing embeds or ranks
	MaxBody   int64         // bytes; more is answered 413
	Bodies    *Bodies       // of all protocols together
	KeepAlive time.Duration // silence before a keep-alive on a stream
	Version   string        // of hearth, for system_fingerprint
	// Interval is how many pieces of text, mostly a token each, a stream collects into one event. The first piece, the first
	// and last of a call and the end never wait.
	Interval int
	// Queued, if set, is called once the prompt of a reply is made, or cannot be: the body is no longer needed.
	Queued func()
	// Again says that prompts are made of the request's messages after that too: its images are kept, and with them its body.
	Again bool
	// Fetch, if set, gets the images that requests have URLs of.
	Fetch Fetcher
	// Decided, if set, is called once a reply has begun whose request asks to be explained.
	Decided func(ctx context.Context, u *chat.Usage)
	// Seen, if set, is called for every request that was decoded.
	Seen func(r *http.Request, req *chat.Request)
	// Encodes, if set, is called likewise for requests for vectors and scores, with the name of the model.
	Encodes func(r *http.Request, model string)
	Now     func() time.Time
	NewID   func(prefix string) string // ids of replies; tests make them predictable
	// Server is the one that the protocol is mounted on; nil: there is only the mux.
	Server Server
	// Frame, if set, takes the events of a stream, each as one message, in place of the reply. An error ends the stream.
	Frame func(data []byte) error
}

// Server is what a protocol asks of the server that it is mounted on, for what comes or goes by other ways than a request and its
// reply: messages on a socket, and replies that nobody waits for.
type Server interface {
	// ServeHTTP answers a call as if it had come by itself: every check holds for it, and the log has it.
	http.Handler
	// Detach returns a context with the values of ctx that does not end with it, but with what the server still waits for when
	// it shuts down. cancel must be called.
	Detach(ctx context.Context) (detached context.Context, cancel context.CancelCauseFunc)
	// Draining is closed when the server begins to shut down: what waits for more to come should end.
	Draining() <-chan struct{}
}

// Alone is a handler as a Server that never shuts down.
type Alone struct{ http.Handler }

// Detach implements Server.
func (Alone) Detach(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(context.WithoutCancel(ctx))
}

// Draining implements Server.
func (Alone) Draining() <-chan struct{} { return nil }

// WithDefaults fills the zero fields.
func (o Options) WithDefaults() Options {
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Bodies == nil {
		o.Bodies = NewBodies(DefaultMaxBodies)
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = DefaultKeepAlive
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = NewID
	}
	return o
}

// See tells Seen.
func (o Options) See(r *http.Request, req *chat.Request) {
	InfoFrom(r.Context()).Advance()
	if o.Seen != nil {
		o.Seen(r, req)
	}
}

// NewID returns prefix followed by 24 random hexadecimal digits: msg_…, chatcmpl-…, call_….
func NewID(prefix string) string {
	var b [12]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// Info is what one call tells the request log. The server puts an empty one into the request's context.
type Info struct {
	RequestID string
	Model     string        // as the client sent it, or the one that answered if it named none
	Served    string        // id of the model that answers, "" until it is open
	Usage     *chat.Usage   // nil until known
	Began     time.Time     // when the call came; zero: not known
	Load      time.Duration // until its model was there, see Loading
	Prompt    time.Duration // from there until its prompt was made and queued
	First     time.Time     // the first event after EventStart; zero until then
	ToolCalls int
	Finish    chat.Finish // of the choice that ended last
	Err       error       // what the client was told went wrong
	Session   string      // see Identify; "" not known

	steps atomic.Int64 // see Advance
	loads atomic.Int64 // see Loading: when that began, Unix time in nanoseconds; then what it took, negative
	timed atomic.Int64 // see BeginTimed

	// Client is who asks, set by the server before the protocol sees the call.
	access.Client
	MCP MCPAccess // may have tools of MCP servers run
}

// Advance tells that the call has got on: it is decoded, its model is there, or an event of its reply has come.
func (i *Info) Advance() { i.steps.Add(1) }

// Advanced is how often it has.
func (i *Info) Advanced() int64 { return i.steps.Load() }

// Loading tells that the call waits for its model from now on, until the function is called that it gives: that sets Load.
func (i *Info) Loading() (loaded func()) {
	began := time.Now()
	i.loads.Store(began.UnixNano())
	return func() {
		i.Load = time.Since(began)
		i.loads.Store(-int64(i.Load))
	}
}

// Loaded is how long it has waited for its model until now, for others than who answers the call.
func (i *Info) Loaded(now time.Time) time.Duration {
	n := i.loads.Load()
	if n > 0 {
		return now.Sub(time.Unix(0, n))
	}
	return time.Duration(-n)
}

// BeginTimed tells that the call waits for something that has a time limit of its own, until EndTimed.
func (i *Info) BeginTimed() { i.timed.Add(1) }

// EndTimed ends what BeginTimed began.
func (i *Info) EndTimed() { i.timed.Add(-1) }

// Timed reports whether it does.
func (i *Info) Timed() bool { return i.timed.Load() > 0 }

// MCPAccess says whether a call may have tools of MCP servers run.
type MCPAccess uint8

const (
	MCPAbsent MCPAccess = iota // there are no such servers
	MCPDenied                  // it shows neither a key nor the token
	MCPOpen
)

type infoKey struct{}

// WithInfo returns ctx carrying i, and its Client as package access has it.
func WithInfo(ctx context.Context, i *Info) context.Context {
	return access.With(context.WithValue(ctx, infoKey{}, i), &i.Client)
}

// InfoFrom returns the Info of ctx, or a fresh one that nobody reads.
func InfoFrom(ctx context.Context) *Info {
	if i, ok := ctx.Value(infoKey{}).(*Info); ok {
		return i
	}
	return &Info{RequestID: NewID("req_")}
}

// Codes of errors whose status differs from that of their kind.
const (
	CodeMethod    = "method_not_allowed"     // 405
	CodeInUse     = "model_in_use"           // 409
	CodeMediaType = "unsupported_media_type" // 415
)

// Status returns the HTTP status of e: by its code if that has one of its own, else table[e.Kind], else 500.
func Status(e *chat.Error, table map[chat.ErrorKind]int) int {
	switch e.Code {
	case CodeMethod:
		return http.StatusMethodNotAllowed
	case CodeInUse:
		return http.StatusConflict
	case CodeMediaType:
		return http.StatusUnsupportedMediaType
	}
	if s, ok := table[e.Kind]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// WriteErrorBody sends an error reply: status, the headers every protocol shares, and body as JSON. A client that has left gets
// none; the log says so.
func WriteErrorBody(w http.ResponseWriter, r *http.Request, e *chat.Error, status int, body any) {
	info := InfoFrom(r.Context())
	if gone(r.Context()) && errors.Is(e, context.Canceled) {
		info.Err = ErrClientGone
		return
	}
	info.Err = e
	if notRetryable(status) {
		w.Header().Set("X-Should-Retry", "false")
	}
	if e.RetryAfter > 0 {
		secs := (e.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.Itoa(int(secs)))
		w.Header().Set("Retry-After-Ms", strconv.FormatInt((e.RetryAfter+time.Millisecond-1).Milliseconds(), 10))
	}
	WriteJSON(w, status, body)
}

// notRetryable reports statuses of requests that would fail again. The official SDKs obey the header that says so; without it
// Claude Code retries a wrong key for minutes before it shows the error.
func notRetryable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// WriteJSON sends body as one JSON document. A client that is gone is noticed by its context, not here.
func WriteJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	Write(w, append(Marshal(body), '\n'))
}

// Marshal encodes v as compact JSON without escaping HTML characters. The values are our own response types, so a
// failure is a programmer error.
func Marshal(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("wire: marshal: " + err.Error())
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// Method routes one method to h and answers the others with 405 in the shape of fail. GET serves HEAD too.
func Method(fail ErrorWriter, method string, h http.HandlerFunc) http.Handler {
	return Methods(fail, map[string]http.HandlerFunc{method: h})
}

// Methods is Method for several, each with a handler of its own.
func Methods(fail ErrorWriter, handlers map[string]http.HandlerFunc) http.Handler {
	names := slices.Sorted(maps.Keys(handlers))
	allow := strings.Join(append(names, http.MethodOptions), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		if h := handlers[method]; h != nil {
			h(w, r)
			return
		}
		w.Header().Set("Allow", allow)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		fail(w, r, &chat.Error{Kind: chat.Invalid, Code: CodeMethod,
			Msg: "method " + Clip(r.Method, mostShown) + " is not allowed on " + Clip(r.URL.Path, mostShown) + "; use " + strings.Join(names, " or ")})
	})
}

// mostShown bounds the bytes of a path or a method in an error.
const mostShown = 200

// Clip shortens what a client sent, for an error's text or the log, to so many bytes and a mark.
func Clip(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Handle registers h below base at /v1/path and /path: clients differ in whether the base URL holds the version.
func Handle(mux Mux, base, path string, h http.Handler) {
	mux.Handle(base+"/v1"+path, h)
	mux.Handle(base+path, h)
}
