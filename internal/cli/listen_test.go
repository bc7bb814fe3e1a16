package cli

import (
	"net"
	"net/netip"
	"reflect"
	"testing"
)

// What listens everywhere names addresses that other machines can call, not the wildcard or what only this one reaches.
func TestReachable(t *testing.T) {
	own := func() (all []netip.Addr) {
		for _, s := range []string{"127.0.0.1", "::1", "fe80::1", "2001:db8::5", "192.168.1.7", "169.254.9.9", "203.0.113.5", "fd00::7", "172.17.0.1"} {
			all = append(all, netip.MustParseAddr(s))
		}
		return all
	}
	for ip, want := range map[string][]string{
		"0.0.0.0":     {"http://192.168.1.7:80", "http://203.0.113.5:80", "http://172.17.0.1:80", "http://127.0.0.1:80"},
		"::":          {"http://192.168.1.7:80", "http://203.0.113.5:80", "http://172.17.0.1:80", "http://127.0.0.1:80"},
		"127.0.0.1":   {"http://127.0.0.1:80"},
		"::1":         {"http://[::1]:80"},
		"192.168.1.7": {"http://192.168.1.7:80"},
	} {
		if got := (&sockets{}).reachable(&net.TCPAddr{IP: net.ParseIP(ip), Port: 80}, 0, own()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", ip, got, want)
		}
	}
	if got := (&sockets{}).reachable(&net.TCPAddr{IP: net.IPv6unspecified, Port: 80}, 0, nil); len(got) != 1 || got[0] != "http://127.0.0.1:80" {
		t.Errorf("no addresses known: %q", got)
	}
	if got := (&sockets{}).reachable(&net.TCPAddr{IP: net.IPv6unspecified, Port: 80}, 0, []netip.Addr{netip.MustParseAddr("2001:db8::5")}); got[0] != "http://[2001:db8::5]:80" {
		t.Errorf("IPv6 only: %q", got)
	}
	for version, want := range map[int][]string{
		4: {"http://192.168.1.7:80", "http://203.0.113.5:80", "http://172.17.0.1:80", "http://127.0.0.1:80"},
		6: {"http://[2001:db8::5]:80", "http://[fd00::7]:80", "http://[::1]:80"},
	} {
		if got := (&sockets{}).reachable(&net.TCPAddr{IP: net.IPv6unspecified, Port: 80}, version, own()); !reflect.DeepEqual(got, want) {
			t.Errorf("IPv%d only: %q, want %q", version, got, want)
		}
	}
}
