package backendtest

import (
	"cmp"
	"math"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/ref"
)

// near fails unless |got-want| <= rel(i)·|want| + abs for every number.
func near(t *testing.T, what string, got []float32, want []float64, rel func(i int) float64, abs float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i, v := range got {
		if bound := rel(i)*math.Abs(want[i]) + abs; !(math.Abs(float64(v)-want[i]) <= bound) {
			t.Fatalf("%s: number %d is %g, want %g within %g", what, i, v, want[i], bound)
		}
	}
}

// oracle2 runs an op of two operands with n rows each on the oracle.
func oracle2(t *testing.T, a, b []float32, n int, f func(o B.Ops, a, b B.Array) B.Array) []float64 {
	t.Helper()
	sc := ref.New().Begin(nil, rows(n))
	return ref.Float64s(sc, f(sc, sc.Upload(a, n, len(a)/n), sc.Upload(b, n, len(b)/n)))
}

// both runs an op of two operands on the backend and the oracle. The first operand is a view of some columns.
func (c Config) both(t *testing.T, a, b []float32, n int, f func(o B.Ops, a, b B.Array) B.Array) ([]float32, []float64) {
	t.Helper()
	be := c.open(t)
	be.NewLoader(B.Options{Threads: 2})
	sc := be.Begin(nil, rows(n))
	defer sc.End()
	ah, bh := sc.Upload(a, n, len(a)/n), sc.Upload(b, n, len(b)/n)
	view := sc.Cols(sc.Concat(bh, ah), bh.Cols(), bh.Cols()+ah.Cols())
	got := f(sc, view, bh)
	return floats(t, sc, got), oracle2(t, a, b, n, f)
}

func (c Config) rowOps(t *testing.T) {
	r := random(5)
	eps := func(f float64) func(int) float64 { return func(int) float64 { return f * c.Eps } }
	for _, shape := range [][2]int{{1, 37}, {7, 64}, {200, 256}} {
		n, cols := shape[0], shape[1]
		a, b := normals(r, n*cols), normals(r, n*cols)
		got, want := c.both(t, a, b, n, func(o B.Ops, a, b B.Array) B.Array { return o.Add(a, b) })
		near(t, "Add", got, want, eps(1), 0)
		got, want = c.both(t, a, b, n, func(o B.Ops, a, b B.Array) B.Array { return o.Add(a, o.Gather(b, []int32{int32(n - 1)})) })
		near(t, "Add one row", got, want, eps(1), 0)
		got, want = c.both(t, a, b, n, func(o B.Ops, a, _ B.Array) B.Array { return o.Scale(a, 0.3) })
		near(t, "Scale", got, want, eps(1), 0)
		above := &B.Activation{Kind: B.AboveMean, A: 0.4}
		got, want = c.both(t, a, b, n, func(o B.Ops, a, _ B.Array) B.Array { return o.Act(a, above) })
		near(t, "Act above the mean", got, want, eps(2), 64*c.Eps)
		bounds := &B.Activation{Kind: B.Clamp, A: -0.7, B: 0.4}
		got, want = c.both(t, a, b, n, func(o B.Ops, a, _ B.Array) B.Array { return o.Act(a, bounds) })
		near(t, "Act between bounds", got, want, eps(1), 0)
		got, want = c.both(t, a, b, n, func(o B.Ops, a, b B.Array) B.Array { return o.ScaleLike(a, b) })
		near(t, "ScaleLike", got, want, eps(64), 1e-30)
		streams := &B.Mix{In: 3, Out: 2, Plus: 0.5}
		got, want = c.both(t, a, b, n, func(o B.Ops, a, b B.Array) B.Array { return o.Mix(o.Cols(a, 1, 31), o.Cols(b, 2, 8), streams) })
		near(t, "Mix", got, want, eps(8), 600*c.Eps)
		curve := &B.Activation{Kind: B.XIELU, A: 0.8, B: 1.3, C: 0.5, E: -0.25}
		got, want = c.both(t, a, b, n, func(o B.Ops, a, _ B.Array) B.Array { return o.Act(a, curve) })
		near(t, "Act", got, want, eps(2), max(c.Small, 1e-30))
		for kind := B.ActNone; kind <= B.TanhCap; kind++ {
			act := &B.Activation{Kind: kind, A: 30}
			got, want = c.both(t, a, b, n, func(o B.Ops, a, _ B.Array) B.Array { return o.Act(a, act) })
			near(t, "Act", got, want, eps(2), max(c.Small, 1e-30))
			if kind == B.TanhCap {
				continue
			}
			for _, g := range []*B.GLU{{Act: kind}, {Act: kind, Limit: 0.7}, {Act: kind, Limit: 0.4, After: true}, {Act: kind, UpPlus1: true}} {
				got, want = c.both(t, a, b, n, func(o B.Ops, a, b B.Array) B.Array { return o.Gate(a, b, g) })
				near(t, "Gate", got, want, eps(16), max(c.Small, 1e-7*c.Eps))
			}
			g := &B.GLU{Act: kind}
			got, want = c.both(t, a, b, n, func(o B.Ops, a, b B.Array) B.Array { return o.Gate(o.Cols(a, 3, 4), b, g) })
			near(t, "Gate of one column", got, want, eps(16), max(c.Small, 1e-7*c.Eps))
			got, want = c.both(t, a, b, n, func(o B.Ops, a, b B.Array) B.Array { return o.Gate(o.Cols(a, 1, 7), o.Cols(b, 2, 32), g) })
			near(t, "Gate of a column for five", got, want, eps(16), max(8*c.Small, 1e-7*c.Eps)) // times what is below 8
		}
	}
}

