package regular

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestReplace: what was there is replaced by all of the new, with its rights, and stays as it was where writing fails; a link is
// not followed, and nothing is left beside.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a"), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(text string, err error) func(*os.File) error {
		return func(f *os.File) error {
			if _, err := os.Stat(f.Name()); err != nil || f.Name() == path {
				t.Errorf("it is written as %s: %v", f.Name(), err)
			}
			_, fault := f.WriteString(text)
			return errors.Join(fault, err)
		}
	}
	check := func(want string, mode os.FileMode) {
		t.Helper()
		text, err := os.ReadFile(path)
		st, _ := os.Lstat(path)
		if err != nil || string(text) != want || st.Mode() != mode {
			t.Errorf("%q, %v, %v; want %q, %v", text, st.Mode(), err, want, mode)
		}
		if list, _ := os.ReadDir(dir); len(list) != 1 {
			t.Errorf("beside it: %v", list)
		}
	}
	if err := os.Symlink(other, path); err != nil {
		t.Skip(err)
	}
	for _, text := range []string{"one", "a second"} {
		if err := Replace(path, 0o600, write(text, nil)); err != nil {
			t.Fatal(err)
		}
		check(text, 0o600)
	}
	full := errors.New("full")
	if err := Replace(path, 0o600, write("half", full)); !errors.Is(err, full) {
		t.Error(err)
	}
	check("a second", 0o600)
	if err := Replace(filepath.Join(dir, "none", "b"), 0o600, write("", nil)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "theirs" {
		t.Errorf("the link's file: %q, %v", text, err)
	}
}
