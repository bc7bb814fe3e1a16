package sched

import (
	"slices"

	"hearth/internal/kv"
)

// mostPrefills is how many prompts run at once: more would only make all of them late.
const mostPrefills = 8

// Next plans a step: one token for every sequence that decodes, then prompt tokens, at most Chunk of them or what Pace
// allows. Waiting sequences are admitted first. An empty plan means that nothing is to do.
func (s *Scheduler) Next() Plan {
	s.plan.Items, s.plan.Preempted, s.snaps = s.plan.Items[:0], s.plan.Preempted[:0], s.snaps[:0]
	s.age()
	s.order = append(s.order[:0], s.running...)
	for _, q := range s.order {
		if decoding(q) && s.runs(q) {
			s.add(q, 1)
		}
	}
	room := s.Pace.Room(s.cfg.Chunk, len(s.plan.Items) > 0)
	if len(s.plan.Preempted) == 0 {
		s.admitAll(room)
	}
	s.order = s.order[:0]
	for _, behind := range [...]bool{false, true} {
		for _, q := range s.running {
			if background(q) == behind && (!decoding(q) || q.fresh) {
				s.order = append(s.order, q)
			}
		}
	}
	front := 0
	for front < len(s.order) && !background(s.order[front]) {
		front++
	}
	s.give = append(s.give[:0], make([]int, len(s.order))...)
	room = divide(s.order[:front], s.give[:front], room)
	divide(s.order[front:], s.give[front:], room)
	for i, q := range s.order {
		if s.give[i] > 0 && s.runs(q) {
			s.add(q, s.give[i])
		}
	}
	clear(s.order) // a sequence that left must not stay reachable
	for i := range s.plan.Items {
		s.cut(&s.plan.Items[i])
	}
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

// shortPrompts is how many steps' worth of prompt tokens may wait behind the oldest prompt for them to count as short.
const shortPrompts = 4

// divide shares room among the prompts of list, into give, and returns what is left of it. The oldest gets half, so that
// long prompts finish one after the other, or a quarter where the others are short: they end in a few steps then.
// The rest is shared equally among clients, and what a client gets goes to those of its prompts that have least to run. So a short prompt need not wait for a long one, or for the many of one
// client. What somebody has no use for goes to the next in order of arrival.
func divide(list []*Seq, give []int, room int) int {
	if len(list) == 0 {
		return room
	}
	lacks := func(i int) int { return max(list[i].Known-list[i].Table.Len-give[i], 0) }
	take := func(i, limit int) int {
		n := min(lacks(i), limit)
		give[i] += n
		room -= n
		return n
	}
	rest := list[1:]
	clients, others := 0, 0
	for i, q := range rest {
		others += lacks(i + 1)
		if first(rest, i, q.Client) {
			clients++
		}
	}
	switch {
	case clients == 0:
		take(0, room)
	case others < lacks(0) && others <= shortPrompts*room:
		take(0, (room+3)/4)
	default:
		take(0, (room+1)/2)
	}
	for i, q := range rest {
		if !first(rest, i, q.Client) {
			continue
		}
		for quota := (room + clients - 1) / clients; quota > 0; {
			least := 0
			for j := i + 1; j < len(list); j++ {
				if list[j].Client == q.Client && lacks(j) > 0 && (least == 0 || lacks(j) < lacks(least)) {
					least = j
				}
			}
			if least == 0 {
				break
			}
			quota -= take(least, quota)
		}
		clients--
	}
	for i := range list {
		take(i, room)
	}
	return room
}

// first: no sequence before i is of that client.
func first(list []*Seq, i int, client uint64) bool {
	return !slices.ContainsFunc(list[:i], func(q *Seq) bool { return q.Client == client })
}
