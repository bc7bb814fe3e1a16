package tier

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hearth/internal/kv"
	"hearth/internal/regular"
	"hearth/internal/tier/tiertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// geo has pages of four tokens: 40 bytes in group 0, 24 in group 1, which has a window of six.
var geo = kv.Geometry{PageTokens: 4, Groups: []kv.Group{{PageBytes: 40}, {Window: 6, PageBytes: 24}}}

// desk is a tier with somebody who reads what it says.
type desk struct {
	*Tier
	t     *testing.T
	ready chan struct{}
	tiertest.Notes
}

func open(t *testing.T, dir string, change func(*Options)) *desk {
	t.Helper()
	d := &desk{t: t, ready: make(chan struct{}, 1)}
	o := Options{Dir: dir, Name: "org/model", Fingerprint: "one", Geometry: geo, Quota: 1 << 20, Warn: d.Add, Ready: func() {
		select {
		case d.ready <- struct{}{}:
		default:
		}
	}}
	if change != nil {
		change(&o)
	}
	var err error
	if d.Tier, err = Open(o); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) close() {
	d.t.Helper()
	if err := d.Close(); err != nil {
		d.t.Fatal(err)
	}
}

func elems(s string) []kv.Elem {
	key := make([]kv.Elem, len(s))
	for i := range s {
		key[i] = kv.Elem(s[i])
	}
	return key
}

// contents is what a page holds: it follows from everything up to its end.
func contents(key []kv.Elem, index, group int) []byte {
	text := fmt.Sprintf("%d of %v ", group, key[:(index+1)*geo.PageTokens])
	b := bytes.Repeat([]byte(text), 40)
	return b[len(b)-int(geo.Groups[group].PageBytes):]
}

// path is all of key, as memory has it. gone says which pages of the window group are not there.
func path(key []kv.Elem, uses int, gone func(index int) bool) *Path {
	n := len(key) / geo.PageTokens
	p := &Path{Key: key[:n*geo.PageTokens], Pages: make([][]kv.PageID, 2), Uses: slices.Repeat([]int{uses}, n)}
	for i := range n {
		p.Pages[0] = append(p.Pages[0], kv.PageID(i+1))
		p.Pages[1] = append(p.Pages[1], kv.PageID(i+1))
		if gone != nil && gone(i) {
			p.Pages[1][i] = 0
		}
	}
	p.Copy = func(w io.Writer, r kv.Ref) error {
		_, err := w.Write(contents(key, int(r.Page)-1, r.Group))
		return err
	}
	return p
}

// put stores all of a path, waiting where it must, and gives the last result.
func (d *desk) put(p *Path) Result {
	d.t.Helper()
	d.Touch(p.Key, p.Uses)
	for {
		switch res := d.Put(p); res {
		case More:
		case Full:
			<-d.ready
		default:
			d.settle()
			d.check()
			return res
		}
	}
}

// settle waits until everything is written.
func (d *desk) settle() {
	for {
		d.Tier.mu.Lock()
		n := d.queued
		d.Tier.mu.Unlock()
		if n == 0 {
			return
		}
		<-d.ready
	}
}

// fetch reads what there is of key from a page on, and checks it.
func (d *desk) fetch(key []kv.Elem, from int) int {
	d.t.Helper()
	m := d.Match(key)
	f := d.Fetch(m, from)
	for n := from; ; {
		p, ok, ended := f.Next()
		switch {
		case ended:
			d.check()
			return n
		case !ok:
			<-d.ready
			continue
		case p.Index != n:
			d.t.Fatalf("page %d, want %d", p.Index, n)
		}
		for g, b := range p.Groups {
			needed := g == 0 || n >= geo.FirstRead(geo.Groups[g].Window, m.Pages()*geo.PageTokens)
			if (b != nil) != needed || b != nil && !bytes.Equal(b, contents(key, n, g)) {
				d.t.Fatalf("page %d of group %d: %q", n, g, b)
			}
		}
		f.Done(p)
		n++
	}
}

