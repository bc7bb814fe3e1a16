package engine

import (
	"hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/sample"
	"hearth/internal/sched"
)

// Overlap scheduling: while the host reads the tokens of a step and plans the next one, the device already runs that next one.
// It needs a backend that draws tokens on its device. The engine guesses that every sequence goes on and gives the device the
// step after the planned one before it reads the planned one's tokens. Where the guess was wrong the rows are thrown away: no
// sequence's prefix reaches into them, and recurrent state is committed only when the plan agrees.
//
// A step with drafts depends on what the one before has drawn, so it is not given ahead. Where drafts are wanted for a row that
// is in flight already, the device gets no further step, and the next plan has them.

// inFlight is a step that the device was given and whose tokens have not been read.
type inFlight struct {
	scope backend.Scope
	ids   backend.Array // drawn, one per row; pinned
	batch backend.Batch
	rows  []inFlightRow
}

// inFlightRow is a row of such a step: the token of a sequence at index start.
type inFlightRow struct {
	seq   *sequence
	slot  kv.SlotID
	start int
}

// overlap is what a runner needs for overlap scheduling.
type overlap struct {
	sampler backend.DeviceSampler // nil: no overlap
	fixed   bool                  // some state is recurrent
	pending *inFlight             // the step in flight; nil: none
	spare   []*inFlight           // to be used again
	row     []int                 // per item of the plan: its row of pending, or -1
	guess   []inFlightRow         // reused
	param   []sample.Draw
	used    int64 // steps in flight that a plan then asked for
	hold    bool  // the next plan is to have drafts
}

func newOverlap(be backend.Backend, states []backend.StateSpec) overlap {
	var o overlap
	if d, ok := be.(backend.DeviceSampler); ok && be.Caps().LateTokens {
		o.sampler, o.fixed = d, backend.Fixed(states)
	}
	return o
}

// findPending finds the items of a plan that are in flight already, and commits them. It comes before slots close and open.
func (r *runner) findPending(p sched.Plan) {
	r.overlap.row, r.overlap.hold = r.overlap.row[:0], false
	for range p.Items {
		r.overlap.row = append(r.overlap.row, -1)
	}
	if r.overlap.pending == nil {
		return
	}
	for row, f := range r.overlap.pending.rows {
		if !f.seq.open || f.seq.Slot != f.slot {
			continue // it has left
		}
		kept := 0
		for i := range p.Items {
			it := &p.Items[i]
			if r.out[i].seq == f.seq && it.Decode && !it.First && len(it.Snaps) == 0 && it.Seq.Table.Len == f.start {
				r.overlap.row[i], kept = row, 1
				r.overlap.hold = r.overlap.hold || it.Drafts > 0
				it.Drafts = 0
			}
		}
		if r.overlap.fixed {
			r.store.Commit(f.slot, kept)
		}
	}
}

// canOverlap reports whether the device can draw the next token of every sequence of a plan. If any of them is in flight, all
// must be.
func (r *runner) canOverlap(p sched.Plan) bool {
	if r.overlap.sampler == nil || len(p.Items) == 0 || len(p.Items) > logitRows || len(p.Preempted) > 0 {
		return false
	}
	r.overlap.guess = r.overlap.guess[:0]
	for i := range p.Items {
		it, q := &p.Items[i], r.out[i].seq
		if !it.Decode || it.First || len(it.Snaps) > 0 || it.Drafts > 0 || (r.overlap.row[i] < 0) != (r.overlap.pending == nil) || !q.independent() {
			return false
		}
		r.overlap.guess = append(r.overlap.guess, inFlightRow{q, q.Slot, it.Seq.Table.Len})
	}
	return true
}

// independent reports whether the next token depends on the logits and the sequence's own random numbers alone.
func (q *sequence) independent() bool {
	_, ok := q.sampler.Draw(0)
	return ok && q.top < 0 && q.constraints == nil && len(q.forced) == 0
}

// runOverlapped runs a plan that canOverlap has allowed: the step after it is enqueued before its tokens are read.
func (r *runner) runOverlapped(p sched.Plan) error {
	f := r.overlap.pending
	if f != nil {
		r.overlap.used++
	} else {
		f = r.enqueue(nil)
		r.overlap.pending = f
		for i := range r.overlap.row {
			r.overlap.row[i] = i
		}
	}
	var next *inFlight
	if !r.overlap.hold && r.advance() {
		next = r.enqueue(f)
	}
	r.overlap.pending = next
	return r.readPending(f, p)
}

