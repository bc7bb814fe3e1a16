package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/server"
)

// listen opens the sockets of cfg. With no host, or localhost, that is both loopback addresses on one port, so that
// "localhost" reaches us whichever way it resolves; a machine without IPv6 has just the first.
func listen(cfg *config.Config) ([]net.Listener, error) {
	if host := strings.Trim(cfg.Host, "[]"); host != "" && host != "localhost" {
		l, err := open("tcp", host, cfg.Port)
		if err != nil {
			return nil, explain(err, host, cfg.Port, false)
		}
		return []net.Listener{l}, nil
	}
	const tries = 8 // a free port of one address may be taken on the other
	for i := 0; ; i++ {
		four, err := open("tcp4", "127.0.0.1", cfg.Port)
		if err != nil {
			return nil, explain(err, "127.0.0.1", cfg.Port, false)
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
			return nil, explain(err, "::1", port, false)
		}
	}
}

// listenOn opens sockets as the flag names them, all or none. Those that it names by descriptors come first: nothing that is
// opened here takes their numbers.
func listenOn(cfg *config.Config) (ls []net.Listener, given []passed, err error) {
	for _, name := range cfg.Listen {
		if fd, ok := strings.CutPrefix(name, config.FDPrefix); ok {
			n, _ := strconv.Atoi(fd) // it was checked
			given = append(given, passed{fd: n, from: cfg.Origin("listen")})
		}
	}
	taken, err := takeAll(given)
	if err != nil {
		return nil, nil, err
	}
	for i, name := range cfg.Listen {
		var l net.Listener
		if path, unix := strings.CutPrefix(name, unixPrefix); unix {
			l, err = openUnix(absolute(path))
		} else if strings.HasPrefix(name, config.FDPrefix) {
			l, taken = taken[0], taken[1:]
		} else {
			host, port, _ := net.SplitHostPort(name) // it was checked
			n, _ := strconv.Atoi(port)
			if l, err = open("tcp", host, n); err != nil {
				err = explain(err, host, n, true)
			}
		}
		if err != nil {
			closeAll(append(ls[:i:i], taken...))
			return nil, nil, err
		}
		ls = append(ls, l)
	}
	return ls, given, nil
}

func open(network, host string, port int) (net.Listener, error) {
	return net.Listen(network, net.JoinHostPort(host, strconv.Itoa(port)))
}

// explain says in one sentence why an address cannot be listened on, and what to type: --port, or --listen where that named it.
func explain(err error, host string, port int, listen bool) error {
	with, address := func(port int) string { return fmt.Sprintf("--port %d", port) }, "--host takes an address of this machine, 0.0.0.0 for all of them"
	if listen {
		with = func(port int) string { return "--listen " + net.JoinHostPort(host, strconv.Itoa(port)) }
		address = "--listen takes an address of this machine before its port, 0.0.0.0 for all of them"
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		free := port + 1
		if port == 65535 {
			free = 8080
		}
		return console.Hintf(fmt.Errorf("address %s is already in use", net.JoinHostPort(host, strconv.Itoa(port))),
			"stop what listens there, or use another port: hearth serve %s", with(free))
	case errors.Is(err, syscall.EACCES):
		return console.Hintf(fmt.Errorf("no permission to listen on port %d", port), "ports from 1024 need none: hearth serve %s", with(8080))
	}
	return console.Hintf(fmt.Errorf("listen on %s, port %d: %w", host, port, err), "%s", address)
}

// sockets are what a server listens on, and what it shows there.
type sockets struct {
	listeners   []net.Listener
	certificate *certificate // nil: plain HTTP
	given       []passed     // those of the listeners that others have opened
}

