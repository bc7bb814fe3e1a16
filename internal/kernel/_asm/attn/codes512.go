package main

import (
	"fmt"
	"math"
)

// Routines of attention on 8-bit codes, for AVX512_VNNI: see attn_codes.go, which says what they give.

const (
	codeRows    = 6 // rows of parts that share lines, by 64 keys or columns: 24 sums
	codeColumns = 4 // vectors of 16 keys or columns
	codeQuads   = 16
	codeQueries = 2 // that take rows as they are stored
	codeGroup   = 4 * codeQuads
	partReach   = 127 * 256
)

// codeAttention512 writes them all.
func (a *asm) codeAttention512() {
	a.WriteString(opening)
	a.weightConstants()
	a.word("least100", math.Float32bits(-100))
	a.word("leastPart", math.Float32bits(0x1p-100))
	a.word("partReach", math.Float32bits(partReach))
	a.word("perPart", math.Float32bits(1/float32(partReach)))
	a.word("abs", 0x7fffffff)
	a.word("low8", 0x00ff00ff)
	a.word("half8", 0x00800080)
	a.word("high16", 0xffff0000)
	a.words("ascending", func(i int) int { return i })
	a.words("turned", func(i int) int { return i%4*4 + i/4 })
	a.WriteString("\n")
	a.codeScales()
	a.codeQuery()
	a.codeKeys()
	a.codeLines()
	for rows := 1; rows <= codeRows; rows++ {
		a.codeScoreProducts(rows)
		a.codeValueProducts(rows)
	}
	for rows := 1; rows <= codeQueries; rows++ {
		a.codeScoreRows(rows)
		a.codeValueRows(rows)
	}
	for _, rows := range []int{1, 2, halfTops} {
		a.codeSoftmax(rows)
	}
}

// codeScales writes the scales, then the biases of 64 rows, group by group.
func (a *asm) codeScales() {
	a.text("attnCodeScalesAVX512", "codeArgs")
	a.o("MOVQ codeArgs_rows(AX), SI")
	a.o("MOVQ codeArgs_scales(AX), DI")
	a.o("MOVQ codeArgs_rowStride(AX), R8")
	a.o("MOVQ codeArgs_spans(AX), R10")
	a.o("VPBROADCASTD R8, Z9")
	a.o("VPMULLD ascending<>(SB), Z9, Z9")
	a.o("SHLQ $4, R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("VPBROADCASTD high16<>(SB), Z8")
	a.label("group")
	for i := range 4 {
		a.o("LEAQ (SI)%s, R11", []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i])
		a.o("KXNORW K1, K1, K1")
		a.o("VPXORD Z%d, Z%d, Z%d", i, i, i)
		a.o("VPGATHERDD (R11)(Z9*1), K1, Z%d", i)
		a.o("VPSLLD $16, Z%d, Z%d", i, 4+i)
		a.o("VPANDD Z8, Z%d, Z%d", i, i)
		a.o("VMOVUPS Z%d, %d(DI)", 4+i, 64*i)
		a.o("VMOVUPS Z%d, %d(DI)", i, rowBytes+64*i)
	}
	a.o("ADDQ $4, SI")
	a.o("ADDQ $%d, DI", 2*rowBytes)
	a.o("DECQ R10")
	a.o("JNZ group")
	a.end()
}

// foldHalves leaves in all of X(z) what op makes of the lanes of Z(z): of opposite halves, again and again. Z(t) is lost.
func (a *asm) foldHalves(z, t int, op string) {
	a.o("VEXTRACTI64X4 $1, Z%d, Y%d", z, t)
	a.o("%s Y%d, Y%d, Y%d", op, t, z, z)
	a.o("VEXTRACTI32X4 $1, Y%d, X%d", z, t)
	a.o("%s X%d, X%d, X%d", op, t, z, z)
	for _, order := range []int{0x4e, 0xb1} {
		a.o("VPSHUFD $%#x, X%d, X%d", order, z, t)
		a.o("%s X%d, X%d, X%d", op, t, z, z)
	}
}

