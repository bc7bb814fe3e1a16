package main

import "math/bits"

// wide is the exact product of many rows with codes for AVX2. It makes floats of a group's codes once, in the nearest
// cache, and multiplies all rows with them three at a time: two registers of weights, six of broadcast products, two
// chains. Making them again for every tile of six rows, half a panel at a time, one Zen 3 thread did 72 of the 103 GFLOP/s
// that its multipliers can; so it does 82 with 12 rows, 90 with 63, and from there up to 86 (1024 columns) or 79 (3072) with 512.
//
// General registers: AX arguments, SI weights, DI y of the panel, R8 row stride of x, R9 bytes of a group of x, R10, DX
// and R14 sums, x and y of the tile, R11 and R12 sums and x of the group, R13 row stride of sums, BX groups left, R15
// floats, CX scratch.
type wide struct{ routine }

const (
	wideRows   = 3
	wideScales = 128 // bytes of scales and biases before the floats
	wideFrame  = wideScales + 128*64 + 32 + 16
	wideTiles  = "0(SP)"
	wideFloats = "8(SP)"
)

func wides() []wide {
	var out []wide
	for _, k := range manyKinds(false) {
		out = append(out, wide{routine{sets[0], k, wideRows}})
	}
	return out
}

func (w wide) wideName() string { return sprint("mulWide%sAVX2", short(w.kind)) }

// wideChain is the register of row m, half h, for columns that are c modulo two.
func wideChain(m, h, c int) int { return (m*2+h)*2 + c }

func (w wide) emitWide(a *asm) {
	a.raw("// func ", w.wideName(), "(a *wideArgs)\nTEXT ·", w.wideName(), "(SB), 0, ", sprint("$%d-8\n", wideFrame))
	a.o("NO_LOCAL_POINTERS")
	a.o("MOVQ a+0(FP), AX")
	a.o("MOVQ wideArgs_w(AX), SI")
	a.o("MOVQ wideArgs_y(AX), DI")
	a.o("MOVQ wideArgs_xStride(AX), R8")
	a.o("MOVQ wideArgs_lines(AX), R9")
	a.o("SHLQ $%d, R9", 4+bits.TrailingZeros(uint(w.kind.quads())))
	a.o("MOVQ wideArgs_gStride(AX), R13")
	a.o("LEAQ 47(SP), R15")
	a.o("ANDQ $-32, R15")
	a.o("MOVQ R15, %s", wideFloats)
	a.label("panel")
	w.clear(a)
	a.o("MOVQ wideArgs_x(AX), R12")
	a.o("MOVQ wideArgs_sum(AX), R11")
	a.o("MOVQ wideArgs_groups(AX), BX")
	a.label("group")
	w.floats(a)
	w.tiles(a)
	a.o("ADDQ R9, R12")
	a.o("ADDQ $4, R11")
	a.o("DECQ BX")
	a.o("JNZ group")
	a.o("ADDQ $64, DI")
	a.o("DECQ wideArgs_panels(AX)")
	a.o("JNZ panel")
	a.o("VZEROUPPER")
	a.o("RET\n")
}

// clear zeroes y of the panel.
func (w wide) clear(a *asm) {
	a.o("VPXOR Y0, Y0, Y0")
	a.o("MOVQ DI, R14")
	a.o("MOVQ wideArgs_tiles(AX), CX")
	a.label("zero")
	for range wideRows {
		a.o("VMOVUPS Y0, (R14)")
		a.o("VMOVUPS Y0, 32(R14)")
		a.o("ADDQ wideArgs_yStride(AX), R14")
	}
	a.o("DECQ CX")
	a.o("JNZ zero")
}

