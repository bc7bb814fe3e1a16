package chart

import (
	"math"
	"slices"
)

// scale maps values to pixels: evenly, or by their logarithms.
type scale struct {
	low, high float64 // values at both ends
	from, to  float64 // pixels
	log       bool
	ticks     []float64
}

func (s *scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	if high == low {
		return (s.from + s.to) / 2
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}

// logAt is how many times the least value the largest is for a logarithmic axis. What is measured in amounts has its zero in
// sight as long as small ones can be told apart beside the large.
const (
	logAt     = 8  // across: batches and lengths that double
	logUpward = 40 // upward
)

// across is a scale for the places at which something was measured, with a tick at each that has room for its label.
func across(values []float64, from, to float64) scale {
	values = distinct(values)
	s := scale{low: values[0], high: values[len(values)-1], from: from, to: to}
	s.log = s.low > 0 && s.high >= logAt*s.low
	if len(values) == 1 { // in the middle
		s.ticks = values
		return s
	}
	// From the right: the largest of values that stand close together is told.
	for _, v := range slices.Backward(values) {
		if n := len(s.ticks); n == 0 || s.at(s.ticks[n-1])-s.at(v) > textWidth(Number(v))/2+textWidth(Number(s.ticks[n-1]))/2+8 {
			s.ticks = append(s.ticks, v)
		}
	}
	return s
}

// upward is a scale from zero, or logarithmic where values are too far apart, with round ticks.
func upward(values []float64, from, to float64) scale {
	values = distinct(values)
	least, most := values[0], values[len(values)-1]
	if least > 0 && most >= logUpward*least {
		s := scale{from: from, to: to, log: true}
		s.low, s.high, s.ticks = decades(least, most)
		return s
	}
	step := roundStep(max(most, 1e-9) / 5)
	s := scale{high: step * math.Ceil(max(most, 1e-9)/step-1e-9), from: from, to: to}
	for i := 0; float64(i)*step <= s.high*(1+1e-9); i++ {
		s.ticks = append(s.ticks, float64(i)*step)
	}
	return s
}

// decades are ticks at 1, 2 and 5 times powers of ten around all values, or at the powers alone if these are many.
func decades(least, most float64) (low, high float64, ticks []float64) {
	from, to := int(math.Floor(math.Log10(least))), int(math.Ceil(math.Log10(most)))
	steps := []float64{1, 2, 5}
	if to-from > 3 {
		steps = steps[:1]
	}
	for p := from; p <= to; p++ {
		for _, m := range steps {
			ticks = append(ticks, m*math.Pow(10, float64(p)))
		}
	}
	first, last := 0, len(ticks)-1
	for first+1 < len(ticks) && ticks[first+1] <= least*(1+1e-9) {
		first++
	}
	for last > 0 && ticks[last-1] >= most*(1-1e-9) {
		last--
	}
	return ticks[first], ticks[last], ticks[first : last+1]
}

// roundStep is the least of 1, 2, 2.5 and 5 times a power of ten that is x or more.
func roundStep(x float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*p >= x*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

func distinct(v []float64) []float64 {
	return slices.Compact(slices.Sorted(slices.Values(v)))
}