// step leaves what numbers whose largest is in X(z) are multiplied by in Z(z), and stores their step at p. Two more are lost.
func (a *asm) step(z int, p string) {
	a.o("VPMAXUD.BCST leastPart<>(SB), X%d, X%d", z, z)
	a.o("VMULPS.BCST perPart<>(SB), X%d, X%d", z, z+1)
	a.o("VSUBPS X%d, X%d, X%d", z, z, z+2) // a NaN, if it is not finite
	a.o("VADDPS X%d, X%d, X%d", z+2, z+1, z+1)
	a.o("VMOVSS X%d, %s", z+1, p)
	a.o("VBROADCASTSS partReach<>(SB), X%d", z+1)
	a.o("VDIVPS X%d, X%d, X%d", z, z+1, z)
	a.o("VBROADCASTSS X%d, Z%d", z, z)
}

// partConstants loads what parts needs.
func (a *asm) partConstants() {
	a.o("VPBROADCASTD half8<>(SB), Z13")
	a.o("VMOVUPS turned<>(SB), Z14")
	a.o("VPBROADCASTD low8<>(SB), Z15")
}

// parts stores the high and the low bytes of the 64 whole numbers in four registers from Z(z) on. Two more are lost.
func (a *asm) parts(z int, high, low string) {
	a.o("VPACKSSDW Z%d, Z%d, Z%d", z+1, z, z)
	a.o("VPACKSSDW Z%d, Z%d, Z%d", z+3, z+2, z+2)
	for i := range 2 {
		a.o("VPADDW Z13, Z%d, Z%d", z+2*i, z+4+i)
		a.o("VPSRLW $8, Z%d, Z%d", z+4+i, z+4+i)
		a.o("VPANDD Z15, Z%d, Z%d", z+2*i, z+2*i)
	}
	a.o("VPACKUSWB Z%d, Z%d, Z%d", z+5, z+4, z+4)
	a.o("VPACKUSWB Z%d, Z%d, Z%d", z+2, z, z)
	a.o("VPERMD Z%d, Z14, Z%d", z+4, z+4)
	a.o("VPERMD Z%d, Z14, Z%d", z, z)
	a.o("VMOVUPS Z%d, %s", z+4, high)
	a.o("VMOVUPS Z%d, %s", z, low)
}

// codeQuery makes the whole numbers of a query, their step and their sum in every group.
func (a *asm) codeQuery() {
	a.text("attnCodeQueryAVX512", "codeArgs")
	a.o("MOVQ codeArgs_rows(AX), SI")
	a.o("MOVQ codeArgs_x(AX), DI")
	a.o("MOVQ codeArgs_factors(AX), BX")
	a.o("MOVQ codeArgs_spans(AX), R10")
	a.o("MOVQ R10, DX")
	a.o("SHLQ $6, DX")
	a.o("ADDQ DI, DX")
	a.partConstants()
	a.o("VPBROADCASTD abs<>(SB), Z3")
	a.o("VPXORD Z0, Z0, Z0")
	a.o("MOVQ SI, R11")
	a.o("MOVQ R10, CX")
	a.label("top")
	for i := range 4 {
		a.o("VPANDD %d(R11), Z3, Z%d", 64*i, 20+i)
		a.o("VPMAXUD Z%d, Z0, Z0", 20+i)
	}
	a.o("ADDQ $256, R11")
	a.o("DECQ CX")
	a.o("JNZ top")
	a.foldHalves(0, 1, "VPMAXUD")
	a.step(0, "(BX)")
	a.label("group")
	a.o("ADDQ $4, BX")
	for i := range 4 {
		a.o("VMULPS %d(SI), Z0, Z%d", 64*i, 20+i)
		a.o("VCVTPS2DQ Z%d, Z%d", 20+i, 20+i)
	}
	a.o("VPADDD Z20, Z21, Z4")
	a.o("VPADDD Z22, Z23, Z5")
	a.o("VPADDD Z4, Z5, Z4")
	a.foldHalves(4, 5, "VPADDD")
	a.o("VCVTDQ2PS X4, X4")
	a.o("VMOVSS X4, (BX)")
	a.parts(20, "(DI)", "(DX)")
	a.o("ADDQ $256, SI")
	a.o("ADDQ $64, DI")
	a.o("ADDQ $64, DX")
	a.o("DECQ R10")
	a.o("JNZ group")
	a.end()
}

// fetchLines fetches some lines at R13, up to R15.
func (a *asm) fetchLines(n int) { a.prefetch("PREFETCHT0", n) }

