package main

import (
	"fmt"
	"math"
)

// Routines of attention on bfloat16 numbers, for AVX512_BF16: see attn_half.go, which says what they give.

const (
	halfRows    = 6 // rows of pairs that share a line, by 64 columns: 24 sums
	halfColumns = 4 // vectors of 16 columns
	halfTops    = 4 // rows whose maxima and sums are folded together
)

// evex writes an instruction of three 512-bit registers that the Go assembler lacks, of the map 0F38 without W.
func (a *asm) evex(prefix, opcode, rm, second, dst int) {
	not := func(n, bit int) int { return ^n >> bit & 1 } // as the prefix has upper bits of a number
	a.o("BYTE $0x62; BYTE $%#x; BYTE $%#x; BYTE $%#x; BYTE $%#x; BYTE $%#x",
		not(dst, 3)<<7|not(rm, 4)<<6|not(rm, 3)<<5|not(dst, 4)<<4|2,
		^second&15<<3|1<<2|prefix,
		2<<5|not(second, 4)<<3, opcode, 3<<6|dst&7<<3|rm&7)
}

// dot adds to every sum of Z(sum) the products of a pair of bfloat16 numbers in Z(x) with those in Z(y): VDPBF16PS.
func (a *asm) dot(x, y, sum int) { a.evex(2, 0x52, x, y, sum) }

// narrow leaves the numbers of Z(lo), then of Z(hi), in Z(dst) as bfloat16: VCVTNE2PS2BF16.
func (a *asm) narrow(lo, hi, dst int) { a.evex(3, 0x72, lo, hi, dst) }

// half512 writes them all.
func (a *asm) half512() {
	a.WriteString(opening)
	a.weightConstants()
	a.halfConstants()
	for _, columns := range []int{halfColumns, halfColumns / 2} {
		for rows := 1; rows <= halfRows; rows++ {
			a.products(fmt.Sprintf("attnHalfProducts%dx%dAVX512", rows, columns), rows, columns, a.dot)
		}
		a.halfValues(columns)
	}
	a.turn()
	for rows := 1; rows <= halfRows; rows++ {
		a.products(fmt.Sprintf("attnFloatProducts%dAVX512", rows), rows, halfColumns, func(line, x, sum int) {
			a.o("VFMADD231PS Z%d, Z%d, Z%d", x, line, sum)
		})
	}
	for rows := 1; rows <= halfQueries; rows++ {
		a.halfScoreRows(rows)
		a.halfValueRows(rows)
	}
	for _, rows := range []int{1, 2, halfTops} {
		a.halfSoftmax(rows)
	}
}

// weightConstants are what weights in powers of 2 need.
func (a *asm) weightConstants() {
	f := func(x float64) uint32 { return math.Float32bits(float32(x)) }
	for i, x := range []float64{0.6932829, 0.24221097, 0.05500893} {
		a.word(fmt.Sprintf("halfPow%d", i+1), f(x))
	}
	for i, x := range []float64{0.6931472, 0.24022648, 0.055503323, 0.009618437, 0.0013398875, 0.00015353362} {
		a.word(fmt.Sprintf("pow%d", i+1), f(x))
	}
	a.word("powLeast", f(-200))
	a.word("one", f(1))
	a.word("negInf", f(math.Inf(-1)))
}

// words are sixteen.
func (a *asm) words(name string, word func(i int) int) {
	for i := range 16 {
		fmt.Fprintf(a, "DATA %s<>+%d(SB)/4, $%#x\n", name, 4*i, word(i))
	}
	fmt.Fprintf(a, "GLOBL %s<>(SB), RODATA|NOPTR, $64\n", name)
}

func (a *asm) halfConstants() {
	a.word("halfAbs", 0x7fff7fff)
	a.word("halfInf", 0x7f807f80)
	a.word("halfOnes", 0x3f803f80)
	// Of two rows of 32 numbers, number by number, the first 16 pairs and the others.
	a.words("halfFirst", func(i int) int { return (32+i)<<16 | i })
	a.words("halfSecond", func(i int) int { return (48+i)<<16 | 16 + i })
	// The columns that VPUNPCKLWD and VPUNPCKHWD give of 32, and where they are in what these give.
	a.words("unpackLow", func(i int) int { return i/4*8 + i%4 })
	a.words("unpackHigh", func(i int) int { return i/4*8 + i%4 + 4 })
	packed := func(c int) int { return c%8/4*16 + c/8*4 + c%4 }
	a.words("packFirst", packed)
	a.words("packSecond", func(i int) int { return packed(16 + i) })
	a.WriteString("\n")
}

