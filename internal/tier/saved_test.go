package tier

import (
	"os"
	"testing"
)

// What is kept beside the runs survives a restart, stays with its model, and goes with Clear or when it is damaged.
func TestAside(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, nil)
	if d.Saved("ids") != nil {
		t.Error("something is there before it was saved")
	}
	for _, text := range []string{"first, and longer", "second", ""} {
		if err := d.Save("ids", []byte(text)); err != nil || string(d.Saved("ids")) != text {
			t.Errorf("%q, want %q: %v", d.Saved("ids"), text, err)
		}
	}
	if err := d.Save("ids", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(d.savedPath("ids")); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st, err)
	}
	d.close()
	other := open(t, dir, func(o *Options) { o.Fingerprint = "two" })
	if other.Saved("ids") != nil {
		t.Error("another model sees it")
	}
	other.close()
	d = open(t, dir, nil)
	if string(d.Saved("ids")) != "kept" {
		t.Errorf("after a restart: %q", d.Saved("ids"))
	}
	d.Clear()
	if d.Saved("ids") != nil || d.Take() != nil {
		t.Error("it is there after Clear")
	}
	for _, damaged := range []string{"", "xyz", "kept1234"} {
		if err := os.WriteFile(d.savedPath("ids"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if d.Saved("ids") != nil || len(d.Take()) != 1 {
			t.Errorf("%q is taken, or nobody hears of it", damaged)
		}
		if _, err := os.Stat(d.savedPath("ids")); !os.IsNotExist(err) {
			t.Error("it is still there")
		}
	}
	d.close()
}
