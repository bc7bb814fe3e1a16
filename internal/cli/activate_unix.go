//go:build unix

package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// takeOver listens on the socket that this program was started with as descriptor fd, which is closed then: the listener has one
// of its own. The file of a Unix socket stays when that is closed: it belongs to who made it.
func takeOver(fd int) (net.Listener, error) {
	// What was open before this program has no FD_CLOEXEC, or it would have been closed, and whatever Go opens has it.
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, errNotPassed
	}
	f := os.NewFile(uintptr(fd), "descriptor "+strconv.Itoa(fd))
	defer f.Close()
	if err := listens(fd); err != nil {
		return nil, err
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("cannot be listened on: %w", err)
	}
	return l, nil
}

// listens is why fd is not a stream socket, of TCP or Unix, that listens; nil: it is.
func listens(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("cannot be looked at: %w", err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
	case unix.S_IFIFO:
		return errors.New("is a pipe, not a socket")
	case unix.S_IFREG:
		return errors.New("is a file, not a socket")
	case unix.S_IFDIR:
		return errors.New("is a folder, not a socket")
	case unix.S_IFCHR:
		return errors.New("is a device, not a socket")
	default:
		return errors.New("is something else than a socket")
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return fmt.Errorf("cannot be looked at: %w", err)
	}
	if kind != unix.SOCK_STREAM {
		return errors.New("is a socket of messages, not one of streams")
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return errors.New("is neither a TCP socket nor a Unix socket")
	}
	port := 1 // any: a Unix socket that listens has a name
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		port = at.Port
	case *unix.SockaddrInet6:
		port = at.Port
	case *unix.SockaddrUnix:
	default:
		return errors.New("is neither a TCP socket nor a Unix socket")
	}
	if _, err := unix.Getpeername(fd); err == nil {
		return errors.New("is a connection, not a socket that listens")
	}
	on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if errors.Is(err, unix.ENOPROTOOPT) && port != 0 { // macOS does not say
		return listenAgain(fd)
	}
	if err != nil || on == 0 {
		return errNotListening
	}
	return nil
}

var errNotListening = errors.New("is a socket that does not listen")

// listenAgain changes nothing for a socket that listens already, and fails for one that cannot.
func listenAgain(fd int) error {
	if unix.Listen(fd, unix.SOMAXCONN) != nil {
		return errNotListening
	}
	return nil
}

// ipVersion is the only one, 4 or 6, that a TCP listener is reached over; 0: both. A wildcard address does not say.
func ipVersion(l net.Listener) (version int) {
	t, ok := l.(*net.TCPListener)
	if !ok {
		return 0
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // of one that is closed nothing is known
		at, err := unix.Getsockname(int(fd))
		if err != nil {
			return
		}
		switch at.(type) {
		case *unix.SockaddrInet4:
			version = 4
		case *unix.SockaddrInet6:
			if only, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_V6ONLY); err == nil && only != 0 {
				version = 6
			}
		}
	})
	return version
}
