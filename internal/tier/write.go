package tier

import (
	"bytes"
	"crypto/rand"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"hearth/internal/kv"
)

const partSuffix = ".part"

// Path is a sequence's whole pages in memory, for Put.
type Path struct {
	Key   []kv.Elem
	Uses  []int                         // per page: times a prompt started from it or from what continues it
	Pages [][]kv.PageID                 // per group and page; 0: none. With Options.Snapshots the last group is snapshots
	Copy  func(io.Writer, kv.Ref) error // writes a page's bytes; called within Put
	Last  bool                          // it will not be put again: see Put
	Spare bool                          // it will be: write it only if there is room
}

// Result is what Put did.
type Result uint8

const (
	Stored  Result = iota // everything is written or queued
	More                  // a run was queued, and there is more to put
	Full                  // the queue is full: try again after Options.Ready
	Refused               // not worth writing, or the disk takes no more
)

// job is a run to write and files to remove before.
type job struct {
	run    *run
	data   []byte
	remove []string
}

// Put queues the next run of a path that is not stored yet: its bytes are copied before Put returns, and written later.
//
// A run that was used before, by the counts in Path.Uses, replaces runs that rank lower (see Tier.rank). One that was not is
// stored while there is room; it replaces others only if it was refused before and is put again, or if it is the Last. So what is
// used once fills free space and never evicts what is used again.
func (t *Tier) Put(p *Path) Result {
	r, remove, res := t.admit(p)
	if r == nil {
		return res
	}
	data, err := t.export(p, r)
	t.mu.Lock()
	if err == nil && t.runs[r.id] == r { // not cleared meanwhile
		select {
		case t.jobs <- job{r, data, remove}:
			t.mu.Unlock()
			return More
		default:
		}
	}
	remove = t.unlink(remove, r)
	t.queued -= r.size
	t.mu.Unlock()
	t.free.put(data)
	t.removeFiles(remove)
	t.fail(err)
	return Refused
}

// fail stops writing for good at the first error, which is mostly a full disk.
func (t *Tier) fail(err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	t.stats.Errors++
	first := !t.broken
	t.broken = true
	t.mu.Unlock()
	if first {
		t.warnf("prefix cache: nothing more is written to disk: %v", err)
	}
}

// CountDropped counts a run that could not be put because the queue was full.
func (t *Tier) CountDropped() {
	t.mu.Lock()
	t.stats.Dropped++
	t.mu.Unlock()
}

// admit makes the next run of p, evicts others for it if need be, and links it. Without a run the Result says why.
func (t *Tier) admit(p *Path) (*run, []string, Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken {
		return nil, nil, Refused
	}
	have := t.walk(p.Key, false)
	r, whole := t.next(p, have)
	switch {
	case r == nil && whole:
		return nil, nil, Stored
	case r == nil:
		return nil, nil, Refused
	case t.queued > 0 && t.queued+r.size > queueBytes || len(t.jobs) == cap(t.jobs):
		return nil, nil, Full
	}
	var remove []string
	if p.Spare && !t.fits(r.size) {
		return nil, nil, Refused
	}
	if !t.fits(r.size) {
		tokens := (r.pages[0].index + len(r.pages)) * t.opts.Geometry.PageTokens
		if r.uses == 0 && !p.Last && t.seen.again(p.Key[:tokens]) {
			r.uses = 1
		}
		if r.uses > 0 || p.Last {
			remove = t.makeRoom(r.size, t.clock+1+int64(r.uses)*t.scale, r.parent)
		}
		if !t.fits(r.size) {
			t.stats.Refused++
			t.removeFiles(remove)
			return nil, nil, Refused
		}
	}
	if !t.link(r) {
		panic("tier: a run is stored twice")
	}
	t.use(r)
	t.queued += r.size
	return r, remove, More
}

