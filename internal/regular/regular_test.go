//go:build unix

package regular

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hearth/internal/regular/regulartest"
)

// readers are the ways to read a file of a folder.
var readers = map[string]func(dir, name string, limit int64) ([]byte, error){
	"Read":    func(dir, name string, limit int64) ([]byte, error) { return Read(filepath.Join(dir, name), limit) },
	"ReadOwn": func(dir, name string, limit int64) ([]byte, error) { return ReadOwn(filepath.Join(dir, name), limit) },
	"ReadFS":  func(dir, name string, limit int64) ([]byte, error) { return ReadFS(Dir(dir), name, limit) },
	"ReadFS of os.DirFS": func(dir, name string, limit int64) ([]byte, error) {
		return ReadFS(os.DirFS(dir), name, limit)
	},
	"fs.ReadFile of Dir": func(dir, name string, _ int64) ([]byte, error) { return fs.ReadFile(Dir(dir), name) },
	"ReadStream": func(dir, name string, limit int64) ([]byte, error) {
		return ReadStream(filepath.Join(dir, name), limit)
	},
}

// What is no file is refused whoever reads it, without waiting, by an error that names it and what it is.
func TestKinds(t *testing.T) {
	for kind, put := range regulartest.Kinds {
		for reader, read := range readers {
			if reader == "fs.ReadFile of Dir" && kind == "folder" {
				continue // which is read as one
			}
			t.Run(kind+"/"+reader, func(t *testing.T) {
				dir := t.TempDir()
				says := put(t, filepath.Join(dir, "it"))
				if st, _ := os.Lstat(filepath.Join(dir, "it")); reader == "ReadOwn" && st.Mode()&fs.ModeSymlink != 0 {
					says = "is a link"
				}
				_, err := read(dir, "it", 100)
				var k *KindError
				if !errors.As(err, &k) || !strings.Contains(err.Error(), "it: ") || !strings.Contains(err.Error(), says) {
					t.Errorf("the error is %v, want one that says it: %s", err, says)
				}
			})
		}
	}
}

// A name that leads to something else between being looked at and being opened is refused as well, and opening does not
// wait for it.
func TestOpenDoesNotWait(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonblocking, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

func TestSizes(t *testing.T) {
	for reader, read := range readers {
		t.Run(reader, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "it")
			if err := os.WriteFile(name, bytes.Repeat([]byte("x"), 100), 0o600); err != nil {
				t.Fatal(err)
			}
			if b, err := read(dir, "it", 100); err != nil || len(b) != 100 {
				t.Errorf("a file at the limit: %d bytes, %v", len(b), err)
			}
			if _, err := read(dir, "none", 100); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("no file: %v", err)
			}
			if reader == "fs.ReadFile of Dir" {
				return // has no limit
			}
			var s *SizeError
			if _, err := read(dir, "it", 99); !errors.As(err, &s) || !strings.Contains(err.Error(), "it: has 100 bytes, more than the 99 ") {
				t.Errorf("a file over the limit: %v", err)
			}
			_ = os.Remove(name)
			regulartest.Large(t, name)
			if _, err := read(dir, "it", 1<<20); !errors.As(err, &s) {
				t.Errorf("a huge file: %v", err)
			}
		})
	}
}

// Links to files are followed, but where the program looks for a file of its own.
func TestLinks(t *testing.T) {
	for reader, read := range readers {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "blob"), []byte("text"), 0o600), os.Symlink("blob", filepath.Join(dir, "it"))); err != nil {
			t.Fatal(err)
		}
		b, err := read(dir, "it", 100)
		if reader == "ReadOwn" {
			if k := (*KindError)(nil); !errors.As(err, &k) {
				t.Errorf("%s: %v", reader, err)
			}
		} else if string(b) != "text" || err != nil {
			t.Errorf("%s: %q, %v", reader, b, err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, "it")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFS(Dir(dir), "it", 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link to nothing: %v", err)
	}
}

// A file that a person names may be a pipe, of which no more is read than of a file.
func TestStream(t *testing.T) {
	for _, size := range []int{0, 10, 11, 1 << 20} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan int)
		go func() {
			n, _ := w.Write(bytes.Repeat([]byte("x"), size))
			_ = w.Close()
			done <- n
		}()
		b, err := ReadStream(fmt.Sprintf("/dev/fd/%d", r.Fd()), 10)
		_ = r.Close()
		if n := <-done; n > 1<<19 {
			t.Errorf("%d bytes were read", n)
		}
		var s *SizeError
		if size <= 10 && (err != nil || len(b) != size) || size > 10 && !errors.As(err, &s) {
			t.Errorf("%d bytes: %d read, %v", size, len(b), err)
		}
	}
	if b, err := ReadStream(os.DevNull, 10); err != nil || len(b) > 0 {
		t.Errorf("nothing: %q, %v", b, err)
	}
}

// A folder of others can be listed and walked as any.
func TestDir(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.WriteFile(filepath.Join(dir, "sub", "a.json"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	fsys := Dir(dir)
	if names, err := fs.Glob(fsys, "sub/*.json"); err != nil || len(names) != 1 {
		t.Errorf("%q, %v", names, err)
	}
	if b, err := fs.ReadFile(fsys, "sub/a.json"); string(b) != "{}" {
		t.Error(err)
	}
	if _, err := fsys.Open("../x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a name outside the folder: %v", err)
	}
	f, err := Open(filepath.Join(dir, "sub", "a.json"), math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

func TestClip(t *testing.T) {
	long := strings.Repeat("ä", 200)
	for in, want := range map[string]string{
		"":             "",
		"model.norm":   "model.norm",
		"Ġthe \"a\"":   "Ġthe \"a\"",
		"a\nb\x1b[1m":  `a\nb\x1b[1m`,
		"a\xffb\u202e": `a\xffb\u202e`,
		"\ufffd":       "\ufffd",
		long:           strings.Repeat("ä", 66) + "…" + strings.Repeat("ä", 33),
		"x" + long:     "x" + strings.Repeat("ä", 66) + "…" + strings.Repeat("ä", 33),
	} {
		if got := Clip(in); got != want {
			t.Errorf("Clip(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Quote("x" + long + "\n"); got != `"x`+strings.Repeat("ä", 66)+"…"+strings.Repeat("ä", 32)+`\n"` {
		t.Errorf("Quote = %s", got)
	}
	if Quote("a\n") != `"a\n"` {
		t.Error(Quote("a\n"))
	}
	err := errors.New("fine")
	if Short(err) != err || Short(nil) != nil {
		t.Error("short errors change")
	}
	err = fmt.Errorf("read %w: %s", fs.ErrInvalid, strings.Repeat("x\n", 1e6))
	if got := Short(err); len(got.Error()) > 4*lineErr || !errors.Is(got, fs.ErrInvalid) || strings.Contains(got.Error(), "\n") {
		t.Errorf("%d bytes: %.100q", len(got.Error()), got)
	}
}
