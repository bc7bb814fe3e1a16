package main

import (
	"fmt"
	"math"
)

// Routines of attention on whole numbers of 16 bits, for AVX512_VNNI: see attn_i16.go, which says what they give.

const (
	i16Rows    = 6 // rows of pairs that share a line, by 64 keys or columns: 24 sums
	i16Columns = 4 // vectors of 16 keys or columns
	i16Queries = 4 // that take rows as they are stored
	i16Pairs   = 32
)

// i16Attention512 writes them all.
func (a *asm) i16Attention512() {
	a.WriteString(opening)
	a.weightConstants()
	const bias, weightBits = 127, 12
	for _, c := range []struct {
		name string
		v    uint32
	}{
		{"least100", math.Float32bits(-100)}, {"leastPart", math.Float32bits(0x1p-100)}, {"infinite", 0x7f800000}, {"nan", 0x7fc00000},
		{"abs", 0x7fffffff}, {"low16", 0xffff}, {"high16", 0xffff0000},
		{"wholes", math.Float32bits(3 << 22)}, // a number that is added to it is rounded, and its low half that
		{"finite", 255}, {"leastTop", 13}, {"weightBits", weightBits}, {"toScale", 2*bias + weightBits},
	} {
		a.word(c.name, c.v)
	}
	a.words("ascending", func(i int) int { return i })
	a.words("quarters", func(i int) int { return []int{0, 4, 1, 5, 2, 6, 3, 7}[i/2] * (1 - i%2) })
	// The columns of 32 where VPUNPCKLWD and VPUNPCKHWD have put them.
	packed := func(c int) int { return c%8/4*16 + c/8*4 + c%4 }
	a.words("packFirst", packed)
	a.words("packSecond", func(i int) int { return packed(16 + i) })
	a.WriteString("\n")
	a.i16Steps()
	a.i16Numbers()
	a.i16Keys()
	a.i16Lines()
	for rows := 1; rows <= i16Rows; rows++ {
		a.i16ScoreProducts(rows)
		a.i16ValueProducts(rows)
	}
	for rows := 1; rows <= i16Queries; rows++ {
		a.i16ScoreRows(rows)
		a.i16ValueRows(rows)
	}
	for _, rows := range []int{1, 2, halfTops} {
		a.i16Softmax(rows)
	}
}

// i16Steps reads the steps of 64 rows, each of which follows its numbers.
func (a *asm) i16Steps() {
	a.text("attnI16StepsAVX512", "i16Args")
	a.o("MOVQ i16Args_ahead(AX), R13")
	a.o("MOVQ i16Args_aheadEnd(AX), R15")
	a.o("MOVQ i16Args_rows(AX), SI")
	a.o("MOVQ i16Args_steps(AX), DI")
	a.o("MOVQ i16Args_rowStride(AX), R8")
	a.o("MOVQ i16Args_vectors(AX), R9")
	a.o("SHLQ $6, R9")
	a.o("LEAQ -2(SI)(R9*1), SI")
	a.o("VPBROADCASTD R8, Z9")
	a.o("VPMULLD ascending<>(SB), Z9, Z9")
	a.o("VPBROADCASTD high16<>(SB), Z8")
	a.o("SHLQ $4, R8")
	a.o("LEAQ (R8)(R8*2), R9")
	for i := range 4 {
		a.o("LEAQ (SI)%s, R11", []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i])
		a.o("KXNORW K1, K1, K1")
		a.o("VPXORD Z%d, Z%d, Z%d", i, i, i)
		a.o("VPGATHERDD (R11)(Z9*1), K1, Z%d", i)
		a.fetchFurther(8)
	}
	a.o("MOVQ R13, i16Args_ahead(AX)")
	for i := range 4 {
		a.o("VPANDD Z8, Z%d, Z%d", i, i)
		a.o("VMOVUPS Z%d, %d(DI)", i, 64*i)
	}
	a.end()
}

