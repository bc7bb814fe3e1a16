package main

import "fmt"

// Tile shapes of AVX-512: 24 accumulators, which is twice what hides the latency of the additions, so that 10 or 14 loads
// serve them. They leave eight registers for operands.
const (
	scoreRows512 = 6  // queries, by 4 keys
	valueRows512 = 12 // queries, by 32 columns
)

// scores512 is scores with sixteen lanes per pair: see fold512.
func (a *asm) scores512(rows int) {
	a.text(fmt.Sprintf("attnScores%dAVX512", rows), "attnArgs")
	a.o("MOVQ attnArgs_q(AX), SI")
	a.o("MOVQ attnArgs_s(AX), DI")
	a.o("MOVQ attnArgs_qStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R12")
	a.o("LEAQ (R8)(R8*4), R14")
	a.o("MOVQ attnArgs_groups(AX), R10")
	a.o("MOVQ attnArgs_ahead(AX), R13")
	a.o("MOVQ attnArgs_aheadEnd(AX), R15")
	a.label("queries")
	a.o("MOVQ attnArgs_k(AX), DX")
	a.o("MOVQ attnArgs_keys(AX), BX")
	a.o("MOVQ DI, R11")
	a.label("keys")
	a.o("MOVQ SI, R9")
	a.o("MOVQ attnArgs_steps(AX), CX")
	a.zero(4 * rows)
	a.label("loop")
	for k := range 4 {
		a.o("VMOVUPS %d(DX), Z%d", 64*k, 24+k)
	}
	for r := range rows {
		q := 28 + r%4
		a.o("VMOVUPS (R9)%s, Z%d", []string{"", "(R8*1)", "(R8*2)", "(R12*1)", "(R8*4)", "(R14*1)"}[r], q)
		for k := range 4 {
			a.o("VFMADD231PS Z%d, Z%d, Z%d", 24+k, q, 4*r+k)
		}
	}
	a.o("ADDQ $64, R9")
	a.o("ADDQ $256, DX")
	a.o("DECQ CX")
	a.o("JNZ loop")
	for r := range rows {
		a.fold512(4*r, 24+r%4, "VADDPS")
		a.o("VMOVUPS X%d, %d(R11)", 4*r, rowBytes*r)
	}
	a.fetch("R13", "R15", 2)
	a.o("ADDQ $16, R11")
	a.o("DECQ BX")
	a.o("JNZ keys")
	a.o("ADDQ $%d, DI", rowBytes*rows)
	for range rows {
		a.o("ADDQ R8, SI")
	}
	a.o("DECQ R10")
	a.o("JNZ queries")
	a.o("MOVQ R13, attnArgs_ahead(AX)")
	a.end()
}

// zero clears the first n registers.
func (a *asm) zero(n int) {
	for i := range n {
		a.o("VPXORD Z%d, Z%d, Z%d", i, i, i)
	}
}

// fold512 leaves in X(v) the sums of Z(v) to Z(v+3), or what op makes of them: within lanes of 128 bits, then those of opposite
// halves. Z(t) is lost.
func (a *asm) fold512(v, t int, op string) {
	for _, p := range []int{v, v + 2} {
		a.o("VUNPCKLPS Z%d, Z%d, Z%d", p+1, p, t)
		a.o("VUNPCKHPS Z%d, Z%d, Z%d", p+1, p, p)
		a.o("%s Z%d, Z%d, Z%d", op, p, t, p)
	}
	a.o("VUNPCKLPD Z%d, Z%d, Z%d", v+2, v, t)
	a.o("VUNPCKHPD Z%d, Z%d, Z%d", v+2, v, v)
	a.o("%s Z%d, Z%d, Z%d", op, v, t, v)
	a.o("VEXTRACTF64X4 $1, Z%d, Y%d", v, t)
	a.o("%s Y%d, Y%d, Y%d", op, t, v, v)
	a.o("VEXTRACTF32X4 $1, Y%d, X%d", v, t)
	a.o("%s X%d, X%d, X%d", op, t, v, v)
}

