package kernel

import (
	"fmt"
	"unsafe"
)

// mulArgs is what an inner product routine gets: raw pointers that mul has checked. It covers whole panels and at most
// maxTile rows; which routine it goes to fixes the format, the precision and the number of rows.
type mulArgs struct {
	w       unsafe.Pointer // first panel
	x       unsafe.Pointer // first row: int8, float32 or bfloat16
	scale   unsafe.Pointer // [row][group] float32 (Fast)
	sum     unsafe.Pointer // [row][group] float32
	offset  unsafe.Pointer // [row][group] int32 (Fast)
	y       unsafe.Pointer // first row, first column of the first panel
	panels  int
	groups  int // per row; dense: column quads
	lines   int // 32-column parts of a group; FloatE2M1: the one of 16
	xStride int // bytes between rows of x
	gStride int // bytes between rows of scale, sum and offset
	yStride int // bytes between rows of y
	wide    int // scales and biases are float32
	outlierArgs
}

// outlierArgs is what products read of outliers: see outlierLists. A number of a row is records bytes behind its place, because
// records is that of the first row of the product.
type outlierArgs struct {
	records unsafe.Pointer // nil: no group has any
	places  unsafe.Pointer // outlierQuad of the format
	heads   int            // bytes from scale on; of many rows: where they are
	record  int            // bytes
	back    int            // bytes from a record's first high part of the product's rows to its beginning, less than zero
}

// sharedBytes is how much of a matrix stays in the second-level cache while all tiles of rows are multiplied with it. Products
// from there are as fast as from the nearest cache, which holds one panel and its rows of x. CPUs with AVX-512 have a megabyte or
// more.
var sharedBytes = sharedSmall

const sharedSmall, sharedLarge = 128 << 10, 256 << 10

// maxTile bounds the rows of one inner routine.
const maxTile = 12

// Mul writes y[r*ldy+n] = Σ_k x[r,k]·W[n,k] for activation rows r in [r0, r1) and weight rows n of panels [p0, p1).
// Other elements of y stay as they are, so threads may fill disjoint panels of one y. a must have been reset with m's
// Cols and Group, with Half only for DenseBF16.
//
// One row is bound by memory: m.PanelBytes() per panel, each read once (4-bit codes at group 64: 4.5 bits a weight). Several rows
// share what is read, up to the tile of the routine, and are bound by arithmetic. What was tried, with figures, is in
// docs/benchmarks.md under "Products".
func (m *Matrix) Mul(y []float32, ldy int, a *Acts, r0, r1, p0, p1 int) {
	if a.cols != m.spec.Cols || a.group != m.spec.Group || a.prec == Half && m.spec.Format != DenseBF16 || r0 < 0 || r1 > a.rows || p0 < 0 || p1 > m.Panels() {
		panic(fmt.Sprintf("kernel: product of %d rows [%d,%d) of %d columns, group %d, with panels [%d,%d) of %+v",
			a.rows, r0, r1, a.cols, a.group, p0, p1, m.spec))
	}
	if r0 >= r1 || p0 >= p1 {
		return
	}
	last := min(p1*PanelRows, m.spec.Rows) // columns of y that exist
	if ldy < last || len(y) < (r1-1)*ldy+last {
		panic(fmt.Sprintf("kernel: product needs %d rows of %d outputs, y has %d with stride %d", r1, last, len(y), ldy))
	}
	switch a.prec {
	case Fine:
		m.fine(y, ldy, a, r0, r1, p0, p1)
		return
	case Outliers:
		for r := r0 / a.lists.tile * a.lists.tile; r < r1; r += a.lists.tile {
			a.mustBeListed(r)
		}
	}
	m.mul(y[p0*PanelRows:], ldy, a, r0, r1, p0, p1)
}

// fineRows and fineNumbers bound the rows and products of fine's buffer. Larger tiles took the same time for a prompt, of which
// 54 % are products, 7 % preparing rows and adding, and 11 % the system clearing pages.
const fineRows, fineNumbers = 32, 4096

// fine multiplies the two prepared rows of each activation row, and adds the products.
func (m *Matrix) fine(y []float32, ldy int, a *Acts, r0, r1, p0, p1 int) {
	both := *a
	both.prec, both.rows = Fast, 2*a.rows
	var products [fineNumbers]float32
	rows := min(r1-r0, fineRows)
	panels := fineNumbers / (2 * rows * PanelRows)
	for p := p0; p < p1; p += panels {
		end := min(p+panels, p1)
		n := (end - p) * PanelRows
		lo, hi := p*PanelRows, min(end*PanelRows, m.spec.Rows)
		for r := r0; r < r1; r += rows {
			at, k := 2*r*a.groups, min(rows, r1-r)
			both.q, both.scale, both.sum, both.offset = a.q[2*r*a.stride:], a.scale[at:], a.sum[at:], a.offset[at:]
			m.mul(products[:], n, &both, 0, 2*k, p, end)
			for i := range k {
				Add(y[(r+i)*ldy+lo:][:hi-lo], products[2*i*n:][:hi-lo], products[(2*i+1)*n:][:hi-lo])
			}
		}
	}
}

