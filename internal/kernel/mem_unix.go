//go:build unix && !linux

package kernel

import "golang.org/x/sys/unix"

// mapAnonymous maps n bytes; all is what unmap takes.
func mapAnonymous(n int) (b, all []byte, err error) {
	all, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	return all, all, err
}

func unmap(b []byte) { _ = unix.Munmap(b) }
