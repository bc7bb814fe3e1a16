package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// managePrefix begins the routes that change what the server has, and what is on the disk. Nobody reaches them by being on this
// machine alone: pages of other origins are on it too.
const managePrefix = "/hearth/"

// tokenCookie is the cookie that / gives to pages of this server.
const tokenCookie = "hearth_token"

// equal compares secrets in a time that does not depend on what they have in common.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return a != "" && b != "" && subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// hasToken reports a caller who shows the token made at start: who can read the file that holds it.
func (s *Server) hasToken(r *http.Request) bool { return equal(credential(r.Header), s.o.Token) }

// hasCookie reports a page that this server has served itself. A browser sends the cookie for every port of a host, so the
// origin is looked at too: by Sec-Fetch-Site and Origin, one of which browsers send with whatever may change something. Forms
// cannot send JSON.
func (s *Server) hasCookie(r *http.Request) bool {
	c, err := r.Cookie(tokenCookie)
	if err != nil || !equal(c.Value, s.o.Token) || !s.guard.sure(r.Host) || !sameOrigin(r) {
		return false
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json" && (r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "")
}

// sameOrigin reports requests that no page of another origin makes, as far as the browser tells.
func sameOrigin(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return !crossOrigin(r) && (site == "" || site == "none" || site == "same-origin")
}

// sure reports hosts that are this machine whatever a name server says: not those that a pattern for all lets through.
func (g guard) sure(header string) bool {
	h := hostname(header)
	if local(h) || g.names && singleLabel(h) || slices.ContainsFunc(g.hosts, func(p string) bool { return p != "*" && fits(p, h) }) {
		return true
	}
	a, err := netip.ParseAddr(h)
	return err == nil && a.Zone() == "" && slices.Contains(g.own(), a.Unmap())
}

// giveCookie gives the token to pages of this server.
func (s *Server) giveCookie(w http.ResponseWriter, r *http.Request) {
	if s.o.Token == "" || s.keys.Asked() || !s.guard.sure(r.Host) || !sameOrigin(r) {
		return
	}
	give := func(path string) {
		http.SetCookie(w, &http.Cookie{Name: tokenCookie, Value: s.o.Token, Path: path, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode})
	}
	if s.o.Manager != nil {
		give(managePrefix)
	}
	if s.o.MCP != nil {
		give("/v1" + mcpPath)
	}
}

// manages reports requests for the routes that want more than to come from this machine.
func (s *Server) manages(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, managePrefix) || s.o.MCP != nil && ofMCP(r)
}

// noToken is what callers are told who have none.
const noToken = "this needs the token that the server made when it started, as Authorization: Bearer; hearth ls, ps, load and stop find it themselves, and docs/manage.md says where it stands"

// checkManage refuses callers of these routes who show neither the token, nor its cookie, nor a key where there are some. It
// comes before the guard: whoever has none of them is told no more than that. Preflights, which cannot have any, are the
// guard's.
func (s *Server) checkManage(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		preflights := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
		if s.keys.Asked() || !s.manages(r) || preflights || s.hasToken(r) || s.hasCookie(r) {
			next.ServeHTTP(w, r)
			return
		}
		s.refuse(w, r, "", noToken)
	})
}

// checkOperator refuses keys of others than operators.
func (s *Server) checkOperator(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !wire.InfoFrom(r.Context()).Operator {
			s.fail(w, r, &chat.Error{Kind: chat.Forbidden, Code: "operator_only", Msg: "this is for the operator's key"})
			return
		}
		next.ServeHTTP(w, r)
	})
}
