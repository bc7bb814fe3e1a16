//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package regular

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes a file for this process until the file is closed; ErrBusy if another has it.
func Lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	}
	return err
}
