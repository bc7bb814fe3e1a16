//go:build unix

package cli

import (
	"net"
	"syscall"
)

// privately makes a socket that nobody else may use, from its first moment on. The mask is the whole process's: this is done
// before anything else of it makes files.
func privately(listen func() (net.Listener, error)) (net.Listener, error) {
	defer syscall.Umask(syscall.Umask(0o177))
	return listen()
}
