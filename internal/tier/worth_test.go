package tier

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/kv"
)

// one is a path of n pages that begins like no other.
func one(i, n int) []kv.Elem {
	return elems((fmt.Sprintf("%04d", i) + strings.Repeat("x", 4*n))[:4*n])
}

// What is used stays, one-offs fill what is free and no more, and what is refused twice has been used.
func TestWorth(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, nil)
	d.put(path(one(0, 4), 0, nil))
	size := d.Stats().Bytes
	d.close()
	quota := 10*size + 10
	d = open(t, dir, func(o *Options) { o.Quota = quota })
	hot := elems("a system prompt!")
	d.put(path(hot, 3, nil))
	for i := 1; i < 9; i++ {
		if d.put(path(one(i, 4), 0, nil)) != Stored {
			t.Fatalf("one-off %d is refused although there is room", i)
		}
	}
	for i := 10; i < 40; i++ {
		if res := d.put(path(one(i, 4), 0, nil)); res != Refused {
			t.Fatalf("one-off %d: %d", i, res)
		}
	}
	if s := d.Stats(); s.Refused != 30 || s.Entries != 10 {
		t.Errorf("%+v", s)
	}
	if d.fetch(one(0, 4), 0) != 4 { // and so it has been used
		t.Error("the first is gone")
	}
	if d.put(path(one(12, 4), 0, nil)) != Stored || d.fetch(one(12, 4), 0) != 4 {
		t.Error("what was refused and comes again is refused again")
	}
	if m := d.Match(one(1, 4)); m.Pages() != 0 {
		t.Error("the oldest one-off is still there")
	}
	for i := 50; i < 55; i++ { // used ones replace one-offs
		if d.put(path(one(i, 4), 2, nil)) != Stored {
			t.Fatalf("%d is refused", i)
		}
	}
	for i := 60; i < 63; i++ { // and so do last chances
		p := path(one(i, 4), 0, nil)
		if p.Last = true; d.put(p) != Stored {
			t.Fatalf("%d is refused", i)
		}
	}
	if d.fetch(hot, 0) != 4 || d.fetch(one(0, 4), 0) != 4 {
		t.Error("what was used is gone")
	}
	d.close()

	d = open(t, dir, func(o *Options) { o.Quota = 4 * size })
	if s := d.Stats(); s.Bytes > 4*size || s.Entries == 0 || s.Entries != len(d.files()) {
		t.Errorf("with a lower quota: %+v, %d files", s, len(d.files()))
	}
	if d.fetch(hot, 0) != 4 {
		t.Error("what was used most did not survive a lower quota")
	}
	d.check()
	d.close()
	if lines := d.Take(); lines != nil {
		t.Error(lines)
	}
	d = open(t, t.TempDir(), func(o *Options) { o.Quota = 1 })
	if d.put(path(hot, 5, nil)) != Refused {
		t.Error("something fits into a quota of a byte")
	}
	d.close()
	d = open(t, t.TempDir(), func(o *Options) { o.Quota = 0 })
	if d.quota <= 0 || d.quota > defaultMax {
		t.Errorf("without a quota: %d", d.quota)
	}
	d.close()
}

// slow is a file that waits, or fails.
type slow struct {
	file
	gate chan struct{}
	err  error
}

func (s *slow) Write(b []byte) (int, error) {
	if s.gate != nil {
		<-s.gate
	}
	if s.err != nil {
		n, _ := s.file.Write(b[:len(b)/2])
		return n, s.err
	}
	return s.file.Write(b)
}

// A disk that is full costs one line; what is there can still be read.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, nil)
	d.put(path(one(0, 20), 0, nil))
	full := errors.New("no space left on device")
	d.create = func(name string) (file, error) {
		f, err := createFile(name)
		return &slow{file: f, err: full}, err
	}
	for i := range 5 {
		d.put(path(one(i, 40), 1, nil))
	}
	if lines := d.Take(); len(lines) != 1 || !strings.Contains(lines[0], full.Error()) {
		t.Errorf("%q", lines)
	}
	if d.put(path(one(9, 4), 1, nil)) != Refused || d.fetch(one(0, 20), 0) != 20 {
		t.Error("it still writes, or does not read")
	}
	d.close()
	if s := d.Stats(); s.Errors != 1 || s.Entries != 2 || len(d.files()) != 2 {
		t.Errorf("%+v, %d files", s, len(d.files()))
	}
	if parts, _ := filepath.Glob(filepath.Join(d.dir, "*"+partSuffix)); parts != nil {
		t.Errorf("%q", parts)
	}
}

// A store that cannot give its pages writes nothing.
func TestExportFails(t *testing.T) {
	d := open(t, t.TempDir(), nil)
	p := path(one(0, 3), 1, nil)
	p.Copy = func(w io.Writer, _ kv.Ref) error {
		_, err := w.Write(make([]byte, 3))
		return err
	}
	if d.put(p) != Refused || len(d.Take()) != 1 || d.Stats().Entries != 0 {
		t.Error("a page of the wrong size is stored")
	}
	d.check()
	d.close()
}

