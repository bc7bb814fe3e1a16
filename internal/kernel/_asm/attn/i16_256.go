package main

import (
	"fmt"
	"math"
)

// Routines of attention on whole numbers for AVX2: see attn_i16.go, which says what they give. One instruction multiplies sixteen
// such numbers and adds neighbours, another adds these sums to eight, where one for floats multiplies and adds eight.

const (
	shortRows    = 6  // rows of pairs that share a line, by 16 columns: 12 sums
	shortQueries = 3  // queries that share a row as it is stored
	shortStrip   = 64 // bytes of a line: 16 pairs
)

// i16Attention256 writes them all.
func (a *asm) i16Attention256() {
	a.WriteString(opening)
	a.shortConstants()
	for rows := 1; rows <= shortRows; rows++ {
		for _, vnni := range []bool{false, true} {
			a.shortProducts("Scores", rows, vnni)
			a.shortProducts("Values", rows, vnni)
		}
	}
	for rows := 1; rows <= shortQueries; rows++ {
		a.shortScoreRows(rows)
		a.shortValueRows(rows)
	}
	a.shortNumbers()
	a.shortSteps()
	a.shortKeys()
	a.shortLines()
	a.shortSoftmax()
}

func (a *asm) shortConstants() {
	f := func(x float64) uint32 { return math.Float32bits(float32(x)) }
	a.weightConstants()
	a.word("leastPart", f(math.Ldexp(1, -100)))
	a.word("leastPower", f(-100))
	a.word("magic", f(3<<22)) // a number below 2^22 and this have the nearest whole number in the low bits
	a.word("high16", 0xffff0000)
	a.word("abs", 0x7fffffff)
	a.word("inf", 0x7f800000)
	a.word("low16", 0xffff)
	a.word("least13", 13)
	a.word("step12", 12)
	a.word("scale266", 2*127+12)
	a.word("exponent255", 255)
	a.WriteString("\n")
}

// pairs adds to every sum of Y(sum) the products of a pair of numbers in Y(x) with those in Y(y): VPDPWSSD as AVX-VNNI has it,
// which the Go assembler lacks.
func (a *asm) pairs(x, y, sum int) {
	a.o("BYTE $0xc4; BYTE $%#x; BYTE $%#x; BYTE $0x52; BYTE $%#x", (^sum>>3&1)<<7|1<<6|(^x>>3&1)<<5|2, (^y&15)<<3|1<<2|1, 3<<6|sum&7<<3|x&7)
}

