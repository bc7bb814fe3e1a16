package main

import "fmt"

// Routines of attention on bfloat16 numbers as whole ones that share an exponent, for AVX512_VNNI: see attn_fixed.go, which says
// what they give.

const (
	fixedRows    = 6 // rows of pairs that share a line, by 64 keys or columns: 24 sums
	fixedColumns = 4 // vectors of 16 keys or columns
	fixedQueries = 4 // that take rows as they are stored
	fixedPairs   = 32
	fixedStrip   = 2 * fixedPairs * 2 * 64 // bytes of 64 columns of a tile of values
)

// fixedAttention512 writes them all.
func (a *asm) fixedAttention512() {
	a.WriteString(opening)
	a.weightConstants()
	const bias, bits, weightBits = 127, 11, 12
	for _, c := range []struct {
		name string
		v    uint32
	}{
		{"least100", 0xc2c80000}, {"leastPart", 0x0d800000}, {"abs", 0x7fffffff}, {"high16", 0xffff0000}, {"nan", 0x7fc00000},
		{"finite", 255}, {"wholes", 0x4b400000}, // 1.5·2^23: to which a number is added to be rounded, whose low half is then that
		{"leastExponent", 64}, {"toScale", 2*bias + bits}, {"toStep", bits},
		{"leastTop", 13}, {"toWeightScale", 2*bias + weightBits}, {"toWeightStep", weightBits},
	} {
		a.word(c.name, c.v)
	}
	a.words("firstColumns", func(i int) int { return i/2 + i%2*16 })
	a.words("secondColumns", func(i int) int { return 8 + i/2 + i%2*16 })
	a.WriteString("\n")
	a.fixedSteps()
	a.fixedQuery()
	a.fixedKeys()
	a.fixedLines()
	for rows := 1; rows <= fixedRows; rows++ {
		a.fixedScoreProducts(rows)
		a.fixedValueProducts(rows)
	}
	for rows := 1; rows <= fixedQueries; rows++ {
		a.fixedScoreRows(rows)
		a.fixedValueRows(rows)
	}
	for _, rows := range []int{1, 2, halfTops} {
		a.fixedSoftmax(rows)
	}
}

// exponentSteps turns exponents of the largest numbers, in Z(e), to what numbers are multiplied by, in Z(e+1), and to what their
// whole ones count, in Z(e): a NaN, where they are not finite. K1 is lost.
func (a *asm) exponentSteps(e int, least, scale, step string) {
	a.o("VPBROADCASTD finite<>(SB), Z%d", e+1)
	a.o("VPCMPEQD Z%d, Z%d, K1", e+1, e)
	a.o("VPMAXUD.BCST %s<>(SB), Z%d, Z%d", least, e, e)
	a.o("VPBROADCASTD %s<>(SB), Z%d", scale, e+1)
	a.o("VPSUBD Z%d, Z%d, Z%d", e, e+1, e+1)
	a.o("VPSLLD $23, Z%d, Z%d", e+1, e+1)
	a.o("VPSUBD.BCST %s<>(SB), Z%d, Z%d", step, e, e)
	a.o("VPSLLD $23, Z%d, Z%d", e, e)
	a.o("VPORD.BCST nan<>(SB), Z%d, K1, Z%d", e, e)
}