// next is the run of p's pages after those in have. It is nil if there are none; whole then reports that all of p is stored.
func (t *Tier) next(p *Path, have []*page) (_ *run, whole bool) {
	geo := &t.opts.Geometry
	r := &run{}
	if len(have) > 0 {
		r.parent = have[len(have)-1]
	}
	spelled, from, end := 0, len(have), t.useful(p)
	for i := from; i < end && len(r.pages) < runPages; i++ {
		key, ok := t.pageKey(p.Key, i)
		if !ok {
			break
		}
		pg := page{index: i, key: key, sums: make([]uint32, len(geo.Groups))}
		size := int64(0)
		for g, grp := range geo.Groups {
			if p.Pages[g][i] != 0 {
				pg.mask |= 1 << g
				size += grp.PageBytes
			}
		}
		if len(r.pages) > 0 && r.size+size > runBytes {
			break
		}
		r.size += size
		spelled += len(key)
		r.pages = append(r.pages, pg)
	}
	if len(r.pages) == 0 {
		return nil, from >= end
	}
	r.offset = int64(headerBytes(len(geo.Groups), len(r.pages), spelled))
	r.size += r.offset
	r.uses = min(p.Uses[from], mostUses)
	_, _ = rand.Read(r.id[:]) // never fails
	return r, false
}

// useful is how many of p's pages a sequence could start from: with snapshots, those up to the last one.
func (t *Tier) useful(p *Path) int {
	n, groups := len(p.Uses), t.opts.Geometry.Groups
	if last := len(groups) - 1; last >= 0 && groups[last].Window == snapGroup {
		for n > 0 && p.Pages[last][n-1] == 0 {
			n--
		}
	}
	return n
}

// export copies the pages of r, behind room for the header.
func (t *Tier) export(p *Path, r *run) ([]byte, error) {
	w := bytes.NewBuffer(t.free.get(int(r.size))[:r.offset])
	for i := range r.pages {
		for g := range t.opts.Geometry.Groups {
			if page := p.Pages[g][r.pages[i].index]; page != 0 {
				if err := p.Copy(w, kv.Ref{Group: g, Page: page}); err != nil {
					return w.Bytes(), err
				}
			}
		}
	}
	if int64(w.Len()) != r.size {
		return w.Bytes(), errors.New("a page has not the size that its group says")
	}
	return w.Bytes(), nil
}

// write is the writer's goroutine: until Close it writes one run after the other, and removes what has expired.
func (t *Tier) write() {
	defer t.wg.Done()
	var tick <-chan time.Time
	if t.opts.TTL > 0 {
		ticker := time.NewTicker(max(t.opts.TTL/16, time.Second))
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case j, ok := <-t.jobs:
			if !ok {
				return
			}
			t.do(j)
		case <-tick:
			t.expire()
		}
	}
}

func (t *Tier) do(j job) {
	t.removeFiles(j.remove)
	t.mu.Lock()
	live := t.runs[j.run.id] == j.run && !t.broken
	t.mu.Unlock()
	var err error
	if live {
		err = t.writeRun(j)
	}
	t.written(j, live, err)
	t.free.put(j.data)
	t.opts.Ready()
}

// writeRun completes the header and writes the file. Readers see all of it or nothing.
func (t *Tier) writeRun(j job) error {
	geo, r := &t.opts.Geometry, j.run
	at := r.offset
	for i := range r.pages {
		for g, grp := range geo.Groups {
			if r.pages[i].mask&(1<<g) != 0 {
				r.pages[i].sums[g] = crc32.Checksum(j.data[at:at+grp.PageBytes], castagnoli)
				at += grp.PageBytes
			}
		}
	}
	t.mu.Lock()
	copy(j.data, t.header(r))
	t.mu.Unlock()
	part := filepath.Join(t.dir, r.id.String()+partSuffix)
	f, err := t.create(part)
	if err != nil {
		return err
	}
	_, err = f.Write(j.data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(part, t.path(r.id))
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

// written records the result of a job.
func (t *Tier) written(j job, live bool, err error) {
	t.mu.Lock()
	r := j.run
	t.queued -= r.size
	var remove []string
	switch linked := t.runs[r.id] == r; {
	case live && err == nil && linked:
		t.stats.Writes++
		r.written, r.changed = true, false
		t.listIfEvictable(r)
	case live && err == nil: // cleared meanwhile
		remove = []string{t.path(r.id)}
	case linked:
		remove = t.unlink(nil, r)
	}
	t.mu.Unlock()
	t.removeFiles(remove)
	t.fail(err)
}

// buffers keeps a few large buffers for the next run or page.
type buffers struct {
	mu   sync.Mutex
	list [][]byte
}

func (b *buffers) get(n int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, x := range b.list {
		if cap(x) >= n {
			b.list = append(b.list[:i], b.list[i+1:]...)
			return x[:n]
		}
	}
	return make([]byte, n)
}

func (b *buffers) put(x []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) < 2 && x != nil {
		b.list = append(b.list, x)
	}
}
