//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package regular

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes a file for this process until the file is closed; ErrBusy if another has it.
func Lock(f *os.File) error { return lock(f, unix.LOCK_EX) }

// LockShared is Lock that others who share it do not hinder.
func LockShared(f *os.File) error { return lock(f, unix.LOCK_SH) }

func lock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	}
	return err
}
