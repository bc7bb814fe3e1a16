//go:build unix

package tier

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hearth/internal/regular/regulartest"
)

// What is no file in the place of a run is removed like a damaged one, unread.
func TestOddRuns(t *testing.T) {
	key := elems(strings.Repeat("a path of several runs; ", 10))
	for kind, put := range regulartest.Kinds {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir, nil)
			d.put(path(key, 0, nil))
			first := d.path(d.root[mustSpell(key)].run.id)
			d.close()
			if err := os.Remove(first); err != nil {
				t.Fatal(err)
			}
			put(t, first)
			d = open(t, dir, nil)
			d.check()
			if n := d.fetch(key, 0); n != 0 {
				t.Errorf("%d pages", n)
			}
			if lines := d.Take(); len(lines) != 2 || !strings.Contains(lines[0], filepath.Base(first)) || !strings.Contains(lines[0], "not a regular file") {
				t.Errorf("%q", lines)
			}
			d.close()
		})
		t.Run(kind+" while it is open", func(t *testing.T) {
			d := open(t, t.TempDir(), nil)
			d.put(path(key, 0, nil))
			first := d.path(d.root[mustSpell(key)].run.id)
			if err := os.Remove(first); err != nil {
				t.Fatal(err)
			}
			put(t, first)
			if n := d.fetch(key, 0); n != 0 {
				t.Errorf("%d pages", n)
			}
			if lines := d.Take(); len(lines) != 1 || !strings.Contains(lines[0], "not a regular file") {
				t.Errorf("%q", lines)
			}
			d.close()
		})
	}
}

// Files of the program's own names that somebody else has put there are never written through, and what is kept beside the
// runs is not read through them.
func TestOddNames(t *testing.T) {
	for kind, put := range regulartest.Kinds {
		if kind == "folder" {
			continue // below
		}
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir, nil)
			d.close()
			_ = os.Remove(filepath.Join(d.dir, aboutFile))
			put(t, filepath.Join(d.dir, aboutFile))
			put(t, filepath.Join(d.dir, "ids"+partSuffix))
			put(t, d.savedPath("ids"))
			d = open(t, dir, nil)
			if d.Saved("ids") != nil {
				t.Error("something was read")
			}
			if lines := d.Take(); len(lines) != 1 || !strings.Contains(lines[0], "not a regular file") {
				t.Errorf("%q", lines)
			}
			put(t, filepath.Join(d.dir, "ids"+partSuffix))
			if err := d.Save("ids", []byte("kept")); err != nil || string(d.Saved("ids")) != "kept" {
				t.Errorf("%q, %v", d.Saved("ids"), err)
			}
			d.close()
			_ = os.Remove(filepath.Join(d.dir, lockFile))
			put(t, filepath.Join(d.dir, lockFile))
			if _, err := Open(Options{Dir: dir, Name: "org/model", Fingerprint: "one", Geometry: geo, Quota: 1 << 20}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("a lock of this kind: %v", err)
			}
		})
	}
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d := open(t, dir, nil)
	key := elems("a short one")
	d.put(path(key, 0, nil))
	run := d.path(d.root[mustSpell(key)].run.id)
	for _, name := range []string{filepath.Join(d.dir, aboutFile), filepath.Join(d.dir, "ids"+partSuffix), run} {
		_ = os.Remove(name)
		if err := os.Symlink(victim, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Save("ids", []byte("kept")); err != nil {
		t.Error(err)
	}
	d.Touch(key, []int{5})
	d.close() // notes the uses in the run's file
	d = open(t, dir, nil)
	d.close()
	if b, err := os.ReadFile(victim); string(b) != "precious" {
		t.Errorf("a link was written through: %q, %v", b, err)
	}
	large := filepath.Join(d.dir, "ids"+savedSuffix)
	_ = os.Remove(large)
	regulartest.Large(t, large)
	d = open(t, dir, nil)
	d.Take()
	if d.Saved("ids") != nil {
		t.Error("something was read")
	}
	if lines := d.Take(); len(lines) != 1 || !strings.Contains(lines[0], fmt.Sprint(savedBytes)) {
		t.Errorf("%q", lines)
	}
	d.close()
}

// Of more files than the tier ever has no more are read than a bound, and few are named.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, nil)
	d.close()
	const odd = 300
	for i := range odd {
		name := fmt.Sprintf("%d \x1b[31m\nodd%s", i, suffix)
		if i%2 == 0 {
			name = fmt.Sprintf("%d%s%s", i, strings.Repeat("x", 200), suffix)
		}
		if err := os.WriteFile(filepath.Join(d.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d = open(t, dir, func(o *Options) { o.TTL = time.Hour })
	lines := d.Take()
	if len(lines) != namedOdd+1 || !strings.Contains(lines[namedOdd], fmt.Sprint(odd-namedOdd)) {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	for _, l := range lines {
		if len(l) > 1000 || strings.ContainsAny(l, "\n\x1b") {
			t.Errorf("%q", l)
		}
	}
	if len(d.files()) > 0 {
		t.Error("they are still there")
	}
	d.close()
}

func TestMoreFilesThanARead(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, nil)
	d.close()
	first := filepath.Join(d.dir, "first")
	if err := os.WriteFile(first, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const more = 7
	for i := range mostRead + more {
		if err := os.Link(first, filepath.Join(d.dir, fmt.Sprintf("%d%s", i, suffix))); err != nil {
			t.Fatal(err)
		}
	}
	d = open(t, dir, nil)
	if lines := d.Take(); !strings.Contains(strings.Join(lines, "\n"), fmt.Sprintf("removed %d files in %s that are more than %d", more, d.dir, mostRead)) {
		t.Errorf("%q", lines)
	}
	if d.Stats().Errors != mostRead {
		t.Errorf("%d were read", d.Stats().Errors)
	}
	d.close()
}
