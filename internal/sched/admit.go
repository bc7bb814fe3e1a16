package sched

import (
	"slices"

	"hearth/internal/kv"
)

// margin is how many tokens of each running answer have memory reserved when another sequence is admitted.
const margin = 256

// admitAll admits waiting sequences as long as each can have a part of the step. Interactive ones come before background ones;
// among equals the client with fewer running sequences comes first, then the order of arrival. Nobody overtakes a sequence that
// does not fit yet, unless that is a background one.
func (s *Scheduler) admitAll() {
	for len(s.waiting) > 0 {
		q, m := s.pick()
		if q == nil || s.prefills(q) >= min(mostPrefills, s.cfg.Chunk) {
			return
		}
		for !s.admit(q, m) {
			if background(q) || !s.preemptBackground() {
				s.blocked = q
				return
			}
			m = s.match(q)
		}
		s.waiting = slices.DeleteFunc(s.waiting, func(w *Seq) bool { return w == q })
		s.running = insert(s.running, q)
	}
}

// pick chooses whom to admit next, and finds what the prefix tree has for it. Nil: nobody for now.
func (s *Scheduler) pick() (*Seq, kv.Match) {
	var tried [mostPrefills]*Seq // each costs a walk through its prompt
	for i := range tried {
		var best *Seq
		least := 0
		for _, q := range s.waiting {
			if q.loading || slices.Contains(tried[:i], q) || background(q) && len(s.plan.Preempted) > 0 {
				continue
			}
			n := s.ofClient(q.Client)
			if best == nil || background(best) && !background(q) || background(best) == background(q) && n < least {
				best, least = q, n
			}
		}
		if best == nil {
			break
		}
		m := s.match(best)
		ahead := s.ahead(best, m.Tokens)
		if ahead == nil {
			if s.ask(best, m.Tokens) {
				continue
			}
			return best, m
		}
		ahead.promoted = ahead.promoted || !background(best) // an interactive sequence waits for it
		tried[i] = best
	}
	return nil, kv.Match{}
}

func (s *Scheduler) ofClient(c uint64) int {
	n := 0
	for _, q := range s.running {
		if q.Client == c {
			n++
		}
	}
	return n
}

// match looks q up in the prefix tree, up to the first row that is wanted. A scored prompt, of which all are, takes only what it
// has run itself, before it was preempted.
func (s *Scheduler) match(q *Seq) kv.Match {
	if s.prefix == nil {
		return kv.Match{}
	}
	key := q.Key[:q.Known-q.Unscored]
	if q.Score {
		key = key[:min(q.ran+1, len(key))]
	}
	return s.prefix.Match(key)
}

// ahead is a running sequence that is about to compute at least a page of q's prompt that the prefix tree lacks. q waits for it,
// so that several answers to one prompt, or agents that start alike, prefill what they share once.
func (s *Scheduler) ahead(q *Seq, cached int) *Seq {
	if s.prefix == nil || q.Score {
		return nil
	}
	page := s.alloc.Geometry().PageTokens
	i := slices.IndexFunc(s.running, func(r *Seq) bool {
		if decoding(r) {
			return false
		}
		n := kv.Common(q.Key[:q.Known-q.Unscored-1], r.Key[:r.Known])
		n -= n % page
		return n >= cached+page && r.Table.Len < n
	})
	if i < 0 {
		return nil
	}
	return s.running[i]
}

