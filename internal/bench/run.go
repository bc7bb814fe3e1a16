package bench

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/kv"
	"hearth/internal/model"
)

// bench is sequences over a loaded model, without an engine. All have the same tokens, each has pages of its own.
type bench struct {
	be     *cpu.Backend
	st     backend.Store
	m      *model.Loaded
	tables []kv.Table
	snaps  map[int]kv.SnapID // by depth: the recurrent state
	tokens []int32
	batch  backend.Batch
}

// newBench has so many sequences of so many tokens each, and room for as many snapshots as there are depths.
func newBench(be *cpu.Backend, m *model.Loaded, p backend.KVPolicy, tokens, sequences, depths int) (*bench, error) {
	st, err := be.NewStore(m.States(), p)
	if err != nil {
		return nil, err
	}
	tables, capacity := st.Geometry().Preallocate(sequences, tokens)
	capacity.Snaps = depths
	b := &bench{be: be, st: st, m: m, tables: tables, snaps: map[int]kv.SnapID{}}
	r := rand.New(rand.NewPCG(1, 2))
	for range tokens {
		b.tokens = append(b.tokens, r.Int32N(int32(m.Vocab)))
	}
	return b, st.Resize(capacity)
}

// benchChunk is how many prompt tokens run in one step.
const benchChunk = 512

// run runs tokens [from, to) of the first sequence in steps of at most chunk and reads the logits of the last one.
func (b *bench) run(ctx context.Context, from, to, chunk int) (time.Duration, error) {
	if from == 0 { // recurrent state starts anew
		if err := b.st.Open(0, kv.Match{}, nil); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	for at := from; at < to; {
		n := min(chunk, to-at)
		outs := 0
		if at+n == to || chunk == 1 {
			outs = 1
		}
		if err := b.step(ctx, at, n, 1, outs); err != nil {
			return 0, err
		}
		at += n
	}
	return time.Since(start), nil
}

// decode runs tokens [from, to) of so many sequences, one each per step, and says how long each step took.
func (b *bench) decode(ctx context.Context, from, to, sequences int) ([]time.Duration, error) {
	steps := make([]time.Duration, 0, to-from)
	start := time.Now()
	for at := from; at < to; at++ {
		if err := b.step(ctx, at, 1, sequences, 1); err != nil {
			return nil, err
		}
		end := time.Now()
		steps = append(steps, end.Sub(start))
		start = end
	}
	return steps, nil
}

// step runs n tokens from at of each of the first sequences and reads the logits of the last outs of each.
func (b *bench) step(ctx context.Context, at, n, sequences, outs int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q := &b.batch
	q.Tokens, q.Pos[0], q.Spans, q.Out = q.Tokens[:0], q.Pos[0][:0], q.Spans[:0], q.Out[:0]
	for s := range sequences {
		t := &b.tables[s]
		t.Len = at
		q.Spans = append(q.Spans, backend.Span{Slot: kv.SlotID(s), Row: len(q.Tokens), Len: n, Start: at, Table: t})
		q.Tokens = append(q.Tokens, b.tokens[at:at+n]...)
		for i := range n {
			q.Pos[0] = append(q.Pos[0], int32(at+i))
		}
		for i := len(q.Tokens) - outs; i < len(q.Tokens); i++ {
			q.Out = append(q.Out, int32(i))
		}
	}
	o := b.be.Begin(b.st, q)
	defer o.End()
	h := b.m.Forward(o, q)
	if outs == 0 {
		return o.Err()
	}
	if _, err := o.Floats(b.m.Logits(o, h)); err != nil {
		return err
	}
	return o.Err()
}

// fill runs the first sequence to the deepest of depths, and gives the others its keys and values in pages of their own:
// sequences that share pages would share reads.
func (b *bench) fill(ctx context.Context, depths []int) error {
	at := 0
	for _, d := range slices.Sorted(slices.Values(depths)) {
		if d == 0 || b.snaps[d] > 0 {
			continue
		}
		if _, err := b.run(ctx, at, d, benchChunk); err != nil {
			return err
		}
		at, b.snaps[d] = d, kv.SnapID(len(b.snaps)+1)
		if err := b.st.Snapshot(0, b.snaps[d]); err != nil {
			return err
		}
	}
	var page bytes.Buffer
	for _, t := range b.tables[1:] {
		for g, ids := range t.Pages {
			for i, id := range ids {
				page.Reset()
				if err := b.st.Export(&page, kv.Ref{Group: g, Page: b.tables[0].Pages[g][i]}); err != nil {
					return err
				}
				if err := b.st.Import(&page, kv.Ref{Group: g, Page: id}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// rewind takes sequences back to a depth that was filled.
func (b *bench) rewind(depth, sequences int) error {
	for s := range sequences {
		if err := b.st.Open(kv.SlotID(s), kv.Match{Tokens: depth, Snap: b.snaps[depth]}, nil); err != nil {
			return err
		}
	}
	return nil
}

// stateBytes is what a step reads of the sequences' keys, values and other state when each has so many tokens.
func (b *bench) stateBytes(tokens, sequences int) int64 {
	g := b.st.Geometry()
	n := g.FixedBytes
	for _, p := range g.Groups {
		seen := tokens
		if p.Window > 0 {
			seen = min(seen, p.Window)
		}
		n += p.PageBytes / backend.PageTokens * int64(seen)
	}
	return n * int64(sequences)
}
