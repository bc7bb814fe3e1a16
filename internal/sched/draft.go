package sched

// Drafts are tokens that may come next, proposed behind the one that a sequence generated last. The step runs them too, and as
// many as turn out to be right are kept. They take no page that anybody else needs, and no sequence waits for them: where memory
// is short there are none. What recurrent state needs for them (kv.Geometry.DraftBytes) is taken for the step, from free memory
// and from the prompt cache.

// draft asks for drafts and finds them memory. s.order has the prompts that run beside them.
func (s *Scheduler) draft() {
	if s.cfg.Draft == nil || len(s.plan.Items) == 0 {
		return
	}
	most := 0
	for i := range s.plan.Items {
		it := &s.plan.Items[i]
		it.Drafts = s.mostDrafts(it)
		most += it.Drafts
	}
	if most == 0 {
		return
	}
	s.cfg.Draft(s.plan.Items, len(s.order) > 0)
	rows, outs, depth, left, drafts := 0, 0, 0, s.cfg.Chunk/2-s.spans.tokens, 0
	for i := range s.plan.Items {
		it := &s.plan.Items[i]
		if it.Drafts = min(it.Drafts, left); it.Drafts > 0 && !s.takeDraft(it) {
			it.Drafts = 0
		}
		left, drafts = left-it.Drafts, drafts+it.Drafts
		rows, outs, depth = rows+it.Tokens+it.Drafts, outs+it.Rows+it.Drafts, max(depth, it.Seq.Table.Len)
	}
	if s.cfg.Room != nil && drafts > 0 && !s.cfg.Room(rows, depth, outs) {
		s.dropDrafts()
		return
	}
	s.spans.tokens += drafts
}

// takeDraft takes the memory of an item's drafts, or reports that it is short.
func (s *Scheduler) takeDraft(it *Item) bool {
	if !s.alloc.Grow(&it.Seq.Table, it.Seq.Known+it.Drafts) {
		return false
	}
	switch {
	case s.alloc.Geometry().DraftBytes == 0:
		return true
	case s.prefix != nil:
		return s.prefix.TakeDraft()
	}
	return s.alloc.TakeDraft()
}

// dropDrafts takes the drafts out of the plan, and reports whether that freed anything.
func (s *Scheduler) dropDrafts() bool {
	for i := range s.plan.Items {
		s.plan.Items[i].Drafts = 0
	}
	return s.alloc.FreeDrafts()
}

// mostDrafts is how many drafts an item may have. One that leaves some of its tokens to later steps has none, nor do those that
// begin or lack logprobs of what they have. None lies behind the last token that a sequence may generate, or behind a snapshot,
// which a step must end at.
func (s *Scheduler) mostDrafts(it *Item) int {
	q := it.Seq
	if !it.Decode || it.First || it.Rows != 1 || q.Known != q.Table.Len+it.Tokens || q.Unscored > 0 || q.Score {
		return 0
	}
	n := q.Prompt + q.Max - q.Known - 1
	if geo := s.alloc.Geometry(); s.prefix != nil && !geo.Sliceable() {
		for to := q.Table.Len - q.Table.Len%geo.PageTokens + geo.PageTokens; to <= q.Known+n && to <= q.Known+geo.PageTokens; to += geo.PageTokens {
			if s.wantsSnap(q, to) {
				n = to - 1 - q.Known
			}
		}
	}
	return max(n, 0)
}
