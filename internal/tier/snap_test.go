package tier

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"hearth/internal/kv"
)

// snapshots gives a path snapshots after some of its pages.
func snapshots(p *Path, after ...int) *Path {
	p.Pages = append(p.Pages, make([]kv.PageID, len(p.Uses)))
	for _, i := range after {
		p.Pages[2][i] = kv.PageID(100 + i)
	}
	pages := p.Copy
	p.Copy = func(w io.Writer, r kv.Ref) error {
		if r.Group < 2 {
			return pages(w, r)
		}
		_, err := w.Write(state(int(r.Page) - 100))
		return err
	}
	return p
}

// state is what a snapshot after a page holds.
func state(index int) []byte { return bytes.Repeat([]byte{byte(index)}, 33) }

// TestSnapshots: of recurrent state, a path comes back up to its last snapshot, with that and no other, and what
// lies behind it is not kept.
func TestSnapshots(t *testing.T) {
	dir := t.TempDir()
	with := func(o *Options) { o.Snapshots, o.Geometry.SnapBytes = true, 33 }
	key := elems("the quick brown fox jumps over the lazy dog, again")
	d := open(t, dir, with)
	if got := d.put(snapshots(path(key, 1, nil))); got != Stored || len(d.files()) != 0 {
		t.Errorf("a path without a snapshot: %v, %d files", got, len(d.files()))
	}
	if got := d.put(snapshots(path(key, 1, nil), 1, 6)); got != Stored {
		t.Errorf("result %v", got)
	}
	for _, tc := range []struct{ tokens, pages int }{{len(key), 7}, {28, 7}, {27, 2}, {8, 2}, {7, 0}} {
		for range 2 { // the second time after a restart
			m := d.Match(key[:tc.tokens])
			if m.Pages() != tc.pages {
				t.Fatalf("%d pages of the first %d tokens, want %d", m.Pages(), tc.tokens, tc.pages)
			}
			f := d.Fetch(m, 0)
			for n := 0; n < tc.pages; {
				p, ok, ended := f.Next()
				switch {
				case ended:
					t.Fatalf("the fetch ended at page %d", n)
				case !ok:
					<-d.ready
					continue
				}
				if b := p.Groups[0]; !bytes.Equal(b, contents(key, n, 0)) {
					t.Errorf("page %d: %q", n, b)
				}
				if b := p.Groups[2]; (b != nil) != (n == tc.pages-1) || b != nil && !bytes.Equal(b, state(n)) {
					t.Errorf("page %d of %d: state %v", n, tc.pages, b)
				}
				f.Done(p)
				n++
			}
			f.Stop()
			d.close()
			d = open(t, dir, with)
		}
	}
	// What goes on from there is another run behind it.
	longer := append(slices.Clone(key), elems(" and again")...)
	if got := d.put(snapshots(path(longer, 1, nil), 1, 6, 13)); got != Stored {
		t.Errorf("result %v", got)
	}
	if m := d.Match(longer); m.Pages() != 14 {
		t.Errorf("%d pages of the longer path", m.Pages())
	}
	d.close()
	if lines := d.Take(); lines != nil {
		t.Error(lines)
	}
	// Without snapshots it is another form, in another folder.
	d = open(t, dir, nil)
	if m := d.Match(key); m.Pages() != 0 {
		t.Errorf("%d pages of another form", m.Pages())
	}
	d.close()
}
