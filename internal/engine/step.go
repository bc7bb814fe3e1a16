package engine

import (
	"fmt"
	"runtime/debug"
	"time"

	"hearth/internal/backend"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/sample"
	"hearth/internal/sched"
)

// sequence is the engine's side of a stream.
type sequence struct {
	sched.Seq
	stream      *Stream
	request     string // see Prompt
	salt        kv.Salt
	tokens      []int32 // prompt and generated
	stop        []int32
	sampler     *sample.Sampler
	top         int               // logprobs wanted, -1 none
	hook        *Hook             // of Prompt.Constrain
	constraints <-chan Constraint // one after each generated token; nil: there are none
	watch       func(step bool)
	forced      []int32     // tokens that come next
	mask        sample.Set  // else the next token is one of these; nil: any
	scores      []Score     // of a prompt that is scored
	disk        [2]int      // tokens that the disk gave for it: from, to
	open        bool        // the store has its slot
	counted     bool        // in CacheStats
	unwatch     func() bool // takes the watch off the context
}

// runner turns plans into tokens.
type runner struct {
	be    backend.Backend
	store backend.Store
	model model.Generator
	seqs  map[sched.ID]*sequence
	lost  func(kv.SnapID) // called for snapshots that could not be taken

	// Reused from step to step.
	batch   backend.Batch
	first   []int // per item: index of its first row in batch.Out; one more at the end
	rows    []int32
	out     []result
	jobs    []job
	work    []sample.Work // per worker
	draw    func(worker, i int)
	overlap overlap
	waits   int // for a Constraint, see await
}

// job is a row from which a token is drawn.
type job struct {
	res    *result
	logits []float32
}

// result is what a step did for one item.
type result struct {
	seq    *sequence
	token  Token
	picked bool // token is set
	err    error
	reason Reason // set by appendTokens
}

// StepError is a failure of the model or the backend in a step. It ends every sequence of that step.
type StepError struct {
	Err   error
	Stack []byte // of a panic, else nil
}

func (e *StepError) Error() string { return "run step: " + e.Err.Error() }
func (e *StepError) Unwrap() error { return e.Err }

// logitRows is how many rows of the vocabulary are held at once.
const logitRows = 64

// step runs a plan. Results are in the order of its items and valid until the next step.
func (r *runner) step(p sched.Plan) []result {
	r.out = r.out[:0]
	now := time.Now()
	for i := range p.Items {
		q := r.seqs[p.Items[i].Seq.ID]
		r.out = append(r.out, result{seq: q})
		if p.Items[i].First {
			q.stream.start(now, q)
		}
	}
	if err := r.forward(p); err != nil {
		for i := range r.out {
			r.out[i] = result{seq: r.out[i].seq, err: err}
		}
	}
	return r.out
}

// forward opens the slots of new sequences and runs the plan; a slot that does not open fails its sequence alone. A
// panic is an error of the step.
func (r *runner) forward(p sched.Plan) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &StepError{Err: fmt.Errorf("panic: %v", v), Stack: debug.Stack()}
		}
		if err != nil {
			r.discardPending()
		}
	}()
	r.findPending(p)
	for _, l := range p.Preempted {
		r.close(r.seqs[l.Seq.ID], l.Slot)
	}
	for i := range p.Items {
		if q := r.out[i].seq; p.Items[i].First {
			if err := r.store.Open(q.Slot, q.Match, p.Items[i].Tail()); err != nil {
				r.out[i].err = fmt.Errorf("open slot %d: %w", q.Slot, err)
				continue
			}
			q.open = true
		}
	}
	if r.canOverlap(p) {
		return r.runOverlapped(p)
	}
	if f := r.overlap.pending; f != nil {
		r.overlap.pending = nil
		if err := r.readPending(f, p); err != nil {
			return err
		}
	}
	if r.build(p); len(r.batch.Spans) == 0 {
		return nil
	}
	o := r.be.Begin(r.store, &r.batch)
	defer o.End()
	h := o.Keep(r.model.Forward(o, &r.batch))
	o.Submit(h)
	for from := 0; from < len(r.batch.Out); from += logitRows {
		to := min(from+logitRows, len(r.batch.Out))
		part := h
		if to-from < h.Rows() {
			part = o.Gather(h, r.rowRange(from, to))
		}
		l := r.model.Logits(o, part)
		f, err := o.Floats(l)
		if err != nil {
			return &StepError{Err: err}
		}
		r.jobs = r.jobs[:0]
		for i := range p.Items {
			for row := max(from, r.first[i]); row < min(to, r.first[i+1]) && r.out[i].err == nil; row++ {
				logits := f[(row-from)*l.Cols():][:l.Cols()]
				if p.Items[i].Want == sched.WantAll {
					r.score(&r.out[i], p.Items[i].Seq.Table.Len+row-r.first[i], logits)
				} else {
					r.jobs = append(r.jobs, job{&r.out[i], logits})
				}
			}
		}
		r.sample()
		o.Sweep(h) // a slice of logits is large; prompt logprobs run many
	}
	if err := o.Err(); err != nil {
		return &StepError{Err: err}
	}
	return nil
}