// fetchFurther is fetchLines to the second cache.
func (a *asm) fetchFurther(n int) { a.prefetch("PREFETCHT1", n) }

func (a *asm) prefetch(hint string, n int) {
	for i := range n {
		a.o("%s %d(R13)", hint, 64*i)
	}
	a.o("ADDQ $%d, R13", 64*n)
	a.o("CMPQ R13, R15")
	a.o("CMOVQHI R15, R13")
}

// codeKeys turns 64 rows into lines of a quad of columns of each.
func (a *asm) codeKeys() {
	a.text("attnCodeKeysAVX512", "codeArgs")
	a.o("MOVQ codeArgs_rows(AX), SI")
	a.o("MOVQ codeArgs_lines(AX), DI")
	a.o("MOVQ codeArgs_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ codeArgs_ahead(AX), R13")
	a.o("MOVQ codeArgs_aheadEnd(AX), R15")
	a.o("MOVQ $4, R10")
	a.label("block")
	a.o("MOVQ SI, R11")
	a.o("MOVQ DI, DX")
	a.o("MOVQ codeArgs_spans(AX), CX")
	a.label("columns")
	a.o("MOVQ R11, R12")
	for i := range 16 {
		a.o("VMOVUPS (R12)%s, Z%d", []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i%4], i)
		if i%4 == 3 {
			a.o("LEAQ (R12)(R8*4), R12")
		}
	}
	a.fetchLines(15)
	for i, r := range a.transpose512() {
		a.o("VMOVUPS Z%d, %d(DX)", r, rowBytes*i)
	}
	a.o("ADDQ $64, R11")
	a.o("ADDQ $%d, DX", rowBytes*codeQuads)
	a.o("DECQ CX")
	a.o("JNZ columns")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("ADDQ $64, DI")
	a.o("DECQ R10")
	a.o("JNZ block")
	a.o("MOVQ R13, codeArgs_ahead(AX)")
	a.end()
}

// codeLines turns four rows at a time into lines of a quad of positions of every column, 64 columns after the other.
func (a *asm) codeLines() {
	a.text("attnCodeLinesAVX512", "codeArgs")
	a.o("MOVQ codeArgs_rows(AX), SI")
	a.o("MOVQ codeArgs_lines(AX), DI")
	a.o("MOVQ codeArgs_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ codeArgs_ahead(AX), R13")
	a.o("MOVQ codeArgs_aheadEnd(AX), R15")
	a.o("VMOVUPS turned<>(SB), Z16")
	a.o("MOVQ $%d, R10", codeQuads)
	a.label("quad")
	a.o("MOVQ SI, R11")
	a.o("MOVQ DI, DX")
	a.o("MOVQ codeArgs_spans(AX), CX")
	a.label("columns")
	for i := range 4 {
		a.o("VPERMD (R11)%s, Z16, Z%d", []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i], i)
	}
	a.fetchLines(4)
	for i := range 2 {
		a.o("VPUNPCKLBW Z%d, Z%d, Z%d", 2*i+1, 2*i, 4+i)
		a.o("VPUNPCKHBW Z%d, Z%d, Z%d", 2*i+1, 2*i, 6+i)
	}
	for i := range 2 {
		a.o("VPUNPCKLWD Z%d, Z%d, Z%d", 5+2*i, 4+2*i, 8+2*i)
		a.o("VPUNPCKHWD Z%d, Z%d, Z%d", 5+2*i, 4+2*i, 9+2*i)
	}
	for i := range 4 {
		a.o("VMOVUPS Z%d, %d(DX)", 8+i, 64*i)
	}
	a.o("ADDQ $64, R11")
	a.o("ADDQ $%d, DX", rowBytes*codeQuads)
	a.o("DECQ CX")
	a.o("JNZ columns")
	a.o("LEAQ (SI)(R8*4), SI")
	a.o("ADDQ $%d, DI", rowBytes)
	a.o("DECQ R10")
	a.o("JNZ quad")
	a.o("MOVQ R13, codeArgs_ahead(AX)")
	a.end()
}

