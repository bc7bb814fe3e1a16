package server

import (
	"net/http"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/webui"
	"hearth/internal/wire"
)

// credential returns what the client presents: x-api-key (Anthropic), which wins where several are sent, api-key
// (Azure), or a bearer token.
func credential(h http.Header) string {
	for _, name := range []string{"X-Api-Key", "Api-Key"} {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return ""
}

// checkKey finds out who asks. It refuses callers without a key, if there are any. Probes, pages, the description of the API and
// /metrics stay open.
func (s *Server) checkKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := wire.InfoFrom(r.Context())
		switch {
		case !s.keys.Asked():
			info.Operator, info.MCP = true, s.mcpAccess(s.hasToken(r))
		case webui.Has(r.URL.Path), r.URL.Path == apiDocPath, probes(r.URL.Path), r.URL.Path == metricsPath && s.o.Metrics != nil:
		case s.manages(r) && s.hasToken(r): // whoever may read it is the operator
			info.Operator = true
		default:
			c := credential(r.Header)
			if c == "" {
				s.refuse(w, r, "", "an API key is required: send it as Authorization: Bearer, x-api-key or api-key")
				return
			}
			client := s.keys.Client(c, s.o.Isolation)
			if client == nil {
				s.refuse(w, r, chat.CodeWrongKey, "invalid API key")
				return
			}
			info.Client, info.MCP = *client, s.mcpAccess(true)
			s.shares.enter(info)
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, code, msg string) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	s.fail(w, r, &chat.Error{Kind: chat.Unauthenticated, Code: code, Msg: msg})
}
