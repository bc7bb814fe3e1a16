package sched

// What the prefix tree lacks may be on disk. Before a sequence is admitted the caller is asked once, and may load pages into the
// tree (kv.Prefix.InsertPage). Meanwhile the sequence keeps its place in the queue and does not block others.

// ask reports whether q has to wait for pages that are being loaded. It asks again only after q was preempted or if Loaded says
// so. Loaded pages may be evicted again before q is admitted; then they are computed.
func (s *Scheduler) ask(q *Seq, cached int) bool {
	if s.cfg.Ask == nil || s.prefix == nil || q.Score || q.asked {
		return false
	}
	q.asked = true
	q.loading = s.cfg.Ask(q, cached)
	return q.loading
}

// Loaded ends a sequence's wait for what Ask announced. again: Ask is to be called once more.
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
