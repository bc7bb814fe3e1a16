package backendtest

import (
	"math"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/kv"
)

// attnCase is one attention over sequences that are already partly cached.
type attnCase struct {
	name    string
	spec    B.Attn
	sinks   []float32
	spans   []B.Span // Slot, Len, Start; rows and tables are filled in
	narrow  bool     // q holds only the last row of every span
	shared  bool     // a second layer reads the first one's state
	both    bool     // the first span's middle sees itself both ways
	policy  B.KVPolicy
	opts    B.Options
	rounded bool // keys and values are exact in bf16
}

func attnCases() []attnCase {
	one := B.Attn{Heads: 4, KVHeads: 2, KDim: 32, VDim: 32, Scale: 0.2}
	with := func(f func(*B.Attn)) B.Attn {
		a := one
		f(&a)
		return a
	}
	widths := with(func(a *B.Attn) { a.KDim, a.VDim, a.Heads = 24, 40, 6 })
	mixed := []B.Span{{Len: 1, Start: 200}, {Len: 4, Start: 62}, {Len: 70}}
	return []attnCase{
		{name: "mixed", spec: one, spans: mixed, rounded: true},
		{name: "float32", spec: one, spans: mixed, opts: B.Options{Precision: B.Float32}},
		{name: "f32", spec: one, spans: mixed, policy: B.KVPolicy{DType: B.F32}},
		{name: "bf16", spec: one, spans: mixed, policy: B.KVPolicy{DType: B.BF16}},
		{name: "f16", spec: one, spans: mixed, policy: B.KVPolicy{DType: B.F16}},
		{name: "q8", spec: one, spans: mixed, policy: B.KVPolicy{Bits: 8}},
		{name: "q4", spec: one, spans: mixed, policy: B.KVPolicy{Bits: 4}},
		{name: "q8 widths", spec: widths, spans: mixed, policy: B.KVPolicy{Bits: 8}},
		{name: "q8 groups", spec: with(func(a *B.Attn) { a.KDim, a.VDim = 64, 128 }), spans: mixed, policy: B.KVPolicy{Bits: 8}},
		{name: "q8 window", spec: with(func(a *B.Attn) { a.KDim, a.VDim, a.Window = 64, 64, 24 }), spans: mixed, policy: B.KVPolicy{Bits: 8}},
		{name: "q4 widths", spec: widths, spans: mixed, policy: B.KVPolicy{Bits: 4}},
		{name: "q4 groups", spec: with(func(a *B.Attn) { a.KDim, a.VDim = 128, 192 }), spans: mixed, policy: B.KVPolicy{Bits: 4, Group: 64}},
		{name: "q4 window", spec: with(func(a *B.Attn) { a.Window = 24 }), spans: mixed, policy: B.KVPolicy{Bits: 4}},
		{name: "narrow", spec: one, spans: mixed, narrow: true, rounded: true},
		{name: "window", spec: with(func(a *B.Attn) { a.Window = 24 }), spans: mixed, rounded: true},
		{name: "chunks", spec: with(func(a *B.Attn) { a.Window, a.Chunks = 24, true }), spans: mixed, rounded: true},
		{name: "cap", spec: with(func(a *B.Attn) { a.Cap = 2 }), spans: mixed, rounded: true},
		{name: "sinks", spec: one, sinks: []float32{0, 3, -2, 1}, spans: mixed, rounded: true},
		{name: "widths", spec: widths, spans: mixed, rounded: true},
		{name: "one head", spec: with(func(a *B.Attn) { a.Heads, a.KVHeads = 1, 1 }), spans: mixed[:1], rounded: true},
		{name: "shared", spec: one, spans: mixed, shared: true, rounded: true},
		{name: "two-way", spec: one, spans: []B.Span{{Len: 40, Start: 30}, {Len: 3}}, both: true, rounded: true},
		{name: "one-way", spec: with(func(a *B.Attn) { a.OneWay = true }), spans: []B.Span{{Len: 40, Start: 30}, {Len: 3}}, both: true, rounded: true},
		{name: "two-way window", spec: with(func(a *B.Attn) { a.Window = 12 }), spans: []B.Span{{Len: 40, Start: 30}, {Len: 3}}, both: true, rounded: true},
	}
}

// tables gives every span a page table of its own, with page ids that are not in order.
func tables(spans []B.Span, groups int) []B.Span {
	spans = append([]B.Span(nil), spans...)
	next := kv.PageID(len(spans) * 64)
	row := 0
	for i := range spans {
		sp := &spans[i]
		sp.Slot, sp.Row = kv.SlotID(i), row
		row += sp.Len
		sp.Table = &kv.Table{Len: sp.Start, Pages: make([][]kv.PageID, groups)}
		for g := range sp.Table.Pages {
			for range (sp.Start + sp.Len + B.PageTokens - 1) / B.PageTokens {
				sp.Table.Pages[g] = append(sp.Table.Pages[g], next)
				next--
			}
		}
	}
	return spans
}

