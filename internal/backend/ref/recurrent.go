package ref

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/kv"
)

// fixed is the recurrent state of one sequence, after its first n tokens: one matrix per state, nil for paged
// ones. A recurrent state is [Heads][KDim][VDim], that of a convolution [K-1][columns], the oldest row first.
type fixed struct {
	n int
	v [][]float64
}

func (s *Store) newFixed() *fixed {
	f := &fixed{v: make([][]float64, len(s.specs))}
	for i, sp := range s.specs {
		if !sp.Paged() {
			f.v[i] = make([]float64, sp.Heads*sp.KDim*sp.VDim)
		}
	}
	return f
}

func (f *fixed) clone() *fixed {
	c := &fixed{n: f.n}
	for _, v := range f.v {
		c.v = append(c.v, slices.Clone(v))
	}
	return c
}

// slot is the state of a slot, empty at first.
func (s *Store) slot(id kv.SlotID) *fixed {
	if s.slots[id] == nil {
		s.slots[id] = s.newFixed()
	}
	return s.slots[id]
}

// advance checks that every span starts where its slot's state is, and makes room for the snapshots of the step.
func (s *Store) advance(b *B.Batch) {
	if !B.Fixed(s.specs) {
		return
	}
	for i := range b.Spans {
		sp := &b.Spans[i]
		f := s.slot(sp.Slot)
		if s.drafts[sp.Slot] != nil {
			panic(fmt.Sprintf("ref: slot %d has a tentative span that was not committed", sp.Slot))
		}
		if f.n != sp.Start {
			panic(fmt.Sprintf("ref: span %d starts at %d, the state of slot %d is of %d tokens", i, sp.Start, sp.Slot, f.n))
		}
		if sp.Tentative {
			for range sp.Len {
				s.drafts[sp.Slot] = append(s.drafts[sp.Slot], s.newFixed())
			}
			continue
		}
		if f.n += sp.Len; sp.Snapshot != 0 {
			s.snaps[sp.Snapshot] = s.newFixed()
			s.snaps[sp.Snapshot].n = f.n
		}
	}
}

// restore makes slot continue after the snapshot of a match.
func (s *Store) restore(slot kv.SlotID, m kv.Match) error {
	if !B.Fixed(s.specs) {
		return nil
	}
	f := s.newFixed()
	if m.Snap != 0 {
		if s.snaps[m.Snap] == nil {
			return fmt.Errorf("open slot %d: there is no snapshot %d", slot, m.Snap)
		}
		f = s.snaps[m.Snap].clone()
	}
	if f.n != m.Tokens {
		return fmt.Errorf("open slot %d: snapshot %d is of %d tokens, the match of %d", slot, m.Snap, f.n, m.Tokens)
	}
	s.slots[slot] = f
	delete(s.drafts, slot)
	return nil
}

func (s *Store) exportSnap(w io.Writer, id kv.SnapID) error {
	f := s.snaps[id]
	if f == nil {
		return fmt.Errorf("export snapshot %d: never taken", id)
	}
	err := binary.Write(w, binary.LittleEndian, int64(f.n))
	for _, v := range f.v {
		if err == nil {
			err = binary.Write(w, binary.LittleEndian, v)
		}
	}
	if err != nil {
		return fmt.Errorf("export snapshot %d: %w", id, err)
	}
	return nil
}

func (s *Store) importSnap(r io.Reader, id kv.SnapID) error {
	f := s.newFixed()
	var n int64
	err := binary.Read(r, binary.LittleEndian, &n)
	for _, v := range f.v {
		if err == nil {
			err = binary.Read(r, binary.LittleEndian, v)
		}
	}
	if err != nil {
		return fmt.Errorf("import snapshot %d: %w", id, err)
	}
	f.n = int(n)
	s.snaps[id] = f
	return nil
}

// running is the state that a span's rows go through: its slot's own, or for a tentative span a copy.
func (s *Store) running(id B.StateID, sp *B.Span) []float64 {
	v := s.slot(sp.Slot).v[id]
	if sp.Tentative {
		v = slices.Clone(v)
	}
	return v
}

// ran keeps what has to be kept of a state after row i of a span: the rows of a tentative one all, and where a snapshot is
// taken the last.
func (s *Store) ran(id B.StateID, sp *B.Span, i int, state []float64) {
	if sp.Tentative {
		copy(s.drafts[sp.Slot][i].v[id], state)
	}
	if sp.Snapshot != 0 && i == sp.Len-1 {
		copy(s.snaps[sp.Snapshot].v[id], state)
	}
}

// Commit takes up the state after the first n rows of a slot's tentative span.
func (s *Store) Commit(slot kv.SlotID, n int) {
	if f := s.slots[slot]; n > 0 && s.drafts[slot] != nil {
		s.slots[slot] = s.drafts[slot][n-1]
		s.slots[slot].n = f.n + n
	}
	delete(s.drafts, slot)
}