// build lays out the rows. No padding, no masks: positions, spans and tables say everything.
func (r *runner) build(p sched.Plan) {
	b := &r.batch
	b.Tokens, b.Pos[0], b.Spans, b.Out = b.Tokens[:0], b.Pos[0][:0], b.Spans[:0], b.Out[:0]
	r.first = r.first[:0]
	for i := range p.Items {
		r.first = append(r.first, len(b.Out))
		if r.out[i].err != nil || r.out[i].picked {
			continue
		}
		it, q := &p.Items[i], r.out[i].seq
		row, start := len(b.Tokens), it.Seq.Table.Len
		b.Tokens = append(b.Tokens, q.tokens[start:start+it.Tokens]...)
		r.spans(it, q, row)
		for j := range it.Tokens {
			b.Pos[0] = append(b.Pos[0], int32(start+j))
		}
		from := len(b.Tokens) // WantNone
		switch it.Want {
		case sched.WantLast:
			from--
		case sched.WantAll:
			from = row
		}
		for ; from < len(b.Tokens); from++ {
			b.Out = append(b.Out, int32(from))
		}
	}
	r.first = append(r.first, len(b.Out))
}

// spans adds the item's tokens: a span that ends at every snapshot, and what is left.
func (r *runner) spans(it *sched.Item, q *sequence, row int) {
	sp := backend.Span{Slot: q.Slot, Row: row, Start: it.Seq.Table.Len, Table: &q.Table}
	end := sp.Start + it.Tokens
	for _, n := range it.Snaps {
		sp.Len, sp.Snapshot = n.To-sp.Start, n.ID
		r.batch.Spans = append(r.batch.Spans, sp)
		sp.Row, sp.Start = sp.Row+sp.Len, n.To
	}
	if sp.Len, sp.Snapshot = end-sp.Start, 0; sp.Len > 0 {
		r.batch.Spans = append(r.batch.Spans, sp)
	}
}

// close closes the slot that a sequence had, after the snapshot that the scheduler wants of it.
func (r *runner) close(q *sequence, slot kv.SlotID) {
	if !q.open {
		return
	}
	if q.EndSnap != 0 && r.store.Snapshot(slot, q.EndSnap) != nil {
		r.lost(q.EndSnap)
	}
	r.store.Close(slot)
	q.open = false
}

// score scores the row of a position, unless that was done before the sequence was preempted.
func (r *runner) score(res *result, pos int, logits []float32) {
	if q := res.seq; pos == len(q.scores) {
		var sc Score
		next := int32(-1)
		if pos+1 < len(q.tokens) {
			next = q.tokens[pos+1]
		}
		if sc, res.err = score(logits, q.top, next); res.err == nil {
			q.scores = append(q.scores, sc)
		}
	}
}

// sample draws the tokens of r.jobs, on the backend's threads where it lends them: a row of a large vocabulary takes
// about as long as two layers of a small model.
func (r *runner) sample() {
	workers := 1
	spreader, ok := r.be.(backend.Spreader)
	if ok = ok && len(r.jobs) > 1; ok {
		workers = spreader.Workers()
	}
	for len(r.work) < workers {
		r.work = append(r.work, sample.Work{})
	}
	if r.draw == nil {
		r.draw = r.drawOne // once, because a method value is allocated
	}
	if ok {
		spreader.Spread(len(r.jobs), r.draw)
	} else {
		for i := range r.jobs {
			r.draw(0, i)
		}
	}
}

// drawOne draws the token of job i. Jobs are of different sequences and may run at the same time.
func (r *runner) drawOne(worker, i int) {
	res := r.jobs[i].res
	var top []sample.Logprob
	if res.seq.top > 0 {
		top = make([]sample.Logprob, 0, min(res.seq.top, len(r.jobs[i].logits))) // the stream keeps it
	}
	t, top, err := res.seq.next(r.jobs[i].logits, &r.work[worker], top, r.waits)
	if err != nil {
		res.err = err
		return
	}
	res.token, res.picked = Token{ID: t.ID, Logprob: t.Logprob, Top: top}, true
}

// next draws a token, or takes the one that is forced.
func (q *sequence) next(logits []float32, w *sample.Work, top []sample.Logprob, waits int) (sample.Logprob, []sample.Logprob, error) {
	if q.constraints != nil && len(q.tokens) > q.Prompt {
		c := await(q.stream.ctx, q.constraints, waits)
		if c.Err != nil {
			return sample.Logprob{}, nil, &ConstraintError{c.Err}
		}
		q.forced, q.mask = append(q.forced, c.Forced...), c.Mask
	}
	if len(q.forced) == 0 {
		q.sampler.Limit(q.mask)
		q.mask = nil
		return q.sampler.Next(logits, w, q.top, top)
	}
	id := q.forced[0]
	q.forced = q.forced[1:]
	return q.sampler.Take(id, logits, w, q.top, top)
}

// rowRange lists the rows [from, to), until it is called again.
func (r *runner) rowRange(from, to int) []int32 {
	r.rows = r.rows[:0]
	for i := from; i < to; i++ {
		r.rows = append(r.rows, int32(i))
	}
	return r.rows
}
