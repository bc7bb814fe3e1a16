package main

import "fmt"

// halfQueries is how many queries the routines on rows of bfloat16 numbers as they are stored take at most.
const halfQueries = 4

// dotTo is dot with the pair at 4·at(base), the same for all lanes; base is R8 to R11.
func (a *asm) dotTo(base, at, y, sum int) {
	not := func(n, bit int) int { return ^n >> bit & 1 }
	a.o("BYTE $0x62; BYTE $%#x; BYTE $%#x; BYTE $%#x; BYTE $0x52; BYTE $%#x; BYTE $%#x",
		not(sum, 3)<<7|1<<6|not(base, 3)<<5|not(sum, 4)<<4|2,
		^y&15<<3|1<<2|2,
		2<<5|1<<4|not(y, 4)<<3, // broadcast
		1<<6|sum&7<<3|base&7, at)
}

// halfScoreRows: scores of a few queries on blocks of 16 keys, whose columns are put together in registers. Two blocks at a time:
// chains of additions wait less for each other, and with more the prefetched lines would come too late.
func (a *asm) halfScoreRows(rows int) {
	const sums = 17 // behind what transpose512 takes
	a.text(fmt.Sprintf("attnHalfScoreRows%dAVX512", rows), "halfArgs")
	a.o("MOVQ halfArgs_rows(AX), SI")
	a.o("MOVQ SI, R14")
	a.o("MOVQ halfArgs_sums(AX), DI")
	a.o("MOVQ halfArgs_rowStride(AX), R12")
	for _, blocks := range []int{2, 1} {
		l := func(s string) string { return fmt.Sprintf("%s%d", s, blocks) }
		a.label(l("blocks"))
		a.o("CMPQ halfArgs_groups(AX), $%d", blocks)
		a.o("JLT %s", l("fewer"))
		a.o("MOVQ halfArgs_x(AX), R8")
		for r := 1; r < rows; r++ {
			a.o("MOVQ R%d, R%d", 7+r, 8+r)
			a.o("ADDQ halfArgs_xStride(AX), R%d", 8+r)
		}
		for i := range rows * blocks {
			a.o("VPXORD Z%d, Z%d, Z%d", sums+i, sums+i, sums+i)
		}
		a.o("MOVQ SI, R13")
		a.o("MOVQ halfArgs_pairs(AX), CX")
		a.label(l("columns"))
		a.o("MOVQ R13, DX")
		for b := range blocks {
			a.ahead512("R14")
			a.o("ADDQ $1024, R14")
			a.o("LEAQ (R12)(R12*2), R15")
			for i := range 16 {
				a.o("VMOVUPS (DX)%s, Z%d", []string{"", "(R12*1)", "(R12*2)", "(R15*1)"}[i%4], i)
				a.o("PREFETCHT0 %d(BX)", 64*i)
				if i%4 == 3 {
					a.o("LEAQ (DX)(R12*4), DX")
				}
			}
			for i, z := range a.transpose512() {
				for r := range rows {
					a.dotTo(8+r, i, z, sums+blocks*r+b)
				}
			}
		}
		a.o("ADDQ $64, R13")
		for r := range rows {
			a.o("ADDQ $64, R%d", 8+r)
		}
		a.o("SUBQ $16, CX")
		a.o("JNZ %s", l("columns"))
		a.o("MOVQ R12, CX")
		a.o("IMULQ $%d, CX", 16*blocks)
		a.o("ADDQ CX, SI")
		for r := range rows {
			for b := range blocks {
				a.o("VMOVUPS Z%d, %d(DI)", sums+blocks*r+b, rowBytes*r+64*b)
			}
		}
		a.o("ADDQ $%d, DI", 64*blocks)
		a.o("SUBQ $%d, halfArgs_groups(AX)", blocks)
		a.o("JMP %s", l("blocks"))
		a.label(l("fewer"))
	}
	a.end()
}

// ahead512 leaves in BX what to fetch while p is read: see further512. R15 is lost.
func (a *asm) ahead512(p string) {
	a.o("MOVQ %s, BX", p)
	a.o("ADDQ $%d, BX", fetchAhead)
	a.o("MOVQ BX, R15")
	a.o("ADDQ halfArgs_jump(AX), R15")
	a.o("CMPQ BX, halfArgs_aheadEnd(AX)")
	a.o("CMOVQCC R15, BX")
}

