package engine

import (
	"hearth/internal/kv"
	"hearth/internal/tier"
)

// stretch is a node of the prefix tree and of what is on disk, taken together. Paths on disk part from those in memory at the
// token, and from one another at the page.
type stretch struct {
	id       int64
	up       *stretch
	at       int // in nodes.list
	below    []*stretch
	next     map[kv.Elem]*stretch // those of below that are in memory, where they are many
	from, to int                  // positions
	key      []kv.Elem            // nil: it is on disk alone,
	runs     []*tier.Run          // in these
	rest     *stretch             // what it once was as well, see split
	bytes    int64
	filed    int64 // bytes of files
	onDisk   int   // up to here there are files of whole pages
	more     bool  // not all that goes on from it in memory is known
	inUse    int
	session  uint64
	used     int64 // see kv.Node
}

// diskIDs is more than the ids of nodes in memory: as many stretches follow on disk as a page can tell apart by numbers that are
// floats, with those of some hundred models.
const diskIDs = 1 << 42

// few is how many stretches are gone through to find one; where there are more, there is a table.
const few = 8

// alone reports that it is on disk and not in memory.
func (s *stretch) alone() bool { return s.key == nil }

// join lays what is on disk beside the prefix tree, of which a list has all but left nodes. It gives the stretches, parents
// before children, and how many nodes and runs are not among them. It takes some hundred nanoseconds for a node, a run, and a
// page that is in both.
func join(list []kv.Node, left int, runs []tier.Run) ([]*stretch, int) {
	root := &stretch{}
	known := make([]*stretch, len(list))
	opened := -1 // the last node of which the list has something that goes on from it
	if len(list) > 0 {
		opened = list[len(list)-1].Parent
	}
	root.more = left > 0 && opened < 0
	for i := range list {
		n := &list[i]
		s := &stretch{id: n.ID, up: root, from: n.From, to: n.From + len(n.Key), key: n.Key, bytes: n.Bytes, more: left > 0 && i >= opened && !n.End, inUse: n.InUse, session: n.Session, used: n.Used}
		if n.Parent >= 0 {
			s.up = known[n.Parent]
		}
		s.up.below = append(s.up.below, s)
		known[i] = s
	}
	ends := make([]*stretch, len(runs)) // nil: it is not known where that is
	for i := range runs {
		r, at := &runs[i], root
		if r.Parent >= 0 {
			at = ends[r.Parent]
		}
		if at != nil {
			ends[i] = at.lay(r)
		}
		if ends[i] == nil {
			left++
		}
	}
	all := make([]*stretch, 0, len(list)+len(runs))
	all = append(all, root.below...)
	for i := 0; i < len(all); i++ {
		all[i].at = i
		all = append(all, all[i].below...)
	}
	for _, s := range root.below {
		s.up = nil
	}
	return all, left
}

// lay puts a run where it belongs, which is behind s or something that s has come from. It gives where the run ends.
func (s *stretch) lay(r *tier.Run) *stretch {
	pos, pages := r.First*r.Size, r.Pages()
	s = s.holding(pos)
	for i := range pages {
		if s.alone() && s.up != nil {
			return s.grow(r, pos)
		}
		page, x, n := r.Page(i), s, pos
		for n < pos+r.Size {
			if n == x.to {
				next := x.child(&page)
				if next == nil {
					break
				}
				x = next
			}
			same := page.Take(x.key[n-x.from:])
			if n += same; n < x.to {
				break
			}
		}
		if n < pos+r.Size { // there they part
			if n == x.to && x.more {
				return nil
			}
			return x.grow(r, n)
		}
		x.filed += r.Bytes*int64(i+1)/int64(pages) - r.Bytes*int64(i)/int64(pages)
		for y := x; y != s.up && y.up != nil; y = y.up {
			y.onDisk = max(y.onDisk, min(n, y.to))
		}
		s, pos = x, n
	}
	return s
}

// holding is the stretch on the way to s, or what s once was as well, that has the position before pos.
func (s *stretch) holding(pos int) *stretch {
	for pos > s.to && s.rest != nil {
		s = s.rest
	}
	for pos <= s.from && s.up != nil {
		s = s.up
	}
	return s
}

// child is the stretch in memory that goes on from s with what comes on a page.
func (s *stretch) child(page *tier.Spelling) *stretch {
	e, ok := page.Next()
	if ok && len(s.below) > few {
		if s.next == nil {
			s.next = make(map[kv.Elem]*stretch, len(s.below))
			for _, c := range s.below {
				if !c.alone() {
					s.next[c.key[0]] = c
				}
			}
		}
		return s.next[e]
	}
	for _, c := range s.below {
		switch {
		case c.alone():
		case ok && c.key[0] == e:
			return c
		case !ok && c.key[0].IsMedia():
			if try := *page; try.Take(c.key[:1]) == 1 {
				return c
			}
		}
	}
	return nil
}

// grow lays what a run has from a position of s on, none of which is in memory. It gives where the run ends.
func (s *stretch) grow(r *tier.Run, from int) *stretch {
	pages := r.Pages()
	to := (r.First + pages) * r.Size
	filed := r.Bytes - r.Bytes*int64(from/r.Size-r.First)/int64(pages)
	if s.alone() && from == s.to && from > 0 && len(s.below) == 0 {
		s.to, s.onDisk, s.runs, s.filed, s.used = to, to, append(s.runs, r), s.filed+filed, max(s.used, r.Used*1000)
		return s
	}
	if from < s.to {
		s.split(from, diskIDs+2*r.ID+1)
	}
	c := &stretch{id: diskIDs + 2*r.ID, up: s, from: from, to: to, onDisk: to, runs: []*tier.Run{r}, filed: filed, used: r.Used * 1000}
	s.below = append(s.below, c)
	return c
}

// split makes two of a stretch. s is the first of them; what it has is shared out by tokens.
func (s *stretch) split(at int, id int64) {
	low := *s
	low.id, low.up, low.from = id, s, at
	for _, c := range low.below {
		c.up = &low
	}
	if !s.alone() {
		s.key, low.key = s.key[:at-s.from], s.key[at-s.from:]
	}
	for len(low.runs) > 0 && (low.runs[0].First+low.runs[0].Pages())*low.runs[0].Size <= at {
		low.runs = low.runs[1:]
	}
	s.bytes = s.bytes * int64(at-s.from) / int64(s.to-s.from)
	if s.onDisk > at {
		s.filed = s.filed * int64(at-s.from) / int64(s.onDisk-s.from)
	}
	low.bytes, low.filed = low.bytes-s.bytes, low.filed-s.filed
	s.to, s.below, s.next, s.rest, s.more, s.session, s.onDisk = at, []*stretch{&low}, nil, &low, false, 0, min(s.onDisk, at)
}

// first gives its first tokens, as they stand in keys.
func (s *stretch) first(most int) []kv.Elem {
	if !s.alone() {
		return s.key[:min(len(s.key), most)]
	}
	var out []kv.Elem
	for _, r := range s.runs {
		if out = append(out, r.Tokens(s.from+len(out), min(most, s.to-s.from)-len(out))...); len(out) == most {
			break
		}
	}
	return out
}