// check asserts the invariants of Tier.
func (d *desk) check() {
	d.t.Helper()
	d.Tier.mu.Lock()
	defer d.Tier.mu.Unlock()
	var bytes int64
	kids, stored := map[*run]int{}, map[kv.Tag]kv.Stored{}
	for id, r := range d.runs {
		bytes += r.size
		s := stored[r.tag]
		stored[r.tag] = kv.Stored{Entries: s.Entries + 1, Bytes: s.Bytes + r.size}
		if r.id != id || len(r.pages) == 0 {
			d.t.Fatalf("run %v of %d pages is listed as %v", r.id, len(r.pages), id)
		}
		next, first := d.root, 0
		if r.parent != nil {
			next, first = r.parent.next, r.parent.index+1
			kids[r.parent.run]++
			if d.runs[r.parent.run.id] != r.parent.run {
				d.t.Fatalf("run %v continues one that is gone", id)
			}
		}
		if next[r.pages[0].key] != &r.pages[0] || r.pages[0].index != first {
			d.t.Fatalf("run %v is not where it belongs", id)
		}
		if st, err := os.Stat(d.path(id)); r.written && (err != nil || st.Size() != r.size) {
			d.t.Fatalf("run %v of %d bytes: %v", id, r.size, err)
		}
	}
	for _, r := range d.runs {
		if r.children != kids[r] || r.Listed() != (r.written && r.children == 0) || r.Listed() != slices.Contains(d.leaves, r) {
			d.t.Fatalf("run %v: %d continue it, %d counted, listed %t", r.id, kids[r], r.children, r.Listed())
		}
	}
	if !maps.Equal(stored, d.stored) {
		d.t.Fatalf("under tags there is %v, counted %v", stored, d.stored)
	}
	if bytes != d.bytes || bytes > d.quota {
		d.t.Fatalf("%d bytes, %d counted, quota %d", bytes, d.bytes, d.quota)
	}
	if err := d.leaves.Check(); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) files() []string {
	names, _ := filepath.Glob(filepath.Join(d.dir, "*"+suffix))
	return names
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, nil)
	one := elems("the quick brown fox jumps over the lazy dog and then over another one, which sleeps")
	for range 2 { // the second time nothing is to do
		if d.put(path(one, 0, nil)) != Stored {
			t.Fatal("not stored")
		}
	}
	fork := append(slices.Clone(one[:22]), elems("forks here and goes on")...)
	d.put(path(fork, 0, nil))
	salt := kv.Salt{7, 7, 7}
	salted := slices.Clone(one)
	for i := range salted {
		salted[i] = salt.Elem(i, salted[i])
	}
	d.put(path(salted, 0, nil))
	passing := slices.Clone(one)
	passing[10] = kv.Media(3, 1) // its digest is not known
	d.put(path(passing, 0, nil))
	window := elems("answers keep their last window only")
	d.put(path(window, 0, func(i int) bool { return i < 6 })) // 8 pages; a sequence at 32 reads 27 to 31

	for again := range 2 {
		for name, c := range map[string]struct {
			key  []kv.Elem
			want int
		}{
			"one": {one, 20}, "fork": {fork, 11}, "salted": {salted, 20}, "passing": {passing, 2}, "window": {window, 8},
			"window cut": {window[:30], 0}, "shorter": {one[:23], 5}, "another salt": {append(slices.Clone(salted[:3]), one[3:]...), 0},
			"longer": {append(slices.Clone(one), fork...), 20}, "nothing": {nil, 0}, "other": {elems("something else"), 0},
		} {
			m := d.Match(c.key)
			if got := d.fetch(c.key, 0); got != c.want || m.Pages() != c.want {
				t.Errorf("%d, %s: %d pages of %d read, want %d", again, name, got, m.Pages(), c.want)
			}
		}
		if got := d.fetch(one, 17); got != 20 {
			t.Errorf("from page 17: up to %d", got)
		}
		a, b := d.Match(one), d.Match(fork)
		if !a.Shares(&b, 4) || a.Shares(&b, 5) || a.Shares(&b, 15) {
			t.Error("two paths that part in page 5 share others")
		}
		d.close()
		d = open(t, dir, nil)
	}
	for _, name := range []string{d.dir, dir} {
		if st, err := os.Stat(name); err != nil || name != dir && st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	for _, name := range append(d.files(), filepath.Join(d.dir, lockFile), filepath.Join(d.dir, aboutFile)) {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := d.Stats(); s.Entries != len(d.files()) || s.Errors != 0 || s.Quota != 1<<20 || s.Dir != d.dir {
		t.Errorf("%+v with %d files", s, len(d.files()))
	}
	if got := d.Clear(); got == 0 || len(d.files()) != 0 || d.Match(one).pages != nil {
		t.Errorf("cleared %d bytes, %d files are left", got, len(d.files()))
	}
	d.check()
	d.put(path(one, 0, nil))
	if d.fetch(one, 0) != 20 {
		t.Error("nothing can be stored after Clear")
	}
	d.close()
	if lines := d.Take(); lines != nil {
		t.Error(lines)
	}
}

// Whatever is wrong with a file, it is removed with one line, and the rest is as good as before.
func TestDamage(t *testing.T) {
	one, two := elems(strings.Repeat("a path of several runs; ", 10)), elems("a short one")
	edit := func(name string, f func(b []byte) []byte) {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, f(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		damage func(first string)
		lines  int
		pages  int // of one that are left
	}{
		"empty":         {func(f string) { edit(f, func([]byte) []byte { return nil }) }, 2, 0},
		"short header":  {func(f string) { edit(f, func(b []byte) []byte { return b[:150] }) }, 2, 0},
		"truncated":     {func(f string) { edit(f, func(b []byte) []byte { return b[:len(b)-1] }) }, 2, 0},
		"too long":      {func(f string) { edit(f, func(b []byte) []byte { return append(b, 0) }) }, 2, 0},
		"another file":  {func(f string) { edit(f, func(b []byte) []byte { return bytes.Repeat([]byte("?"), len(b)) }) }, 2, 0},
		"a flipped bit": {func(f string) { edit(f, func(b []byte) []byte { b[200] ^= 4; return b }) }, 2, 0},
		"version":       {func(f string) { edit(f, func(b []byte) []byte { b[8]++; return b }) }, 2, 0},
		"foreign":       {func(f string) { edit(f, func(b []byte) []byte { b[40]++; return b }) }, 2, 0},
		"another name":  {func(f string) { _ = os.Rename(f, filepath.Join(filepath.Dir(f), strings.Repeat("0", 32)+suffix)) }, 2, 0},
		"gone":          {func(f string) { _ = os.Remove(f) }, 1, 0},
		"a copy":        {func(f string) { b, _ := os.ReadFile(f); _ = os.WriteFile(f[:len(f)-5]+"x"+suffix, b, 0o600) }, 1, 60},
		"left over":     {func(f string) { _ = os.WriteFile(f[:len(f)-4]+partSuffix, nil, 0o600) }, 0, 60},
		"uses": {func(f string) {
			edit(f, func(b []byte) []byte { copy(b[16:32], bytes.Repeat([]byte{255}, 16)); return b })
		}, 0, 60},
		"a page": {func(f string) { edit(f, func(b []byte) []byte { b[len(b)-1] ^= 1; return b }) }, 1, 15},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir, nil)
			d.put(path(one, 0, nil))
			d.put(path(two, 0, nil))
			first := d.path(d.root[string(mustSpell(one))].run.id)
			d.close()
			c.damage(first)
			d = open(t, dir, nil)
			d.check()
			if got := d.fetch(one, 0); got != c.pages {
				t.Errorf("%d pages are left, want %d", got, c.pages)
			}
			if got := d.fetch(two, 0); got != 2 {
				t.Errorf("%d pages of the other path are left", got)
			}
			if lines := d.Take(); len(lines) != c.lines {
				t.Errorf("%q", lines)
			}
			if n := d.Stats().Entries; n != len(d.files()) {
				t.Errorf("%d entries, %d files", n, len(d.files()))
			}
			d.put(path(one, 0, nil))
			if d.fetch(one, 0) != 60 {
				t.Error("it cannot be stored again")
			}
			d.close()
			if parts, _ := filepath.Glob(filepath.Join(d.dir, "*"+partSuffix)); parts != nil {
				t.Errorf("%q", parts)
			}
		})
	}
}

