package main

import "fmt"

// types are those of package kernel.
var types = []string{"F32", "BF16", "F16", "Q8", "Q4"}

func quantised(t string) bool { return t[0] == 'Q' }

// packing is how many numbers of a row take the place of one float32.
func packing(t string) int { return map[string]int{"F32": 1, "BF16": 2, "F16": 2, "Q8": 4, "Q4": 8}[t] }

func rowName(what, t string, rows int) string {
	return fmt.Sprintf("attn%sRows%s%dNEON", what, t, rows)
}

// load8 leaves eight numbers in registers x and x+1, with pair, scale and bias of codes in its first lanes: number 8i and
// those after it of a row at p. t is lost.
func (a *asm) load8(typ, p string, i, x, pair, t int) {
	switch typ {
	case "F32":
		a.load(32*i, p, x)
		a.load(32*i+16, p, x+1)
	case "BF16":
		a.load(16*i, p, x)
		a.v(shll2, x+1, x)
		a.v(shll, x, x)
	case "F16":
		a.load(16*i, p, x)
		a.v(fcvtl2, x+1, x)
		a.v(fcvtl, x, x)
	default:
		if typ == "Q8" {
			a.loadD(8*i, p, t)
		} else {
			a.loadD(8*(i/2), p, t)
			if i%2 == 0 {
				a.shl16b(t, t, 4)
			}
			a.ushr16b(t, t, 4)
		}
		a.v(uxtlB, t, t)
		for h, code := range []int{x + 1, t} {
			a.v([]op{uxtl, uxtl2}[h], code, t)
			a.v(scvtf, code, code)
			a.dup(x+h, pair, 1)
			a.e(fmlaE, x+h, code, pair, 0)
		}
	}
}

// pair reads the scale and the bias at p to the first lanes of d. t is lost.
func (a *asm) pair(p string, d, t int) {
	a.o("FMOVS %s, F%d", p, d)
	a.shl(t, d, 16)
	a.ushr(d, d, 16)
	a.shl(d, d, 16)
	a.v(zip1, d, t, d)
}

// widenRows writes rows as float32 numbers, vectors of eight apart as the arguments say: keys and values go to tiles of
// different form. Numbers of codes are scale·code + bias.
func (a *asm) widenRows(t string) {
	a.text("attnWiden"+t+"NEON", "widenArgs")
	a.fields("widenArgs", "src", "dst", "rows", "odd", "pair", "stride", "row", "group", "tail")
	a.label("group")
	a.o("MOVD R2, R10")
	a.o("MOVD $4, R11")
	a.label("row")
	a.o("MOVD R1, R12")
	a.o("MOVD R10, R13")
	if quantised(t) {
		a.o("ADD R9, R1, R14")
		a.o("MOVD widenArgs_scales(R0), R15")
		a.label("scale")
		a.pair("(R14)", 30, 31)
		a.o("ADD $4, R14")
	}
	a.o("MOVD widenArgs_pairs(R0), R17")
	a.label("pair")
	for i := range 2 {
		a.load8(t, "R12", i, 2*i, 30, 31)
	}
	a.o("ADD $%d, R12", 64/packing(t))
	a.store(0, 0, "R13")
	a.store(1, 16, "R13")
	a.o("ADD R4, R13, R16")
	a.store(2, 0, "R16")
	a.store(3, 16, "R16")
	a.o("ADD R5, R13")
	a.loop("R17", "pair")
	if quantised(t) {
		a.loop("R15", "scale")
	}
	a.o("ADD R6, R1")
	a.o("ADD R7, R10")
	a.o("SUB $1, R3")
	a.o("CBZ R3, done")
	a.loop("R11", "row")
	a.o("ADD R8, R2")
	a.o("B group")
	a.label("done")
	a.end()
}

// rowScores and rowValues read rows as they are stored, without a tile: for the few queries of a step that decodes, where
// widening once would cost more than it saves. Their sums are those of the tile routines.

