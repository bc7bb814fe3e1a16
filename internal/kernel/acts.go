package kernel

import "fmt"

// Precision is the form in which a product reads its activations.
type Precision uint8

const (
	Fast     Precision = iota // int8 per group
	Floats                    // float32
	Fine                      // two int8 per group, the second for what the first leaves out: about 16 bits together
	Half                      // bfloat16, for DenseBF16 alone
	Outliers                  // int8 per group, 15 bits for the largest numbers of some groups: see outliers.go
)

// forms is how many prepared rows an activation row takes.
func (p Precision) forms() int {
	if p == Fine {
		return 2
	}
	return 1
}

// Acts are activation rows prepared for products with matrices of the same Cols and Group; one preparation serves all
// of them. The zero value is ready for Reset, which keeps buffers for reuse.
//
// Fast, per group: scale = max|x|/127, q = round to even of x·(127/max|x|), sum = scale·Σq. Groups whose largest value is below
// 1e-30 count as zeros; a NaN makes the group's scale NaN. Fine is the same twice, rows 2i and 2i+1 of what follows: x, and x -
// scale·q of the first. Outliers is Fast, but that x of the largest numbers of some groups is scale·(256·high + q), as sum has
// it. Floats, per group: sum = Σx in eight lanes, then pairwise. Half: x rounded to nearest even.
type Acts struct {
	prec              Precision
	rows, cols, group int
	stride            int // elements between rows of x, q or half: cols rounded up to a cache line or one more, the rest zeros
	groups            int
	x                 []float32
	q                 []int8
	half              []uint16
	scale, sum        []float32 // [rows][groups]
	offset            []int32   // [rows][groups] 128·Σq, which code-128 arithmetic leaves out; groups of 16: -12·Σq (FloatE2M1)
	high              []int8    // as q: high parts, where quads has the bits of their columns, four by four
	quads             []uint32  // [rows][groups]
	lists             outlierLists
}

// codes is the precision that products are chosen by.
func (a *Acts) codes() Precision {
	if a.prec == Outliers {
		return Fast
	}
	return a.prec
}

// Reset sizes a for rows of cols values. group is the matrices' Group: 0 for dense ones, which need Floats or Half.
func (a *Acts) Reset(p Precision, rows, cols, group int) {
	if rows < 0 || cols <= 0 || group < 0 || group > 0 && (cols%group != 0 || group != 16 && group%32 != 0) || (p == Fast || p == Fine || p == Outliers) && group == 0 || p == Half && group > 0 {
		panic(fmt.Sprintf("kernel: activations %d by %d, group %d, precision %d", rows, cols, group, p))
	}
	a.prec, a.rows, a.cols, a.group, a.groups = p, rows, cols, group, 0
	if group > 0 {
		a.groups = cols / group
	}
	rows *= p.forms()
	n := rows * a.groups
	switch p {
	case Fast, Fine, Outliers:
		a.stride = padStride(roundUp(cols, align))
		a.q = grow(a.q, rows*a.stride)
		a.scale, a.offset = grow(a.scale, n), grow(a.offset, n)
		if p == Outliers {
			a.resetOutliers(rows)
		}
	case Half:
		a.stride = padStride(2*roundUp(cols, align/2)) / 2
		a.half = grow(a.half, rows*a.stride)
	default:
		a.stride = padStride(4*roundUp(cols, align/4)) / 4
		a.x = grow(a.x, rows*a.stride)
	}
	a.sum = grow(a.sum, n)
}

// padStride adds a cache line to a stride that would map all rows to the same few sets of the nearest cache.
func padStride(stride int) int {
	if stride%1024 == 0 {
		stride += align
	}
	return stride
}

func grow[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return make([]T, n)
}

// Rows is the number of rows Reset made room for.
func (a *Acts) Rows() int { return a.rows }

// Precision is what Reset was given.
func (a *Acts) Precision() Precision { return a.prec }

// SetRow prepares row i from len(x) = cols values. Different rows may be set from different goroutines.
func (a *Acts) SetRow(i int, x []float32) {
	if len(x) != a.cols {
		panic(fmt.Sprintf("kernel: activation row of %d values, want %d", len(x), a.cols))
	}
	switch a.prec {
	case Fine:
		a.setFine(2*i, x)
		return
	case Outliers:
		a.setOutliers(i, x)
		a.listed(i)
		return
	case Half:
		row := a.half[i*a.stride:][:a.stride]
		ToBF16(row[:len(x)], x)
		clear(row[len(x):])
		return
	}
	at := i * a.groups
	sum := a.sum[at:][:a.groups]
	if a.prec == Fast {
		quantizeRow(a.q[i*a.stride:][:a.cols], a.scale[at:][:a.groups], sum, a.offset[at:][:a.groups], x, a.group)
		return
	}
	row := a.x[i*a.stride:][:a.stride]
	copy(row, x)
	clear(row[len(x):])
	if a.groups > 0 {
		sumGroups(sum, x, a.group)
	}
}

// setFine fills rows i and i+1 of numbers.
func (a *Acts) setFine(i int, x []float32) {
	var left [128]float32
	at, next := i*a.groups, (i+1)*a.groups
	for g := range a.groups {
		from := g * a.group
		q, part := a.q[i*a.stride+from:][:a.group], x[from:][:a.group]
		quantizeRow(q, a.scale[at+g:][:1], a.sum[at+g:][:1], a.offset[at+g:][:1], part, a.group)
		scale := a.scale[at+g]
		for k, v := range part {
			left[k] = v - float32(scale*float32(q[k])) // the conversion forbids fusing
		}
		quantizeRow(a.q[(i+1)*a.stride+from:][:a.group], a.scale[next+g:][:1], a.sum[next+g:][:1], a.offset[next+g:][:1], left[:a.group], a.group)
	}
}

// CopyRow makes row i a copy of row j of b, which was reset for the same columns, group and precision.
func (a *Acts) CopyRow(i int, b *Acts, j int) {
	if a.prec != b.prec || a.cols != b.cols || a.group != b.group {
		panic("kernel: copy between different activations")
	}
	n := a.prec.forms()
	for f := range n {
		a.copyRow(n*i+f, b, n*j+f)
	}
}

func (a *Acts) copyRow(i int, b *Acts, j int) {
	copy(a.sum[i*a.groups:][:a.groups], b.sum[j*a.groups:])
	switch a.prec {
	case Floats:
		copy(a.x[i*a.stride:][:a.stride], b.x[j*b.stride:])
		return
	case Half:
		copy(a.half[i*a.stride:][:a.stride], b.half[j*b.stride:])
		return
	}
	copy(a.q[i*a.stride:][:a.cols], b.q[j*b.stride:])
	copy(a.scale[i*a.groups:][:a.groups], b.scale[j*a.groups:])
	copy(a.offset[i*a.groups:][:a.groups], b.offset[j*a.groups:])
	if a.prec == Outliers {
		copy(a.high[i*a.stride:][:a.cols], b.high[j*b.stride:])
		copy(a.quads[i*a.groups:][:a.groups], b.quads[j*a.groups:])
		a.listed(i)
	}
}
