package tier

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"hearth/internal/kv"
)

// run is some consecutive pages of a path: one file.
type run struct {
	kv.Place // in leaves; for the rank see Tier.rank

	id       runID
	number   int64 // of those since the tier was opened
	parent   *page // the page it continues; nil: it starts a path
	pages    []page
	size     int64 // of the file
	offset   int64 // where the pages start
	tag      kv.Tag
	children int   // runs that continue it
	uses     int   // times a prompt started from it, or from what continues it
	used     int64 // clock at the last use
	when     int64 // its Unix time in seconds
	written  bool
	changed  bool // uses or used are not what the file says
}

// page is a page of every group, for positions [index*PageTokens, ...) of a path.
type page struct {
	run   *run
	index int // in the path
	sums  []uint32
	mask  uint32 // groups that are there
	key   string // its tokens
	next  map[string]*page
}

// pageKey is what the page at index of a path is compared by: all of its tokens. The first elements of a path may be salted
// (kv.Salt). Rows of media items have the item's digest behind the first that the page has of it, because numbers are valid in
// this process only: it reports false for a page with one whose digest is not known, or that is salted.
func (t *Tier) pageKey(key []kv.Elem, index int) (string, bool) {
	tokens := t.opts.Geometry.PageTokens
	page := key[index*tokens : (index+1)*tokens]
	b, before := make([]byte, 0, 4*len(page)+8), kv.Elem(0)
	salted := index == 0 && page[0]>>63 == 1
	for i, e := range page {
		var ok bool
		if b, ok = t.appendElem(b, e, before, i, salted); !ok {
			return "", false
		}
		before = e
	}
	return string(b), true
}

// appendElem appends the element at index i of a page, behind before, to the page's key.
func (t *Tier) appendElem(b []byte, e, before kv.Elem, i int, salted bool) ([]byte, bool) {
	salted = salted && i < saltedElems
	b = binary.LittleEndian.AppendUint32(b, uint32(e))
	high := uint32(e >> 32)
	if e.IsMedia() {
		if salted {
			return nil, false
		}
		if high = 0; i == 0 || !before.IsMedia() || before.Number() != e.Number() {
			digest, ok := t.digest(e.Number())
			if !ok {
				return nil, false
			}
			b = append(b, digest[:]...)
		}
	}
	if salted {
		b = binary.LittleEndian.AppendUint32(b, high)
		high = ^high >> 31
	}
	return b, high == 0
}

func (t *Tier) digest(number uint32) (d [digestBytes]byte, ok bool) {
	if t.opts.Digest == nil {
		return d, false
	}
	return t.opts.Digest(number)
}

// saltedElems is how many elements a salt changes, see kv.Salt.Elem. Keys of salted and plain first pages differ in
// length by four for each of them, and by digests.
const (
	saltedElems = 4
	digestBytes = 32
)

// longestKey is the most bytes of the key of a page: every element is a row of another media item, or salted.
func longestKey(tokens int) int { return (4+digestBytes)*tokens + 4*saltedElems }

// tagOf is the tag of a path, by the key of its first page.
func tagOf(key string, tokens int) kv.Tag {
	if (len(key)-4*tokens)%digestBytes == 0 {
		return 0
	}
	return kv.Tag(binary.LittleEndian.Uint32([]byte(key[4:8])))
}

// count adds to what is stored under a tag.
func (t *Tier) count(tag kv.Tag, entries int, bytes int64) {
	s := t.stored[tag]
	s.Entries += entries
	s.Bytes += bytes
	t.stored[tag] = s
	if s == (kv.Stored{}) {
		delete(t.stored, tag)
	}
	t.bytes += bytes
}

// Match is what is stored of a path.
type Match struct{ pages []*page }

// Pages is how many of the path's first pages there are.
func (m *Match) Pages() int { return len(m.pages) }

// Shares reports whether both have the same page at an index.
func (m *Match) Shares(o *Match, index int) bool {
	return index < len(m.pages) && index < len(o.pages) && m.pages[index] == o.pages[index]
}

// Match finds the longest prefix of key, in whole pages, from which a sequence can start: the pages of windows before its end are
// there and, with recurrent state, a snapshot at its end.
func (t *Tier) Match(key []kv.Elem) Match {
	t.mu.Lock()
	defer t.mu.Unlock()
	ps := t.walk(key, true)
	geo := &t.opts.Geometry
	n := len(ps)
	for again := true; again; {
		again = false
		for g, grp := range geo.Groups {
			for i := n - 1; grp.Window > 0 && i >= geo.FirstRead(grp.Window, n*geo.PageTokens); i-- {
				if ps[i].mask&(1<<g) == 0 {
					n, again = i, true
					break
				}
			}
			for ; grp.Window == snapGroup && n > 0 && ps[n-1].mask&(1<<g) == 0; n-- {
				again = true
			}
		}
	}
	return Match{ps[:n]}
}

// walk lists the pages along key; with written, only as far as they are on disk. Called with mu held.
func (t *Tier) walk(key []kv.Elem, written bool) (ps []*page) {
	next := t.root
	for i := range len(key) / t.opts.Geometry.PageTokens {
		k, ok := t.pageKey(key, i)
		if !ok {
			break
		}
		p := next[k]
		if p == nil || written && !p.run.written {
			break
		}
		ps, next = append(ps, p), p.next
	}
	return ps
}