// products: sums of some rows, those that are there or zeros, and the products of their words, pairs of numbers or floats, with
// as many lines, which add makes.
func (a *asm) products(name string, rows, columns int, add func(line, x, sum int)) {
	a.text(name, "halfArgs")
	a.o("MOVQ halfArgs_x(AX), SI")
	a.o("MOVQ halfArgs_sums(AX), DI")
	a.o("MOVQ halfArgs_xStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R12")
	a.o("LEAQ (R8)(R8*4), R14")
	a.o("MOVQ halfArgs_sumStride(AX), BX")
	a.o("MOVQ halfArgs_groups(AX), R10")
	a.o("MOVQ halfArgs_ahead(AX), R13")
	a.o("MOVQ halfArgs_aheadEnd(AX), R15")
	sums := func(move func(at string, z int)) {
		a.o("MOVQ DI, R11")
		for r := range rows {
			for i := range columns {
				move(fmt.Sprintf("%d(R11)", 64*i), columns*r+i)
			}
			a.o("ADDQ BX, R11")
		}
	}
	a.label("rows")
	a.o("MOVQ SI, R9")
	a.o("MOVQ halfArgs_lines(AX), DX")
	a.o("MOVQ halfArgs_pairs(AX), CX")
	a.o("CMPQ halfArgs_more(AX), $0")
	a.o("JNE more")
	a.zero(columns * rows)
	a.o("JMP loop")
	a.label("more")
	sums(func(at string, z int) { a.o("VMOVUPS %s, Z%d", at, z) })
	a.label("loop")
	for i := range columns {
		a.o("VMOVUPS %d(DX), Z%d", 64*i, 24+i)
	}
	for r := range rows {
		x := 28 + r%4
		a.o("VPBROADCASTD (R9)%s, Z%d", []string{"", "(R8*1)", "(R8*2)", "(R12*1)", "(R8*4)", "(R14*1)"}[r], x)
		for i := range columns {
			add(24+i, x, columns*r+i)
		}
	}
	a.o("PREFETCHT1 (R13)")
	a.o("ADDQ $64, R13")
	a.o("CMPQ R13, R15")
	a.o("CMOVQHI R15, R13")
	a.o("ADDQ $4, R9")
	a.o("ADDQ $%d, DX", 64*columns)
	a.o("DECQ CX")
	a.o("JNZ loop")
	sums(func(at string, z int) { a.o("VMOVUPS Z%d, %s", z, at) })
	a.o("MOVQ R11, DI")
	for range rows {
		a.o("ADDQ R8, SI")
	}
	a.o("DECQ R10")
	a.o("JNZ rows")
	a.o("MOVQ R13, halfArgs_ahead(AX)")
	a.end()
}

// turn makes of blocks of 16 rows lines of a word of each, a block's a vector beside the last one's. It reads sixteen words at a
// time.
func (a *asm) turn() {
	a.text("attnTurnAVX512", "halfArgs")
	a.o("MOVQ halfArgs_rows(AX), SI")
	a.o("MOVQ halfArgs_lines(AX), DI")
	a.o("MOVQ halfArgs_rowStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ halfArgs_groups(AX), R10")
	a.label("block")
	a.o("MOVQ SI, R11")
	a.o("LEAQ (R11)(R8*4), R12")
	a.o("LEAQ (R11)(R8*8), R13")
	a.o("LEAQ (R12)(R8*8), R14")
	a.o("MOVQ DI, DX")
	a.o("MOVQ halfArgs_pairs(AX), CX")
	a.label("columns")
	for i := range 16 {
		a.o("VMOVUPS (%s)%s, Z%d", []string{"R11", "R12", "R13", "R14"}[i/4], []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i%4], i)
	}
	for _, p := range []string{"R11", "R12", "R13", "R14"} {
		a.o("ADDQ $64, %s", p)
	}
	z := a.transpose512()
	for i, r := range z {
		a.o("VMOVUPS Z%d, %d(DX)", r, 256*i)
	}
	a.o("ADDQ $%d, DX", 256*16)
	a.o("SUBQ $16, CX")
	a.o("JGT columns")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("LEAQ (SI)(R8*8), SI")
	a.o("ADDQ $64, DI")
	a.o("DECQ R10")
	a.o("JNZ block")
	a.end()
}

