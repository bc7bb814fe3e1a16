package sched

import (
	"math"
	"slices"

	"hearth/internal/kv"
)

// mostPrefills is how many prompts run at once: more would only make all of them late.
const mostPrefills = 8

// Next plans a step: what every sequence that decodes has generated last, then prompt tokens. Chunk and ChunkBudget limit both,
// but each sequence that decodes runs a token. Waiting sequences are admitted first. An empty plan means that there is nothing to
// do.
func (s *Scheduler) Next() Plan {
	s.plan.Items, s.plan.Preempted, s.snaps = s.plan.Items[:0], s.plan.Preempted[:0], s.snaps[:0]
	s.spans, s.blocked = spans{}, nil
	s.age()
	s.order = append(s.order[:0], s.running...)
	for _, q := range s.order {
		if decoding(q) && s.runs(q) {
			s.add(q, 1+s.more(q))
		}
	}
	if len(s.plan.Preempted) == 0 {
		s.admitAll()
	}
	s.order = s.order[:0]
	for _, behind := range [...]bool{false, true} {
		for _, q := range s.running {
			if background(q) == behind && (!decoding(q) || q.fresh) {
				s.order = append(s.order, q)
			}
		}
	}
	s.draft()
	s.give = append(s.give[:0], make([]int, len(s.order))...)
	s.share()
	for i, q := range s.order {
		if s.give[i] > 0 && s.runs(q) {
			s.add(q, s.give[i])
		}
	}
	clear(s.order) // a sequence that left must not stay reachable
	for i := range s.plan.Items {
		s.planSnaps(&s.plan.Items[i])
	}
	if kv.Invariants {
		if err := s.Check(); err != nil {
			panic(err)
		}
	}
	return s.plan
}

// share sets s.give, how many tokens each prompt of s.order runs. Background prompts get what interactive ones leave.
func (s *Scheduler) share() {
	if len(s.order) == 0 {
		return
	}
	q := s.order[0]
	chunk := s.chunk()
	d := division{tokens: chunk}
	d.budget, d.price = s.ChunkBudget.limit(chunk, len(s.plan.Items) > 0,
		q.Table.Len-q.Match.Tokens, q.Known-q.Table.Len, q.Table.Len, len(s.order) == 1)
	if s.spans.tokens > 0 {
		d.tokens = max(d.tokens-s.spans.tokens, 0)
		d.budget = max(d.budget-s.spans.spent, d.price.of(leastPrompt, q.Table.Len))
	}
	front := 0
	for front < len(s.order) && !background(s.order[front]) {
		front++
	}
	for _, part := range [...][2]int{{0, front}, {front, len(s.order)}} {
		if d.list, d.give = s.order[part[0]:part[1]], s.give[part[0]:part[1]]; len(d.list) > 0 {
			d.divide()
		}
	}
}

// chunk is how many prompt tokens this step may run: Config.Chunk, or half of it as often as it takes until their arrays and
// those of the decodes have memory.
func (s *Scheduler) chunk() int {
	if s.cfg.Room == nil {
		return s.cfg.Chunk
	}
	rows, outs, depth, prompt, scored := 0, 0, 0, 0, false
	for i := range s.plan.Items {
		it := &s.plan.Items[i]
		rows, outs, depth = rows+it.Tokens+it.Drafts, outs+it.Rows+it.Drafts, max(depth, it.Seq.Table.Len)
	}
	for _, q := range s.order {
		prompt, depth, scored = prompt+q.Known-q.Table.Len, max(depth, q.Table.Len), scored || q.Score
		outs++
	}
	n := s.cfg.Chunk
	for n > leastPrompt {
		run, all := max(min(n-s.spans.tokens, prompt), 0), outs
		if scored {
			all += run
		}
		if s.cfg.Room(rows+run, depth, all) {
			break
		}
		n /= 2
	}
	return n
}

// spans is what the sequences that decode run of a step's prompt budget: of several tokens all but the first.
type spans struct {
	tokens int
	spent  float64 // in the unit of price
}

// more is how many tokens q runs in this step besides the first of those it generated last. They cost as much as those of a
// prompt, and so keep others waiting as long. Prompts keep at least half a chunk.
func (s *Scheduler) more(q *Seq) int {
	n := q.Known - q.Table.Len - 1
	if n == 0 {
		return 0
	}
	behind := q.Table.Len + 1
	budget, price := s.ChunkBudget.limit(s.cfg.Chunk, len(s.running) > 1, behind, n, behind, false)
	n = min(n, int(price.fit(max(budget-s.spans.spent, 0), behind)), s.cfg.Chunk/2-s.spans.tokens)
	s.spans.tokens += n
	s.spans.spent += price.of(n, behind)
	return n
}

