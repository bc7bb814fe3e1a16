package backendtest

import (
	"math"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/quant"
)

// int8Spread: rounding to the nearest of 255 steps makes errors that are spread evenly over one step, so their squares
// add up to a twelfth of a step squared per weight. Truncation, or one scale for the wrong columns, would show here and
// hide below the worst case.
func (c Config) int8Spread(t *testing.T, x []float32, s *B.WeightSpec, group int, got []float32, want []float64) {
	t.Helper()
	k, err := s.Stack()
	if err != nil {
		t.Fatal(err)
	}
	sum, w := 0.0, make([]float32, k.In)
	for i, v := range got {
		m, row := k.At(i % k.Out)
		m.Row(w, row)
		in, variance := x[i/k.Out*k.In:][:k.In], 0.0
		for at := 0; at < k.In; at += group {
			top, squares := 0.0, 0.0
			for j := at; j < at+group; j++ {
				top = max(top, math.Abs(float64(in[j])))
				squares += float64(w[j]) * float64(w[j])
			}
			variance += squares * (top / 127) * (top / 127) / 12
		}
		e := float64(v) - want[i]
		sum += e * e / variance
	}
	if spread := math.Sqrt(sum / float64(len(got))); spread < 0.7 || spread > 1.3 {
		t.Errorf("errors of 8-bit activations spread %.2f times as far as rounding explains", spread)
	}
}

// precisions a weight can be loaded for.
var precisions = []struct {
	name string
	opts B.Options
}{
	{"fast", B.Options{Threads: 2}}, {"outliers", B.Options{Threads: 2, Precision: B.Outliers}},
	{"exact", B.Options{Threads: 2, Precision: B.Exact}}, {"float32", B.Options{Threads: 2, Precision: B.Float32}},
}

// halfSteps are the most that activations of each precision are off by, as shares of the largest of their group: of 8
// bits, and of what those leave over as much again.
var halfSteps = [...]float64{B.Fast: 1.0 / 254, B.Outliers: 1.0 / 254, B.Exact: 1.0 / (254 * 254), B.Float32: 0}

// productBound is how far output n of row x may be from the exact sum. Rounding: every one of the K products and
// additions, in whatever order, loses at most eps of the magnitudes added up. Activations in steps: each is off by at most
// half a step of its group, that share of the largest; 0: they are not.
func (c Config) productBound(x []float32, mag []float64, group int, half float64) float64 {
	sum, steps := 0.0, 0.0
	for at := 0; at < len(x); at += max(group, 1) {
		top := 0.0
		for i := at; i < at+max(group, 1); i++ {
			top = max(top, math.Abs(float64(x[i])))
			sum += mag[i] * math.Abs(float64(x[i]))
		}
		for i := at; half > 0 && i < at+group; i++ {
			steps += mag[i] * top * half
		}
	}
	return c.Eps*float64(len(x)+8)*(sum+steps) + steps*1.001
}

// product runs x through the weight on the backend and on the oracle.
func (c Config) product(t *testing.T, o B.Options, s B.WeightSpec, x []float32, f func(o B.Ops, x B.Array, w B.Weight) B.Array) (got []float32, want []float64) {
	t.Helper()
	n := len(x) / s.In
	be, oracle := c.open(t), ref.New()
	sc := be.Begin(nil, rows(n))
	defer sc.End()
	w := load(t, be, o, s)
	got = floats(t, sc, f(sc, sc.Upload(x, n, s.In), w))
	rs := oracle.Begin(nil, rows(n))
	want = ref.Float64s(rs, f(rs, rs.Upload(x, n, s.In), load(t, oracle, o, s)))
	return got, want
}

// bf16Rounding is the relative error of a number rounded to bfloat16.
const bf16Rounding = 1.0 / (1 << 9)

func linear(o B.Ops, x B.Array, w B.Weight) B.Array { return o.Linear(x, w) }

