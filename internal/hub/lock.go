package hub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"hearth/internal/regular"
)

// lockPoll is how often a lock that another process has is tried again.
const lockPoll = 100 * time.Millisecond

// lockBlob takes a blob for this process, as huggingface_hub does: by flock on .locks/<model>/<blob>.lock. While another has it,
// waiting is called. Files of locks stay, so that all who wait have the same one. Where the file system has no locks there is
// none: what two processes then write at the same place is the same.
func (c Cache) lockBlob(ctx context.Context, id, blob string, waiting func()) (unlock func(), err error) {
	dir := filepath.Join(c.Dir, ".locks", filepath.Base(c.root(id)))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	return lockFile(ctx, filepath.Join(dir, blob+".lock"), 0o664, waiting)
}

// lockFile is lockBlob for any path. The file gets just the mode perm.
func lockFile(ctx context.Context, path string, perm os.FileMode, waiting func()) (unlock func(), err error) {
	for {
		f, err := regular.OpenOwnAs(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
		switch {
		case err == nil:
			_ = f.Chmod(perm) // whatever the umask: who shares a cache locks it, too
		case errors.Is(err, os.ErrExist):
			f, err = regular.OpenOwnAs(path, os.O_RDWR|os.O_CREATE, perm)
		}
		if err != nil {
			return nil, err
		}
		err = regular.Lock(f)
		if err == nil && same(f, path) || errors.Is(err, errors.ErrUnsupported) {
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, regular.ErrBusy) {
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		waiting()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// same reports whether f is still what path leads to: some remove files of locks, and who then makes another excludes nobody.
func same(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}
