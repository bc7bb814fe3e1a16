//go:build darwin || linux

package hub

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// firstHole is where the first bytes of a file are that nobody has written; not ok where the file system does not know.
func firstHole(f *os.File) (int64, bool) {
	at, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_HOLE)
	_, back := f.Seek(0, io.SeekStart)
	return at, err == nil && back == nil
}
