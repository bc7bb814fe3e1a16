package main

import "fmt"

// The routines for many rows make bytes or floats of a group's codes once, in the nearest cache, and multiply all rows with
// them, a tile at a time. Their results are those of the others to the bit.
//
// General registers as in routine, but R2 is y of the tile and R6 that of the panel, R12 x of the tile and R14 that of the
// group, R13 tiles left, R20 panels left, R23 scales and sums of the tile and R25 those of the group, R24 scratch.
const (
	wideRows   = 3
	tallRows   = 4
	wideScales = 128 // bytes of scales and biases before the floats
	wideFrame  = unpackedBytes + wideScales + 128*64
)

// manyBegin opens the loops over panels and groups and leaves bytes of the group's codes at R15.
func (a *asm) manyBegin(rows int) {
	a.o("MOVD wideArgs_w(R0), R1")
	a.o("MOVD wideArgs_y(R0), R6")
	a.o("MOVD wideArgs_panels(R0), R20")
	a.o("MOVD wideArgs_xStride(R0), R3")
	a.o("MOVD wideArgs_yStride(R0), R19")
	a.o("MOVD wideArgs_gStride(R0), R7")
	a.o("MOVD wideArgs_sum(R0), R5")
	a.wide("wideArgs", true)
	a.label("panel")
	a.zero(0)
	a.o("MOVD R6, R2")
	a.o("MOVD wideArgs_tiles(R0), R13")
	a.label("clear")
	for range rows {
		for v := range 4 {
			a.store(0, v*16, "R2")
		}
		a.o("ADD R19, R2")
	}
	a.loop("R13", "clear")
	a.o("MOVD wideArgs_x(R0), R14")
	a.o("MOVD $0, R25")
	a.o("MOVD wideArgs_groups(R0), R16")
	a.label("group")
	a.o("MOVD wideArgs_lines(R0), R17")
	a.o("CMP $%d, R26", codes8)
	a.o("BEQ bytes")
	a.bytesAt("R15", 0)
	a.o("CALL ·unpackNEON(SB)")
	a.bytesAt("R15", 0)
	a.o("B unpacked")
	a.label("bytes")
	a.o("MOVD R1, R15")
	a.o("ADD R17<<9, R1")
	a.label("unpacked")
	a.o("MOVD wideArgs_lines(R0), R17")
}

// manyTiles opens the loop over tiles, with R8 and up the rows of x.
func (a *asm) manyTiles(rows int) {
	a.o("MOVD R14, R12")
	a.o("MOVD R6, R2")
	a.o("MOVD R25, R23")
	a.o("MOVD wideArgs_tiles(R0), R13")
	a.label("tile")
	a.o("MOVD R12, R8")
	a.rowPointers(rows, "R3")
	a.o("ADD R3, %s, R12", x(rows-1))
	a.o("MOVD wideArgs_lines(R0), R17")
}

// manyEnd closes all loops. xBytes is what a column of x takes.
func (a *asm) manyEnd(rows, xBytes int) {
	for range rows {
		a.o("ADD R19, R2")
		a.o("ADD R7, R23")
	}
	a.loop("R13", "tile")
	a.o("ADD $64, R1")
	a.o("ADD R21<<6, R1")
	a.o("MOVD wideArgs_lines(R0), R17")
	a.o("ADD R17<<%d, R14", map[int]int{1: 5, 4: 7}[xBytes])
	a.o("ADD $4, R25")
	a.loop("R16", "group")
	a.o("ADD $64, R6")
	a.loop("R20", "panel")
	a.end()
}

// tall is the fast product of many rows.
func (s set) tall(a *asm) {
	r := routine{s, fastBytes, tallRows}
	a.framed("mulTall"+s.String(), "wideArgs", unpackedBytes)
	a.o("MOVD wideArgs_scale(R0), R4")
	a.manyBegin(tallRows)
	if s == i8mm {
		a.zip()
	}
	a.manyTiles(tallRows)
	for pass := range r.passes() {
		g := &group{routine: r, asm: a, pass: pass, l: fmt.Sprint(pass), tall: true, zipped: s == i8mm}
		if pass > 0 {
			a.o("SUB R3, R12, %s", x(tallRows-1))
			for m := tallRows - 1; m > 0; m-- {
				a.o("SUB R3, %s, %s", x(m), x(m-1))
			}
			a.o("MOVD wideArgs_lines(R0), R17")
		}
		a.bytesAt("R15", 0)
		g.sums()
	}
	a.manyEnd(tallRows, 1)
}

