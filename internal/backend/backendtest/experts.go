package backendtest

import (
	"fmt"
	"math"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/quant"
)

// route compares ids exactly and weights closely, with ties, and with as many picks as there are experts.
func (c Config) route(t *testing.T) {
	r := random(30)
	for _, tc := range []struct{ n, experts, k int }{{1, 8, 2}, {7, 33, 4}, {300, 128, 8}, {3, 5, 5}, {2, 1, 1}, {0, 8, 2}} {
		x := normals(r, tc.n*tc.experts)
		for i := range x {
			x[i] = float32(math.Round(float64(x[i])*4) / 4) // many ties
		}
		for _, spec := range []*B.Router{{Score: B.Softmax, K: tc.k}, {Score: B.Softmax, K: tc.k, Renorm: true}, {Score: B.SoftmaxSelected, K: tc.k}} {
			c.routeOne(t, x, tc.n, tc.experts, spec, nil, nil)
		}
		c.routeOne(t, x, tc.n, tc.experts, &B.Router{Score: B.SoftmaxSelected, K: tc.k, Scale: 1.5}, nil, normals(r, tc.experts))
		if tc.experts%4 == 0 {
			bias := normals(r, tc.experts)
			c.routeOne(t, x, tc.n, tc.experts, &B.Router{Score: B.Softmax, K: min(tc.k, tc.experts/4), Groups: 4, TopGroups: 1, Scale: 16}, nil, nil)
			c.routeOne(t, x, tc.n, tc.experts, &B.Router{Score: B.Softmax, K: tc.k, Groups: 4, TopGroups: 3}, nil, nil)
			c.routeOne(t, normals(r, len(x)), tc.n, tc.experts, &B.Router{Score: B.Softmax, K: tc.k, Groups: 4, TopGroups: 2, TwoBest: true}, nil, nil)
			c.routeOne(t, x, tc.n, tc.experts, &B.Router{Score: B.Sigmoid, K: tc.k, Renorm: true, Scale: 1.5}, bias, nil)
			c.routeOne(t, x, tc.n, tc.experts, &B.Router{Score: B.Softmax, K: tc.k, Renorm: true}, bias, nil)
			c.routeOne(t, x, tc.n, tc.experts, &B.Router{Score: B.Sigmoid, K: tc.k, Groups: 4, TopGroups: 2}, bias, nil)
			c.routeOne(t, x, tc.n, tc.experts, &B.Router{Score: B.Sigmoid, K: tc.k, Groups: 4, TopGroups: 3, Renorm: true}, nil, nil)
		}
	}
	c.routeNaN(t)
}

func (c Config) routeOne(t *testing.T, x []float32, n, experts int, spec *B.Router, bias, each []float32) {
	t.Helper()
	be, oracle := c.open(t), ref.New()
	be.NewLoader(B.Options{Threads: 2})
	run := func(be B.Backend) (B.Scope, B.Routing) {
		r := *spec
		if bias != nil {
			r.Bias = load(t, be, B.Options{Threads: 2}, vector(bias))
		}
		if each != nil {
			r.Each = load(t, be, B.Options{Threads: 2}, vector(each))
		}
		sc := be.Begin(nil, rows(n))
		return sc, sc.Route(sc.Upload(x, n, experts), &r)
	}
	sc, got := run(be)
	defer sc.End()
	rs, want := run(oracle)
	ids, err := sc.Ints(got.IDs)
	if err != nil {
		t.Fatal(err)
	}
	wantIDs, _ := rs.Ints(want.IDs)
	for i, id := range ids {
		if k := spec.K; id != wantIDs[i] {
			t.Fatalf("%+v, row %d of %d experts: ids %v, want %v", *spec, i/k, experts, ids[i/k*k:][:k], wantIDs[i/k*k:][:k])
		}
	}
	near(t, "weights", floats(t, sc, got.Weights), ref.Float64s(rs, want.Weights), func(int) float64 { return 4 * c.Eps }, 0)
}

// routeNaN: scores that are not numbers must not break the step of others.
func (c Config) routeNaN(t *testing.T) {
	be := c.open(t)
	be.NewLoader(B.Options{Threads: 1})
	sc := be.Begin(nil, rows(1))
	defer sc.End()
	nan := float32(math.NaN())
	sc.Route(sc.Upload([]float32{nan, 1, nan, nan}, 1, 4), &B.Router{K: 3})
}

// stacked is a random stack of matrices; apart stores the same as a part per expert.
func stacked(r *B.WeightSpec, experts int, apart bool) B.WeightSpec {
	s := *r
	s.Count, s.Parts = experts, nil
	for _, p := range r.Parts {
		for _, t := range []**B.Tensor{&p.Weight, &p.Scales, &p.Biases, &p.Bias} {
			if *t != nil {
				k := **t
				k.Shape = append([]int{experts, k.Shape[0] / experts}, k.Shape[1:]...)
				*t = &k
			}
		}
		if p.Global != nil {
			g := make([]float32, experts)
			for e := range g {
				g[e] = 500 + 300*float32(e)
			}
			p.Global = tensor("global", quant.F32, g, experts)
		}
		s.Parts = append(s.Parts, p)
	}
	if !apart {
		return s
	}
	all := s
	s.Parts = nil
	for i := range all.Parts {
		for e := range experts {
			one, err := all.Expert(e)
			if err != nil {
				panic(err)
			}
			s.Parts = append(s.Parts, one.Parts[i])
		}
	}
	return s
}

