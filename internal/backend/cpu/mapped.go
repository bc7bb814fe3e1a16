package cpu

import (
	"sync"

	"hearth/internal/backend"
	"hearth/internal/kernel"
)

// stored says where the rows of a part lie that is not packed: every product makes panels of them, one after another, in a
// window of its thread. What comes out has the bits of the packed form, because it goes through the same panels.
//
// Weights then take no memory but that of the mapped files, which the system can take back; a step with one row pays
// for it with the time of packing everything once, a step of hundreds of rows hardly notices.
type stored struct {
	k    *backend.Stack
	from int // row of k that is the part's first
	w    *windows
}

// windows are those of all threads.
type windows struct {
	mu   sync.Mutex
	free []*window
}

// window is memory for one panel, in as many forms as weights have had so far.
type window struct {
	data  []byte
	forms []form
}

type form struct {
	spec kernel.Spec
	fill *filler
}

func (ws *windows) take() *window {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	n := len(ws.free)
	if n == 0 {
		return &window{}
	}
	w := ws.free[n-1]
	ws.free = ws.free[:n-1]
	return w
}

func (ws *windows) give(w *window) {
	ws.mu.Lock()
	ws.free = append(ws.free, w)
	ws.mu.Unlock()
}

// panel is a matrix of spec's rows over the window, and what fills it.
func (w *window) panel(spec kernel.Spec) *filler {
	for i := range w.forms {
		if w.forms[i].spec == spec {
			return w.forms[i].fill
		}
	}
	if n := spec.Bytes(); n > len(w.data) { // earlier forms keep the smaller memory they have
		w.data = kernel.AlignedBytes(n)
	}
	f := &filler{m: kernel.Over(spec, w.data)}
	w.forms = append(w.forms, form{spec, f})
	return f
}

// mul is part.mul's product for weights that are not packed.
func (s *stored) mul(m *kernel.Matrix, y []float32, ldy int, a *kernel.Acts, r0, r1, p0, p1 int) {
	w := s.w.take()
	defer s.w.give(w)
	spec := m.Spec()
	for p := p0; p < p1; p++ {
		first := p * kernel.PanelRows
		spec.Rows = min(kernel.PanelRows, m.Rows()-first)
		f := w.panel(spec)
		f.panel(0, s.k, s.from+first)
		f.m.Mul(y[first:], ldy, a, r0, r1, 0, 1)
	}
}

// row reads one row of a table.
func (s *stored) row(dst []float32, r int) {
	src, row := s.k.At(s.from + r)
	src.UnscaledRow(dst, row)
}