// shortProducts multiplies groups of rows of pairs with strips of lines, 16 columns of as many pairs. Sums become scores, or are
// added to those that are there. One instruction of AVX-VNNI multiplies and adds.
func (a *asm) shortProducts(what string, rows int, vnni bool) {
	scores, set := what == "Scores", "AVX2"
	if vnni {
		set = "AVXVNNI"
	}
	a.text(fmt.Sprintf("attnI16%s%d%s", what, rows, set), "i16Args")
	a.o("MOVQ i16Args_xStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R12")
	a.o("LEAQ (R8)(R8*4), R14")
	a.o("MOVQ i16Args_ahead(AX), R13")
	a.label("strip")
	a.o("MOVQ i16Args_x(AX), SI")
	a.o("MOVQ i16Args_sums(AX), DI")
	a.o("MOVQ i16Args_factors(AX), R15")
	a.o("MOVQ i16Args_groups(AX), R10")
	a.label("rows")
	a.o("MOVQ SI, R9")
	a.o("MOVQ i16Args_lines(AX), DX")
	a.o("MOVQ i16Args_pairs(AX), CX")
	for i := range 2 * rows {
		a.o("VPXOR Y%d, Y%d, Y%d", i, i, i)
	}
	a.label("loop")
	for i := range 4 {
		a.o("VMOVDQU %d(DX), Y12", shortStrip*i)
		a.o("VMOVDQU %d(DX), Y13", shortStrip*i+32)
		for r := range rows {
			a.o("VPBROADCASTD %d(R9)%s, Y14", 4*i, []string{"", "(R8*1)", "(R8*2)", "(R12*1)", "(R8*4)", "(R14*1)"}[r])
			for i := range 2 {
				if vnni {
					a.pairs(12+i, 14, 2*r+i)
					continue
				}
				a.o("VPMADDWD Y%d, Y14, Y15", 12+i)
				a.o("VPADDD Y15, Y%d, Y%d", 2*r+i, 2*r+i)
			}
		}
	}
	if rows <= 3 {
		a.fetch("R13", "i16Args_aheadEnd(AX)", 4)
	}
	a.o("ADDQ $16, R9")
	a.o("ADDQ $%d, DX", 4*shortStrip)
	a.o("SUBQ $4, CX")
	a.o("JNZ loop")
	if scores {
		a.o("MOVQ i16Args_steps(AX), BX")
		a.o("VMOVUPS (BX), Y12")
		a.o("VMOVUPS 32(BX), Y13")
	} else {
		a.o("MOVQ i16Args_sumStride(AX), BX")
	}
	a.o("MOVQ DI, R11")
	for r := range rows {
		a.o("VBROADCASTSS %d(R15), Y14", 4*r)
		for i := range 2 {
			z := 2*r + i
			a.o("VCVTDQ2PS Y%d, Y%d", z, z)
			if scores {
				a.o("VMULPS Y%d, Y%d, Y%d", 12+i, z, z)
				a.o("VMULPS Y14, Y%d, Y%d", z, z)
			} else {
				a.o("VFMADD213PS %d(R11), Y14, Y%d", 32*i, z)
			}
			a.o("VMOVUPS Y%d, %d(R11)", z, 32*i)
		}
		if scores {
			a.o("ADDQ $%d, R11", rowBytes)
		} else {
			a.o("ADDQ BX, R11")
		}
	}
	if rows > 3 {
		a.fetch("R13", "i16Args_aheadEnd(AX)", 2)
	}
	a.o("MOVQ R11, DI")
	a.o("ADDQ $%d, R15", 4*rows)
	for range rows {
		a.o("ADDQ R8, SI")
	}
	a.o("DECQ R10")
	a.o("JNZ rows")
	a.o("ADDQ $64, i16Args_sums(AX)")
	a.o("ADDQ $64, i16Args_steps(AX)")
	a.o("MOVQ i16Args_lineStride(AX), BX")
	a.o("ADDQ BX, i16Args_lines(AX)")
	a.o("DECQ i16Args_strips(AX)")
	a.o("JNZ strip")
	a.o("MOVQ R13, i16Args_ahead(AX)")
	a.end()
}

