package sched

import (
	"slices"

	"hearth/internal/kv"
)

// mostPrefills is how many prompts run at once: more would only make all of them late.
const mostPrefills = 8

// Next plans a step: one token for every sequence that decodes, then prompt tokens, at most Chunk of them or what Pace
// allows beside decodes. Waiting sequences are admitted first. An empty plan means that nothing is to do.
func (s *Scheduler) Next() Plan {
	s.plan.Items, s.plan.Preempted = s.plan.Items[:0], s.plan.Preempted[:0]
	s.order = append(s.order[:0], s.running...)
	for _, q := range s.order {
		if decoding(q) && s.runs(q) {
			s.add(q, 1)
		}
	}
	room := s.cfg.Chunk
	if len(s.plan.Items) > 0 {
		room = s.Pace.Room(room)
	}
	if len(s.plan.Preempted) == 0 {
		s.admitAll(room)
	}
	s.order = s.order[:0]
	for _, q := range s.running {
		if !decoding(q) || q.fresh {
			s.order = append(s.order, q)
		}
	}
	s.divide(room)
	for i, q := range s.order {
		if s.give[i] > 0 && s.runs(q) {
			s.add(q, s.give[i])
		}
	}
	clear(s.order) // a sequence that left must not stay reachable
	if kv.Invariants {
		if err := s.Check(); err != nil {
			panic(err)
		}
	}
	return s.plan
}

// runs: it has not been preempted while this plan was made.
func (s *Scheduler) runs(q *Seq) bool { return q.Slot >= 0 }

// add plans up to limit of the tokens q knows but has not run, unless there is no memory for them.
func (s *Scheduler) add(q *Seq, limit int) {
	n := min(q.Known-q.Table.Len, limit)
	it := Item{Seq: q, Tokens: n, First: q.fresh, Decode: decoding(q)}
	switch end := q.Table.Len + n; {
	case q.Score:
		it.Want = WantAll
	case end == q.Known:
		it.Want = WantLast
	}
	if s.grow(q, q.Table.Len+n) {
		q.fresh = false
		s.plan.Items = append(s.plan.Items, it)
	}
}

// divide shares room among the prompts of s.order, into s.give. The oldest gets half of it, so that long prompts finish
// one after the other. The other half is shared equally, first among clients and then in order of arrival, so that a
// short prompt need not wait for a long one, or for the many of one client. What somebody has no use for goes to the
// next in order of arrival.
func (s *Scheduler) divide(room int) {
	s.give = append(s.give[:0], make([]int, len(s.order))...)
	if len(s.order) == 0 {
		return
	}
	take := func(i, limit int) int {
		q := s.order[i]
		n := max(min(q.Known-q.Table.Len-s.give[i], limit), 0)
		s.give[i] += n
		room -= n
		return n
	}
	rest := s.order[1:]
	clients := 0
	for i, q := range rest {
		if first(rest, i, q.Client) {
			clients++
		}
	}
	if clients > 0 {
		take(0, (room+1)/2)
	} else {
		take(0, room)
	}
	for i, q := range rest {
		if !first(rest, i, q.Client) {
			continue
		}
		quota := (room + clients - 1) / clients
		for j := i; j < len(rest) && quota > 0; j++ {
			if rest[j].Client == q.Client {
				quota -= take(j+1, quota)
			}
		}
		clients--
	}
	for i := range s.order {
		take(i, room)
	}
}

// first: no sequence before i is of that client.
func first(list []*Seq, i int, client uint64) bool {
	return !slices.ContainsFunc(list[:i], func(q *Seq) bool { return q.Client == client })
}
