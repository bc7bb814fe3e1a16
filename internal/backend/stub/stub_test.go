package stub_test

import (
	"strings"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/stub"
	"hearth/internal/kv"
)

func batch() *B.Batch {
	b := &B.Batch{Tokens: []int32{1, 2, 3}, Out: []int32{2}, Spans: []B.Span{{Len: 3, Table: &kv.Table{Pages: [][]kv.PageID{{1}}}}}}
	b.Pos[0] = []int32{0, 1, 2}
	return b
}

func load(t *testing.T, be *stub.Backend, u B.Use, in int, outs ...int) B.Weight {
	t.Helper()
	w, err := be.NewLoader(B.Options{}).Load(B.WeightSpec{Use: u, In: in, Out: outs})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestCatches plants the mistakes an architecture file can make.
func TestCatches(t *testing.T) {
	be := stub.New(1)
	st, err := be.NewStore([]B.StateSpec{{Name: "0.kv", Heads: 1, KDim: 4, VDim: 4}}, B.KVPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	table, lin := load(t, be, B.UseTable, 8, 10), load(t, be, B.UseLinear, 8, 4)
	attn := &B.Attn{Heads: 2, KVHeads: 1, KDim: 4, VDim: 4}
	for name, tc := range map[string]struct {
		want string
		f    func(o B.Scope, h B.Array)
	}{
		"nothing wrong":  {"", func(o B.Scope, h B.Array) { o.Attention(h, o.Cols(h, 0, 4), o.Cols(h, 4, 8), attn) }},
		"wrong columns":  {"Linear", func(o B.Scope, h B.Array) { o.Linear(o.Cols(h, 0, 4), lin) }},
		"wrong use":      {"loaded for use", func(o B.Scope, h B.Array) { o.LinearGLU(h, lin, &B.GLU{}) }},
		"swept":          {"swept", func(o B.Scope, h B.Array) { o.Sweep(o.Scale(h, 2)); o.Scale(h, 2) }},
		"after the step": {"after End", func(o B.Scope, h B.Array) { o.End(); o.Scale(h, 2) }},
		"narrowed before state": {"Attention", func(o B.Scope, h B.Array) {
			h = o.Gather(h, []int32{2})
			o.Attention(h, o.Cols(h, 0, 4), o.Cols(h, 4, 8), attn)
		}},
		"other state": {"state", func(o B.Scope, h B.Array) {
			o.Attention(h, o.Cols(h, 0, 2), o.Cols(h, 2, 4), &B.Attn{Heads: 4, KVHeads: 1, KDim: 2, VDim: 2})
		}},
		"missing operand": {"missing operand", func(o B.Scope, h B.Array) { o.Add(h, B.Array{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				msg, _ := recover().(string)
				if msg == "" != (tc.want == "") || !strings.Contains(msg, tc.want) {
					t.Errorf("panicked with %q, want something about %q", msg, tc.want)
				}
			}()
			b := batch()
			o := be.Begin(st, b)
			tc.f(o, o.Embed(table, B.Index{IDs: b.Tokens}))
		})
	}
}

func TestCounts(t *testing.T) {
	be := stub.New(2)
	o := be.Begin(nil, batch())
	h := o.Upload(make([]float32, 6), 3, 2)
	for range 4 {
		for range 3 {
			h = o.Add(h, o.Scale(h, 2))
		}
		o.Sweep(h)
	}
	if be.Calls["Add"] != 12 || be.Peak != 7 {
		t.Errorf("%v, peak %d", be.Calls, be.Peak)
	}
	if w, _ := be.NewLoader(B.Options{}).Load(B.WeightSpec{In: 2, Out: []int{2}, Shard: B.RowPar}); !w.Partial() {
		t.Error("a row shard of two ranks is not partial")
	}
	bad := B.WeightSpec{In: 2, Out: []int{3}, Parts: []B.Part{{Perm: []int32{0, 1, 1}}}}
	if _, err := be.NewLoader(B.Options{}).Load(bad); err == nil {
		t.Error("a repeating permutation loaded")
	}
}

// TestFixedState: a span must start where the slot's state is, and snapshots bring that back.
func TestFixedState(t *testing.T) {
	be := stub.New(1)
	st, err := be.NewStore([]B.StateSpec{{Name: "0.delta", Kind: B.StateRecurrent, Heads: 1, KDim: 4, VDim: 4}}, B.KVPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(start, n int, snap kv.SnapID) (failed bool) {
		defer func() { failed = recover() != nil }()
		b := &B.Batch{Spans: []B.Span{{Len: n, Start: start, Snapshot: snap, Table: &kv.Table{}}}}
		b.Pos[0] = make([]int32, n)
		be.Begin(st, b).End()
		return false
	}
	if run(0, 5, 0) || run(5, 2, 3) || run(7, 1, 0) {
		t.Error("tokens in order were refused")
	}
	if !run(7, 1, 0) {
		t.Error("a token ran twice")
	}
	if err := st.Open(0, kv.Match{Tokens: 7, Snap: 3}, nil); err != nil || run(7, 4, 0) {
		t.Errorf("restored at 7: %v", err)
	}
	if err := st.Open(0, kv.Match{Tokens: 6, Snap: 3}, nil); err == nil {
		t.Error("a snapshot of 7 tokens restored for 6")
	}
}