// i16Numbers makes whole numbers of a row and their step.
func (a *asm) i16Numbers() {
	a.text("attnI16NumbersAVX512", "i16Args")
	a.o("MOVQ i16Args_rows(AX), SI")
	a.o("MOVQ i16Args_x(AX), DI")
	a.o("MOVQ i16Args_steps(AX), BX")
	a.o("VPBROADCASTD abs<>(SB), Z3")
	a.o("VPXORD Z0, Z0, Z0")
	a.o("MOVQ SI, R11")
	a.o("MOVQ i16Args_vectors(AX), CX")
	a.label("top")
	for i := range 2 {
		a.o("VPANDD %d(R11), Z3, Z%d", 64*i, 4+i)
		a.o("VPMAXUD Z%d, Z0, Z0", 4+i)
	}
	a.o("ADDQ $128, R11")
	a.o("DECQ CX")
	a.o("JNZ top")
	a.foldHalves(0, 1, "VPMAXUD")
	a.o("VPMAXUD.BCST leastPart<>(SB), X0, X0")
	a.o("VPMINUD.BCST infinite<>(SB), X0, X0")
	a.o("VSUBPS X0, X0, X2") // a NaN, if it is not finite
	a.o("VMULPS.BCST i16Args_perReach(AX), X0, X1")
	a.o("VADDPS X2, X1, X1")
	a.o("VPADDD.BCST low16<>(SB), X1, X1")
	a.o("VPANDD.BCST high16<>(SB), X1, X1")
	a.o("VMOVSS X1, (BX)")
	a.o("VBROADCASTSS one<>(SB), X0")
	a.o("VDIVPS X1, X0, X0")
	a.o("VBROADCASTSS X0, Z0")
	a.o("MOVQ i16Args_vectors(AX), CX")
	a.label("numbers")
	for i := range 2 {
		a.o("VMULPS %d(SI), Z0, Z%d", 64*i, 4+i)
		a.o("VCVTPS2DQ Z%d, Z%d", 4+i, 4+i)
		a.o("VPMOVDW Z%d, %d(DI)", 4+i, 32*i)
	}
	a.o("ADDQ $128, SI")
	a.o("ADDQ $64, DI")
	a.o("DECQ CX")
	a.o("JNZ numbers")
	a.end()
}

// i16Keys turns 64 rows into lines of a pair of columns of each.
func (a *asm) i16Keys() {
	a.text("attnI16KeysAVX512", "i16Args")
	a.o("MOVQ i16Args_rows(AX), SI")
	a.o("MOVQ i16Args_lines(AX), DI")
	a.o("MOVQ i16Args_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ i16Args_ahead(AX), R13")
	a.o("MOVQ i16Args_aheadEnd(AX), R15")
	a.o("MOVQ $4, R10")
	a.label("block")
	a.o("MOVQ SI, R11")
	a.o("MOVQ DI, DX")
	a.o("MOVQ i16Args_vectors(AX), CX")
	a.label("columns")
	a.o("MOVQ R11, R12")
	for i := range 16 {
		a.o("VMOVUPS (R12)%s, Z%d", []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i%4], i)
		if i%4 == 3 {
			a.o("LEAQ (R12)(R8*4), R12")
		}
	}
	a.fetchLines(8)
	for i, r := range a.transpose512() {
		a.o("VMOVUPS Z%d, %d(DX)", r, rowBytes*i)
	}
	a.o("ADDQ $64, R11")
	a.o("ADDQ $%d, DX", 16*rowBytes)
	a.o("DECQ CX")
	a.o("JNZ columns")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("ADDQ $64, DI")
	a.o("DECQ R10")
	a.o("JNZ block")
	a.o("MOVQ R13, i16Args_ahead(AX)")
	a.end()
}

// valuePairs goes over pairs of rows, 16 apart, of which there are two times 16: SI and R12 are at their beginning.
func (a *asm) valuePairs(do func()) {
	a.o("MOVQ R8, R12")
	a.o("SHLQ $4, R12")
	a.o("ADDQ SI, R12")
	a.o("MOVQ $2, R10")
	a.label("half")
	a.o("MOVQ $16, R14")
	a.label("pair")
	do()
	a.o("ADDQ R8, SI")
	a.o("ADDQ R8, R12")
	a.o("DECQ R14")
	a.o("JNZ pair")
	a.o("MOVQ R12, SI")
	a.o("MOVQ R8, R12")
	a.o("SHLQ $4, R12")
	a.o("ADDQ SI, R12")
	a.o("DECQ R10")
	a.o("JNZ half")
}