// admit starts q at m, or reports that it has to wait.
//
// Memory is reserved first. What is free or can be evicted must cover what q and all running sequences still need: pages for all
// their known tokens and for up to margin generated ones (in groups with a window, for no more than window and step cover), and
// the fixed state of q. Pages that q shares cost nothing. So an admitted prompt always gets its memory. An answer may outgrow its
// margin, and then the youngest sequence is preempted (grow). This assumes that pages are the storage: Geometry.SlotToken is 0.
func (s *Scheduler) admit(q *Seq, m kv.Match) bool {
	slot, ok := s.alloc.Slot()
	if fixed := s.alloc.Geometry().FixedBytes; !ok && fixed > 0 && s.prefix != nil && s.prefix.Evict(fixed) > 0 {
		slot, ok = s.alloc.Slot()
		m = s.match(q)
	}
	if s.full = !ok; !ok {
		return false
	}
	var others int64
	for _, r := range s.running {
		others += s.lacks(r)
	}
	for {
		s.alloc.Share(&q.Table, &m)
		need := others + s.lacks(q)
		for g, page := range m.Tail {
			if page != 0 { // stays until it has been copied
				need += s.alloc.Geometry().Groups[g].PageBytes
			}
		}
		if m.Snap != 0 { // stays until it has been copied to the slot
			need += s.alloc.Geometry().SnapBytes
		}
		alone := len(s.running) == 0 && m.Tail == nil && m.Snap == 0 && s.alloc.Final()
		if s.alloc.Has(need) || s.alloc.Has(need-s.alloc.Idle()) || alone {
			s.start(q, slot, m)
			return true
		}
		s.alloc.Release(&q.Table)
		if m.Tail == nil && m.Snap == 0 {
			break
		}
		end := m.Tokens // of an earlier snapshot's match
		if m.Snap == 0 {
			end += 1 - m.Tokens%s.alloc.Geometry().PageTokens
		}
		whole := s.prefix.Match(q.Key[:end]) // no room for the copy
		whole.Kind, whole.Longer = m.Kind, m.Longer
		m = whole
	}
	s.alloc.FreeSlot(slot)
	return false
}

func (s *Scheduler) start(q *Seq, slot kv.SlotID, m kv.Match) {
	q.Slot, q.Match, q.fresh = slot, m, true
	q.stored = m.Tokens - m.Tokens%s.alloc.Geometry().PageTokens
	if s.prefix != nil {
		q.pin = s.prefix.Pin(&q.Match)
	}
	if !q.started {
		q.started, q.Cached = true, m.Tokens
		if s.prefix != nil {
			q.Added = s.alloc.Geometry().Added(q.Prompt, m.Tokens, m.Longer)
			if m.Kind == kv.LCP || m.Kind == kv.Miss {
				q.Own, q.Instead = s.prefix.Owns(q.Key[:q.Prompt], q.Owner.Party)
			}
		}
	}
}

// lacks is the bytes of pages that q needs beyond those it holds, its margin included.
func (s *Scheduler) lacks(q *Seq) int64 {
	geo, span := s.alloc.Geometry(), s.alloc.Limits().Span
	tokens := min(q.Known+margin, q.Prompt+q.Max)
	var need int64
	for g, grp := range geo.Groups {
		var pages []kv.PageID
		if g < len(q.Table.Pages) {
			pages = q.Table.Pages[g]
		}
		held := len(pages)
		if grp.Window > 0 {
			for held = 0; held < len(pages) && pages[len(pages)-1-held] != 0; held++ {
			}
		}
		need += int64(max(geo.Pages(g, tokens, span)-held, 0)) * grp.PageBytes
	}
	return need
}

// grow makes q's table cover so many tokens. Where memory is short it evicts, then gives up the step's drafts, then preempts the
// youngest sequence, of the background if there is one. False: that is q itself.
func (s *Scheduler) grow(q *Seq, tokens int) bool {
	for !s.alloc.Grow(&q.Table, tokens) {
		if s.prefix != nil && s.prefix.Evict(s.alloc.Short(&q.Table, tokens)) > 0 {
			continue
		}
		if s.dropDrafts() {
			continue
		}
		youngest := s.victim()
		if youngest == q && len(s.running) == 1 {
			if s.prefix == nil || s.prefix.Bytes() == 0 {
				if !s.alloc.Final() { // others of this machine have it
					s.preempt(q)
					return false
				}
				panic("sched: a sequence that fits the context does not fit the budget")
			}
			s.prefix.Clear() // all that is left are pages that Evict cannot free
			q.stored = 0
			continue
		}
		s.preempt(youngest)
		if youngest == q {
			return false
		}
	}
	return true
}

// preempt sends a running sequence back to the queue. What it computed stays in the prefix tree, as long as memory
// allows.
func (s *Scheduler) preempt(q *Seq) {
	s.plan.Items = slices.DeleteFunc(s.plan.Items, func(it Item) bool { return it.Seq == q })
	s.plan.Preempted = append(s.plan.Preempted, Preemption{Seq: q, Slot: q.Slot})
	q.ran = max(q.ran, q.Table.Len)
	q.asked = false
	s.leave(q, true)
	s.waiting = insert(s.waiting, q)
}
