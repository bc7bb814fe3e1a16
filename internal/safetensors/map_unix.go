//go:build unix

package safetensors

import (
	"os"

	"golang.org/x/sys/unix"
)

// mmap maps a file for reading. The mapping outlives the descriptor.
func mmap(fd uintptr, size int) ([]byte, error) {
	return unix.Mmap(int(fd), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

func unmap(b []byte) error { return unix.Munmap(b) }

// release drops the whole pages inside [from, to).
func release(b []byte, from, to int) {
	page := os.Getpagesize()
	from, to = (from+page-1)/page*page, to/page*page
	if from < to {
		_ = unix.Madvise(b[from:to], unix.MADV_DONTNEED) // advice: failing costs memory only
	}
}
