package stub

import (
	"fmt"

	B "hearth/internal/backend"
)

type scope struct {
	be    *Backend
	b     *B.Batch
	check B.Check
	gen   uint32
	ended bool
	live  map[uint32]bool // slot -> kept
}

var _ B.Scope = (*scope)(nil)

// make counts the op and gives its result a handle.
func (s *scope) make(op string, rows, cols int) B.Array {
	must(!s.ended, "%s after End", op)
	s.be.Calls[op]++
	s.be.next++
	s.live[s.be.next] = false
	s.be.Peak = max(s.be.Peak, len(s.live))
	return B.Handle(s.be.next, s.gen, rows, cols, B.F32)
}

// in checks that operands are alive.
func (s *scope) in(arrays ...B.Array) {
	for _, a := range arrays {
		slot, gen := a.Slot()
		must(gen != 0, "missing operand")
		_, ok := s.live[slot]
		must(gen == s.gen && ok || s.be.pinned[slot],
			"array %d (%d×%d) used after it was swept or its step ended", slot, a.Rows(), a.Cols())
	}
}

func must(ok bool, format string, args ...any) {
	if !ok {
		panic("stub: " + fmt.Sprintf(format, args...))
	}
}

func uses(op string, w B.Weight, u B.Use) {
	must(w.(weight).use == u, "%s: the weight was loaded for use %d, not %d", op, w.(weight).use, u)
}

func (s *scope) Embed(w B.Weight, ix B.Index) B.Array {
	uses("Embed", w, B.UseTable)
	s.check.Embed(w, &ix)
	return s.make("Embed", len(ix.IDs)/max(ix.PerRow, 1), w.In())
}

func (s *scope) Linear(x B.Array, w B.Weight) B.Array {
	s.in(x)
	must(w.(weight).use <= B.UseTable && w.(weight).use != B.UseGLU, "Linear: the weight was loaded for use %d", w.(weight).use)
	s.check.Linear(x, w)
	return s.make("Linear", x.Rows(), w.Out())
}

func (s *scope) LinearGLU(x B.Array, w B.Weight, _ *B.GLU) B.Array {
	s.in(x)
	uses("LinearGLU", w, B.UseGLU)
	s.check.LinearGLU(x, w)
	return s.make("LinearGLU", x.Rows(), w.Out()/2)
}

func (s *scope) RMSNorm(x B.Array, w B.Weight, n *B.Norm) B.Array {
	s.in(x)
	s.check.RMSNorm(x, w, n)
	return s.make("RMSNorm", x.Rows(), x.Cols())
}

func (s *scope) LayerNorm(x B.Array, w, bias B.Weight, n *B.Norm) B.Array {
	s.in(x)
	s.check.LayerNorm(x, w, bias, n)
	return s.make("LayerNorm", x.Rows(), x.Cols())
}

func (s *scope) RoPE(x B.Array, r *B.Rope) B.Array {
	s.in(x)
	s.check.RoPE(x, r)
	return s.make("RoPE", x.Rows(), x.Cols())
}

func (s *scope) Attention(q, k, v B.Array, a *B.Attn) B.Array {
	s.in(q)
	if !k.IsZero() {
		s.in(k, v)
	}
	s.check.Attention(q, k, v, a)
	return s.make("Attention", q.Rows(), a.Heads*a.VDim)
}

func (s *scope) MLA(q, latent, rot B.Array, m *B.MLA) B.Array {
	s.in(q, latent, rot)
	uses("MLA", m.KUp, B.UseHeads)
	uses("MLA", m.VUp, B.UseHeads)
	s.check.MLA(q, latent, rot, m)
	return s.make("MLA", q.Rows(), m.Heads*m.VDim)
}

func (s *scope) Conv(x B.Array, w, bias B.Weight, c *B.Conv) B.Array {
	s.in(x)
	uses("Conv", w, B.UseConv)
	s.check.Conv(x, w, bias, c)
	return s.make("Conv", x.Rows(), x.Cols())
}

func (s *scope) GatedDelta(q, k, v, a, beta B.Array, d *B.Delta) B.Array {
	s.in(q, k, v, a, beta)
	s.check.GatedDelta(q, k, v, a, beta, d)
	return s.make("GatedDelta", q.Rows(), d.VHeads*d.VDim)
}

func (s *scope) SSM(x, b, c, dt B.Array, m *B.SSM) B.Array {
	s.in(x, b, c)
	if !dt.IsZero() {
		s.in(dt)
	}
	s.check.SSM(x, b, c, dt, m)
	return s.make("SSM", x.Rows(), x.Cols())
}

