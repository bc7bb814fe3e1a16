package vision

import (
	"context"
	"encoding/binary"
	"math"
)

// filter is a kernel of resampling: zero outside -support … support.
type filter struct {
	support float64
	at      func(x float64) float64
}

// filters are Pillow's, by the numbers that a preprocessor_config.json has in "resample".
var filters = map[int]filter{
	1: {3, lanczos},
	2: {1, bilinear},
	3: {2, bicubic},
}

func bilinear(x float64) float64 { return max(0, 1-math.Abs(x)) }

func bicubic(x float64) float64 {
	const a = -0.5
	switch x = math.Abs(x); {
	case x < 1:
		return float64(float64(float64((a+2)*x)-(a+3))*x)*x + 1
	case x < 2:
		return float64((float64((float64((x-5)*x)+8)*x) - 4) * a)
	}
	return 0
}

func lanczos(x float64) float64 {
	sinc := func(x float64) float64 {
		if x == 0 {
			return 1
		}
		x *= math.Pi
		return math.Sin(x) / x
	}
	if x < -3 || x >= 3 {
		return 0
	}
	return sinc(x) * sinc(x/3)
}

// fraction is the bits after the point of a weight. Pillow has 22: a sum of weights times bytes stays within an int32.
const fraction = 32 - 8 - 2

// taps are the weights by which the samples of a line become those of another length: out[i] is the sum of
// weights[i*most+j] * in[first[i]+j] for j < count[i].
type taps struct {
	first, count []int
	weights      []int32
	most         int
}

// newTaps computes them as Pillow's Resample.c does: where the line shrinks, the kernel grows, which is its antialiasing.
func newTaps(in, out int, f filter) *taps {
	scale := float64(in) / float64(out)
	grown := max(scale, 1)
	support := f.support * grown
	most := int(math.Ceil(support))*2 + 1
	t := &taps{make([]int, out), make([]int, out), make([]int32, out*most), most}
	k := make([]float64, most)
	for i := range out {
		center := (float64(i) + 0.5) * scale
		first := max(int(center-support+0.5), 0)
		n := min(int(center+support+0.5), in) - first
		sum := 0.0
		for j := range n {
			k[j] = f.at((float64(j+first) - center + 0.5) * (1 / grown))
			sum += k[j]
		}
		for j := range n {
			w := k[j]
			if sum != 0 {
				w /= sum
			}
			t.weights[i*most+j] = int32(math.Copysign(0.5, w) + float64(w*(1<<fraction)))
		}
		t.first[i], t.count[i] = first, n
	}
	return t
}

// Two samples of 8 bits share a word, 32 bits apart, and are multiplied by a weight at once. Weights are signed and so are
// the sums; a negative low half borrows from the high one, which high gives back.

const halves = 1<<(fraction-1) | 1<<(fraction-1+32) // 0.5 for both: sums are rounded

func low(sum uint64) int32  { return int32(sum) }
func high(sum uint64) int32 { return int32((sum + 1<<31) >> 32) }

// byteOf is the whole part of a sum, kept to 0 … 255.
func byteOf(sum int32) uint8 {
	v := sum >> fraction
	if uint32(v) > 255 {
		return uint8(^(v >> 31))
	}
	return uint8(v)
}