// shortNumbers makes whole numbers of a row of floats.
func (a *asm) shortNumbers() {
	a.text("attnI16NumbersAVX2", "i16Args")
	a.o("MOVQ i16Args_rows(AX), SI")
	a.o("MOVQ i16Args_x(AX), DI")
	a.o("MOVQ i16Args_steps(AX), R8")
	a.o("VBROADCASTSS abs<>(SB), Y7")
	a.o("VBROADCASTSS leastPart<>(SB), Y0")
	a.o("VMOVAPS Y0, Y1")
	a.o("MOVQ SI, DX")
	a.o("MOVQ i16Args_vectors(AX), CX")
	a.label("largest")
	for i := range 4 {
		a.o("VPAND %d(DX), Y7, Y2", 32*i)
		a.o("VPMAXUD Y2, Y%d, Y%d", i%2, i%2)
	}
	a.o("ADDQ $128, DX")
	a.o("DECQ CX")
	a.o("JNZ largest")
	a.o("VPMAXUD Y1, Y0, Y2")
	a.largestLane("VPMAXUD", 2)
	a.o("VMOVAPS X2, X0")
	a.o("VBROADCASTSS inf<>(SB), X1")
	a.o("VPMINUD X1, X0, X0")
	a.o("VSUBPS X0, X0, X1") // a NaN of an infinity
	a.o("VBROADCASTSS i16Args_perReach(AX), X2")
	a.o("VMULPS X2, X0, X0")
	a.o("VADDPS X1, X0, X0")
	a.o("VBROADCASTSS low16<>(SB), X1")
	a.o("VPADDD X1, X0, X0")
	a.o("VPANDN X0, X1, X0")
	a.o("VMOVSS X0, (R8)")
	a.o("VBROADCASTSS one<>(SB), X1")
	a.o("VDIVPS X0, X1, X0")
	a.o("VBROADCASTSS X0, Y0")
	a.o("MOVQ i16Args_vectors(AX), CX")
	a.label("numbers")
	for i := range 2 {
		for j := range 2 {
			a.o("VMULPS %d(SI), Y0, Y%d", 64*i+32*j, 1+j)
			a.o("VCMPPS $7, Y%d, Y%d, Y%d", 1+j, 1+j, 3+j) // no NaN
			a.o("VCVTPS2DQ Y%d, Y%d", 1+j, 1+j)
			a.o("VPAND Y%d, Y%d, Y%d", 3+j, 1+j, 1+j)
		}
		a.o("VPACKSSDW Y2, Y1, Y1")
		a.o("VPERMQ $0xd8, Y1, Y1")
		a.o("VMOVDQU Y1, %d(DI)", 32*i)
	}
	a.o("ADDQ $128, SI")
	a.o("ADDQ $64, DI")
	a.o("DECQ CX")
	a.o("JNZ numbers")
	a.end()
}

// shortSteps reads the steps of 64 rows, each of which follows its numbers.
func (a *asm) shortSteps() {
	a.text("attnI16StepsAVX2", "i16Args")
	a.o("MOVQ i16Args_rows(AX), SI")
	a.o("MOVQ i16Args_steps(AX), DI")
	a.o("MOVQ i16Args_rowStride(AX), R8")
	a.o("MOVQ i16Args_vectors(AX), R9")
	a.o("SHLQ $6, R9")
	a.o("ADDQ R9, SI")
	a.o("MOVQ $16, CX")
	a.label("rows")
	for i := range 4 {
		a.o("MOVWLZX (SI), DX")
		a.o("SHLL $16, DX")
		a.o("MOVL DX, %d(DI)", 4*i)
		a.o("ADDQ R8, SI")
	}
	a.o("ADDQ $16, DI")
	a.o("DECQ CX")
	a.o("JNZ rows")
	a.end()
}

// fromKeys is where four rows of keys are, R8 apart from R9 on, and four more from R11 on.
var fromKeys = []string{"(R9)", "(R9)(R8*1)", "(R9)(R8*2)", "(R9)(R10*1)"}

// shortKeys turns eight groups of eight keys into lines of a pair of columns of each, two groups beside each other.
func (a *asm) shortKeys() {
	a.text("attnI16KeysAVX2", "i16Args")
	a.o("MOVQ i16Args_rows(AX), SI")
	a.o("MOVQ i16Args_lines(AX), DI")
	a.o("MOVQ i16Args_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R10")
	a.o("XORQ R15, R15")
	a.o("MOVQ $8, R14")
	a.label("group")
	a.o("MOVQ SI, R9")
	a.o("LEAQ (SI)(R8*4), R11")
	a.o("MOVQ DI, DX")
	a.o("MOVQ i16Args_vectors(AX), CX")
	a.label("columns")
	for part := range 4 {
		for r := range 4 {
			a.o("VMOVDQU %d%s, X%d", 16*part, fromKeys[r], r)
			a.o("VINSERTI128 $1, %d(R11)%s, Y%d, Y%d", 16*part, fromKeys[r][4:], r, r)
		}
		for _, p := range []int{0, 2} {
			a.o("VPUNPCKLDQ Y%d, Y%d, Y%d", p+1, p, 4+p)
			a.o("VPUNPCKHDQ Y%d, Y%d, Y%d", p+1, p, 5+p)
		}
		for i, f := range []string{"VPUNPCKLQDQ Y6, Y4, Y0", "VPUNPCKHQDQ Y6, Y4, Y1", "VPUNPCKLQDQ Y7, Y5, Y2", "VPUNPCKHQDQ Y7, Y5, Y3"} {
			a.o("%s", f)
			a.o("VMOVDQU Y%d, %d(DX)", i, shortStrip*(4*part+i))
		}
	}
	a.o("ADDQ $64, R9")
	a.o("ADDQ $64, R11")
	a.o("ADDQ $%d, DX", 16*shortStrip)
	a.o("DECQ CX")
	a.o("JNZ columns")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("ADDQ $32, DI")
	a.o("XORQ $1, R15")
	a.o("JNZ beside")
	a.o("ADDQ i16Args_lineStride(AX), DI")
	a.o("SUBQ $64, DI")
	a.label("beside")
	a.o("DECQ R14")
	a.o("JNZ group")
	a.end()
}

