package sched

// What the prefix tree lacks may be stored elsewhere. Before a sequence is admitted the caller is asked once, and may
// bring it into the tree (kv.Prefix.Graft) while the sequence keeps its place in the queue without holding anything up.

// ask reports whether q has to wait for what is on its way. It asks again only after q was preempted, or Loaded says so:
// what was brought may be gone again by the time q is admitted, and then it is computed.
func (s *Scheduler) ask(q *Seq, cached int) bool {
	if s.cfg.Ask == nil || s.prefix == nil || q.Score || q.asked {
		return false
	}
	q.asked = true
	q.loading = s.cfg.Ask(q, cached)
	return q.loading
}

// Loaded ends the waiting of a sequence for what Ask announced. again: it is to be asked once more.
func (s *Scheduler) Loaded(q *Seq, again bool) { q.loading, q.asked = false, !again }

// Loading counts the sequences that wait for Loaded. They are among the waiting ones of Counts.
func (s *Scheduler) Loading() int {
	n := 0
	for _, q := range s.waiting {
		if q.loading {
			n++
		}
	}
	return n
}
