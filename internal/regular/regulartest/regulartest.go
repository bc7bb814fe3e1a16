//go:build unix

// Package regulartest puts what is no file, or too much of one, in the place of files, for the tests of everything that
// reads files of others.
package regulartest

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Huge is the size of a file that nothing reads: above every bound but that of files copied beside weights.
const Huge = 512 << 20

// Kinds puts each kind at a path that is free. The text is what an error says of it.
var Kinds = map[string]func(t testing.TB, path string) (says string){
	"link to an endless device": func(t testing.TB, path string) string {
		must(t, os.Symlink("/dev/zero", path))
		return "is a device"
	},
	"pipe": func(t testing.TB, path string) string {
		must(t, unix.Mkfifo(path, 0o600))
		return "is a named pipe"
	},
	"link to a pipe": func(t testing.TB, path string) string {
		_ = os.Remove(path + ".pipe") // of the last time
		must(t, unix.Mkfifo(path+".pipe", 0o600))
		must(t, os.Symlink(path+".pipe", path))
		return "is a named pipe"
	},
	"folder": func(t testing.TB, path string) string {
		must(t, os.Mkdir(path, 0o700))
		return "is a folder"
	},
	"socket": func(t testing.TB, path string) string {
		t.Helper()
		dir, err := os.MkdirTemp("", "s") // sockets have short names
		must(t, err)
		l, err := net.Listen("unix", dir+"/s")
		must(t, err)
		t.Cleanup(func() { _ = l.Close(); _ = os.RemoveAll(dir) })
		must(t, os.Symlink(dir+"/s", path))
		return "is a socket"
	},
}

// Large puts a file of Huge bytes, none of which takes any place, at path.
func Large(t testing.TB, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	must(t, f.Truncate(Huge))
	must(t, f.Close())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
