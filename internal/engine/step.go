package engine

import (
	"fmt"
	"runtime/debug"
	"slices"
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
	request     string        // see Prompt
	made        time.Duration // likewise
	salt        kv.Salt
	tokens      []int32 // prompt and generated; the last Unscored ones have not been given to the stream
	images      []placed
	unseen      error // of one of them whose patches could not be got
	stop        []int32
	sampler     *sample.Sampler
	top         int                    // logprobs wanted, -1 none
	hook        *Hook                  // of Prompt.Constrain
	constraints <-chan Constraint      // one after each generated token; nil: there are none
	tells       func(at int, id int32) // Prompt.Told
	answered    int                    // how many of those have come
	watch       func(step bool)
	untold      []int32       // tokens that the hook is about to be told
	forced      []int32       // tokens that come next
	likely      []int32       // the constraint's draft behind those; nil: there is none
	mask        sample.Set    // else the next token is one of these; nil: any
	scores      []Score       // of a prompt that is scored
	disk        [2]int        // tokens that the disk gave for it: from, to
	open        bool          // the store has its slot
	counted     bool          // in CacheStats
	asked       time.Time     // when the disk was, last
	matched     time.Duration // see Usage
	waited      Lack          // what kept it from starting
	told        time.Time     // when its last tokens were handed out; kept with Timings alone
	unwatch     func() bool   // takes the watch off the context

	prediction []int32
	drafter    *drafter // nil: none
	ahead      int      // accepted drafts of this step that the hook was told
	failed     error    // of a row behind accepted drafts: it is the next token's
}

// runner turns plans into tokens.
type runner struct {
	be    backend.Backend
	store backend.Store
	model model.Generator
	seqs  map[sched.ID]*sequence
	lost  func(kv.SnapID) // called for snapshots that could not be taken

	sights sights

	// Reused from step to step.
	batch   backend.Batch
	axes    [2][]int32 // positions of batches with images
	first   []int      // per item: index of its first row in batch.Out; one more at the end
	rows    []int32
	out     []result
	jobs    []job
	work    []sample.Work // per worker
	draw    func(worker, i int)
	overlap overlap
	waits   int // for a Constraint, see await
}

// job is the rows from which tokens of one sequence are drawn, one after the other.
type job struct {
	res    *result
	logits []float32
	rows   int
}

// result is what a step did for one item.
type result struct {
	seq    *sequence
	tokens []Token // generated; reused
	err    error
	reason Reason // set by appendDrawn and appendForced

	draft []int32 // run behind the item's tokens
	kept  int     // of those: they are in tokens, too
	done  bool    // the rows behind are of no use
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
	r.sights.step()
	r.out = slices.Grow(r.out[:0], len(p.Items))[:len(p.Items)]
	now := time.Now()
	for i := range p.Items {
		q := r.seqs[p.Items[i].Seq.ID]
		r.out[i].seq = q
		if p.Items[i].First {
			q.stream.start(now, q)
		}
	}
	if err := r.forward(p); err != nil {
		for i := range r.out {
			r.out[i].tokens, r.out[i].err = r.out[i].tokens[:0], err
		}
	}
	r.commit(p)
	return r.out
}

