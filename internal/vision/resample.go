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

// down resizes columns, a strip of rows at a time.
func (r *Raster) down(ctx context.Context, t *taps) (*Raster, error) {
	out := newRaster(r.Width, len(t.first))
	line := 3 * r.Width
	const rows = 16
	err := share(ctx, (out.Height+rows-1)/rows, func(i int) {
		for y := i * rows; y < min((i+1)*rows, out.Height); y++ {
			weigh(out.row(y), r.Pix[line*t.first[y]:], line, t.weights[y*t.most:y*t.most+t.count[y]])
		}
	})
	return out, err
}

// across resizes rows: a strip of them is laid on its side, so that its columns are weighed as rows are.
func (r *Raster) across(ctx context.Context, t *taps) (*Raster, error) {
	out := newRaster(len(t.first), r.Height)
	const rows = 32
	err := share(ctx, (r.Height+rows-1)/rows, func(i int) {
		n := min(rows, r.Height-i*rows)
		in, aside := 3*r.Width, 3*out.Width
		columns := make([]byte, (in+7)/8*8*rows)
		transpose(columns, rows, r.Pix[i*rows*in:], in, n, in)
		weighed := make([]byte, (aside+7)/8*8*rows)
		for x, first := range t.first {
			weights := t.weights[x*t.most : x*t.most+t.count[x]]
			for c := range 3 {
				weigh(weighed[(3*x+c)*rows:][:rows], columns[(3*first+c)*rows:], 3*rows, weights)
			}
		}
		transpose(out.Pix[i*rows*aside:], aside, weighed, rows, aside, n)
	})
	return out, err
}

// weigh sums rows that begin stride bytes after each other, each times its weight: len(dst) bytes of each.
func weigh(dst, src []byte, stride int, weights []int32) {
	if len(weights) == 0 {
		return
	}
	src = src[:(len(weights)-1)*stride+len(dst)]
	if !weighFast(dst, src, stride, weights) {
		weighGeneric(dst, src, stride, weights)
	}
}

// weighGeneric has two samples in a word, 32 bits apart, which are multiplied by a weight at once. Weights are signed and so
// are the sums: a negative low half borrows from the high one, and high gives that back.
func weighGeneric(dst, src []byte, stride int, weights []int32) {
	const mask = 0xff<<32 | 0xff
	const halves = 1<<(fraction-1+32) | 1<<(fraction-1) // 0.5 for both: sums are rounded
	i := 0
	for ; i+8 <= len(dst); i += 8 {
		s0, s1, s2, s3 := uint64(halves), uint64(halves), uint64(halves), uint64(halves)
		in := src[i:]
		for j, k := range weights {
			v, w := binary.LittleEndian.Uint64(in[j*stride:]), uint64(int64(k))
			s0 += v & mask * w
			s1 += v >> 8 & mask * w
			s2 += v >> 16 & mask * w
			s3 += v >> 24 & mask * w
		}
		low := func(s uint64) uint64 { return uint64(byteOf(int32(s))) }
		high := func(s uint64) uint64 { return uint64(byteOf(int32((s + 1<<31) >> 32))) }
		binary.LittleEndian.PutUint64(dst[i:], low(s0)|low(s1)<<8|low(s2)<<16|low(s3)<<24|high(s0)<<32|high(s1)<<40|high(s2)<<48|high(s3)<<56)
	}
	for ; i < len(dst); i++ {
		s := int32(1 << (fraction - 1))
		for j, k := range weights {
			s += int32(src[j*stride+i]) * k
		}
		dst[i] = byteOf(s)
	}
}

// byteOf is the whole part of a sum, kept to 0 … 255.
func byteOf(sum int32) uint8 { return clip8(sum >> fraction) }

// transpose writes the columns of src as rows of dst. src has rows of cols bytes; a row begins so many bytes after the one
// before it as each stride says.
func transpose(dst []byte, dstStride int, src []byte, srcStride, rows, cols int) {
	y := 0
	for ; y+8 <= rows; y += 8 {
		x := 0
		for ; x+8 <= cols; x += 8 {
			var a [8]uint64
			for i := range a {
				a[i] = binary.LittleEndian.Uint64(src[(y+i)*srcStride+x:])
			}
			transpose8(&a)
			for i := range a {
				binary.LittleEndian.PutUint64(dst[(x+i)*dstStride+y:], a[i])
			}
		}
		for ; x < cols; x++ {
			for i := range 8 {
				dst[x*dstStride+y+i] = src[(y+i)*srcStride+x]
			}
		}
	}
	for ; y < rows; y++ {
		for x, v := range src[y*srcStride : y*srcStride+cols] {
			dst[x*dstStride+y] = v
		}
	}
}

// transpose8 is that for 8 by 8 bytes: quarters change places, and then theirs, and theirs.
func transpose8(a *[8]uint64) {
	swap := func(x, y *uint64, shift int, mask uint64) {
		t := (*x>>shift ^ *y) & mask
		*y ^= t
		*x ^= t << shift
	}
	for i := range 4 {
		swap(&a[i], &a[i+4], 32, 1<<32-1)
	}
	for _, i := range [4]int{0, 1, 4, 5} {
		swap(&a[i], &a[i+2], 16, 0xffff0000ffff)
	}
	for i := 0; i < 8; i += 2 {
		swap(&a[i], &a[i+1], 8, 0xff00ff00ff00ff)
	}
}