// halfValueRows adds weighted pairs of rows to the sums of a few queries, up to 128 columns at a time. A pair of rows gives the
// numbers of a vector's columns in an order of its own, in which the sums are kept meanwhile.
func (a *asm) halfValueRows(rows int) {
	const (
		weights, lo, hi   = 16, 20, 21
		toLo, toHi, first = 24, 25, 26 // and second
	)
	a.text(fmt.Sprintf("attnHalfValueRows%dAVX512", rows), "halfArgs")
	a.o("MOVQ halfArgs_sums(AX), DI")
	a.o("MOVQ halfArgs_sumStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R14")
	a.o("MOVQ halfArgs_rows(AX), R11")
	a.o("MOVQ halfArgs_rowStride(AX), R9")
	a.o("MOVQ halfArgs_strips(AX), R13") // of 32 columns
	for i, name := range []string{"unpackLow", "unpackHigh", "packFirst", "packSecond"} {
		a.o("VMOVUPS %s<>(SB), Z%d", name, toLo+i)
	}
	widths := []int{8, 4, 2}
	if rows > 2 {
		widths = widths[1:]
	}
	for _, vecs := range widths {
		l := func(s string) string { return fmt.Sprintf("%s%d", s, vecs) }
		at := func(r, i int) string {
			return fmt.Sprintf("%d(DI)%s", 64*i, []string{"", "(R8*1)", "(R8*2)", "(R14*1)"}[r])
		}
		a.label(l("strips"))
		a.o("CMPQ R13, $%d", vecs/2)
		a.o("JLT %s", l("narrower"))
		each := func(f func(r, i, x, y int)) {
			for r := range rows {
				for i := 0; i < vecs; i += 2 {
					f(r, i, vecs*r+i, vecs*r+i+1)
				}
			}
		}
		each(func(r, i, x, y int) {
			a.o("VMOVUPS %s, Z%d", at(r, i), x)
			a.o("VMOVUPS %s, Z%d", at(r, i+1), lo)
			a.o("VMOVAPS Z%d, Z%d", x, y)
			a.o("VPERMT2D Z%d, Z%d, Z%d", lo, toLo, x)
			a.o("VPERMT2D Z%d, Z%d, Z%d", lo, toHi, y)
		})
		a.o("MOVQ R11, DX")
		a.o("MOVQ halfArgs_x(AX), SI")
		a.o("MOVQ halfArgs_pairs(AX), CX")
		a.label(l("loop"))
		for r := range rows {
			a.o("VPBROADCASTD %d(SI), Z%d", rowBytes*r, weights+r)
		}
		a.ahead512("DX")
		for i := 0; i < vecs; i += 2 {
			lo, hi := lo+i%4, hi+i%4
			a.o("VMOVUPS %d(DX), Z%d", 32*i, hi)
			a.o("PREFETCHT0 %d(BX)", 32*i)
			a.o("PREFETCHT0 %d(BX)(R9*1)", 32*i)
			a.o("VPUNPCKLWD %d(DX)(R9*1), Z%d, Z%d", 32*i, hi, lo)
			a.o("VPUNPCKHWD %d(DX)(R9*1), Z%d, Z%d", 32*i, hi, hi)
			for r := range rows {
				a.dot(lo, weights+r, vecs*r+i)
				a.dot(hi, weights+r, vecs*r+i+1)
			}
		}
		a.o("ADDQ $4, SI")
		a.o("LEAQ (DX)(R9*2), DX")
		a.o("DECQ CX")
		a.o("JNZ %s", l("loop"))
		each(func(r, i, x, y int) {
			a.o("VMOVAPS Z%d, Z%d", x, lo)
			a.o("VPERMT2D Z%d, Z%d, Z%d", y, first, lo)
			a.o("VPERMT2D Z%d, Z%d, Z%d", y, first+1, x)
			a.o("VMOVUPS Z%d, %s", lo, at(r, i))
			a.o("VMOVUPS Z%d, %s", x, at(r, i+1))
		})
		a.o("ADDQ $%d, DI", 64*vecs)
		a.o("ADDQ $%d, R11", 32*vecs)
		a.o("SUBQ $%d, R13", vecs/2)
		a.o("JMP %s", l("strips"))
		a.label(l("narrower"))
	}
	a.end()
}
