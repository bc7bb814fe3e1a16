package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the transparent huge page size of amd64 and of arm64 with 4 KiB pages.
const hugePage = 2 << 20

// mapAnonymous maps n bytes from a huge page boundary; all is what unmap takes.
func mapAnonymous(n int) (b, all []byte, err error) {
	all, err = unix.Mmap(-1, 0, n+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, err
	}
	from := int(-uintptr(unsafe.Pointer(unsafe.SliceData(all))) & (hugePage - 1))
	b = all[from:][:n:n]
	// Advice only: without transparent huge pages the call fails and nothing is lost.
	_ = unix.Madvise(b[:n/hugePage*hugePage], unix.MADV_HUGEPAGE)
	return b, all, nil
}

func unmap(b []byte) { _ = unix.Munmap(b) }

func discard(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
