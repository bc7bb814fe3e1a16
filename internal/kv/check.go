package kv

import "fmt"

// Check asserts the invariants of Alloc, given every table and slot its callers hold.
func (a *Alloc) Check(tables []*Table, slots []SlotID) error {
	held := int64(len(slots)) * a.geo.FixedBytes
	for g := range a.pages {
		var owned []int32
		for _, t := range tables {
			if g >= len(t.Pages) {
				continue
			}
			for _, p := range t.Pages[g] {
				if p != 0 {
					owned = append(owned, int32(p))
				}
			}
		}
		if err := a.pages[g].check(owned); err != nil {
			return fmt.Errorf("check pages of group %d: %w", g, err)
		}
		held += int64(len(owned)) * a.geo.Groups[g].PageBytes
	}
	owned := make([]int32, len(slots))
	for i, s := range slots {
		owned[i] = int32(s)
	}
	if err := a.slots.check(owned); err != nil {
		return fmt.Errorf("check slots: %w", err)
	}
	if held != a.inUse {
		return fmt.Errorf("check bytes: %d counted, %d held by pages and slots", a.inUse, held)
	}
	if a.inUse > a.lim.Bytes {
		return fmt.Errorf("check bytes: %d in use, the budget is %d", a.inUse, a.lim.Bytes)
	}
	return nil
}