// A queue that is full says so at once, and what is in it is written by Close.
func TestQueueFull(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, nil)
	gate := make(chan struct{})
	d.create = func(name string) (file, error) {
		f, err := createFile(name)
		return &slow{file: f, gate: gate}, err
	}
	n := 0
	for ; ; n++ {
		res := d.Put(path(one(n, 2), 0, nil))
		if res == Full {
			break
		}
		if res != More {
			t.Fatal(res)
		}
	}
	d.CountDropped()
	if n < queueRuns || n > queueRuns+1 {
		t.Errorf("%d runs are queued", n)
	}
	if m := d.Match(one(0, 2)); m.Pages() != 0 {
		t.Error("what waits to be written can be read already")
	}
	if d.Touch(one(0, 2), nil) != 2 {
		t.Error("what waits to be written counts as missing")
	}
	close(gate)
	d.close()
	if s := d.Stats(); s.Writes != int64(n) || s.Dropped != 1 || len(d.files()) != n {
		t.Errorf("%+v, %d files", s, len(d.files()))
	}
	d = open(t, dir, nil)
	if d.fetch(one(n-1, 2), 0) != 2 {
		t.Error("the last one is not there")
	}
	d.close()
}

// A fetch that nobody reads ends with Stop or Close; one whose files go away ends early.
func TestFetchEnds(t *testing.T) {
	d := open(t, t.TempDir(), nil)
	key := one(1, 50)
	d.put(path(key, 0, nil))
	m := d.Match(key)
	var fs []*Fetch
	for range readers + 2 { // the last ones wait for their turn
		fs = append(fs, d.Fetch(m, 0))
	}
	fs[0].Stop()
	fs[readers].Stop()
	// The fetch that gets the freed turn may meet a file that is gone and take those that follow it away itself.
	for _, f := range d.files() {
		if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	gone := d.Fetch(m, 0)
	for i := 1; i < readers; i++ {
		fs[i].Stop()
	}
	fs[readers+1].Stop()
	for ended := false; !ended; {
		var p Page
		var ok bool
		if p, ok, ended = gone.Next(); ok {
			gone.Done(p)
		} else if !ended {
			<-d.ready
		}
	}
	if d.Match(key).pages != nil {
		t.Error("pages of files that are gone are still known")
	}
	d.Fetch(m, 0)
	d.close()
}

// TestRandom: paths that share beginnings come, go and come back, over restarts, with little room. Whatever is read is
// what was put, and the invariants hold throughout.
func TestRandom(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 12
	}
	read, restarts := 0, 0
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 3))
		dir := t.TempDir()
		quota := int64(2000 + r.IntN(60000))
		d := open(t, dir, func(o *Options) { o.Quota = quota })
		var keys [][]kv.Elem
		for range 60 {
			var key []kv.Elem
			if len(keys) > 0 && r.IntN(4) > 0 {
				key = slices.Clone(keys[r.IntN(len(keys))])
				key = key[:r.IntN(len(key)+1)]
			}
			for range 1 + r.IntN(90) {
				key = append(key, kv.Elem(r.IntN(2)))
			}
			keys = append(keys, key)
			from := r.IntN(10)
			p := path(key, r.IntN(3), func(i int) bool { return i < from })
			p.Last = r.IntN(10) == 0
			d.put(p)
			look := keys[r.IntN(len(keys))]
			if m := d.Match(look); m.Pages() > 0 {
				read += d.fetch(look, r.IntN(m.Pages()))
			}
			if r.IntN(15) == 0 {
				d.close()
				d = open(t, dir, func(o *Options) { o.Quota = quota })
				d.check()
				restarts++
			}
		}
		if n := d.Stats().Entries; n != len(d.files()) {
			t.Fatalf("seed %d: %d entries, %d files", seed, n, len(d.files()))
		}
		d.close()
		if lines := d.Take(); lines != nil {
			t.Fatalf("seed %d: %q", seed, lines)
		}
	}
	t.Logf("%d pages read, %d restarts", read, restarts)
	if read == 0 || restarts == 0 {
		t.Error("nothing was tested")
	}
}

// FuzzHeader: no bytes make the reader fail otherwise than with an error, and what it accepts is written the same again.
func FuzzHeader(f *testing.F) {
	t := &Tier{opts: Options{Geometry: geo}, print: [32]byte{1, 2, 3}}
	r, _ := t.next(path(one(3, 5), 2, nil), nil)
	b := t.header(r)
	f.Add(b, r.size)
	r.parent = &page{run: &run{id: runID{9}}, index: 3}
	r.pages[0].index = 4
	f.Add(t.header(r), r.size)
	f.Add(b[:120], r.size)
	f.Add([]byte(magic), int64(0))
	f.Fuzz(func(tt *testing.T, b []byte, size int64) {
		r, up, err := readHeader(bytes.NewReader(b), size, &form{geo: geo, print: t.print})
		if err != nil {
			return
		}
		if up != (runID{}) {
			r.parent = &page{run: &run{id: up}}
		}
		again := t.header(r)
		copy(again[16:32], b[16:32])
		if !bytes.Equal(again, b[:r.offset]) {
			tt.Errorf("%x is read as %x", b, again)
		}
	})
}
