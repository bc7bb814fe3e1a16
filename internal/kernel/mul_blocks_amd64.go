//go:build amd64 && !purego

package kernel

import (
	"sync"
	"unsafe"
)

// Products of many rows with dense weights go through the caches in blocks: floats of blockCols columns of two panels are made
// once, in the nearest cache, for blockRows rows of x, whose columns stay in the second-level cache for all panels. Sums of a
// tile of blockTile rows wait in memory from one block of columns to the next. An output's order of additions is that of the
// other routines.

// blockArgs is what these routines get.
type blockArgs struct {
	w       unsafe.Pointer // first panel, at the first column
	floats  unsafe.Pointer // of the columns of two panels
	x       unsafe.Pointer // first row, first column
	sums    unsafe.Pointer // [tile][blockSums]
	y       unsafe.Pointer // first row, first column of the first panel
	panel   int            // bytes
	quads   int            // of columns
	tiles   int
	xStride int // bytes between rows of x
	yStride int // bytes between rows of y
	first   int // not 0: sums begin
	last    int // not 0: sums are written to y
}

const (
	blockTile   = 6
	blockPanels = 2
	blockSums   = blockTile * blockPanels * 2 * PanelRows
	blockCols   = 192
	blockRows   = 40 * blockTile
	blockWide   = 8 // panels of a block of rows
	// leastBlock is from how many rows on making floats pays.
	leastBlock = 4 * blockTile
)

// blockSpace is scratch memory of blocks.
type blockSpace struct {
	floats []float32 // [blockCols][blockPanels·PanelRows]
	sums   []float32 // [blockWide/blockPanels][blockRows/blockTile][blockSums]
}

// blockSpaces has one for every thread that multiplies.
var blockSpaces = sync.Pool{New: func() any {
	return &blockSpace{floats: AlignedFloats(blockCols * blockPanels * PanelRows),
		sums: AlignedFloats(blockWide / blockPanels * (blockRows / blockTile) * blockSums)}
}}

//go:noescape
func mulFloatsBF16AVX512(a *blockArgs)

//go:noescape
func mulFloatsF32AVX512(a *blockArgs)

//go:noescape
func mulBlocksAVX512(a *blockArgs)

// blocked is how many of n rows go in blocks.
func (m *Matrix) blocked(prec Precision, n int) int {
	if !useAVX512 || prec != Floats || m.spec.Format != DenseBF16 && m.spec.Format != DenseF32 || n < leastBlock {
		return 0
	}
	return n - n%blockTile
}

// blocks multiplies rows [r0, r1), as many as blocked said, with panels whole panels from p, an even number, y starting at their
// first column.
func (m *Matrix) blocks(y []float32, ldy int, a *Acts, r0, r1, p, panels int) {
	s := blockSpaces.Get().(*blockSpace)
	defer blockSpaces.Put(s)
	cols, bytes := roundUp(m.spec.Cols, 4), m.spec.Format.bits()/8
	args := blockArgs{floats: ptr(s.floats), panel: m.panel, xStride: 4 * a.stride, yStride: 4 * ldy}
	for end := p + panels; p < end; p, y = p+blockWide, y[min(blockWide*PanelRows, len(y)):] {
		for r := r0; r < r1; r += blockRows {
			args.tiles = min(blockRows, r1-r) / blockTile
			for c := 0; c < cols; c += blockCols {
				n := min(blockCols, cols-c)
				args.quads, args.first, args.last = n/4, 0, 0
				if c == 0 {
					args.first = 1
				}
				if c+n == cols {
					args.last = 1
				}
				args.x = f32ptr(a.x, r*a.stride+c)
				for q := p; q < min(p+blockWide, end); q += blockPanels {
					args.w = unsafe.Pointer(&m.data[q*m.panel+c*PanelRows*bytes])
					if m.spec.Format == DenseBF16 {
						mulFloatsBF16AVX512(&args)
					} else {
						mulFloatsF32AVX512(&args)
					}
					args.sums = f32ptr(s.sums, (q-p)/blockPanels*(blockRows/blockTile)*blockSums)
					args.y = f32ptr(y, r*ldy+(q-p)*PanelRows)
					mulBlocksAVX512(&args)
				}
			}
		}
	}
}
