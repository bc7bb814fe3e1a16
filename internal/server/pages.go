package server

import (
	"io"
	"net/http"

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