// shortLines turns 64 values into lines of a pair of positions of sixteen columns each.
func (a *asm) shortLines() {
	a.text("attnI16LinesAVX2", "i16Args")
	a.o("MOVQ i16Args_rows(AX), R9")
	a.o("MOVQ i16Args_lines(AX), DI")
	a.o("MOVQ i16Args_rowStride(AX), R8")
	a.o("MOVQ i16Args_lineStride(AX), R12")
	a.o("MOVQ $32, R14")
	a.label("pair")
	a.o("MOVQ R9, R11")
	a.o("MOVQ DI, DX")
	a.o("MOVQ i16Args_vectors(AX), CX")
	a.label("columns")
	for half := range 2 {
		a.valuePair(half, 0)
		a.o("VMOVDQU Y2, (DX)")
		a.o("VMOVDQU Y3, 32(DX)")
		a.o("ADDQ R12, DX")
	}
	a.o("ADDQ $64, R11")
	a.o("DECQ CX")
	a.o("JNZ columns")
	a.o("LEAQ (R9)(R8*2), R9")
	a.o("ADDQ $%d, DI", shortStrip)
	a.o("DECQ R14")
	a.o("JNZ pair")
	a.end()
}

// valuePair leaves in Y(y+2) and Y(y+3) the numbers of a pair of values, column by column: sixteen from R11 on. Y(y) and Y(y+1)
// are lost.
func (a *asm) valuePair(part, y int) {
	a.o("VMOVDQU %d(R11), Y%d", 32*part, y)
	a.o("VMOVDQU %d(R11)(R8*1), Y%d", 32*part, y+1)
	a.o("VPUNPCKLWD Y%d, Y%d, Y%d", y+1, y, y+2)
	a.o("VPUNPCKHWD Y%d, Y%d, Y%d", y+1, y, y+1)
	a.o("VPERM2I128 $0x31, Y%d, Y%d, Y%d", y+1, y+2, y+3)
	a.o("VPERM2I128 $0x20, Y%d, Y%d, Y%d", y+1, y+2, y+2)
}

// shortFetch fetches lines of what is read next: to the second cache, or to the nearest one where that is faster.
func (a *asm) shortFetch(lines int) {
	a.o("CMPQ R13, i16Args_aheadEnd(AX)")
	a.o("JAE fetched")
	a.o("CMPQ i16Args_near(AX), $0")
	a.o("JNE near")
	for i := range lines {
		a.o("PREFETCHT1 %d(R13)", 64*i)
	}
	a.o("ADDQ $%d, R13", 64*lines)
	a.o("JMP fetched")
	a.label("near")
	for i := range lines {
		a.o("PREFETCHT0 %d(R13)", 64*i)
	}
	a.o("ADDQ $%d, R13", 64*lines)
	a.label("fetched")
}

