package mlx

import (
	"fmt"
	"io"

	B "hearth/internal/backend"
	"hearth/internal/kv"
)

// Store keeps every sequence's keys and values in one buffer per state, as attention wants them: [1, heads, positions, width].
// Pages are a view of that for the prefix tree: a page that a slot has written lies in the slot's buffer, and is copied out
// only when the slot is opened for another sequence. A sequence that continues from pages has its buffer put together from
// them when its first step begins.
//
// Invariants, on the engine's side: a page id is in at most one place; positions below slot.valid are in its buffers, apart
// from those below base, which no query sees any more. Buffers themselves belong to the owner's thread.
type Store struct {
	be      *Backend
	specs   []B.StateSpec
	policy  B.KVPolicy
	windows []int
	group   []int
	slots   map[kv.SlotID]*slot
	pages   map[pageKey]*page
	snaps   map[kv.SnapID]*fixed
	touched []*buffer // by the step that is open
}

type pageKey struct {
	group int
	id    kv.PageID
}

// page is where 64 positions of a group's states are: number index of a slot's, or copies of its own.
type page struct {
	in    *slot
	index int
	own   []*buffer // by state; nil for those of other groups
}

// slot is one sequence.
type slot struct {
	valid int
	state []*buffer // by state
	pages map[pageKey]*page
	fixed *fixed
	draft *draft
}

// buffer holds positions [base, base+cap) of one state. A latent and its rotary key are k and v of one head.
type buffer struct {
	k, v      handle
	base, cap int
}

// grain is how many positions a buffer grows by: whole pages.
const grain = 4 * B.PageTokens

var _ B.Store = (*Store)(nil)

