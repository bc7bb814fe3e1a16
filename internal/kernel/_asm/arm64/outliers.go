package main

import "fmt"

// outliers is the product of high parts of a row with the quads of columns that are listed: see ../../outliers.go. Where
// codes lie comes with every quad, so that one routine serves all formats.
//
// General registers: R1 weights of the panel, R2 y, R3 groups, R4 quads, R5 x, R6 steps, R7 groups left, R8 quads left, R9
// weights of the group, R10 place of the quad, R11 and R12 scratch, R13 the stride of x and steps.
func (a *asm) outliers() {
	a.text("mulOutliersNEON", "outlierArgs")
	var b bank
	const panel = 4 // vectors of a panel
	sums, y := b.take(2*panel), b.take(panel)
	masks, table := b.take(2), b.one()
	x, shift, codes, more, wide := b.one(), b.one(), b.one(), b.one(), b.one()
	a.o("MOVD outlierArgs_w(R0), R1")
	a.o("MOVD outlierArgs_y(R0), R2")
	a.o("MOVD outlierArgs_tile(R0), R13")
	for i := range masks {
		a.o("MOVWU outlierArgs_masks+%d(R0), R22", 4*i)
		a.dupW(masks[i], 22)
	}
	a.o("MOVD $e2m1<>(SB), R22")
	a.load(0, "R22", table)
	a.label("panel")
	a.o("MOVD outlierArgs_groups(R0), R3")
	a.o("MOVD outlierArgs_quads(R0), R4")
	a.o("MOVD outlierArgs_x(R0), R5")
	a.o("MOVD outlierArgs_step(R0), R6")
	a.o("MOVD outlierArgs_listed(R0), R7")
	for v := range panel {
		a.load(16*v, "R2", y[v])
	}
	a.label("group")
	a.o("MOVWU (R3), R8")
	a.o("MOVWU 4(R3), R9")
	a.o("MOVD outlierArgs_group(R0), R11")
	a.o("MUL R11, R9")
	a.o("ADD R1, R9")
	for _, s := range sums {
		a.zero(s)
	}
	a.label("quad")
	a.o("MOVBU (R4), R10")
	a.o("MOVD outlierArgs_places(R0), R11")
	a.o("ADD R10<<5, R11, R10")
	a.o("MOVW (R5), R22")
	a.dupW(x, 22)
	a.v(sxtlB, x, x)
	for v := range panel {
		a.line(codes, shift, v, 0, 8, -1, masks[0])
		a.o("MOVWU outlierArgs_masks+4(R0), R12")
		a.o("CBZ R12, whole%d", v)
		a.line(more, shift, v, 4, 12, 16, masks[1])
		a.v(orr, codes, codes, more)
		a.label(fmt.Sprintf("whole%d", v))
		a.o("MOVD outlierArgs_table(R0), R12")
		a.o("CBZ R12, bytes%d", v)
		a.v(tbl, codes, table, codes)
		a.label(fmt.Sprintf("bytes%d", v))
		a.v(uxtlB, wide, codes)
		a.v(mul8h, wide, wide, x)
		a.v(sadalp, sums[2*v], wide)
		a.v(uxtl2B, wide, codes)
		a.v(mul8h, wide, wide, x)
		a.v(sadalp, sums[2*v+1], wide)
	}
	a.o("ADD R13, R5")
	a.o("ADD $1, R4")
	a.loop("R8", "quad")
	a.o("MOVD outlierArgs_codes(R0), R11")
	a.o("ADD R9, R11")
	a.o("FMOVS (R6), F%d", x)
	a.o("MOVD outlierArgs_wide(R0), R12")
	a.o("CBNZ R12, wide")
	for v := range panel {
		a.loadD(8*v, "R11", codes)
		a.v(shll, codes, codes)
		a.addHigh(sums[2*v:], y[v], codes, x)
	}
	a.o("B added")
	a.label("wide")
	for v := range panel {
		a.load(16*v, "R11", codes)
		a.addHigh(sums[2*v:], y[v], codes, x)
	}
	a.label("added")
	a.o("ADD R13, R6")
	a.o("ADD $8, R3")
	a.loop("R7", "group")
	for v := range panel {
		a.store(y[v], 16*v, "R2")
	}
	a.o("ADD $64, R2")
	a.o("MOVD outlierArgs_panel(R0), R11")
	a.o("ADD R11, R1")
	a.o("MOVD outlierArgs_panels(R0), R12")
	a.o("SUB $1, R12")
	a.o("MOVD R12, outlierArgs_panels(R0)")
	a.o("CBNZ R12, panel")
	a.end()
}

// line leaves bits of the quad's codes in d, from the line and by the shifts that its place has there.
func (a *asm) line(d, shift, v, at, right, left, mask int) {
	a.o("MOVWU %d(R10), R11", at)
	a.o("ADD R9, R11")
	a.load(16*v, "R11", d)
	a.o("MOVWU %d(R10), R12", right)
	a.o("NEG R12, R12")
	if left >= 0 {
		a.o("MOVWU %d(R10), R11", left)
		a.o("ADD R11, R12")
	}
	a.v(dupBytes, shift, 12)
	a.v(ushl16b, d, d, shift)
	a.v(and, d, d, mask)
}

// addHigh is the one formula, y = D·(weight scale · step) + y.
func (a *asm) addHigh(sums []int, y, scale, step int) {
	a.v(addp4s, sums[0], sums[0], sums[1])
	a.v(scvtf, sums[0], sums[0])
	a.e(fmulE, scale, scale, step, 0)
	a.v(fmla, y, sums[0], scale)
}