// resize is r in another size, to the bit as Pillow's Image.resize makes it of an RGB image: across and down, with 8 bits
// between. Which comes first shows in a picture's last bits.
func (r *Raster) resize(ctx context.Context, w, h int, f filter) (*Raster, error) {
	across := func(r *Raster) (*Raster, error) {
		if w == r.Width {
			return r, ctx.Err()
		}
		return r.across(ctx, newTaps(r.Width, w, f))
	}
	down := func(r *Raster) (*Raster, error) {
		if h == r.Height {
			return r, ctx.Err()
		}
		return r.down(ctx, newTaps(r.Height, h, f))
	}
	// Pillow 13 goes down first where that takes away much more lines than going across takes columns; before, it never did.
	passes := []func(*Raster) (*Raster, error){across, down}
	if less := r.Height - h; less > 0 && less > 2*(r.Width-w) {
		passes = []func(*Raster) (*Raster, error){down, across}
	}
	for _, pass := range passes {
		var err error
		if r, err = pass(r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// across resizes rows, two at a time: their samples share the words.
func (r *Raster) across(ctx context.Context, t *taps) (*Raster, error) {
	out := newRaster(len(t.first), r.Height)
	const rows = 16 // of a worker's turn
	err := share(ctx, (r.Height+rows-1)/rows, func(i int) {
		words := make([]uint64, 3*r.Width)
		for y := i * rows; y < min((i+1)*rows, r.Height); y += 2 {
			other := min(y+1, r.Height-1)
			a, b := r.row(y), r.row(other)
			b = b[:len(a)]
			words := words[:len(a)]
			for j := range a {
				words[j] = uint64(a[j]) | uint64(b[j])<<32
			}
			t.across(out.row(y), out.row(other), words)
		}
	})
	return out, err
}

func (t *taps) across(a, b []byte, words []uint64) {
	for x, first := range t.first {
		weights := t.weights[x*t.most : x*t.most+t.count[x]]
		in := words[3*first : 3*(first+len(weights))]
		red, green, blue := uint64(halves), uint64(halves), uint64(halves)
		for ; len(weights) >= 2 && len(in) >= 6; weights, in = weights[2:], in[6:] {
			w, v := uint64(int64(weights[0])), uint64(int64(weights[1]))
			red += in[0]*w + in[3]*v
			green += in[1]*w + in[4]*v
			blue += in[2]*w + in[5]*v
		}
		if len(weights) > 0 && len(in) >= 3 {
			w := uint64(int64(weights[0]))
			red += in[0] * w
			green += in[1] * w
			blue += in[2] * w
		}
		pa, pb := a[3*x:3*x+3:3*x+3], b[3*x:3*x+3:3*x+3]
		pa[0], pa[1], pa[2] = byteOf(low(red)), byteOf(low(green)), byteOf(low(blue))
		pb[0], pb[1], pb[2] = byteOf(high(red)), byteOf(high(green)), byteOf(high(blue))
	}
}

// down resizes columns. A strip of them is taken from top to bottom. What the taps of one row need of the rows above stays, as
// words, in a ring. Of eight bytes each of the first four shares a word with the one four behind it, so that a shift and a mask
// make the words.
func (r *Raster) down(ctx context.Context, t *taps) (*Raster, error) {
	out := newRaster(r.Width, len(t.first))
	line := 3 * r.Width
	const strip = 1024 // bytes: few enough that the ring stays in the cache, many enough that rows are read in long runs
	err := share(ctx, (line+strip-1)/strip, func(i int) {
		at := strip * i
		n := min(strip, line-at)
		m := (n + 7) / 8 * 4 // words
		ring := make([]uint64, t.most*m)
		sums := make([]uint64, m)
		padded := make([]byte, 2*m) // a strip's bytes, where they are not a multiple of eight
		have := 0                   // rows of r that have been in the ring
		for y, first := range t.first {
			weights := t.weights[y*t.most : y*t.most+t.count[y]]
			for have = max(have, first); have < first+len(weights); have++ {
				in := r.Pix[line*have+at : line*have+at+n]
				if len(in) < len(padded) {
					copy(padded, in)
					in = padded
				}
				toWords(ring[have%t.most*m:][:m], in)
			}
			row := func(j int) []uint64 { return ring[(first+min(j, len(weights)-1))%t.most*m:][:m] }
			// The last six rows are summed when the bytes are made. Of fewer, the last one comes again, with a weight of zero.
			from := 0
			if len(weights) > 6 {
				for j := range sums {
					sums[j] = halves
				}
				for ; len(weights)-from > 6; from += 4 {
					add4(sums, row(from), row(from+1), row(from+2), row(from+3), weights[from:from+4])
				}
			}
			var w [6]uint64
			var rows [6][]uint64
			for j := range w {
				rows[j] = row(from + j)
				if from+j < len(weights) {
					w[j] = uint64(int64(weights[from+j]))
				}
			}
			to := out.Pix[line*y+at : line*y+at+n]
			full := to
			if len(to) < len(padded) {
				full = padded
			}
			if from > 0 {
				finish(full, sums, &rows, &w)
			} else {
				finish(full, nil, &rows, &w)
			}
			if len(to) < len(padded) {
				copy(to, padded)
			}
		}
	})
	return out, err
}

// toWords makes words of bytes, four of eight.
func toWords(words []uint64, in []byte) {
	const mask = 0xff<<32 | 0xff
	for ; len(in) >= 8 && len(words) >= 4; in, words = in[8:], words[4:] {
		v := binary.LittleEndian.Uint64(in)
		words[0], words[1], words[2], words[3] = v&mask, v>>8&mask, v>>16&mask, v>>24&mask
	}
}

// finish adds six rows to the sums, or to halves alone, and makes the bytes: eight of four words.
func finish(to []byte, sums []uint64, rows *[6][]uint64, w *[6]uint64) {
	n := len(to) / 2
	a, b, c, d, e, f := rows[0][:n], rows[1][:n], rows[2][:n], rows[3][:n], rows[4][:n], rows[5][:n]
	w0, w1, w2, w3, w4, w5 := w[0], w[1], w[2], w[3], w[4], w[5]
	if w5 == 0 && sums == nil { // most pictures that keep about their size
		for i := 0; i+4 <= n; i += 4 {
			var v uint64
			for j := i; j < i+4; j++ {
				s := a[j]*w0 + b[j]*w1 + c[j]*w2 + d[j]*w3 + e[j]*w4 + halves
				v = v>>8 | uint64(byteOf(low(s)))<<24 | uint64(byteOf(high(s)))<<56
			}
			binary.LittleEndian.PutUint64(to[2*i:], v)
		}
		return
	}
	for i := 0; i+4 <= n; i += 4 {
		var v uint64
		for j := i; j < i+4; j++ {
			s := a[j]*w0 + b[j]*w1 + c[j]*w2 + d[j]*w3 + e[j]*w4 + halves
			if w5 != 0 {
				s += f[j] * w5
			}
			if sums != nil {
				s += sums[j] - halves
			}
			v = v>>8 | uint64(byteOf(low(s)))<<24 | uint64(byteOf(high(s)))<<56
		}
		binary.LittleEndian.PutUint64(to[2*i:], v)
	}
}

func add4(sums, a, b, c, d []uint64, weights []int32) {
	w0, w1, w2, w3 := uint64(int64(weights[0])), uint64(int64(weights[1])), uint64(int64(weights[2])), uint64(int64(weights[3]))
	a, b, c, d = a[:len(sums)], b[:len(sums)], c[:len(sums)], d[:len(sums)]
	for i := range sums {
		sums[i] += a[i]*w0 + b[i]*w1 + c[i]*w2 + d[i]*w3
	}
}
