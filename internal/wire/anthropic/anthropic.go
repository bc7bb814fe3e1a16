// Package anthropic is the Anthropic Messages API: it decodes /v1/messages and /v1/messages/count_tokens into
// chat.Requests and encodes chat.Events as Anthropic's messages, streams and errors. The server mounts it; it never
// sees tokens or templates. Shapes follow the types of the official SDKs (Python anthropic 2.11, Go anthropic-sdk-go/v2
// 2.12). Every anthropic-version and anthropic-beta is accepted, unknown fields are ignored.
package anthropic

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// Protocol implements wire.Protocol.
type Protocol struct {
	// Strict refuses what Anthropic refuses and a local server could do without: no model, no max_tokens, and a
	// max_tokens that does not fit behind the prompt.
	Strict bool
	// Thinking is shown always (On), never (Off), or when the request asks for thinking.
	Thinking chat.Toggle
	// Version is the anthropic-version header of replies; "" leaves it out.
	Version string
}

// prefix is where some clients look for this protocol, next to those of other protocols.
const prefix = "/anthropic"

// Mount registers the routes, and those of models, at the root and under /anthropic.
func (p Protocol) Mount(mux wire.Mux, o wire.Options) {
	h := handler{Protocol: p, Options: o.WithDefaults()}
	post := func(f http.HandlerFunc) http.Handler {
		return wire.Method(p.WriteError, http.MethodPost, h.versioned(f))
	}
	for _, base := range []string{"", prefix} {
		wire.Handle(mux, base, "/messages", post(h.messages))
		wire.Handle(mux, base, "/messages/count_tokens", post(h.countTokens))
	}
	wire.MountModels(mux, prefix, h.Options, p.WriteError)
}

// versioned names the version of the API on replies.
func (p Protocol) versioned(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p.Version != "" {
			w.Header().Set("Anthropic-Version", p.Version)
		}
		f(w, r)
	}
}

// Speaks recognises Anthropic's clients by the header all their SDKs send, and its own paths.
func (Protocol) Speaks(r *http.Request) bool {
	if r.Header.Get("Anthropic-Version") != "" {
		return true
	}
	path, own := strings.CutPrefix(r.URL.Path, prefix+"/")
	if own {
		return true
	}
	path = strings.TrimPrefix(path, "/v1")
	return path == "/messages" || strings.HasPrefix(path, "/messages/")
}

// TellRate implements wire.Protocol.
func (Protocol) TellRate(h http.Header, rate wire.Rate) {
	const name = "Anthropic-Ratelimit-Requests-"
	h.Set(name+"Limit", strconv.Itoa(rate.Limit))
	h.Set(name+"Remaining", strconv.Itoa(rate.Left))
	h.Set(name+"Reset", time.Now().Add(rate.Reset+time.Second-1).UTC().Format(time.RFC3339)) // not before it is so
}

type handler struct {
	Protocol
	wire.Options
}

func (h handler) messages(w http.ResponseWriter, r *http.Request) {
	req, body := h.read(w, r, h.Strict)
	if body == nil {
		return
	}
	defer body.Close()
	h.Queued = body.Close
	if req.stream {
		h.Stream(w, r, &req.Request, h.WriteError, pingFrame, func(s *wire.Stream) wire.StreamEncoder {
			return &streamEncoder{out: s, reply: h.newReply(r, req)}
		})
		return
	}
	h.Collect(w, r, &req.Request, h.WriteError, &collectEncoder{reply: h.newReply(r, req)})
}

func (h handler) countTokens(w http.ResponseWriter, r *http.Request) {
	req, body := h.read(w, r, false)
	if body == nil {
		return
	}
	defer body.Close()
	req.Thinking.Short = false // the body of a count need not say how long the reply may be, see chat.Usage.Short
	h.Count(w, r, &req.Request, h.WriteError, func(n int) any {
		return struct {
			InputTokens int `json:"input_tokens"`
		}{n}
	})
}

