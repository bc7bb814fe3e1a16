package cpu

import (
	"fmt"
	"io"
	"unsafe"

	"hearth/internal/backend"
	"hearth/internal/kernel"
	"hearth/internal/kv"
)

type pageID = kv.PageID

// Store is the paged KV cache. A page holds PageTokens positions of every layer of its group, layer after layer: keys
// [heads][PageTokens][KDim], then values [heads][PageTokens][VDim]. Pages are the storage, so Seal and Close have
// nothing to do, and Open and Fork copy at most one page per group.
type Store struct {
	specs  []backend.StateSpec
	layers []layer // by StateID
	groups []group
	dtype  backend.DType // BF16 or F32
	mem    *kernel.Memory
	exact  bool
}

// layer says where one state lies inside the pages of its group.
type layer struct {
	state, group      int
	offset            int // bytes into a page
	heads, kdim, vdim int
}

type group struct {
	window    int
	pageBytes int
	pages     [][]byte // by page id; 0 is never used
}

var _ backend.Store = (*Store)(nil)

func (b *Backend) NewStore(specs []backend.StateSpec, p backend.KVPolicy) (backend.Store, error) {
	s := &Store{specs: specs, dtype: p.DType, exact: b.opts.Exact, mem: &b.mem}
	if s.dtype == backend.None {
		s.dtype = backend.BF16
		if b.opts.Exact {
			s.dtype = backend.F32
		}
	}
	if s.dtype != backend.BF16 && s.dtype != backend.F32 {
		return nil, fmt.Errorf("open store: the cpu backend keeps keys and values in bf16 or f32, not in dtype %d", s.dtype)
	}
	if p.Bits != 0 {
		return nil, fmt.Errorf("open store: the cpu backend does not quantise keys and values yet (%d bits asked for)", p.Bits)
	}
	windows, of := backend.PageGroups(specs)
	for _, w := range windows {
		s.groups = append(s.groups, group{window: w, pages: [][]byte{nil}})
	}
	for i, sp := range specs {
		if sp.Kind != backend.StateKV {
			return nil, fmt.Errorf("open store: state %s: the cpu backend has no states of kind %d yet, only keys and values", sp.Name, sp.Kind)
		}
		g := &s.groups[of[i]]
		l := layer{state: i, group: of[i], offset: g.pageBytes, heads: sp.Heads, kdim: sp.KDim, vdim: sp.VDim}
		s.layers = append(s.layers, l)
		g.pageBytes += sp.Heads * (sp.KDim + sp.VDim) * s.size() * backend.PageTokens
	}
	return s, nil
}

// size is the bytes of one element.
func (s *Store) size() int {
	if s.dtype == backend.F32 {
		return 4
	}
	return 2
}

// planes are the keys and values of one layer in one page.
func planes[T kernel.KV](s *Store, l *layer, page pageID) (k, v []T) {
	nk, nv := l.heads*backend.PageTokens*l.kdim, l.heads*backend.PageTokens*l.vdim
	all := unsafe.Slice((*T)(unsafe.Pointer(&s.groups[l.group].pages[page][l.offset])), nk+nv)
	return all[:nk:nk], all[nk:]
}

func (s *Store) Geometry() kv.Geometry {
	g := kv.Geometry{PageTokens: backend.PageTokens}
	for _, p := range s.groups {
		g.Groups = append(g.Groups, kv.Group{Window: p.window, PageBytes: int64(p.pageBytes)})
	}
	return g
}

// Resize reserves address space for page ids up to c; memory is touched on use. Pages that are there keep their bytes,
// and a smaller capacity gives nothing back.
func (s *Store) Resize(c kv.Capacity) error {
	if len(c.Pages) != len(s.groups) {
		return fmt.Errorf("resize store: %d page groups, the store has %d", len(c.Pages), len(s.groups))
	}
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

func (s *Store) copyPage(what string, g int, dst, src pageID) error {
	to, err := s.page(what, g, dst)
	if err != nil {
		return err
	}
	from, err := s.page(what, g, src)
	if err != nil {
		return err
	}
	if dst == src {
		return fmt.Errorf("%s: page %d of group %d would be copied onto itself", what, dst, g)
	}
	copy(to, from)
	return nil
}

// Open copies the partly shared pages; the whole ones are shared through the table.
func (s *Store) Open(_ kv.SlotID, m kv.Match, dst []kv.PageID) error {
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

// Commit: the rejected rows of a paged state are overwritten later.
func (s *Store) Commit(kv.SlotID, int) {}

// Fork copies the last page of every group if it is partly filled. t still names the shared page there.
func (s *Store) Fork(_, _ kv.SlotID, t *kv.Table, fresh []kv.PageID) error {
	if t.Len%backend.PageTokens == 0 {
		return nil
	}
	for g, dst := range fresh {
		if dst == 0 {
			continue
		}
		if err := s.copyPage("fork slot", g, dst, t.Pages[g][t.Len/backend.PageTokens]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) Seal(kv.SlotID, *kv.Table, int, int) error { return nil }

func (s *Store) Snapshot(kv.SlotID, kv.SnapID) error { return nil }

func (s *Store) Close(kv.SlotID) {}

func (s *Store) Drop(kv.Ref) {}

// Export writes the page's bytes as they lie in memory.
func (s *Store) Export(w io.Writer, ref kv.Ref) error {
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
	return fmt.Sprintf("cpu layout 1, dtype %d, exact %t, kernel %s, page %d, %+v",
		s.dtype, s.exact, kernel.Current(), backend.PageTokens, s.specs)
}
