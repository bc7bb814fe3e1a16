package ref

import (
	B "hearth/internal/backend"
	"hearth/internal/quant"
)

// weight is a dense matrix in float64; vectors are one column.
type weight struct {
	out, in int
	w       []float64
	bias    []float64
}

func (w *weight) Out() int            { return w.out }
func (w *weight) In() int             { return w.in }
func (w *weight) Count() int          { return 1 }
func (w *weight) Partial() bool       { return false }
func (w *weight) row(r int) []float64 { return w.w[r*w.in : (r+1)*w.in] }

type loader struct{}

func (loader) Close() error { return nil }

func (l loader) Load(s B.WeightSpec) (B.Weight, error) {
	if s.Stacked() {
		return l.loadExperts(s)
	}
	k, err := s.Stack()
	if err != nil {
		return nil, err
	}
	w := &weight{out: k.Out, in: k.In, w: make([]float64, k.Out*k.In)}
	for r := range k.Out {
		m, at := k.At(r)
		dequantise(w.row(r), m, at)
	}
	for _, a := range k.Adapters() {
		for i, up := range a.Up {
			row := w.row(a.From + i/a.Rank)
			for c, down := range a.Down[i%a.Rank*k.In:][:k.In] {
				row[c] += float64(up) * float64(down)
			}
		}
	}
	if s.Plus1 {
		for i := range w.w {
			w.w[i]++
		}
	}
	for _, v := range k.Bias() {
		w.bias = append(w.bias, float64(v))
	}
	return w, nil
}

// dequantise computes scale·code + bias without rounding. Values of the other formats are exact in float32, unless a
// global scale rounds them there.
func dequantise(dst []float64, m *quant.Matrix, r int) {
	row := make([]float32, m.In)
	if _, ok := m.Uniform(); !ok {
		m.Row(row, r)
		for i, v := range row {
			dst[i] = float64(v)
		}
		return
	}
	g := m.Scheme.Group
	codes, scales, biases := make([]uint8, m.In), make([]float32, m.In/g), make([]float32, m.In/g)
	m.Codes(codes, r)
	m.ScalesBiases(scales, biases, r)
	for i, c := range codes {
		dst[i] = float64(scales[i/g])*float64(c) + float64(biases[i/g])
	}
}