func (s *scope) Route(scores B.Array, r *B.Router) B.Routing {
	s.in(scores)
	s.check.Route(scores, r)
	ids := s.make("Route", scores.Rows(), r.K)
	slot, gen := ids.Slot()
	return B.Routing{IDs: B.Handle(slot, gen, ids.Rows(), r.K, B.I32), Weights: s.make("Route", scores.Rows(), r.K)}
}

func (s *scope) MoE(x B.Array, r B.Routing, e *B.Experts) B.Array {
	s.in(x, r.IDs, r.Weights)
	up := B.UseExpertGLU
	if e.Act != nil {
		up = B.UseExperts
	}
	uses("MoE", e.Up, up)
	uses("MoE", e.Down, B.UseExperts)
	s.check.MoE(x, r, e)
	return s.make("MoE", x.Rows(), e.Down.Out())
}

func (s *scope) Add(a, b B.Array) B.Array {
	s.in(a, b)
	s.check.Add(a, b)
	return s.make("Add", a.Rows(), a.Cols())
}

func (s *scope) Scale(x B.Array, _ float32) B.Array {
	s.in(x)
	return s.make("Scale", x.Rows(), x.Cols())
}

func (s *scope) Act(x B.Array, _ *B.Activation) B.Array {
	s.in(x)
	return s.make("Act", x.Rows(), x.Cols())
}

func (s *scope) Gate(g, x B.Array, _ *B.GLU) B.Array {
	s.in(g, x)
	s.check.Gate(g, x)
	return s.make("Gate", x.Rows(), x.Cols())
}

func (s *scope) Cols(x B.Array, from, to int) B.Array {
	s.in(x)
	s.check.Cols(x, from, to)
	return s.make("Cols", x.Rows(), to-from)
}

func (s *scope) Concat(a, b B.Array) B.Array {
	s.in(a, b)
	s.check.Concat(a, b)
	return s.make("Concat", a.Rows(), a.Cols()+b.Cols())
}

func (s *scope) Mix(x, coefs B.Array, m *B.Mix) B.Array {
	s.in(x, coefs)
	s.check.Mix(x, coefs, m)
	return s.make("Mix", x.Rows(), x.Cols()/m.In*m.Out)
}

func (s *scope) ScaleLike(x, like B.Array) B.Array {
	s.in(x, like)
	s.check.ScaleLike(x, like)
	return s.make("ScaleLike", x.Rows(), x.Cols())
}

func (s *scope) MergeRows(x B.Array, n int) B.Array {
	s.in(x)
	s.check.MergeRows(x, n)
	return s.make("MergeRows", x.Rows()/n, x.Cols()*n)
}

func (s *scope) Gather(x B.Array, rows []int32) B.Array {
	s.in(x)
	s.check.Gather(x, rows)
	return s.make("Gather", len(rows), x.Cols())
}

func (s *scope) Put(x, src B.Array, from int, rows []int32, _ bool) B.Array {
	s.in(x, src)
	s.check.Put(x, src, from, rows)
	return s.make("Put", x.Rows(), x.Cols())
}

func (s *scope) Pool(x B.Array, _ B.PoolKind) B.Array {
	s.in(x)
	s.check.Pool(x)
	return s.make("Pool", len(s.b.Spans), x.Cols())
}

func (s *scope) AllSum(x B.Array) B.Array {
	s.in(x)
	return s.make("AllSum", x.Rows(), x.Cols())
}

func (s *scope) Upload(data []float32, rows, cols int) B.Array {
	s.check.Upload(data, rows, cols)
	return s.make("Upload", rows, cols)
}

func (s *scope) Submit(a ...B.Array) { s.in(a...) }

func (s *scope) Floats(a B.Array) ([]float32, error) {
	s.in(a)
	return make([]float32, a.Rows()*a.Cols()), nil
}

func (s *scope) Ints(a B.Array) ([]int32, error) {
	s.in(a)
	return make([]int32, a.Rows()*a.Cols()), nil
}

func (s *scope) Pin(a B.Array) B.Array {
	s.in(a)
	slot, _ := a.Slot()
	s.be.pinned[slot] = true
	return a
}

func (s *scope) Err() error { return nil }

func (s *scope) End() { s.ended = true }

func (s *scope) Keep(a B.Array) B.Array {
	s.in(a)
	slot, _ := a.Slot()
	s.live[slot] = true
	return a
}

func (s *scope) Sweep(h B.Array) {
	s.in(h)
	last, _ := h.Slot()
	for slot, kept := range s.live {
		if slot != last && !kept {
			delete(s.live, slot)
		}
	}
}
