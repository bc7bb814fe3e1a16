package engine

import (
	"bytes"
	"io"
	"slices"
	"time"

	"hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/sched"
	"hearth/internal/tier"
)

const (
	busyBytes  = 16 << 20 // copied between two steps; a page that is larger is copied alone
	mostEnded  = 256      // turns that wait to be written
	mostLater  = 1 << 20  // tokens of turns that wait until the engine is idle
	idleWrite  = 2 * time.Second
	closeLimit = 5 * time.Second
)

// disk moves pages between the prefix tree and the tier on disk. It runs on the engine's goroutine, between two steps, and only
// copies memory: the tier's own goroutines read and write files. A nil disk does nothing.
type disk struct {
	tier   *tier.Tier
	store  backend.Store
	sched  *sched.Scheduler
	prefix *kv.Prefix
	seqs   map[sched.ID]*sequence
	tokens int  // of a page
	groups int  // of pages; in the tier, snapshots are one more
	snaps  bool // there is recurrent state
	loads  []*load
	ended  []turn
	later  [][]kv.Elem // turns to write when the engine is idle
	quiet  bool        // it has been idle for idleWrite
}

// load is a fetch whose pages go into the tree. The first waiting sequence is the one it was started for.
type load struct {
	fetch      *tier.Fetch
	key        []kv.Elem
	from, next int // pages
	waiting    []sched.ID
}

// turn is a sequence that has ended.
type turn struct {
	key   []kv.Elem
	whole bool // all of it is worth writing, not only what has been used again
}

// openDisk opens the tier. An engine also runs without: an error is a warning.
func (e *Engine) openDisk() {
	geo := e.alloc.Geometry()
	if e.cfg.Disk == nil || e.sched.Prefix() == nil {
		return
	}
	o := *e.cfg.Disk
	o.Geometry, o.Ready, o.Snapshots = geo, e.signal, !geo.Sliceable()
	o.Digest = e.numbers.known
	o.Fingerprint += "\n" + e.run.store.Fingerprint()
	t, err := tier.Open(o)
	if err != nil {
		if o.Warn != nil {
			o.Warn("prefix cache: nothing is kept on disk: " + err.Error())
		}
		return
	}
	e.disk = &disk{tier: t, store: e.run.store, sched: e.sched, prefix: e.sched.Prefix(), seqs: e.seqs, tokens: geo.PageTokens,
		groups: len(geo.Groups), snaps: !geo.Sliceable()}
	e.disk.prefix.OnEvict(e.disk.onEvict)
}

// ask is sched.Config.Ask.
func (d *disk) ask(q *sched.Seq, cached int) bool {
	if d == nil {
		return false
	}
	m := d.tier.Match(q.Key)
	if m.Pages()*d.tokens < cached+d.tokens {
		return false
	}
	from := cached / d.tokens
	for _, l := range d.loads {
		if l.fetch.Match.Shares(&m, from) {
			l.waiting = append(l.waiting, q.ID)
			return true
		}
	}
	d.loads = append(d.loads, &load{fetch: d.tier.Fetch(m, from), key: q.Key, from: from, next: from, waiting: []sched.ID{q.ID}})
	return true
}

// move puts pages that were read into the tree and queues pages to be written: a bounded amount while sequences run, else all
// there is.
func (d *disk) move(busy bool) {
	if d == nil {
		return
	}
	left := busyBytes
	if !busy {
		left = 1 << 60
	}
	d.loads = slices.DeleteFunc(d.loads, func(l *load) bool { return d.advance(l, &left) })
	for len(d.ended) > 0 && left > 0 {
		t := d.ended[0]
		switch d.put(d.worthWriting(t), tier.Path{}) {
		case tier.More:
			left -= busyBytes
		case tier.Full:
			return
		default:
			d.ended = slices.Delete(d.ended, 0, 1)
		}
	}
	d.quiet = d.quiet && !busy
	for d.quiet && len(d.later) > 0 {
		switch d.put(d.prefix.Branch(d.later[0]), tier.Path{Spare: true}) {
		case tier.More, tier.Full: // one run at a time: when it is written there is a signal
			return
		default:
			d.later = slices.Delete(d.later, 0, 1)
		}
	}
}

// hasLater reports whether there is something to write once the engine has been idle for idleWrite.
func (d *disk) hasLater() bool { return d != nil && len(d.later) > 0 && !d.quiet }

// worthWriting is the part of a turn to write: all of it, as if it had been used again, or what has been.
func (d *disk) worthWriting(t turn) kv.Branch {
	b := d.prefix.Branch(t.key)
	for i, uses := range b.Uses {
		if uses > 0 {
			continue
		}
		if !t.whole {
			return kv.Branch{Key: b.Key[:i*d.tokens], Pages: b.Pages, Uses: b.Uses[:i], Snaps: b.Snaps[:i]}
		}
		b.Uses[i] = 1
	}
	return b
}

