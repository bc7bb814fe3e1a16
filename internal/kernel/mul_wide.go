package kernel

import "unsafe"

// wideArgs is what a product of many rows gets: tiles of wideRows rows (tallRows) against whole panels.
type wideArgs struct {
	w       unsafe.Pointer // first panel
	x       unsafe.Pointer // first row: float32, of a fast product int8
	scale   unsafe.Pointer // [row][group] float32 of a fast product
	sum     unsafe.Pointer // [row][group] float32
	y       unsafe.Pointer // first row, first column of the first panel
	panels  int
	groups  int
	lines   int // 32-column parts of a group; FloatE2M1: the one of 16
	tiles   int
	xStride int // bytes between rows of x
	gStride int // bytes between rows of sum and scale
	yStride int // bytes between rows of y
	wide    int // scales and biases are float32
	outlierArgs
}

const (
	wideRows = 3
	tallRows = 4
	// From leastWide rows on it pays to convert the codes to floats first, from leastTall on to convert 4-bit codes to bytes. For
	// codes in planes that is the only way beyond wideRows and tallRows.
	leastWide = 9
	leastTall = 8
	// wideBytes of x stay in the second-level cache while all panels are multiplied.
	wideBytes = 256 << 10
)

// many is how many of n rows the routine for many rows takes; 0 if there is none.
func (m *Matrix) many(prec Precision, n int) int {
	switch f := m.spec.Format; {
	case prec == Fast && hasTall(f) && (n >= leastTall || f.planes()):
		return n - n%tallRows
	case prec == Floats && hasWide(f, prec) && (n >= leastWide || f.planes() || f == FloatE2M1):
		return n - n%wideRows
	}
	return 0
}

// wide multiplies rows [r0, r1), as many as many said, with whole panels from p, y starting at their first column.
func (m *Matrix) wide(y []float32, ldy int, a *Acts, r0, r1, p, panels int) {
	rows, bytes := wideRows, a.stride*4
	if a.prec != Floats {
		rows, bytes = tallRows, a.stride
	}
	most := max(wideBytes/(bytes*rows), 4) * rows
	for r := r0; r < r1; r += most {
		args := wideArgs{
			w: unsafe.Pointer(&m.data[p*m.panel]), xStride: bytes,
			gStride: a.groups * 4,
			y:       unsafe.Pointer(&y[r*ldy]), yStride: ldy * 4,
			panels: panels, groups: m.groups, lines: m.spec.Group / 32, tiles: min(most, r1-r) / rows,
		}
		if m.spec.Scales == ScaleF32 {
			args.wide = 1
		}
		if m.Small() {
			args.groups, args.lines = m.units, 1
		} else {
			args.sum = unsafe.Pointer(&a.sum[r*a.groups])
		}
		if a.prec == Floats {
			args.x = unsafe.Pointer(&a.x[r*a.stride])
			callWide(m.spec.Format, &args)
		} else {
			args.x, args.scale = unsafe.Pointer(&a.q[r*a.stride]), unsafe.Pointer(&a.scale[r*a.groups])
			if a.prec == Outliers {
				args.outlierArgs = m.outliers(a, r)
			}
			callTall(m.spec.Format, &args)
		}
	}
}