func (c Config) norms(t *testing.T) {
	r := random(6)
	for _, tc := range []struct{ n, cols, width, weight int }{
		{1, 64, 0, 64}, {5, 96, 0, 0}, {9, 128, 32, 32}, {3, 128, 32, 128}, {100, 1024, 0, 1024}, {2, 50, 0, 50},
	} {
		x, w, bias := normals(r, tc.n*tc.cols), normals(r, max(tc.weight, 1)), normals(r, tc.cols)
		norm := &B.Norm{Eps: 1e-5, Width: tc.width}
		run := func(be B.Backend, plus1 bool, f func(o B.Ops, x B.Array, w, bias B.Weight) B.Array) (B.Scope, B.Array) {
			s := vector(w)
			s.Plus1 = plus1
			var weight B.Weight
			if tc.weight > 0 {
				weight = load(t, be, B.Options{Threads: 2}, s)
			}
			sc := be.Begin(nil, rows(tc.n))
			return sc, f(sc, sc.Upload(x, tc.n, tc.cols), weight, load(t, be, B.Options{Threads: 2}, vector(bias)))
		}
		rms := func(o B.Ops, x B.Array, w, _ B.Weight) B.Array { return o.RMSNorm(x, w, norm) }
		width := cmp.Or(tc.width, tc.cols)
		for _, plus1 := range []bool{false, true} {
			sc, y := run(c.open(t), plus1, rms)
			rs, want := run(ref.New(), plus1, rms)
			near(t, "RMSNorm", floats(t, sc, y), ref.Float64s(rs, want), func(int) float64 { return c.Eps * float64(width/2+4) }, 0)
			sc.End()
		}
		if tc.weight == 0 {
			continue
		}
		layer := func(o B.Ops, x B.Array, w, b B.Weight) B.Array {
			return o.LayerNorm(x, w, b, &B.Norm{Eps: 1e-5, Width: tc.width})
		}
		sc, y := run(c.open(t), false, layer)
		rs, want := run(ref.New(), false, layer)
		near(t, "LayerNorm", floats(t, sc, y), ref.Float64s(rs, want), func(int) float64 { return c.Eps * 8 }, c.Eps*float64(64+width))
		sc.End()
	}
}

