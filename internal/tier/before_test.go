package tier

import (
	"os"
	"slices"
	"testing"

	"hearth/internal/kv"
)

// TestFolderOfBefore reads what an earlier build wrote: in one folder runs that fork, a salt's, and one that kept its last window
// only; in another one a run with snapshots.
func TestFolderOfBefore(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/before")); err != nil {
		t.Fatal(err)
	}
	one := elems("the quick brown fox jumps over the lazy dog")
	fork := append(slices.Clone(one[:22]), elems("forks here and goes on")...)
	salt := kv.Salt{7, 7, 7}
	salted := slices.Clone(one)
	for i := range salted {
		salted[i] = salt.Elem(i, salted[i])
	}
	d := open(t, dir, nil)
	for name, c := range map[string]struct {
		key  []kv.Elem
		want int
	}{"one": {one, 10}, "fork": {fork, 11}, "salted": {salted, 10}, "window": {elems("answers keep their last window only"), 8}} {
		if got := d.fetch(c.key, 0); got != c.want {
			t.Errorf("%s: %d pages, want %d", name, got, c.want)
		}
	}
	if got := d.Saved("history"); string(got) != "what was said" {
		t.Errorf("saved beside the runs: %q", got)
	}
	if n := len(d.files()); n != 4 {
		t.Errorf("%d runs are left", n)
	}
	d.close()
	d = open(t, dir, func(o *Options) { o.Fingerprint, o.Snapshots, o.Geometry.SnapBytes = "snapshots", true, 33 })
	if m := d.Match(one); m.Pages() != 7 {
		t.Errorf("%d pages with a snapshot, want 7", m.Pages())
	}
	d.close()
}