// moe holds the op against its parts done one by one on the same backend, and in exact mode against the oracle. Rows alone, other
// threads and tensors per expert must give the same bits where the backend promises it.
func (c Config) moe(t *testing.T) {
	const in, ffn, out, experts, k = 128, 64, 128, 6, 3
	for _, tc := range []struct {
		f    format
		bias bool
		glu  B.GLU
		n    int
		act  *B.Activation
	}{
		{affine(4, 32, quant.BF16), true, B.GLU{}, 23, &B.Activation{Kind: B.ReLU2}},
		{format{dtype: quant.BF16}, false, B.GLU{}, 5, &B.Activation{Kind: B.ReLU2}},
		{affine(4, 64, quant.BF16), false, B.GLU{Act: B.SiLU}, 23, nil},
		{affine(8, 32, quant.F16), true, B.GLU{Act: B.SiLU}, 5, nil},
		{format{dtype: quant.BF16}, false, B.GLU{Act: B.GeluTanh}, 40, nil},
		{format{dtype: quant.F32}, true, B.GLU{Act: B.SiLU}, 1, nil},
		{small(quant.MXFP4), true, B.GLU{Act: B.QuickGelu, Limit: 1, UpPlus1: true}, 23, nil},
		{small(quant.MXFP8), false, B.GLU{Act: B.SiLU}, 3, nil},
		{nvfp4Global(), false, B.GLU{Act: B.SiLU}, 9, nil},
	} {
		for _, p := range precisions {
			t.Run(tc.f.String()+"/"+p.name, func(t *testing.T) {
				r := random(31)
				up := matrix(B.UseExpertGLU, in, []int{ffn, ffn}, part(r, tc.f, experts*ffn, in, tc.bias), part(r, tc.f, experts*ffn, in, tc.bias))
				if tc.act != nil {
					up = matrix(B.UseExperts, in, []int{ffn}, part(r, tc.f, experts*ffn, in, tc.bias))
				}
				down := matrix(B.UseExperts, ffn, []int{out}, part(r, tc.f, experts*out, ffn, tc.bias))
				m := moeCase{up: stacked(&up, experts, false), down: stacked(&down, experts, false), k: k, glu: tc.glu, act: tc.act, opts: p.opts}
				m.x, m.scores = normals(r, tc.n*in), normals(r, tc.n*experts)
				got := m.run(t, c.open(t), m.x, m.scores)
				m.byHand(t, c, got)
				if p.opts.Precision > B.Outliers || !c.Int8 {
					step := 0.0
					if c.Int8 {
						step = halfSteps[p.opts.Precision]
					}
					c.close(t, got, m.exact(t), c.Eps+step)
				}
				if !c.open(t).Caps().Invariant {
					return
				}
				same(t, "the last row alone", m.run(t, c.open(t), m.x[(tc.n-1)*in:], m.scores[(tc.n-1)*experts:]), got[(tc.n-1)*out:])
				for _, threads := range c.Threads {
					m.opts.Threads = threads
					same(t, fmt.Sprintf("%d threads", threads), m.run(t, c.open(t), m.x, m.scores), got)
				}
				m.up, m.down = stacked(&up, experts, true), stacked(&down, experts, true)
				same(t, "a tensor per expert", m.run(t, c.open(t), m.x, m.scores), got)
			})
		}
	}
	t.Run("many rows", c.moeMany)
	c.moeBad(t)
}

// moeMany has more pairs of a row and an expert than backends may care to do at once.
func (c Config) moeMany(t *testing.T) {
	if !c.open(t).Caps().Invariant {
		t.Skip("the backend does not promise equal bits")
	}
	const in, ffn, experts, n = 64, 32, 5, 2900
	r := random(34)
	f := affine(4, 32, quant.BF16)
	up := matrix(B.UseExpertGLU, in, []int{ffn, ffn}, part(r, f, experts*ffn, in, false), part(r, f, experts*ffn, in, false))
	down := matrix(B.UseExperts, ffn, []int{in}, part(r, f, experts*in, ffn, true))
	m := moeCase{up: stacked(&up, experts, false), down: stacked(&down, experts, false), k: 3, glu: silu, opts: B.Options{Threads: 2}}
	m.x, m.scores = normals(r, n*in), normals(r, n*experts)
	all := m.run(t, c.open(t), m.x, m.scores)
	for _, at := range []int{0, 1365, 1366, 2731, n - 40} {
		same(t, "some rows alone", m.run(t, c.open(t), m.x[at*in:(at+40)*in], m.scores[at*experts:(at+40)*experts]), all[at*in:(at+40)*in])
	}
}

