package kernel

import "unsafe"

// wideArgs is what an exact product of many rows gets: tiles of wideRows rows against whole panels.
type wideArgs struct {
	w       unsafe.Pointer // first panel
	x       unsafe.Pointer // first row of float32
	sum     unsafe.Pointer // [row][group] float32
	y       unsafe.Pointer // first row, first column of the first panel
	panels  int
	groups  int
	lines   int // 32-column parts of a group
	tiles   int
	xStride int // bytes between rows of x
	gStride int // bytes between rows of sum
	yStride int // bytes between rows of y
	wide    int // scales and biases are float32
}

const (
	wideRows = 3
	// leastWide is the number of rows from which making floats of the codes aside pays.
	leastWide = 9
	// wideBytes of x stay in the second-level cache while panels pass by.
	wideBytes = 256 << 10
)

// wide multiplies rows [r0, r1), a multiple of wideRows, with whole panels from p, y starting at their first column.
func (m *Matrix) wide(y []float32, ldy int, a *Acts, r0, r1, p, panels int) {
	most := max(wideBytes/(a.stride*4*wideRows), 4) * wideRows
	for r := r0; r < r1; r += most {
		args := wideArgs{
			w: unsafe.Pointer(&m.data[p*m.panel]), x: unsafe.Pointer(&a.x[r*a.stride]), xStride: a.stride * 4,
			sum: unsafe.Pointer(&a.sum[r*a.groups]), gStride: a.groups * 4,
			y: unsafe.Pointer(&y[r*ldy]), yStride: ldy * 4,
			panels: panels, groups: m.groups, lines: m.spec.Group / 32, tiles: min(most, r1-r) / wideRows,
		}
		if m.spec.Scales == ScaleF32 {
			args.wide = 1
		}
		callWide(m.spec.Format, &args)
	}
}
