package server

import (
	"encoding/json"
	"io"
	"net/http"

	"hearth/internal/chat"
	"hearth/internal/webui"
	"hearth/internal/wire"
)

// mountPages registers the pages, but for that of / (root), and what they are made of.
func (s *Server) mountPages(mux wire.Mux) {
	show := wire.Method(s.fail, http.MethodGet, func(w http.ResponseWriter, r *http.Request) {
		if f := webui.Find(r.URL.Path); f != nil {
			f.ServeHTTP(w, r)
			return
		}
		s.notFound(w, r)
	})
	for _, path := range webui.Pages() {
		if path != "/" {
			mux.Handle(path, show)
		}
	}
	mux.Handle(webui.Prefix, show)
	wire.Handle(mux, "", markdownPath, wire.Method(s.fail, http.MethodPost, s.markdown))
}

// markdownPath is where texts of Markdown are made HTML.
const markdownPath = "/markdown"

// maxMarkdown bounds the body of such a request, in bytes.
const maxMarkdown = 256 << 10

// markdown renders what is finished of answers for the page.
func (s *Server) markdown(w http.ResponseWriter, r *http.Request) {
	text, err := readSmall(w, r, maxMarkdown)
	if err != nil {
		s.fail(w, r, chat.AsError(err))
		return
	}
	var q struct {
		Texts []string `json:"texts"`
	}
	if json.Unmarshal(text, &q) != nil || q.Texts == nil {
		s.fail(w, r, chat.Invalidf("texts", "a list of texts is needed here"))
		return
	}
	out := make([]string, 0, len(q.Texts))
	for _, t := range q.Texts {
		if r.Context().Err() != nil {
			return
		}
		out = append(out, webui.Markdown(t))
	}
	wire.WriteJSON(w, http.StatusOK, map[string][]string{"html": out})
}

// ofPage reports what a page asks for again and again by itself.
func ofPage(path string) bool {
	return path != "/" && webui.Has(path) || path == "/v1"+markdownPath || path == markdownPath
}

// root answers browsers with the page, and all others with a line of text.
func (s *Server) root(w http.ResponseWriter, r *http.Request) {
	s.giveCookie(w, r)
	w.Header().Add("Vary", "Accept")
	if webui.Accepts(r.Header, "Accept", "text/html") {
		webui.Find("/").ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "hearth is running. APIs: POST /v1/messages, POST /v1/chat/completions, POST /v1/responses, GET /v1/models; state: GET /health, GET /v1/status; models: GET /hearth/models\n")
}
