package sample

// topK keeps the k most likely candidates; among equals at the boundary the lower ids stay.
func (w *Work) topK(k int) {
	w.sel = append(w.sel[:0], w.cands...)
	limit := threshold(w.sel, float64(k), func(cand) float64 { return 1 })
	ties := k // room left for candidates exactly at the limit
	for _, c := range w.cands {
		if c.gap < limit {
			ties--
		}
	}
	kept := w.cands[:0]
	for _, c := range w.cands {
		if c.gap == limit {
			if ties--; ties < 0 {
				continue
			}
		}
		if c.gap <= limit {
			kept = append(kept, c)
		}
	}
	w.cands = kept
}
