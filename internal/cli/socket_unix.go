//go:build unix

package cli

import (
	"net"
	"syscall"
)

// privately makes a socket that nobody else may use, from its first moment on: the mask is the whole process's, so nothing else of
// it makes files meanwhile.
func privately(listen func() (net.Listener, error)) (net.Listener, error) {
	defer syscall.Umask(syscall.Umask(0o177))
	return listen()
}
