package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"hearth/internal/console"
)

// unixPrefix begins the URL of a server that listens on a Unix socket: the path follows, or @ and the name of an abstract one,
// which only others can have opened.
const unixPrefix = "unix:"

func unixURL(a net.Addr) string {
	if name := a.String(); strings.HasPrefix(name, "@") {
		return unixPrefix + name
	}
	return unixPrefix + absolute(a.String())
}

// socketPathMax is the longest path of a Unix socket, in bytes, that all systems take: macOS has 104 with a zero at the end.
const socketPathMax = 103

// staleTimeout is how long whoever listens on a socket that is there has to answer.
const staleTimeout = time.Second

// openUnix listens on a Unix socket at path, which this account alone may use. One that nobody listens on any more, as a server
// that was killed leaves it, gives way.
func openUnix(path string) (net.Listener, error) {
	if len(path) > socketPathMax {
		return nil, console.Hintf(fmt.Errorf("listen on unix:%s: the path has %d bytes, and that of a socket may have %d", path, len(path), socketPathMax),
			"use a shorter one, such as unix:/run/hearth/hearth.sock")
	}
	if err := clearStale(path); err != nil {
		return nil, err
	}
	l, err := privately(func() (net.Listener, error) { return net.Listen("unix", path) })
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	var made fs.FileInfo
	if err == nil {
		made, err = os.Lstat(path)
	}
	switch {
	case err == nil:
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		return &unixListener{Listener: l, path: path, made: made}, nil
	case l != nil:
		l.Close()
	}
	hint := "its folder has to be there, and this account has to be able to write to it"
	if errors.Is(err, syscall.EADDRINUSE) {
		hint = "another server was faster: use another path"
	}
	return nil, console.Hintf(fmt.Errorf("listen on unix:%s: %w", path, err), "%s", hint)
}

// clearStale removes a socket that nobody listens on. Whatever else is at path stays.
func clearStale(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && st.Mode().Type() != fs.ModeSocket {
		return console.Hintf(fmt.Errorf("listen on unix:%s: there is something else than a socket", path), "use another path, or remove it")
	}
	var conn net.Conn
	if err == nil {
		conn, err = net.DialTimeout("unix", path, staleTimeout)
	}
	switch {
	case err == nil:
		conn.Close()
		return console.Hintf(fmt.Errorf("listen on unix:%s: a server answers there", path), "stop it, or use another path")
	case errors.Is(err, syscall.ECONNREFUSED):
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return console.Hintf(fmt.Errorf("listen on unix:%s: a socket is there, and whether anybody listens on it cannot be found out: %w", path, err), "use another path, or remove it")
	}
	return nil
}

// unixListener removes its socket when it is closed, unless another one has taken its place.
type unixListener struct {
	net.Listener
	path string
	made fs.FileInfo
	once sync.Once
}

func (l *unixListener) Close() error {
	err := l.Listener.Close()
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.made) {
			_ = os.Remove(l.path)
		}
	})
	return err
}
