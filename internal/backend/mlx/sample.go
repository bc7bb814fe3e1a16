package mlx

import (
	"math"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/sample"
)

// Sample draws on the device what package sample would draw: the first token, by id, at which the running sum of weights passes
// a share of them.
func (b *Backend) Sample(o B.Scope, logits B.Array, params []sample.Draw) B.Array {
	s := o.(*scope)
	in, p := s.get(logits), slices.Clone(params)
	a, n := s.make(logits.Rows(), 1, B.I32)
	if logits.Rows() > 0 {
		s.later(func() { n.h = s.l.retain(s.l.draw(in.h, p)) })
	}
	return a
}

// perRow uploads a number per row, [rows, 1].
func perRow(l *lib, p []sample.Draw, f func(*sample.Draw) float32) handle {
	x := make([]float32, len(p))
	for i := range p {
		x[i] = f(&p[i])
	}
	return upload(l, x, f32, len(x), 1)
}

// draw gives a token per row of logits [rows, vocabulary].
func (l *lib) draw(logits handle, p []sample.Draw) handle {
	x := l.cast(logits, f32)
	peak := l.reduce(fnMax, x, 1)
	ids := l.cast(l.reduce(fnArgmax, x, 1), i32) // of equals the lowest
	warm := func(p sample.Draw) bool { return p.Temperature > 0 }
	if slices.ContainsFunc(p, warm) {
		drawn := l.pick(l.sub(peak, x), p)
		hot := perRow(l, p, func(p *sample.Draw) float32 { return max(p.Temperature, 0) })
		ids = l.where(l.bin(fnGreater, hot, l.num(0)), drawn, ids)
	}
	// A NaN is in the largest of a row, and then nothing is less than infinite.
	return l.where(l.bin(fnLess, l.un(fnAbs, peak), l.num(float32(math.Inf(1)))), ids, l.whole(-1))
}

// whole is a whole number.
func (l *lib) whole(n int32) handle { return upload(l, []int32{n}, i32, 1) }

// pick draws by weights: gap is how far below the largest logit each is.
func (l *lib) pick(gap handle, p []sample.Draw) handle {
	heat := perRow(l, p, func(p *sample.Draw) float32 {
		if p.Temperature <= 0 {
			return 1
		}
		return p.Temperature
	})
	weights := l.un(fnExp, l.un(fnNegative, l.bin(fnDivide, gap, heat)))
	none := l.num(0)
	if slices.ContainsFunc(p, func(p sample.Draw) bool { return p.MinP > 0 }) {
		most := perRow(l, p, func(p *sample.Draw) float32 {
			if p.MinP <= 0 {
				return float32(math.Inf(1))
			}
			return float32(-math.Log(min(float64(p.MinP), 1)))
		})
		weights = l.where(l.bin(fnGreater, gap, most), none, weights)
	}
	if slices.ContainsFunc(p, func(p sample.Draw) bool { return p.TopK > 0 || p.TopP > 0 && p.TopP < 1 }) {
		weights = l.top(gap, weights, p)
	}
	sum := l.cumulative(weights, true)
	vocab := l.shape(sum)
	if vocab == nil {
		return 0
	}
	all := l.slice(sum, 1, vocab[1]-1, vocab[1])
	const below = 1 - 1.0/(1<<23) // of one, so that some sum passes
	u := perRow(l, p, func(p *sample.Draw) float32 { return float32(min(p.Uniform, below)) })
	return l.cast(l.reduce(fnArgmax, l.cast(l.bin(fnGreater, sum, l.mul(u, all)), f32), 1), i32)
}

// top drops the weights that top_p and top_k do. Both go by the untempered distribution.
func (l *lib) top(gap, weights handle, p []sample.Draw) handle {
	none, sorted := l.num(0), l.do(fnSort, uintptr(gap), 1)
	mass := l.un(fnExp, l.un(fnNegative, sorted))
	shape := l.shape(sorted)
	if shape == nil {
		return 0
	}
	vocab := shape[1]
	if slices.ContainsFunc(p, func(p sample.Draw) bool { return p.TopP > 0 && p.TopP < 1 }) {
		share := perRow(l, p, func(p *sample.Draw) float32 {
			if p.TopP <= 0 || p.TopP >= 1 {
				return 2
			}
			return p.TopP
		})
		// The likelier ones weigh less than the share; equals stay together.
		in := l.bin(fnLess, l.cumulative(mass, false), l.mul(share, l.reduce(fnSum, mass, 1)))
		last := l.reduce(fnMax, l.where(in, sorted, none), 1)
		weights = l.where(l.bin(fnGreater, gap, last), none, weights)
	}
	if slices.ContainsFunc(p, func(p sample.Draw) bool { return p.TopK > 0 && p.TopK < vocab }) {
		most := make([]int32, len(p))
		for i := range p {
			if most[i] = int32(p[i].TopK) - 1; p[i].TopK <= 0 || p[i].TopK > vocab {
				most[i] = int32(vocab) - 1
			}
		}
		at := upload(l, most, i32, len(p), 1)
		last := l.takeAlong(sorted, at, 1)
		nearer, farther := l.bin(fnLess, gap, last), l.bin(fnGreater, gap, last)
		// Of those as far as the last, as many stay as there is room for, the lowest ids.
		one := l.num(1)
		equal := l.where(nearer, none, l.where(farther, none, one))
		room := l.sub(l.add(l.cast(at, f32), one), l.reduce(fnSum, l.where(nearer, one, none), 1))
		weights = l.where(l.bin(fnGreater, l.mul(equal, l.cumulative(equal, true)), room), none, l.where(farther, none, weights))
	}
	return weights
}

// cumulative sums along rows, each number in its own sum or not.
func (l *lib) cumulative(x handle, inclusive bool) handle {
	if l.err != nil {
		return 0
	}
	return l.made(l.Call(l.cumsum, l.result(), uintptr(x), 1, flag(false), flag(inclusive), uintptr(l.stream)))
}
