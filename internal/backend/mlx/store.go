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
	forms   [][2]form // of keys and values, by state
	windows []int
	group   []int
	slots   map[kv.SlotID]*slot
	pages   map[pageKey]*page
	snaps   map[kv.SnapID]*fixed
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
	kv        [2]cells // keys and values
	base, cap int
}

// grain is how many positions a buffer grows by: whole pages.
const grain = 4 * B.PageTokens

var _ B.Store = (*Store)(nil)

// NewStore keeps keys and values as the policy says, in float64 alone not.
func (b *Backend) NewStore(specs []B.StateSpec, p B.KVPolicy) (B.Store, error) {
	if p.DType == B.None && p.Bits == 0 {
		p.DType = b.act
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if p.DType == B.F64 {
		return nil, fmt.Errorf("open store: the mlx backend keeps keys and values in f32, bf16, f16, q8 or q4, not in %s", p)
	}
	s := &Store{be: b, specs: specs, policy: p, slots: map[kv.SlotID]*slot{}, pages: map[pageKey]*page{}, snaps: map[kv.SnapID]*fixed{}}
	s.windows, s.group = B.PageGroups(specs)
	for i := range specs {
		d := &specs[i]
		kg, vg := p.GroupOf(d.KDim), p.GroupOf(d.VDim)
		if d.Kind == B.StateLatent {
			kg = p.LatentGroup(d.KDim, d.VDim)
			vg = kg
		}
		s.forms = append(s.forms, [2]form{newForm(p, d.Heads, d.KDim, kg), newForm(p, d.Heads, d.VDim, vg)})
	}
	b.stores = append(b.stores, s)
	b.later(b.o.wire) // the weights are there
	return s, nil
}

func (s *Store) Policy() B.KVPolicy { return s.policy }

func (s *Store) Geometry() kv.Geometry {
	g := kv.Geometry{PageTokens: B.PageTokens, Groups: make([]kv.Group, len(s.windows))}
	for i, w := range s.windows {
		g.Groups[i].Window = w
	}
	for id, sp := range s.specs {
		if sp.Paged() {
			n := int64(s.forms[id][0].bytes() + s.forms[id][1].bytes())
			g.Groups[s.group[id]].PageBytes += n * B.PageTokens
			g.SlotToken += n
			continue
		}
		g.FixedBytes += int64(sp.Heads*sp.KDim*sp.VDim) * 4
	}
	if g.FixedBytes > 0 {
		g.SnapBytes = g.FixedBytes + 8
		g.DraftBytes = g.FixedBytes * int64(s.policy.MaxDraft)
		g.FixedBytes *= 2 // what a step makes of it lies beside it
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

// advance makes every span's earlier positions present, notes which pages the step writes, and gives the buffers they are in.
func (s *Store) advance(b *B.Batch) (wrote []*buffer) {
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
				wrote = append(wrote, sl.state[id])
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
	return wrote
}

// reserve lets the buffer of a state reach the slot's valid positions.
func (s *Store) reserve(id int, sl *slot) {
	buf, forms := sl.state[id], &s.forms[id]
	if sl.valid-buf.base <= buf.cap {
		return
	}
	more := (sl.valid - buf.base - buf.cap + grain - 1) / grain * grain
	more = max(more, buf.cap/4/grain*grain)
	buf.cap += more
	l := s.be.o.lib
	s.be.later(func() {
		for i := range buf.kv {
			buf.kv[i] = l.extended(&forms[i], buf.kv[i], more)
		}
	})
}

// extend puts more positions behind those of a buffer.
func (l *lib) extend(old, more handle) handle {
	if old == 0 {
		return l.retain(more)
	}
	h := l.retain(l.concat(2, old, more))
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
				l.freeCells(&buf.kv[0])
				l.freeCells(&buf.kv[1])
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
	src := make([]func() [2]cells, len(from))
	for i := range from {
		if from[i].in == sl {
			src[i] = s.within(id, old[id], from[i].index)
		} else {
			src[i] = s.content(id, &from[i])
		}
	}
	l, forms := s.be.o.lib, &s.forms[id]
	s.be.later(func() {
		var all [2][]cells
		for _, f := range src {
			c := f()
			all[0], all[1] = append(all[0], c[0]), append(all[1], c[1])
		}
		for i := range buf.kv {
			buf.kv[i] = l.kept(&forms[i], all[i]...)
		}
	})
}

// copied is an array of type t with memory of its own: a slice that happens to be contiguous would keep all of a buffer alive.
func (l *lib) copied(h handle, t dtype) handle {
	c := l.do(fnContiguous, uintptr(l.add(h, l.zeros(t, 1))), flag(false))
	l.eval(false, c)
	return c
}

// content gives a page's keys and values of one state when it is run on the owner's thread.
func (s *Store) content(id int, p *page) func() [2]cells {
	if p.in != nil {
		return s.within(id, p.in.state[id], p.index)
	}
	own := p.own[id]
	return func() [2]cells { return own.kv }
}

func (s *Store) within(id int, buf *buffer, index int) func() [2]cells {
	from, l, forms := index*B.PageTokens-buf.base, s.be.o.lib, &s.forms[id]
	return func() (c [2]cells) {
		for i := range c {
			c[i] = l.window(&forms[i], buf.kv[i], from, from+B.PageTokens, buf.cap)
		}
		return c
	}
}

// own copies a page's positions out of wherever they are.
func (s *Store) own(g int, p *page) *page {
	c := &page{own: make([]*buffer, len(s.specs))}
	l := s.be.o.lib
	for id := range s.specs {
		if s.group[id] != g {
			continue
		}
		if p.in != nil && p.index*B.PageTokens < p.in.state[id].base {
			return nil
		}
		buf, from, forms := &buffer{cap: B.PageTokens}, s.content(id, p), &s.forms[id]
		c.own[id] = buf
		s.be.later(func() {
			for i, c := range from() {
				buf.kv[i] = l.kept(&forms[i], c)
			}
		})
	}
	return c
}

// write stores the keys and values of the step.
func (s *Store) write(sc *scope, id B.StateID, k, v *node) {
	l, forms, same := sc.l, &s.forms[id], s.policy.DType == s.be.act
	for i := range sc.b.Spans {
		sp := &sc.b.Spans[i]
		buf := s.slot(sp.Slot).state[id]
		at := sp.Start - buf.base
		sc.later(func() {
			for i, x := range [2]*node{k, v} {
				f, rows := &forms[i], handle(0)
				if x.rows == 1 {
					rows = sc.heads(x, f.width)
				} else {
					rows = l.heads(l.part(x.h, 0, sp.Row, sp.Row+sp.Len, x.rows, x.cols), sp.Len, x.cols, f.width)
				}
				l.pasted(f, &buf.kv[i], rows, at, sp.Len, same)
			}
		})
	}
}

// read gives the keys and values that a part's queries see.
func (s *Store) read(id B.StateID, p *part) (k, v handle) {
	forms := &s.forms[id]
	c, n := s.seen(id, p)
	return s.be.o.numbers(&forms[0], c[0], n, s.be.dtype()), s.be.o.numbers(&forms[1], c[1], n, s.be.dtype())
}

// seen is read before it makes numbers of codes.
func (s *Store) seen(id B.StateID, p *part) (c [2]cells, n int) {
	buf, forms := s.slot(p.span.Slot).state[id], &s.forms[id]
	from, to := max(p.from-buf.base, 0), p.to-buf.base
	for i := range c {
		c[i] = s.be.o.window(&forms[i], buf.kv[i], from, to, buf.cap)
	}
	return c, to - from
}

// pending is the state that a step has written.
func (s *Store) pending(wrote []*buffer) []handle {
	var all []handle
	for _, buf := range wrote {
		all = append(append(all, buf.kv[0][:]...), buf.kv[1][:]...)
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
		if err := s.copyPage(g, dst[g], src); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) copyPage(g int, dst, src kv.PageID) error {
	p := s.pages[pageKey{g, src}]
	if p == nil {
		return fmt.Errorf("open slot: page %d of group %d was never written", src, g)
	}
	c := s.own(g, p)
	if c == nil {
		return fmt.Errorf("open slot: page %d of group %d is gone", src, g)
	}
	s.place(pageKey{g, dst}, c)
	return nil
}

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
	l := s.be.o.lib
	for id := range s.specs {
		if s.group[id] != ref.Group {
			continue
		}
		if p.in != nil && p.index*B.PageTokens < p.in.state[id].base {
			return fmt.Errorf("export page %d of group %d: it is gone", ref.Page, ref.Group)
		}
		from, forms := s.content(id, p), &s.forms[id]
		s.be.later(func() {
			for i, c := range from() {
				for j, k := range forms[i].columns {
					all = l.bytes(all, c[j], forms[i].heads*k.n*k.t.size()*B.PageTokens)
				}
			}
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
	l := s.be.o.lib
	p := &page{own: make([]*buffer, len(s.specs))}
	for id := range s.specs {
		if s.group[id] != ref.Group {
			continue
		}
		forms, raw := &s.forms[id], [2][3][]byte{}
		for i := range forms {
			for j, k := range forms[i].columns {
				raw[i][j] = make([]byte, forms[i].heads*k.n*k.t.size()*B.PageTokens)
				if _, err := io.ReadFull(r, raw[i][j]); err != nil {
					s.discard(p.own)
					return fmt.Errorf("import page %d of group %d: %w", ref.Page, ref.Group, err)
				}
			}
		}
		buf := &buffer{cap: B.PageTokens}
		p.own[id] = buf
		s.be.later(func() {
			for i := range forms {
				f := &forms[i]
				buf.kv[i] = f.each(func(j int, k column) handle {
					return l.retain(upload(l, raw[i][j], k.t, 1, f.heads, B.PageTokens, k.n))
				})
			}
		})
	}
	s.place(pageKey{ref.Group, ref.Page}, p)
	return s.be.settle()
}

// Fingerprint changes whenever bytes of a page would mean something else.
func (s *Store) Fingerprint() string {
	return fmt.Sprintf("mlx layout 2, %v, act %v, %s, page %d, %+v", s.policy, s.be.act, s.be.o.device, B.PageTokens, s.specs)
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
