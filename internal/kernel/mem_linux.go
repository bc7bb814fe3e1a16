package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the transparent huge page size of amd64 and of arm64 with 4 KiB pages.
const hugePage = 2 << 20

func adviseHuge(b []byte) {
	from := roundUp(int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))%hugePage), hugePage) -
		int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))%hugePage)
	n := (len(b) - from) / hugePage * hugePage
	if from >= len(b) || n < 4*hugePage {
		return
	}
	// Advice only: without transparent huge pages the call fails and nothing is lost.
	_ = unix.Madvise(b[from:from+n], unix.MADV_HUGEPAGE)
}
