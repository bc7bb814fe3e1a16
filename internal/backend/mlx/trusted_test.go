//go:build unix

package mlx

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTrusted: a library that others could have put or changed there is not opened.
func TestTrusted(t *testing.T) {
	for _, c := range []struct {
		dir, file os.FileMode
		want      bool
	}{{0o755, 0o644, true}, {0o700, 0o600, true}, {0o777, 0o644, false}, {0o755, 0o666, false}, {0o775, 0o644, false}} {
		dir := filepath.Join(t.TempDir(), "bin")
		path := filepath.Join(dir, "libmlxc.dylib")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.file); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, c.dir); err != nil {
			t.Fatal(err)
		}
		if got := trusted(path); got != c.want {
			t.Errorf("folder %v, file %v: trusted is %t", c.dir, c.file, got)
		}
	}
	if trusted(filepath.Join(t.TempDir(), "none")) {
		t.Error("what is not there is trusted")
	}
}
