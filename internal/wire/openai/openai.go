// Package openai is OpenAI's Chat Completions and Completions API, at its own paths and at Azure's: it decodes bodies into
// chat.Requests and encodes chat.Events as completions, chunks and errors. The server mounts it; it never sees templates
// or the engine. Shapes follow the types of the official SDKs (Python openai 3.52, Go openai-go/v3 3.95) and, for reasoning
// and the extra sampling fields, what mlx-lm, vLLM and their clients have in common. Unknown fields are ignored. What a
// response_format asks for is put to the model in words too. docs/openai.md has every field.
package openai

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// Protocol implements wire.Protocol.
type Protocol struct {
	// Thinking is shown unless this is Off, in the fields that Reasoning names: reasoning_content, reasoning, or "" for
	// both.
	Thinking  chat.Toggle
	Reasoning string
	// Strict refuses what OpenAI refuses and a local server could do without: a limit of tokens that does not fit behind the
	// prompt, and those that stand for what fits.
	Strict bool
	// Unprocessable answers wrong requests with 422, as some older servers do, in place of 400.
	Unprocessable bool
}

// Mount registers the routes.
func (p Protocol) Mount(mux wire.Mux, o wire.Options) {
	h := handler{Protocol: p, Options: o.WithDefaults()}
	for path, f := range map[string]http.HandlerFunc{
		"/chat/completions": h.chat, "/completions": h.completions, "/embeddings": h.embeddings, "/rerank": h.rerank,
	} {
		post := wire.Method(p.WriteError, http.MethodPost, f)
		wire.Handle(mux, "", path, post)
		wire.Handle(mux, azure, path, post)
	}
	// Cohere's clients post to v2.
	mux.Handle("/v2/rerank", wire.Method(p.WriteError, http.MethodPost, h.rerank))
	wire.MountModels(mux, azure, h.Options, p.WriteError)
	mux.HandleFunc(azure+"/deployments/{rest...}", h.deployment)
}

// Speaks claims this API's paths and, of the models routes, what no other protocol's header claims.
func (Protocol) Speaks(r *http.Request) bool {
	if strings.HasPrefix(r.URL.Path, azure+"/") {
		return true
	}
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v1"), "/v2")
	return slices.Contains([]string{"/chat/completions", "/completions", "/embeddings", "/rerank", "/models"}, path) || strings.HasPrefix(path, "/models/")
}

type handler struct {
	Protocol
	wire.Options
}

func (h handler) chat(w http.ResponseWriter, r *http.Request) {
	var req *request
	body := h.Read(w, r, h.WriteError, func(v wire.Value) (err *chat.Error) {
		if req, err = decode(v); err == nil {
			err = h.complete(r, v, req, 1)
		}
		return err
	})
	if body == nil {
		return
	}
	defer body.Close()
	h.Queued = body.Close
	rep := reply{
		id: h.NewID("chatcmpl-"), created: h.Now().Unix(), model: req.Model, fingerprint: "hearth-" + h.Version,
		choices: max(req.N, 1), logprobs: req.Logprobs, newID: h.NewID, custom: req.custom,
		asContent: h.Thinking != chat.Off && h.Reasoning != "reasoning", asReasoning: h.Thinking != chat.Off && h.Reasoning != "reasoning_content",
	}
	if req.stream {
		h.Stream(w, r, &req.Request, h.WriteError, pingFrame, func(s *wire.Stream) wire.StreamEncoder {
			return newStreamEncoder(s, rep, req.includeUsage)
		})
		return
	}
	h.Collect(w, r, &req.Request, h.WriteError, newCollectEncoder(rep))
}

// complete fills in what of a request is not in its body's own fields. Strict refuses limits of tokens below least.
func (h handler) complete(r *http.Request, body wire.Value, req *request, least int) *chat.Error {
	if h.Strict {
		if err := wire.Strict(&req.Request, least, body.Get("max_completion_tokens"), body.Get("max_tokens")); err != nil {
			return err
		}
	}
	req.Model = Deployed(r, req.Model)
	return wire.Identify(r, body, &req.Request)
}

// Statuses, error types and codes by kind. https://platform.openai.com/docs/guides/error-codes
var (
	statuses = map[chat.ErrorKind]int{
		chat.Internal: 500, chat.Invalid: 400, chat.Unauthenticated: 401, chat.Forbidden: 403, chat.NotFound: 404,
		chat.TooLarge: 413, chat.ContextLength: 400, chat.Overloaded: 503, chat.RateLimited: 429, chat.TimedOut: 504,
	}
	errorTypes = map[chat.ErrorKind]string{
		chat.Internal: "server_error", chat.Overloaded: "server_error", chat.RateLimited: "rate_limit_error", chat.TimedOut: "server_error",
	}
	errorCodes = map[chat.ErrorKind]string{
		chat.Unauthenticated: "invalid_api_key", chat.ContextLength: "context_length_exceeded",
		chat.Overloaded: "server_overloaded", chat.RateLimited: "rate_limit_exceeded", chat.TooLarge: "request_too_large",
		chat.TimedOut: "timeout",
	}
)

type errorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail is an error in this API's words.
type ErrorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// NewErrorDetail is what this API says of an error.
func NewErrorDetail(e *chat.Error) ErrorDetail {
	d := ErrorDetail{Message: e.Error(), Type: errorTypes[e.Kind]}
	if d.Type == "" {
		d.Type = "invalid_request_error"
	}
	if e.Param != "" {
		d.Param = &e.Param
	}
	code := e.Code
	if code == "" {
		code = errorCodes[e.Kind]
	}
	if code != "" {
		d.Code = &code
	}
	switch {
	case e.Kind == chat.ContextLength:
		d.Message = contextMessage(e)
	case e.Kind == chat.Unauthenticated && e.Code == chat.CodeWrongKey:
		// The first sentence is OpenAI's.
		d.Message = "Incorrect API key provided. It has to be one of those that this server was started with."
	}
	return d
}

// contextMessage is OpenAI's wording, which clients match, with what there is to add to it.
func contextMessage(e *chat.Error) string {
	words := fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.",
		e.Limit, e.Tokens)
	if e.MaxTokens > 0 {
		words = fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the messages or completion.",
			e.Limit, e.Tokens+e.MaxTokens, e.Tokens, e.MaxTokens)
	}
	if e.Advice != "" {
		words += " " + e.Advice
	}
	return words
}

// TellRate implements wire.Protocol.
func (Protocol) TellRate(h http.Header, rate wire.Rate) {
	h.Set("X-Ratelimit-Limit-Requests", strconv.Itoa(rate.Limit))
	h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(rate.Left))
	h.Set("X-Ratelimit-Reset-Requests", (rate.Reset + time.Millisecond - 1).Truncate(time.Millisecond).String())
}

// WriteError answers with e.
func (p Protocol) WriteError(w http.ResponseWriter, r *http.Request, e *chat.Error) {
	status := wire.Status(e, statuses)
	if p.Unprocessable && e.Kind == chat.Invalid && status == http.StatusBadRequest {
		status = http.StatusUnprocessableEntity
	}
	wire.WriteErrorBody(w, r, e, status, errorBody{NewErrorDetail(e)})
}