// shortScoreRows multiplies up to three queries with 64 keys as they are stored, four at a time.
func (a *asm) shortScoreRows(rows int) {
	a.text(fmt.Sprintf("attnI16ScoreRows%dAVX2", rows), "i16Args")
	a.o("MOVQ i16Args_rows(AX), R9")
	a.o("MOVQ i16Args_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R10")
	a.o("MOVQ i16Args_xStride(AX), R12")
	a.o("MOVQ i16Args_sums(AX), DI")
	a.o("MOVQ i16Args_steps(AX), BX")
	a.o("MOVQ i16Args_factors(AX), R15")
	a.o("MOVQ i16Args_ahead(AX), R13")
	a.o("MOVQ $16, R14")
	a.label("keys")
	a.o("MOVQ i16Args_x(AX), SI")
	a.o("MOVQ R9, R11")
	a.o("MOVQ i16Args_vectors(AX), CX")
	for i := range 4 * rows {
		a.o("VPXOR Y%d, Y%d, Y%d", i, i, i)
	}
	a.label("columns")
	a.shortFetch(4)
	for part := range 2 {
		for k := range 4 {
			a.o("VMOVDQU %d(R11)%s, Y12", 32*part, fromKeys[k][4:])
			for r := range rows {
				a.o("VPMADDWD %d(SI)%s, Y12, Y%d", 32*part, []string{"", "(R12*1)", "(R12*2)"}[r], 13+r)
			}
			for r := range rows {
				a.o("VPADDD Y%d, Y%d, Y%d", 13+r, 4*r+k, 4*r+k)
			}
		}
	}
	a.o("ADDQ $64, SI")
	a.o("ADDQ $64, R11")
	a.o("DECQ CX")
	a.o("JNZ columns")
	a.o("VMOVUPS (BX), X12")
	for r := range rows {
		v := 4 * r
		a.o("VPHADDD Y%d, Y%d, Y%d", v+1, v, v)
		a.o("VPHADDD Y%d, Y%d, Y%d", v+3, v+2, v+2)
		a.o("VPHADDD Y%d, Y%d, Y%d", v+2, v, v)
		a.o("VEXTRACTI128 $1, Y%d, X%d", v, v+1)
		a.o("VPADDD X%d, X%d, X%d", v+1, v, v)
		a.o("VCVTDQ2PS X%d, X%d", v, v)
		a.o("VBROADCASTSS %d(R15), X13", 4*r)
		a.o("VMULPS X12, X%d, X%d", v, v)
		a.o("VMULPS X13, X%d, X%d", v, v)
		a.o("VMOVUPS X%d, %d(DI)", v, rowBytes*r)
	}
	a.o("ADDQ $16, DI")
	a.o("ADDQ $16, BX")
	a.o("LEAQ (R9)(R8*4), R9")
	a.o("DECQ R14")
	a.o("JNZ keys")
	a.o("MOVQ R13, i16Args_ahead(AX)")
	a.end()
}

