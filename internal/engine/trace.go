package engine

import (
	"time"

	"hearth/internal/sched"
)

// Step is what the loop did in one step and how long each part took, for Config.Trace.
type Step struct {
	Began   time.Time
	Plan    time.Duration // choosing what runs, look-ups in the prefix cache included
	Run     time.Duration // model and sampling
	Book    time.Duration // booking the results and handing them out
	Decodes int           // sequences that decoded
	Prompt  int           // prompt tokens
	Starts  []sched.ID    // sequences that ran for the first time, valid until Trace returns
}

// trace measures a step; it does nothing when nobody listens.
type trace struct {
	listen func(Step)
	step   Step
	mark   time.Time
}

// lap gives the time since the last lap, or since it was called with nil.
func (t *trace) lap(into *time.Duration) {
	if t.listen == nil {
		return
	}
	now := time.Now()
	if into != nil {
		*into = now.Sub(t.mark)
	} else {
		t.step.Began = now
	}
	t.mark = now
}

// plan notes what is about to run.
func (t *trace) plan(p sched.Plan) {
	if t.listen == nil {
		return
	}
	t.step.Decodes, t.step.Prompt, t.step.Starts = 0, 0, t.step.Starts[:0]
	for i := range p.Items {
		it := &p.Items[i]
		if it.Decode {
			t.step.Decodes++
		} else {
			t.step.Prompt += it.Tokens
		}
		if it.First {
			t.step.Starts = append(t.step.Starts, it.Seq.ID)
		}
	}
	t.lap(&t.step.Plan)
}

func (t *trace) done() {
	if t.listen != nil {
		t.lap(&t.step.Book)
		t.listen(t.step)
	}
}