func batch(spans []B.Span) *B.Batch {
	b := &B.Batch{Spans: spans}
	for _, sp := range spans {
		for i := range sp.Len {
			b.Pos[0] = append(b.Pos[0], int32(sp.Start+i))
			b.Out = append(b.Out, int32(sp.Row+i))
		}
	}
	return b
}

// run fills the cache up to every span's start, one span after the other, and then attends to all of them at once.
func (a *attnCase) run(t *testing.T, be B.Backend, spans []B.Span, q, k, v []float32) (B.Scope, B.Array) {
	t.Helper()
	var sinks B.Weight
	if a.sinks != nil {
		sinks = load(t, be, a.opts, vector(a.sinks))
	}
	be.NewLoader(a.opts)
	state := B.StateSpec{Name: "0.kv", Heads: a.spec.KVHeads, KDim: a.spec.KDim, VDim: a.spec.VDim, Window: a.spec.Window}
	st, err := be.NewStore([]B.StateSpec{state}, a.policy)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Resize(kv.Capacity{Pages: []int{64 * len(spans)}, Slots: len(spans)}); err != nil {
		t.Fatal(err)
	}
	spec := a.spec
	spec.Sinks = sinks
	qn, kn, vn := spec.Heads*spec.KDim, spec.KVHeads*spec.KDim, spec.KVHeads*spec.VDim
	row := 0 // of k and v, which hold the whole of every sequence
	var now [3][]float32
	for _, sp := range spans {
		if sp.Start > 0 {
			b := batch([]B.Span{{Slot: sp.Slot, Len: sp.Start, Table: &kv.Table{Pages: sp.Table.Pages}}})
			sc := be.Begin(st, b)
			b.Out = nil
			sc.Attention(sc.Upload(nil, 0, qn), sc.Upload(k[row*kn:][:sp.Start*kn], sp.Start, kn),
				sc.Upload(v[row*vn:][:sp.Start*vn], sp.Start, vn), &spec)
			sc.End()
		}
		at := row + sp.Start
		now[1] = append(now[1], k[at*kn:][:sp.Len*kn]...)
		now[2] = append(now[2], v[at*vn:][:sp.Len*vn]...)
		now[0] = append(now[0], q[at*qn:][:sp.Len*qn]...)
		row += sp.Start + sp.Len
	}
	b := batch(spans)
	if a.narrow {
		b.Out = b.Out[:0]
		for _, sp := range spans {
			b.Out = append(b.Out, int32(sp.Row+sp.Len-1))
		}
	}
	sc := be.Begin(st, b)
	n := b.Rows()
	qh, kh, vh := sc.Upload(now[0], n, qn), sc.Upload(now[1], n, kn), sc.Upload(now[2], n, vn)
	if a.narrow {
		qh = sc.Gather(qh, b.Out)
	}
	y := sc.Attention(qh, kh, vh, &spec)
	if a.shared {
		y = sc.Attention(sc.Scale(qh, 0.5), B.Array{}, B.Array{}, &spec)
	}
	return sc, y
}

// attnTolerance follows one score through the softmax: a dot product of KDim terms, the exponential, the sums.
func (c Config) attnTolerance(spec *B.Attn, q, k []float32, longest int) float64 {
	var qm, km float64
	for _, v := range q {
		qm = max(qm, math.Abs(float64(v)))
	}
	for _, v := range k {
		km = max(km, math.Abs(float64(v)))
	}
	score := c.Eps * float64(spec.KDim) * qm * km * float64(spec.Scale)
	return 2*score + c.Eps*float64(longest+64)
}

// halfAttention reports a case whose queries and weights are rounded to bfloat16.
func (c Config) halfAttention(a *attnCase) bool {
	p, spec := a.policy, &a.spec
	return c.Half && a.opts.Precision <= B.Outliers && p.Bits == 0 && (p.DType == B.None || p.DType == B.BF16) && spec.KDim%32 == 0 && spec.VDim%32 == 0
}

// halfTolerance: a query's numbers are off by up to 2^-9 of each, this way and that, and so are the weights; some values are
// twelve times as large as most.
func halfTolerance(spec *B.Attn, q, k, v []float32) float64 {
	size := func(x []float32) float64 {
		var sum float64
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		return math.Sqrt(sum / float64(len(x)))
	}
	score := math.Sqrt(float64(spec.KDim)) * size(q) * size(k) * float64(spec.Scale)
	return 0x1p-5 * (score + 1) * size(v)
}