// codeProducts leaves in the first registers the sums over sixteen lines at DX of the parts of some rows at R9, the low ones
// codeArgs_low further, and steps over lines and parts.
func (a *asm) codeProducts(rows int, name string) {
	a.zero(codeColumns * rows)
	for _, part := range []string{"high", "low"} {
		if part == "low" {
			for i := range codeColumns * rows {
				a.o("VPSLLD $8, Z%d, Z%d", i, i)
			}
			a.o("SUBQ $%d, DX", rowBytes*codeQuads)
			a.o("ADDQ codeArgs_low(AX), R9")
			a.o("SUBQ $%d, R9", codeGroup)
		}
		a.o("MOVQ $%d, CX", codeQuads/2)
		a.label(part + name)
		for k := range 2 {
			for i := range codeColumns {
				a.o("VMOVUPS %d(DX), Z%d", rowBytes*k+64*i, 24+i)
			}
			for r := range rows {
				x := 28 + r%4
				a.o("VPBROADCASTD %d(R9)%s, Z%d", 4*k, []string{"", "(R8*1)", "(R8*2)", "(R12*1)", "(R8*4)", "(R14*1)"}[r], x)
				for i := range codeColumns {
					a.o("VPDPBUSD Z%d, Z%d, Z%d", x, 24+i, codeColumns*r+i)
				}
			}
		}
		lines := 1
		if rows <= 2 {
			lines = 2
		}
		a.fetchLines(lines)
		a.o("ADDQ $8, R9")
		a.o("ADDQ $%d, DX", 2*rowBytes)
		a.o("DECQ CX")
		a.o("JNZ %s%s", part, name)
	}
	a.o("SUBQ codeArgs_low(AX), R9")
}

func (a *asm) codeRowsOf(name string, rows int) {
	a.text(fmt.Sprintf("attnCode%s%dAVX512", name, rows), "codeArgs")
	a.o("MOVQ codeArgs_x(AX), SI")
	a.o("MOVQ codeArgs_sums(AX), DI")
	a.o("MOVQ codeArgs_xStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R12")
	a.o("LEAQ (R8)(R8*4), R14")
	a.o("MOVQ codeArgs_factors(AX), BX")
	a.o("MOVQ codeArgs_ahead(AX), R13")
	a.o("MOVQ codeArgs_aheadEnd(AX), R15")
	a.label("rows")
	a.o("MOVQ codeArgs_lines(AX), DX")
	a.o("MOVQ SI, R9")
}

func (a *asm) nextCodeRows(rows int) {
	for range rows {
		a.o("ADDQ R8, SI")
		a.o("ADDQ codeArgs_factorStride(AX), BX")
	}
	a.o("DECQ codeArgs_groups(AX)")
	a.o("JNZ rows")
	a.o("MOVQ R13, codeArgs_ahead(AX)")
	a.end()
}

// codeScoreProducts: scores of queries and 64 keys.
func (a *asm) codeScoreProducts(rows int) {
	a.codeRowsOf("Scores", rows)
	a.o("MOVQ codeArgs_scales(AX), R10")
	a.o("MOVQ codeArgs_spans(AX), R11")
	factors := func(at int, do func(r, i int, t string)) {
		a.o("LEAQ %d(BX), CX", at)
		for r := range rows {
			a.o("VBROADCASTSS (CX), Z28")
			a.o("ADDQ codeArgs_factorStride(AX), CX")
			for i := range codeColumns {
				do(r, i, fmt.Sprintf("%d(DI)", rowBytes*r+64*i))
			}
		}
	}
	scaled := func(r, i int, t string) {
		z := codeColumns*r + i
		a.o("VCVTDQ2PS Z%d, Z%d", z, z)
		a.o("VFMADD132PS %d(R10), Z%d, Z%d", 64*i, 24+i, z)
		a.o("VMOVUPS Z%d, %s", z, t)
	}
	a.codeProducts(rows, "First")
	factors(4, func(r, i int, t string) {
		a.o("VMULPS %d(R10), Z28, Z%d", rowBytes+64*i, 24+i)
		scaled(r, i, t)
	})
	a.o("JMP scaled")
	a.label("group")
	a.codeProducts(rows, "Next")
	factors(4, func(r, i int, t string) {
		a.o("VMOVUPS %s, Z%d", t, 24+i)
		a.o("VFMADD231PS %d(R10), Z28, Z%d", rowBytes+64*i, 24+i)
		scaled(r, i, t)
	})
	a.label("scaled")
	a.o("ADDQ $4, BX")
	a.o("ADDQ $%d, R10", 2*rowBytes)
	a.o("DECQ R11")
	a.o("JNZ group")
	a.o("MOVQ codeArgs_spans(AX), CX")
	a.o("SHLQ $2, CX")
	a.o("SUBQ CX, BX")
	factors(0, func(_, i int, t string) {
		a.o("VMULPS %s, Z28, Z%d", t, 24+i)
		a.o("VMOVUPS Z%d, %s", 24+i, t)
	})
	a.o("ADDQ $%d, DI", rowBytes*rows)
	a.nextCodeRows(rows)
}