func mustSpell(key []kv.Elem) string {
	s, ok := (&Tier{opts: Options{Geometry: geo}}).pageKey(key, 0)
	if !ok {
		panic("key does not last")
	}
	return s
}

func TestOwners(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, nil)
	if _, err := Open(d.opts); !errors.Is(err, regular.ErrBusy) || !strings.Contains(err.Error(), d.dir) {
		t.Errorf("a second owner: %v", err)
	}
	other := open(t, dir, func(o *Options) { o.Fingerprint = "two" })
	key := elems("what one model computed")
	d.put(path(key, 0, nil))
	if other.Match(key).pages != nil || other.dir == d.dir {
		t.Error("another model sees it")
	}
	d.close()
	d = open(t, dir, nil)
	if d.fetch(key, 0) != 5 {
		t.Error("the next owner does not see it")
	}
	d.close()

	// A folder that nobody opened for long goes, one in use or with something else in it does not.
	old := time.Now().Add(-(staleDays + 1) * 24 * time.Hour)
	for _, x := range []*desk{d, other} {
		if err := os.Chtimes(filepath.Join(x.dir, lockFile), old, old); err != nil {
			t.Fatal(err)
		}
	}
	mine := filepath.Join(dir, "mine")
	if err := errors.Join(os.Mkdir(mine, 0o700), os.WriteFile(filepath.Join(mine, lockFile), nil, 0o600), os.Chtimes(filepath.Join(mine, lockFile), old, old)); err != nil {
		t.Fatal(err)
	}
	third := open(t, dir, func(o *Options) { o.Fingerprint = "three" })
	third.close()
	for name, want := range map[string]bool{d.dir: false, other.dir: true, third.dir: true, mine: true} {
		if _, err := os.Stat(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	other.close()

	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: file, Geometry: geo}); err == nil {
		t.Error("a file as folder")
	}
}

