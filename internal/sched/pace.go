package sched

// leastPrompt is how many prompt tokens a step runs whatever it takes, and coldPrompt how many while nothing has been
// measured.
const (
	leastPrompt = 16
	coldPrompt  = 64
)

// Pace says how many prompt tokens fit into a step that must not keep others waiting. It learns from the
// time of past steps, which the engine measures: a step takes what its decodes take, and then a time per prompt token,
// which grows slowly with the depth of the prompt. All times are in microseconds.
type Pace struct {
	Target  int64 // of a step in which sequences decode; 0: no limit
	Longest int64 // of other steps, which delay nobody but those who come or leave meanwhile; 0: no limit
	decode  float64
	token   float64
}

// Observe learns from a step with so many sequences that decode and prompt tokens. What a few prompt tokens take, the last
// ones of a prompt or those behind a long match, says nothing of what one among many takes.
func (p *Pace) Observe(decodes, prompt int, took int64) {
	switch t := float64(took); {
	case prompt >= leastPrompt:
		learn(&p.token, max(t-p.decode, t/8)/float64(prompt))
	case prompt == 0 && decodes > 0:
		learn(&p.decode, t)
	}
}

// learn follows a rise at once and a fall slowly, for late steps are what the target is about, but not below twice what was
// seen last: one step that had to read the weights from disk must not make many others small.
func learn(mean *float64, x float64) {
	if x > *mean {
		*mean = x
		return
	}
	*mean = min(*mean+(x-*mean)/4, 2*x)
}

// Room is how many prompt tokens to run, at most chunk, beside sequences that decode or without any.
func (p *Pace) Room(chunk int, beside bool) int {
	limit, rest := p.Longest, 0.0
	if beside {
		limit, rest = p.Target, p.decode
	}
	switch {
	case limit == 0:
		return chunk
	case p.token == 0:
		return min(coldPrompt, chunk)
	}
	room := (float64(limit) - rest) / p.token
	return min(max(int(min(room, float64(chunk))), leastPrompt), chunk)
}