func (s *scope) Conv(x B.Array, w, bias B.Weight, c *B.Conv) B.Array {
	s.check.Conv(x, w, bias, c)
	h, y := s.make(x.Rows(), x.Cols())
	in, taps := s.get(x), w.(*weight)
	for i := range s.b.Spans {
		sp := &s.b.Spans[i]
		rows := make([]float64, (c.Kernel-1-c.Ahead)*in.cols)
		if c.State != B.NoState {
			rows = slices.Clone(s.st.running(c.State, sp))
		}
		for r := range sp.Len {
			rows = append(rows, in.row(sp.Row+r)...)
		}
		rows = append(rows, make([]float64, c.Ahead*in.cols)...)
		for r := range sp.Len {
			out := y.row(sp.Row + r)
			for col := range out {
				sum := 0.0
				for k, t := range taps.row(col) {
					sum += t * rows[(r+k)*in.cols+col]
				}
				if bias != nil {
					sum += bias.(*weight).w[col]
				}
				out[col] = act(c.Act, 0, sum)
			}
		}
		if c.State == B.NoState {
			continue
		}
		tail := s.st.running(c.State, sp)
		for r := range sp.Len {
			copy(tail, rows[(r+1)*in.cols:])
			s.st.ran(c.State, sp, r, tail)
		}
	}
	return h
}

func (s *scope) GatedDelta(q, k, v, a, beta B.Array, d *B.Delta) B.Array {
	s.check.GatedDelta(q, k, v, a, beta, d)
	h, y := s.make(q.Rows(), d.VHeads*d.VDim)
	decay, bias := d.ALog.(*weight).w, d.DtBias.(*weight).w
	for i := range s.b.Spans {
		sp := &s.b.Spans[i]
		state := s.st.running(d.State, sp)
		for r := sp.Row; r < sp.Row+sp.Len; r++ {
			for head := range d.VHeads {
				of := head / (d.VHeads / d.KHeads) * d.KDim
				qs, ks := unit(s.get(q).row(r)[of:][:d.KDim]), unit(s.get(k).row(r)[of:][:d.KDim])
				g := make([]float64, d.KDim)
				for i := range g {
					of := head
					if d.PerKey {
						of = head*d.KDim + i
					}
					g[i] = math.Exp(-math.Exp(decay[head]) * softplus(s.get(a).row(r)[of]+bias[of]))
				}
				rate := act(B.SigmoidAct, 0, s.get(beta).row(r)[head])
				for j := range d.VDim {
					at := func(i int) *float64 { return &state[(head*d.KDim+i)*d.VDim+j] }
					delta, out := s.get(v).row(r)[head*d.VDim+j], 0.0
					for i, k := range ks {
						*at(i) *= g[i]
						delta -= k * *at(i)
					}
					for i, k := range ks {
						*at(i) += k * rate * delta
						out += qs[i] / math.Sqrt(float64(d.KDim)) * *at(i)
					}
					y.row(r)[head*d.VDim+j] = out
				}
			}
			s.st.ran(d.State, sp, r-sp.Row, state)
		}
	}
	return h
}

func (s *scope) SSM(x, b, c, dt B.Array, m *B.SSM) B.Array {
	s.check.SSM(x, b, c, dt, m)
	h, y := s.make(x.Rows(), x.Cols())
	for i := range s.b.Spans {
		sp := &s.b.Spans[i]
		state := s.st.running(m.State, sp)
		for r := sp.Row; r < sp.Row+sp.Len; r++ {
			for col, v := range s.get(x).row(r) {
				head, of, step := col/m.VDim, col/m.VDim, 1.0
				if m.PerColumn {
					of = col
				}
				if !dt.IsZero() {
					step = s.step(dt, r, of, m)
				}
				key := head / (m.Heads / m.Groups) * m.KDim
				for k := range m.KDim {
					at := &state[(head*m.KDim+k)*m.VDim+col%m.VDim]
					*at = math.Exp(-rate(m, head, of, k)*step)*(*at) + s.get(b).row(r)[key+k]*step*v
					y.row(r)[col] += s.get(c).row(r)[key+k] * *at
				}
				if m.D != nil {
					y.row(r)[col] += m.D.(*weight).w[of] * v
				}
			}
			s.st.ran(m.State, sp, r-sp.Row, state)
		}
	}
	return h
}

// step is the number of dt that a row and a head, or column, has.
func (s *scope) step(dt B.Array, r, of int, m *B.SSM) float64 {
	x := s.get(dt).row(r)[of]
	if m.DtBias != nil {
		x += m.DtBias.(*weight).w[of]
	}
	x = max(softplus(x), float64(m.Min))
	if m.Max > 0 {
		x = min(x, float64(m.Max))
	}
	return x
}

// rate is what element k of a column's state falls by in a step of length one.
func rate(m *B.SSM, head, of, k int) float64 {
	switch {
	case m.ALog == nil:
		return float64(m.Slopes[head])
	case m.PerColumn:
		return math.Exp(m.ALog.(*weight).w[of*m.KDim+k])
	}
	return math.Exp(m.ALog.(*weight).w[head])
}

// unit is x as a vector of length one.
func unit(x []float64) []float64 {
	sum, y := B.DeltaEps, make([]float64, len(x))
	for _, v := range x {
		sum += v * v
	}
	for i, v := range x {
		y[i] = v / math.Sqrt(sum)
	}
	return y
}

func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
