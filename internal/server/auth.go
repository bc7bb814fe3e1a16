package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// keys holds digests of the accepted credentials: comparing digests takes the same time whatever the candidate's
// length and content.
type keys [][sha256.Size]byte

func newKeys(plain []string) keys {
	var k keys
	for _, p := range plain {
		if p != "" {
			k = append(k, sha256.Sum256([]byte(p)))
		}
	}
	return k
}

// accept reports whether candidate is one of the keys, comparing with all of them. The caller is a digest that does not
// tell the key.
func (k keys) accept(candidate string) (caller [16]byte, ok bool) {
	sum := sha256.Sum256([]byte(candidate))
	found := 0
	for i := range k {
		found |= subtle.ConstantTimeCompare(k[i][:], sum[:])
	}
	again := sha256.Sum256(append([]byte("hearth caller\x00"), sum[:]...))
	return [16]byte(again[:16]), found == 1
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

// checkKey refuses callers without a key, if there are any. /health and / stay open to probes.
func (s *Server) checkKey(next http.Handler) http.Handler {
	if len(s.keys) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" || r.URL.Path == "/health" {
			next.ServeHTTP(w, r)
			return
		}
		c := credential(r.Header)
		if c == "" {
			s.refuse(w, r, "an API key is required: send it as Authorization: Bearer, x-api-key or api-key")
			return
		}
		caller, ok := s.keys.accept(c)
		if !ok {
			s.refuse(w, r, "invalid API key")
			return
		}
		info := wire.InfoFrom(r.Context())
		if len(s.keys) > 1 { // one key for all says nothing about who calls
			info.Caller = caller
		}
		if s.o.Isolate {
			info.Salt = caller
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, msg string) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	s.fail(w, r, &chat.Error{Kind: chat.Unauthenticated, Msg: msg})
}
