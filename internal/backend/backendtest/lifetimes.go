package backendtest

import (
	"strings"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/quant"
)

// lifetimes: what is over panics at the next use, what is not keeps its numbers.
func (c Config) lifetimes(t *testing.T) {
	be := c.open(t)
	be.NewLoader(B.Options{Threads: 2})
	sc := be.Begin(nil, rows(2))
	dead := sc.Upload([]float32{1, 2}, 2, 1)
	kept := sc.Keep(sc.Upload([]float32{3, 4, 5, 6}, 2, 2))
	base := sc.Upload([]float32{7, 8, 9, 10}, 2, 2)
	last := sc.Cols(base, 1, 2)
	view := sc.Cols(kept, 0, 1)
	sc.Sweep(last)
	for range 3 { // memory of the dead is used again
		for range 8 {
			sc.Upload([]float32{-1, -2, -3, -4}, 2, 2)
		}
		sc.Sweep(last)
	}
	panics(t, "swept array", func() { sc.Add(dead, dead) })
	panics(t, "swept view", func() { sc.Scale(view, 1) })
	same(t, "survivor of a sweep", floats(t, sc, last), []float32{8, 10})
	same(t, "what the survivor is a view of", floats(t, sc, base), []float32{7, 8, 9, 10})
	same(t, "kept array", floats(t, sc, kept), []float32{3, 4, 5, 6})
	pinned := sc.Pin(sc.Upload([]float32{11, 12}, 2, 1))
	sc.Sweep(last)
	sc.End()
	panics(t, "op after End", func() { sc.Upload([]float32{1}, 1, 1) })
	panics(t, "array after End", func() { sc.Add(kept, kept) })

	sc = be.Begin(nil, rows(2))
	panics(t, "kept array in the next step", func() { sc.Add(kept, kept) })
	panics(t, "no array", func() { sc.Scale(B.Array{}, 1) })
	sc.Upload([]float32{0, 0, 0, 0}, 2, 2)
	same(t, "pinned array", floats(t, sc, sc.Scale(pinned, 2)), []float32{22, 24})
	be.Unpin(pinned)
	panics(t, "unpinned array", func() { sc.Scale(pinned, 1) })
	if err := sc.Err(); err != nil {
		t.Error(err)
	}
	sc.End()
}

