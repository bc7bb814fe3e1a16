package cpu

import (
	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// mlaHeads is how many heads attend together at most: they share what they read of the latents, and a step of one row still
// has work for every thread.
const mlaHeads = 8

// MLA attends over latents, at prefill as at decode: queries go through the heads' key matrices, all heads see the same keys
// [latent | rotary key] whose beginning is the value as well, and the result goes through the heads' value matrices. Expanding
// the keys of a long prompt would take fewer sums, but they would be other sums.
func (s *scope) MLA(qh, latent, rot backend.Array, m *backend.MLA) backend.Array {
	s.check.MLA(qh, latent, rot, m)
	q, width := s.get(qh), m.Lora+m.Rot
	wide, absorbed := s.make(q.rows, m.Heads*width)
	h, y := s.make(q.rows, m.Heads*m.VDim)
	keys := s.Concat(latent, rot)
	s.perHead(m.KUp, q, m.Nope+m.Rot, absorbed, width)
	if q.rows > 0 {
		s.be.rows = rowJob{op: opRotary, dst: absorbed, a: q, width: m.Rot, index: backend.Index{PerRow: m.Heads}}
		s.each(q.rows, m.Heads*m.Rot)
	}
	groups := m.Heads
	for n := 2; n <= mlaHeads; n++ {
		if m.Heads%n == 0 {
			groups = m.Heads / n
		}
	}
	s.be.latent = backend.Attn{State: m.State, Heads: m.Heads, KVHeads: groups, KDim: width, VDim: m.Lora, Scale: m.Scale}
	seen := s.attention(wide, keys, s.Cols(keys, 0, m.Lora), &s.be.latent)
	s.perHead(m.VUp, s.get(seen), m.Lora, y, m.VDim)
	return h
}

// rotary copies the last columns of every head.
func (j *rowJob) rotary(r int) {
	to, from := j.dst.row(r), j.a.row(r)
	heads := j.index.PerRow
	wide, narrow := len(to)/heads, len(from)/heads
	for h := 1; h <= heads; h++ {
		copy(to[h*wide-j.width:h*wide], from[h*narrow-j.width:h*narrow])
	}
}

// headJob multiplies the columns of every head with its matrix.
type headJob struct {
	x, y     *array
	xw, yw   int // columns per head
	w        *experts
	multiply bool          // else prepare
	acts     []kernel.Acts // per head
	panels   int           // per head
}

// perHead: columns [h·yw, h·yw+Out) of y become those of x from h·xw on times matrix h.
func (s *scope) perHead(w backend.Weight, x *array, xw int, y *array, yw int) {
	if x.rows == 0 {
		return
	}
	j := &s.be.heads
	j.x, j.xw, j.y, j.yw, j.w, j.multiply = x, xw, y, yw, w.(*experts), false
	for len(j.acts) < len(j.w.each) {
		j.acts = append(j.acts, kernel.Acts{})
	}
	for h, one := range j.w.each {
		m := one.parts[0].m
		prec := m.Format().Form(one.prec)
		j.acts[h].Reset(prec, x.rows, one.in, m.Group())
		s.be.count(m, prec, x.rows)
	}
	first := j.w.each[0]
	s.pool.run(j, len(j.w.each)*x.rows, max(serialWork/first.in, 1), len(j.w.each)*x.rows)
	j.multiply, j.panels = true, first.parts[0].m.Panels()
	each := first.parts[0].m.PanelBytes() * x.rows
	s.pool.run(j, len(j.w.each)*j.panels, max(leastChunkBytes/each, 1), max(chunkBytes/each, 1))
}

func (j *headJob) run(_, from, to int) {
	if !j.multiply {
		for i := from; i < to; i++ {
			h, r := i/j.x.rows, i%j.x.rows
			j.acts[h].SetRow(r, j.x.row(r)[h*j.xw:][:j.w.each[h].in])
		}
		return
	}
	for from < to {
		h := from / j.panels
		last := min(to, (h+1)*j.panels)
		j.w.each[h].parts[0].mul(j.y.data[h*j.yw:], j.y.stride, &j.acts[h], 0, j.y.rows, from-h*j.panels, last-h*j.panels)
		from = last
	}
}