// runs reports that q was not preempted while this plan was made.
func (s *Scheduler) runs(q *Seq) bool { return q.Slot >= 0 }

// whole is end, or where a step ends instead that must not end there: before a part that is to run as a whole, or behind one that
// begins the step.
func (q *Seq) whole(end int) int {
	for _, w := range q.Whole {
		if w[0] < end && end < w[1] {
			if w[0] > q.Table.Len {
				return w[0]
			}
			return w[1]
		}
	}
	return end
}

// add plans up to limit of the tokens q knows but has not run, or as many as Seq.Whole asks for, unless there is no memory for
// them.
func (s *Scheduler) add(q *Seq, limit int) {
	end := q.whole(q.Table.Len + min(q.Known-q.Table.Len, limit))
	if s.cfg.Shorten != nil && !decoding(q) {
		beside := len(s.plan.Items) > 0 && s.plan.Items[0].Decode
		if end = s.cfg.Shorten(q, end, beside); end <= q.Table.Len {
			return
		}
	}
	n := end - q.Table.Len
	it := Item{Seq: q, Tokens: n, First: q.fresh, Decode: decoding(q)}
	if it.Rows = n; !q.Score {
		it.Rows = min(n, max(end-(q.Known-1-q.Unscored), 0))
	}
	if s.grow(q, end) {
		q.fresh = false
		s.plan.Items = append(s.plan.Items, it)
	}
}

// division shares a step's budget among the prompts of a list. The budget is in the unit of price.
type division struct {
	price  price
	budget float64
	tokens int // prompt tokens left of Config.Chunk
	list   []*Seq
	give   []int // tokens
}

// shortPrompts is how many steps' budgets the prompts behind the oldest may need and still count as short.
const shortPrompts = 4

// divide shares the budget among the prompts of the list. The oldest gets half, so that long prompts finish one after the other,
// or a quarter if the others are short and so end within a few steps. The rest is shared equally among clients, and each client's
// share goes to those of its prompts with the least left to run. So a short prompt need not wait for a long one, nor for the many
// of another client. What somebody cannot use goes to the next in order of arrival.
func (d *division) divide() {
	rest := d.list[1:]
	clients, others := 0, 0.0
	for i, q := range rest {
		others += d.cost(i + 1)
		if first(rest, i, q.Client) {
			clients++
		}
	}
	switch {
	case clients == 0:
		d.take(0, d.budget)
	case others < d.cost(0) && others <= shortPrompts*d.budget:
		d.take(0, d.budget/4)
	default:
		d.take(0, d.budget/2)
	}
	for i, q := range rest {
		if !first(rest, i, q.Client) {
			continue
		}
		for quota := d.budget / float64(clients); quota > 0; {
			least := 0
			for j := i + 1; j < len(d.list); j++ {
				if d.list[j].Client == q.Client && d.lacks(j) > 0 && (least == 0 || d.lacks(j) < d.lacks(least)) {
					least = j
				}
			}
			before := d.budget
			if least == 0 || d.take(least, quota) == 0 {
				break
			}
			quota -= before - d.budget
		}
		clients--
	}
	for i := range d.list {
		d.take(i, d.budget)
	}
}

// lacks is how many tokens of prompt i are not given yet.
func (d *division) lacks(i int) int { return max(d.list[i].Known-d.list[i].Table.Len-d.give[i], 0) }

// cost is the price of what lacks counts.
func (d *division) cost(i int) float64 {
	return d.price.of(d.lacks(i), d.list[i].Table.Len+d.give[i])
}

// take gives tokens to prompt i: as many as quota pays for, rounded up, but no more than the whole budget pays for.
func (d *division) take(i int, quota float64) int {
	const whole = 1e-9 // of a token: rounding errors
	behind := d.list[i].Table.Len + d.give[i]
	n := min(math.Ceil(d.price.fit(quota, behind)*(1-whole)), math.Floor(d.price.fit(d.budget, behind)*(1+whole)))
	take := min(int(n), d.lacks(i), d.tokens)
	d.give[i] += take
	d.tokens -= take
	d.budget = max(d.budget-d.price.of(take, behind), 0)
	return take
}

// first reports that no sequence before i is of that client.
func first(list []*Seq, i int, client uint64) bool {
	return !slices.ContainsFunc(list[:i], func(q *Seq) bool { return q.Client == client })
}