// forward opens the slots of new sequences and runs the plan; a slot that does not open fails its sequence alone. A
// panic is an error of the step.
func (r *runner) forward(p sched.Plan) (err error) {
	defer func() {
		v := recover()
		if cut := backend.Unreadable(v); cut != nil {
			err = &StepError{Err: cut}
		} else if v != nil {
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
			row, n := max(from, r.first[i]), min(to, r.first[i+1])-max(from, r.first[i])
			if n <= 0 || r.out[i].err != nil {
				continue
			}
			j := job{&r.out[i], f[(row-from)*l.Cols():][:n*l.Cols()], n}
			if p.Items[i].Seq.Score {
				r.score(j, p.Items[i].Seq.Table.Len+row-r.first[i])
			} else {
				r.jobs = append(r.jobs, j)
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
	b.Pos[1], b.Pos[2], b.Media = nil, nil, b.Media[:0]
	r.first = r.first[:0]
	for i := range p.Items {
		r.first = append(r.first, len(b.Out))
		if r.out[i].err != nil || len(r.out[i].tokens) > 0 {
			continue
		}
		it, q := &p.Items[i], r.out[i].seq
		row, start := len(b.Tokens), it.Seq.Table.Len
		if r.out[i].err = r.see(q, start, it.Tokens, row); r.out[i].err != nil {
			continue
		}
		b.Tokens = append(b.Tokens, q.tokens[start:start+it.Tokens]...)
		r.spans(it, q, row)
		if r.out[i].draft = q.drafts(it); it.Drafts > 0 {
			b.Tokens = append(b.Tokens, r.out[i].draft...)
		}
		for j := range it.Tokens + it.Drafts {
			b.Pos[0] = append(b.Pos[0], q.position(r.sights.tower, start+j)[0])
		}
		for row := len(b.Tokens) - it.Rows - it.Drafts; row < len(b.Tokens); row++ {
			b.Out = append(b.Out, int32(row))
		}
	}
	r.first = append(r.first, len(b.Out))
	if len(b.Media) > 0 {
		r.spread(p)
	}
}

// spread gives the rows of a batch with images their positions on the other axes.
func (r *runner) spread(p sched.Plan) {
	b := &r.batch
	for axis := range r.axes {
		r.axes[axis] = append(r.axes[axis][:0], b.Pos[0]...)
		b.Pos[axis+1] = r.axes[axis]
	}
	row := 0
	for i := range p.Items {
		if r.out[i].err != nil || len(r.out[i].tokens) > 0 {
			continue
		}
		q, start := r.out[i].seq, p.Items[i].Seq.Table.Len
		for j := range p.Items[i].Tokens + p.Items[i].Drafts {
			if len(q.images) > 0 {
				at := q.position(r.sights.tower, start+j)
				b.Pos[1][row], b.Pos[2][row] = at[1], at[2]
			}
			row++
		}
	}
}

// spans adds the item's tokens: a span that ends at every snapshot, and what is left.
func (r *runner) spans(it *sched.Item, q *sequence, row int) {
	sp := backend.Span{Slot: q.Slot, Row: row, Start: it.Seq.Table.Len, Table: &q.Table}
	end := sp.Start + it.Tokens + it.Drafts
	sp.Tentative = it.Drafts > 0 // it has no snapshots then
	for _, n := range it.Snaps {
		sp.Len, sp.Snapshot = n.To-sp.Start, n.ID
		sp.Both = r.both(q, sp.Start, n.To)
		r.batch.Spans = append(r.batch.Spans, sp)
		sp.Row, sp.Start = sp.Row+sp.Len, n.To
	}
	if sp.Len, sp.Snapshot = end-sp.Start, 0; sp.Len > 0 {
		sp.Both = r.both(q, sp.Start, end)
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

// score scores the rows of a job from a position on, but for those that were before the sequence was preempted.
func (r *runner) score(j job, pos int) {
	q := j.res.seq
	for logits := range slices.Chunk(j.logits, len(j.logits)/j.rows) {
		if pos == len(q.scores) {
			next := int32(-1)
			if pos+1 < len(q.tokens) {
				next = q.tokens[pos+1]
			}
			sc, err := score(logits, q.top, next)
			if err != nil {
				j.res.err = err
				return
			}
			q.scores = append(q.scores, sc)
		}
		pos++
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

// drawOne draws the tokens of job i. Jobs are of different sequences and may run at the same time.
func (r *runner) drawOne(worker, i int) {
	j := &r.jobs[i]
	cols := len(j.logits) / j.rows
	for from := 0; from < len(j.logits); from += cols {
		if j.res.done {
			return
		}
		if err := j.res.draw(j.logits[from:][:cols], &r.work[worker], r.waits); err != nil {
			j.res.err, j.res.done = j.res.stopDrafts(err), true
			return
		}
		j.res.done = len(j.res.draft) > 0 && !j.res.goesOn()
	}
}

// draw draws the next token, or takes the one that is known or forced.
func (r *result) draw(logits []float32, w *sample.Work, waits int) error {
	q := r.seq
	if q.failed != nil {
		return q.failed
	}
	var top []sample.Logprob
	if q.top > 0 {
		top = make([]sample.Logprob, 0, min(q.top, len(logits))) // the stream keeps it
	}
	if err := q.await(len(logits), waits); err != nil {
		return err
	}
	var t sample.Logprob
	var err error
	switch at := q.given() + len(r.tokens); {
	case at < len(q.tokens):
		t, top, err = q.sampler.Take(q.tokens[at], logits, w, q.top, top)
	case len(q.forced) > 0:
		t, top, err = q.sampler.Take(q.forced[0], logits, w, q.top, top)
		q.forced = q.forced[1:]
	default:
		q.sampler.Limit(q.mask)
		q.mask, q.likely = nil, nil
		t, top, err = q.sampler.Next(logits, w, q.top, top)
	}
	if err == nil {
		r.tokens = append(r.tokens, Token{ID: t.ID, Logprob: t.Logprob, Top: top})
	}
	return err
}

// rowRange lists the rows [from, to), until it is called again.
func (r *runner) rowRange(from, to int) []int32 {
	r.rows = r.rows[:0]
	for i := from; i < to; i++ {
		r.rows = append(r.rows, int32(i))
	}
	return r.rows
}