// fixedSteps writes for 64 rows what their numbers are multiplied by, then what their whole ones count.
func (a *asm) fixedSteps() {
	a.text("attnFixedStepsAVX512", "fixedArgs")
	a.o("MOVQ fixedArgs_rows(AX), SI")
	a.o("MOVQ fixedArgs_scales(AX), DI")
	a.o("MOVQ fixedArgs_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ $4, R10")
	a.label("block")
	a.o("MOVQ SI, R11")
	a.o("MOVQ fixedArgs_vectors(AX), CX")
	a.zero(16)
	a.label("columns")
	a.o("MOVQ R11, R12")
	for i := range 16 {
		a.o("VPSLLW $1, (R12)%s, Z%d", []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i%4], 16+i%8)
		a.o("VPMAXUW Z%d, Z%d, Z%d", 16+i%8, i, i)
		if i%4 == 3 {
			a.o("LEAQ (R12)(R8*4), R12")
		}
	}
	a.o("ADDQ $64, R11")
	a.o("DECQ CX")
	a.o("JNZ columns")
	for width, words := 1, []string{"WD", "DQ", "QDQ"}; width < 8; width *= 2 {
		for i := 0; i < 16; i += 2 * width {
			a.o("VPUNPCKL%s Z%d, Z%d, Z%d", words[0], i+width, i, 16+i)
			a.o("VPUNPCKH%s Z%d, Z%d, Z%d", words[0], i+width, i, i)
			a.o("VPMAXUW Z%d, Z%d, Z%d", 16+i, i, i)
		}
		words = words[1:]
	}
	a.o("VSHUFI32X4 $0x88, Z8, Z0, Z16")
	a.o("VSHUFI32X4 $0xdd, Z8, Z0, Z17")
	a.o("VPMAXUW Z16, Z17, Z16")
	a.o("VSHUFI32X4 $0xb1, Z16, Z16, Z17")
	a.o("VPMAXUW Z16, Z17, Z16")
	a.o("VSHUFI32X4 $0x08, Z16, Z16, Z16")
	a.o("VPMOVZXWD Y16, Z16")
	a.o("VPSRLD $8, Z16, Z16")
	a.exponentSteps(16, "leastExponent", "toScale", "toStep")
	a.o("VMOVUPS Z17, (DI)")
	a.o("VMOVUPS Z16, %d(DI)", rowBytes)
	a.o("ADDQ $64, DI")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("DECQ R10")
	a.o("JNZ block")
	a.end()
}

// fixedQuery makes the whole numbers of a query and their step.
func (a *asm) fixedQuery() {
	a.text("attnFixedQueryAVX512", "fixedArgs")
	a.o("MOVQ fixedArgs_rows(AX), SI")
	a.o("MOVQ fixedArgs_x(AX), DI")
	a.o("MOVQ fixedArgs_factors(AX), BX")
	a.o("VPBROADCASTD abs<>(SB), Z3")
	a.o("VPXORD Z0, Z0, Z0")
	a.o("MOVQ SI, R11")
	a.o("MOVQ fixedArgs_vectors(AX), CX")
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
	a.o("VMULPS.BCST fixedArgs_perReach(AX), X0, X1")
	a.o("VSUBPS X0, X0, X2") // a NaN, if it is not finite
	a.o("VADDPS X2, X1, X1")
	a.o("VMOVSS X1, (BX)")
	a.o("VBROADCASTSS fixedArgs_reach(AX), X1")
	a.o("VDIVPS X0, X1, X0")
	a.o("VBROADCASTSS X0, Z0")
	a.o("MOVQ fixedArgs_vectors(AX), CX")
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

// fixedConstants loads what fix needs.
func (a *asm) fixedConstants() {
	a.o("VBROADCASTSS wholes<>(SB), Z30")
	a.o("VPBROADCASTD high16<>(SB), Z31")
	a.o("MOVL $0x55555555, CX")
	a.o("KMOVD CX, K7")
}

// fix leaves the whole numbers of even words at p in the low words of Z(z), those of odd ones in the low words of Z(z+1). Numbers
// are multiplied by that at scale.
func (a *asm) fix(p, scale string, z int) {
	a.o("VPSLLD $16, %s, Z%d", p, z)
	a.o("VPANDD %s, Z31, Z%d", p, z+1)
	a.o("VFMADD132PS.BCST %s, Z30, Z%d", scale, z)
	a.o("VFMADD132PS.BCST %s, Z30, Z%d", scale, z+1)
}

// pair leaves the low words of Z(low) and of Z(high) as pairs in Z(dst). Z(high) may be that.
func (a *asm) pair(low, high, dst int) {
	a.o("VPSLLD $16, Z%d, Z%d", high, dst)
	a.o("VMOVDQU16 Z%d, K7, Z%d", low, dst)
}

// fixedKeys turns 64 rows into lines of a pair of columns of each.
func (a *asm) fixedKeys() {
	a.text("attnFixedKeysAVX512", "fixedArgs")
	a.o("MOVQ fixedArgs_rows(AX), SI")
	a.o("MOVQ fixedArgs_lines(AX), DI")
	a.o("MOVQ fixedArgs_scales(AX), BX")
	a.o("MOVQ fixedArgs_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ fixedArgs_ahead(AX), R13")
	a.o("MOVQ fixedArgs_aheadEnd(AX), R15")
	a.fixedConstants()
	a.o("MOVQ $4, R10")
	a.label("block")
	a.o("MOVQ SI, R11")
	a.o("MOVQ DI, DX")
	a.o("MOVQ fixedArgs_vectors(AX), CX")
	a.label("columns")
	a.o("MOVQ R11, R12")
	for i := range 16 {
		z := 16 + i%4*2
		a.fix("(R12)"+[]string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i%4], fmt.Sprintf("%d(BX)", 4*i), z)
		a.pair(z, z+1, i)
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
	a.o("ADDQ $64, BX")
	a.o("DECQ R10")
	a.o("JNZ block")
	a.o("MOVQ R13, fixedArgs_ahead(AX)")
	a.end()
}

// valuePairs goes over pairs of rows, 16 apart, of which there are two times 16: SI and R12 are at their beginning, BX at what
// their numbers are multiplied by.
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
	a.o("ADDQ $4, BX")
	a.o("DECQ R14")
	a.o("JNZ pair")
	a.o("MOVQ R12, SI")
	a.o("MOVQ R8, R12")
	a.o("SHLQ $4, R12")
	a.o("ADDQ SI, R12")
	a.o("ADDQ $64, BX")
	a.o("DECQ R10")
	a.o("JNZ half")
}

