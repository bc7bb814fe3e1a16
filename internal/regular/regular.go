// Package regular reads files that others have put where we look: in model folders and caches, or under a name that a
// person gave. What such a name leads to is looked at before anything is read: a folder, a pipe, a socket or a device in
// place of a file is refused at once, by an error that says what it is, and so is a file that is larger than its reader
// allows. Links are followed: the hub cache is made of them. Opening never waits, and no more is read than the size that
// the file had when it was opened, because some files that look regular never end.
//
// Everything that reads outside files calls it; it knows nothing of what is in them.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// KindError says that a name leads to something that is no file.
type KindError struct {
	Kind string // "a folder"
}

func (e *KindError) Error() string { return "is " + e.Kind + ", not a regular file" }

// SizeError says that a file is larger than its reader allows.
type SizeError struct {
	Size, Limit int64
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("has %d bytes, more than the %d that it may have", e.Size, e.Limit)
}

// Dir is os.DirFS of a folder that others fill: what is no file and no folder cannot be opened.
func Dir(dir string) fs.FS { return dirFS(dir) }

type dirFS string

func (d dirFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, _, err := open(filepath.Join(string(d), filepath.FromSlash(name)), fs.ModeDir)
	if err != nil {
		return nil, renamed(err, name)
	}
	return f, nil
}

// Stat implements fs.StatFS: looking at a file does not open it.
func (d dirFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(os.DirFS(string(d)), name) }

// ReadDir implements fs.ReadDirFS.
func (d dirFS) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(os.DirFS(string(d)), name)
}

// ReadLink implements fs.ReadLinkFS.
func (d dirFS) ReadLink(name string) (string, error) { return fs.ReadLink(os.DirFS(string(d)), name) }

// Lstat implements fs.ReadLinkFS.
func (d dirFS) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(os.DirFS(string(d)), name) }

// renamed tells an error of a path as that of a name in its folder.
func renamed(err error, name string) error {
	if e, ok := err.(*fs.PathError); ok {
		return &fs.PathError{Op: e.Op, Path: name, Err: e.Err}
	}
	return err
}

// Open opens the file at path for reading. Its size is at most limit.
func Open(path string, limit int64) (*os.File, error) {
	f, st, err := open(path, 0)
	if err != nil {
		return nil, err
	}
	if err := small(path, st, limit); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// OpenOwn opens a file that the program itself has made, as os.OpenFile does, in a folder that others may have been at: a
// link in its place, which could lead to somebody else's file, is refused as well.
func OpenOwn(path string, flag int) (*os.File, error) { return OpenOwnAs(path, flag, 0o600) }

// OpenOwnAs is OpenOwn of a file that others may have rights to: perm are those of a new one, before the umask.
func OpenOwnAs(path string, flag int, perm fs.FileMode) (*os.File, error) {
	st, err := os.Lstat(path)
	switch {
	case err == nil:
		err = kind(path, st, 0)
	case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
		err = nil
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flag|nonblocking|nofollow, perm)
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err == nil {
		err = kind(path, st, 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// ReadOwn reads all of a file of OpenOwn, of at most limit bytes.
func ReadOwn(path string, limit int64) ([]byte, error) {
	f, err := OpenOwn(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return contents(path, f, limit)
}

// open opens a file, or something of another kind where also allows that. What it is is looked at before opening, which a
// device may act on, and after, because names can be given to something else between the two.
func open(path string, also fs.FileMode) (*os.File, fs.FileInfo, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := kind(path, st, also); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblocking, 0)
	if err != nil {
		return nil, nil, err
	}
	if st, err = f.Stat(); err == nil {
		err = kind(path, st, also)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// Read reads the file at path, of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return contents(path, f, limit)
}

// ReadStream is Read for a file that a person named, which may also be a pipe that this process has open, as a shell's
// <(command) is: /dev/fd/63. A pipe is read to its end. One with a name of its own would have us wait for who may never come.
func ReadStream(path string, limit int64) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(st, null) {
		return nil, nil // as people write for "nothing"
	}
	if st.Mode()&fs.ModeNamedPipe == 0 || !strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/proc/") {
		return Read(path, limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil {
		return nil, err
	} else if err := kind(path, st, fs.ModeNamedPipe); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: &SizeError{int64(len(b)), limit}}
	}
	return b, err
}

// OpenFS opens a file of fsys, whose size it also gives, and which is at most limit.
func OpenFS(fsys fs.FS, name string, limit int64) (fs.File, int64, error) {
	st, err := fs.Stat(fsys, name)
	if err == nil {
		err = kind(name, st, 0)
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	if st, err = f.Stat(); err == nil {
		err = kind(name, st, 0)
	}
	if err == nil {
		err = small(name, st, limit)
	}
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// ReadFS reads a file of fsys, of at most limit bytes.
func ReadFS(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, _, err := OpenFS(fsys, name, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return contents(name, f, limit)
}

// contents reads as many bytes as an open file says that it has.
func contents(name string, f fs.File, limit int64) ([]byte, error) {
	st, err := f.Stat()
	if err == nil {
		err = small(name, st, limit)
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, st.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it was cut while it was read: %w", err)}
	}
	return b, nil
}

func small(name string, st fs.FileInfo, limit int64) error {
	if st.Size() > limit {
		return &fs.PathError{Op: "read", Path: name, Err: &SizeError{st.Size(), limit}}
	}
	return nil
}

// kind refuses what is neither a file nor of the one other kind that is allowed.
func kind(name string, st fs.FileInfo, also fs.FileMode) error {
	mode := st.Mode()
	what := "something else"
	switch {
	case mode.IsRegular(), also != 0 && mode&also != 0:
		return nil
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	case mode&fs.ModeSymlink != 0:
		what = "a link"
	}
	return &fs.PathError{Op: "open", Path: name, Err: &KindError{what}}
}

// ErrBusy means that another process has locked a file.
var ErrBusy = errors.New("another process is using it")