// codeValueProducts: what 64 weighted values add to the sums of 64 columns.
func (a *asm) codeValueProducts(rows int) {
	a.codeRowsOf("Values", rows)
	a.codeProducts(rows, "")
	a.o("MOVQ BX, CX")
	for r := range rows {
		a.o("VBROADCASTSS (CX), Z28")
		a.o("VBROADCASTSS 4(CX), Z29")
		a.o("ADDQ codeArgs_factorStride(AX), CX")
		for i := range codeColumns {
			z := codeColumns*r + i
			a.o("VCVTDQ2PS Z%d, Z%d", z, z)
			a.o("VFMADD213PS %d(DI), Z28, Z%d", 64*i, z)
			a.o("VADDPS Z%d, Z29, Z%d", z, z)
			a.o("VMOVUPS Z%d, %d(DI)", z, 64*i)
		}
		a.o("ADDQ codeArgs_sumStride(AX), DI")
	}
	a.nextCodeRows(rows)
}

// codeSoftmax turns rows of 64 scores into the parts of weights under the scales of every group of values.
func (a *asm) codeSoftmax(rows int) {
	a.framed(fmt.Sprintf("attnCodeSoftmax%dAVX512", rows), "codeArgs", 16)
	a.softmaxConstants("codeArgs")
	a.partConstants()
	a.o("VPBROADCASTD abs<>(SB), Z3")
	a.o("MOVQ codeArgs_x(AX), R14")
	a.o("MOVQ codeArgs_factors(AX), R15")
	a.label("rows")
	a.newTops("codeArgs", rows)
	for r := range rows {
		const f, p = 20, 28
		a.powers(r, true)
		a.o("VADDPS Z%d, Z%d, Z%d", p+1, p, 16+r)
		a.o("VADDPS Z%d, Z%d, Z%d", p+2, 16+r, 16+r)
		a.o("VADDPS Z%d, Z%d, Z%d", p+3, 16+r, 16+r)
		a.o("MOVQ codeArgs_scales(AX), R13")
		a.o("MOVQ codeArgs_spans(AX), CX")
		a.label(fmt.Sprintf("group%d", r))
		for i := range 4 { // what has no weight may have any scale and bias
			a.o("VMULPS.Z %d(R13), Z%d, K%d, Z%d", 64*i, p+i, 3+i, f+i)
		}
		for i := range 4 {
			a.o("VPANDD Z%d, Z3, Z%d", f+i, f+4+i)
		}
		a.o("VPMAXUD Z%d, Z%d, Z%d", f+4, f+5, f+4)
		a.o("VPMAXUD Z%d, Z%d, Z%d", f+6, f+7, f+6)
		a.o("VPMAXUD Z%d, Z%d, Z%d", f+4, f+6, f+4)
		a.foldHalves(f+4, f+5, "VPMAXUD")
		a.step(f+4, "(R15)")
		for i := range 4 {
			a.o("VMULPS Z%d, Z%d, Z%d", f+4, f+i, f+i)
			a.o("VCVTPS2DQ Z%d, Z%d", f+i, f+i)
		}
		a.parts(f, "(R14)", "64(R14)")
		a.o("VMULPS.Z %d(R13), Z%d, K3, Z%d", rowBytes, p, f)
		for i := 1; i < 4; i++ {
			a.o("VFMADD231PS %d(R13), Z%d, K%d, Z%d", rowBytes+64*i, p+i, 3+i, f)
		}
		a.foldHalves(f, f+1, "VADDPS")
		a.o("VMOVSS X%d, 4(R15)", f)
		a.o("ADDQ $8, R15")
		a.o("ADDQ $128, R14")
		a.o("ADDQ $%d, R13", 2*rowBytes)
		a.o("DECQ CX")
		a.o("JNZ group%d", r)
	}
	a.softmaxSums(rows)
	a.end()
}

