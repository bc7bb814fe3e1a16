package budget

import (
	"fmt"
	"slices"
)

// Step is a step's size, as far as the memory of its arrays depends on it.
type Step struct {
	Rows  int // of all sequences
	Depth int // positions before the rows, of the deepest sequence
	Outs  int // rows whose logits are wanted
}

// Scratch is what the arrays of a step take, in bytes, as a function of its size. Nearly every operation takes memory in
// proportion to rows, some up to a number of them, and arrays that are swept leave theirs to later ones; so the sum is made of
// straight pieces. It is measured at a few sizes, straight between them, and raised where the measured middle of a piece lies
// above that.
type Scratch struct {
	rows  []point // with one output, at no depth
	outs  []point // what more outputs add, in a step of hardly more rows than them: beside more rows they may find room that is there
	depth float64 // bytes a position
}

// point is a measured size and its bytes; raise is what lies above the line to the next point.
type point struct {
	at, raise int
	bytes     int64
}

// leastStep is the first size of a piece that is measured beside one row.
const leastStep = 64

// Fit makes the function for steps up to most from measure, which tells what a step takes. It calls it some 40 times.
func Fit(most Step, measure func(Step) (int64, error)) (*Scratch, error) {
	s := &Scratch{}
	var err error
	if s.rows, err = fit(most.Rows, func(n int) (int64, error) { return measure(Step{n, 0, 1}) }); err != nil {
		return nil, err
	}
	if s.outs, err = fit(most.Outs, func(n int) (int64, error) {
		more := int64(0)
		for rows := n; rows <= min(n+1, most.Rows); rows++ { // all are wanted, or the wanted ones are picked
			all, err := measure(Step{rows, 0, n})
			if err != nil {
				return 0, err
			}
			more = max(more, all-s.Of(Step{rows, 0, 1}))
		}
		return more, nil
	}); err != nil {
		return nil, err
	}
	if most.Depth > 0 {
		deep, err := measure(Step{most.Rows, most.Depth, 1})
		if err != nil {
			return nil, err
		}
		s.depth = float64(max(deep-s.Of(Step{most.Rows, 0, 1}), 0)) / float64(most.Depth)
	}
	return s, nil
}

// fit measures at 1 and at leastStep, twice that and so on up to most, and between these.
func fit(most int, measure func(int) (int64, error)) (points []point, err error) {
	sizes := []int{1}
	for n := leastStep; n < most; n *= 2 {
		sizes = append(sizes, n)
	}
	if most > 1 {
		sizes = append(sizes, most)
	}
	for _, n := range sizes {
		bytes, err := measure(n)
		if err != nil {
			return nil, fmt.Errorf("measure a step of %d rows: %w", n, err)
		}
		points = append(points, point{at: n, bytes: bytes})
	}
	for i := range points[:len(points)-1] {
		a, b := &points[i], &points[i+1]
		middle := (a.at + b.at) / 2
		bytes, err := measure(middle)
		if err != nil {
			return nil, fmt.Errorf("measure a step of %d rows: %w", middle, err)
		}
		// A piece that bends once is nowhere further above its chord than twice as far as in the middle.
		a.raise = int(max(2*(bytes-chord(a, b, middle)), 0))
	}
	return points, nil
}

// chord is the straight line from a to b.
func chord(a, b *point, at int) int64 {
	return a.bytes + int64(float64(b.bytes-a.bytes)*float64(at-a.at)/float64(b.at-a.at))
}

// at reads the pieces. Beyond the last point its line goes on.
func at(points []point, n int) int64 {
	last := len(points) - 1
	i, found := slices.BinarySearchFunc(points, n, func(p point, n int) int { return p.at - n })
	switch {
	case found || last == 0:
		return points[min(i, last)].bytes
	case i > last:
		return max(chord(&points[last-1], &points[last], n), points[last].bytes)
	}
	a, b := &points[i-1], &points[i]
	return min(chord(a, b, n)+int64(a.raise), max(a.bytes, b.bytes)+int64(a.raise))
}

// Of is what a step takes.
func (s *Scratch) Of(st Step) int64 {
	if st.Rows <= 0 {
		return 0
	}
	n := at(s.rows, st.Rows) + int64(s.depth*float64(st.Depth))
	if st.Outs > 1 {
		n += at(s.outs, st.Outs)
	}
	return n
}

// MostRows is how many rows a step of such depth and outputs may have to take no more than so many bytes, at most up to; 0: none.
func (s *Scratch) MostRows(bytes int64, st Step, upTo int) int {
	lo, hi := 0, upTo
	for lo < hi {
		mid := (lo + hi + 1) / 2
		st.Rows = mid
		if s.Of(st) <= bytes {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}