func (c Config) linear(t *testing.T) {
	for _, f := range formats() {
		for _, p := range precisions {
			t.Run(f.String()+"/"+p.name, func(t *testing.T) {
				r := random(1)
				const in, out, n = 384, 50, 15
				x := normals(r, n*in)
				clear(x[in : in+128]) // a group of zeros
				s := matrix(B.UseLinear, in, []int{out}, part(r, f, out, in, true))
				got, want := c.product(t, p.opts, s, x, linear)
				stepped := c.Int8 && f.uniform() || c.Int8Small && f.scheme.Mode == quant.NVFP4
				half, step := p.opts.Precision <= B.Outliers && c.Half && f.scheme.None() && f.dtype == quant.BF16, 0.0
				if stepped {
					step = halfSteps[p.opts.Precision]
				}
				mag := magnitudes(&s)
				if stepped && p.opts.Precision == B.Fast {
					c.int8Spread(t, x, &s, f.scheme.Group, got, want)
				}
				worst := 0.0
				for i, v := range got {
					row, sum := x[i/out*in:][:in], 0.0
					for j, m := range mag[i%out] {
						sum += m * math.Abs(float64(row[j]))
					}
					bound := c.productBound(row, mag[i%out], f.scheme.Group, step) + 2*c.Eps*math.Abs(want[i])
					if half {
						bound += sum * bf16Rounding
					}
					e := math.Abs(float64(v) - want[i])
					if !(e <= bound) {
						t.Fatalf("row %d output %d: %g, want %g within %g", i/out, i%out, v, want[i], bound)
					}
					worst = max(worst, e/sum)
				}
				if half && worst < bf16Rounding/100 {
					t.Errorf("no error is larger than %.1e of the magnitudes added up: activations are not bfloat16", worst)
				}
				t.Logf("largest error %.1e of the magnitudes added up", worst)
			})
		}
	}
}

// linearGLU compares with the oracle's gate over the backend's own separate products, whose bounds are checked above:
// what is left is the activation.
func (c Config) linearGLU(t *testing.T) {
	kinds := []*B.GLU{{Act: B.SiLU}, {Act: B.GeluTanh}, {Act: B.SiLU, Limit: 1, UpPlus1: true}}
	r := random(2)
	const in, n = 256, 13
	for _, tc := range []struct {
		name     string
		gate, up format
		ffn      int
	}{
		{"q4", affine(4, 64, quant.BF16), affine(4, 64, quant.BF16), 80},
		{"mixed", affine(4, 64, quant.BF16), affine(6, 32, quant.F16), 40},
		{"float", format{dtype: quant.BF16}, format{dtype: quant.F32}, 21},
		{"mxfp4", small(quant.MXFP4), small(quant.MXFP4), 40},
		{"nvfp4 and mxfp8", nvfp4Global(), small(quant.MXFP8), 40},
	} {
		gate, up := part(r, tc.gate, tc.ffn, in, true), part(r, tc.up, tc.ffn, in, true)
		x := normals(r, n*in)
		for _, g := range kinds {
			be := c.open(t)
			sc := be.Begin(nil, rows(n))
			xh := sc.Upload(x, n, in)
			both := load(t, be, B.Options{Threads: 2}, matrix(B.UseGLU, in, []int{tc.ffn, tc.ffn}, gate, up))
			got := floats(t, sc, sc.LinearGLU(xh, both, g))
			a := sc.Linear(xh, load(t, be, B.Options{Threads: 2}, matrix(B.UseLinear, in, []int{tc.ffn}, gate)))
			b := sc.Linear(xh, load(t, be, B.Options{Threads: 2}, matrix(B.UseLinear, in, []int{tc.ffn}, up)))
			want := oracle2(t, floats(t, sc, a), floats(t, sc, b), n, func(o B.Ops, a, b B.Array) B.Array { return o.Gate(a, b, g) })
			sc.End()
			least := max(c.Small, 1e-30)
			if g.UpPlus1 {
				least = max(least, 4*c.Eps) // up + 1 cancels near -1
			}
			near(t, tc.name, got, want, func(int) float64 { return 64 * c.Eps }, least)
		}
	}
}

