package cli

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"hearth/internal/config"
)

// listen opens the sockets of cfg. With no host that is both loopback addresses on one port, so that "localhost" reaches
// us whichever way it resolves; a machine without IPv6 has just the first.
func listen(cfg *config.Config) ([]net.Listener, error) {
	if cfg.Host != "" {
		l, err := open("tcp", cfg.Host, cfg.Port)
		if err != nil {
			return nil, err
		}
		return []net.Listener{l}, nil
	}
	const tries = 8 // a free port of one address may be taken on the other
	for i := 0; ; i++ {
		four, err := open("tcp4", "127.0.0.1", cfg.Port)
		if err != nil {
			return nil, err
		}
		six, err := open("tcp6", "::1", four.Addr().(*net.TCPAddr).Port)
		switch {
		case err == nil:
			return []net.Listener{four, six}, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return []net.Listener{four}, nil
		}
		four.Close()
		if cfg.Port != 0 || i == tries {
			return nil, err
		}
	}
}

func open(network, host string, port int) (net.Listener, error) {
	l, err := net.Listen(network, net.JoinHostPort(host, strconv.Itoa(port)))
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		free := port + 1
		if port == 65535 {
			free = 8080
		}
		return nil, hintf(fmt.Errorf("address %s is already in use: %w", net.JoinHostPort(host, strconv.Itoa(port)), syscall.EADDRINUSE),
			"stop what listens there, or use another port: hearth serve --port %d", free)
	case errors.Is(err, syscall.EACCES):
		return nil, hintf(fmt.Errorf("no permission to listen on port %d: %w", port, syscall.EACCES),
			"ports from 1024 need none: hearth serve --port 8080")
	}
	return nil, hintf(fmt.Errorf("listen on %s port %d: %w", host, port, err), "--host takes an address of this machine, 0.0.0.0 for all of them")
}

// baseURL is how this machine reaches l.
func baseURL(l net.Listener) string {
	a := l.Addr().(*net.TCPAddr)
	host := a.IP.String()
	if a.IP.IsUnspecified() {
		host = "127.0.0.1"
		if a.IP.To4() == nil {
			host = "::1"
		}
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(a.Port))
}