// i16Lines turns pairs of rows into lines of a pair of positions of every column, 64 columns after the other.
func (a *asm) i16Lines() {
	a.text("attnI16LinesAVX512", "i16Args")
	a.o("MOVQ i16Args_rows(AX), SI")
	a.o("MOVQ i16Args_lines(AX), DI")
	a.o("MOVQ i16Args_rowStride(AX), R8")
	a.o("MOVQ i16Args_ahead(AX), R13")
	a.o("MOVQ i16Args_aheadEnd(AX), R15")
	a.o("VMOVUPS quarters<>(SB), Z16")
	a.valuePairs(func() {
		a.o("XORQ R9, R9")
		a.o("MOVQ DI, DX")
		a.o("MOVQ i16Args_vectors(AX), CX")
		a.label("columns")
		for c := range 2 {
			z := 4 * c
			a.o("VPERMQ %d(SI)(R9*1), Z16, Z%d", 64*c, z)
			a.o("VPERMQ %d(R12)(R9*1), Z16, Z%d", 64*c, z+1)
			a.o("VPUNPCKLWD Z%d, Z%d, Z%d", z+1, z, z+2)
			a.o("VPUNPCKHWD Z%d, Z%d, Z%d", z+1, z, z+3)
			a.o("VMOVUPS Z%d, %d(DX)", z+2, 128*c)
			a.o("VMOVUPS Z%d, %d(DX)", z+3, 128*c+64)
		}
		a.fetchLines(4)
		a.o("ADDQ $128, R9")
		a.o("ADDQ $%d, DX", rowBytes*i16Pairs)
		a.o("SUBQ $2, CX")
		a.o("JNZ columns")
		a.o("ADDQ $%d, DI", rowBytes)
	})
	a.o("MOVQ R13, i16Args_ahead(AX)")
	a.end()
}

// i16Products leaves in the first registers the sums over lines of the products of the pairs of some rows, and finishes them.
func (a *asm) i16Products(name string, rows int, finish func()) {
	a.text(fmt.Sprintf("attnI16%s%dAVX512", name, rows), "i16Args")
	a.o("MOVQ i16Args_x(AX), SI")
	a.o("MOVQ i16Args_sums(AX), DI")
	a.o("MOVQ i16Args_xStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R12")
	a.o("LEAQ (R8)(R8*4), R14")
	a.o("MOVQ i16Args_factors(AX), BX")
	a.o("MOVQ i16Args_groups(AX), R10")
	a.o("MOVQ i16Args_ahead(AX), R13")
	a.o("MOVQ i16Args_aheadEnd(AX), R15")
	a.label("rows")
	a.o("MOVQ SI, R9")
	a.o("MOVQ i16Args_lines(AX), DX")
	a.o("MOVQ i16Args_pairs(AX), CX")
	a.zero(i16Columns * rows)
	a.label("loop")
	for k := range 2 {
		for i := range i16Columns {
			a.o("VMOVUPS %d(DX), Z%d", rowBytes*k+64*i, 24+i)
		}
		for r := range rows {
			x := 28 + r%4
			a.o("VPBROADCASTD %d(R9)%s, Z%d", 4*k, []string{"", "(R8*1)", "(R8*2)", "(R12*1)", "(R8*4)", "(R14*1)"}[r], x)
			for i := range i16Columns {
				a.o("VPDPWSSD Z%d, Z%d, Z%d", x, 24+i, i16Columns*r+i)
			}
		}
	}
	a.fetchLines(1)
	a.o("ADDQ $8, R9")
	a.o("ADDQ $%d, DX", 2*rowBytes)
	a.o("SUBQ $2, CX")
	a.o("JNZ loop")
	finish()
	for range rows {
		a.o("ADDQ R8, SI")
	}
	a.o("ADDQ $%d, BX", 4*rows)
	a.o("DECQ R10")
	a.o("JNZ rows")
	a.o("MOVQ R13, i16Args_ahead(AX)")
	a.end()
}

// i16ScoreProducts: scores of queries and 64 keys.
func (a *asm) i16ScoreProducts(rows int) {
	a.i16Products("Scores", rows, func() {
		a.o("MOVQ i16Args_steps(AX), R11")
		for i := range i16Columns {
			a.o("VMOVUPS %d(R11), Z%d", 64*i, 24+i)
		}
		for r := range rows {
			a.o("VBROADCASTSS %d(BX), Z28", 4*r)
			for i := range i16Columns {
				z := i16Columns*r + i
				a.o("VCVTDQ2PS Z%d, Z%d", z, z)
				a.o("VMULPS Z%d, Z%d, Z%d", 24+i, z, z)
				a.o("VMULPS Z28, Z%d, Z%d", z, z)
				a.o("VMOVUPS Z%d, %d(DI)", z, rowBytes*r+64*i)
			}
		}
		a.o("ADDQ $%d, DI", rowBytes*rows)
	})
}

// i16ValueProducts: what 64 weighted values add to the sums of 64 columns.
func (a *asm) i16ValueProducts(rows int) {
	a.i16Products("Values", rows, func() {
		for r := range rows {
			a.o("VBROADCASTSS %d(BX), Z28", 4*r)
			for i := range i16Columns {
				z := i16Columns*r + i
				a.o("VCVTDQ2PS Z%d, Z%d", z, z)
				a.o("VFMADD213PS %d(DI), Z28, Z%d", 64*i, z)
				a.o("VMOVUPS Z%d, %d(DI)", z, 64*i)
			}
			a.o("ADDQ i16Args_sumStride(AX), DI")
		}
	})
}