// transpose512 takes sixteen registers, from Z0, for rows of sixteen words and tells where the columns are. Z16 is lost.
func (a *asm) transpose512() (z [16]int) {
	spare := 16
	for i := range z {
		z[i] = i
	}
	both := func(lo, hi string, i, j int) { // of the registers that hold i and j
		x, y := z[i], z[j]
		a.o(lo, y, x, spare)
		a.o(hi, y, x, y)
		z[i], z[j], spare = spare, y, x
	}
	for i := 0; i < 16; i += 2 {
		both("VPUNPCKLDQ Z%d, Z%d, Z%d", "VPUNPCKHDQ Z%d, Z%d, Z%d", i, i+1)
	}
	for i := 0; i < 16; i += 4 {
		for k := range 2 {
			both("VPUNPCKLQDQ Z%d, Z%d, Z%d", "VPUNPCKHQDQ Z%d, Z%d, Z%d", i+k, i+k+2)
		}
	}
	// Now z[4g+k] has column c of rows 4g to 4g+3 in every four lanes: 0, 2, 1, 3 for k, and four more for the next lanes.
	for k := range 4 {
		both("VSHUFI32X4 $0x88, Z%d, Z%d, Z%d", "VSHUFI32X4 $0xdd, Z%d, Z%d, Z%d", k, 4+k)
		both("VSHUFI32X4 $0x88, Z%d, Z%d, Z%d", "VSHUFI32X4 $0xdd, Z%d, Z%d, Z%d", 8+k, 12+k)
		both("VSHUFI32X4 $0x88, Z%d, Z%d, Z%d", "VSHUFI32X4 $0xdd, Z%d, Z%d, Z%d", k, 8+k)
		both("VSHUFI32X4 $0x88, Z%d, Z%d, Z%d", "VSHUFI32X4 $0xdd, Z%d, Z%d, Z%d", 4+k, 12+k)
	}
	var columns [16]int
	for k := range 4 {
		c := []int{0, 2, 1, 3}[k]
		columns[c], columns[c+8], columns[c+4], columns[c+12] = z[k], z[8+k], z[4+k], z[12+k]
	}
	return columns
}

// halfValues turns pairs of rows into lines of a number of each, and sets wild if one is infinite or a NaN.
func (a *asm) halfValues(columns int) {
	a.text(fmt.Sprintf("attnHalfValues%dAVX512", columns), "halfArgs")
	a.o("MOVQ halfArgs_rows(AX), SI")
	a.o("MOVQ halfArgs_lines(AX), DI")
	a.o("MOVQ halfArgs_rowStride(AX), R8")
	a.o("MOVQ halfArgs_pairs(AX), CX")
	a.o("VMOVUPS halfFirst<>(SB), Z16")
	a.o("VMOVUPS halfSecond<>(SB), Z17")
	a.o("VPBROADCASTD halfAbs<>(SB), Z18")
	a.o("VPXORD Z19, Z19, Z19")
	a.label("loop")
	for i := range columns / 2 {
		x, y, both := 4*i, 4*i+1, 4*i+2
		a.o("VMOVUPS %d(SI), Z%d", 64*i, x)
		a.o("VMOVUPS %d(SI)(R8*1), Z%d", 64*i, y)
		a.o("VPANDD Z%d, Z18, Z%d", x, both)
		a.o("VPMAXUW Z%d, Z19, Z19", both)
		a.o("VPANDD Z%d, Z18, Z%d", y, both)
		a.o("VPMAXUW Z%d, Z19, Z19", both)
		a.o("VMOVDQA64 Z%d, Z%d", x, both)
		a.o("VPERMT2W Z%d, Z16, Z%d", y, x)
		a.o("VPERMT2W Z%d, Z17, Z%d", y, both)
		a.o("VMOVUPS Z%d, %d(DI)", x, 128*i)
		a.o("VMOVUPS Z%d, %d(DI)", both, 128*i+64)
	}
	a.o("LEAQ (SI)(R8*2), SI")
	a.o("ADDQ $%d, DI", 64*columns)
	a.o("DECQ CX")
	a.o("JNZ loop")
	a.o("VPBROADCASTD halfInf<>(SB), Z18")
	a.o("VPCMPUW $5, Z18, Z19, K1")
	a.o("KMOVD K1, CX")
	a.o("ORQ CX, halfArgs_wild(AX)")
	a.end()
}