// openSockets listens, after the certificate of cfg is read: on the sockets that this program was activated with, if there are
// any, else on those of cfg.
func openSockets(cfg *config.Config, activated []passed) (*sockets, error) {
	c, err := newCertificate(cfg)
	if err != nil {
		return nil, err
	}
	s := &sockets{certificate: c}
	switch {
	case len(activated) > 0:
		s.given = activated
		s.listeners, err = takeAll(activated)
	case len(cfg.Listen) > 0:
		s.listeners, s.given, err = listenOn(cfg)
	default:
		s.listeners, err = listen(cfg)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// set has a server speak TLS where it does.
func (s *sockets) set(o *server.Options) {
	o.Network = s.public()
	if s.certificate != nil {
		o.Certificate = s.certificate.get
	}
}

// describe notes how programs of this machine reach the server.
func (s *sockets) describe(to *state) {
	on := slices.IndexFunc(s.listeners, func(l net.Listener) bool { return l.Addr().Network() == "tcp" }) // which agents can call
	if on < 0 {
		to.URL = unixURL(s.listeners[0].Addr())
		return
	}
	a, version := s.listeners[on].Addr().(*net.TCPAddr), ipVersion(s.listeners[on])
	ip := a.IP.String()
	if a.IP.IsUnspecified() {
		ip = loopback(version)
	}
	to.URL, to.Dial, to.Certificate, to.Mark = s.url(ip, a.Port), "", "", ""
	c := s.certificate
	if c == nil {
		return
	}
	hosts := []string{ip}
	if a.IP.IsLoopback() || a.IP.IsUnspecified() {
		hosts = append(hosts, "localhost")
	}
	if a.IP.IsUnspecified() {
		for _, own := range ofVersion(config.OwnAddresses(), version) {
			hosts = append(hosts, own.String())
		}
	}
	host := cmp.Or(c.host(hosts...), ip)
	if host != ip {
		to.URL, to.Dial = s.url(host, a.Port), net.JoinHostPort(ip, strconv.Itoa(a.Port))
	}
	if to.Mark = mark(c.get().Leaf); !c.trusted(host) {
		to.Certificate = absolute(c.file)
	}
}

// absolute is a path that does not depend on where a program runs.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// url is that of a host here.
func (s *sockets) url(host string, port int) string {
	scheme := "http"
	if s.certificate != nil {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// mostURLs is how many addresses the first lines name: machines with containers have many.
const mostURLs = 4

// urls are those that others can call.
func (s *sockets) urls() (all []string) {
	for _, l := range s.listeners {
		if a, ok := l.Addr().(*net.TCPAddr); ok {
			all = append(all, s.reachable(a, ipVersion(l), config.OwnAddresses())...)
		} else {
			all = append(all, unixURL(l.Addr()))
		}
	}
	return all
}

// loopback is that of an IP version.
func loopback(version int) string {
	if version == 6 {
		return "::1"
	}
	return "127.0.0.1"
}

// ofVersion are the addresses of an IP version, which are all of them if it is 0.
func ofVersion(all []netip.Addr, version int) []netip.Addr {
	return slices.DeleteFunc(all, func(a netip.Addr) bool { return version == 4 && !a.Is4() || version == 6 && !a.Is6() })
}

// reachable are the URLs of a listener at a: where it listens on every address of an IP version, or of both, those of own that
// others can call, IPv4 first, then loopback.
func (s *sockets) reachable(a *net.TCPAddr, version int, own []netip.Addr) []string {
	if !a.IP.IsUnspecified() {
		return []string{s.url(a.IP.String(), a.Port)}
	}
	own = ofVersion(own, version)
	slices.SortStableFunc(own, func(x, y netip.Addr) int { return x.BitLen() - y.BitLen() })
	var urls []string
	for _, x := range own {
		if !x.IsLoopback() && !x.IsLinkLocalUnicast() && len(urls) < mostURLs-1 {
			urls = append(urls, s.url(x.String(), a.Port))
		}
	}
	return append(urls, s.url(loopback(version), a.Port))
}

// public reports whether other machines can reach a listener.
func (s *sockets) public() bool {
	return slices.ContainsFunc(s.listeners, func(l net.Listener) bool {
		a, ok := l.Addr().(*net.TCPAddr)
		return ok && !a.IP.IsLoopback()
	})
}