// shortValueRows adds 64 values as they are stored, weighted, to the sums of up to three queries, 32 columns at a time.
func (a *asm) shortValueRows(rows int) {
	a.text(fmt.Sprintf("attnI16ValueRows%dAVX2", rows), "i16Args")
	a.o("MOVQ i16Args_rows(AX), R9")
	a.o("MOVQ i16Args_rowStride(AX), R8")
	a.o("MOVQ i16Args_xStride(AX), R12")
	a.o("MOVQ i16Args_sums(AX), DI")
	a.o("MOVQ i16Args_sumStride(AX), R10")
	a.o("MOVQ i16Args_factors(AX), R15")
	a.o("MOVQ i16Args_ahead(AX), R13")
	a.o("MOVQ i16Args_vectors(AX), R14")
	a.label("columns")
	a.o("MOVQ i16Args_x(AX), SI")
	a.o("MOVQ R9, R11")
	for i := range 4 * rows {
		a.o("VPXOR Y%d, Y%d, Y%d", i, i, i)
	}
	a.o("MOVQ $32, CX")
	a.label("pairs")
	a.shortFetch(2)
	for part := range 2 {
		a.o("VMOVDQU %d(R11), Y12", 32*part)
		a.o("VMOVDQU %d(R11)(R8*1), Y13", 32*part)
		a.o("VPUNPCKLWD Y13, Y12, Y14")
		a.o("VPUNPCKHWD Y13, Y12, Y12")
		for r := range rows {
			at := []string{"", "(R12*1)", "(R12*2)"}[r]
			a.o("VPBROADCASTD (SI)%s, Y13", at)
			a.o("VPMADDWD Y14, Y13, Y15")
			a.o("VPADDD Y15, Y%d, Y%d", 4*r+2*part, 4*r+2*part)
			a.o("VPMADDWD Y12, Y13, Y15")
			a.o("VPADDD Y15, Y%d, Y%d", 4*r+2*part+1, 4*r+2*part+1)
		}
	}
	a.o("ADDQ $4, SI")
	a.o("LEAQ (R11)(R8*2), R11")
	a.o("DECQ CX")
	a.o("JNZ pairs")
	a.o("MOVQ DI, R11")
	for r := range rows {
		a.o("VBROADCASTSS %d(R15), Y14", 4*r)
		for part := range 2 {
			y := 4*r + 2*part
			a.o("VPERM2I128 $0x20, Y%d, Y%d, Y12", y+1, y)
			a.o("VPERM2I128 $0x31, Y%d, Y%d, Y13", y+1, y)
			for i := range 2 {
				a.o("VCVTDQ2PS Y%d, Y%d", 12+i, 12+i)
				a.o("VFMADD213PS %d(R11), Y14, Y%d", 64*part+32*i, 12+i)
				a.o("VMOVUPS Y%d, %d(R11)", 12+i, 64*part+32*i)
			}
		}
		a.o("ADDQ R10, R11")
	}
	a.o("ADDQ $64, R9")
	a.o("ADDQ $128, DI")
	a.o("DECQ R14")
	a.o("JNZ columns")
	a.o("MOVQ R13, i16Args_ahead(AX)")
	a.end()
}

// Registers of what weights need.
const (
	shortFactor, shortMagic, shortLeast = 7, 8, 13
	shortPow1, shortPow2, shortPow3     = 11, 10, 9
	shortOne                            = 12
)

// shortPower leaves in Y3 2 to the power of Y0, wrong below leastPower, where Y1 becomes a mask. Y2 is lost.
func (a *asm) shortPower() {
	a.o("VADDPS Y%d, Y0, Y1", shortMagic)
	a.o("VSUBPS Y%d, Y1, Y2", shortMagic)
	a.o("VSUBPS Y2, Y0, Y2")
	a.o("VMOVAPS Y%d, Y3", shortPow3)
	a.o("VFMADD213PS Y%d, Y2, Y3", shortPow2)
	a.o("VFMADD213PS Y%d, Y2, Y3", shortPow1)
	a.o("VFMADD213PS Y%d, Y2, Y3", shortOne)
	a.o("VPSLLD $23, Y1, Y1")
	a.o("VPADDD Y1, Y3, Y3")
	a.o("VCMPPS $17, Y%d, Y0, Y1", shortLeast)
}

// shortPow2 leaves in Y0 2 to the power of Y0, in two factors that are no denormal numbers. Y1 to Y4 are lost.
func (a *asm) shortPow2() {
	a.o("VBROADCASTSS powLeast<>(SB), Y1")
	a.o("VMAXPS Y0, Y1, Y0")
	a.o("VADDPS Y%d, Y0, Y1", shortMagic)
	a.o("VSUBPS Y%d, Y1, Y1", shortMagic)
	a.o("VSUBPS Y1, Y0, Y2")
	a.o("VBROADCASTSS pow6<>(SB), Y3")
	for _, c := range []string{"pow5", "pow4", "pow3", "pow2", "pow1", "one"} {
		a.o("VBROADCASTSS %s<>(SB), Y4", c)
		a.o("VFMADD213PS Y4, Y2, Y3")
	}
	a.o("VCVTPS2DQ Y1, Y1")
	a.o("VPSRAD $1, Y1, Y2")
	a.o("VPSUBD Y2, Y1, Y1")
	for _, y := range []int{1, 2} {
		a.o("VPSLLD $23, Y%d, Y%d", y, y)
	}
	a.o("VPADDD Y1, Y3, Y3")
	a.o("VPADDD Y%d, Y2, Y2", shortOne)
	a.o("VMULPS Y2, Y3, Y0")
}

