// Package sched is policy: from what waits and what runs it makes the plan of the next step, and it decides what the
// prefix tree keeps and what is given up when memory is short. The engine calls it, from one goroutine. It knows counts,
// page ids and opaque keys; it has no clock, goroutine or array, so that every policy is tested as text (testdata).
package sched

import (
	"cmp"
	"slices"

	"hearth/internal/kv"
)

// ID names a sequence. The engine chooses it, ascending in order of arrival.
type ID int64

// Seq is one sequence as policy sees it. The caller sets the first group of fields; the rest is the scheduler's, to be
// read only.
type Seq struct {
	ID     ID
	Client uint64    // sequences of one client share what it gets
	Prompt int       // prompt tokens, at least 1
	Max    int       // tokens it may generate; 0: it ends with its prompt
	Score  bool      // all rows of the prompt are wanted, so nothing of it comes from the prefix tree
	Key    []kv.Elem // the prompt; the caller appends generated tokens before Done
	Owner  kv.Owner  // of what it stores in the prefix tree
	Whole  [][2]int  // prompt offsets [from, to) that one step must run, if any of them is still to run
	Marks  []int     // prompt offsets after which other prompts are likely to differ, for snapshots
	// Unscored is how many generated tokens at the end of Key lack their logprobs: the logits before each are wanted. The caller
	// sets it before Done.
	Unscored int

	Background bool // it lets others go first, see priority.go

	Slot    kv.SlotID // kv.NoSlot while waiting
	Table   kv.Table  // Len counts the tokens run so far, or found in the prefix tree
	Known   int       // prompt and generated tokens known so far; Known-Table.Len of them are still to run
	Match   kv.Match  // what the last admission found in the prefix tree
	Cached  int       // tokens that the first admission found there
	Added   int       // prompt tokens that it adds to the prefix tree, see kv.Geometry.Added
	Own     bool      // what it shared with the tree then was its owner's own, see kv.Prefix.Owns
	Instead []kv.Elem // what its owner had left there in the place of what it goes on with, likewise
	EndSnap kv.SnapID // of a sequence that has left: the snapshot to take before its slot is closed; 0: none

	started bool   // admitted before
	fresh   bool   // admitted, but its slot is not open yet: the page that Match.Tail is copied to holds nothing
	pin     kv.Pin // of Match, until the slot has been opened
	ran     int    // tokens run before it was preempted
	stored  int    // tokens handed to the prefix tree so far
	span    int    // tokens that were generated last, together

	promoted bool // it counts as interactive although it is Background
	asked    bool // see Config.Ask
	loading  bool // it waits for Loaded
}

// Item is one sequence's part of a plan: run Tokens tokens from Seq.Table.Len on. The table covers them.
type Item struct {
	Seq    *Seq
	Tokens int
	Rows   int  // the last so many of its rows must come out of the model
	First  bool // the sequence has just been admitted: open its slot at Seq.Match, with Tail
	Decode bool // it runs what was generated last: a token, or a part of several
	Snaps  []Snap
	Drafts int // tokens behind those, proposed by Config.Draft: rows that come out of the model, too
}

// Tail is the fresh page per group that the partly shared ones of Seq.Match are copied to, nil if there are none.
func (it *Item) Tail() []kv.PageID {
	m := &it.Seq.Match
	if m.Tail == nil {
		return nil
	}
	dst := make([]kv.PageID, len(m.Tail))
	for g := range dst {
		dst[g] = it.Seq.Table.Pages[g][len(m.Table.Pages[g])]
	}
	return dst
}

// Preemption is a sequence that has lost its slot and memory to another one, and that slot.
type Preemption struct {
	Seq  *Seq
	Slot kv.SlotID
}

// Plan is one step. Decodes come first, then prompt chunks, those of background sequences last. Close the slots of
// Preempted before opening any. Valid until Done.
type Plan struct {
	Preempted []Preemption
	Items     []Item
}

// Outcome is what a step did for the item at the same place in the plan.
type Outcome struct {
	New    int  // tokens that joined Seq.Key
	Kept   int  // of Item.Drafts, those that are among them; what the others left in the pages is not looked at again
	End    bool // the sequence leaves
	Failed bool // its state is not valid: with End, nothing of this step is stored
}

// Config bounds a plan.
type Config struct {
	Chunk     int   // prompt tokens per step, over all sequences
	Target    int64 // microseconds a step may take while sequences decode, see ChunkBudget; 0: prompt chunks never shrink
	Longest   int64 // microseconds a step without decodes may take; 0: likewise
	NoCache   bool  // no prefix tree
	SnapEvery int   // tokens between snapshots of recurrent state; 0: only the others, see snap.go

	// Room is asked whether the arrays of a step have memory, of so many rows, the deepest after so many positions, and outputs.
	// A step of all slots' decodes and leastPrompt tokens always has. nil: every step has.
	Room func(rows, depth, outs int) bool

	// Shorten may end a prompt's part of a step earlier than end, even where it begins: then it waits for the next step. beside
	// tells whether sequences decode in that step. nil: nothing does.
	Shorten func(q *Seq, end int, beside bool) int

	// Ask is called for a sequence that could be admitted and of which the prefix tree has so many tokens. True: more of it
	// is being loaded into the tree, and the sequence waits for Loaded. nil: nothing ever is.
	Ask   func(q *Seq, cached int) bool
	Terms kv.Terms

	// Draft, if set, is called once for the sequences that decode in a step, and tells whether prompts run beside them. Drafts of
	// each item is the most that it may have; Draft sets how many it has.
	Draft func(items []Item, prompts bool)
}