// fixedLines turns pairs of rows into lines of a pair of positions of every column, 64 columns after the other.
func (a *asm) fixedLines() {
	a.text("attnFixedLinesAVX512", "fixedArgs")
	a.o("MOVQ fixedArgs_rows(AX), SI")
	a.o("MOVQ fixedArgs_lines(AX), DI")
	a.o("MOVQ fixedArgs_scales(AX), BX")
	a.o("MOVQ fixedArgs_rowStride(AX), R8")
	a.o("MOVQ fixedArgs_ahead(AX), R13")
	a.o("MOVQ fixedArgs_aheadEnd(AX), R15")
	a.fixedConstants()
	a.o("VMOVUPS firstColumns<>(SB), Z28")
	a.o("VMOVUPS secondColumns<>(SB), Z29")
	a.valuePairs(func() {
		a.o("XORQ R9, R9")
		a.o("MOVQ DI, DX")
		a.o("MOVQ fixedArgs_vectors(AX), CX")
		a.label("columns")
		for c := range 2 {
			z := 8 * c
			a.fix(fmt.Sprintf("%d(SI)(R9*1)", 64*c), "(BX)", z)
			a.fix(fmt.Sprintf("%d(R12)(R9*1)", 64*c), "64(BX)", z+2)
			a.pair(z, z+2, z+4)
			a.pair(z+1, z+3, z+5)
			a.o("VMOVDQA64 Z%d, Z%d", z+4, z+6)
			a.o("VPERMT2D Z%d, Z28, Z%d", z+5, z+4)
			a.o("VPERMT2D Z%d, Z29, Z%d", z+5, z+6)
			a.o("VMOVUPS Z%d, %d(DX)", z+4, 128*c)
			a.o("VMOVUPS Z%d, %d(DX)", z+6, 128*c+64)
		}
		a.fetchLines(4)
		a.o("ADDQ $128, R9")
		a.o("ADDQ $%d, DX", rowBytes*fixedPairs)
		a.o("SUBQ $2, CX")
		a.o("JNZ columns")
		a.o("ADDQ $%d, DI", rowBytes)
	})
	a.o("MOVQ R13, fixedArgs_ahead(AX)")
	a.end()
}

