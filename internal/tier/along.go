package tier

import "hearth/internal/kv"

// Spot is a place in a path, and how far it is on disk. The zero Spot is where all paths begin.
type Spot struct {
	next  map[string]*page // what continues it; nil: Tier.root does
	gone  bool             // it is not all on disk, so nothing that continues it is
	pages int              // whole ones
	rest  []kv.Elem        // behind those
}

// Along goes on from a place, and says how many of the elements of key are in whole pages that are on disk. left is how many
// pages it may look at, and how many more then.
func (t *Tier) Along(s Spot, key []kv.Elem, left *int) (end Spot, tokens int) {
	size := t.opts.Geometry.PageTokens
	from := s.pages*size + len(s.rest)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.next == nil {
		s.next = t.root
	}
	var whole []kv.Elem
	for len(s.rest)+len(key) >= size && !s.gone {
		n := size - len(s.rest)
		whole = append(append(whole[:0], s.rest...), key[:n]...)
		k, ok := t.keyOf(whole, s.pages == 0)
		p := s.next[k]
		if *left--; !ok || p == nil || !p.run.written || *left < 0 {
			s.gone = true
			break
		}
		s.next, s.rest, key = p.next, nil, key[n:]
		if s.pages++; s.next == nil {
			s.next = map[string]*page{}
		}
	}
	if !s.gone {
		s.rest = append(append([]kv.Elem(nil), s.rest...), key...)
	}
	return s, max(s.pages*size-from, 0)
}