func (c Config) rope(t *testing.T) {
	r := random(7)
	freq := make([]float32, 16)
	for i := range freq {
		freq[i] = float32(math.Pow(10000, -float64(i)/16))
	}
	const n, head, heads = 11, 40, 3
	x := normals(r, n*head*heads)
	for name, p := range map[string]*B.Rope{
		"halves":       {Head: head, InvFreq: freq},
		"traditional":  {Head: head, InvFreq: freq, Traditional: true, Offset: 8},
		"amplitude":    {Head: head, InvFreq: freq, Amp: 1.3, Offset: 4},
		"proportional": {Head: head, InvFreq: freq, Split: 20},
		"flat":         {Head: head, InvFreq: freq, Axis: []uint8{2, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1, 0, 2}},
		"axes":         {Head: head, InvFreq: freq, Axis: []uint8{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0}},
		"still":        {Head: head, InvFreq: append([]float32{0, 0}, freq[2:]...), Amp: 2},
		"scaled":       {Head: head, InvFreq: freq, QBeta: 0.1, QOrig: 100},
	} {
		run := func(be B.Backend, out []int32) (B.Scope, B.Array) {
			b := rows(n)
			for a := range b.Pos {
				if name == "flat" && a > 0 {
					break
				}
				b.Pos[a] = make([]int32, n)
				for i := range n {
					b.Pos[a][i] = int32(1000*a + 317*i)
				}
			}
			b.Out = out
			sc := be.Begin(nil, b)
			h := sc.Upload(x, n, head*heads)
			if len(out) < n {
				h = sc.Gather(h, out)
			}
			return sc, sc.RoPE(h, p)
		}
		for _, out := range [][]int32{rows(n).Out, {2, 7}} {
			sc, y := run(c.open(t), out)
			rs, want := run(ref.New(), out)
			near(t, name, floats(t, sc, y), ref.Float64s(rs, want), func(int) float64 { return 4 * c.Eps }, 200*c.Eps)
			sc.End()
		}
	}
}

// moves are the ops that compute nothing: bits must survive.
func (c Config) moves(t *testing.T) {
	r := random(8)
	const n, cols = 12, 20
	a, b := rounded(r, n*cols), rounded(r, n*cols)
	exact := func(int) float64 { return 0 }
	for name, f := range map[string]func(o B.Ops, a, b B.Array) B.Array{
		"Cols":      func(o B.Ops, a, _ B.Array) B.Array { return o.Cols(o.Cols(a, 3, 17), 2, 5) },
		"Concat":    func(o B.Ops, a, b B.Array) B.Array { return o.Concat(a, o.Cols(b, 0, 7)) },
		"MergeRows": func(o B.Ops, a, b B.Array) B.Array { return o.Concat(o.MergeRows(a, 4), o.MergeRows(b, 4)) },
		"Gather":    func(o B.Ops, a, _ B.Array) B.Array { return o.Gather(a, []int32{11, 0, 0, 5}) },
		"nothing":   func(o B.Ops, a, _ B.Array) B.Array { return o.Scale(o.Gather(a, nil), 2) },
		"Put":       func(o B.Ops, a, b B.Array) B.Array { return o.Put(a, b, 3, []int32{0, 7, 11}, false) },
		"AllSum":    func(o B.Ops, a, _ B.Array) B.Array { return o.AllSum(a) },
		"First":     func(o B.Ops, a, _ B.Array) B.Array { return o.Pool(a, B.PoolFirst) },
		"Last":      func(o B.Ops, a, _ B.Array) B.Array { return o.Pool(a, B.PoolLast) },
	} {
		got, want := c.both(t, a, b, n, f)
		near(t, name, got, want, exact, 0)
	}
	got, want := c.both(t, a, b, n, func(o B.Ops, a, b B.Array) B.Array { return o.Put(a, b, 1, []int32{4, 2}, true) })
	near(t, "Put add", got, want, func(int) float64 { return c.Eps }, 0)
	got, want = c.both(t, a, b, n, func(o B.Ops, a, _ B.Array) B.Array { return o.Pool(a, B.PoolMean) })
	near(t, "Mean", got, want, exact, 40*c.Eps)
}
