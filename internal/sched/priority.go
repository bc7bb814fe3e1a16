package sched

// A sequence is interactive, which means that somebody waits for it, or background. Background sequences are admitted after all
// interactive ones that fit and get the prompt tokens that these leave of a step. They are preempted first, also for an
// interactive sequence that waits for a slot or memory; what they computed stays in the prefix tree. Aging keeps them from
// starving: now and then the oldest is promoted and counts as interactive from then on. So is one whose beginning an interactive
// sequence waits for.

// agingSteps is how many steps run beside interactive sequences before the oldest background sequence is promoted.
const agingSteps = 64

func background(q *Seq) bool { return q.Background && !q.promoted }

// age counts the steps in which a background sequence that does not decode yet is behind interactive ones. After agingSteps of
// them it promotes the oldest: one at a time, however many there are.
func (s *Scheduler) age() {
	var oldest *Seq
	interactive := false
	for _, list := range [...][]*Seq{s.running, s.waiting} {
		for _, q := range list {
			switch {
			case !background(q):
				interactive = true
			case !decoding(q) && (oldest == nil || q.ID < oldest.ID):
				oldest = q
			}
		}
	}
	if oldest == nil || !interactive {
		s.aged = 0
		return
	}
	if s.aged++; s.aged > agingSteps {
		oldest.promoted, s.aged = true, 0
	}
}

// prefills counts the running prompts that would delay q.
func (s *Scheduler) prefills(q *Seq) int {
	n := 0
	for _, r := range s.running {
		if !decoding(r) && (background(q) || !background(r)) {
			n++
		}
	}
	return n
}

// victim is the running sequence that is preempted first: the youngest of the background, else the youngest.
func (s *Scheduler) victim() *Seq {
	for i := len(s.running) - 1; i >= 0; i-- {
		if background(s.running[i]) {
			return s.running[i]
		}
	}
	return s.running[len(s.running)-1]
}

// preemptBackground preempts a background sequence, if one runs.
func (s *Scheduler) preemptBackground() bool {
	if len(s.running) == 0 || !background(s.victim()) {
		return false
	}
	s.preempt(s.victim())
	return true
}

// Expire sets the time, in milliseconds, and evicts from the prefix tree what has expired. It says whether something has.
func (s *Scheduler) Expire(now int64) bool { return s.prefix != nil && s.prefix.Expire(now) > 0 }
