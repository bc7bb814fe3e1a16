package sched

import (
	"fmt"
	"slices"

	"hearth/internal/kv"
)

// Check asserts the invariants of Scheduler, of its Alloc and of its prefix tree.
func (s *Scheduler) Check() error {
	var tables []*kv.Table
	slots := make([]kv.SlotID, len(s.running))
	for i, q := range s.running {
		tables, slots[i] = append(tables, &q.Table, q.pin.Held()), q.Slot
		if q.Table.Len > q.Known || q.Known > q.Prompt+q.Max || q.Known != len(q.Key) {
			return fmt.Errorf("check sequence %d: %d run, %d known, a key of %d, prompt %d, max %d",
				q.ID, q.Table.Len, q.Known, len(q.Key), q.Prompt, q.Max)
		}
	}
	for _, q := range s.waiting {
		if q.Slot != kv.NoSlot || q.Table.Pages != nil || q.pin.Held().Pages != nil || q.fresh {
			return fmt.Errorf("check sequence %d: it waits and owns slot %d, pages %v", q.ID, q.Slot, q.Table.Pages)
		}
	}
	for _, list := range [][]*Seq{s.running, s.waiting} {
		if !slices.IsSortedFunc(list, func(a, b *Seq) int { return int(a.ID - b.ID) }) {
			return fmt.Errorf("check queues: out of order")
		}
	}
	for i := range s.plan.Items {
		if q := s.plan.Items[i].Seq; q != nil && !s.alloc.Writable(&q.Table, q.Table.Len, q.Table.Len+s.plan.Items[i].Tokens+s.plan.Items[i].Drafts) {
			return fmt.Errorf("check sequence %d: it would write to pages that others hold", q.ID)
		}
	}
	if s.prefix != nil {
		if err := s.prefix.Check(); err != nil {
			return err
		}
	}
	var snaps []kv.SnapID
	for _, q := range s.running {
		if id := q.pin.Snap(); id != 0 {
			snaps = append(snaps, id)
		}
	}
	for i := range s.plan.Items {
		for _, n := range s.plan.Items[i].Snaps {
			snaps = append(snaps, n.ID)
		}
	}
	if err := s.alloc.CheckSnaps(snaps); err != nil {
		return err
	}
	return s.alloc.Check(tables, slots)
}
