package sched

// leastPrompt is how many prompt tokens a step runs whatever it takes, and coldPrompt how many while nothing has been
// measured.
const (
	leastPrompt = 16
	coldPrompt  = 64
)

// Pace says how many prompt tokens fit into a step that must not keep sequences that decode waiting. It learns from the
// time of past steps, which the engine measures: a step takes what its decodes take, and then a time per prompt token,
// which grows slowly with the depth of the prompt. All times are in microseconds.
type Pace struct {
	Target int64 // of a step; 0: no limit
	decode float64
	token  float64
}

// Observe learns from a step with so many sequences that decode and prompt tokens.
func (p *Pace) Observe(decodes, prompt int, took int64) {
	switch t := float64(took); {
	case prompt > 0:
		learn(&p.token, max(t-p.decode, t/8)/float64(prompt))
	case decodes > 0:
		learn(&p.decode, t)
	}
}

// learn follows a rise at once and a fall slowly: late steps are what the target is about.
func learn(mean *float64, x float64) {
	if x > *mean {
		*mean = x
		return
	}
	*mean += (x - *mean) / 4
}

// Room is how many prompt tokens to run beside decodes, at most chunk.
func (p *Pace) Room(chunk int) int {
	switch {
	case p.Target == 0:
		return chunk
	case p.token == 0:
		return min(coldPrompt, chunk)
	}
	room := (float64(p.Target) - p.decode) / p.token
	return min(max(int(min(room, float64(chunk))), leastPrompt), chunk)
}