// floats writes the group's scales, biases and codes as floats and steps SI over the group.
func (w wide) floats(a *asm) {
	w.loadConstants(a)
	a.o("MOVQ %s, R15", wideFloats)
	a.o("MOVQ wideArgs_lines(AX), CX")
	quads, cols, bytes := 1, 8, 64
	switch {
	case w.kind.planes(): // a part of 32 columns, or 16
		quads, cols = w.kind.quads(), 4
		bytes = 8 * quads * w.kind.bits()
	case w.kind.bits() == 8:
		cols = 4
		a.o("SHLQ $3, CX")
	default:
		a.o("SHLQ $2, CX")
	}
	a.label("line")
	for q := range quads {
		if w.kind.planes() {
			w.prefetchPart(a, q)
			w.quad(a, q, 0, 0, 2, 12)
			w.quad(a, q, 1, 1, 2, 12)
		} else {
			a.o("PREFETCHT0 2048(SI)")
			a.o("VMOVDQU (SI), Y0")
			a.o("VMOVDQU 32(SI), Y1")
		}
		for col := range cols {
			for h := range 2 {
				w.widen(a, col, h, 2+h)
				a.o("VMOVUPS Y%d, %d(R15)", 2+h, wideScales+(q*cols+col)*64+h*32)
			}
		}
	}
	a.o("ADDQ $%d, SI", bytes)
	a.o("ADDQ $%d, R15", quads*cols*64)
	a.o("DECQ CX")
	a.o("JNZ line")
	a.o("MOVQ %s, R15", wideFloats)
	if w.kind.small() {
		w.smallScales(a)
		return
	}
	a.o("CMPQ wideArgs_wide(AX), $0")
	a.o("JNE wide")
	for i := range 4 {
		a.o("VPMOVZXWD %d(SI), Y0", i*16)
		a.o("VPSLLD $16, Y0, Y0")
		a.o("VMOVDQU Y0, %d(R15)", i*32)
	}
	a.o("ADDQ $64, SI")
	a.o("JMP scaled")
	a.label("wide")
	for i := range 4 {
		a.o("VMOVUPS %d(SI), Y0", i*32)
		a.o("VMOVUPS Y0, %d(R15)", i*32)
	}
	a.o("ADDQ $128, SI")
	a.label("scaled")
}

// tiles multiplies all rows with the floats; y = bias·sum + y; y = d·(weight scale) + y.
func (w wide) tiles(a *asm) {
	a.o("MOVQ R12, DX")
	a.o("MOVQ R11, R10")
	a.o("MOVQ DI, R14")
	a.o("MOVQ wideArgs_tiles(AX), CX")
	a.o("MOVQ CX, %s", wideTiles)
	a.label("tile")
	for i := range 4 * wideRows {
		w.zero(a, i)
	}
	a.o("MOVQ %s, R15", wideFloats)
	a.o("MOVQ R9, CX")
	a.o("SHRQ $4, CX")
	a.label("cols")
	for col := range 4 {
		for h := range 2 {
			a.o("VMOVUPS %d(R15), Y%d", wideScales+col*64+h*32, 12+h)
		}
		for m := range wideRows {
			a.o("VBROADCASTSS %s, Y15", w.x(m, col*4))
			for h := range 2 {
				a.o("VFMADD231PS Y15, Y%d, Y%d", 12+h, wideChain(m, h, col%2))
			}
		}
	}
	a.o("ADDQ $256, R15")
	a.o("ADDQ $16, DX")
	a.o("DECQ CX")
	a.o("JNZ cols")
	a.o("MOVQ %s, R15", wideFloats)
	for m := range wideRows {
		if !w.kind.small() {
			a.o("VBROADCASTSS (R10), Y15")
		}
		for h := range 2 {
			d, y := wideChain(m, h, 0), wideChain(m, h, 1)
			a.o("VADDPS Y%d, Y%d, Y%d", y, d, d)
			a.o("VMOVUPS %d(R14), Y%d", h*32, y)
			if !w.kind.small() {
				a.o("VFMADD231PS %d(R15), Y15, Y%d", 64+h*32, y)
			}
			a.o("VFMADD231PS %d(R15), Y%d, Y%d", h*32, d, y)
			a.o("VMOVUPS Y%d, %d(R14)", y, h*32)
		}
		a.o("ADDQ R13, R10")
		a.o("ADDQ wideArgs_yStride(AX), R14")
	}
	a.o("SUBQ R9, DX")
	a.o("LEAQ (DX)(R8*2), DX")
	a.o("ADDQ R8, DX")
	a.o("DECQ %s", wideTiles)
	a.o("JNZ tile")
}
