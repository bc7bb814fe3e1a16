package main

import "fmt"

// fetchAhead is how many bytes ahead of what they read the routines on stored rows fetch.
const fetchAhead = 7 << 10

// How many queries share a load of a row as it is stored. Of floats two leave registers for whole rows of 128 values, which
// are then read in order.
const scoreQueries512 = 4

func valueQueries512(t string) int {
	if quantised(t) {
		return 4
	}
	return 2
}

// rowScores512 is rowScores with sixteen lanes: see fold512. SI goes along the queries, R12 is the place in a row of
// keys. Scales and biases of the four keys stay in Z24 to Z31.
func (a *asm) rowScores512(t string, rows int) {
	a.text(levels[1].rowName("Score", t, rows), "attnArgs")
	a.o("MOVQ attnArgs_qStride(AX), R13")
	a.o("LEAQ (R13)(R13*2), R15")
	a.o("MOVQ attnArgs_s(AX), DI")
	a.o("MOVQ attnArgs_k(AX), R8")
	a.codes512(t)
	k := []string{"R8", "R9", "R10", "R11"}
	a.label("keys")
	for i := 1; i < 4; i++ {
		a.o("MOVQ %s, %s", k[i-1], k[i])
		a.o("ADDQ attnArgs_kStride(AX), %s", k[i])
		a.o("CMPQ %s, attnArgs_last(AX)", k[i])
		a.o("CMOVQHI attnArgs_last(AX), %s", k[i])
	}
	a.further512("R8")
	a.zero(4 * rows)
	a.o("MOVQ attnArgs_q(AX), SI")
	a.o("XORQ R12, R12")
	if quantised(t) {
		a.o("MOVQ attnArgs_tail(AX), DX")
		a.o("MOVQ attnArgs_scales(AX), R14")
		a.label("scale")
		for i, p := range k {
			a.scale512(t, "("+p+")(DX*1)", 24+2*i)
		}
		a.o("ADDQ $4, DX")
	}
	a.o("MOVQ attnArgs_steps(AX), CX")
	a.label("loop")
	per := packing(t)
	a.fetch512(256 / per)
	for r := range rows {
		a.o("VMOVUPS (SI)%s, Z%d", []string{"", "(R13*1)", "(R13*2)", "(R15*1)"}[r], 16+r)
	}
	for i, p := range k {
		a.load16to(t, "("+p+")(R12*1)", 0, 20+i%2, 24+2*i)
		for r := range rows {
			a.o("VFMADD231PS Z%d, Z%d, Z%d", 20+i%2, 16+r, 4*r+i)
		}
	}
	a.o("ADDQ $64, SI")
	a.o("ADDQ $%d, R12", 64/per)
	a.o("DECQ CX")
	a.o("JNZ loop")
	if quantised(t) {
		a.o("DECQ R14")
		a.o("JNZ scale")
	}
	for r := range rows {
		a.fold512(4*r, 16+r, "VADDPS")
		a.o("VMOVUPS X%d, %d(DI)", 4*r, rowBytes*r)
	}
	a.o("ADDQ $16, DI")
	a.o("MOVQ attnArgs_kStride(AX), R12")
	a.o("LEAQ (R8)(R12*4), R8")
	a.o("DECQ attnArgs_keys(AX)")
	a.o("JNZ keys")
	a.end()
}

// further512 leaves in BX what to fetch while p is read: the place so far behind it, or as far into what is read afterwards.
// CX is lost.
func (a *asm) further512(p string) {
	a.o("MOVQ %s, BX", p)
	a.o("ADDQ $%d, BX", fetchAhead)
	a.o("MOVQ BX, CX")
	a.o("ADDQ attnArgs_jump(AX), CX")
	a.o("CMPQ BX, attnArgs_aheadEnd(AX)")
	a.o("CMOVQCC CX, BX")
}

// fetch512 fetches bytes from BX on and steps over them.
func (a *asm) fetch512(bytes int) {
	for line := 0; line < bytes; line += 64 {
		a.o("PREFETCHT0 %d(BX)", line)
	}
	a.o("ADDQ $%d, BX", bytes)
}

// codes512 loads what load16to and scale512 need: the mask of biases and shifts that part nibbles.
func (a *asm) codes512(t string) {
	if quantised(t) {
		a.o("VPBROADCASTD high16<>(SB), Z23")
	}
	if t == "Q4" {
		a.o("VMOVDQU32 nibbles<>(SB), Z22")
	}
}

// scale512 leaves the scale at p in Z(z) and the bias in Z(z+1); of 4-bit codes, the sixteen numbers they stand for in Z(z).
func (a *asm) scale512(t, p string, z int) {
	a.o("VPBROADCASTD %s, Z%d", p, z+1)
	a.o("VPSLLD $16, Z%d, Z%d", z+1, z)
	a.o("VPANDD Z23, Z%d, Z%d", z+1, z+1)
	if t == "Q4" {
		a.o("VFMADD132PS codes<>(SB), Z%d, Z%d", z+1, z)
	}
}