func (c Config) attention(t *testing.T) {
	for _, a := range attnCases() {
		t.Run(a.name, func(t *testing.T) {
			r := random(9)
			spans := tables(a.spans, 1)
			if a.both {
				spans[0].Both = []B.Range{{From: 35, To: 60}}
			}
			total, longest := 0, 0
			for _, sp := range spans {
				total += sp.Start + sp.Len
				longest = max(longest, sp.Start+sp.Len)
			}
			make := normals
			if a.rounded {
				make = rounded
			}
			q := normals(r, total*a.spec.Heads*a.spec.KDim)
			k, v := make(r, total*a.spec.KVHeads*a.spec.KDim), make(r, total*a.spec.KVHeads*a.spec.VDim)
			a.opts.Threads = 2
			sc, y := a.run(t, c.open(t), spans, q, k, v)
			rs, want := a.run(t, ref.New(), spans, q, k, v)
			bound := 12 * c.attnTolerance(&a.spec, q, k, longest)
			switch {
			case c.halfAttention(&a):
				bound = halfTolerance(&a.spec, q, k, v)
			case c.Codes && a.policy.Bits == 8: // queries and weights of 15 bits
				bound = halfTolerance(&a.spec, q, k, v) / 32
			}
			near(t, a.name, floats(t, sc, y), ref.Float64s(rs, want), func(int) float64 { return 0 }, bound)
			sc.End()
		})
	}
}

// stateless attention: encoders and image towers, with a second segmentation of the rows.
func (c Config) stateless(t *testing.T) {
	r := random(10)
	const n, heads, dim = 20, 2, 16
	q, k, v := normals(r, n*heads*dim), normals(r, n*heads*dim), normals(r, n*heads*dim)
	for name, a := range map[string]*B.Attn{
		"causal":  {},
		"two-way": {Both: true},
		"alt":     {Both: true, Alt: true},
		"window":  {Window: 3},
		"both":    {Window: 3, Both: true},
	} {
		a.State, a.Heads, a.KVHeads, a.KDim, a.VDim, a.Scale = B.NoState, heads, heads, dim, dim, 0.25
		run := func(be B.Backend) (B.Scope, B.Array) {
			b := batch([]B.Span{{Slot: -1, Len: 13}, {Slot: -1, Row: 13, Len: 7}})
			b.Alt = []B.Span{{Slot: -1, Len: 4}, {Slot: -1, Row: 4, Len: 16}}
			sc := be.Begin(nil, b)
			return sc, sc.Attention(sc.Upload(q, n, heads*dim), sc.Upload(k, n, heads*dim), sc.Upload(v, n, heads*dim), a)
		}
		be := c.open(t)
		be.NewLoader(B.Options{Threads: 2})
		sc, y := run(be)
		rs, want := run(ref.New())
		near(t, name, floats(t, sc, y), ref.Float64s(rs, want), func(int) float64 { return 0 }, 12*c.attnTolerance(a, q, k, n))
		sc.End()
	}
}

// longContext crosses the places where backends cut a long context into parts: one row decoded there must have the bits
// it has inside a long prefill, and on any number of threads. With a window, rows of one chunk begin in different parts.
func (c Config) longContext(t *testing.T) {
	c.longContextOf(t, B.Attn{Heads: 2, KVHeads: 1, KDim: 16, VDim: 16, Scale: 0.25}, B.KVPolicy{})
	c.longContextOf(t, B.Attn{Heads: 6, KVHeads: 2, KDim: 32, VDim: 32, Scale: 0.2, Window: 1100}, B.KVPolicy{})
	c.longContextOf(t, B.Attn{Heads: 2, KVHeads: 1, KDim: 64, VDim: 64, Scale: 0.1}, B.KVPolicy{Bits: 8})
}

func (c Config) longContextOf(t *testing.T, spec B.Attn, policy B.KVPolicy) {
	r := random(11)
	const n = 2200
	cols := spec.Heads * spec.VDim
	q, k, v := normals(r, n*cols), rounded(r, n*spec.KVHeads*spec.KDim), rounded(r, n*spec.KVHeads*spec.VDim)
	run := func(be B.Backend, threads, from int) []float32 {
		a := attnCase{spec: spec, policy: policy, opts: B.Options{Threads: threads}}
		sc, y := a.run(t, be, tables([]B.Span{{Start: from, Len: n - from}}, 1), q, k, v)
		defer sc.End()
		return floats(t, sc, y)
	}
	whole := run(c.open(t), 1, 2000)
	rs := ref.New()
	a := attnCase{spec: spec, policy: policy}
	sc, y := a.run(t, rs, tables([]B.Span{{Start: n - 1, Len: 1}}, 1), q, k, v)
	bound := 12 * c.attnTolerance(&spec, q, k, n)
	if c.Codes && policy.Bits == 8 {
		bound = halfTolerance(&spec, q, k, v) / 32
	}
	near(t, "last row", whole[len(whole)-cols:], ref.Float64s(sc, y), func(int) float64 { return 0 }, bound)
	if !c.open(t).Caps().Invariant {
		return
	}
	for _, threads := range c.Threads {
		same(t, "last row of a prefill and decoded", run(c.open(t), threads, n-1), whole[len(whole)-cols:])
		same(t, "prefill on other threads", run(c.open(t), threads, 2040), whole[len(whole)-cols*(n-2040):])
		same(t, "few rows of a prefill", run(c.open(t), threads, n-5), whole[len(whole)-cols*5:])
	}
}

// same compares bits.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d and %d numbers", what, len(got), len(want))
	}
	for i, v := range got {
		if math.Float32bits(v) != math.Float32bits(want[i]) {
			t.Fatalf("%s: number %d is %g and %g", what, i, v, want[i])
		}
	}
}
