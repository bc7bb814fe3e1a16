package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/sample"
	"hearth/internal/sched"
)

// TestBuild: a decode, a chunk that is not the last, a scored chunk, and one whose slot did not open.
func TestBuild(t *testing.T) {
	var seqs []*sequence
	var items []sched.Item
	for i, c := range []struct {
		len, n, rows int
	}{{10, 1, 1}, {0, 3, 0}, {5, 2, 1}, {4, 2, 2}} {
		q := &sequence{Seq: sched.Seq{Slot: kv.SlotID(i), Table: kv.Table{Len: c.len}}, tokens: prompt(c.len+c.n, 1)}
		seqs = append(seqs, q)
		items = append(items, sched.Item{Seq: &q.Seq, Tokens: c.n, Rows: c.rows})
	}
	r := &runner{out: []result{{seq: seqs[0]}, {seq: seqs[1]}, {seq: seqs[2], err: ErrClosed}, {seq: seqs[3]}}}
	r.build(sched.Plan{Items: items})
	ids := prompt(11, 1)
	want := backend.Batch{
		Tokens: []int32{ids[10], ids[0], ids[1], ids[2], ids[4], ids[5]},
		Pos:    [3][]int32{{10, 0, 1, 2, 4, 5}},
		Out:    []int32{0, 4, 5},
		Spans: []backend.Span{
			{Slot: 0, Row: 0, Len: 1, Start: 10, Table: &seqs[0].Table},
			{Slot: 1, Row: 1, Len: 3, Start: 0, Table: &seqs[1].Table},
			{Slot: 3, Row: 4, Len: 2, Start: 4, Table: &seqs[3].Table},
		},
	}
	if d := cmp.Diff(want, r.batch, cmp.Comparer(func(a, b backend.Array) bool { return a == b })); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{0, 1, 1, 1, 3}, r.first); d != "" {
		t.Error(d)
	}
	if n := testing.AllocsPerRun(20, func() { r.build(sched.Plan{Items: items}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFreeSequences: a sequence whose tokens nobody constrains waits for nothing and takes no memory for it.
func TestFreeSequences(t *testing.T) {
	q := &sequence{Seq: sched.Seq{Prompt: 4, Max: 1 << 20}, tokens: make([]int32, 4, 1000), top: -1, sampler: sample.New(sample.Params{}, nil)}
	q.Key = make([]kv.Elem, 4, 1000)
	r := result{seq: q, tokens: make([]Token, 0, 1)}
	logits, work := []float32{1, 5, 2}, sample.Work{}
	if n := testing.AllocsPerRun(100, func() {
		r.tokens = r.tokens[:0]
		if err := r.draw(logits, &work, 0); err != nil { // no wait
			t.Fatal(err)
		}
		if reason := q.take(r.tokens[0].ID); reason != Running {
			t.Fatal(reason)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a token", n)
	}
}