// i16Softmax turns rows of 64 scores into whole numbers of weights, in pairs 16 positions apart, and their steps.
func (a *asm) i16Softmax(rows int) {
	a.framed(fmt.Sprintf("attnI16Softmax%dAVX512", rows), "i16Args", 16)
	a.softmaxConstants("i16Args")
	a.o("VBROADCASTSS wholes<>(SB), Z13")
	a.o("VPBROADCASTD toScale<>(SB), Z14")
	a.o("MOVL $0x55555555, CX")
	a.o("KMOVD CX, K7")
	a.o("MOVQ i16Args_x(AX), R14")
	a.o("MOVQ i16Args_factors(AX), R15")
	a.o("MOVQ i16Args_steps(AX), R13")
	a.label("rows")
	a.newTops("i16Args", rows)
	for r := range rows {
		const f, p = 20, 28
		a.powers(r, true)
		a.o("VADDPS Z%d, Z%d, Z%d", p+1, p, 16+r)
		a.o("VADDPS Z%d, Z%d, Z%d", p+2, 16+r, 16+r)
		a.o("VADDPS Z%d, Z%d, Z%d", p+3, 16+r, 16+r)
		for i := range 4 { // what has no weight may be anything
			a.o("VMULPS.Z %d(R13), Z%d, K%d, Z%d", 64*i, p+i, 3+i, f+i)
		}
		a.o("VPMAXUD Z%d, Z%d, Z%d", f, f+1, f+4)
		a.o("VPMAXUD Z%d, Z%d, Z%d", f+2, f+3, f+5)
		a.o("VPMAXUD Z%d, Z%d, Z%d", f+4, f+5, f+4)
		a.foldHalves(f+4, f+5, "VPMAXUD")
		a.o("VPBROADCASTD X%d, Z%d", f+4, f+4)
		a.o("VPSLLD $1, Z%d, Z%d", f+4, f+4) // a NaN may have a sign
		a.o("VPSRLD $24, Z%d, Z%d", f+4, f+4)
		a.o("VPCMPEQD.BCST finite<>(SB), Z%d, K1", f+4)
		a.o("VPMAXUD.BCST leastTop<>(SB), Z%d, Z%d", f+4, f+4)
		a.o("VPSUBD Z%d, Z14, Z%d", f+4, f+5)
		a.o("VPSLLD $23, Z%d, Z%d", f+5, f+5)
		a.o("VPSUBD.BCST weightBits<>(SB), X%d, X%d", f+4, f+4)
		a.o("VPSLLD $23, X%d, X%d", f+4, f+4)
		a.o("VPORD.BCST nan<>(SB), X%d, K1, X%d", f+4, f+4)
		a.o("VMOVSS X%d, (R15)", f+4)
		for i := range 4 {
			a.o("VFMADD213PS Z13, Z%d, Z%d", f+5, f+i)
		}
		for i := range 2 {
			a.o("VPSLLD $16, Z%d, Z%d", f+2*i+1, f+2*i+1)
			a.o("VMOVDQU16 Z%d, K7, Z%d", f+2*i, f+2*i+1)
			a.o("VMOVUPS Z%d, %d(R14)", f+2*i+1, 64*i)
		}
		a.o("ADDQ $4, R15")
		a.o("ADDQ $128, R14")
	}
	a.softmaxSums(rows)
	a.end()
}

