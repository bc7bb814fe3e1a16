package tier

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzFolder: a folder whose files are anything is opened, with what is no run removed and told; pages that a prompt gets from it
// are those that were written, and what is kept beside them comes back whole or not at all.
func FuzzFolder(f *testing.F) {
	key := elems(strings.Repeat("a path of several pages; ", 3))
	whole := func(f *testing.F) (string, []byte) {
		t := &Tier{opts: Options{Geometry: geo}}
		t.print = fingerprint(&Options{Geometry: geo, Fingerprint: "one"})
		r, _ := t.next(path(key, 2, nil), nil)
		b := t.header(r)
		for i := range r.pages {
			for g := range geo.Groups {
				b = append(b, contents(key, i, g)...)
			}
		}
		return r.id.String() + suffix, b
	}
	name, run := whole(f)
	f.Add(name, run, []byte("kept\x00\x00\x00\x00"))
	f.Add(name, run[:len(run)-1], []byte{})
	f.Add(name, append([]byte(magic), make([]byte, 200)...), []byte("abc"))
	f.Add("x.part", []byte("left by a crash"), []byte(nil))
	f.Fuzz(func(t *testing.T, name string, run, kept []byte) {
		if strings.ContainsAny(name, "/\x00") || len(name) > 100 || name == "" || strings.HasPrefix(name, ".") || name == lockFile || name == aboutFile {
			return
		}
		dir := t.TempDir()
		d := open(t, dir, nil)
		d.close()
		if os.WriteFile(filepath.Join(d.dir, name), run, 0o600) != nil {
			return // no name of this file system
		}
		if err := os.WriteFile(d.savedPath("ids"), kept, 0o600); err != nil {
			t.Fatal(err)
		}
		d = open(t, dir, nil)
		d.check()
		d.fetch(key, 0)
		if got := d.Saved("ids"); got != nil && len(got) != len(kept)-4 {
			t.Errorf("%q comes back as %q", kept, got)
		}
		if lines := d.Take(); len(strings.Join(lines, "")) > 10_000 {
			t.Errorf("%d lines", len(lines))
		}
		d.close()
	})
}
