package engine

import (
	"hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/sample"
	"hearth/internal/sched"
)

// A backend that runs on a device of its own need not stand still while the host reads a token and plans the next step: where
// the next tokens can be drawn on the device, the step after the planned one is handed over before the tokens of the planned
// one are read. It is a guess that every sequence goes on. What of it turns out wrong is thrown away: the prefix of a sequence
// never reaches into it, and state that cannot be cut is only committed when the plan says the same.

// flight is a step that the device was given and whose tokens have not been read.
type flight struct {
	scope backend.Scope
	ids   backend.Array // drawn, one per row; pinned
	batch backend.Batch
	rows  []flown
}

// flown is a row of a flight: the token that a sequence had at index start.
type flown struct {
	seq   *sequence
	slot  kv.SlotID
	start int
}

// flier is what a runner needs for flights.
type flier struct {
	draws backend.DeviceSampler // nil: there are no flights
	fixed bool                  // some state cannot be cut
	air   *flight               // whose plan is still to come; nil: none
	spare []*flight             // to be used again
	row   []int                 // per item of the plan: its row of air, or -1
	guess []flown               // reused
	param []backend.SampleParams
	used  int64 // flights whose plan came
}

func newFlier(be backend.Backend, states []backend.StateSpec) flier {
	var f flier
	if d, ok := be.(backend.DeviceSampler); ok && be.Caps().LateTokens {
		f.draws, f.fixed = d, backend.Fixed(states)
	}
	return f
}

// arrive says which items of a plan are in the air already, and commits them. It comes before slots are closed and opened.
func (r *runner) arrive(p sched.Plan) {
	r.fly.row = r.fly.row[:0]
	for range p.Items {
		r.fly.row = append(r.fly.row, -1)
	}
	if r.fly.air == nil {
		return
	}
	for row, f := range r.fly.air.rows {
		if !f.seq.open || f.seq.Slot != f.slot {
			continue // it has left
		}
		kept := 0
		for i := range p.Items {
			it := &p.Items[i]
			if r.out[i].seq == f.seq && it.Decode && !it.First && len(it.Snaps) == 0 && it.Seq.Table.Len == f.start {
				r.fly.row[i], kept = row, 1
			}
		}
		if r.fly.fixed {
			r.store.Commit(f.slot, kept)
		}
	}
}

// decodes reports whether a plan is nothing but sequences whose next tokens the device can draw, and that all of them are in
// the air if any is.
func (r *runner) decodes(p sched.Plan) bool {
	if r.fly.draws == nil || len(p.Items) == 0 || len(p.Items) > logitRows || len(p.Preempted) > 0 {
		return false
	}
	r.fly.guess = r.fly.guess[:0]
	for i := range p.Items {
		it, q := &p.Items[i], r.out[i].seq
		if !it.Decode || it.First || len(it.Snaps) > 0 || (r.fly.row[i] < 0) != (r.fly.air == nil) || !q.free() {
			return false
		}
		r.fly.guess = append(r.fly.guess, flown{q, q.Slot, it.Seq.Table.Len})
	}
	return true
}

// free reports whether a token depends on nothing but the logits and the sequence's own draws.
func (q *sequence) free() bool {
	_, ok := q.sampler.Draw(0)
	return ok && q.top < 0 && q.answers == nil && len(q.settled) == 0
}

// cruise runs a plan that decodes says yes to: the step after it is launched before its tokens are read.
func (r *runner) cruise(p sched.Plan) error {
	f := r.fly.air
	if f != nil {
		r.fly.used++
	} else {
		f = r.launch(nil)
		r.fly.air = f
		for i := range r.fly.row {
			r.fly.row[i] = i
		}
	}
	var next *flight
	if r.onward() {
		next = r.launch(f)
	}
	r.fly.air = next
	return r.land(f, p)
}

// onward makes r.fly.guess the step after the one it is, and reports whether every sequence has room for it. That no stop id
// comes is left to luck.
func (r *runner) onward() bool {
	for i := range r.fly.guess {
		g := &r.fly.guess[i]
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

// launch gives the device the step of r.fly.guess. What runs is known, or is what before, the step before it, draws.
func (r *runner) launch(before *flight) *flight {
	f := &flight{}
	if n := len(r.fly.spare); n > 0 {
		f, r.fly.spare = r.fly.spare[n-1], r.fly.spare[:n-1]
	}
	b := &f.batch
	b.Tokens, b.Pos[0], b.Spans, b.Out, b.Late = b.Tokens[:0], b.Pos[0][:0], b.Spans[:0], b.Out[:0], backend.Array{}
	f.rows, r.fly.param = append(f.rows[:0], r.fly.guess...), r.fly.param[:0]
	skip := 0
	if before != nil {
		skip, b.Late = 1, before.ids
	}
	for i, g := range f.rows {
		id := int32(0)
		if before != nil {
			id = ^int32(before.find(g.seq))
		} else {
			id = g.seq.tokens[g.start]
		}
		b.Tokens, b.Pos[0], b.Out = append(b.Tokens, id), append(b.Pos[0], int32(g.start)), append(b.Out, int32(i))
		b.Spans = append(b.Spans, backend.Span{Slot: g.slot, Row: i, Len: 1, Start: g.start, Table: &g.seq.Table, Tentative: before != nil && r.fly.fixed})
		d, _ := g.seq.sampler.Draw(skip)
		r.fly.param = append(r.fly.param, backend.SampleParams{Temperature: d.Temperature, TopP: d.TopP, MinP: d.MinP, TopK: d.TopK, Uniform: d.Uniform})
	}
	o := r.be.Begin(r.store, b)
	done := false
	defer func() {
		if !done {
			o.End()
		}
	}()
	ids := r.fly.draws.Sample(o, r.model.Logits(o, r.model.Forward(o, b)), r.fly.param)
	f.ids = o.Pin(ids)
	o.Submit(ids)
	f.scope, done = o, true
	return f
}

// find is the row of a sequence.
func (f *flight) find(q *sequence) int {
	for i := range f.rows {
		if f.rows[i].seq == q {
			return i
		}
	}
	panic("engine: a sequence is not in the step before")
}

// land reads the tokens of a flight for the items of a plan that are in it.
func (r *runner) land(f *flight, p sched.Plan) error {
	ids, err := f.scope.Ints(f.ids)
	if err == nil {
		err = f.scope.Err()
	}
	if err == nil {
		for i := range p.Items {
			row := r.fly.row[i]
			if row < 0 {
				continue
			}
			res := &r.out[i]
			if ids[row] < 0 {
				res.err = sample.ErrLogits
				continue
			}
			res.seq.sampler.Accept(ids[row])
			res.token, res.picked = Token{ID: ids[row]}, true
		}
	}
	r.ditch(f)
	if err != nil {
		return &StepError{Err: err}
	}
	return nil
}

// crash lets go of what is in the air.
func (r *runner) crash() {
	if f := r.fly.air; f != nil {
		r.fly.air = nil
		r.ditch(f)
	}
}

// ditch lets go of a flight, read or not.
func (r *runner) ditch(f *flight) {
	f.scope.End()
	r.be.Unpin(f.ids)
	clear(f.rows)
	f.scope = nil
	r.fly.spare = append(r.fly.spare, f)
}

// ground is for when there is nothing to run: nobody waits for a flight any more.
func (r *runner) ground() {
	r.crash()
	if d, ok := r.be.(backend.Device); ok {
		d.Idle()
	}
}