// values512 is values with two strips of 16 columns at a time, and the last one alone if it is odd.
func (a *asm) values512(rows int) {
	a.text(fmt.Sprintf("attnValues%dAVX512", rows), "attnArgs")
	a.o("MOVQ attnArgs_accStride(AX), R8")
	a.o("MOVQ attnArgs_vStride(AX), R10")
	a.o("MOVQ attnArgs_v(AX), R11")
	a.o("MOVQ attnArgs_acc(AX), R12")
	a.o("MOVQ attnArgs_strips(AX), R13")
	a.o("MOVQ attnArgs_ahead(AX), R14")
	a.o("SUBQ $2, R13")
	a.o("JLT odd")
	a.label("strips")
	a.strip512(rows, 2)
	a.o("LEAQ (R11)(R10*2), R11")
	a.o("SUBQ $2, R13")
	a.o("JGE strips")
	a.label("odd")
	a.o("ADDQ $2, R13")
	a.o("JZ finished")
	a.strip512(rows, 1)
	a.label("finished")
	a.o("MOVQ R14, attnArgs_ahead(AX)")
	a.end()
}

// strip512 adds up to two strips of values to the sums of all groups of queries. R12 and R11 are the first sums and values.
func (a *asm) strip512(rows, strips int) {
	l := func(s string) string { return fmt.Sprintf("%s%d", s, strips) }
	a.o("MOVQ R12, DI")
	a.o("MOVQ attnArgs_s(AX), BX")
	a.o("MOVQ attnArgs_groups(AX), R15")
	a.label(l("queries"))
	a.sums512(rows, strips, func(at string, z int) { a.o("VMOVUPS %s, Z%d", at, z) })
	a.o("MOVQ R11, DX")
	a.o("MOVQ BX, SI")
	a.o("MOVQ attnArgs_positions(AX), CX")
	a.o("SUBQ $4, CX")
	a.o("JLT %s", l("rest"))
	a.label(l("loop"))
	for i := range 4 {
		a.position512(rows, strips, i)
	}
	a.o("ADDQ $256, DX")
	a.o("ADDQ $16, SI")
	a.o("SUBQ $4, CX")
	a.o("JGE %s", l("loop"))
	a.label(l("rest"))
	a.o("ADDQ $4, CX")
	a.o("JZ %s", l("done"))
	a.label(l("single"))
	a.position512(rows, strips, 0)
	a.o("ADDQ $64, DX")
	a.o("ADDQ $4, SI")
	a.o("DECQ CX")
	a.o("JNZ %s", l("single"))
	a.label(l("done"))
	a.sums512(rows, strips, func(at string, z int) { a.o("VMOVUPS Z%d, %s", z, at) })
	a.o("CMPQ R14, attnArgs_aheadEnd(AX)")
	a.o("JAE %s", l("fetched"))
	for i := range 4 * strips {
		a.o("PREFETCHT1 %d(R14)", 64*i)
	}
	a.o("ADDQ $%d, R14", 256*strips)
	a.label(l("fetched"))
	a.o("ADDQ $%d, BX", rowBytes*rows)
	a.o("MOVQ R9, DI")
	a.o("DECQ R15")
	a.o("JNZ %s", l("queries"))
	a.o("ADDQ $%d, R12", 64*strips)
}

// sums512 moves the sums of the queries from DI on and leaves in R9 where the next ones are.
func (a *asm) sums512(rows, strips int, move func(at string, z int)) {
	a.o("MOVQ DI, R9")
	for r := range rows {
		for i := range strips {
			move(fmt.Sprintf("%d(R9)", 64*i), strips*r+i)
		}
		a.o("ADDQ R8, R9")
	}
}

func (a *asm) position512(rows, strips, i int) {
	for s := range strips {
		a.o("VMOVUPS %d(DX)%s, Z%d", 64*i, []string{"", "(R10*1)"}[s], 24+s)
	}
	for r := range rows {
		p := 26 + r%6
		a.o("VBROADCASTSS %d(SI), Z%d", rowBytes*r+4*i, p)
		for s := range strips {
			a.o("VFMADD231PS Z%d, Z%d, Z%d", 24+s, p, strips*r+s)
		}
	}
}
