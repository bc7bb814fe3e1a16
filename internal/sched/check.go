package sched

import (
	"fmt"

	"hearth/internal/kv"
)

// Check asserts the invariants of Scheduler and of its Alloc.
func (s *Scheduler) Check() error {
	var reserved int64
	tables := make([]*kv.Table, len(s.running))
	slots := make([]kv.SlotID, len(s.running))
	for i, q := range s.running {
		reserved += q.need
		tables[i], slots[i] = &q.Table, q.Slot
		if q.Table.Len > q.Known || q.Known > q.Prompt+q.Max {
			return fmt.Errorf("check sequence %d: %d run, %d known, prompt %d, max %d", q.ID, q.Table.Len, q.Known, q.Prompt, q.Max)
		}
	}
	for _, q := range s.waiting {
		if q.Slot != kv.NoSlot || q.Table.Pages != nil {
			return fmt.Errorf("check sequence %d: it waits and owns slot %d, pages %v", q.ID, q.Slot, q.Table.Pages)
		}
	}
	if reserved != s.reserved || reserved > s.alloc.Limits().Bytes {
		return fmt.Errorf("check reservations: %d booked, %d held, budget %d", s.reserved, reserved, s.alloc.Limits().Bytes)
	}
	return s.alloc.Check(tables, slots)
}
