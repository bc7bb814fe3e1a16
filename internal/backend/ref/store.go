package ref

import (
	"encoding/binary"
	"fmt"
	"io"

	B "hearth/internal/backend"
	"hearth/internal/kv"
)

// Store keeps keys and values in float64, page by page, so that sharing and restoring go the same ways as in
// a real store. What a policy rounds is rounded when it is written; no policy rounds nothing. It needs no capacity: a
// page exists once it is written.
type Store struct {
	specs   []B.StateSpec
	policy  B.KVPolicy
	windows []int
	group   []int
	pages   []map[kv.PageID][]float64 // per state: [token][heads·KDim keys, heads·VDim values]
	slots   map[kv.SlotID]*fixed
	snaps   map[kv.SnapID]*fixed
	drafts  map[kv.SlotID][]*fixed // after every row of a tentative span that is not committed
}

var _ B.Store = (*Store)(nil)

func (b *Backend) NewStore(specs []B.StateSpec, p B.KVPolicy) (B.Store, error) {
	if p.DType == B.None && p.Bits == 0 {
		p.DType = B.F64
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{specs: specs, policy: p, pages: make([]map[kv.PageID][]float64, len(specs)),
		slots: map[kv.SlotID]*fixed{}, snaps: map[kv.SnapID]*fixed{}, drafts: map[kv.SlotID][]*fixed{}}
	s.windows, s.group = B.PageGroups(specs)
	for i := range specs {
		s.pages[i] = map[kv.PageID][]float64{}
	}
	return s, nil
}

func (s *Store) width(id int) int { return s.specs[id].Heads * (s.specs[id].KDim + s.specs[id].VDim) }

func (s *Store) Policy() B.KVPolicy { return s.policy }

func (s *Store) Geometry() kv.Geometry {
	g := kv.Geometry{PageTokens: B.PageTokens}
	for i, w := range s.windows {
		g.Groups = append(g.Groups, kv.Group{Window: w})
		for id := range s.specs {
			if s.group[id] == i {
				g.Groups[i].PageBytes += int64(s.width(id)) * 8 * B.PageTokens
			}
		}
	}
	for _, sp := range s.specs {
		if !sp.Paged() {
			g.FixedBytes += int64(sp.Heads*sp.KDim*sp.VDim) * 8
		}
	}
	if g.FixedBytes > 0 {
		g.SnapBytes = g.FixedBytes + 8 // after how many tokens it is
		if s.policy.MaxDraft > 0 {
			g.DraftBytes = g.FixedBytes * int64(1+s.policy.MaxDraft) // after every row
		}
	}
	return g
}

func (s *Store) row(id int, t *kv.Table, index int) []float64 {
	page := t.Pages[s.group[id]][index/B.PageTokens]
	if page <= 0 {
		panic(fmt.Sprintf("ref: index %d of state %s is on a released page", index, s.specs[id].Name))
	}
	w := s.width(id)
	if s.pages[id][page] == nil {
		s.pages[id][page] = make([]float64, w*B.PageTokens)
	}
	at := index % B.PageTokens * w
	return s.pages[id][page][at : at+w]
}

func (s *Store) at(id B.StateID, t *kv.Table, index int) (k, v []float64) {
	r, n := s.row(int(id), t, index), s.specs[id].Heads*s.specs[id].KDim
	return r[:n], r[n:]
}

func (s *Store) write(id B.StateID, spans []B.Span, k, v *array) {
	for _, sp := range spans {
		for r := range sp.Len {
			ks, vs := s.at(id, sp.Table, sp.Start+r)
			copy(ks, k.row(sp.Row+r))
			copy(vs, v.row(sp.Row+r))
			d := &s.specs[id]
			if d.Kind == B.StateLatent {
				storedLatent(s.policy, ks, vs)
				continue
			}
			for h := range d.Heads {
				stored(s.policy, ks[h*d.KDim:][:d.KDim])
				stored(s.policy, vs[h*d.VDim:][:d.VDim])
			}
		}
	}
}

func (s *Store) copyPage(group int, dst, src kv.PageID) {
	for id := range s.specs {
		if s.group[id] == group {
			s.pages[id][dst] = append([]float64(nil), s.pages[id][src]...)
		}
	}
}

func (s *Store) Resize(kv.Capacity) error { return nil }

func (s *Store) Open(slot kv.SlotID, m kv.Match, dst []kv.PageID) error {
	if err := s.restore(slot, m); err != nil {
		return err
	}
	for g, page := range m.Tail {
		if page != 0 {
			s.copyPage(g, dst[g], page)
		}
	}
	return nil
}

func (s *Store) Snapshot(slot kv.SlotID, id kv.SnapID) error {
	s.snaps[id] = s.slot(slot).clone()
	return nil
}

func (s *Store) Close(slot kv.SlotID) { delete(s.slots, slot) }

func (s *Store) Drop(ref kv.Ref) { delete(s.snaps, ref.Snap) }

func (s *Store) Export(w io.Writer, ref kv.Ref) error {
	if ref.Snap != 0 {
		return s.exportSnap(w, ref.Snap)
	}
	for id := range s.specs {
		if s.group[id] != ref.Group {
			continue
		}
		page := s.pages[id][ref.Page]
		if page == nil {
			return fmt.Errorf("export page %d of group %d: never written", ref.Page, ref.Group)
		}
		if err := binary.Write(w, binary.LittleEndian, page); err != nil {
			return fmt.Errorf("export page %d of group %d: %w", ref.Page, ref.Group, err)
		}
	}
	return nil
}

func (s *Store) Import(r io.Reader, ref kv.Ref) error {
	if ref.Snap != 0 {
		return s.importSnap(r, ref.Snap)
	}
	for id := range s.specs {
		if s.group[id] != ref.Group {
			continue
		}
		page := make([]float64, s.width(id)*B.PageTokens)
		if err := binary.Read(r, binary.LittleEndian, page); err != nil {
			return fmt.Errorf("import page %d of group %d: %w", ref.Page, ref.Group, err)
		}
		s.pages[id][ref.Page] = page
	}
	return nil
}

func (s *Store) Fingerprint() string {
	return fmt.Sprintf("ref 2 %+v %d %+v", s.policy, B.PageTokens, s.specs)
}
