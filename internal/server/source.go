package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"hearth/internal/chat"
	"hearth/internal/wire"
)

// guard decides which Host and Origin headers may reach a server on this machine. A web page elsewhere can point a DNS
// name of its own at 127.0.0.1 and then read the replies; it cannot choose the Host header, which is that name. It can
// also post here from its own origin, which the browser states. So only hosts that mean this machine or its network are
// let through, and of pages only those that this machine itself serves, unless the operator names more: a page of another
// machine, however near, is somebody else's. Where a key is required that page has none, so every host will do.
type guard struct {
	hosts   []string // lower case; exact, *.suffix or *
	origins []string // lower case; at most one * each
	// names lets names without a dot through, which a network gives its machines and nobody can register.
	names bool
	own   func() []netip.Addr // addresses of this machine
}

func newGuard(o *Options) guard {
	g := guard{names: o.Network, own: o.Addresses}
	for _, h := range o.AllowedHosts {
		g.hosts = append(g.hosts, hostname(h))
	}
	for _, name := range o.HostNames {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		short, _, _ := strings.Cut(name, ".")
		g.hosts = append(g.hosts, name, short)
	}
	for _, o := range o.AllowedOrigins {
		g.origins = append(g.origins, strings.ToLower(strings.TrimSuffix(o, "/")))
	}
	return g
}

// hostname is a Host header or a flag's entry without port, brackets and final dot, in lower case.
func hostname(s string) string {
	if h, port, err := net.SplitHostPort(s); err == nil && strings.Trim(port, "0123456789") == "" {
		s = h
	} else if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// host reports whether a Host header is let through. An empty one (HTTP/1.0) comes from no browser.
func (g guard) host(header string) bool {
	if header == "" {
		return true
	}
	h := hostname(header)
	if local(h) || g.names && singleLabel(h) {
		return true
	}
	if a, err := netip.ParseAddr(h); err == nil && a.Zone() == "" && slices.Contains(g.own(), a.Unmap()) {
		return true
	}
	return slices.ContainsFunc(g.hosts, func(pattern string) bool { return fits(pattern, h) })
}

// origin reports whether pages of an Origin header may call: those on loopback, and those that patterns name.
func (g guard) origin(header string) bool {
	o := strings.ToLower(header)
	if slices.ContainsFunc(g.origins, func(pattern string) bool { return fits(pattern, o) }) {
		return true
	}
	u, err := url.Parse(o)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false // also "null", the origin of sandboxed pages and files
	}
	return loopback(hostname(u.Host))
}

// loopback reports hosts that are always this machine.
func loopback(h string) bool {
	if a, err := netip.ParseAddr(h); err == nil {
		return a.Zone() == "" && a.Unmap().IsLoopback()
	}
	return h == "localhost" || strings.HasSuffix(h, ".localhost")
}

// local reports hosts that only this machine or its own network can stand behind.
func local(h string) bool {
	if loopback(h) {
		return true
	}
	if a, err := netip.ParseAddr(h); err == nil {
		if strings.ContainsAny(a.Zone(), ".]") { // a zone may be any text, even what looks like a name
			return false
		}
		a = a.Unmap()
		return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified() || sharedNet.Contains(a)
	}
	return strings.HasSuffix(h, ".local") || strings.HasSuffix(h, ".internal")
}

// singleLabel reports host names without a dot, such as compose services and machines of a local network have.
func singleLabel(h string) bool {
	return h != "" && strings.Trim(h, "abcdefghijklmnopqrstuvwxyz0123456789-_") == "" && strings.ContainsFunc(h, unicode.IsLetter)
}

// sharedNet is RFC 6598 space, which overlay networks give their machines.
var sharedNet = netip.MustParsePrefix("100.64.0.0/10")

// fits reports whether s is of a pattern in which one * stands for any text that is not empty; * alone takes everything.
func fits(pattern, s string) bool {
	if pattern == "" {
		return false
	}
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	return pattern == "*" || len(s) > len(before)+len(after) && strings.HasPrefix(s, before) && strings.HasSuffix(s, after)
}

// exposed are the headers of replies that pages may read.
var exposed = strings.ToLower(strings.Join(wire.PromptHeaders[:], ", ")) + ", server-timing, request-id, x-request-id, x-should-retry, retry-after, retry-after-ms, " +
	"x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, " +
	"anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, anthropic-ratelimit-requests-reset"

// checkSource applies the guard, answers CORS preflights and marks replies readable for the pages let through.
func (s *Server) checkSource(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.keys.Asked() && !s.guard.host(r.Host) {
			s.fail(w, r, strangeHost(r))
			return
		}
		origin := r.Header.Get("Origin")
		if origin == "" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Add("Vary", "Origin")
		if !s.guard.origin(origin) {
			s.fail(w, r, strangeOrigin(r))
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", exposed)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			preflight(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func strangeHost(r *http.Request) *chat.Error {
	return &chat.Error{Kind: chat.Forbidden, Code: "host_not_allowed",
		Msg: "requests for host " + wire.Quote(r.Host) + " are not allowed; start hearth with --allowed-hosts " + flagValue(hostname(r.Host)) + " to allow them"}
}

func strangeOrigin(r *http.Request) *chat.Error {
	origin := r.Header.Get("Origin")
	return &chat.Error{Kind: chat.Forbidden, Code: "origin_not_allowed",
		Msg: "requests from web pages of " + wire.Quote(origin) + " are not allowed; start hearth with --allowed-origins " + flagValue(origin) + " to allow them"}
}

func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, OPTIONS")
	if want := r.Header.Get("Access-Control-Request-Headers"); want != "" {
		h.Set("Access-Control-Allow-Headers", want)
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// flagValue shows a value to paste after a flag; one that is not plain is left to the reader.
func flagValue(s string) string {
	plain := s != "" && len(s) <= 100
	for _, c := range s {
		plain = plain && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(".-_:/", c))
	}
	if !plain {
		return "VALUE"
	}
	return s
}
