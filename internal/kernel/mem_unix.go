//go:build unix && !linux

package kernel

import "golang.org/x/sys/unix"

// mapAnonymous maps n bytes; all is what unmap takes.
func mapAnonymous(n int) (b, all []byte, err error) {
	all, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	return all, all, err
}

func unmap(b []byte) { _ = unix.Munmap(b) }

// discard lets the system take the pages when it wants them; until then they stay resident.
func discard(b []byte) { _ = unix.Madvise(b, unix.MADV_FREE) }
