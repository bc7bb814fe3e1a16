package engine

import (
	"fmt"
	"runtime/debug"
	"time"

	"hearth/internal/backend"
	"hearth/internal/model"
	"hearth/internal/sample"
	"hearth/internal/sched"
)

// sequence is the engine's side of a stream.
type sequence struct {
	sched.Seq
	stream  *Stream
	tokens  []int32 // prompt and generated
	stop    []int32
	sampler *sample.Sampler
	top     int         // logprobs wanted, -1 none
	scores  []Score     // of a prompt that is scored
	open    bool        // the store has its slot
	counted bool        // in the cache's statistics
	unwatch func() bool // takes the watch off the context
}

// runner turns plans into tokens.
type runner struct {
	be    backend.Backend
	store backend.Store
	model model.Generator
	seqs  map[sched.ID]*sequence

	// Reused from step to step.
	batch backend.Batch
	first []int // per item: index of its first row in batch.Out; one more at the end
	rows  []int32
	out   []result
	work  sample.Work
}

// result is what a step did for one item.
type result struct {
	seq    *sequence
	token  Token
	picked bool // token is set
	err    error
	reason Reason // set by settle
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
			q.stream.start(now, &q.Seq)
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
	}()
	for _, l := range p.Preempted {
		if q := r.seqs[l.Seq.ID]; q.open {
			r.store.Close(l.Slot)
			q.open = false
		}
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
			part = o.Gather(h, r.iota(from, to))
		}
		l := r.model.Logits(o, part)
		f, err := o.Floats(l)
		if err != nil {
			return &StepError{Err: err}
		}
		for i := range p.Items {
			for row := max(from, r.first[i]); row < min(to, r.first[i+1]) && r.out[i].err == nil; row++ {
				logits := f[(row-from)*l.Cols():][:l.Cols()]
				if p.Items[i].Want == sched.WantAll {
					r.score(&r.out[i], p.Items[i].Seq.Table.Len+row-r.first[i], logits)
				} else {
					r.sample(&r.out[i], logits)
				}
			}
		}
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
		if r.out[i].err != nil {
			continue
		}
		it, q := &p.Items[i], r.out[i].seq
		row, start := len(b.Tokens), it.Seq.Table.Len
		b.Tokens = append(b.Tokens, q.tokens[start:start+it.Tokens]...)
		b.Spans = append(b.Spans, backend.Span{Slot: q.Slot, Row: row, Len: it.Tokens, Start: start, Table: &q.Table})
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

// score scores the row of a position, unless that was done before the sequence was preempted.
func (r *runner) score(res *result, pos int, logits []float32) {
	if q := res.seq; pos == len(q.scores) {
		var sc Score
		if sc, res.err = score(logits, q.top); res.err == nil {
			q.scores = append(q.scores, sc)
		}
	}
}

// sample draws a token from one row of logits.
func (r *runner) sample(res *result, logits []float32) {
	q := res.seq
	var top []sample.Logprob
	if q.top > 0 {
		top = make([]sample.Logprob, 0, min(q.top, len(logits))) // the stream keeps it
	}
	t, top, err := q.sampler.Next(logits, &r.work, q.top, top)
	if err != nil {
		res.err = err
		return
	}
	res.token, res.picked = Token{ID: t.ID, Logprob: t.Logprob, Top: top}, true
}

// iota gives [from, to).
func (r *runner) iota(from, to int) []int32 {
	r.rows = r.rows[:0]
	for i := from; i < to; i++ {
		r.rows = append(r.rows, int32(i))
	}
	return r.rows
}
