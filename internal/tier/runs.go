package tier

import (
	"cmp"
	"slices"

	"hearth/internal/kv"
)

// Run is a file, for people who look at what is stored: pages of a path, behind those of the run that it continues.
type Run struct {
	ID     int64 // its own, as long as the tier is open
	Parent int   // in the list; -1: it begins a path
	First  int   // index of its first page in the path
	Size   int   // tokens of a page
	Bytes  int64
	Used   int64 // Unix time in seconds

	pages  []page // of which only the keys are read: they do not change
	salted bool
	tier   *Tier
}

// Runs lists what is written, each run behind the one that it continues. Others wait for the tier some hundred nanoseconds a run;
// no key is copied.
func (t *Tier) Runs() []Run {
	type found struct {
		*run
		when int64
	}
	t.mu.Lock()
	all := make([]found, 0, len(t.runs))
	for _, r := range t.runs {
		if r.written {
			all = append(all, found{r, r.when})
		}
	}
	t.mu.Unlock() // nothing else that is read below changes once a run is linked
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.pages[0].index, b.pages[0].index), cmp.Compare(a.number, b.number))
	})
	at := make(map[*run]int, len(all))
	list := make([]Run, 0, len(all))
	for _, r := range all {
		up := -1
		if r.parent != nil {
			var known bool
			if up, known = at[r.parent.run]; !known {
				continue
			}
		}
		at[r.run] = len(list)
		list = append(list, Run{r.number, up, r.pages[0].index, t.opts.Geometry.PageTokens, r.size, r.when, r.pages, r.tag != 0, t})
	}
	return list
}

// Pages is how many it has.
func (r *Run) Pages() int { return len(r.pages) }

// Page is the tokens of one of its pages, from 0.
func (r *Run) Page(i int) Spelling {
	return Spelling{rest: r.pages[i].key, salted: r.salted && r.pages[i].index == 0, tier: r.tier}
}

// Tokens gives at most so many from a position of the path on, salted as they are, and ends before a row of a media item.
func (r *Run) Tokens(from, most int) []kv.Elem {
	var out []kv.Elem
	for i := from/r.Size - r.First; i >= 0 && i < len(r.pages) && len(out) < most; i++ {
		s := r.Page(i)
		for k := range r.Size {
			e, ok := s.Next()
			if !ok {
				return out
			}
			if s.skip(e); (r.First+i)*r.Size+k >= from && len(out) < most {
				out = append(out, e)
			}
		}
	}
	return out
}

// Spelling goes through the elements of a page.
type Spelling struct {
	rest   string // of its key
	at     int
	before kv.Elem
	salted bool
	tier   *Tier
}

// Next is the element that comes, if it is a token.
func (s *Spelling) Next() (kv.Elem, bool) {
	w, ok := word(s.rest)
	e := kv.Elem(w)
	if !ok || e.IsMedia() {
		return 0, false
	}
	if s.inSalt() {
		w, ok = word(s.rest[4:])
		e |= kv.Elem(w) << 32
	}
	return e, ok
}

// skip goes on behind a token that Next gave.
func (s *Spelling) skip(e kv.Elem) {
	n := 4
	if s.inSalt() {
		n = 8
	}
	s.rest, s.before = s.rest[n:], e
	s.at++
}

// Take goes on behind as many elements as are those of key, and says how many that were.
func (s *Spelling) Take(key []kv.Elem) int {
	var room [4 + digestBytes + 4]byte
	for n, e := range key {
		size := 4
		if e>>31 == 0 && !s.inSalt() { // a token, as most are
			if w, ok := word(s.rest); !ok || kv.Elem(w) != e {
				return n
			}
		} else {
			b, ok := s.tier.appendElem(room[:0], e, s.before, s.at, s.salted)
			if size = len(b); !ok || len(s.rest) < size || s.rest[:size] != string(b) {
				return n
			}
		}
		s.rest, s.before = s.rest[size:], e
		s.at++
	}
	return len(key)
}

// inSalt reports that what comes is spelled with its part of the salt.
func (s *Spelling) inSalt() bool { return s.salted && s.at < saltedElems }

// word is the first four bytes of a key.
func word(key string) (uint32, bool) {
	if len(key) < 4 {
		return 0, false
	}
	return uint32(key[0]) | uint32(key[1])<<8 | uint32(key[2])<<16 | uint32(key[3])<<24, true
}