// advance moves pages of a load into the tree, and reports whether it has ended.
func (d *disk) advance(l *load, left *int) bool {
	if !slices.ContainsFunc(l.waiting, func(id sched.ID) bool { return d.seqs[id] != nil }) {
		l.fetch.Stop()
		return true
	}
	for *left > 0 {
		p, ok, ended := l.fetch.Next()
		if !ok {
			if ended {
				d.loaded(l)
			}
			return ended
		}
		inserted, err := d.prefix.InsertPage(l.key, p.Index, 1, func(g int) bool { return p.Groups[g] != nil }, func(g int, page kv.PageID) error {
			*left -= len(p.Groups[g])
			return d.store.Import(bytes.NewReader(p.Groups[g]), kv.Ref{Group: g, Page: page})
		})
		if inserted && err == nil && len(p.Groups) > d.groups && p.Groups[d.groups] != nil {
			inserted, err = d.prefix.InsertSnap(l.key, (p.Index+1)*d.tokens, func(id kv.SnapID) error {
				*left -= len(p.Groups[d.groups])
				return d.store.Import(bytes.NewReader(p.Groups[d.groups]), kv.Ref{Snap: id})
			})
		}
		l.fetch.Done(p)
		if !inserted || err != nil { // no memory, or a page that the store does not take: the rest is computed
			l.fetch.Stop()
			d.loaded(l)
			return true
		}
		l.next = p.Index + 1
	}
	return false
}

// loaded lets the waiting sequences go on. Those that waited for another's pages are asked again: there may be more for them.
func (d *disk) loaded(l *load) {
	if l.next > l.from {
		d.tier.Restored((l.next - l.from) * d.tokens)
	}
	for i, id := range l.waiting {
		q := d.seqs[id]
		if q == nil {
			continue
		}
		q.matched += time.Since(q.asked)
		if i == 0 {
			q.disk = [2]int{l.from * d.tokens, l.next * d.tokens}
		}
		d.sched.Loaded(&q.Seq, i > 0)
	}
}

// done notes a turn that has ended and is in the tree. If more than half of its prompt came from the cache it continues a
// conversation and is written soon. Of others only what has been used again is; the rest may be written when the engine is idle.
func (d *disk) done(q *sequence) {
	if d == nil || len(d.ended) >= mostEnded {
		return
	}
	t := turn{key: q.Key, whole: 2*q.Cached > q.Prompt}
	d.ended = append(d.ended, t)
	if t.whole {
		return
	}
	d.later = append(d.later, t.key)
	tokens, first := 0, len(d.later)
	for first > 0 && tokens+len(d.later[first-1]) <= mostLater {
		first--
		tokens += len(d.later[first])
	}
	d.later = slices.Delete(d.later, 0, first)
}

// onEvict offers a branch to the tier before its end is evicted from memory, and reports whether it is through with it. It must
// not wait: when the queue is full the branch is lost.
func (d *disk) onEvict(b kv.Branch) bool {
	for {
		switch d.put(b, tier.Path{}) {
		case tier.More:
		case tier.Full:
			d.tier.CountDropped()
			return false
		default:
			return true
		}
	}
}

// put offers a branch to the tier; the caller has set Last or Spare of p.
func (d *disk) put(b kv.Branch, p tier.Path) tier.Result {
	d.tier.Touch(b.Key, b.Uses)
	p.Key, p.Uses, p.Pages = b.Key, b.Uses, b.Pages
	if d.snaps {
		ids := make([]kv.PageID, len(b.Snaps))
		for i, id := range b.Snaps {
			ids[i] = kv.PageID(id)
		}
		p.Pages = append(slices.Clip(b.Pages), ids)
	}
	p.Copy = func(w io.Writer, ref kv.Ref) error {
		if ref.Group == d.groups {
			ref = kv.Ref{Snap: kv.SnapID(ref.Page)}
		}
		return d.store.Export(w, ref)
	}
	return d.tier.Put(&p)
}

// runs lists what is on disk. Any goroutine calls it.
func (d *disk) runs() []tier.Run {
	if d == nil {
		return nil
	}
	return d.tier.Runs()
}

// close writes what is in memory, the most valuable first, until time is up.
func (d *disk) close(wake <-chan struct{}) error {
	if d == nil {
		return nil
	}
	d.stop()
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	d.prefix.Branches(func(b kv.Branch) bool {
		for {
			switch d.put(b, tier.Path{Last: true}) {
			case tier.More:
			case tier.Full:
				select {
				case <-wake:
				case <-limit.C:
					return false
				}
			default:
				return true
			}
		}
	})
	return d.tier.Close()
}

// clear removes what is on disk, and stops loads and writes.
func (d *disk) clear() (entries int, bytes int64) {
	if d == nil {
		return 0, 0
	}
	d.stop()
	entries = d.tier.Stats().Entries
	return entries, d.tier.Clear()
}

// clearTag is clear for what is under a tag.
func (d *disk) clearTag(tag kv.Tag) (entries int, bytes int64) {
	if d == nil {
		return 0, 0
	}
	of := func(key []kv.Elem) bool { return len(key) > 0 && kv.TagOf(key[0]) == tag }
	d.loads = slices.DeleteFunc(d.loads, func(l *load) bool {
		if !of(l.key) {
			return false
		}
		l.fetch.Stop()
		d.loaded(l)
		return true
	})
	d.ended = slices.DeleteFunc(d.ended, func(t turn) bool { return of(t.key) })
	d.later = slices.DeleteFunc(d.later, of)
	s := d.tier.ClearTag(tag)
	return s.Entries, s.Bytes
}

// stop ends all loads and forgets what waits to be written.
func (d *disk) stop() {
	for _, l := range d.loads {
		l.fetch.Stop()
		d.loaded(l)
	}
	d.loads, d.ended, d.later = nil, nil, nil
}
