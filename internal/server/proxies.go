package server

import (
	"net/http"
	"net/netip"
	"strings"

	"hearth/internal/config"
)

// proxies are those who are believed whom they ask for.
type proxies config.Proxies

// mostForwarded bounds the bytes of a header with addresses that is read: proxies that are believed add to its end.
const mostForwarded = 4 << 10

// client is the address of who asks: that of the connection, or, where a trusted proxy has it, the last one that the proxy names
// and that is no trusted proxy's. An address that is not valid hides those before it. Clients of a Unix socket have none.
func (p *proxies) client(r *http.Request) netip.Addr {
	peer, ok := address(r.RemoteAddr)
	if !p.trusts(peer, ok) {
		return peer
	}
	for hops := forwarded(r.Header); len(hops) > 0; hops = hops[:len(hops)-1] {
		next, ok := address(hops[len(hops)-1])
		if !ok {
			return peer
		}
		if peer = next; !p.trusts(peer, true) {
			return peer
		}
	}
	return peer
}

// trusts reports an address whose word counts; one that is none is a Unix socket's.
func (p *proxies) trusts(a netip.Addr, valid bool) bool {
	if !valid {
		return p.Unix
	}
	for _, n := range p.Networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// forwarded are the addresses that proxies have written, the nearest last: of X-Forwarded-For, or else of Forwarded (RFC 7239).
func forwarded(h http.Header) []string {
	if list := joined(h["X-Forwarded-For"]); list != "" {
		return strings.Split(list, ",")
	}
	list := joined(h["Forwarded"])
	if list == "" {
		return nil
	}
	var out []string
	for _, hop := range strings.Split(list, ",") {
		addr := "" // a hop that does not say hides those before it
		for _, pair := range strings.Split(hop, ";") {
			if name, value, _ := strings.Cut(strings.TrimSpace(pair), "="); strings.EqualFold(name, "for") {
				addr = strings.Trim(value, `"`)
			}
		}
		out = append(out, addr)
	}
	return out
}

// joined is the end of a header that may stand there several times.
func joined(values []string) string {
	s := strings.Join(values, ",")
	if len(s) > mostForwarded {
		s = s[len(s)-mostForwarded:]
		_, s, _ = strings.Cut(s, ",") // what is cut is no address
	}
	return s
}

// address reads an address with or without a port, in brackets or not.
func address(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap(), true
	}
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return a.Unmap(), err == nil
}