// Registers of what turns scores into weights.
const (
	factor, least, ones = 1, 2, 3
	tops, olds, decays  = 4, 5, 6
	poly                = 8 // to 10
	one                 = 11
)

// softmaxConstants loads them and the arguments.
func (a *asm) softmaxConstants(args string) {
	a.o("MOVQ %s_sums(AX), SI", args)
	a.o("MOVQ %s_max(AX), R8", args)
	a.o("MOVQ %s_sum(AX), R9", args)
	a.o("MOVQ %s_acc(AX), DI", args)
	a.o("MOVQ %s_accStride(AX), BX", args)
	a.o("MOVQ %s_groups(AX), R10", args)
	a.o("VBROADCASTSS %s_factor(AX), Z%d", args, factor)
	a.o("VBROADCASTSS powLeast<>(SB), Z%d", least)
	for i := range 3 {
		a.o("VBROADCASTSS halfPow%d<>(SB), Z%d", i+1, poly+i)
	}
	a.o("VBROADCASTSS one<>(SB), Z%d", one)
}

// some moves a number of each row.
func some(rows int) string {
	return map[int]string{1: "VMOVSS", 2: "VMOVSD", halfTops: "VMOVUPS"}[rows]
}

// newTops gives some rows their new maxima, on the stack too, and lessens what was summed before; the sums are in X12.
func (a *asm) newTops(args string, rows int) {
	move := some(rows)
	for r := range rows { // a NaN is passed over
		a.o("VBROADCASTSS negInf<>(SB), Z%d", 16+r)
	}
	for i := range 4 {
		for r := range rows {
			a.o("VMOVUPS %d(SI), Z%d", rowBytes*r+64*i, 20+r)
			a.o("VMAXPS Z%d, Z%d, Z%d", 16+r, 20+r, 16+r)
		}
	}
	a.fold512(16, 20, "VMAXPS")
	a.o("%s (R8), X%d", move, olds)
	a.o("VMULPS X%d, X16, X%d", factor, tops)
	a.o("VMAXPS X%d, X%d, X%d", tops, olds, tops)
	a.o("%s X%d, (R8)", move, tops)
	a.o("VCMPPS $4, X%d, X%d, K2", olds, tops) // a new maximum
	// Of scores that are all -Inf or NaN weights are 0 or NaN, not Inf-Inf.
	a.o("VCMPPS.BCST $0, negInf<>(SB), X%d, K1", tops)
	a.o("VMOVAPS X%d, X7", tops)
	a.o("VPXORD X7, X7, K1, X7")
	a.o("VMOVUPS X7, tops-16(SP)")
	a.o("%s (R9), X12", move)
	a.o("KMOVB K2, R11")
	a.o("ANDQ $%d, R11", 1<<rows-1)
	a.o("JZ weights")
	a.o("VSUBPS X%d, X%d, X%d", tops, olds, decays)
	a.o("VMAXPS X%d, X%d, X%d", decays, least, decays)
	a.o("VRNDSCALEPS $0, X%d, X20", decays)
	a.o("VSUBPS X20, X%d, X21", decays)
	a.o("VBROADCASTSS pow6<>(SB), X%d", decays)
	for i := 5; i >= 1; i-- {
		a.o("VFMADD213PS.BCST pow%d<>(SB), X21, X%d", i, decays)
	}
	a.o("VFMADD213PS X%d, X21, X%d", one, decays)
	a.o("VSCALEFPS X20, X%d, X%d", decays, decays)
	a.o("VMULPS X%d, X12, K2, X12", decays)
	a.o("MOVQ DI, DX")
	for r := range rows {
		a.o("TESTQ $%d, R11", 1<<r)
		a.o("JZ kept%d", r)
		a.o("VPERMILPS $%#x, X%d, X20", 0x55*r, decays)
		a.o("VBROADCASTSS X20, Z20")
		a.o("MOVQ DX, R12")
		a.o("MOVQ %s_strips(AX), CX", args)
		a.label(fmt.Sprintf("shrink%d", r))
		a.o("VMULPS (R12), Z20, Z21")
		a.o("VMOVUPS Z21, (R12)")
		a.o("ADDQ $64, R12")
		a.o("DECQ CX")
		a.o("JNZ shrink%d", r)
		a.label(fmt.Sprintf("kept%d", r))
		a.o("ADDQ BX, DX")
	}
	a.label("weights")
}

