package regular

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Lock takes a file for this process until the file is closed; ErrBusy if another has it.
func Lock(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// LockShared is Lock that others who share it do not hinder.
func LockShared(f *os.File) error { return lock(f, 0) }

func lock(f *os.File, how uint32) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrBusy
	}
	return err
}