// table reads rows of an embedding and multiplies with the same weight as a head.
func (c Config) table(t *testing.T) {
	r := random(3)
	const in, vocab = 128, 100
	for _, f := range []format{{dtype: quant.F32}, {dtype: quant.BF16}, affine(4, 64, quant.BF16), affine(6, 32, quant.BF16),
		small(quant.MXFP4), small(quant.MXFP8), nvfp4Global()} {
		t.Run(f.String(), func(t *testing.T) {
			s := matrix(B.UseTable, in, []int{vocab}, part(r, f, vocab, in, false))
			mag := magnitudes(&s)
			be, oracle := c.open(t), ref.New()
			w, rw := load(t, be, B.Options{Threads: 2, Precision: B.Float32}, s), load(t, oracle, B.Options{}, s)
			for _, ix := range []B.Index{
				{IDs: []int32{0, 99, 5, 5, 64}},
				{IDs: []int32{0, 1, 2, 3}, PerRow: 2, Scale: []float32{0.5, -1, 2, 0}},
				{IDs: []int32{3, 4}, Offset: 7},
				{},
			} {
				n := len(ix.IDs) / max(ix.PerRow, 1)
				sc, rs := be.Begin(nil, rows(n)), oracle.Begin(nil, rows(n))
				got, want := floats(t, sc, sc.Embed(w, ix)), ref.Float64s(rs, rs.Embed(rw, ix))
				for i, v := range got {
					bound := 0.0
					for j := range max(ix.PerRow, 1) {
						k, f := i/in*max(ix.PerRow, 1)+j, 1.0
						if ix.Scale != nil {
							f = math.Abs(float64(ix.Scale[k]))
						}
						bound += 4 * c.Eps * f * mag[ix.IDs[k]+ix.Offset][i%in]
					}
					if !(math.Abs(float64(v)-want[i]) <= bound) {
						t.Fatalf("embed %v: column %d is %g, want %g within %g", ix.IDs, i, v, want[i], bound)
					}
				}
				sc.End()
			}
			x := normals(r, 3*in)
			got, want := c.product(t, B.Options{Precision: B.Float32}, s, x, linear)
			for i, v := range got {
				if bound := c.productBound(x[i/vocab*in:][:in], mag[i%vocab], 0, 0); !(math.Abs(float64(v)-want[i]) <= bound) {
					t.Fatalf("head: row %d output %d: %g, want %g within %g", i/vocab, i%vocab, v, want[i], bound)
				}
			}
		})
	}
}

// fused parts give the same bits as each part alone, in the order asked for.
func (c Config) fused(t *testing.T) {
	if !c.open(t).Caps().Invariant {
		t.Skip("the backend does not promise equal bits")
	}
	r := random(4)
	const in, n = 128, 4
	parts := []B.Part{
		part(r, affine(4, 64, quant.BF16), 40, in, true),
		part(r, affine(4, 64, quant.BF16), 24, in, false),
		part(r, affine(6, 64, quant.BF16), 8, in, true),
		part(r, format{dtype: quant.BF16}, 17, in, false),
		part(r, affine(4, 128, quant.BF16), 16, in, false),
		part(r, affine(4, 32, quant.F16), 5, in, true),
		part(r, small(quant.MXFP4), 20, in, true),
		part(r, small(quant.MXFP8), 9, in, false),
		part(r, nvfp4Global(), 24, in, true),
		part(r, nvfp4Global(), 8, in, false),
		part(r, small(quant.NVFP4), 16, in, false),
	}
	outs, total := []int{40, 24, 8, 17, 16, 5, 20, 9, 24, 8, 16}, 187
	perm := make([]int32, 24)
	for i := range perm {
		perm[i] = int32((i*7 + 3) % 24)
	}
	x := normals(r, n*in)
	run := func(s B.WeightSpec) []float32 {
		got, _ := c.product(t, B.Options{Threads: 2}, s, x, linear)
		return got
	}
	permuted := append([]B.Part(nil), parts...)
	permuted[1].Perm = perm
	all := run(matrix(B.UseLinear, in, outs, permuted...))
	from := 0
	for i, p := range parts {
		alone := run(matrix(B.UseLinear, in, outs[i:i+1], p))
		for j, v := range alone {
			col := j % outs[i]
			if i == 1 {
				col = int(inverse(perm)[col])
			}
			if got := all[j/outs[i]*total+from+col]; math.Float32bits(got) != math.Float32bits(v) {
				t.Fatalf("part %d row %d output %d: %g fused, %g alone", i, j/outs[i], col, got, v)
			}
		}
		from += outs[i]
	}
}

func inverse(perm []int32) []int32 {
	inv := make([]int32, len(perm))
	for i, p := range perm {
		inv[p] = int32(i)
	}
	return inv
}