// rowScores writes the products of up to two queries with groups of four keys. Rows past the last key are the last key
// again.
func (a *asm) rowScores(t string, rows int) {
	a.text(rowName("Score", t, rows), "attnArgs")
	a.fields("attnArgs", "q", "s", "qStride", "k", "kStride", "last", "keys")
	var b bank
	acc := a.lanes(&b, rows)
	k, q := b.take(2), b.take(2*rows)
	scratch, pairs := b.one(), make([]int, 4)
	if quantised(t) {
		pairs = b.take(4)
	}
	a.label("keys")
	a.o("MOVD R4, R8")
	for i := 1; i < 4; i++ {
		a.o("ADD R5, R%d, R%d", 7+i, 8+i)
		a.o("CMP R6, R%d", 8+i)
		a.o("CSEL HI, R6, R%d, R%d", 8+i, 8+i)
	}
	a.clear(acc)
	a.o("MOVD R1, R12")
	if rows > 1 {
		a.o("ADD R3, R12, R13")
	}
	if quantised(t) {
		a.o("MOVD attnArgs_tail(R0), R14")
		a.o("MOVD attnArgs_scales(R0), R15")
		for i := range 4 {
			a.o("ADD R14, R%d, R%d", 8+i, 19+i)
		}
		a.label("scale")
		for i := range 4 {
			a.pair(fmt.Sprintf("(R%d)", 19+i), pairs[i], scratch)
			a.o("ADD $4, R%d", 19+i)
		}
	}
	a.o("MOVD attnArgs_steps(R0), R17")
	a.label("loop")
	for half := range 2 {
		for r := range rows {
			for h := range 2 {
				a.load(32*half+16*h, fmt.Sprintf("R%d", 12+r), q[2*r+h])
			}
		}
		for i := range 4 {
			a.load8(t, fmt.Sprintf("R%d", 8+i), half, k[0], pairs[i], scratch)
			for r := range rows {
				for h := range 2 {
					a.v(fmla, acc[r][i][h], k[h], q[2*r+h])
				}
			}
		}
	}
	for i := range 4 {
		a.o("ADD $%d, R%d", 64/packing(t), 8+i)
	}
	for r := range rows {
		a.o("ADD $64, R%d", 12+r)
	}
	a.loop("R17", "loop")
	if quantised(t) {
		a.loop("R15", "scale")
	}
	for r := range rows {
		a.fold4(acc[r], k[0])
		a.store(acc[r][0][0], rowBytes*r, "R2")
	}
	a.o("ADD $16, R2")
	a.o("ADD R5<<2, R4")
	a.loop("R7", "keys")
	a.end()
}

// rowValues adds weighted rows to the sums of up to two queries, 32 columns at a time.
func (a *asm) rowValues(t string, rows int) {
	a.text(rowName("Value", t, rows), "attnArgs")
	a.fields("attnArgs", "acc", "accStride", "v", "vStride", "s")
	var b bank
	acc, x, p := b.take(8*rows), b.take(2), b.take(rows)
	pair, scratch := b.one(), b.one()
	a.o("MOVD R1, R8")
	a.rowPointers(rows, "R2")
	a.o("MOVD attnArgs_strips(R0), R12") // of 32 columns: all, of codes under one scale
	if quantised(t) {
		a.o("MOVD attnArgs_tail(R0), R13")
		a.o("ADD R3, R13")
		a.o("MOVD attnArgs_scales(R0), R14")
		a.label("scale")
		a.o("MOVD attnArgs_strips(R0), R12")
	}
	a.label("strip")
	at := func(i int) string { return fmt.Sprintf("R%d", 8+i/8) }
	for i, d := range acc {
		a.load(16*(i%8), at(i), d)
	}
	a.o("MOVD R3, R15")
	a.o("MOVD R5, R16")
	if quantised(t) {
		a.o("MOVD R13, R19")
	}
	a.o("MOVD attnArgs_positions(R0), R17")
	a.label("loop")
	if quantised(t) {
		a.pair("(R19)", pair, scratch)
		a.o("ADD R4, R19")
	}
	for r := range rows {
		a.o("FMOVS %d(R16), F%d", rowBytes*r, p[r])
	}
	for i := range 4 {
		a.load8(t, "R15", i, x[0], pair, scratch)
		for r := range rows {
			for h := range 2 {
				a.e(fmlaE, acc[8*r+2*i+h], x[h], p[r], 0)
			}
		}
	}
	a.o("ADD $4, R16")
	a.o("ADD R4, R15")
	a.loop("R17", "loop")
	for i, d := range acc {
		a.store(d, 16*(i%8), at(i))
	}
	for r := range rows {
		a.o("ADD $128, R%d", 8+r)
	}
	a.o("ADD $%d, R3", 128/packing(t))
	a.loop("R12", "strip")
	if quantised(t) {
		a.o("ADD $4, R13")
		a.loop("R14", "scale")
	}
	a.end()
}
