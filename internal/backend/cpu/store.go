package cpu

import (
	"fmt"
	"io"
	"slices"
	"unsafe"

	"hearth/internal/backend"
	"hearth/internal/kernel"
	"hearth/internal/kv"
)

type pageID = kv.PageID

// Store is the paged KV cache. A page holds PageTokens positions of every layer of its group, layer after layer: of
// every head PageTokens rows of keys, then as many of values, since they are read in that order. kernel.Rows has the form of a
// row. Pages are the storage, so Close has nothing to do, and Open copies at most one page per group.
type Store struct {
	specs  []backend.StateSpec
	layers []layer // by StateID
	groups []group
	fixed  fixed
	policy backend.KVPolicy
	mem    *kernel.Memory
	be     *Backend
	prec   backend.Precision
}

// layer says where one state lies inside the pages of its group.
type layer struct {
	state, group int
	offset       int // bytes into a page
	heads        int
	shared       bool        // keys of all heads, and values, are the same rows
	k, v         kernel.Rows // without data
}

type group struct {
	window    int
	pageBytes int
	pages     [][]byte // by page id; 0 is never used
}

var _ backend.Store = (*Store)(nil)

func (b *Backend) NewStore(specs []backend.StateSpec, p backend.KVPolicy) (backend.Store, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if p.DType == backend.None && p.Bits == 0 {
		switch {
		case b.opts.Precision > backend.Outliers:
			p.DType = backend.F32
		case slices.ContainsFunc(specs, bestInI16):
			p.DType = backend.I16
		default:
			p.DType = backend.BF16
		}
	}
	if p.DType == backend.F64 {
		return nil, fmt.Errorf("open store: the cpu backend keeps keys and values in f32, bf16, f16, q8 or q4, not in f64")
	}
	s := &Store{specs: specs, policy: p, prec: b.opts.Precision, mem: &b.mem, be: b}
	windows, in := backend.PageGroups(specs)
	for _, w := range windows {
		s.groups = append(s.groups, group{window: w, pages: [][]byte{nil}})
	}
	if p.MaxDraft > 0 {
		s.fixed.drafts.most = p.MaxDraft + 1
	}
	for i, sp := range specs {
		s.fixed.add(&sp)
		if !sp.Paged() {
			s.layers = append(s.layers, layer{state: i, group: -1})
			continue
		}
		g := &s.groups[in[i]]
		l := layer{state: i, group: in[i], offset: g.pageBytes, heads: sp.Heads}
		of := p
		if p.DType == backend.I16 && !bestInI16(sp) {
			of.DType = backend.BF16
		}
		if sp.Kind == backend.StateLatent {
			l.latent(of, &sp)
			g.pageBytes += l.k.Stride * backend.PageTokens
		} else {
			l.k, l.v = rows(of, sp.KDim), rows(of, sp.VDim)
			g.pageBytes += sp.Heads * (l.k.Stride + l.v.Stride) * backend.PageTokens
		}
		s.layers = append(s.layers, l)
	}
	return s, nil
}

// bestInI16 reports keys and values that are not kept in bfloat16 unless that is asked for.
func bestInI16(sp backend.StateSpec) bool {
	return sp.Kind == backend.StateKV && kernel.I16Cache(sp.KDim) && kernel.I16Cache(sp.VDim)
}

// rows is the form of the keys or values of heads of that width.
func rows(p backend.KVPolicy, width int) kernel.Rows {
	r := kernel.Rows{Width: width}
	switch {
	case p.Bits == 8:
		r.Type, r.Group = kernel.CacheQ8, p.GroupOf(width)
	case p.Bits == 4:
		r.Type, r.Group = kernel.CacheQ4, p.GroupOf(width)
	case p.DType == backend.BF16:
		r.Type = kernel.CacheBF16
	case p.DType == backend.F16:
		r.Type = kernel.CacheF16
	case p.DType == backend.I16:
		r.Type = kernel.CacheI16
	}
	r.Stride = r.RowBytes()
	return r
}

// latent: a row holds the latent and the rotary key, which all heads share; its beginning is the value as well.
func (l *layer) latent(p backend.KVPolicy, sp *backend.StateSpec) {
	l.shared = true
	l.k = rows(p, sp.KDim+sp.VDim)
	if p.Bits != 0 {
		l.k.Group = p.LatentGroup(sp.KDim, sp.VDim)
		l.k.Stride = l.k.RowBytes()
	}
	l.v = l.k
	l.v.Width, l.v.Of = sp.KDim, l.k.Width
}

// head gives the keys and values of one head in one page, row i those of its i-th position.
func (s *Store) head(l *layer, page pageID, head int) (k, v kernel.Rows) {
	all := s.groups[l.group].pages[page][l.offset:]
	k, v = l.k, l.v
	nk, nv := backend.PageTokens*k.Stride, backend.PageTokens*v.Stride
	if l.shared {
		k.Data = all[:nk:nk]
		v.Data = k.Data
		return k, v
	}
	all = all[head*(nk+nv):]
	k.Data, v.Data = all[:nk:nk], all[nk:][:nv:nv]
	return k, v
}

func (s *Store) Policy() backend.KVPolicy { return s.policy }