// advance moves r.overlap.guess on by one step and reports whether every sequence has room for it. A stop id may still end one:
// then its row is thrown away.
func (r *runner) advance() bool {
	for i := range r.overlap.guess {
		g := &r.overlap.guess[i]
		q := g.seq
		if g.start++; len(q.tokens)+1-q.Prompt >= q.Max {
			return false
		}
		for _, pages := range q.Table.Pages {
			if at := g.start / backend.PageTokens; at >= len(pages) || pages[at] <= 0 {
				return false
			}
		}
	}
	return true
}

// enqueue gives the device the step of r.overlap.guess. Its input tokens are those that before, the step in flight, draws; they
// are known if that is nil.
func (r *runner) enqueue(before *inFlight) *inFlight {
	f := &inFlight{}
	if n := len(r.overlap.spare); n > 0 {
		f, r.overlap.spare = r.overlap.spare[n-1], r.overlap.spare[:n-1]
	}
	b := &f.batch
	b.Tokens, b.Pos[0], b.Spans, b.Out, b.Late = b.Tokens[:0], b.Pos[0][:0], b.Spans[:0], b.Out[:0], backend.Array{}
	f.rows, r.overlap.param = append(f.rows[:0], r.overlap.guess...), r.overlap.param[:0]
	skip := 0
	if before != nil {
		skip, b.Late = 1, before.ids
	}
	for i, g := range f.rows {
		id := int32(0)
		if before != nil {
			id = ^int32(before.rowOf(g.seq))
		} else {
			id = g.seq.tokens[g.start]
		}
		b.Tokens, b.Pos[0], b.Out = append(b.Tokens, id), append(b.Pos[0], g.seq.position(r.sights.tower, g.start)[0]), append(b.Out, int32(i))
		b.Spans = append(b.Spans, backend.Span{Slot: g.slot, Row: i, Len: 1, Start: g.start, Table: &g.seq.Table, Tentative: before != nil && r.overlap.fixed})
		d, _ := g.seq.sampler.Draw(skip)
		r.overlap.param = append(r.overlap.param, d)
	}
	o := r.be.Begin(r.store, b)
	done := false
	defer func() {
		if !done {
			o.End()
		}
	}()
	ids := r.overlap.sampler.Sample(o, r.model.Logits(o, r.model.Forward(o, b)), r.overlap.param)
	f.ids = o.Pin(ids)
	o.Submit(ids)
	f.scope, done = o, true
	return f
}

// rowOf is the row of a sequence.
func (f *inFlight) rowOf(q *sequence) int {
	for i := range f.rows {
		if f.rows[i].seq == q {
			return i
		}
	}
	panic("engine: a sequence is not in the step before")
}

// readPending reads the tokens of a step in flight for the items of a plan that are in it.
func (r *runner) readPending(f *inFlight, p sched.Plan) error {
	ids, err := f.scope.Ints(f.ids)
	if err == nil {
		err = f.scope.Err()
	}
	if err == nil {
		for i := range p.Items {
			row := r.overlap.row[i]
			if row < 0 {
				continue
			}
			res := &r.out[i]
			if ids[row] < 0 {
				res.err = sample.ErrLogits
				continue
			}
			res.seq.sampler.Accept(ids[row])
			res.tokens = append(res.tokens, Token{ID: ids[row]})
		}
	}
	r.release(f)
	if err != nil {
		return &StepError{Err: err}
	}
	return nil
}

// discardPending frees the step in flight, unread.
func (r *runner) discardPending() {
	if f := r.overlap.pending; f != nil {
		r.overlap.pending = nil
		r.release(f)
	}
}

// release frees a step in flight, read or not.
func (r *runner) release(f *inFlight) {
	f.scope.End()
	r.be.Unpin(f.ids)
	clear(f.rows)
	f.scope = nil
	r.overlap.spare = append(r.overlap.spare, f)
}

// idle is for when there is nothing to run: nobody waits for the step in flight any more.
func (r *runner) idle() {
	r.discardPending()
	if d, ok := r.be.(backend.Device); ok {
		d.Idle()
	}
}
