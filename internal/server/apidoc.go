package server

import (
	"net/http"
	"sync"

	"hearth/internal/apidoc"
	"hearth/internal/webui"
	"hearth/internal/wire"
)

// apiDocPath is where the description of the API is. It needs no key: it is the same for everybody.
const apiDocPath = "/openapi.json"

// mountAPIDoc registers that route. The document is made when somebody asks for it first.
func (s *Server) mountAPIDoc(mux wire.Mux) {
	doc := sync.OnceValue(func() *webui.File { return webui.NewFile(apiDocPath, apidoc.JSON(s.o.Version)) })
	mux.Handle(apiDocPath, wire.Method(s.fail, http.MethodGet, func(w http.ResponseWriter, r *http.Request) { doc().ServeHTTP(w, r) }))
}
