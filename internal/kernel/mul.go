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
}

// sharedBytes is how much of a matrix the tiles of rows go through one after the other: it stays in the second-level
// cache meanwhile. Products from there are as fast as from the nearest cache, which holds one panel and its rows of x.
// Where there is AVX-512 that cache has a megabyte or more.
var sharedBytes = leastShared

const leastShared, mostShared = 128 << 10, 256 << 10

// maxTile bounds the rows of one inner routine.
const maxTile = 12

// Mul writes y[r*ldy+n] = Σ_k x[r,k]·W[n,k] for activation rows r in [r0, r1) and weight rows n of panels [p0, p1).
// Other elements of y stay as they are, so threads may fill disjoint panels of one y. a must have been reset with m's
// Cols and Group, with Half only for DenseBF16.
//
// One row is bound by memory: m.PanelBytes() per panel, each once (4-bit codes at group 64: 4.5 bits a weight). Several
// rows share what is read, up to the tile of the routine. Tried for one row of 4-bit codes with AVX2, one Zen 3 thread
// at 3.0 GHz against a plain read at 22 GB/s:
//
//	sums in 16 bits over 32 columns, 32-bit sums and y per group   42 GB/s from cache, 16.6 (75 %) from memory
//	the same, prefetching 1, 2, 4 KiB ahead                        19.3, 21.2 (96 %), 20.5 GB/s from memory
//
// Several rows are bound by arithmetic. For 4-bit codes, GOPS of one such thread at 3.2 GHz, codes in the second-level cache and
// from memory. VPMADDUBSW and VPADDW share two of four pipes: alone, pairs of them reach 337 to 355, with the loads, broadcasts and
// widening that they need 320, and the rest of a group's work costs 15 %.
//
//	8 rows: four rows by a panel, sums of a block of groups first  226, 212
//	8 rows: eight rows by half a panel                             211
//	8 rows: x copied eight times as an operand                     234, 174: the order that suits the cache breaks the stream
//	8 rows: bytes of the codes made for the first four (tall.go)   234
//	64 rows: panels one at a time; in blocks; tall.go              221; 231; 251
//	tall.go, sums and their widening in the order of products      231: products of both halves come first, then their sums
//	tall.go, parts of a group added while finishing, scales again  231: that is bound by loads; added when stored, scales kept
//	VPADDSW in place of VPADDW                                     slower: it runs on the multipliers' pipes alone
//
// Other widths, 64 rows, busy machine, where 4 bits did 247: 245 (3 bits), 224 (5), 200 (6: sums of two products fill 16 bits), 232
// (e2m1), 117 (8 bits). One row, from cache: 5 and 6 bits 22 to 27 GB/s of packed codes, 3 bits 15.
//
// Rounded activations with AVX-512, one Zen 5 thread beside others, GOPS of 1030 with VNNI, 1024 columns in the second-level cache:
//
//	                                                  4 bits              8 bits              5 bits
//	rows                                              1   2   8  12 512   1   2   8  12 512   1   2   8  12 512
//	VPDPBUSD, eight rows, y in memory                464 616 763 720 703 400 511 725 687 673 126 182 278 297 327
//	twelve rows, y in registers (tile.go)            459 598 786 830 816 412 540 764 801 785 301 487 748 797 787
//	the same, lines of several quads loaded for each 419 534 767 819 820 415 537 770 801   - 293 427 702 753 750
//	VPMADDUBSW, of 930, eight rows (8 bits: y in
//	memory, halves of codes)                         400 508 621 613 610 230 293 350 347 346 277 391 530 522 514
//	AVX-VNNI, of 520, four rows; bytes made first    252 336 402 405 405 254 343 399 395 393 145 234 377 385 398
//
// In the first line 5 bits have AVX2's routines. A group costs a row three multiplications for sixteen products, which is 84 % of the
// limit at 64 columns, and each product takes a number of x straight from memory, one of two loads a cycle. Two panels at a time share
// these: 703 GOPS with two rows and 783 with eight where one panel had 548 and 743, but 795 and 785 with twelve, and y no longer fits
// in registers; memory does not give two threads with so few rows that much. Rows of x whose distance is a power of two are a tenth slower from
// 4096 columns on (see apart).
//
// From memory software prefetches help Zen 5: GB/s, where plain loads read 39 on the same thread, asking so far ahead:
//
//	                          4 bits                5 bits                8 bits                bfloat16, exact
//	rows                       1    2    8   12     1    2    8           1    2    8           1    2    8   12
//	no                       38.8 35.8 13.0  8.3  36.7 34.3 12.0        43.3 40.8 24.3        37.2 29.5  8.4  7.9
//	4 KiB                    40.6 38.8 24.0       38.7 36.8 26.3        37.9 38.3 31.8
//	8 KiB                    41.3 40.1 26.1 17.2  39.4 37.2 29.5        39.4 38.2 36.1        37.8 37.6 28.0 19.7
//	16 KiB                   39.3 37.7 26.0       36.9 36.8 29.6        39.5 38.7 35.7
//
// Floats, 4-bit codes, of 103 GFLOP/s: four or six rows by half a panel 71 and 75; floats made aside 90 with 63 rows (see
// wide). Bfloat16 weights, 64 rows: four rows by half a panel 82, three by a whole one 96.
//
// Floats with AVX-512, of 258 GFLOP/s of one Zen 5 thread, beside others, 1024 columns in the second-level cache:
//
//	                                               4 bits      6 bits      bfloat16    float32
//	rows                                           2   12 512  2   12 512  2   12 512  2   12 512
//	four rows, four sums of each                   206 231 227  68  93  92 173 211 205  90 188 185
//	six rows, four sums of each                    200 222 222 137 207 210 184 227 218 154 204 199
//	twelve rows, two sums of each                  154 228 230 128 230 218 129 233 234 121 218 214
//
// Each product reads a number of x as it goes, which the two loads of a cycle bound to 86 % of the multipliers with six rows and to
// 92 % with twelve. Two sums have the bits of AVX2, and one row still takes codes faster than memory gives them (8 bits 50 GB/s, 4
// bits 32). Codes in planes of 2 and 3 bits and e2m1 do as 4 bits, 5 bits as 6; in the first line those of 6 bits have AVX2's routines.
//
// Bfloat16 weights and activations with AVX512_BF16, where two products of a lane cost what one does in float32 (516 GFLOP/s of the same
// thread), columns and cache as before:
//
//	rows                                     1    2    8   12   63  512
//	float32 activations                     68  131  244  250  242  242
//	bfloat16, one sum of each               50   95  360  476         475
//	two, of even and odd pairs of columns   97  181  454  475  460  475
//
// From memory, beside others, float32 and bfloat16 activations read 32 and 36 GB/s with one row, 26 and 27 with eight, 17 and 27 with twelve.
//
// Small floats with AVX-512, the same thread, 1, 12 and 512 rows: e4m3 84, 202 and 192 GFLOP/s (making its floats takes a
// multiplication per column as well), e2m1 125, 220 and 200; e2m1 with rounded activations 340, 633 and 629 GOPS with VNNI, 272, 506
// and 505 without.
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
	if a.prec == Fine {
		m.fine(y, ldy, a, r0, r1, p0, p1)
		return
	}
	m.mul(y[p0*PanelRows:], ldy, a, r0, r1, p0, p1)
}