func (s *Store) Geometry() kv.Geometry {
	g := kv.Geometry{PageTokens: backend.PageTokens}
	for _, p := range s.groups {
		g.Groups = append(g.Groups, kv.Group{Window: p.window, PageBytes: int64(p.pageBytes)})
	}
	g.FixedBytes, g.SnapBytes, g.DraftBytes = s.fixed.bytes()
	return g
}

// Resize reserves address space for page ids up to c; memory is touched on use. Pages that are there keep their bytes,
// and a smaller capacity gives nothing back.
func (s *Store) Resize(c kv.Capacity) error {
	if len(c.Pages) != len(s.groups) {
		return fmt.Errorf("resize store: %d page groups, the store has %d", len(c.Pages), len(s.groups))
	}
	s.fixed.resize(&s.fixed.slots, c.Slots, s.mem)
	s.fixed.drafts.resize(c.Slots, s.fixed.floats, s.mem)
	s.fixed.resize(&s.fixed.snaps, c.Snaps+1, s.mem)
	for i := range s.groups {
		g := &s.groups[i]
		more := c.Pages[i] + 1 - len(g.pages)
		if more <= 0 {
			continue
		}
		slab := s.mem.Bytes(more * g.pageBytes)
		for n := range more {
			g.pages = append(g.pages, slab[n*g.pageBytes:(n+1)*g.pageBytes:(n+1)*g.pageBytes])
		}
	}
	return nil
}

// page checks an id and gives its bytes.
func (s *Store) page(what string, g int, id pageID) ([]byte, error) {
	if g < 0 || g >= len(s.groups) || id <= 0 || int(id) >= len(s.groups[g].pages) {
		return nil, fmt.Errorf("%s: page %d of group %d does not exist", what, id, g)
	}
	return s.groups[g].pages[id], nil
}

func (s *Store) copyPage(g int, dst, src pageID) error {
	to, err := s.page("open slot", g, dst)
	if err != nil {
		return err
	}
	from, err := s.page("open slot", g, src)
	if err != nil {
		return err
	}
	if dst == src {
		return fmt.Errorf("open slot: page %d of group %d would be copied onto itself", dst, g)
	}
	copy(to, from)
	return nil
}

// Open copies the partly shared pages and the snapshot; whole pages are shared through the table.
func (s *Store) Open(slot kv.SlotID, m kv.Match, dst []kv.PageID) error {
	if err := s.fixed.restore(slot, &m); err != nil {
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

// Commit settles fixed state. The rejected rows of a paged one are overwritten later.
func (s *Store) Commit(slot kv.SlotID, n int) { s.be.commit(&s.fixed, s.specs, slot, n) }

func (s *Store) Snapshot(slot kv.SlotID, id kv.SnapID) error { return s.fixed.snapshot(slot, id) }

func (s *Store) Close(kv.SlotID) {}

func (s *Store) Drop(kv.Ref) {}

// Return gives the memory behind pages, snapshots and drafts that are free back to the system, as far as whole pages of the
// system lie within those that follow each other.
func (s *Store) Return(refs []kv.Ref) {
	var run []byte // what lies side by side so far
	for _, r := range refs {
		var b []byte
		switch {
		case r.Drafts:
			s.fixed.drafts.discard()
		case r.Snap != 0 && int(r.Snap) < len(s.fixed.snaps.row):
			row := s.fixed.snaps.row[r.Snap]
			b = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(row))), 4*len(row))
		case r.Page > 0 && int(r.Page) < len(s.groups[r.Group].pages):
			b = s.groups[r.Group].pages[r.Page]
		}
		if end := len(run); end > 0 && len(b) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(run)))+uintptr(end) == uintptr(unsafe.Pointer(unsafe.SliceData(b))) {
			run = unsafe.Slice(unsafe.SliceData(run), end+len(b))
			continue
		}
		kernel.Discard(run)
		run = b
	}
	kernel.Discard(run)
}

// Export writes the page's or snapshot's bytes as they lie in memory.
func (s *Store) Export(w io.Writer, ref kv.Ref) error {
	if ref.Snap != 0 {
		return s.fixed.export(w, ref.Snap)
	}
	p, err := s.page("export", ref.Group, ref.Page)
	if err != nil {
		return err
	}
	if _, err := w.Write(p); err != nil {
		return fmt.Errorf("export page %d of group %d: %w", ref.Page, ref.Group, err)
	}
	return nil
}

func (s *Store) Import(r io.Reader, ref kv.Ref) error {
	if ref.Snap != 0 {
		return s.fixed.load(r, ref.Snap)
	}
	p, err := s.page("import", ref.Group, ref.Page)
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(r, p); err != nil {
		return fmt.Errorf("import page %d of group %d: %w", ref.Page, ref.Group, err)
	}
	return nil
}

// Fingerprint changes whenever bytes of a page would mean something else.
func (s *Store) Fingerprint() string {
	return fmt.Sprintf("cpu layout 4, %v group %d, precision %v, products and attention %s, kernel %s, page %d, %+v",
		s.policy, s.policy.Group, s.prec, kernel.Revisions(), kernel.Current(), backend.PageTokens, s.specs)
}
