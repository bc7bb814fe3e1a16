package engine

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"hearth/internal/budget"
	"hearth/internal/sched"
	"hearth/internal/watchdog"
)

// loop runs steps until the engine is closed. It alone touches the model.
func (e *Engine) loop() {
	defer close(e.done)
	defer e.watchdog.Close()
	debug.SetPanicOnFault(true) // a mapped file that somebody cuts short fails a step and not the process
	for e.intake() {
		e.trace.lap(nil)
		e.run.sights.planned = e.run.sights.planned[:0]
		e.run.sights.dropStale(e.seqs)
		began := time.Now()
		plan := e.sched.Next()
		planned := time.Since(began)
		if len(plan.Items) == 0 && len(plan.Preempted) == 0 && (e.waitForMemory() || e.waitForPatches()) {
			continue
		}
		kind := watchdog.Decode
		if slices.ContainsFunc(plan.Items, func(it sched.Item) bool { return !it.Decode }) {
			kind = watchdog.Prompt
		}
		e.watchdog.Begin(kind)
		e.publish(0)
		e.noteWaits(plan, planned)
		e.prepare(plan)
		e.trace.plan(plan)
		began = time.Now()
		out := e.run.step(plan)
		e.took = time.Since(began)
		e.sched.ChunkBudget.Observe(plan.Items, (e.took - e.run.sights.took).Microseconds()) // a tower's time says nothing of tokens
		e.trace.lap(&e.trace.step.Run)
		e.learn(plan, out)
		left := e.appendTokens(plan, out)
		e.left = e.left[:0]
		for i := range out {
			e.left = append(e.left, out[i].seq.Slot)
		}
		e.sched.Done(plan, left)
		for i := range out {
			if out[i].reason != Running {
				e.run.close(out[i].seq, e.left[i])
			}
		}
		e.run.sights.trim(e.seqs, e.run.sights.limit)
		e.deliver(out)
		e.watchdog.End()
		e.trace.done()
	}
	e.spec.forgetAll()
	e.spec.histories = nil
	for _, q := range e.seqs {
		e.drop(q, Error, ErrClosed)
	}
	e.spec.work.Wait()
	e.run.idle()
	e.run.sights.close()
	if p := e.sched.Prefix(); p != nil {
		e.failed = e.disk.close(e.wake)
		p.Clear()
	}
	e.publish(0)
}

// intake handles what was submitted and cancelled since the last step, and waits while there is nothing to run. False: the engine
// is closed.
func (e *Engine) intake() bool {
	for {
		e.mu.Lock()
		for _, q := range e.inbox {
			e.seqs[q.ID] = q
			e.sched.Submit(&q.Seq)
		}
		clear(e.inbox)
		e.inbox = e.inbox[:0]
		leave, calls := e.leave, e.calls
		e.leave, e.calls = nil, nil
		shut := e.closed
		e.mu.Unlock()
		for _, q := range leave {
			err := q.stream.ctx.Err()
			if err == nil {
				err = context.Canceled
			}
			e.drop(q, Cancel, err)
		}
		for _, f := range calls {
			f()
		}
		if shut {
			return false
		}
		if e.sched.Expire(time.Now().UnixMilli()) {
			e.publish(0)
		}
		if e.cfg.CacheTTL > 0 {
			e.spec.expire(e.cfg.CacheTTL, time.Now())
		}
		e.disk.move(e.busy())
		if e.memory.giveBack(e.sched.Prefix()) {
			e.publish(0)
		}
		if e.busy() {
			return true
		}
		e.run.idle()
		e.memory.rest()
		e.waitForWork()
	}
}

// waitForMemory waits where the plan is empty because other models have the memory for the next sequence, or ends that sequence
// where it never will be there.
func (e *Engine) waitForMemory() bool {
	q := e.sched.Blocked()
	if q == nil || e.memory.share == nil {
		return false
	}
	if running, _ := e.sched.Counts(); running > 0 {
		return false
	}
	if e.memory.last == budget.Never {
		e.drop(e.seqs[q.ID], Error, &NoMemoryError{e.memory.share.Short(e.memory.lack)})
		return true
	}
	<-e.wake
	return true
}

// lack is what the sequence lacks that the last plan could not admit; it notes when that was.
func (e *Engine) lack() Lack {
	if e.sched.Blocked() == nil {
		return LackNone
	}
	l := LackMemory
	if e.sched.Full() {
		l = LackSlot
	}
	e.lacked[l] = time.Now()
	return l
}