// Scheduler holds the waiting and the running sequences.
//
// Invariants (Check):
//   - a sequence waits or runs, never both; waiting ones own no slot and no page;
//   - both lists are in order of arrival;
//   - slots and page references in use are exactly those of the running sequences and the prefix tree, and within the
//     budget;
//   - nobody but its sequence holds the pages that an item writes to.
type Scheduler struct {
	ChunkBudget ChunkBudget
	cfg         Config
	alloc       *kv.Alloc
	prefix      *kv.Prefix // nil: off
	waiting     []*Seq
	running     []*Seq
	plan        Plan
	order       []*Seq // reused
	give        []int  // reused
	aged        int    // see age
	snaps       []Snap // of the plan
	spans       spans  // of the plan
	blocked     *Seq   // the plan lacked memory to admit it; nil: nobody
	full        bool   // that was the memory of a slot
}

// New makes a scheduler that spends the ids and bytes of a; Limits.Span of a must be at least cfg.Chunk.
func New(cfg Config, a *kv.Alloc) *Scheduler {
	s := &Scheduler{cfg: cfg, alloc: a, ChunkBudget: ChunkBudget{Target: cfg.Target, Longest: cfg.Longest}}
	if g := a.Geometry(); !cfg.NoCache && len(g.Groups) > 0 {
		s.prefix = kv.NewPrefix(a)
		s.prefix.SetTerms(cfg.Terms)
	}
	return s
}

// Prefix is the prefix tree, nil if there is none.
func (s *Scheduler) Prefix() *kv.Prefix { return s.prefix }

// Submit puts q at the end of the queue. The caller has checked that Prompt+Max fits Limits.Tokens: a sequence that can never be
// admitted would block the queue for ever.
func (s *Scheduler) Submit(q *Seq) {
	q.Slot, q.Known = kv.NoSlot, q.Prompt
	s.waiting = insert(s.waiting, q)
}

// insert keeps a list in order of arrival.
func insert(list []*Seq, q *Seq) []*Seq {
	i, _ := slices.BinarySearchFunc(list, q.ID, func(q *Seq, id ID) int { return cmp.Compare(q.ID, id) })
	return slices.Insert(list, i, q)
}

// Cancel removes a sequence, waiting or running; what it computed stays in the prefix tree. It must not be in a plan that is not
// Done.
func (s *Scheduler) Cancel(q *Seq) {
	if i := slices.Index(s.waiting, q); i >= 0 {
		q.EndSnap = 0 // taken when it was preempted
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return
	}
	s.leave(q, true)
}

// Blocked is the sequence that the last plan had no memory to admit, nil if there is none.
func (s *Scheduler) Blocked() *Seq { return s.blocked }

// Full reports whether that was because as many sequences run as may.
func (s *Scheduler) Full() bool { return s.full }

// Counts is the number of running and waiting sequences.
func (s *Scheduler) Counts() (running, waiting int) { return len(s.running), len(s.waiting) }

// decoding reports that everything has run but what was generated last.
func decoding(q *Seq) bool { return q.Known > q.Prompt && q.Known-q.Table.Len <= q.span }

// Done records a step: out[i] belongs to p.Items[i]. Whole pages of prompts go to the prefix tree at once, so that others can use
// them and a cancelled prompt loses nothing.
func (s *Scheduler) Done(p Plan, out []Outcome) {
	s.alloc.FreeDrafts()
	for i := range p.Items {
		it, q := &p.Items[i], p.Items[i].Seq
		s.unpin(q)
		if out[i].Failed {
			s.dropSnaps(it)
			s.leave(q, false)
			continue
		}
		q.Table.Len += it.Tokens + out[i].Kept
		if n := out[i].New; n > 0 {
			q.Known += n
			q.span = n
		}
		s.storeSnaps(it)
		if out[i].End {
			s.leave(q, true)
			continue
		}
		if !it.Decode {
			s.store(q, q.Table.Len-q.Table.Len%s.alloc.Geometry().PageTokens)
		}
		s.alloc.Trim(&q.Table)
	}
	clear(p.Items) // reused; a sequence that left must not stay reachable
	clear(p.Preempted)
	if kv.Invariants {
		if err := s.Check(); err != nil {
			panic(err)
		}
	}
}

// store inserts the first n positions of q into the prefix tree.
func (s *Scheduler) store(q *Seq, n int) {
	if s.prefix != nil && n > q.stored {
		s.prefix.Insert(q.Key, &q.Table, n)
		q.stored = n
	}
}

// leave frees everything a running sequence holds.
func (s *Scheduler) leave(q *Seq, keep bool) {
	i := slices.Index(s.running, q)
	if i < 0 {
		return
	}
	s.running = slices.Delete(s.running, i, i+1)
	if keep && !q.fresh {
		s.store(q, q.Table.Len)
	}
	credit := keep && s.prefix != nil && q.stored > 0
	if credit {
		s.prefix.Credit(q.Key[:q.stored], q.Owner)
	}
	s.unpin(q)
	s.alloc.FreeSlot(q.Slot)
	if q.EndSnap = 0; keep && !q.fresh {
		s.snapEnd(q)
	}
	s.alloc.Release(&q.Table)
	q.Slot, q.fresh, q.stored = kv.NoSlot, false, 0
	if credit {
		s.prefix.TrimIdle()
	}
}

func (s *Scheduler) unpin(q *Seq) {
	if s.prefix != nil {
		s.prefix.Unpin(&q.pin)
	}
}
