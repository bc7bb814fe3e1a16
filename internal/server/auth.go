package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/config"
	"hearth/internal/wire"
)

// keys are the accepted credentials, compared by digests: that takes the same time whatever the candidate's length and content.
type keys []config.Key

// accept finds the key that candidate is, comparing with all of them; nil: it is none. The caller is a digest that does not
// tell the key.
func (k keys) accept(candidate string) (key *config.Key, caller [16]byte) {
	sum := sha256.Sum256([]byte(candidate))
	found := -1
	for i := range k {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(k[i].Sum[:], sum[:]), i, found)
	}
	if found < 0 {
		return nil, caller
	}
	again := sha256.Sum256(append([]byte("hearth caller\x00"), sum[:]...))
	return &k[found], [16]byte(again[:16])
}

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

// checkKey refuses callers without a key, if there are any. Probes, / and /metrics stay open.
func (s *Server) checkKey(next http.Handler) http.Handler {
	if len(s.keys) == 0 {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info := wire.InfoFrom(r.Context())
			info.Operator, info.MCP = true, s.mcpAccess(s.hasToken(r))
			next.ServeHTTP(w, r)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" || probes(r.URL.Path) || r.URL.Path == metricsPath && s.o.Metrics != nil {
			next.ServeHTTP(w, r)
			return
		}
		if s.manages(r) && s.hasToken(r) { // whoever may read it is the operator
			wire.InfoFrom(r.Context()).Operator = true
			next.ServeHTTP(w, r)
			return
		}
		c := credential(r.Header)
		if c == "" {
			s.refuse(w, r, "", "an API key is required: send it as Authorization: Bearer, x-api-key or api-key")
			return
		}
		key, caller := s.keys.accept(c)
		if key == nil {
			s.refuse(w, r, chat.CodeWrongKey, "invalid API key")
			return
		}
		info := wire.InfoFrom(r.Context())
		info.Owner, info.MCP = caller, s.mcpAccess(true)
		info.Key, info.Operator = key.Name, key.Operator || len(s.keys) == 1
		if len(s.keys) > 1 { // one key for all says nothing about who calls
			info.Caller = caller
			s.shares.enter(info)
		}
		if s.o.Isolate {
			info.Salt = caller
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, code, msg string) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	s.fail(w, r, &chat.Error{Kind: chat.Unauthenticated, Code: code, Msg: msg})
}
