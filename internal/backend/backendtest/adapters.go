package backendtest

import (
	"math"
	"math/rand/v2"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/quant"
)

// adapted gives a part of rows×in a random adapter.
func adapted(r *rand.Rand, p B.Part, rank, rows, in int) B.Part {
	p.Adapter = &B.Adapter{Rank: rank, Down: normals(r, rank*in), Up: normals(r, rows*rank)}
	for i := range p.Adapter.Down {
		p.Adapter.Down[i] /= float32(math.Sqrt(float64(in)))
	}
	return p
}

// adapters holds every use of a weight with low-rank additions against the oracle, which adds them to the weights. A
// row alone has the bits it has among others where the backend promises it.
func (c Config) adapters(t *testing.T) {
	r := random(50)
	const in, n = 128, 19
	q4, f32 := affine(4, 64, quant.BF16), format{dtype: quant.F32}
	opts := B.Options{Threads: 2, Precision: B.Float32}
	x := normals(r, n*in)
	perm := make([]int32, 24)
	for i := range perm {
		perm[i] = int32((i*7 + 3) % 24)
	}
	permuted := adapted(r, part(r, q4, 24, in, true), 3, 24, in)
	permuted.Perm = perm
	parts := []B.Part{adapted(r, part(r, q4, 40, in, false), 8, 40, in), part(r, f32, 17, in, true), permuted}
	both := adapted(r, part(r, q4, 80, in, false), 5, 80, in) // gate and up in one tensor
	for name, tc := range map[string]struct {
		spec B.WeightSpec
		f    func(o B.Ops, x B.Array, w B.Weight) B.Array
	}{
		"fused":  {matrix(B.UseLinear, in, []int{40, 17, 24}, parts...), linear},
		"glu":    {matrix(B.UseGLU, in, []int{24, 24}, permuted, adapted(r, part(r, q4, 24, in, false), 4, 24, in)), glu},
		"up":     {matrix(B.UseGLU, in, []int{17, 17}, part(r, f32, 17, in, false), adapted(r, part(r, q4, 17, in, false), 4, 17, in)), glu},
		"one":    {matrix(B.UseGLU, in, []int{40, 40}, both), glu},
		"head":   {matrix(B.UseTable, in, []int{40}, parts[0]), linear},
		"lookup": {matrix(B.UseTable, in, []int{40}, parts[0]), lookup},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := c.product(t, opts, tc.spec, x, tc.f)
			c.close(t, got, want, c.Eps)
			if c.open(t).Caps().Invariant && name != "lookup" {
				alone, _ := c.product(t, opts, tc.spec, x[(n-1)*in:], tc.f)
				same(t, "the last row alone", alone, got[len(got)-len(alone):])
			}
		})
	}
	t.Run("experts", func(t *testing.T) { c.adaptedExperts(t, r) })
	be := c.open(t)
	bad := vector(normals(r, 4))
	bad.Parts[0].Adapter = &B.Adapter{Rank: 1, Down: make([]float32, 1), Up: make([]float32, 4)}
	if _, err := be.NewLoader(opts).Load(bad); err == nil {
		t.Error("a vector with an adapter loads")
	}
}

func glu(o B.Ops, x B.Array, w B.Weight) B.Array { return o.LinearGLU(x, w, &B.GLU{Act: B.SiLU}) }

func lookup(o B.Ops, _ B.Array, w B.Weight) B.Array {
	return o.Embed(w, B.Index{IDs: []int32{3, 0, 39, 3}, PerRow: 2, Scale: []float32{1, -2, 0.5, 3}})
}

// close compares with an oracle: products of a hundred terms, each off by a share of the largest result.
func (c Config) close(t *testing.T, got []float32, want []float64, share float64) {
	t.Helper()
	top := 0.0
	for _, v := range want {
		top = max(top, math.Abs(v))
	}
	for i, v := range got {
		if d := math.Abs(float64(v) - want[i]); !(d <= 512*share*top) {
			t.Fatalf("number %d is %g, the oracle has %g", i, v, want[i])
		}
	}
}

func (c Config) adaptedExperts(t *testing.T, r *rand.Rand) {
	const in, ffn, out, experts, n = 128, 64, 96, 6, 23
	f := affine(4, 64, quant.BF16)
	stackOf := func(rows, in, rank int) B.Part {
		p := part(r, f, experts*rows, in, false)
		p.Adapter = &B.Adapter{Rank: rank, Down: normals(r, experts*rank*in), Up: normals(r, experts*rows*rank)}
		for i := range p.Adapter.Down {
			p.Adapter.Down[i] /= float32(math.Sqrt(float64(in)))
		}
		return p
	}
	up := matrix(B.UseExpertGLU, in, []int{ffn, ffn}, stackOf(ffn, in, 3), stackOf(ffn, in, 2))
	down := matrix(B.UseExperts, ffn, []int{out}, stackOf(out, ffn, 4))
	m := moeCase{up: stacked(&up, experts, false), down: stacked(&down, experts, false), k: 3, glu: B.GLU{Act: B.SiLU}, opts: B.Options{Threads: 2, Precision: B.Float32}}
	m.x, m.scores = normals(r, n*in), normals(r, n*experts)
	got := m.run(t, c.open(t), m.x, m.scores)
	m.byHand(t, c, got)
	c.close(t, got, m.exact(t), c.Eps)
	if c.open(t).Caps().Invariant {
		same(t, "the last row alone", m.run(t, c.open(t), m.x[(n-1)*in:], m.scores[(n-1)*experts:]), got[(n-1)*out:])
	}
}
