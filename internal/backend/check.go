package backend

import (
	"cmp"
	"fmt"
)

// Check is the shape half of the contract: one method per op that panics with the op's name and the sizes when the
// operands do not fit, and is silent otherwise. Every backend calls it first, so all of them refuse the same things in
// the same words. Lifetimes are the backend's own to check. It allocates only to panic.
type Check struct {
	Batch  *Batch
	States []StateSpec // of the step's store; nil for stateless batches
}

func fail(format string, args ...any) { panic("backend: " + fmt.Sprintf(format, args...)) }

// Begin checks the batch itself: spans tile the rows in order, wanted rows ascend, page tables cover what is written.
// groups is the number of page groups of the store, pageTokens its page size.
func (c Check) Begin(groups, pageTokens int) {
	b, row := c.Batch, 0
	for i := range b.Spans {
		s := &b.Spans[i]
		if s.Row != row || s.Len <= 0 {
			fail("span %d: has rows %d+%d, want them to start at %d and be at least 1", i, s.Row, s.Len, row)
		}
		if s.Start < 0 {
			fail("span %d: starts at index %d", i, s.Start)
		}
		row += s.Len
		c.table(i, s, groups, pageTokens)
		for _, r := range s.Both {
			if r.From < s.Start || r.To > s.Start+s.Len || r.From > r.To {
				fail("span %d: two-way range [%d, %d) leaves the span's [%d, %d)", i, r.From, r.To, s.Start, s.Start+s.Len)
			}
		}
	}
	if row != b.Rows() {
		fail("spans cover %d rows of %d", row, b.Rows())
	}
	if len(b.Tokens) != 0 && len(b.Tokens) != row {
		fail("batch has %d tokens for %d rows", len(b.Tokens), row)
	}
	if len(b.Types) != 0 && len(b.Types) != row {
		fail("batch has %d types for %d rows", len(b.Types), row)
	}
	for i, r := range b.Out {
		if r < 0 || int(r) >= row || i > 0 && r <= b.Out[i-1] {
			fail("out[%d] is row %d: wanted rows must ascend inside [0, %d)", i, r, row)
		}
	}
	for a, pos := range b.Pos {
		if pos != nil && len(pos) != row {
			fail("batch has %d positions on axis %d for %d rows", len(pos), a, row)
		}
	}
	row = 0
	for i := range b.Alt {
		if b.Alt[i].Row != row || b.Alt[i].Len <= 0 {
			fail("alternative span %d: has rows %d+%d, want them to start at %d", i, b.Alt[i].Row, b.Alt[i].Len, row)
		}
		row += b.Alt[i].Len
	}
	if row != 0 && row != b.Rows() {
		fail("alternative spans cover %d rows of %d", row, b.Rows())
	}
}

func (c Check) table(i int, s *Span, groups, pageTokens int) {
	if groups == 0 {
		return
	}
	if s.Table == nil || len(s.Table.Pages) != groups {
		fail("span %d: the store has %d page groups, the span's table does not", i, groups)
	}
	if s.Table.Len > s.Start {
		fail("span %d: starts at index %d inside the %d settled tokens", i, s.Start, s.Table.Len)
	}
	for g, pages := range s.Table.Pages {
		if len(pages)*pageTokens < s.Start+s.Len {
			fail("span %d: %d pages of group %d do not cover %d tokens", i, len(pages), g, s.Start+s.Len)
		}
		for p := s.Start / pageTokens; p <= (s.Start+s.Len-1)/pageTokens; p++ {
			if pages[p] <= 0 {
				fail("span %d: page %d of group %d is released but would be written", i, p, g)
			}
		}
	}
}

// aligned: all rows or the wanted rows.
func (c Check) aligned(op string, a Array) {
	if a.Rows() != c.Batch.Rows() && a.Rows() != len(c.Batch.Out) {
		fail("%s: %d rows are neither the batch's %d nor the %d wanted", op, a.Rows(), c.Batch.Rows(), len(c.Batch.Out))
	}
}