// mul is Mul, checked, with y from the first column of p0.
func (m *Matrix) mul(y []float32, ldy int, a *Acts, r0, r1, p0, p1 int) {
	full := min(p1, m.spec.Rows/PanelRows)
	if full < p1 {
		m.lastPanel(y[(full-p0)*PanelRows:], ldy, a, r0, r1)
	}
	if full <= p0 {
		return
	}
	if n := m.blocked(a.prec, r1-r0); n > 0 {
		p := p0 + (full-p0)/blockPanels*blockPanels
		m.blocks(y, ldy, a, r0, r0+n, p0, p-p0)
		if p < full {
			m.tiles(y[(p-p0)*PanelRows:], ldy, a, r0, r0+n, p, full-p)
		}
		r0 += n
	}
	mid, step := r0, full-p0
	if a.prec != Outliers || r0%a.lists.tile == 0 {
		mid += m.many(a.codes(), r1-r0)
	}
	if r1-r0 > 1 && mid < r1 { // else one loop over all panels, or over all rows, does
		step = min(step, max(sharedBytes/m.panel, 1))
	}
	for p := p0; p < full; p += step {
		n, to := min(step, full-p), y[(p-p0)*PanelRows:]
		m.wide(to, ldy, a, r0, mid, p, n)
		m.tiles(to, ldy, a, mid, r1, p, n)
	}
}

// tiles runs panels whole panels from p for all rows, y starting at the column of the first panel.
func (m *Matrix) tiles(y []float32, ldy int, a *Acts, r0, r1, p, panels int) {
	for r := r0; r < r1; {
		n := m.inner(y[r*ldy:], ldy, a, r, min(r1-r, maxTile), p, panels)
		r += n
	}
}

// lastPanel computes the padded panel in a buffer and copies the outputs that exist, y starting at the first.
func (m *Matrix) lastPanel(y []float32, ldy int, a *Acts, r0, r1 int) {
	var part [maxTile * PanelRows]float32
	p := m.Panels() - 1
	cols := m.spec.Rows - p*PanelRows
	for r := r0; r < r1; {
		n := m.inner(part[:], PanelRows, a, r, min(r1-r, maxTile), p, 1)
		for i := range n {
			copy(y[(r+i)*ldy:][:cols], part[i*PanelRows:])
		}
		r += n
	}
}

// inner multiplies up to n rows from r with whole panels and tells how many rows it took.
func (m *Matrix) inner(y []float32, ldy int, a *Acts, r, n, p, panels int) int {
	var id routine
	if a.prec == Outliers { // rows of one list
		n = min(n, a.lists.tile-r%a.lists.tile)
	}
	if f := m.spec.Format; (!f.planes() || hasPlanes()) && (!f.small() || hasSmall()) && (a.prec != Half || hasHalf()) {
		id, n = mulTile(f, a.codes(), n)
	}
	if id == 0 {
		for i := range n {
			mulGeneric(m, y[i*ldy:], a, r+i, p, panels)
		}
		return n
	}
	args := mulArgs{
		w: unsafe.Pointer(&m.data[p*m.panel]), y: unsafe.Pointer(&y[0]),
		panels: panels, groups: m.groups, lines: m.spec.Group / 32, gStride: a.groups * 4, yStride: ldy * 4,
	}
	if m.spec.Scales == ScaleF32 {
		args.wide = 1
	}
	switch {
	case m.spec.Format.small():
		args.groups, args.lines = m.units, 1
	case m.Dense():
		args.groups = roundUp(m.spec.Cols, 4) / 4
	default:
		args.sum = unsafe.Pointer(&a.sum[r*a.groups])
	}
	switch a.prec {
	case Fast, Outliers:
		args.x, args.xStride = unsafe.Pointer(&a.q[r*a.stride]), a.stride
		args.scale, args.offset = unsafe.Pointer(&a.scale[r*a.groups]), unsafe.Pointer(&a.offset[r*a.groups])
		if a.prec == Outliers {
			args.outlierArgs = m.outliers(a, r)
			args.heads -= int(uintptr(args.scale))
		}
	case Half:
		args.x, args.xStride = unsafe.Pointer(&a.half[r*a.stride]), a.stride*2
	default:
		args.x, args.xStride = unsafe.Pointer(&a.x[r*a.stride]), a.stride*4
	}
	callMul(id, &args)
	return n
}