// fixedProducts leaves in the first registers the sums over lines of the products of the pairs of some rows, and finishes them.
func (a *asm) fixedProducts(name string, rows int, finish func()) {
	a.text(fmt.Sprintf("attnFixed%s%dAVX512", name, rows), "fixedArgs")
	a.o("MOVQ fixedArgs_x(AX), SI")
	a.o("MOVQ fixedArgs_sums(AX), DI")
	a.o("MOVQ fixedArgs_xStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R12")
	a.o("LEAQ (R8)(R8*4), R14")
	a.o("MOVQ fixedArgs_factors(AX), BX")
	a.o("MOVQ fixedArgs_groups(AX), R10")
	a.o("MOVQ fixedArgs_ahead(AX), R13")
	a.o("MOVQ fixedArgs_aheadEnd(AX), R15")
	a.label("rows")
	a.o("MOVQ SI, R9")
	a.o("MOVQ fixedArgs_lines(AX), DX")
	a.o("MOVQ fixedArgs_pairs(AX), CX")
	a.zero(fixedColumns * rows)
	a.label("loop")
	for k := range 2 {
		for i := range fixedColumns {
			a.o("VMOVUPS %d(DX), Z%d", rowBytes*k+64*i, 24+i)
		}
		for r := range rows {
			x := 28 + r%4
			a.o("VPBROADCASTD %d(R9)%s, Z%d", 4*k, []string{"", "(R8*1)", "(R8*2)", "(R12*1)", "(R8*4)", "(R14*1)"}[r], x)
			for i := range fixedColumns {
				a.o("VPDPWSSD Z%d, Z%d, Z%d", x, 24+i, fixedColumns*r+i)
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
	a.o("MOVQ R13, fixedArgs_ahead(AX)")
	a.end()
}

// fixedScoreProducts: scores of queries and 64 keys.
func (a *asm) fixedScoreProducts(rows int) {
	a.fixedProducts("Scores", rows, func() {
		a.o("MOVQ fixedArgs_scales(AX), R11")
		for i := range fixedColumns {
			a.o("VMOVUPS %d(R11), Z%d", rowBytes+64*i, 24+i)
		}
		for r := range rows {
			a.o("VBROADCASTSS %d(BX), Z28", 4*r)
			for i := range fixedColumns {
				z := fixedColumns*r + i
				a.o("VCVTDQ2PS Z%d, Z%d", z, z)
				a.o("VMULPS Z%d, Z%d, Z%d", 24+i, z, z)
				a.o("VMULPS Z28, Z%d, Z%d", z, z)
				a.o("VMOVUPS Z%d, %d(DI)", z, rowBytes*r+64*i)
			}
		}
		a.o("ADDQ $%d, DI", rowBytes*rows)
	})
}

// fixedValueProducts: what 64 weighted values add to the sums of 64 columns.
func (a *asm) fixedValueProducts(rows int) {
	a.fixedProducts("Values", rows, func() {
		for r := range rows {
			a.o("VBROADCASTSS %d(BX), Z28", 4*r)
			for i := range fixedColumns {
				z := fixedColumns*r + i
				a.o("VCVTDQ2PS Z%d, Z%d", z, z)
				a.o("VFMADD213PS %d(DI), Z28, Z%d", 64*i, z)
				a.o("VMOVUPS Z%d, %d(DI)", z, 64*i)
			}
			a.o("ADDQ fixedArgs_sumStride(AX), DI")
		}
	})
}

// fixedSoftmax turns rows of 64 scores into whole numbers of weights, in pairs 16 positions apart, and their steps.
func (a *asm) fixedSoftmax(rows int) {
	a.framed(fmt.Sprintf("attnFixedSoftmax%dAVX512", rows), "fixedArgs", 16)
	a.softmaxConstants("fixedArgs")
	a.o("VBROADCASTSS wholes<>(SB), Z13")
	a.o("MOVL $0x55555555, CX")
	a.o("KMOVD CX, K7")
	a.o("MOVQ fixedArgs_x(AX), R14")
	a.o("MOVQ fixedArgs_factors(AX), R15")
	a.o("MOVQ fixedArgs_scales(AX), R13")
	a.label("rows")
	a.newTops("fixedArgs", rows)
	for r := range rows {
		const f, p = 20, 28
		a.powers(r, true)
		a.o("VADDPS Z%d, Z%d, Z%d", p+1, p, 16+r)
		a.o("VADDPS Z%d, Z%d, Z%d", p+2, 16+r, 16+r)
		a.o("VADDPS Z%d, Z%d, Z%d", p+3, 16+r, 16+r)
		for i := range 4 { // what has no weight may be anything
			a.o("VMULPS.Z %d(R13), Z%d, K%d, Z%d", rowBytes+64*i, p+i, 3+i, f+i)
		}
		a.o("VPMAXUD Z%d, Z%d, Z%d", f, f+1, f+4)
		a.o("VPMAXUD Z%d, Z%d, Z%d", f+2, f+3, f+5)
		a.o("VPMAXUD Z%d, Z%d, Z%d", f+4, f+5, f+4)
		a.foldHalves(f+4, f+5, "VPMAXUD")
		a.o("VPBROADCASTD X%d, Z%d", f+4, f+4)
		a.o("VPSLLD $1, Z%d, Z%d", f+4, f+4) // a NaN may have a sign
		a.o("VPSRLD $24, Z%d, Z%d", f+4, f+4)
		a.exponentSteps(f+4, "leastTop", "toWeightScale", "toWeightStep")
		a.o("VMOVSS X%d, (R15)", f+4)
		for i := range 4 {
			a.o("VFMADD213PS Z13, Z%d, Z%d", f+5, f+i)
		}
		for i := range 2 {
			a.pair(f+2*i, f+2*i+1, f+2*i+1)
			a.o("VMOVUPS Z%d, %d(R14)", f+2*i+1, 64*i)
		}
		a.o("ADDQ $4, R15")
		a.o("ADDQ $128, R14")
	}
	a.softmaxSums(rows)
	a.end()
}

// fixedScoreRows: scores of a few queries and 64 keys as they are stored.
func (a *asm) fixedScoreRows(rows int) {
	a.text(fmt.Sprintf("attnFixedScoreRows%dAVX512", rows), "fixedArgs")
	a.o("MOVQ fixedArgs_rows(AX), SI")
	a.o("MOVQ fixedArgs_sums(AX), DI")
	a.o("MOVQ fixedArgs_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ fixedArgs_ahead(AX), R13")
	a.o("MOVQ fixedArgs_aheadEnd(AX), R15")
	a.o("MOVQ fixedArgs_scales(AX), R10")
	a.o("MOVQ fixedArgs_xStride(AX), R12")
	a.o("LEAQ (R12)(R12*2), BX")
	a.fixedConstants()
	a.o("MOVQ $16, DX")
	a.label("keys")
	a.zero(4 * rows)
	a.o("MOVQ SI, R11")
	a.o("MOVQ fixedArgs_x(AX), R14")
	a.o("MOVQ fixedArgs_vectors(AX), CX")
	a.label("columns")
	for r := range rows {
		a.o("VMOVUPS (R14)%s, Z%d", []string{"", "(R12*1)", "(R12*2)", "(BX*1)"}[r], 16+r)
	}
	for i := range 4 {
		z := 20 + 2*i
		a.fix("(R11)"+[]string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i], fmt.Sprintf("%d(R10)", 4*i), z)
		a.pair(z, z+1, z+1)
		for r := range rows {
			a.o("VPDPWSSD Z%d, Z%d, Z%d", z+1, 16+r, 4*r+i)
		}
	}
	a.fetchLines(4)
	a.o("ADDQ $64, R11")
	a.o("ADDQ $64, R14")
	a.o("DECQ CX")
	a.o("JNZ columns")
	a.o("MOVQ fixedArgs_factors(AX), R11")
	for r := range rows {
		a.fold512(4*r, 16+r, "VPADDD")
		a.o("VCVTDQ2PS X%d, X%d", 4*r, 4*r)
		a.o("VMULPS %d(R10), X%d, X%d", rowBytes, 4*r, 4*r)
		a.o("VMULPS.BCST %d(R11), X%d, X%d", 4*r, 4*r, 4*r)
		a.o("VMOVUPS X%d, %d(DI)", 4*r, rowBytes*r)
	}
	a.o("ADDQ $16, DI")
	a.o("ADDQ $16, R10")
	a.o("LEAQ (SI)(R8*4), SI")
	a.o("DECQ DX")
	a.o("JNZ keys")
	a.o("MOVQ R13, fixedArgs_ahead(AX)")
	a.end()
}

// fixedValueRows: what 64 weighted values add to the sums of a few queries, 64 columns at a time.
func (a *asm) fixedValueRows(rows int) {
	a.text(fmt.Sprintf("attnFixedValueRows%dAVX512", rows), "fixedArgs")
	a.o("MOVQ fixedArgs_sums(AX), DI")
	a.o("MOVQ fixedArgs_rowStride(AX), R8")
	a.o("MOVQ fixedArgs_ahead(AX), R13")
	a.o("MOVQ fixedArgs_aheadEnd(AX), R15")
	a.fixedConstants()
	a.o("MOVQ fixedArgs_rows(AX), R11")
	a.o("MOVQ fixedArgs_vectors(AX), CX")
	a.label("columns")
	a.zero(4 * rows)
	a.o("MOVQ R11, SI")
	a.o("MOVQ fixedArgs_x(AX), DX")
	a.o("MOVQ fixedArgs_scales(AX), BX")
	a.valuePairs(func() {
		for r := range rows {
			a.o("VPBROADCASTD %d(DX), Z%d", 128*r, 16+r)
		}
		for c := range 2 {
			z := 20 + 4*c
			a.fix(fmt.Sprintf("%d(SI)", 64*c), "(BX)", z)
			a.fix(fmt.Sprintf("%d(R12)", 64*c), "64(BX)", z+2)
			a.pair(z, z+2, z+2)
			a.pair(z+1, z+3, z+3)
			for r := range rows {
				a.o("VPDPWSSD Z%d, Z%d, Z%d", z+2, 16+r, 4*r+2*c)
				a.o("VPDPWSSD Z%d, Z%d, Z%d", z+3, 16+r, 4*r+2*c+1)
			}
		}
		a.fetchLines(4)
		a.o("ADDQ $4, DX")
	})
	a.o("VMOVUPS firstColumns<>(SB), Z28")
	a.o("VMOVUPS secondColumns<>(SB), Z29")
	a.o("MOVQ fixedArgs_factors(AX), BX")
	a.o("MOVQ DI, DX")
	for r := range rows {
		a.o("VBROADCASTSS %d(BX), Z27", 4*r)
		for c := range 2 {
			z := 4*r + 2*c
			a.o("VMOVDQA64 Z%d, Z%d", z, 20)
			a.o("VPERMT2D Z%d, Z28, Z%d", z+1, 20)
			a.o("VPERMT2D Z%d, Z29, Z%d", z+1, z)
			for i, z := range []int{20, z} {
				a.o("VCVTDQ2PS Z%d, Z%d", z, z)
				a.o("VFMADD213PS %d(DX), Z27, Z%d", 128*c+64*i, z)
				a.o("VMOVUPS Z%d, %d(DX)", z, 128*c+64*i)
			}
		}
		a.o("ADDQ fixedArgs_sumStride(AX), DX")
	}
	a.o("ADDQ $128, R11")
	a.o("ADDQ $256, DI")
	a.o("SUBQ $2, CX")
	a.o("JNZ columns")
	a.o("MOVQ R13, fixedArgs_ahead(AX)")
	a.end()
}
