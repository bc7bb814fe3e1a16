package tier

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"hearth/internal/regular"
)

// Page is a page that was read. Give it back with Fetch.Done.
type Page struct {
	Index  int      // in the path
	Groups [][]byte // per group, with Options.Snapshots also the snapshot after it; nil: not stored, or not needed
	data   []byte
}

// Fetch reads the pages of a match in the background, one page ahead of its caller. All but Stop is for one goroutine.
type Fetch struct {
	Match Match
	t     *Tier
	pages chan Page // closed at the end
	quit  chan struct{}
}

// Fetch starts reading the pages of m from index from on. Options.Ready tells when there is something for Next.
func (t *Tier) Fetch(m Match, from int) *Fetch {
	f := &Fetch{Match: m, t: t, pages: make(chan Page, 1), quit: make(chan struct{})}
	t.wg.Add(1)
	go f.read(from)
	return f
}

// Next gives the next page if it has been read. ended: there are no more, or the rest cannot be read.
func (f *Fetch) Next() (p Page, ok, ended bool) {
	select {
	case p, ok = <-f.pages:
		return p, ok, !ok
	default:
		return Page{}, false, false
	}
}

// Done gives a page's memory back.
func (f *Fetch) Done(p Page) { f.t.free.put(p.data) }

// Stop ends the fetch. It may be called once, and Next not after it.
func (f *Fetch) Stop() { close(f.quit) }

// read is the fetch's goroutine.
func (f *Fetch) read(from int) {
	t := f.t
	defer t.wg.Done()
	defer t.opts.Ready()
	defer close(f.pages)
	select {
	case t.reads <- struct{}{}:
		defer func() { <-t.reads }()
	case <-f.quit:
		return
	case <-t.quit:
		return
	}
	var open *os.File
	defer func() {
		if open != nil {
			open.Close()
		}
	}()
	for i := from; i < f.Match.Pages(); i++ {
		p := f.Match.pages[i]
		if i == from || p.run != f.Match.pages[i-1].run {
			if open != nil {
				open.Close()
			}
			if t.opts.Reading != nil {
				t.opts.Reading(t.path(p.run.id))
			}
			var err error
			if open, err = regular.OpenOwn(t.path(p.run.id), os.O_RDONLY); err != nil {
				t.removeUnreadable(p.run, err)
				return
			}
			t.mu.Lock()
			p.run.uses = min(p.run.uses+1, mostUses)
			t.use(p.run)
			t.mu.Unlock()
		}
		page, err := t.readPage(open, p, f.Match.Pages())
		if err != nil {
			t.removeUnreadable(p.run, err)
			return
		}
		select {
		case f.pages <- page:
			t.opts.Ready()
		case <-f.quit:
			return
		case <-t.quit:
			return
		}
	}
}

// readPage reads and checks those parts of a page that a sequence needs which starts after end pages.
func (t *Tier) readPage(f io.ReaderAt, p *page, end int) (Page, error) {
	geo := &t.opts.Geometry
	at := p.run.offset
	for i := 0; &p.run.pages[i] != p; i++ {
		at += t.pageBytes(&p.run.pages[i])
	}
	n, last := t.pageBytes(p), len(geo.Groups)-1
	snap := geo.Groups[last].Window == snapGroup && p.mask&(1<<last) != 0
	if snap && p.index != end-1 {
		n, snap = n-geo.Groups[last].PageBytes, false // it comes last
	}
	out := Page{Index: p.index, Groups: make([][]byte, len(geo.Groups)), data: t.free.get(int(n))}
	if _, err := f.ReadAt(out.data, at); err != nil {
		return Page{}, fmt.Errorf("page %d: %w", p.index, err)
	}
	rest := out.data
	for g, grp := range geo.Groups {
		if p.mask&(1<<g) == 0 || grp.Window == snapGroup && !snap {
			continue
		}
		b := rest[:grp.PageBytes:grp.PageBytes]
		rest = rest[grp.PageBytes:]
		if crc32.Checksum(b, castagnoli) != p.sums[g] {
			return Page{}, fmt.Errorf("page %d of group %d: its checksum is wrong", p.index, g)
		}
		if grp.Window <= 0 || p.index >= geo.FirstRead(grp.Window, end*geo.PageTokens) {
			out.Groups[g] = b
		}
	}
	return out, nil
}

func (t *Tier) pageBytes(p *page) (n int64) {
	for g, grp := range t.opts.Geometry.Groups {
		if p.mask&(1<<g) != 0 {
			n += grp.PageBytes
		}
	}
	return n
}

// removeUnreadable removes a run that could not be read, and what continues it.
func (t *Tier) removeUnreadable(r *run, err error) {
	t.mu.Lock()
	known := t.runs[r.id] == r
	files := t.unlink(nil, r)
	gone := !known && errors.Is(err, fs.ErrNotExist) // evicted before it was read
	if !gone {
		t.stats.Errors++
	}
	t.mu.Unlock()
	t.removeFiles(files)
	if !gone {
		t.warnf("prefix cache: removed %s: %v", t.path(r.id), err)
	}
}
