package cpu

import (
	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// Chunk sizes of a product, in bytes of weights for one row of activations. A chunk is one stream for the hardware's
// prefetcher, which loses its run at every end: the largest takes a thread some 60 microseconds, short enough that none
// holds a core too long; the smallest lets threads finish together. On two Zen 3 cores, decoding a 0.6B 4-bit model
// reached these shares of the read bandwidth: 8 to 128 KiB 77 %, 8 to 512 KiB 78 %, 32 KiB to 1 MiB 83 %.
const (
	leastChunkBytes = 32 << 10
	chunkBytes      = 1 << 20
	// manyRowPanels is the least of the largest chunk: with hundreds of rows, panels that follow each other find the
	// rows in the cache. From manyRows on no chunk is of one panel: dense weights of two are multiplied at a time.
	manyRowPanels = 8
	manyRows      = 24
)

// serialWork is how many elements an elementwise op does on the calling thread before starting a region pays.
const serialWork = 16 << 10

// prepared gives x in the form matrix m multiplies. The form is kept with the array, so the products that share an
// input (and a router beside them) prepare it once.
func (s *scope) prepared(x *array, m *kernel.Matrix, prec kernel.Precision) *kernel.Acts {
	prec = m.Format().Form(prec)
	for _, a := range x.acts {
		if a.prec == prec && a.group == m.Group() {
			return &a.Acts
		}
	}
	a := s.be.newActs()
	a.prec, a.group = prec, m.Group()
	a.Reset(prec, x.rows, x.cols, a.group)
	x.acts = append(x.acts, a)
	j := &s.be.prep
	j.x, j.acts = x, &a.Acts
	s.pool.run(j, x.rows, serialWork/x.cols, x.rows)
	return &a.Acts
}

func (b *Backend) newActs() *acts {
	if n := len(b.acts); n > 0 {
		a := b.acts[n-1]
		b.acts = b.acts[:n-1]
		return a
	}
	return &acts{}
}

// prepJob prepares rows of activations.
type prepJob struct {
	x    *array
	acts *kernel.Acts
}

func (j *prepJob) run(_, from, to int) {
	for r := from; r < to; r++ {
		j.acts.SetRow(r, j.x.row(r))
	}
}

// mulJob multiplies all rows with panels of one part, then applies factors and bias; with up, it also multiplies the same panels
// of that and leaves act(gate)·up in y.
type mulJob struct {
	y, tmp     *array
	from       int // first column of y
	part, up   *part
	acts, actU *kernel.Acts
	glu        *backend.GLU
}

func (j *mulJob) run(_, p0, p1 int) {
	lo, hi := p0*kernel.PanelRows, min(p1*kernel.PanelRows, j.part.m.Rows())
	y := j.y.data[j.from:]
	j.part.mul(y, j.y.stride, j.acts, 0, j.y.rows, p0, p1)
	if j.up == nil {
		return
	}
	up := j.tmp.data[j.from:]
	j.up.mul(up, j.tmp.stride, j.actU, 0, j.y.rows, p0, p1)
	for r := range j.y.rows {
		g := y[r*j.y.stride:][lo:hi]
		gate(j.glu, g, g, up[r*j.tmp.stride:][lo:hi])
	}
}

// mul multiplies rows [r0, r1) with panels [p0, p1).
func (p *part) mul(y []float32, ldy int, a *kernel.Acts, r0, r1, p0, p1 int) {
	if p.src != nil {
		p.src.mul(p.m, y, ldy, a, r0, r1, p0, p1)
	} else {
		p.m.Mul(y, ldy, a, r0, r1, p0, p1)
	}
	if p.factor == nil && p.bias == nil {
		return
	}
	lo, hi := p0*kernel.PanelRows, min(p1*kernel.PanelRows, p.m.Rows())
	for r := r0; r < r1; r++ {
		out := y[r*ldy:][lo:hi]
		if p.factor != nil {
			kernel.Mul(out, out, p.factor[lo:hi])
		}
		if p.bias != nil {
			kernel.Add(out, out, p.bias[lo:hi])
		}
	}
}

// product runs the job that is set up in s.be.mul, splitting over panels.
func (s *scope) product() {
	j := &s.be.mul
	rows := j.y.rows
	bytes := j.part.m.PanelBytes()
	if j.up != nil {
		bytes += j.up.m.PanelBytes()
	}
	s.be.count(j.part.m, j.acts.Precision(), rows)
	if j.up != nil {
		s.be.count(j.up.m, j.actU.Precision(), rows)
	}
	if s.be.last != nil {
		s.be.last.next = j.part
	}
	s.be.last = j.part
	s.pool.ahead.Store(j.part.next)
	least := max(leastChunkBytes/rows/bytes, 1)
	if rows >= manyRows {
		least = max(least, 2)
	}
	most := max(chunkBytes/rows/bytes, manyRowPanels)
	s.pool.run(j, j.part.m.Panels(), least, most)
}

func (s *scope) Linear(xh backend.Array, wh backend.Weight) backend.Array {
	s.check.Linear(xh, wh)
	w := wh.(*weight)
	if w.use == backend.UseGLU || w.use == backend.UseVector {
		panic("cpu: Linear: the weight was loaded for another use")
	}
	x := s.get(xh)
	h, y := s.make(x.rows, w.out)
	if x.rows == 0 {
		return h
	}
	for i := range w.parts {
		p := &w.parts[i]
		s.be.mul = mulJob{y: y, from: p.from, part: p, acts: s.prepared(x, p.m, w.prec)}
		s.product()
	}
	s.adapt(x, y, w.low)
	return h
}

func (s *scope) LinearGLU(xh backend.Array, wh backend.Weight, g *backend.GLU) backend.Array {
	s.check.LinearGLU(xh, wh)
	w := wh.(*weight)
	if w.use != backend.UseGLU {
		panic("cpu: LinearGLU: the weight was not loaded for it")
	}
	x := s.get(xh)
	h, y := s.make(x.rows, w.out/2)
	if x.rows == 0 {
		return h
	}
	_, tmp := s.make(x.rows, w.out/2)
	if len(w.parts) == 1 && len(w.up) == 1 && len(w.low)+len(w.lowUp) == 0 {
		gate, up := &w.parts[0], &w.up[0]
		s.be.mul = mulJob{y: y, tmp: tmp, part: gate, up: up, glu: g,
			acts: s.prepared(x, gate.m, w.prec), actU: s.prepared(x, up.m, w.prec)}
		s.product()
		return h
	}
	s.separate(x, y, w.parts, w.prec)
	s.separate(x, tmp, w.up, w.prec)
	s.adapt(x, y, w.low)
	s.adapt(x, tmp, w.lowUp)
	s.be.rows = rowJob{op: opGate, dst: y, a: y, b: tmp, glu: g}
	s.eachRow()
	return h
}

// separate is the rare gate or up that has additions or is itself stored in several formats.
func (s *scope) separate(x, y *array, parts []part, prec kernel.Precision) {
	for i := range parts {
		s.be.mul = mulJob{y: y, from: parts[i].from, part: &parts[i], acts: s.prepared(x, parts[i].m, prec)}
		s.product()
	}
}