// powers leaves in Z28 to Z31 the weights of row r: 2 to the power of scores. With cut, those below 2^-100 are 0, and K3 to K6
// tell which are not.
func (a *asm) powers(r int, cut bool) {
	const s, n, p = 20, 24, 28
	a.o("VBROADCASTSS tops-%d(SP), Z0", 16-4*r)
	each := func(f func(i int)) {
		for i := range 4 {
			f(i)
		}
	}
	each(func(i int) { a.o("VMOVUPS %d(SI), Z%d", rowBytes*r+64*i, s+i) })
	each(func(i int) { a.o("VFMSUB213PS Z0, Z%d, Z%d", factor, s+i) })
	if cut {
		each(func(i int) { a.o("VCMPPS.BCST $5, least100<>(SB), Z%d, K%d", s+i, 3+i) }) // or a NaN
	} else {
		each(func(i int) { a.o("VMAXPS Z%d, Z%d, Z%d", s+i, least, s+i) })
	}
	each(func(i int) { a.o("VRNDSCALEPS $0, Z%d, Z%d", s+i, n+i) })
	each(func(i int) { a.o("VSUBPS Z%d, Z%d, Z%d", n+i, s+i, s+i) })
	each(func(i int) { a.o("VMOVAPS Z%d, Z%d", poly+2, p+i) })
	for k := 1; k >= 0; k-- {
		each(func(i int) { a.o("VFMADD213PS Z%d, Z%d, Z%d", poly+k, s+i, p+i) })
	}
	each(func(i int) { a.o("VFMADD213PS Z%d, Z%d, Z%d", one, s+i, p+i) })
	if cut {
		each(func(i int) { a.o("VSCALEFPS.Z Z%d, Z%d, K%d, Z%d", n+i, p+i, 3+i, p+i) })
	} else {
		each(func(i int) { a.o("VSCALEFPS Z%d, Z%d, Z%d", n+i, p+i, p+i) })
	}
}

// softmaxSums adds up the weights of rows, from Z16 on, and goes on to the next ones.
func (a *asm) softmaxSums(rows int) {
	a.fold512(16, 20, "VADDPS")
	a.o("VADDPS X16, X12, X12")
	a.o("%s X12, (R9)", some(rows))
	a.o("ADDQ $%d, SI", rowBytes*rows)
	a.o("ADDQ $%d, R8", 4*rows)
	a.o("ADDQ $%d, R9", 4*rows)
	for range rows {
		a.o("ADDQ BX, DI")
	}
	a.o("DECQ R10")
	a.o("JNZ rows")
}

// halfSoftmax turns rows of 64 scores into weights of half the bytes. The maxima and sums of the rows share registers.
func (a *asm) halfSoftmax(rows int) {
	a.framed(fmt.Sprintf("attnHalfSoftmax%dAVX512", rows), "halfArgs", 16)
	a.softmaxConstants("halfArgs")
	a.o("VPBROADCASTD halfOnes<>(SB), Z%d", ones)
	a.label("rows")
	a.newTops("halfArgs", rows)
	for r := range rows {
		const s, p = 20, 28
		a.powers(r, false)
		a.o("VPXORD Z%d, Z%d, Z%d", 16+r, 16+r, 16+r)
		for i := range 2 {
			a.narrow(p+2*i, p+2*i+1, s+i)
			a.o("VMOVUPS Z%d, %d(SI)", s+i, rowBytes*r+64*i)
			a.dot(s+i, ones, 16+r)
		}
	}
	a.softmaxSums(rows)
	a.end()
}