// noteWaits notes what those who start have waited for; memory before a slot. Planning took so long: to look them up, mostly.
func (e *Engine) noteWaits(p sched.Plan, planned time.Duration) {
	for i := range p.Items {
		if !p.Items[i].First {
			continue
		}
		q := e.seqs[p.Items[i].Seq.ID]
		q.matched += planned
		for l := LackSlot; l < lacks; l++ {
			if e.lacked[l].After(q.stream.usage.Submitted) { // which never changes
				q.waited = l
			}
		}
	}
}

// busy reports whether there is something to run: not only sequences that wait for the disk.
func (e *Engine) busy() bool {
	running, waiting := e.sched.Counts()
	return running+waiting > e.sched.Loading()
}

// drop takes a sequence out between two steps, unless it has left already.
func (e *Engine) drop(q *sequence, r Reason, err error) {
	if e.seqs[q.ID] == nil {
		return
	}
	e.retire(q)
	slot := q.Slot
	e.sched.Cancel(&q.Seq)
	e.run.close(q, slot)
	e.disk.done(q)
	e.publish(1)
	q.stream.end(r, err)
}

// retire forgets a sequence; the scheduler frees its ids afterwards, and then its slot is closed.
func (e *Engine) retire(q *sequence) {
	q.unwatch()
	e.remember(q)
	delete(e.seqs, q.ID)
	e.mu.Lock()
	delete(e.current, q.ID)
	e.mu.Unlock()
}

// appendTokens appends what a step generated and says which sequences end. deliver tells the streams after the scheduler has
// freed what they held: whoever sees a stream end finds its memory free.
func (e *Engine) appendTokens(p sched.Plan, out []result) []sched.Outcome {
	for i := range out {
		if r := &out[i]; r.err == nil && len(r.tokens) > 0 {
			r.appendDrawn()
			e.tell(r)
		}
	}
	e.hear(out)
	e.outcomes = e.outcomes[:0]
	var prompt, generated int64
	var starts CacheStats
	for i := range out {
		it, r := &p.Items[i], &out[i]
		if it.First && !r.seq.counted {
			r.seq.counted = true
			starts.Queries++
			starts.Tokens += int64(it.Seq.Cached)
			starts.Hits += int64(min(it.Seq.Cached, 1))
			e.happened.Hits[it.Seq.Match.Kind]++
		}
		if it.Seq.Table.Len < it.Seq.Prompt {
			prompt += int64(it.Tokens)
			r.seq.stream.ran(min(it.Seq.Table.Len+it.Tokens, it.Seq.Prompt))
		}
		o := sched.Outcome{}
		switch {
		case r.err != nil:
			if r.reason, o.Failed = Error, true; errors.Is(r.err, context.Canceled) {
				r.reason = Cancel
			}
		case len(r.tokens) > 0:
			r.appendForced()
			o.New, o.Kept = len(r.seq.tokens)-r.seq.Known, r.kept
		case it.Seq.Score && it.Seq.Table.Len+it.Tokens == it.Seq.Prompt:
			r.reason = Length
		}
		generated += int64(len(r.tokens))
		if o.End = r.reason != Running; o.End {
			e.retire(r.seq)
		}
		e.outcomes = append(e.outcomes, o)
	}
	e.countStep(&p, prompt, generated, starts)
	return e.outcomes
}

// deliver gives the streams their tokens and ends.
func (e *Engine) deliver(out []result) {
	gone := 0
	for i := range out {
		if out[i].reason != Running {
			gone++
		}
		if out[i].reason == Stop || out[i].reason == Length {
			e.disk.done(out[i].seq)
		}
	}
	e.publish(gone)
	now := time.Now()
	if e.cfg.Timings {
		e.mu.Lock()
		e.stats.Timings.tokens(out, now)
		e.mu.Unlock()
	}
	for i := range out {
		r := &out[i]
		if len(r.tokens) > 0 {
			r.seq.stream.push(r.tokens, r.reason == Stop, r.kept > 0, now)
		}
		if r.reason != Running {
			r.seq.stream.end(r.reason, r.err)
		}
		clear(r.tokens) // the buffers are reused: let go of the sequence
		*r = result{tokens: r.tokens[:0]}
	}
}
