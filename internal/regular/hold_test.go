//go:build unix

package regular

import (
	"errors"
	"testing"
	"testing/fstest"
)

// A folder that is held, by however many, is not taken, and one that is taken is not held.
func TestHold(t *testing.T) {
	dir := t.TempDir()
	a, err1 := Hold(Dir(dir))
	b, err2 := Hold(Dir(dir))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, c := range []interface{ Close() error }{a, b} {
		if _, err := Take(dir); !errors.Is(err, ErrBusy) {
			t.Errorf("a folder in use is taken: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	taken, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Hold(Dir(dir)); !errors.Is(err, ErrBusy) {
		t.Errorf("a folder that is taken is held: %v", err)
	}
	if err := taken.Close(); err != nil {
		t.Error(err)
	}
	if c, err := Hold(fstest.MapFS{}); err != nil || c.Close() != nil {
		t.Error("what is no folder of the disk cannot be held")
	}
}