// codeScoreRows: scores of a few queries and 64 keys, whose columns are put together in registers.
func (a *asm) codeScoreRows(rows int) {
	const high, low, t = 17, 19, 21
	a.text(fmt.Sprintf("attnCodeScoreRows%dAVX512", rows), "codeArgs")
	a.o("MOVQ codeArgs_rows(AX), SI")
	a.o("MOVQ codeArgs_sums(AX), DI")
	a.o("MOVQ codeArgs_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ codeArgs_ahead(AX), R13")
	a.o("MOVQ codeArgs_aheadEnd(AX), R15")
	a.o("MOVQ codeArgs_scales(AX), R10")
	a.o("MOVQ $4, DX")
	a.label("block")
	a.o("MOVQ SI, R11")
	a.o("MOVQ codeArgs_x(AX), R14")
	a.o("MOVQ codeArgs_factors(AX), BX")
	a.o("MOVQ codeArgs_spans(AX), CX")
	for r := range rows {
		a.o("VPXORD Z%d, Z%d, Z%d", t+r, t+r, t+r)
	}
	a.label("columns")
	a.o("MOVQ R11, R12")
	for i := range 16 {
		a.o("VMOVUPS (R12)%s, Z%d", []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i%4], i)
		if i%4 == 3 {
			a.o("LEAQ (R12)(R8*4), R12")
		}
	}
	a.fetchLines(18)
	for r := range rows {
		for _, z := range []int{high + r, low + r} {
			a.o("VPXORD Z%d, Z%d, Z%d", z, z, z)
		}
	}
	columns := a.transpose512()
	a.o("MOVQ R14, R12")
	for r := range rows {
		for i, z := range columns {
			a.o("VPDPBUSD.BCST %d(R12), Z%d, Z%d", 4*i, z, high+r)
		}
		a.o("ADDQ codeArgs_low(AX), R12")
		for i, z := range columns {
			a.o("VPDPBUSD.BCST %d(R12), Z%d, Z%d", 4*i, z, low+r)
		}
		if r+1 < rows {
			a.o("ADDQ codeArgs_low(AX), R12")
		}
	}
	a.o("ADDQ $4, BX")
	a.o("MOVQ BX, R12")
	for r := range rows {
		a.o("VPSLLD $8, Z%d, Z%d", high+r, high+r)
		a.o("VPADDD Z%d, Z%d, Z%d", high+r, low+r, high+r)
		a.o("VCVTDQ2PS Z%d, Z%d", high+r, high+r)
		a.o("VBROADCASTSS (R12), Z%d", low+r)
		a.o("VFMADD231PS %d(R10), Z%d, Z%d", rowBytes, low+r, t+r)
		a.o("VFMADD231PS (R10), Z%d, Z%d", high+r, t+r)
		a.o("ADDQ codeArgs_factorStride(AX), R12")
	}
	a.o("ADDQ $%d, R10", 2*rowBytes)
	a.o("ADDQ $64, R11")
	a.o("ADDQ $64, R14")
	a.o("DECQ CX")
	a.o("JNZ columns")
	a.o("MOVQ codeArgs_factors(AX), BX")
	for r := range rows {
		a.o("VBROADCASTSS (BX), Z%d", low+r)
		a.o("VMULPS Z%d, Z%d, Z%d", low+r, t+r, t+r)
		a.o("VMOVUPS Z%d, %d(DI)", t+r, rowBytes*r)
		a.o("ADDQ codeArgs_factorStride(AX), BX")
	}
	a.o("MOVQ codeArgs_spans(AX), CX")
	a.o("SHLQ $9, CX")
	a.o("SUBQ CX, R10")
	a.o("ADDQ $64, R10")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("ADDQ $64, DI")
	a.o("DECQ DX")
	a.o("JNZ block")
	a.o("MOVQ R13, codeArgs_ahead(AX)")
	a.end()
}

