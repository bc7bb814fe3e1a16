package sched

import "math"

const (
	leastPrompt = 16   // prompt tokens that a step runs whatever they take
	coldPrompt  = 64   // and while nothing has been measured
	aim         = 0.85 // of Target is planned for: equal plans take different times, on shared machines by more than the rest
	lastAlone   = 3    // times Longest: a prompt's rest that takes no more runs in one step
	firstAlone  = 4    // the first step of a prompt that takes longer than Longest takes so much less than that
)

// ChunkBudget says how many prompt tokens a step may run so that it does not keep others waiting. It learns from the times of
// past steps, which the engine measures. In its model a step takes what its decodes take, and for every prompt token a time that
// grows with the token's depth, which is its position. All times are in microseconds.
type ChunkBudget struct {
	Target  int64 // of a step in which sequences decode; 0: no limit
	Longest int64 // of other steps, which delay only prompts that arrive or are cancelled meanwhile; 0: no limit
	decode  float64
	prompt  line    // of a prompt token's time over its depth
	late    float64 // factor on prompt: recent tokens took so much longer than it says
}

// load is what a step ran, as far as its time depends on it.
type load struct {
	decodes int
	prompt  int     // tokens
	depth   float64 // mean of theirs
}

// Observe learns from a step that took so long. Its items have not been booked by Done.
func (b *ChunkBudget) Observe(items []Item, took int64) {
	var l load
	drafts, prompts := false, false
	for i := range items {
		it := &items[i]
		n := it.Tokens
		if it.Decode {
			l.decodes++
			n += it.Drafts - 1 // what comes with its first token costs like a prompt's
			drafts = drafts || it.Drafts > 0
		}
		prompts = prompts || !it.Decode
		l.prompt += n
		l.depth += float64(n) * (float64(it.Seq.Table.Len) + float64(n)/2)
	}
	if drafts && !prompts {
		return // it shows neither what decoding takes nor what a token of many does
	}
	l.depth /= float64(max(l.prompt, 1))
	b.observe(l, float64(max(took, 1)))
}

// observe learns from a load. Steps of a few prompt tokens, the last of a prompt or those behind a long match, are left out: they
// do not show what a token among many takes.
func (b *ChunkBudget) observe(l load, took float64) {
	switch {
	case l.prompt >= leastPrompt:
		n := float64(l.prompt)
		each := max(took-b.decode, took/8) / n
		expected := b.late * b.prompt.at(l.depth)
		b.prompt.learn(l.depth, each, took/n/8)
		learn(&expected, each)
		b.late = expected / b.prompt.at(l.depth)
	case l.prompt == 0 && l.decodes > 0:
		learn(&b.decode, took)
	}
}

// learn follows a rise at once and a fall slowly, since a late step misses the target. But mean never stays above twice the last
// value: one step that had to read the weights from disk must not make many others small.
func learn(mean *float64, x float64) {
	if x > *mean {
		*mean = x
		return
	}
	*mean = min(*mean+(x-*mean)/4, 2*x)
}

// line is y = base + slope x, both positive, learned from noisy pairs by a Kalman filter whose two numbers drift. While all pairs
// have about the same x, what they do not determine stays as it was learned before.
type line struct {
	base, slope float64
	cov         [3]float64 // of (base, base), (base, slope), (slope, slope)
}

const (
	leastDouble = 512     // depth at which a token takes twice as long as at none: hardly less than this,
	guessDouble = 8 << 10 // this until measured,
	flatDouble  = 1 << 20 // and this at most
	drift       = 0.02    // of base and slope, from one pair to the next
)

func (l *line) at(x float64) float64 { return l.base + l.slope*x }

// learn takes a pair whose y is off by about noise. A pair that is far off counts as less far.
func (l *line) learn(x, y, noise float64) {
	if l.base == 0 {
		l.base = y / (1 + x/guessDouble)
		l.slope = l.base / guessDouble
		l.cov = [3]float64{l.base * l.base / 4, 0, math.Pow(l.base/leastDouble, 2)}
		return
	}
	was := l.at(x)
	off := min(max(y, was/2), 2*was) - was
	l.cov[0] += math.Pow(drift*l.base, 2)
	l.cov[2] += math.Pow(drift*l.slope, 2)
	g0, g1 := l.cov[0]+l.cov[1]*x, l.cov[1]+l.cov[2]*x
	v := g0 + g1*x + noise*noise
	l.base += g0 / v * off
	l.slope += g1 / v * off
	l.cov[0] -= g0 * g0 / v
	l.cov[1] -= g0 * g1 / v
	l.cov[2] -= g1 * g1 / v
	l.base = max(l.base, was/64)
	l.slope = max(l.slope, l.base/flatDouble)
}

// price is what prompt tokens cost of a step, in microseconds, or in tokens where no time limits the step.
type price struct {
	token, depth float64 // a token takes token + depth times the tokens before it
	least        float64 // but at least this, so that a step has no more tokens than a chunk
}

// of is what so many tokens cost that stand behind others.
func (p *price) of(tokens, behind int) float64 {
	n := float64(tokens)
	return n * max(p.token+p.depth*(float64(behind)+n/2), p.least)
}

// fit is how many tokens behind others there is room for, with a fraction.
func (p *price) fit(room float64, behind int) float64 {
	n := room / p.least
	first := p.token + p.depth*float64(behind)
	if first+p.depth*n/2 <= p.least {
		return n
	}
	return 2 * room / (first + math.Sqrt(first*first+2*p.depth*room)) // first n + depth/2 n^2 = room
}

// limit is what a step may spend on prompt tokens, at most chunk of them, and what they cost. beside: sequences decode in the
// same step. The oldest prompt has rest tokens left, behind so many others, of which it has run ran.
//
// Without decodes, steps of a long prompt begin short and double: who comes just after it has begun would wait for all of a whole
// one. If most of it was in the prefix tree they do not, since every step reads all keys again.
//
// If that prompt is alone and its rest takes no more than lastAlone times Longest, it gets one step: several would each read all
// keys, and the last ones would be tiny. A prompt that arrives meanwhile is delayed once by so much.
func (b *ChunkBudget) limit(chunk int, beside bool, ran, rest, behind int, alone bool) (float64, price) {
	limit := float64(b.Longest)
	if beside {
		limit = aim * float64(b.Target)
	}
	switch {
	case limit == 0:
		return float64(chunk), price{least: 1}
	case b.prompt.base == 0:
		return float64(min(coldPrompt, chunk)), price{least: 1}
	}
	cost := price{token: b.late * b.prompt.base, depth: b.late * b.prompt.slope}
	room := limit
	all, spent, new := cost.of(rest, behind), cost.of(ran, behind-ran), behind-ran < ran+rest
	switch {
	case beside:
		room -= b.decode
	case alone && rest <= chunk && all <= lastAlone*limit && (ran > 0 || all <= limit || !new):
		room = max(room, all)
	case spent+all > limit && new:
		room = min(room, limit/firstAlone+spent)
	}
	room = max(room, cost.of(leastPrompt, behind))
	cost.least = room / float64(chunk)
	return room, cost
}