func (c Check) all(op, what string, a Array, cols int) {
	if a.Rows() != c.Batch.Rows() || a.Cols() != cols {
		fail("%s: %s is %d×%d, want %d×%d", op, what, a.Rows(), a.Cols(), c.Batch.Rows(), cols)
	}
}

func (c Check) Embed(w Weight, ix *Index) {
	per := max(ix.PerRow, 1)
	if len(ix.IDs)%per != 0 {
		fail("Embed: %d ids, %d per row", len(ix.IDs), per)
	}
	if ix.Scale != nil && len(ix.Scale) != len(ix.IDs) {
		fail("Embed: %d scales for %d ids", len(ix.Scale), len(ix.IDs))
	}
	for _, id := range ix.IDs {
		if id >= 0 && int(id)+int(ix.Offset) >= w.Out() || int(id)+int(ix.Offset) < 0 && ix.Late.IsZero() {
			fail("Embed: id %d is outside the table's %d rows", int(id)+int(ix.Offset), w.Out())
		}
	}
}

func (c Check) Linear(x Array, w Weight) {
	if x.Cols() != w.In() {
		fail("Linear: x has %d columns, the weight takes %d", x.Cols(), w.In())
	}
}

func (c Check) LinearGLU(x Array, w Weight) {
	if x.Cols() != w.In() || w.Out()%2 != 0 {
		fail("LinearGLU: x has %d columns, the weight takes %d and gives %d", x.Cols(), w.In(), w.Out())
	}
}

func (c Check) RMSNorm(x Array, w Weight, s *Norm) {
	width := cmp.Or(s.Width, x.Cols())
	if width < 0 || x.Cols()%width != 0 {
		fail("RMSNorm: width %d does not divide %d columns", width, x.Cols())
	}
	if w != nil && w.Out() != width && w.Out() != x.Cols() {
		fail("RMSNorm: weight has %d entries for width %d of %d columns", w.Out(), width, x.Cols())
	}
}

func (c Check) LayerNorm(x Array, w, bias Weight, s *Norm) {
	width := cmp.Or(s.Width, x.Cols())
	if width < 0 || x.Cols()%width != 0 {
		fail("LayerNorm: width %d does not divide %d columns", width, x.Cols())
	}
	for _, v := range []Weight{w, bias} {
		if v != nil && v.Out() != width && v.Out() != x.Cols() {
			fail("LayerNorm: weight or bias has %d entries for width %d of %d columns", v.Out(), width, x.Cols())
		}
	}
}

func (c Check) RoPE(x Array, s *Rope) {
	c.aligned("RoPE", x)
	if s.Head <= 0 || x.Cols()%s.Head != 0 {
		fail("RoPE: head width %d does not divide %d columns", s.Head, x.Cols())
	}
	n := len(s.InvFreq)
	last := s.Offset + 2*n
	if !s.Traditional && s.Split > 0 {
		last = s.Offset + s.Split + n
		if s.Split < n {
			fail("RoPE: %d pairs overlap with a split of %d", n, s.Split)
		}
	}
	if s.Offset < 0 || last > s.Head {
		fail("RoPE: %d pairs at %d leave the head's %d columns", n, s.Offset, s.Head)
	}
	if s.Axis != nil && len(s.Axis) != n {
		fail("RoPE: %d axes for %d pairs", len(s.Axis), n)
	}
	for _, a := range s.Axis {
		if a > 2 {
			fail("RoPE: the batch has no positions on axis %d", a)
		}
	}
}

