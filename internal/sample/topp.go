package sample

// topP is the largest gap kept when tokens go in order of likelihood until the mass reaches target: a token stays if
// the mass of those strictly above it is less than target. Ties stay together.
func (w *Work) topP(target float64) float32 {
	w.sel = append(w.sel[:0], w.cands...)
	return threshold(w.sel, target, func(c cand) float64 { return c.mass })
}

// threshold finds the largest gap with less than target weight strictly below it; all gaps if the weight never
// reaches target. It reorders s: a quickselect over weights, so the expected work is linear.
func threshold(s []cand, target float64, weight func(cand) float64) float32 {
	last := float32(0)
	for len(s) > 0 && target > 0 {
		pivot := median(s[0].gap, s[len(s)/2].gap, s[len(s)-1].gap)
		lo, hi := partition(s, pivot)
		var below, equal float64
		for _, c := range s[:lo] {
			below += weight(c)
		}
		if below >= target {
			s = s[:lo]
			continue
		}
		for _, c := range s[lo:hi] {
			equal += weight(c)
		}
		last = pivot
		target -= below + equal
		s = s[hi:]
	}
	return last
}

// partition orders s as less than, equal to and greater than pivot: [0,lo), [lo,hi), [hi,len).
func partition(s []cand, pivot float32) (lo, hi int) {
	hi = len(s)
	for i := 0; i < hi; {
		switch c := s[i]; {
		case c.gap < pivot:
			s[i], s[lo] = s[lo], c
			lo++
			i++
		case c.gap > pivot:
			hi--
			s[i], s[hi] = s[hi], c
		default:
			i++
		}
	}
	return lo, hi
}

func median(a, b, c float32) float32 { return max(min(a, b), min(max(a, b), c)) }
