// Package sched is policy: from what waits and what runs it makes the plan of the next step. The engine calls it, from
// one goroutine. It knows counts and page ids; it has no clock, goroutine, array or token value, so that every policy
// is tested as text (testdata).
package sched

import (
	"slices"

	"hearth/internal/kv"
)

// ID names a sequence. The engine chooses it.
type ID int64

// Want says which rows of an item must come out of the model.
type Want uint8

const (
	WantNone Want = iota // a prompt chunk that is not the last
	WantLast             // decode, or the last chunk of a prompt
	WantAll              // every row: scoring a prompt
)

// Seq is one sequence as policy sees it. The caller sets the first group of fields; the rest is the scheduler's, to be
// read only.
type Seq struct {
	ID     ID
	Prompt int  // prompt tokens, at least 1
	Max    int  // tokens it may generate; 0: it ends with its prompt
	Score  bool // every prompt row is wanted

	Slot  kv.SlotID // kv.NoSlot while waiting
	Table kv.Table  // Len counts the tokens run so far
	Known int       // prompt and generated tokens known so far; Known-Table.Len of them are still to run
	need  int64     // bytes reserved
}

// Item is one sequence's part of a plan: run Tokens tokens from Seq.Table.Len on. The table covers them.
type Item struct {
	Seq    *Seq
	Tokens int
	Want   Want
	First  bool // the sequence has just been admitted: its slot holds nothing yet
}

// Plan is one step. Decodes come first, then prompt chunks in order of arrival. Valid until Done.
type Plan struct{ Items []Item }

// Outcome is what a step did for the item at the same place in the plan.
type Outcome struct {
	New int  // tokens generated
	End bool // the sequence leaves
}

// Config bounds a plan.
type Config struct {
	Chunk int // prompt tokens per step, over all sequences
}

// Scheduler holds the waiting and the running sequences.
//
// Invariants (Check):
//   - a sequence waits or runs, never both; waiting ones own no slot and no page;
//   - slots and pages in use are exactly those of the running sequences;
//   - the bytes reserved are the sum over the running sequences and never exceed the budget;
//   - sequences start in the order they were submitted.
type Scheduler struct {
	cfg      Config
	alloc    *kv.Alloc
	waiting  []*Seq
	running  []*Seq // in order of admission
	reserved int64
	plan     Plan
}

// New makes a scheduler that spends the ids and bytes of a; Limits.Span of a must be at least cfg.Chunk.
func New(cfg Config, a *kv.Alloc) *Scheduler { return &Scheduler{cfg: cfg, alloc: a} }

// Submit puts s at the end of the queue. The caller has checked that Prompt+Max fits Limits.Tokens: a sequence that
// can never be admitted would hold up the queue for ever.
func (s *Scheduler) Submit(q *Seq) {
	q.Slot, q.Known = kv.NoSlot, q.Prompt
	s.waiting = append(s.waiting, q)
}

// Cancel takes a sequence out, waiting or running. It must not be in a plan that is not Done.
func (s *Scheduler) Cancel(q *Seq) {
	if i := slices.Index(s.waiting, q); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return
	}
	s.leave(q)
}

// Counts is the number of running and waiting sequences.
func (s *Scheduler) Counts() (running, waiting int) { return len(s.running), len(s.waiting) }

// Next plans a step: one token for every sequence that decodes, then up to Chunk prompt tokens, oldest sequence
// first, admitting waiting ones while room for their prompts remains. An empty plan means that nothing is to do.
func (s *Scheduler) Next() Plan {
	s.plan.Items = s.plan.Items[:0]
	for _, q := range s.running {
		if s.decoding(q) {
			s.add(q, 1)
		}
	}
	room := s.cfg.Chunk
	for _, q := range s.running {
		if room > 0 && !s.decoding(q) {
			room -= s.add(q, room)
		}
	}
	for room > 0 && len(s.waiting) > 0 && s.admit(s.waiting[0]) {
		q := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.running = append(s.running, q)
		room -= s.add(q, room)
	}
	return s.plan
}

// decoding: the prompt has run and the one known token that has not is a generated one.
func (s *Scheduler) decoding(q *Seq) bool { return q.Known > q.Prompt }

// add plans up to limit of the tokens q knows but has not run.
func (s *Scheduler) add(q *Seq, limit int) int {
	n := min(q.Known-q.Table.Len, limit)
	it := Item{Seq: q, Tokens: n, First: q.Table.Len == 0}
	switch end := q.Table.Len + n; {
	case q.Score:
		it.Want = WantAll
	case end == q.Known:
		it.Want = WantLast
	}
	if !s.alloc.Grow(&q.Table, q.Table.Len+n) {
		panic("sched: pages ran out inside a reservation")
	}
	s.plan.Items = append(s.plan.Items, it)
	return n
}

// admit reserves what q can come to hold, or reports that it has to wait.
//
// Reservation: Geometry.Need(Prompt+Max, span) bytes, that is ceil((Prompt+Max)/page) pages of every group (window
// groups: no more than window and span cover), the slot's fixed state, and the slot's own copy where the store keeps
// one; span is Limits.Span. It is held until the sequence leaves. Assumptions: a sequence may use all of Max, and
// nothing is shared between sequences. So a running sequence never lacks a page, and nothing is ever preempted; the
// price is that a request without a small Max keeps others waiting when memory is short. First in, first out: nobody
// overtakes a sequence that does not fit yet.
func (s *Scheduler) admit(q *Seq) bool {
	lim := s.alloc.Limits()
	q.need = s.alloc.Geometry().Need(q.Prompt+q.Max, lim.Span)
	if s.reserved+q.need > lim.Bytes {
		return false
	}
	slot, ok := s.alloc.Slot()
	if !ok {
		return false
	}
	q.Slot = slot
	s.reserved += q.need
	return true
}

// Done books a step: out[i] belongs to p.Items[i].
func (s *Scheduler) Done(p Plan, out []Outcome) {
	for i := range p.Items {
		q := p.Items[i].Seq
		q.Table.Len += p.Items[i].Tokens
		q.Known += out[i].New
		if out[i].End {
			s.leave(q)
			continue
		}
		s.alloc.Trim(&q.Table)
	}
	clear(p.Items) // reused; a sequence that left must not stay reachable
	if kv.Invariants {
		if err := s.Check(); err != nil {
			panic(err)
		}
	}
}

// leave frees everything a running sequence holds.
func (s *Scheduler) leave(q *Seq) {
	i := slices.Index(s.running, q)
	if i < 0 {
		return
	}
	s.running = slices.Delete(s.running, i, i+1)
	s.alloc.Release(&q.Table)
	s.alloc.FreeSlot(q.Slot)
	q.Slot = kv.NoSlot
	s.reserved -= q.need
}