// read decodes a request. The caller closes its body, which is nil where the error was answered.
func (h handler) read(w http.ResponseWriter, r *http.Request, strict bool) (req *request, body *wire.Body) {
	body = h.Read(w, r, h.WriteError, func(v wire.Value) (err *chat.Error) {
		if req, err = decode(v); err == nil && strict {
			err = req.strict(v.Get("max_tokens"))
		}
		if err == nil {
			err = wire.Identify(r, v, &req.Request)
		}
		return err
	})
	return req, body
}

func (h handler) newReply(r *http.Request, req *request) reply {
	return reply{
		id: h.NewID("msg_"), model: req.Model, omitThinking: req.omitThinking, hideThinking: h.Thinking == chat.Off || h.Thinking == chat.Default && !req.asksThinking,
		requestID: wire.InfoFrom(r.Context()).RequestID, newID: h.NewID,
	}
}

// Statuses and error types by kind. https://docs.anthropic.com/en/api/errors
var (
	statuses = map[chat.ErrorKind]int{
		chat.Internal: 500, chat.Invalid: 400, chat.Unauthenticated: 401, chat.Forbidden: 403, chat.NotFound: 404,
		chat.TooLarge: 413, chat.ContextLength: 400, chat.Overloaded: 529, chat.RateLimited: 429, chat.TimedOut: 504,
	}
	errorTypes = map[chat.ErrorKind]string{
		chat.Internal: "api_error", chat.Invalid: "invalid_request_error", chat.Unauthenticated: "authentication_error",
		chat.Forbidden: "permission_error", chat.NotFound: "not_found_error", chat.TooLarge: "request_too_large",
		chat.ContextLength: "invalid_request_error", chat.Overloaded: "overloaded_error", chat.RateLimited: "rate_limit_error",
		chat.TimedOut: "timeout_error",
	}
)

type errorBody struct {
	Type      string      `json:"type"`
	Error     errorDetail `json:"error"`
	RequestID string      `json:"request_id,omitempty"`
}

type errorDetail struct {
	Type    string        `json:"type"`
	Message string        `json:"message"`
	Details *errorDetails `json:"details,omitempty"`
}

// errorDetails are for the codes that clients look at.
type errorDetails struct {
	Code string `json:"error_code"`
}

func newErrorBody(e *chat.Error, requestID string) errorBody {
	t, ok := errorTypes[e.Kind]
	if !ok {
		t = "api_error"
	}
	d := errorDetail{Type: t, Message: errorMessage(e)}
	if e.Code == threadNotFound {
		d.Details = &errorDetails{e.Code}
	}
	return errorBody{Type: "error", Error: d, RequestID: requestID}
}

// errorMessage has the wording of the two overflow errors exactly as Anthropic has it: Claude Code parses them, to
// compact the conversation on the first and to retry with a smaller max_tokens on the second.
func errorMessage(e *chat.Error) string {
	if e.Kind != chat.ContextLength {
		if e.Param != "" {
			return dotted(e.Param) + ": " + e.Msg
		}
		return e.Msg
	}
	n, limit := strconv.Itoa(e.Tokens), strconv.Itoa(e.Limit)
	if e.MaxTokens > 0 && e.Tokens < e.Limit {
		return "input length and `max_tokens` exceed context limit: " + n + " + " + strconv.Itoa(e.MaxTokens) + " > " + limit +
			", decrease input length or `max_tokens` and try again"
	}
	words := "prompt is too long: " + n + " tokens > " + limit + " maximum"
	if e.Advice != "" {
		words += ". " + e.Advice
	}
	return words
}

// dotted spells a JSON path as Anthropic does: messages.2.content.0.type.
func dotted(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}

// WriteError answers with e.
func (Protocol) WriteError(w http.ResponseWriter, r *http.Request, e *chat.Error) {
	wire.WriteErrorBody(w, r, e, wire.Status(e, statuses), newErrorBody(e, wire.InfoFrom(r.Context()).RequestID))
}
