package backendtest

import (
	"fmt"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/kv"
	"hearth/internal/quant"
)

// mlaCase is one sequence under latent attention.
type mlaCase struct {
	f       format
	policy  B.KVPolicy
	opts    B.Options
	spec    B.MLA
	up, out B.WeightSpec
	q       []float32
	latent  []float32
	rot     []float32
	n       int
}

func newMLACase(f format, p B.KVPolicy, spec B.MLA) *mlaCase {
	const n = 135
	r := random(41)
	m := &mlaCase{f: f, policy: p, opts: B.Options{Precision: B.Float32}, spec: spec, n: n}
	up := matrix(B.UseHeads, spec.Nope, []int{spec.Lora}, part(r, f, spec.Heads*spec.Lora, spec.Nope, false))
	out := matrix(B.UseHeads, spec.Lora, []int{spec.VDim}, part(r, f, spec.Heads*spec.VDim, spec.Lora, false))
	m.up, m.out = stacked(&up, spec.Heads, false), stacked(&out, spec.Heads, false)
	m.q, m.latent, m.rot = normals(r, n*spec.Heads*(spec.Nope+spec.Rot)), normals(r, n*spec.Lora), normals(r, n*spec.Rot)
	return m
}

// run gives the rows of the sequence, computed in pieces that end at cuts; with last only that row of each piece. A
// second sequence, if there is one, runs beside every piece.
func (m *mlaCase) run(t *testing.T, be B.Backend, last, beside bool, cuts ...int) (y []float32, exact []float64) {
	t.Helper()
	spec := m.spec
	spec.KUp, spec.VUp = load(t, be, m.opts, m.up), load(t, be, m.opts, m.out)
	st, err := be.NewStore([]B.StateSpec{{Name: "0.mla", Kind: B.StateLatent, Heads: 1, KDim: spec.Lora, VDim: spec.Rot}}, m.policy)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Resize(kv.Capacity{Pages: []int{16}, Slots: 2}); err != nil {
		t.Fatal(err)
	}
	tables := []*kv.Table{{Pages: [][]kv.PageID{{7, 3, 5}}}, {Pages: [][]kv.PageID{{1, 9, 4}}}}
	from := 0
	for _, to := range cuts {
		spans := []B.Span{{Slot: 0, Len: to - from, Start: from, Table: tables[0]}}
		if beside {
			spans = append(spans, B.Span{Slot: 1, Row: to - from, Len: to - from, Start: from, Table: tables[1]})
		}
		b := batch(spans)
		if last {
			b.Out = []int32{int32(to - from - 1)}
		}
		sc := be.Begin(st, b)
		up := func(x []float32) B.Array {
			w := len(x) / m.n
			rows := append([]float32(nil), x[from*w:to*w]...)
			if beside {
				rows = append(rows, x[(m.n-to)*w:(m.n-from)*w]...)
			}
			return sc.Upload(rows, b.Rows(), w)
		}
		q, latent, rot := up(m.q), up(m.latent), up(m.rot)
		if last {
			q = sc.Gather(q, b.Out)
		}
		a := sc.MLA(q, latent, rot, &spec)
		n := min(a.Rows(), to-from) * a.Cols()
		y = append(y, floats(t, sc, a)[:n]...)
		if be.Name() == "ref" {
			exact = append(exact, ref.Float64s(sc, a)[:n]...)
		}
		sc.End()
		from = to
		tables[0].Len, tables[1].Len = to, to
	}
	return y, exact
}

// MLAStep is a step of one decoded row, for counting what it allocates.
func MLAStep(t testing.TB, be B.Backend, o B.Options) func() {
	m := newMLACase(affine(4, 32, quant.BF16), B.KVPolicy{}, B.MLA{Heads: 12, Nope: 32, Rot: 32, Lora: 64, VDim: 24, Scale: 0.15})
	spec := m.spec
	spec.KUp, spec.VUp = load(t, be, o, m.up), load(t, be, o, m.out)
	st, err := be.NewStore([]B.StateSpec{{Name: "0.mla", Kind: B.StateLatent, Heads: 1, KDim: spec.Lora, VDim: spec.Rot}}, B.KVPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Resize(kv.Capacity{Pages: []int{4}, Slots: 1}); err != nil {
		t.Fatal(err)
	}
	b := batch([]B.Span{{Len: 1, Start: 70, Table: &kv.Table{Len: 70, Pages: [][]kv.PageID{{2, 1}}}}})
	q, latent, rot := m.q[:len(m.q)/m.n], m.latent[:spec.Lora], m.rot[:spec.Rot]
	return func() {
		sc := be.Begin(st, b)
		if _, err := sc.Floats(sc.MLA(sc.Upload(q, 1, len(q)), sc.Upload(latent, 1, len(latent)), sc.Upload(rot, 1, len(rot)), &spec)); err != nil {
			t.Error(err)
		}
		sc.End()
	}
}

func (c Config) mla(t *testing.T) {
	one := B.MLA{Heads: 3, Nope: 32, Rot: 32, Lora: 64, VDim: 24, Scale: 0.15}
	odd := B.MLA{Heads: 12, Nope: 24, Rot: 6, Lora: 40, VDim: 12, Scale: 0.2}
	floats32, q4 := format{dtype: quant.F32}, affine(4, 32, quant.BF16)
	for _, tc := range []struct {
		f    format
		p    B.KVPolicy
		spec B.MLA
	}{
		{floats32, B.KVPolicy{DType: B.F32}, one}, {floats32, B.KVPolicy{DType: B.F32}, odd}, {format{dtype: quant.BF16}, B.KVPolicy{DType: B.BF16}, one},
		{q4, B.KVPolicy{DType: B.F32}, one}, {affine(8, 32, quant.F16), B.KVPolicy{DType: B.F16}, one},
		{q4, B.KVPolicy{Bits: 8}, one}, {q4, B.KVPolicy{Bits: 4}, one}, {floats32, B.KVPolicy{Bits: 8}, odd}, {floats32, B.KVPolicy{Bits: 4}, odd},
	} {
		t.Run(fmt.Sprintf("%v/%v/%d", tc.f, tc.p, tc.spec.Heads), func(t *testing.T) {
			m := newMLACase(tc.f, tc.p, tc.spec)
			m.opts.Threads = 2
			got, _ := m.run(t, c.open(t), false, false, m.n)
			_, want := m.run(t, ref.New(), false, false, m.n)
			near(t, "MLA", got, want, func(int) float64 { return 0 }, 2000*c.Eps)
			width := tc.spec.Heads * tc.spec.VDim
			if !c.compares(c.open(t)) {
				return
			}
			for _, m.opts.Precision = range []B.Precision{B.Float32, B.Exact, B.Outliers, B.Fast} {
				if m.opts.Precision < B.Float32 && !c.Int8 {
					continue
				}
				whole, _ := m.run(t, c.open(t), false, false, m.n)
				threads := c.Threads
				if m.opts.Precision > B.Outliers {
					threads = threads[:1] // what differs between counts does not depend on the precision
				}
				for _, m.opts.Threads = range threads {
					cut, _ := m.run(t, c.open(t), false, true, 1, 2, 63, 64, 65, 129, m.n-1, m.n)
					c.same(t, "in pieces, beside another sequence", cut, whole)
					end, _ := m.run(t, c.open(t), true, false, 100, m.n)
					c.same(t, "only the last rows", end, append(append([]float32(nil), whole[99*width:100*width]...), whole[(m.n-1)*width:]...))
				}
			}
		})
	}
}