// Touch says how many of the first pages of key are stored or about to be, and raises the uses of their runs to what the
// caller has counted: uses is per page.
func (t *Tier) Touch(key []kv.Elem, uses []int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	ps := t.walk(key, false)
	for i, p := range ps {
		p.run.when, p.run.changed = time.Now().Unix(), true
		if i < len(uses) && uses[i] > p.run.uses && p.run.uses < mostUses {
			p.run.uses = min(uses[i], mostUses)
			t.use(p.run)
		}
	}
	return len(ps)
}

// use ranks a run after a use.
func (t *Tier) use(r *run) {
	t.clock++
	r.used, r.when, r.changed = t.clock, time.Now().Unix(), true
	r.Rank = t.rank(r)
	t.leaves.Moved(r)
}

// rank orders runs by what they are worth; least goes first. Much as in memory (kv.Prefix): the clock of the last use,
// plus, for every use (mostUses at most), as many as there are runs or have been, rounded up to a power of two.
func (t *Tier) rank(r *run) int64 { return r.used + int64(min(r.uses, mostUses))*t.scale }

// rescale keeps up with the number of runs.
func (t *Tier) rescale() {
	if int64(len(t.runs)) <= t.scale {
		return
	}
	for t.scale = max(t.scale, 1); t.scale < int64(len(t.runs)); {
		t.scale *= 2
	}
	for _, r := range t.runs {
		r.Rank = t.rank(r)
	}
	t.leaves.Reorder()
}

// link puts a run into the index below its parent and counts its bytes. False: it does not fit there.
func (t *Tier) link(r *run) bool {
	next := t.root
	if r.parent != nil {
		if r.parent.next == nil {
			r.parent.next = map[string]*page{}
		}
		next = r.parent.next
	}
	if next[r.pages[0].key] != nil {
		return false
	}
	if r.parent != nil {
		r.tag = r.parent.run.tag
	} else {
		r.tag = tagOf(r.pages[0].key, t.opts.Geometry.PageTokens)
	}
	for i := range r.pages {
		p := &r.pages[i]
		p.run = r
		next[p.key] = p
		if i+1 < len(r.pages) {
			p.next = map[string]*page{}
			next = p.next
		}
	}
	if up := r.parent; up != nil {
		up.run.children++
		t.leaves.Remove(up.run)
	}
	t.linked++
	r.number = t.linked
	t.runs[r.id] = r
	t.count(r.tag, 1, r.size)
	r.Rank = t.rank(r)
	t.rescale()
	t.listIfEvictable(r)
	return true
}

// listIfEvictable lists a run as evictable if it is.
func (t *Tier) listIfEvictable(r *run) {
	if r.written && r.children == 0 && !r.Listed() {
		t.leaves.Push(r)
	}
}

// unlink takes a run out of the index, with all that continue it, and adds their files to the list.
func (t *Tier) unlink(files []string, r *run) []string {
	if t.runs[r.id] != r {
		return files
	}
	delete(t.runs, r.id)
	for i := range r.pages {
		for _, p := range r.pages[i].next {
			if p.run != r {
				files = t.unlink(files, p.run)
			}
		}
	}
	t.leaves.Remove(r)
	t.count(r.tag, -1, -r.size)
	next := t.root
	if r.parent != nil {
		next = r.parent.next
		r.parent.run.children--
		t.listIfEvictable(r.parent.run)
	}
	delete(next, r.pages[0].key)
	if r.written {
		files = append(files, t.path(r.id))
	}
	return files
}

// makeRoom evicts runs that rank below a limit until need more bytes fit, or none is left, and lists their files. It does not
// evict the run of keep, nor those that keep's run continues.
func (t *Tier) makeRoom(need, below int64, keep *page) (files []string) {
	var skipped []*run
	for !t.fits(need) && len(t.leaves) > 0 {
		r := t.leaves[0]
		if r.Rank >= below {
			break
		}
		if keep != nil && keep.run == r {
			t.leaves.Pop()
			skipped = append(skipped, r)
			continue
		}
		files = t.unlink(files, r)
	}
	for _, r := range skipped {
		t.listIfEvictable(r)
	}
	return files
}

// expire removes what was not used for Options.TTL, from the ends of paths.
func (t *Tier) expire() {
	limit := time.Now().Add(-t.opts.TTL).Unix()
	var files []string
	t.mu.Lock()
	for _, r := range slices.Clone(t.leaves) {
		for r != nil && r.Listed() && r.when <= limit {
			up := r.parent
			files = t.unlink(files, r)
			if r = nil; up != nil { // which may be an end now
				r = up.run
			}
		}
	}
	t.mu.Unlock()
	t.removeFiles(files)
}

func (t *Tier) fits(need int64) bool {
	return t.bytes+need <= t.quota && (need == 0 && len(t.runs) <= mostRuns || len(t.runs) < mostRuns)
}

// seen remembers hashes of what was refused last. It only decides what is worth writing, never what is equal.
type seen struct {
	ring [4096]uint64
	n    int
	has  map[uint64]bool
}

// again reports whether key was refused before, and remembers it.
func (s *seen) again(key []kv.Elem) bool {
	h := fnv.New64a()
	var b [8]byte
	for _, e := range key {
		binary.LittleEndian.PutUint64(b[:], uint64(e))
		_, _ = h.Write(b[:])
	}
	sum := h.Sum64()
	if s.has == nil {
		s.has = map[uint64]bool{}
	}
	if s.has[sum] {
		return true
	}
	at := s.n % len(s.ring)
	if s.n >= len(s.ring) {
		delete(s.has, s.ring[at])
	}
	s.ring[at] = sum
	s.has[sum] = true
	s.n++
	return false
}