// load16to leaves the numbers [16i, 16i+16) of a row at p in Z(z); of codes, with what scale512 left in Z(s) and Z(s+1).
func (a *asm) load16to(t, p string, i, z, s int) {
	at := 64 / packing(t) * i
	switch t {
	case "F32":
		a.o("VMOVUPS %d%s, Z%d", at, p, z)
	case "BF16":
		a.o("VPMOVZXWD %d%s, Z%d", at, p, z)
		a.o("VPSLLD $16, Z%d, Z%d", z, z)
	case "F16":
		a.o("VCVTPH2PS %d%s, Z%d", at, p, z)
	case "Q8":
		a.o("VPMOVZXBD %d%s, Z%d", at, p, z)
		a.o("VCVTDQ2PS Z%d, Z%d", z, z)
		a.o("VFMADD213PS Z%d, Z%d, Z%d", s+1, s, z)
	case "Q4": // eight bytes twice: their low halves, then the high ones; a permutation looks at four bits
		a.o("VMOVDDUP %d%s, X%d", at, p, z)
		a.o("VPMOVZXBD X%d, Z%d", z, z)
		a.o("VPSRLVD Z22, Z%d, Z%d", z, z)
		a.o("VPERMPS Z%d, Z%d, Z%d", s, z, z)
	}
}

// rowValues512 adds weighted rows to the sums of a few queries: 128 columns at a time of floats, then 64 and 32.
func (a *asm) rowValues512(t string, rows int) {
	a.text(levels[1].rowName("Value", t, rows), "attnArgs")
	a.o("MOVQ attnArgs_acc(AX), DI")
	a.o("MOVQ attnArgs_accStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R14")
	a.o("MOVQ attnArgs_vStride(AX), R9")
	a.o("MOVQ attnArgs_v(AX), R11")
	a.codes512(t)
	if quantised(t) {
		a.o("MOVQ R11, R12")
		a.o("ADDQ attnArgs_tail(AX), R12")
		a.o("MOVQ attnArgs_scales(AX), R15")
		a.label("scale")
	}
	a.o("MOVQ attnArgs_strips(AX), R13") // of 32 columns: all, of codes under one scale
	widths := []int{4, 2}
	if !quantised(t) {
		widths = []int{8, 4, 2}
	}
	for _, vecs := range widths {
		a.label(fmt.Sprintf("strips%d", vecs))
		a.o("CMPQ R13, $%d", vecs/2)
		a.o("JLT narrower%d", vecs)
		a.rowStrip512(t, rows, vecs)
		a.o("SUBQ $%d, R13", vecs/2)
		a.o("JMP strips%d", vecs)
		a.label(fmt.Sprintf("narrower%d", vecs))
	}
	if quantised(t) {
		a.o("ADDQ $4, R12")
		a.o("DECQ R15")
		a.o("JNZ scale")
	}
	a.end()
}

// rowStrip512 takes vecs vectors of columns over all positions, and steps over them.
func (a *asm) rowStrip512(t string, rows, vecs int) {
	per := packing(t)
	loop := fmt.Sprintf("loop%d", vecs)
	at := func(r, i int) string {
		return fmt.Sprintf("%d(DI)%s", 64*i, []string{"", "(R8*1)", "(R8*2)", "(R14*1)"}[r])
	}
	for r := range rows {
		for i := range vecs {
			a.o("VMOVUPS %s, Z%d", at(r, i), vecs*r+i)
		}
	}
	a.o("MOVQ R11, DX")
	a.o("MOVQ attnArgs_s(AX), SI")
	a.o("MOVQ attnArgs_positions(AX), R10")
	a.o("LEAQ (SI)(R10*4), R10")
	a.label(loop)
	if quantised(t) {
		a.o("MOVQ DX, CX")
		a.o("SUBQ R11, CX")
		a.scale512(t, "(R12)(CX*1)", 24)
	}
	for r := range rows {
		a.o("VBROADCASTSS %d(SI), Z%d", rowBytes*r, 16+r)
	}
	a.further512("DX")
	a.fetch512(64 * vecs / per)
	for i := range vecs {
		a.load16to(t, "(DX)", i, 20+i%2, 24)
		for r := range rows {
			a.o("VFMADD231PS Z%d, Z%d, Z%d", 20+i%2, 16+r, vecs*r+i)
		}
	}
	a.o("ADDQ $4, SI")
	a.o("ADDQ R9, DX")
	a.o("CMPQ SI, R10")
	a.o("JNE %s", loop)
	for r := range rows {
		for i := range vecs {
			a.o("VMOVUPS Z%d, %s", vecs*r+i, at(r, i))
		}
	}
	a.o("ADDQ $%d, DI", 64*vecs)
	a.o("ADDQ $%d, R11", 64*vecs/per)
}
