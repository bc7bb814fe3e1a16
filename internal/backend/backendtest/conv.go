package backendtest

import (
	"fmt"
	"math"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/quant"
)

// convSpans are texts of which some have fewer rows than a convolution has taps.
var convSpans = []int{5, 1, 2, 70, 3, 1, 33}

// convolutions without state: what a row sees ends where its text does, on either side, and what is beside it makes
// no difference.
func (c Config) convolutions(t *testing.T) {
	const cols = 37
	r, n := random(31), 0
	var spans []B.Span
	for _, l := range convSpans {
		spans, n = append(spans, B.Span{Slot: -1, Row: n, Len: l}), n+l
	}
	x := normals(r, n*cols)
	for kernel := 2; kernel <= 5; kernel++ {
		w, add := normals(r, cols*kernel), normals(r, cols)
		taps := matrix(B.UseConv, kernel, []int{cols}, B.Part{Weight: tensor("taps", quant.F32, w, cols, kernel)})
		for ahead := range kernel {
			s := B.Conv{State: B.NoState, Kernel: kernel, Ahead: ahead, Act: []B.ActKind{B.ActNone, B.SiLU}[ahead%2]}
			what := fmt.Sprintf("%d taps, %d of them ahead", kernel, ahead)
			want, top := convolved(x, w, add, cols, spans, &s)
			run := func(be B.Backend, o B.Options, rows []float32, spans ...B.Span) (B.Scope, B.Array) {
				taps, bias := load(t, be, o, taps), load(t, be, o, vector(add))
				sc := be.Begin(nil, batch(spans))
				return sc, sc.Conv(sc.Upload(rows, len(rows)/cols, cols), taps, bias, &s)
			}
			oracle := ref.New()
			sc, y := run(oracle, B.Options{}, x, spans...)
			for i, v := range ref.Float64s(sc, y) {
				if !(math.Abs(v-want[i]) <= 1e-12*top) {
					t.Fatalf("%s: number %d of the oracle is %g, want %g", what, i, v, want[i])
				}
			}
			sc.End()
			for _, threads := range c.Threads {
				be := c.open(t)
				sc, y := run(be, B.Options{Threads: threads}, x, spans...)
				got := floats(t, sc, y)
				sc.End()
				near(t, what, got, want, func(int) float64 { return 64 * c.Eps }, 64*c.Eps*top)
				if !c.compares(be) {
					continue
				}
				for _, sp := range spans {
					rows := x[sp.Row*cols:][:sp.Len*cols]
					sc, y := run(be, B.Options{Threads: threads}, rows, B.Span{Slot: -1, Len: sp.Len})
					c.same(t, what+", alone", floats(t, sc, y), got[sp.Row*cols:][:sp.Len*cols])
					sc.End()
				}
			}
		}
	}
	c.convShapes(t)
}

// convolved is what a convolution without state makes of x, and the largest sum of what its results are made of.
func convolved(x, w, add []float32, cols int, spans []B.Span, s *B.Conv) (y []float64, top float64) {
	for _, sp := range spans {
		for r := range sp.Len {
			for col := range cols {
				sum, all := float64(add[col]), math.Abs(float64(add[col]))
				for k := range s.Kernel {
					if at := r + k - (s.Kernel - 1 - s.Ahead); at >= 0 && at < sp.Len {
						term := float64(w[col*s.Kernel+k]) * float64(x[(sp.Row+at)*cols+col])
						sum, all = sum+term, all+math.Abs(term)
					}
				}
				if s.Act == B.SiLU {
					sum /= 1 + math.Exp(-sum)
				}
				y, top = append(y, sum), max(top, all)
			}
		}
	}
	return y, top
}

// convShapes: rows are seen ahead without a state only, and never by all taps.
func (c Config) convShapes(t *testing.T) {
	m := newLoop(t, c.open(t), loopShapes[0], 1)
	b, x := m.batch([]stretch{{x: m.input(1, 3)}})
	sc := m.be.Begin(m.st, b)
	defer sc.End()
	y := sc.Cols(sc.Upload(x, 3, m.cols), 0, m.taps.Out())
	for what, s := range map[string]B.Conv{
		"ahead with a state": {State: 0, Kernel: m.conv.Kernel, Ahead: 1}, "all taps ahead": {State: B.NoState, Kernel: m.conv.Kernel, Ahead: m.conv.Kernel},
		"less than none ahead": {State: B.NoState, Kernel: m.conv.Kernel, Ahead: -1}, "other taps": {State: B.NoState, Kernel: m.conv.Kernel + 1},
	} {
		panics(t, "Conv, "+what, func() { sc.Conv(y, m.taps, nil, &s) })
	}
	sc.Conv(y, m.taps, nil, &B.Conv{State: B.NoState, Kernel: m.conv.Kernel, Ahead: m.conv.Kernel - 1})
}
