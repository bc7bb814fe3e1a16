package regular

import (
	"errors"
	"io"
	"os"
)

// Hold says that what is in the folder of fsys, if that is one of Dir, is in use until the closer is closed: meanwhile Take
// of that folder, in whatever process, is ErrBusy. The error is ErrBusy where the folder is taken. Where there are no locks
// on folders nothing is held.
func Hold(fsys any) (io.Closer, error) {
	d, ok := fsys.(dirFS)
	if !ok {
		return nothing{}, nil
	}
	return lockFolder(string(d), LockShared)
}

// Take takes a folder to be removed: it is ErrBusy while somebody holds it.
func Take(dir string) (io.Closer, error) { return lockFolder(dir, Lock) }

type nothing struct{}

func (nothing) Close() error { return nil }

func lockFolder(dir string, lock func(*os.File) error) (io.Closer, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nothing{}, nil // who reads it next says why
	}
	err = lock(f)
	if errors.Is(err, ErrBusy) {
		_ = f.Close()
		return nil, err
	}
	if err != nil { // this file system has no locks
		_ = f.Close()
		return nothing{}, nil
	}
	return f, nil
}