// fineRows bounds the rows whose two products are kept aside, fineNumbers the products. Whole tiles of rows (36) and as many panels
// at a time took the same time for a prompt: of that 54 % are products, 7 % preparing rows and adding, 11 % the system's clearing of pages.
const fineRows, fineNumbers = 32, 4096

// fine multiplies both rows of numbers that a row has become, and adds.
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
	mid, step := r0+m.many(a.prec, r1-r0), full-p0
	if r1-r0 > 1 && mid < r1 { // else every row goes past all panels, or all rows past every panel
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
		n := min(r1-r, maxTile)
		n = m.inner(y[r*ldy:], ldy, a, r, n, p, panels)
		r += n
	}
}

// lastPanel computes the padded panel aside and copies the outputs that exist, y starting at the first.
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
	if f := m.spec.Format; (!f.planes() || hasPlanes()) && (!f.small() || hasSmall()) && (a.prec != Half || hasHalf()) {
		id, n = mulTile(f, a.prec, n)
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
	case Fast:
		args.x, args.xStride = unsafe.Pointer(&a.q[r*a.stride]), a.stride
		args.scale, args.offset = unsafe.Pointer(&a.scale[r*a.groups]), unsafe.Pointer(&a.offset[r*a.groups])
	case Half:
		args.x, args.xStride = unsafe.Pointer(&a.half[r*a.stride]), a.stride*2
	default:
		args.x, args.xStride = unsafe.Pointer(&a.x[r*a.stride]), a.stride*4
	}
	callMul(id, &args)
	return n
}
