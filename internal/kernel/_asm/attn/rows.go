package main

import "fmt"

// The routines of this file read rows as they are stored, without a tile: for the few queries of a step that decodes, where
// widening once would cost more than it saves. Their sums are those of the tile routines.

// rowQueries is how many queries share a load; codes need two registers more.
func rowQueries(t string) int {
	if quantised(t) {
		return 2
	}
	return 3
}

// packing is how many numbers of a row take the place of one float32.
func packing(t string) int { return map[string]int{"F32": 1, "BF16": 2, "F16": 2, "Q8": 4, "Q4": 8}[t] }

// rowScores writes the products of up to three queries with groups of four keys. Rows past the last key are the last key
// again. R12 is the place in a row, in bytes; R15 has scales and biases of the four keys, as vectors.
func (a *asm) rowScores(t string, rows int) {
	a.text(levels[0].rowName("Score", t, rows), "attnArgs")
	a.o("MOVQ attnArgs_q(AX), SI")
	q := []string{"SI", "R13", "R15"}[:rows]
	for r := 1; r < rows; r++ {
		a.o("MOVQ %s, %s", q[r-1], q[r])
		a.o("ADDQ attnArgs_qStride(AX), %s", q[r])
	}
	a.o("MOVQ attnArgs_s(AX), DI")
	a.o("MOVQ attnArgs_v(AX), BX")
	a.o("MOVQ attnArgs_k(AX), R8")
	k := []string{"R8", "R9", "R10", "R11"}
	a.label("keys")
	for i := 1; i < 4; i++ {
		a.o("MOVQ %s, %s", k[i-1], k[i])
		a.o("ADDQ attnArgs_kStride(AX), %s", k[i])
		a.o("CMPQ %s, attnArgs_last(AX)", k[i])
		a.o("CMOVQHI attnArgs_last(AX), %s", k[i])
	}
	for i := range 4 * rows {
		a.o("VXORPS Y%d, Y%d, Y%d", i, i, i)
	}
	a.o("XORQ R12, R12")
	if quantised(t) {
		a.o("MOVQ attnArgs_pairs(AX), R15")
		a.o("MOVQ attnArgs_tail(AX), DX")
		a.o("MOVQ attnArgs_scales(AX), R14")
		a.label("scale")
		for i, p := range k {
			a.o("VPBROADCASTD (%s)(DX*1), Y12", p)
			a.o("VPSLLD $16, Y12, Y13")
			a.o("VPSRLD $16, Y12, Y12")
			a.o("VPSLLD $16, Y12, Y12")
			a.o("VMOVUPS Y13, %d(R15)", 64*i)
			a.o("VMOVUPS Y12, %d(R15)", 64*i+32)
		}
		a.o("ADDQ $4, DX")
	}
	a.o("MOVQ attnArgs_steps(AX), CX")
	a.label("loop")
	per := packing(t)
	for line := 0; line < 256/per; line += 64 {
		a.o("PREFETCHT0 %d(BX)", line)
	}
	a.o("ADDQ $%d, BX", 256/per)
	for half := range 2 {
		for r := range rows {
			a.o("VMOVUPS %d(%s)(R12*%d), Y%d", 32*half, q[r], per, 12+r)
		}
		for i, p := range k {
			a.load8(t, "("+p+")(R12*1)", half, 15)
			if quantised(t) {
				a.o("VMOVUPS %d(R15), Y14", 64*i)
				a.o("VFMADD213PS %d(R15), Y14, Y15", 64*i+32)
			}
			for r := range rows {
				a.o("VFMADD231PS Y15, Y%d, Y%d", 12+r, 4*r+i)
			}
		}
	}
	a.o("ADDQ $%d, R12", 64/per)
	a.o("DECQ CX")
	a.o("JNZ loop")
	if quantised(t) {
		a.o("DECQ R14")
		a.o("JNZ scale")
	}
	for r := range rows {
		a.fold4(4 * r)
		a.o("VMOVUPS X%d, %d(DI)", 4*r, rowBytes*r)
	}
	a.o("ADDQ $16, DI")
	a.o("MOVQ attnArgs_kStride(AX), R12")
	a.o("LEAQ (R8)(R12*4), R8")
	a.o("DECQ attnArgs_keys(AX)")
	a.o("JNZ keys")
	a.end()
}