// codeValueRows: what 64 weighted values add to the sums of a few queries. Columns are in an order of their own until the end.
func (a *asm) codeValueRows(rows int) {
	const low = 8 // behind the high sums, four a query
	a.text(fmt.Sprintf("attnCodeValueRows%dAVX512", rows), "codeArgs")
	a.o("MOVQ codeArgs_rows(AX), SI")
	a.o("MOVQ codeArgs_sums(AX), DI")
	a.o("MOVQ codeArgs_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ codeArgs_ahead(AX), R13")
	a.o("MOVQ codeArgs_aheadEnd(AX), R15")
	a.o("MOVQ codeArgs_x(AX), R14")
	a.o("MOVQ codeArgs_factors(AX), BX")
	a.o("MOVQ codeArgs_spans(AX), DX")
	a.label("columns")
	a.zero(2 * low)
	a.o("MOVQ SI, R11")
	a.o("MOVQ R14, R10")
	a.o("MOVQ R14, R12")
	a.o("ADDQ codeArgs_xStride(AX), R12")
	a.o("MOVQ $%d, CX", codeQuads)
	a.label("quad")
	for i := range 2 {
		a.o("VMOVUPS (R11)%s, Z%d", []string{"", "(R8*2)"}[i], 16+i)
		a.o("VMOVUPS (R11)%s, Z%d", []string{"(R8*1)", "(R9*1)"}[i], 18+i)
		a.o("VPUNPCKLBW Z%d, Z%d, Z%d", 18+i, 16+i, 20+i)
		a.o("VPUNPCKHBW Z%d, Z%d, Z%d", 18+i, 16+i, 22+i)
	}
	for i := range 2 {
		a.o("VPUNPCKLWD Z%d, Z%d, Z%d", 21+2*i, 20+2*i, 24+2*i)
		a.o("VPUNPCKHWD Z%d, Z%d, Z%d", 21+2*i, 20+2*i, 25+2*i)
	}
	a.fetchLines(5)
	for r, p := range []string{"R10", "R12"}[:rows] {
		a.o("VPBROADCASTD (%s), Z28", p)
		a.o("VPBROADCASTD 64(%s), Z29", p)
		for i := range 4 {
			a.o("VPDPBUSD Z28, Z%d, Z%d", 24+i, 4*r+i)
			a.o("VPDPBUSD Z29, Z%d, Z%d", 24+i, low+4*r+i)
		}
	}
	a.o("ADDQ $4, R10")
	a.o("ADDQ $4, R12")
	a.o("LEAQ (R11)(R8*4), R11")
	a.o("DECQ CX")
	a.o("JNZ quad")
	a.o("MOVQ DI, R10")
	a.o("MOVQ BX, R11")
	for r := range rows {
		z := 4 * r
		for i := range 4 {
			a.o("VPSLLD $8, Z%d, Z%d", z+i, z+i)
			a.o("VPADDD Z%d, Z%d, Z%d", z+i, low+z+i, z+i)
			a.o("VCVTDQ2PS Z%d, Z%d", z+i, z+i)
		}
		// Lane l of register i is columns 16l+4i to 16l+4i+3.
		for i := range 2 {
			a.o("VSHUFI32X4 $0x44, Z%d, Z%d, Z%d", z+2*i+1, z+2*i, 16+2*i)
			a.o("VSHUFI32X4 $0xee, Z%d, Z%d, Z%d", z+2*i+1, z+2*i, 17+2*i)
		}
		for i := range 2 {
			a.o("VSHUFI32X4 $0x88, Z%d, Z%d, Z%d", 18+i, 16+i, 20+2*i)
			a.o("VSHUFI32X4 $0xdd, Z%d, Z%d, Z%d", 18+i, 16+i, 21+2*i)
		}
		a.o("VBROADCASTSS (R11), Z28")
		a.o("VBROADCASTSS 4(R11), Z29")
		for i := range 4 {
			a.o("VFMADD213PS %d(R10), Z28, Z%d", 64*i, 20+i)
			a.o("VADDPS Z%d, Z29, Z%d", 20+i, 20+i)
			a.o("VMOVUPS Z%d, %d(R10)", 20+i, 64*i)
		}
		a.o("ADDQ codeArgs_sumStride(AX), R10")
		a.o("ADDQ codeArgs_factorStride(AX), R11")
	}
	a.o("ADDQ $64, SI")
	a.o("ADDQ $256, DI")
	a.o("ADDQ $8, BX")
	a.o("ADDQ $128, R14")
	a.o("DECQ DX")
	a.o("JNZ columns")
	a.o("MOVQ R13, codeArgs_ahead(AX)")
	a.end()
}
