package cli

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"hearth/internal/config"
	"hearth/internal/console"
)

// listen opens the sockets of cfg. With no host, or localhost, that is both loopback addresses on one port, so that
// "localhost" reaches us whichever way it resolves; a machine without IPv6 has just the first.
func listen(cfg *config.Config) ([]net.Listener, error) {
	if host := strings.Trim(cfg.Host, "[]"); host != "" && host != "localhost" {
		l, err := open("tcp", host, cfg.Port)
		if err != nil {
			return nil, explain(err, host, cfg.Port)
		}
		return []net.Listener{l}, nil
	}
	const tries = 8 // a free port of one address may be taken on the other
	for i := 0; ; i++ {
		four, err := open("tcp4", "127.0.0.1", cfg.Port)
		if err != nil {
			return nil, explain(err, "127.0.0.1", cfg.Port)
		}
		port := four.Addr().(*net.TCPAddr).Port
		six, err := open("tcp6", "::1", port)
		switch {
		case err == nil:
			return []net.Listener{four, six}, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return []net.Listener{four}, nil
		}
		four.Close()
		if cfg.Port != 0 || i == tries {
			return nil, explain(err, "::1", port)
		}
	}
}

func open(network, host string, port int) (net.Listener, error) {
	return net.Listen(network, net.JoinHostPort(host, strconv.Itoa(port)))
}

// explain says in one sentence why an address cannot be listened on, and what to type.
func explain(err error, host string, port int) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		free := port + 1
		if port == 65535 {
			free = 8080
		}
		return console.Hintf(fmt.Errorf("address %s is already in use", net.JoinHostPort(host, strconv.Itoa(port))),
			"stop what listens there, or use another port: hearth serve --port %d", free)
	case errors.Is(err, syscall.EACCES):
		return console.Hintf(fmt.Errorf("no permission to listen on port %d", port), "ports from 1024 need none: hearth serve --port 8080")
	}
	return console.Hintf(fmt.Errorf("listen on %s, port %d: %w", host, port, err), "--host takes an address of this machine, 0.0.0.0 for all of them")
}

// baseURL is how this machine reaches l. What listens on every address listens on those of IPv4 too, whichever of the two
// wildcards it was given: so does net.Listen.
func baseURL(l net.Listener) string {
	a := l.Addr().(*net.TCPAddr)
	if a.IP.IsUnspecified() {
		return httpURL("127.0.0.1", a.Port)
	}
	return httpURL(a.IP.String(), a.Port)
}

func httpURL(host string, port int) string {
	return "http://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// mostURLs is how many addresses the first lines name: machines with containers have many.
const mostURLs = 4

// reachable are the URLs of a listener at a: where it listens on every address, those of own that others can call, IPv4 first,
// then loopback.
func reachable(a *net.TCPAddr, own []netip.Addr) []string {
	if !a.IP.IsUnspecified() {
		return []string{httpURL(a.IP.String(), a.Port)}
	}
	slices.SortStableFunc(own, func(x, y netip.Addr) int { return x.BitLen() - y.BitLen() })
	var urls []string
	for _, x := range own {
		if !x.IsLoopback() && !x.IsLinkLocalUnicast() && len(urls) < mostURLs-1 {
			urls = append(urls, httpURL(x.String(), a.Port))
		}
	}
	return append(urls, httpURL("127.0.0.1", a.Port))
}

// public reports whether other machines can reach a listener.
func public(ls []net.Listener) bool {
	return slices.ContainsFunc(ls, func(l net.Listener) bool { return !l.Addr().(*net.TCPAddr).IP.IsLoopback() })
}