// TestSharedQuota: a folder whose quota is for all has what others leave of it, and an eighth in any case.
func TestSharedQuota(t *testing.T) {
	dir := t.TempDir()
	main := open(t, dir, nil)
	defer main.close()
	if err := os.WriteFile(filepath.Join(main.dir, "x"), make([]byte, 60_000), 0o600); err != nil {
		t.Fatal(err)
	}
	for quota, want := range map[int64]int64{100_000: 40_000, 64_000: 8_000} {
		d := open(t, dir, func(o *Options) { o.Name, o.Quota, o.Shared = "beside", quota, true })
		if got := d.Stats().Quota; got > want || got < want-1000 { // less the small files of the main one
			t.Errorf("of %d it has %d, want %d", quota, got, want)
		}
		d.close()
	}
}

// TestSweep: folders of models that nobody has open go when they are old, when a later one has their name, and when the
// disk is full. Those that are open, or not ours, stay whatever they hold.
func TestSweep(t *testing.T) {
	const print, day = "-00000000000000", 24 * time.Hour
	folders := []struct {
		name   string
		opened time.Duration // ago
		bytes  int
	}{
		{"own" + print + "00", 0, 1000},
		{"used" + print + "00", 90 * day, 1000},
		{"mine", 90 * day, 1000},
		{"old" + print + "00", 31 * day, 1000},
		{"new" + print + "00", 29 * day, 1000},
		{"b" + print + "00", 9 * day, 1000},
		{"a" + print + "00", 3 * day, 1000},
		{"a" + print + "01", 2 * day, 1000},
		{"a" + print + "02", 1 * day, 1000},
	}
	for name, c := range map[string]struct {
		free, quota int64
		want        string
	}{
		"room":                 {1 << 30, math.MaxInt64, "a02 b00 mine new00 own00 used00"},
		"not known":            {0, math.MaxInt64, "a02 b00 mine new00 own00 used00"},
		"for four":             {9000, math.MaxInt64, "a02 b00 mine own00 used00"}, // a quarter of 9,000 and the 8,000 that are there at first
		"for three":            {4000, math.MaxInt64, "a02 mine own00 used00"},
		"for those in use":     {1, math.MaxInt64, "mine own00 used00"},
		"a quota for all":      {1 << 30, 3100, "a02 mine own00 used00"},
		"a quota for too few":  {1 << 30, 1000, "mine own00 used00"},
		"a quota for them all": {1 << 30, 9000, "a02 b00 mine new00 own00 used00"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range folders {
				d, at := filepath.Join(dir, f.name), time.Now().Add(-f.opened)
				lock := filepath.Join(d, lockFile)
				if err := errors.Join(os.Mkdir(d, 0o700), os.WriteFile(filepath.Join(d, "x"+suffix), make([]byte, f.bytes), 0o600),
					os.WriteFile(lock, nil, 0o600), os.Chtimes(lock, at, at)); err != nil {
					t.Fatal(err)
				}
			}
			used, err := os.OpenFile(filepath.Join(dir, folders[1].name, lockFile), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer used.Close()
			if err := regular.Lock(used); err != nil {
				t.Fatal(err)
			}
			rest := removeStale(dir, filepath.Join(dir, folders[0].name))
			if c.free > 0 {
				_, beside := shrink(rest, 1000, c.free+3000, c.quota) // of own; three folders have gone
				if n := int64(1000 * (len(strings.Fields(c.want)) - len([]string{"mine", "own00"}))); beside != n {
					t.Errorf("%d bytes are left beside, want %d", beside, n)
				}
			}
			left, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range left {
				names = append(names, strings.Replace(f.Name(), print, "", 1))
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("left: %s\nwant: %s", got, c.want)
			}
		})
	}
}