func (c Check) Attention(q, k, v Array, s *Attn) {
	c.aligned("Attention", q)
	if s.KVHeads <= 0 || s.Heads%s.KVHeads != 0 || q.Cols() != s.Heads*s.KDim {
		fail("Attention: q has %d columns for %d heads (%d of keys) of width %d", q.Cols(), s.Heads, s.KVHeads, s.KDim)
	}
	if s.Chunks && (s.Window <= 0 || s.Both) {
		fail("Attention: chunks of %d positions, two-way is %t", s.Window, s.Both)
	}
	if k.IsZero() != v.IsZero() {
		fail("Attention: keys and values must come together")
	}
	if !k.IsZero() {
		c.all("Attention", "k", k, s.KVHeads*s.KDim)
		c.all("Attention", "v", v, s.KVHeads*s.VDim)
	}
	if s.Sinks != nil && s.Sinks.Out() != s.Heads {
		fail("Attention: %d sinks for %d heads", s.Sinks.Out(), s.Heads)
	}
	if s.State == NoState {
		if k.IsZero() {
			fail("Attention: neither state nor keys")
		}
		if s.Alt && len(c.Batch.Alt) == 0 && c.Batch.Rows() > 0 {
			fail("Attention: the batch has no alternative spans")
		}
		return
	}
	if s.Both || s.Alt {
		fail("Attention: two-way and alternative spans are for stateless attention only")
	}
	if s.State < 0 || int(s.State) >= len(c.States) {
		fail("Attention: state %d of %d is not declared", s.State, len(c.States))
	}
	d := &c.States[s.State]
	if d.Kind != StateKV || d.Heads != s.KVHeads || d.KDim != s.KDim || d.VDim != s.VDim || d.Window != s.Window {
		fail("Attention: state %s is declared as kind %d, %d heads of %d and %d, window %d; used with %d heads of %d and %d, window %d",
			d.Name, d.Kind, d.Heads, d.KDim, d.VDim, d.Window, s.KVHeads, s.KDim, s.VDim, s.Window)
	}
}

func (c Check) Add(a, b Array) {
	if a.Rows() != b.Rows() && b.Rows() != 1 || a.Cols() != b.Cols() {
		fail("Add: %d×%d and %d×%d", a.Rows(), a.Cols(), b.Rows(), b.Cols())
	}
}

func (c Check) Gate(g, x Array) {
	if g.Rows() != x.Rows() || g.Cols() == 0 || x.Cols()%g.Cols() != 0 {
		fail("Gate: %d×%d and %d×%d", g.Rows(), g.Cols(), x.Rows(), x.Cols())
	}
}

func (c Check) Cols(x Array, from, to int) {
	if from < 0 || from >= to || to > x.Cols() {
		fail("Cols: [%d, %d) of %d columns", from, to, x.Cols())
	}
}

func (c Check) Concat(a, b Array) {
	if a.Rows() != b.Rows() {
		fail("Concat: %d and %d rows", a.Rows(), b.Rows())
	}
}

func (c Check) MergeRows(x Array, n int) {
	if n <= 0 || x.Rows()%n != 0 {
		fail("MergeRows: %d rows by %d", x.Rows(), n)
	}
}

func (c Check) Gather(x Array, rows []int32) {
	for _, r := range rows {
		if r < 0 || int(r) >= x.Rows() {
			fail("Gather: row %d of %d", r, x.Rows())
		}
	}
}

func (c Check) Put(x, src Array, from int, rows []int32) {
	if x.Cols() != src.Cols() || from < 0 || from+len(rows) > src.Rows() {
		fail("Put: rows [%d, %d) of %d×%d into %d×%d", from, from+len(rows), src.Rows(), src.Cols(), x.Rows(), x.Cols())
	}
	for _, r := range rows {
		if r < 0 || int(r) >= x.Rows() {
			fail("Put: row %d of %d", r, x.Rows())
		}
	}
}

func (c Check) Pool(x Array) { c.aligned("Pool", x) }

func (c Check) Upload(data []float32, rows, cols int) {
	if rows < 0 || cols <= 0 || len(data) != rows*cols {
		fail("Upload: %d numbers for %d×%d", len(data), rows, cols)
	}
}
