package sched

// Sequences are interactive, somebody waits for them, or background. Background ones are admitted after all interactive
// ones that fit, get what prompt tokens these leave of a step, and give up slot and memory first, also to an interactive
// one that waits for either; what they computed stays in the prefix tree. So that they are late but never starve, one is
// promoted now and then: it counts as interactive from then on. So is one whose beginning an interactive sequence waits
// for.

// agingSteps is how many steps the oldest background sequence shares with interactive ones before it is promoted.
const agingSteps = 64

func background(q *Seq) bool { return q.Background && !q.promoted }

// age counts a step in which a background sequence does not decode while there are interactive ones, and promotes the
// oldest where its patience has ended: one every so many steps, however many there are.
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

// prefills counts the prompts that run and would delay q.
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

// Expire tells the time in milliseconds: what has expired leaves the prefix tree. It says whether something did.
func (s *Scheduler) Expire(now int64) bool { return s.prefix != nil && s.prefix.Expire(now) > 0 }