// NewStore refuses quantised keys and values, which this backend does not have yet.
func (b *Backend) NewStore(specs []B.StateSpec, p B.KVPolicy) (B.Store, error) {
	if p.DType == B.None && p.Bits == 0 {
		p.DType = b.act
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if p.Bits != 0 || p.DType == B.F64 {
		return nil, fmt.Errorf("open store: the mlx backend keeps keys and values in f32, bf16 or f16, not in %s", p)
	}
	s := &Store{be: b, specs: specs, policy: p, slots: map[kv.SlotID]*slot{}, pages: map[pageKey]*page{}, snaps: map[kv.SnapID]*fixed{}}
	s.windows, s.group = B.PageGroups(specs)
	b.stores = append(b.stores, s)
	return s, nil
}

// kv is the type of keys and values, and its size in bytes.
func (s *Store) kv() (dtype, int) {
	switch s.policy.DType {
	case B.BF16:
		return bf16, 2
	case B.F16:
		return f16, 2
	}
	return f32, 4
}

func (s *Store) Policy() B.KVPolicy { return s.policy }

func (s *Store) Geometry() kv.Geometry {
	g := kv.Geometry{PageTokens: B.PageTokens, Groups: make([]kv.Group, len(s.windows))}
	for i, w := range s.windows {
		g.Groups[i].Window = w
	}
	_, size := s.kv()
	for id, sp := range s.specs {
		if sp.Paged() {
			n := int64(sp.Heads * (sp.KDim + sp.VDim) * size)
			g.Groups[s.group[id]].PageBytes += n * B.PageTokens
			g.SlotToken += n
			continue
		}
		g.FixedBytes += int64(sp.Heads*sp.KDim*sp.VDim) * 4
	}
	if g.FixedBytes > 0 {
		g.SnapBytes = g.FixedBytes + 8
		g.FixedBytes *= int64(2 + s.policy.MaxDraft)
	}
	return g
}

// Resize has nothing to reserve: buffers grow with their sequences.
func (s *Store) Resize(kv.Capacity) error { return nil }

func (s *Store) slot(id kv.SlotID) *slot {
	sl := s.slots[id]
	if sl == nil {
		sl = &slot{pages: map[pageKey]*page{}, fixed: s.newFixed()}
		for range s.specs {
			sl.state = append(sl.state, &buffer{})
		}
		s.slots[id] = sl
	}
	return sl
}

// advance makes every span's earlier positions present and notes which pages the step writes.
func (s *Store) advance(b *B.Batch) {
	s.touched = s.touched[:0]
	for i := range b.Spans {
		sp := &b.Spans[i]
		sl := s.slot(sp.Slot)
		s.advanceFixed(sl, sp)
		if sp.Start > sl.valid && len(s.windows) > 0 {
			s.assemble(sl, sp)
		}
		sl.valid = sp.Start + sp.Len
		for id, g := range s.group {
			if g >= 0 {
				s.reserve(id, sl)
			}
		}
		if len(s.windows) == 0 {
			continue
		}
		for g, ids := range sp.Table.Pages {
			for n := sp.Start / B.PageTokens; n <= (sl.valid-1)/B.PageTokens; n++ {
				s.place(pageKey{g, ids[n]}, &page{in: sl, index: n})
			}
		}
	}
}

// reserve lets the buffer of a state reach the slot's valid positions.
func (s *Store) reserve(id int, sl *slot) {
	buf, d := sl.state[id], s.specs[id]
	s.touched = append(s.touched, buf)
	if sl.valid-buf.base <= buf.cap {
		return
	}
	more := (sl.valid - buf.base - buf.cap + grain - 1) / grain * grain
	more = max(more, buf.cap/4/grain*grain)
	buf.cap += more
	t, _ := s.kv()
	l := s.be.o.lib
	s.be.later(func() {
		buf.k = l.extend(buf.k, l.zeros(t, 1, d.Heads, more, d.KDim))
		buf.v = l.extend(buf.v, l.zeros(t, 1, d.Heads, more, d.VDim))
	})
}

// extend puts more positions behind those of a buffer.
func (l *lib) extend(old, more handle) handle {
	if old == 0 {
		return l.keep(more)
	}
	h := l.keep(l.concat(2, old, more))
	l.free(old)
	return h
}

// place says where a page is now.
func (s *Store) place(key pageKey, p *page) {
	if old := s.pages[key]; old != nil {
		if old.in != nil {
			delete(old.in.pages, key)
		}
		s.discard(old.own)
	}
	s.pages[key] = p
	if p.in != nil {
		p.in.pages[key] = p
	}
}

func (s *Store) discard(all []*buffer) {
	l := s.be.o.lib
	for _, buf := range all {
		if buf != nil {
			s.be.later(func() {
				l.free(buf.k)
				l.free(buf.v)
				*buf = buffer{}
			})
		}
	}
}

// assemble fills an empty slot's buffers from the pages of a span's table.
func (s *Store) assemble(sl *slot, sp *B.Span) {
	n := (sp.Start + B.PageTokens - 1) / B.PageTokens
	old := sl.state
	sl.state = make([]*buffer, len(s.specs))
	for id, g := range s.group {
		buf := &buffer{}
		sl.state[id] = buf
		if g < 0 {
			continue
		}
		ids, first := sp.Table.Pages[g], 0
		for i, page := range ids[:n] {
			if page <= 0 {
				first = i + 1
			}
		}
		if w := s.windows[g]; first > 0 && (w == 0 || first*B.PageTokens > max(sp.Start-w+1, 0)) {
			panic(fmt.Sprintf("mlx: state %s needs a page that was released", s.specs[id].Name))
		}
		var from []page
		for _, page := range ids[first:n] {
			p := s.pages[pageKey{g, page}]
			if p == nil {
				panic(fmt.Sprintf("mlx: page %d of group %d was never written", page, g))
			}
			from = append(from, *p)
		}
		buf.base, buf.cap = first*B.PageTokens, len(from)*B.PageTokens
		s.gather(id, buf, from, old, sl)
	}
	s.discard(old)
}

// gather puts pages one after the other. Those of the slot itself are in its old buffers.
func (s *Store) gather(id int, buf *buffer, from []page, old []*buffer, sl *slot) {
	if len(from) == 0 {
		return
	}
	src := make([]func() (k, v handle), len(from))
	for i := range from {
		if from[i].in == sl {
			src[i] = s.within(old[id], from[i].index)
		} else {
			src[i] = s.content(id, &from[i])
		}
	}
	l := s.be.o.lib
	t, _ := s.kv()
	s.be.later(func() {
		var ks, vs []handle
		for _, f := range src {
			k, v := f()
			ks, vs = append(ks, k), append(vs, v)
		}
		buf.k, buf.v = l.keep(l.copied(l.concat(2, ks...), t)), l.keep(l.copied(l.concat(2, vs...), t))
	})
}

// copied is an array of type t with memory of its own: a slice that happens to be contiguous would keep all of a buffer alive.
func (l *lib) copied(h handle, t dtype) handle {
	c := l.do(fnContiguous, uintptr(l.add(h, l.zeros(t, 1))), flag(false))
	l.eval(false, c)
	return c
}

// content gives a page's keys and values of one state when it is run on the owner's thread.
func (s *Store) content(id int, p *page) func() (k, v handle) {
	if p.in != nil {
		return s.within(p.in.state[id], p.index)
	}
	own, l := p.own[id], s.be.o.lib
	return func() (k, v handle) { return l.again(own.k), l.again(own.v) }
}

func (s *Store) within(buf *buffer, index int) func() (k, v handle) {
	from, l := index*B.PageTokens-buf.base, s.be.o.lib
	return func() (k, v handle) {
		return l.cut(buf.k, 2, from, from+B.PageTokens), l.cut(buf.v, 2, from, from+B.PageTokens)
	}
}

// own copies a page's positions out of wherever they are.
func (s *Store) own(g int, p *page) *page {
	c := &page{own: make([]*buffer, len(s.specs))}
	l := s.be.o.lib
	t, _ := s.kv()
	for id := range s.specs {
		if s.group[id] != g {
			continue
		}
		if p.in != nil && p.index*B.PageTokens < p.in.state[id].base {
			return nil
		}
		buf, from := &buffer{cap: B.PageTokens}, s.content(id, p)
		c.own[id] = buf
		s.be.later(func() {
			k, v := from()
			buf.k, buf.v = l.keep(l.copied(k, t)), l.keep(l.copied(v, t))
		})
	}
	return c
}

// write stores the keys and values of the step.
func (s *Store) write(sc *scope, id B.StateID, k, v *node) {
	t, _ := s.kv()
	l, d := sc.l, s.specs[id]
	for i := range sc.b.Spans {
		sp := &sc.b.Spans[i]
		buf := s.slot(sp.Slot).state[id]
		at := sp.Start - buf.base
		sc.later(func() {
			put := func(h handle, x *node) handle {
				rows := l.heads(l.cut(x.h, 0, sp.Row, sp.Row+sp.Len), d.Heads)
				y := l.keep(l.paste(h, l.cast(rows, t), 2, at))
				if y == 0 {
					return h
				}
				l.free(h)
				return y
			}
			buf.k, buf.v = put(buf.k, k), put(buf.v, v)
		})
	}
}

// read gives the keys and values that a part's queries see.
func (s *Store) read(id B.StateID, p *part) (k, v handle) {
	buf, l := s.slot(p.span.Slot).state[id], s.be.o.lib
	from, to := max(p.from-buf.base, 0), p.to-buf.base
	return l.cut(buf.k, 2, from, to), l.cut(buf.v, 2, from, to)
}

// pending are the buffers that the open step has written.
func (s *Store) pending() []handle {
	var all []handle
	for _, buf := range s.touched {
		all = append(all, buf.k, buf.v)
	}
	for _, sl := range s.slots {
		all = append(all, sl.fixed.state...)
	}
	return all
}

// vacate copies the pages that lie in a slot out of it, and empties it.
func (s *Store) vacate(id kv.SlotID) {
	sl := s.slots[id]
	if sl == nil {
		return
	}
	for key, p := range sl.pages {
		if c := s.own(key.group, p); c != nil {
			s.place(key, c)
		} else {
			delete(s.pages, key)
		}
	}
	s.discard(sl.state)
	s.dropFixed(sl)
	delete(s.slots, id)
}

// Open makes the slot empty; what m matched is put together when its first step begins. The partly shared pages are copied.
func (s *Store) Open(id kv.SlotID, m kv.Match, dst []kv.PageID) error {
	s.vacate(id)
	if err := s.restore(s.slot(id), id, &m); err != nil {
		return err
	}
	for g, src := range m.Tail {
		if src == 0 {
			continue
		}
		if g >= len(dst) {
			return fmt.Errorf("open slot: no page given for the tail of group %d", g)
		}
		if err := s.copyPage("open slot", g, dst[g], src); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) copyPage(what string, g int, dst, src kv.PageID) error {
	p := s.pages[pageKey{g, src}]
	if p == nil {
		return fmt.Errorf("%s: page %d of group %d was never written", what, src, g)
	}
	c := s.own(g, p)
	if c == nil {
		return fmt.Errorf("%s: page %d of group %d is gone", what, src, g)
	}
	s.place(pageKey{g, dst}, c)
	return nil
}

// Fork copies the page that is partly filled; the rest is put together from shared pages when dst's first step begins.
func (s *Store) Fork(dst, src kv.SlotID, t *kv.Table, fresh []kv.PageID) error {
	s.vacate(dst)
	s.forkFixed(s.slot(dst), s.slot(src))
	if t.Len%B.PageTokens == 0 {
		return nil
	}
	for g, page := range fresh {
		if page == 0 {
			continue
		}
		if err := s.copyPage("fork slot", g, page, t.Pages[g][t.Len/B.PageTokens]); err != nil {
			return err
		}
	}
	return nil
}

// Seal has nothing to do: pages are copied out of a slot when it is opened again.
func (s *Store) Seal(kv.SlotID, *kv.Table, int, int) error { return nil }

func (s *Store) Close(id kv.SlotID) { s.vacate(id) }

func (s *Store) Drop(ref kv.Ref) {
	if ref.Snap != 0 {
		s.dropSnap(ref.Snap)
		return
	}
	key := pageKey{ref.Group, ref.Page}
	if p := s.pages[key]; p != nil {
		s.place(key, &page{})
		delete(s.pages, key)
	}
}

// Export writes a page's keys and values, state after state.
func (s *Store) Export(w io.Writer, ref kv.Ref) error {
	if ref.Snap != 0 {
		return s.exportSnap(w, ref.Snap)
	}
	p := s.pages[pageKey{ref.Group, ref.Page}]
	if p == nil {
		return fmt.Errorf("export page %d of group %d: never written", ref.Page, ref.Group)
	}
	var all []byte
	_, size := s.kv()
	l := s.be.o.lib
	for id, sp := range s.specs {
		if s.group[id] != ref.Group {
			continue
		}
		if p.in != nil && p.index*B.PageTokens < p.in.state[id].base {
			return fmt.Errorf("export page %d of group %d: it is gone", ref.Page, ref.Group)
		}
		from := s.content(id, p)
		s.be.later(func() {
			k, v := from()
			all = l.bytes(all, k, sp.Heads*sp.KDim*B.PageTokens*size)
			all = l.bytes(all, v, sp.Heads*sp.VDim*B.PageTokens*size)
		})
	}
	err := s.be.settle()
	if err == nil {
		_, err = w.Write(all)
	}
	if err != nil {
		return fmt.Errorf("export page %d of group %d: %w", ref.Page, ref.Group, err)
	}
	return nil
}

func (s *Store) Import(r io.Reader, ref kv.Ref) error {
	if ref.Snap != 0 {
		return s.importSnap(r, ref.Snap)
	}
	t, size := s.kv()
	l := s.be.o.lib
	p := &page{own: make([]*buffer, len(s.specs))}
	for id, sp := range s.specs {
		if s.group[id] != ref.Group {
			continue
		}
		k := make([]byte, sp.Heads*sp.KDim*B.PageTokens*size)
		v := make([]byte, sp.Heads*sp.VDim*B.PageTokens*size)
		for _, b := range [][]byte{k, v} {
			if _, err := io.ReadFull(r, b); err != nil {
				s.discard(p.own)
				return fmt.Errorf("import page %d of group %d: %w", ref.Page, ref.Group, err)
			}
		}
		buf := &buffer{cap: B.PageTokens}
		p.own[id] = buf
		s.be.later(func() {
			buf.k = l.keep(upload(l, k, t, 1, sp.Heads, B.PageTokens, sp.KDim))
			buf.v = l.keep(upload(l, v, t, 1, sp.Heads, B.PageTokens, sp.VDim))
		})
	}
	s.place(pageKey{ref.Group, ref.Page}, p)
	return s.be.settle()
}

// Fingerprint changes whenever bytes of a page would mean something else.
func (s *Store) Fingerprint() string {
	return fmt.Sprintf("mlx layout 1, %v, act %v, %s, page %d, %+v", s.policy, s.be.act, s.be.o.device, B.PageTokens, s.specs)
}

// release frees everything.
func (s *Store) release() {
	for id := range s.slots {
		s.discard(s.slots[id].state)
		s.dropFixed(s.slots[id])
	}
	for _, p := range s.pages {
		s.discard(p.own)
	}
	for id := range s.snaps {
		s.dropSnap(id)
	}
}