// i16ScoreRows: scores of a few queries and 64 keys as they are stored.
func (a *asm) i16ScoreRows(rows int) {
	a.text(fmt.Sprintf("attnI16ScoreRows%dAVX512", rows), "i16Args")
	a.o("MOVQ i16Args_rows(AX), SI")
	a.o("MOVQ i16Args_sums(AX), DI")
	a.o("MOVQ i16Args_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ i16Args_ahead(AX), R13")
	a.o("MOVQ i16Args_aheadEnd(AX), R15")
	a.o("MOVQ i16Args_steps(AX), R10")
	a.o("MOVQ i16Args_xStride(AX), R12")
	a.o("LEAQ (R12)(R12*2), BX")
	a.o("MOVQ $16, DX")
	a.label("keys")
	a.zero(4 * rows)
	a.o("MOVQ SI, R11")
	a.o("MOVQ i16Args_x(AX), R14")
	a.o("MOVQ i16Args_vectors(AX), CX")
	a.label("columns")
	for r := range rows {
		a.o("VMOVUPS (R14)%s, Z%d", []string{"", "(R12*1)", "(R12*2)", "(BX*1)"}[r], 16+r)
	}
	for i := range 4 {
		a.o("VMOVUPS (R11)%s, Z%d", []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i], 20+i)
		for r := range rows {
			a.o("VPDPWSSD Z%d, Z%d, Z%d", 20+i, 16+r, 4*r+i)
		}
	}
	a.fetchFurther(4)
	a.o("ADDQ $64, R11")
	a.o("ADDQ $64, R14")
	a.o("DECQ CX")
	a.o("JNZ columns")
	a.o("MOVQ i16Args_factors(AX), R11")
	for r := range rows {
		a.fold512(4*r, 16+r, "VPADDD")
		a.o("VCVTDQ2PS X%d, X%d", 4*r, 4*r)
		a.o("VMULPS (R10), X%d, X%d", 4*r, 4*r)
		a.o("VMULPS.BCST %d(R11), X%d, X%d", 4*r, 4*r, 4*r)
		a.o("VMOVUPS X%d, %d(DI)", 4*r, rowBytes*r)
	}
	a.o("ADDQ $16, DI")
	a.o("ADDQ $16, R10")
	a.o("LEAQ (SI)(R8*4), SI")
	a.o("DECQ DX")
	a.o("JNZ keys")
	a.o("MOVQ R13, i16Args_ahead(AX)")
	a.end()
}

// i16ValueRows: what 64 weighted values add to the sums of a few queries, 64 columns at a time, which are in an order of their
// own until the end.
func (a *asm) i16ValueRows(rows int) {
	a.text(fmt.Sprintf("attnI16ValueRows%dAVX512", rows), "i16Args")
	a.o("MOVQ i16Args_sums(AX), DI")
	a.o("MOVQ i16Args_rowStride(AX), R8")
	a.o("MOVQ i16Args_ahead(AX), R13")
	a.o("MOVQ i16Args_aheadEnd(AX), R15")
	a.o("VMOVUPS packFirst<>(SB), Z28")
	a.o("VMOVUPS packSecond<>(SB), Z29")
	a.o("MOVQ i16Args_rows(AX), R11")
	a.o("MOVQ i16Args_vectors(AX), CX")
	a.label("columns")
	a.zero(4 * rows)
	a.o("MOVQ R11, SI")
	a.o("MOVQ i16Args_x(AX), DX")
	a.valuePairs(func() {
		for r := range rows {
			a.o("VPBROADCASTD %d(DX), Z%d", 128*r, 16+r)
		}
		for c := range 2 {
			z := 20 + 4*c
			a.o("VMOVUPS %d(SI), Z%d", 64*c, z)
			a.o("VMOVUPS %d(R12), Z%d", 64*c, z+1)
			a.o("VPUNPCKLWD Z%d, Z%d, Z%d", z+1, z, z+2)
			a.o("VPUNPCKHWD Z%d, Z%d, Z%d", z+1, z, z+3)
			for r := range rows {
				a.o("VPDPWSSD Z%d, Z%d, Z%d", z+2, 16+r, 4*r+2*c)
				a.o("VPDPWSSD Z%d, Z%d, Z%d", z+3, 16+r, 4*r+2*c+1)
			}
		}
		a.fetchFurther(4)
		a.o("ADDQ $4, DX")
	})
	a.o("MOVQ i16Args_factors(AX), BX")
	a.o("MOVQ DI, DX")
	for r := range rows {
		a.o("VBROADCASTSS %d(BX), Z27", 4*r)
		for c := range 2 {
			z := 4*r + 2*c
			a.o("VMOVDQA64 Z%d, Z20", z)
			a.o("VPERMT2D Z%d, Z28, Z20", z+1)
			a.o("VPERMT2D Z%d, Z29, Z%d", z+1, z)
			for i, z := range []int{20, z} {
				a.o("VCVTDQ2PS Z%d, Z%d", z, z)
				a.o("VFMADD213PS %d(DX), Z27, Z%d", 128*c+64*i, z)
				a.o("VMOVUPS Z%d, %d(DX)", z, 128*c+64*i)
			}
		}
		a.o("ADDQ i16Args_sumStride(AX), DX")
	}
	a.o("ADDQ $128, R11")
	a.o("ADDQ $256, DI")
	a.o("SUBQ $2, CX")
	a.o("JNZ columns")
	a.o("MOVQ R13, i16Args_ahead(AX)")
	a.end()
}