// shapes: operands that do not fit panic with a text that names the op.
func (c Config) shapes(t *testing.T) {
	r := random(13)
	be := c.open(t)
	f := format{dtype: quant.F32}
	lin := load(t, be, B.Options{Threads: 2}, matrix(B.UseLinear, 4, []int{3}, part(r, f, 3, 4, false)))
	glu := load(t, be, B.Options{Threads: 2}, matrix(B.UseGLU, 4, []int{3, 3}, part(r, f, 3, 4, false), part(r, f, 3, 4, false)))
	table := load(t, be, B.Options{Threads: 2}, matrix(B.UseTable, 4, []int{3}, part(r, f, 3, 4, false)))
	vec := load(t, be, B.Options{Threads: 2}, vector([]float32{1, 2, 3}))
	st, err := be.NewStore([]B.StateSpec{{Name: "0.kv", Heads: 1, KDim: 2, VDim: 2}}, B.KVPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Resize(kv.Capacity{Pages: []int{2}, Slots: 1}); err != nil {
		t.Fatal(err)
	}
	spans := tables([]B.Span{{Len: 5}}, 1)
	spans[0].Table.Pages[0][0] = 1
	b := batch(spans)
	b.Out = []int32{1, 4}
	sc := be.Begin(st, b)
	defer sc.End()
	x5, x3, x2 := sc.Upload(make([]float32, 10), 5, 2), sc.Upload(make([]float32, 6), 3, 2), sc.Upload(make([]float32, 4), 2, 2)
	up, down := matrix(B.UseExpertGLU, 4, []int{3, 3}, part(r, f, 6, 4, false), part(r, f, 6, 4, false)), matrix(B.UseExperts, 3, []int{4}, part(r, f, 8, 3, false))
	moe := &B.Experts{Up: load(t, be, B.Options{Threads: 2}, stacked(&up, 2, false)), Down: load(t, be, B.Options{Threads: 2}, stacked(&down, 2, false)), GLU: &silu}
	wide := sc.Upload(make([]float32, 20), 5, 4)
	norm, rope := &B.Norm{}, &B.Rope{Head: 2, InvFreq: []float32{1}}
	heads := matrix(B.UseHeads, 4, []int{3}, part(r, f, 6, 4, false))
	stack := load(t, be, B.Options{Threads: 2}, stacked(&heads, 2, false))
	attn := &B.Attn{Heads: 1, KVHeads: 1, KDim: 2, VDim: 2, Scale: 1}
	for _, tc := range []struct {
		op string
		f  func()
	}{
		{"Embed", func() { sc.Embed(table, B.Index{IDs: []int32{3}}) }},
		{"Embed", func() { sc.Embed(table, B.Index{IDs: []int32{1, 2, 0}, PerRow: 2}) }},
		{"Embed", func() { sc.Embed(table, B.Index{IDs: []int32{^0}}) }},
		{"Linear", func() { sc.Linear(x5, lin) }},
		{"LinearGLU", func() { sc.LinearGLU(x5, glu, &silu) }},
		{"RMSNorm", func() { sc.RMSNorm(x5, vec, norm) }},
		{"RMSNorm", func() { sc.RMSNorm(x5, nil, &B.Norm{Width: 3}) }},
		{"LayerNorm", func() { sc.LayerNorm(x5, vec, vec, norm) }},
		{"RoPE", func() { sc.RoPE(x3, rope) }},
		{"RoPE", func() { sc.RoPE(x5, &B.Rope{Head: 2, InvFreq: []float32{1, 1}}) }},
		{"RoPE", func() { sc.RoPE(x5, &B.Rope{Head: 2, InvFreq: []float32{1}, Axis: []uint8{3}}) }},
		{"Attention", func() { sc.Attention(x3, x5, x5, attn) }},
		{"Attention", func() { sc.Attention(x5, x2, x2, attn) }},
		{"Attention", func() { sc.Attention(x5, x5, B.Array{}, attn) }},
		{"Attention", func() { sc.Attention(x5, x5, x5, &B.Attn{State: 1, Heads: 1, KVHeads: 1, KDim: 2, VDim: 2}) }},
		{"Attention", func() { sc.Attention(x5, x5, x5, &B.Attn{Heads: 1, KVHeads: 1, KDim: 2, VDim: 2, Window: 4}) }},
		{"Attention", func() { sc.Attention(x5, x5, x5, &B.Attn{Heads: 2, KVHeads: 1, KDim: 2, VDim: 2}) }},
		{"MLA", func() {
			sc.MLA(wide, x5, x5, &B.MLA{Heads: 1, Nope: 2, Rot: 2, Lora: 2, VDim: 2, KUp: stack, VUp: stack})
		}},
		{"MLA", func() {
			sc.MLA(wide, x5, x5, &B.MLA{Heads: 1, Nope: 3, Rot: 2, Lora: 2, VDim: 2, KUp: stack, VUp: stack})
		}},
		{"MLA", func() {
			sc.MLA(x5, x3, x5, &B.MLA{Heads: 1, Nope: 1, Rot: 1, Lora: 2, VDim: 2, KUp: stack, VUp: stack})
		}},
		{"Route", func() { sc.Route(x5, &B.Router{K: 3}) }},
		{"Route", func() { sc.Route(x5, &B.Router{}) }},
		{"MoE", func() { sc.MoE(x5, sc.Route(x5, &B.Router{K: 1}), moe) }},
		{"MoE", func() { sc.MoE(x3, sc.Route(x3, &B.Router{K: 1}), &B.Experts{Up: moe.Up, Down: moe.Up, GLU: &silu}) }},
		{"MoE", func() { sc.MoE(wide, sc.Route(x3, &B.Router{K: 1}), moe) }},
		{"MoE", func() { sc.MoE(wide, B.Routing{IDs: x5, Weights: x5}, moe) }},
		{"Add", func() { sc.Add(x5, x3) }},
		{"Gate", func() { sc.Gate(x3, x5, &silu) }},
		{"Cols", func() { sc.Cols(x5, 1, 3) }},
		{"Concat", func() { sc.Concat(x5, x3) }},
		{"MergeRows", func() { sc.MergeRows(x5, 2) }},
		{"Gather", func() { sc.Gather(x5, []int32{5}) }},
		{"Put", func() { sc.Put(x5, x2, 1, []int32{0, 1}, false) }},
		{"Pool", func() { sc.Pool(x3, B.PoolMean) }},
		{"Upload", func() { sc.Upload(make([]float32, 5), 2, 2) }},
		{"span", func() { be.Begin(st, batch([]B.Span{{Len: 65, Table: spans[0].Table}})) }},
		{"out", func() {
			bad := batch(spans)
			bad.Out = []int32{2, 2}
			be.Begin(st, bad)
		}},
	} {
		if msg := panics(t, tc.op, tc.f); !strings.HasPrefix(msg, "backend: "+tc.op) {
			t.Errorf("%s panicked with %q", tc.op, msg)
		}
	}
	// Narrowed rows are as good as all of them.
	sc.Attention(sc.RoPE(x2, rope), x5, x5, attn)

	raw := func(dtype string, bytes int, shape ...int) *B.Tensor {
		return &B.Tensor{Name: "w", DType: dtype, Shape: shape, Bytes: make([]byte, bytes)}
	}
	for name, spec := range map[string]B.WeightSpec{
		"too many rows": matrix(B.UseLinear, 4, []int{4}, part(r, f, 3, 4, false)),
		"other columns": matrix(B.UseLinear, 8, []int{3}, part(r, f, 3, 4, false)),
		"short bytes":   matrix(B.UseLinear, 4, []int{3}, B.Part{Weight: raw("F32", 47, 3, 4)}),
		"no scales":     matrix(B.UseLinear, 64, []int{2}, B.Part{Scheme: affine(4, 64, quant.BF16).scheme, Weight: raw("U32", 64, 2, 8)}),
		"odd type":      matrix(B.UseLinear, 4, []int{3}, B.Part{Weight: raw("I64", 96, 3, 4)}),
	} {
		if _, err := be.NewLoader(B.Options{}).Load(spec); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}