// load8 leaves eight numbers in Y(v), codes without scale and bias: number 8i and those after it of a row at p.
func (a *asm) load8(t, p string, i, v int) {
	at := 32 / packing(t) * i
	if t == "Q4" {
		at = 8 * (i / 2)
	}
	switch half := i % 2; t {
	case "F32":
		a.o("VMOVUPS %d%s, Y%d", at, p, v)
	case "BF16":
		a.o("VPMOVZXWD %d%s, Y%d", at, p, v)
		a.o("VPSLLD $16, Y%d, Y%d", v, v)
	case "F16":
		a.o("VCVTPH2PS %d%s, Y%d", at, p, v)
	case "Q8":
		a.o("VPMOVZXBD %d%s, Y%d", at, p, v)
		a.o("VCVTDQ2PS Y%d, Y%d", v, v)
	case "Q4":
		a.o("VPMOVZXBD %d%s, Y%d", at, p, v)
		if half == 0 {
			a.o("VPAND low4x8<>(SB), Y%d, Y%d", v, v)
		} else {
			a.o("VPSRLD $4, Y%d, Y%d", v, v)
		}
		a.o("VCVTDQ2PS Y%d, Y%d", v, v)
	}
}

// rowValues adds weighted rows to the sums of up to three queries, 32 columns at a time.
func (a *asm) rowValues(t string, rows int) {
	a.text(levels[0].rowName("Value", t, rows), "attnArgs")
	a.o("MOVQ attnArgs_acc(AX), DI")
	a.o("MOVQ attnArgs_accStride(AX), R8")
	a.o("MOVQ attnArgs_vStride(AX), R9")
	a.o("MOVQ attnArgs_v(AX), R11")
	a.o("MOVQ attnArgs_k(AX), BX")
	a.o("MOVQ attnArgs_strips(AX), R13") // of 32 columns: all, of codes under one scale
	if quantised(t) {
		a.o("MOVQ attnArgs_v(AX), R12")
		a.o("ADDQ attnArgs_tail(AX), R12")
		a.o("MOVQ attnArgs_scales(AX), R15")
		a.label("scale")
		a.o("MOVQ attnArgs_strips(AX), R13")
	}
	a.label("strip")
	at := func(r, i int) string { return fmt.Sprintf("%d(DI)%s", 32*i, []string{"", "(R8*1)", "(R8*2)"}[r]) }
	for r := range rows {
		for i := range 4 {
			a.o("VMOVUPS %s, Y%d", at(r, i), 4*r+i)
		}
	}
	a.o("MOVQ R11, DX")
	a.o("MOVQ attnArgs_s(AX), SI")
	a.o("MOVQ attnArgs_positions(AX), CX")
	if quantised(t) {
		a.o("MOVQ R12, R10")
	}
	a.label("loop")
	if quantised(t) {
		a.o("VPBROADCASTD (R10), Y12")
		a.o("VPSLLD $16, Y12, Y13")
		a.o("VPSRLD $16, Y12, Y12")
		a.o("VPSLLD $16, Y12, Y12")
		a.o("ADDQ R9, R10")
	}
	p := []int{12, 13, 14}
	if quantised(t) {
		p = []int{14, 11}
	}
	for r := range rows {
		a.o("VBROADCASTSS %d(SI), Y%d", rowBytes*r, p[r])
	}
	per := packing(t)
	for line := 0; line < 128/per; line += 64 {
		a.o("PREFETCHT0 %d(BX)", line)
	}
	a.o("ADDQ $%d, BX", 128/per)
	for i := range 4 {
		a.load8(t, "(DX)", i, 15)
		if quantised(t) {
			a.o("VFMADD213PS Y12, Y13, Y15")
		}
		for r := range rows {
			a.o("VFMADD231PS Y15, Y%d, Y%d", p[r], 4*r+i)
		}
	}
	a.o("ADDQ $4, SI")
	a.o("ADDQ R9, DX")
	a.o("DECQ CX")
	a.o("JNZ loop")
	for r := range rows {
		for i := range 4 {
			a.o("VMOVUPS Y%d, %s", 4*r+i, at(r, i))
		}
	}
	a.o("ADDQ $128, DI")
	a.o("ADDQ $%d, R11", 128/per)
	a.o("DECQ R13")
	a.o("JNZ strip")
	if quantised(t) {
		a.o("ADDQ $4, R12")
		a.o("DECQ R15")
		a.o("JNZ scale")
	}
	a.end()
}