type moeCase struct {
	up, down  B.WeightSpec
	k         int
	glu       B.GLU
	act       *B.Activation // in its place; nil: none
	opts      B.Options
	x, scores []float32
}

func (m *moeCase) router() *B.Router { return &B.Router{K: m.k, Renorm: true} }

func (m *moeCase) run(t *testing.T, be B.Backend, x, scores []float32) []float32 {
	t.Helper()
	n := len(x) / m.up.In
	sc := be.Begin(nil, rows(n))
	defer sc.End()
	e := &B.Experts{Up: load(t, be, m.opts, m.up), Down: load(t, be, m.opts, m.down), GLU: &m.glu}
	if m.act != nil {
		e.GLU, e.Act = nil, m.act
	}
	if e.Up.Count() != m.up.Count || e.Down.Out() != m.down.Out[0] {
		t.Fatalf("%d experts with %d outputs", e.Up.Count(), e.Down.Out())
	}
	return floats(t, sc, sc.MoE(sc.Upload(x, n, m.up.In), sc.Route(sc.Upload(scores, n, m.up.Count), m.router()), e))
}

// exact is what the oracle gives, rounded to float32.
func (m *moeCase) exact(t *testing.T) (y []float64) {
	for _, v := range m.run(t, ref.New(), m.x, m.scores) {
		y = append(y, float64(v))
	}
	return y
}

// byHand does what the op should with the ops it stands for.
func (m *moeCase) byHand(t *testing.T, c Config, got []float32) {
	t.Helper()
	be := c.open(t)
	n, out := len(m.x)/m.up.In, m.down.Out[0]
	sc := be.Begin(nil, rows(n))
	defer sc.End()
	x := sc.Upload(m.x, n, m.up.In)
	var each [][]float32
	for e := range m.up.Count {
		up, err := m.up.Expert(e)
		if err != nil {
			t.Fatal(err)
		}
		down, err := m.down.Expert(e)
		if err != nil {
			t.Fatal(err)
		}
		var hidden B.Array
		if m.act != nil {
			hidden = sc.Act(sc.Linear(x, load(t, be, m.opts, up)), m.act)
		} else {
			hidden = sc.LinearGLU(x, load(t, be, m.opts, up), &m.glu)
		}
		each = append(each, floats(t, sc, sc.Linear(hidden, load(t, be, m.opts, down))))
	}
	r := sc.Route(sc.Upload(m.scores, n, m.up.Count), m.router())
	ids, err := sc.Ints(r.IDs)
	if err != nil {
		t.Fatal(err)
	}
	weights := floats(t, sc, r.Weights)
	for row := range n {
		for col := range out {
			sum, mag := 0.0, 0.0
			for i := row * m.k; i < (row+1)*m.k; i++ {
				v := float64(weights[i]) * float64(each[ids[i]][row*out+col])
				sum, mag = sum+v, mag+math.Abs(v)
			}
			if v := float64(got[row*out+col]); !(math.Abs(v-sum) <= c.Eps*float64(m.k+2)*mag) {
				t.Fatalf("row %d column %d is %g, its experts %v by hand give %g", row, col, v, ids[row*m.k:][:m.k], sum)
			}
		}
	}
}

// moeBad: stacks that contradict themselves are refused.
func (c Config) moeBad(t *testing.T) {
	r := random(32)
	f := format{dtype: quant.F32}
	good := matrix(B.UseExperts, 8, []int{4}, part(r, f, 12, 8, false))
	for name, change := range map[string]func(s *B.WeightSpec){
		"other number of experts": func(s *B.WeightSpec) { s.Count = 4 },
		"parts that do not divide": func(s *B.WeightSpec) {
			*s = stacked(&good, 3, true)
			s.Parts = s.Parts[:2]
		},
		"other rows": func(s *B.WeightSpec) { s.Out = []int{5} },
	} {
		s := stacked(&good, 3, false)
		change(&s)
		if _, err := c.open(t).NewLoader(B.Options{}).Load(s); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}

// MoEStep is a step that routes one row to three of eight experts, the same at every call.
func MoEStep(t testing.TB, be B.Backend, o B.Options) func() {
	r := random(33)
	f := affine(4, 64, quant.BF16)
	up := matrix(B.UseExpertGLU, 128, []int{64, 64}, part(r, f, 8*64, 128, false), part(r, f, 8*64, 128, false))
	down := matrix(B.UseExperts, 64, []int{128}, part(r, f, 8*128, 64, false))
	e := &B.Experts{Up: load(t, be, o, stacked(&up, 8, false)), Down: load(t, be, o, stacked(&down, 8, false)), GLU: &silu}
	x, scores := normals(r, 128), normals(r, 8)
	b, router := rows(1), &B.Router{K: 3}
	return func() {
		sc := be.Begin(nil, b)
		if _, err := sc.Floats(sc.MoE(sc.Upload(x, 1, 128), sc.Route(sc.Upload(scores, 1, 8), router), e)); err != nil {
			t.Error(err)
		}
		sc.End()
	}
}
