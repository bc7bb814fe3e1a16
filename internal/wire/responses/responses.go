// Package responses is OpenAI's Responses API, at its own paths and at Azure's: it decodes bodies into chat.Requests and
// encodes chat.Events as response objects and as their events. It speaks package openai's nouns: errors, media, custom tools,
// formats and sampling fields are the same there and here. Shapes follow the types of the official SDKs (Python openai 3.52)
// and the Open Responses schema. Responses and conversations are stored, and built on, by package store. docs/responses.md has
// every field.
package responses

import (
	"context"
	"net/http"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/store"
	"hearth/internal/wire"
	"hearth/internal/wire/openai"
)

// Protocol implements wire.Protocol.
type Protocol struct {
	// Protocol has the settings of OpenAI's other routes, and writes errors.
	openai.Protocol
	// RefuseHosted refuses tools that only work where OpenAI runs them, such as web_search; else the model does not learn of
	// them.
	RefuseHosted bool
	// Store keeps responses; nil keeps none.
	Store *store.Store
	// Sockets is how many WebSockets may be open at once.
	Sockets int
}

// azure is where Azure has this API, see package openai.
const azure = "/openai"

// Mount registers the routes.
func (p Protocol) Mount(mux wire.Mux, o wire.Options) {
	o = o.WithDefaults()
	if o.Server == nil {
		o.Server = wire.Alone{Handler: mux}
	}
	h := handler{p, o, newActive(), &sockets{most: o.Bodies.Most()}}
	create := http.HandlerFunc(h.responses)
	count := wire.Method(p.WriteError, http.MethodPost, h.inputTokens)
	compact := wire.Method(p.WriteError, http.MethodPost, h.compact)
	for _, base := range []string{"", azure} {
		wire.Handle(mux, base, "/responses", create)
		wire.Handle(mux, base, "/responses/input_tokens", count)
		wire.Handle(mux, base, "/responses/compact", compact)
		wire.Handle(mux, base, "/responses/{id}", wire.Methods(p.WriteError, map[string]http.HandlerFunc{http.MethodGet: h.retrieve, http.MethodDelete: h.remove}))
		wire.Handle(mux, base, "/responses/{id}/cancel", wire.Method(p.WriteError, http.MethodPost, h.cancelOne))
		wire.Handle(mux, base, "/responses/{id}/input_items", wire.Method(p.WriteError, http.MethodGet, h.inputItems))
		h.mountConversations(mux, base)
	}
	mux.Handle(azure+"/deployments/{name}/responses", h.deployment(h.responses))
	mux.Handle(azure+"/deployments/{name}/responses/input_tokens", h.deployment(count.ServeHTTP))
	mux.Handle(azure+"/deployments/{name}/responses/compact", h.deployment(compact.ServeHTTP))
}

// Speaks claims this API's paths.
func (Protocol) Speaks(r *http.Request) bool {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, azure), "/v1")
	if rest, ok := strings.CutPrefix(path, "/deployments/"); ok {
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "responses" || first == "conversations"
}

// keepAlive is what a stream says while nothing is said.
const keepAlive = ": keep-alive\n\n"

type handler struct {
	Protocol
	wire.Options
	active  *active
	sockets *sockets
}

// deployment has f answer for the deployment that the path names.
func (h handler) deployment(f http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f(w, r.WithContext(chat.WithDeployment(r.Context(), r.PathValue("name"))))
	})
}

// responses answers a request, also one for a WebSocket.
func (h handler) responses(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		h.socket(w, r)
		return
	}
	if r.Method == http.MethodGet && r.ProtoMajor == 2 && r.Header.Get("Sec-WebSocket-Version") != "" { // where Upgrade has no place
		http.Error(w, "WebSockets begin as requests of HTTP/1.1 here: connect with that (http/1.1 in ALPN), or send the request by POST", http.StatusUpgradeRequired)
		return
	}
	wire.Method(h.WriteError, http.MethodPost, h.create).ServeHTTP(w, r)
}

func (h handler) create(w http.ResponseWriter, r *http.Request) {
	if j, ok := r.Context().Value(jobKey{}).(*job); ok {
		h.work(w, r, j)
		return
	}
	req, body := h.read(w, r, h.decoder(r))
	switch {
	case body == nil:
	case req.body.Background:
		h.background(w, r, req, body)
	default:
		defer body.Close()
		h.generate(w, r, req, body, nil)
	}
}

// generate answers with a response; j is the job that it is, nil if its client waits for it.
func (h handler) generate(w http.ResponseWriter, r *http.Request, req *request, body *wire.Body, j *job) {
	h.Queued, h.Again = body.Close, req.compacts || req.threshold > 0
	rep := newReply(h, req)
	fail := h.WriteError
	release, err := h.hold(r, req)
	if err != nil {
		fail(w, r, err)
		return
	}
	defer release()
	x := exchangeOf(r.Context())
	if x != nil {
		h.Frame = x.frame
		defer func() { x.failed = rep.body.Status == failed }()
	}
	if req.warm {
		h.Models = warming{h.Models}
	} else {
		h.Models = managing{h.Models, rep}
	}
	if req.kept {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		r = r.WithContext(ctx)
		rep.keep(h, r, cancel, j)
		rep.kept.release = release
		defer rep.abandon()
		h.Models = keeping{h.Models, rep.enter, j != nil}
		if run := rep.kept.run; run.events != nil {
			h.Frame = run.events.add
		}
		fail = rep.failing(h.WriteError)
	}
	if req.stream || x != nil {
		h.Stream(w, r, &req.Request, fail, keepAlive, func(s *wire.Stream) wire.StreamEncoder {
			rep.out = s
			return streamEncoder{rep}
		})
		return
	}
	h.Collect(w, r, &req.Request, fail, rep)
}

// inputTokens counts the tokens of a prompt.
func (h handler) inputTokens(w http.ResponseWriter, r *http.Request) {
	req, body := h.read(w, r, h.decoder(r))
	if body == nil {
		return
	}
	defer body.Close()
	h.Count(w, r, &req.Request, h.WriteError, func(n int) any {
		return struct {
			Object      string `json:"object"`
			InputTokens int    `json:"input_tokens"`
		}{"response.input_tokens", n}
	})
}

// leastStrict is the smallest limit of tokens that OpenAI takes.
const leastStrict = 16

// read reads a body; a nil body means that the error was answered.
func (h handler) read(w http.ResponseWriter, r *http.Request, d *decoder) (*request, *wire.Body) {
	var req *request
	body := h.Read(w, r, h.WriteError, func(v wire.Value) (err *chat.Error) {
		if req, err = decode(v, d); err != nil {
			return err
		}
		if h.Strict {
			if err := wire.Strict(&req.Request, leastStrict, v.Get("max_output_tokens")); err != nil {
				return err
			}
		}
		req.Model = openai.Deployed(r, req.Model)
		if err := wire.Identify(r, v, &req.Request); err != nil {
			return err
		}
		if n := req.body.MaxToolCalls; n != nil && req.MCP != nil {
			req.MCP.Calls = *n
		}
		return nil
	})
	return req, body
}