// shortTops is of how many rows one step is done before the next: short chains of instructions of several rows overlap better
// than a long one of each.
const shortTops = 8

// shortSoftmax turns rows of 64 scores into weights, and those times the steps of the values into whole numbers.
func (a *asm) shortSoftmax() {
	a.framed("attnI16SoftmaxAVX2", "i16Args", 8*shortTops)
	top, scale := fmt.Sprintf("tops-%d(SP)(DX*4)", 8*shortTops), fmt.Sprintf("scales-%d(SP)(DX*4)", 4*shortTops)
	a.o("MOVQ i16Args_sums(AX), SI")
	a.o("MOVQ i16Args_x(AX), R14")
	a.o("MOVQ i16Args_factors(AX), R12")
	a.o("MOVQ i16Args_steps(AX), BX")
	a.o("MOVQ i16Args_max(AX), R8")
	a.o("MOVQ i16Args_sum(AX), R9")
	a.o("MOVQ i16Args_acc(AX), DI")
	a.o("MOVQ i16Args_groups(AX), R10")
	a.o("VBROADCASTSS i16Args_factor(AX), Y%d", shortFactor)
	for _, c := range []struct {
		name string
		y    int
	}{{"magic", shortMagic}, {"halfPow1", shortPow1}, {"halfPow2", shortPow2}, {"halfPow3", shortPow3}, {"one", shortOne}, {"leastPower", shortLeast}} {
		a.o("VBROADCASTSS %s<>(SB), Y%d", c.name, c.y)
	}
	a.label("some")
	a.o("MOVQ $%d, R13", shortTops)
	a.o("CMPQ R10, R13")
	a.o("CMOVQLT R10, R13")
	a.o("SUBQ R13, R10")
	a.o("XORQ DX, DX")
	a.label("top")
	a.o("VBROADCASTSS (R8)(DX*4), Y6")
	a.o("VMOVAPS Y6, Y5")
	for i := range 8 {
		a.o("VMULPS %d(SI), Y%d, Y%d", 32*i, shortFactor, i%2)
		a.o("VMAXPS Y%d, Y%d, Y%d", 5+i%2, i%2, 5+i%2) // gives what was largest if the score is a NaN
	}
	a.o("VMAXPS Y5, Y6, Y6")
	a.largestLane("VMAXPS", 6)
	a.o("VMOVSS X6, %s", top)
	again := func(label string) {
		a.o("ADDQ $%d, SI", rowBytes)
		a.o("INCQ DX")
		a.o("CMPQ DX, R13")
		a.o("JNE %s", label)
	}
	back := func() {
		a.o("SHLQ $8, DX")
		a.o("SUBQ DX, SI")
		a.o("XORQ DX, DX")
	}
	again("top")
	back()
	a.label("row")
	a.o("VBROADCASTSS %s, Y6", top)
	// Nothing seen: weights 0, not Inf-Inf.
	a.o("VBROADCASTSS negInf<>(SB), Y0")
	a.o("VCMPPS $0, Y0, Y6, Y0")
	a.o("VANDNPS Y6, Y0, Y15")
	for _, y := range []int{4, 5, 14} {
		a.o("VXORPS Y%d, Y%d, Y%d", y, y, y)
	}
	for i := range 8 {
		a.o("VMOVUPS %d(SI), Y0", 32*i)
		a.o("VFMSUB213PS Y15, Y%d, Y0", shortFactor)
		a.shortPower()
		a.o("VANDNPS Y3, Y1, Y0")
		a.o("VMULPS %d(BX), Y0, Y3", 32*i) // the step may be a NaN
		a.o("VADDPS Y0, Y%d, Y%d", 4+i%2, 4+i%2)
		a.o("VANDNPS Y3, Y1, Y3")
		a.o("VPMAXUD Y3, Y14, Y14") // a NaN is the largest
		a.o("VMOVUPS Y3, %d(SI)", 32*i)
	}
	// The scale and the step of the whole numbers: see weightSteps.
	a.largestLane("VPMAXUD", 14)
	a.o("VPSLLD $1, X14, X14")
	a.o("VPSRLD $24, X14, X14")
	a.o("VPBROADCASTD least13<>(SB), X0")
	a.o("VPMAXUD X0, X14, X0")
	a.o("VPBROADCASTD scale266<>(SB), X1")
	a.o("VPSUBD X0, X1, X1")
	a.o("VPSLLD $23, X1, X1")
	a.o("VMOVSS X1, %s", scale)
	a.o("VPBROADCASTD step12<>(SB), X2")
	a.o("VPSUBD X2, X0, X0")
	a.o("VPSLLD $23, X0, X0")
	a.o("VPBROADCASTD exponent255<>(SB), X2")
	a.o("VPCMPEQD X2, X14, X2")
	a.o("VPOR X2, X0, X0")
	a.o("VMOVSS X0, (R12)(DX*4)")
	// The lanes of the sum, as foldLanes adds them.
	for _, order := range []int{0x4e, 0xb1} {
		for _, y := range []int{4, 5} {
			a.o("VPSHUFD $%#x, Y%d, Y%d", order, y, y-4)
			a.o("VADDPS Y%d, Y%d, Y%d", y-4, y, y)
		}
	}
	a.o("VADDPS Y5, Y4, Y5")
	a.o("VEXTRACTF128 $1, Y5, X0")
	a.o("VADDPS X0, X5, X5")
	a.o("VMOVSS (R9)(DX*4), X14")
	a.o("VUCOMISS (R8)(DX*4), X6")
	a.o("JEQ add")
	// A new maximum: what was summed before shrinks.
	a.o("VBROADCASTSS (R8)(DX*4), Y0")
	a.o("VMOVSS X6, (R8)(DX*4)")
	a.o("VSUBPS Y6, Y0, Y0")
	a.shortPow2()
	a.o("VMULSS X0, X14, X14")
	a.o("MOVQ DI, R11")
	a.o("MOVQ i16Args_strips(AX), CX")
	a.label("shrink")
	a.o("VMULPS (R11), Y0, Y1")
	a.o("VMULPS 32(R11), Y0, Y2")
	a.o("VMOVUPS Y1, (R11)")
	a.o("VMOVUPS Y2, 32(R11)")
	a.o("ADDQ $64, R11")
	a.o("DECQ CX")
	a.o("JNZ shrink")
	a.label("add")
	a.o("VADDSS X5, X14, X14")
	a.o("VMOVSS X14, (R9)(DX*4)")
	a.o("ADDQ i16Args_accStride(AX), DI")
	again("row")
	back()
	a.label("numbers")
	a.o("VBROADCASTSS %s, Y2", scale)
	for i := range 4 {
		for j := range 2 {
			a.o("VMULPS %d(SI), Y2, Y%d", 64*i+32*j, j)
			a.o("VCVTPS2DQ Y%d, Y%d", j, j)
		}
		a.o("VPACKSSDW Y1, Y0, Y0")
		a.o("VPERMQ $0xd8, Y0, Y0")
		a.o("VMOVDQU Y0, %d(R14)", 32*i)
	}
	a.o("ADDQ $128, R14")
	again("numbers")
	for _, p := range []string{"R8", "R9", "R12"} {
		a.o("LEAQ (%s)(R13*4), %s", p, p)
	}
	a.o("TESTQ R10, R10")
	a.o("JNZ some")
	a.end()
}

// largestLane leaves in all lanes of X(v) the largest of Y(v). X0 is lost.
func (a *asm) largestLane(op string, v int) {
	a.o("VEXTRACTF128 $1, Y%d, X0", v)
	a.o("%s X0, X%d, X%d", op, v, v)
	for _, order := range []int{0x4e, 0xb1} {
		a.o("VPSHUFD $%#x, X%d, X0", order, v)
		a.o("%s X0, X%d, X%d", op, v, v)
	}
}