// zip turns two lines of bytes into vectors of two rows of eight codes each.
func (a *asm) zip() {
	a.bytesAt("R24", 0)
	a.o("LSL $2, R17")
	a.label("zip")
	for v := range 4 {
		a.load(16*v, "R15", v)
		a.load(64+16*v, "R15", 4+v)
	}
	for v := range 4 {
		a.v(zip1, 8, v, 4+v)
		a.v(zip2, 9, v, 4+v)
		a.store(8, 32*v, "R24")
		a.store(9, 32*v+16, "R24")
	}
	a.o("ADD $128, R15")
	a.o("ADD $128, R24")
	a.loop("R17", "zip")
}

// wideProduct is the exact product of many rows: 24 sums, four vectors of weights, three of x.
func (a *asm) wideProduct() {
	a.framed("mulWideNEON", "wideArgs", wideFrame)
	a.manyBegin(wideRows)
	a.floats()
	a.manyTiles(wideRows)
	var b bank
	sum := func(m, v, c int) int { return (m*4+v)*2 + c }
	b.take(8 * wideRows)
	xs, ws := b.take(wideRows), b.take(4)
	for i := range 8 * wideRows {
		a.zero(i)
	}
	a.bytesAt("R15", unpackedBytes+wideScales)
	a.o("LSL $3, R17")
	a.label("cols")
	for m := range wideRows {
		a.load(0, x(m), xs[m])
	}
	for col := range 4 {
		for v := range 4 {
			a.load(col*64+v*16, "R15", ws[v])
		}
		for m := range wideRows {
			for v := range 4 {
				a.e(fmlaE, sum(m, v, col%2), ws[v], xs[m], col)
			}
		}
	}
	for m := range wideRows {
		a.o("ADD $16, %s", x(m))
	}
	a.o("ADD $256, R15")
	a.loop("R17", "cols")
	a.bytesAt("R15", unpackedBytes)
	for m := range wideRows {
		if m == 0 {
			a.o("ADD R5, R23, R24")
			a.o("MOVD R2, R22")
		} else {
			a.o("ADD R7, R24")
			a.o("ADD R19, R22")
		}
		a.o("FMOVS (R24), F%d", xs[0])
		for v := range 4 {
			d, y := sum(m, v, 0), sum(m, v, 1)
			a.v(fadd, d, d, y)
			a.load(v*16, "R22", y)
			a.load(64+v*16, "R15", ws[0])
			a.load(v*16, "R15", ws[1])
			a.e(fmlaE, y, ws[0], xs[0], 0)
			a.v(fmla, y, d, ws[1])
			a.store(y, v*16, "R22")
		}
	}
	a.manyEnd(wideRows, 4)
}

// floats makes floats of the bytes at R15 and of the scales at R1.
func (a *asm) floats() {
	var b bank
	mask, raw, dst := b.one(), b.take(4), b.take(8)
	a.constant(mask, 255)
	a.bytesAt("R24", unpackedBytes+wideScales)
	a.o("LSL $3, R17")
	a.label("quad")
	for v := range 4 {
		a.load(v*16, "R15", raw[v])
	}
	for i := range 4 {
		for v := range 4 {
			d := dst[(4*i+v)%8]
			a.float(exactBytes, 0, i, raw[v], d, mask)
			a.store(d, i*64+v*16, "R24")
		}
	}
	a.o("ADD $64, R15")
	a.o("ADD $256, R24")
	a.loop("R17", "quad")
	a.bytesAt("R24", unpackedBytes)
	a.o("CBNZ R21, wide")
	for i := range 8 {
		a.loadD(i*8, "R1", i)
		a.v(shll, i, i)
	}
	a.o("B scaled")
	a.label("wide")
	for i := range 8 {
		a.load(i*16, "R1", i)
	}
	a.label("scaled")
	for i := range 8 {
		a.store(i, i*16, "R24")
	}
}
