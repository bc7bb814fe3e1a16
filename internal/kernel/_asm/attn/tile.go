package main

import "fmt"

// Tile shapes. Twelve accumulators hide the latency of the additions, and leave registers for one operand of each side.
const (
	scoreRows = 3 // queries, by 4 keys
	valueRows = 6 // queries, by 16 columns
)

// rowBytes is a row of scores.
const rowBytes = 64 * 4

// scores writes the products of groups of queries with groups of four keys of a widened tile: eight lanes per pair, folded at
// the end as reduceScore does.
func (a *asm) scores(rows int) {
	a.text(fmt.Sprintf("attnScores%dAVX2", rows), "attnArgs")
	a.o("MOVQ attnArgs_q(AX), SI")
	a.o("MOVQ attnArgs_s(AX), DI")
	a.o("MOVQ attnArgs_qStride(AX), R8")
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
	for i := range 4 * rows {
		a.o("VXORPS Y%d, Y%d, Y%d", i, i, i)
	}
	a.label("loop")
	for half := range 2 {
		for r := range rows {
			a.o("VMOVUPS %d(R9)%s, Y%d", 32*half, []string{"", "(R8*1)", "(R8*2)"}[r], 12+r)
		}
		for k := range 4 {
			a.o("VMOVUPS %d(DX), Y15", 128*half+32*k)
			for r := range rows {
				a.o("VFMADD231PS Y15, Y%d, Y%d", 12+r, 4*r+k)
			}
		}
	}
	a.o("ADDQ $64, R9")
	a.o("ADDQ $256, DX")
	a.o("DECQ CX")
	a.o("JNZ loop")
	for r := range rows {
		a.fold4(4 * r)
		a.o("VMOVUPS X%d, %d(R11)", 4*r, rowBytes*r)
	}
	a.fetch("R13", "R15", 1)
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

// fetch asks for the next lines of what the other half of the work will read, to the second cache.
func (a *asm) fetch(p, end string, lines int) {
	a.o("CMPQ %s, %s", p, end)
	a.o("JAE fetched")
	for i := range lines {
		a.o("PREFETCHT1 %d(%s)", 64*i, p)
	}
	a.o("ADDQ $%d, %s", 64*lines, p)
	a.label("fetched")
}

// fold4 leaves in X(v) the sums of Y(v) to Y(v+3). Y12 is lost.
func (a *asm) fold4(v int) {
	for _, p := range []int{v, v + 2} {
		a.o("VUNPCKLPS Y%d, Y%d, Y12", p+1, p)
		a.o("VUNPCKHPS Y%d, Y%d, Y%d", p+1, p, p)
		a.o("VADDPS Y%d, Y12, Y%d", p, p)
	}
	a.o("VUNPCKLPD Y%d, Y%d, Y12", v+2, v)
	a.o("VUNPCKHPD Y%d, Y%d, Y%d", v+2, v, v)
	a.o("VADDPS Y%d, Y12, Y%d", v, v)
	a.o("VEXTRACTF128 $1, Y%d, X12", v)
	a.o("VADDPS X12, X%d, X%d", v, v)
}

// values adds weighted rows of a widened tile to the sums of groups of queries, strips of 16 columns outside so that
// one strip of values stays in the nearest cache.
func (a *asm) values(rows int) {
	a.text(fmt.Sprintf("attnValues%dAVX2", rows), "attnArgs")
	a.o("MOVQ attnArgs_accStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("LEAQ (R8)(R8*4), R10")
	a.o("MOVQ attnArgs_v(AX), R11")
	a.o("MOVQ attnArgs_acc(AX), R12")
	a.o("MOVQ attnArgs_strips(AX), R13")
	a.o("MOVQ attnArgs_ahead(AX), R14")
	a.label("strip")
	a.o("MOVQ R12, DI")
	a.o("MOVQ attnArgs_s(AX), BX")
	a.o("MOVQ attnArgs_groups(AX), R15")
	a.label("queries")
	at := func(r, half int) string {
		return fmt.Sprintf("%d(DI)%s", 32*half, []string{"", "(R8*1)", "(R8*2)", "(R9*1)", "(R8*4)", "(R10*1)"}[r])
	}
	for r := range rows {
		a.o("VMOVUPS %s, Y%d", at(r, 0), 2*r)
		a.o("VMOVUPS %s, Y%d", at(r, 1), 2*r+1)
	}
	a.o("MOVQ R11, DX")
	a.o("MOVQ BX, SI")
	a.o("MOVQ attnArgs_positions(AX), CX")
	a.o("SUBQ $4, CX")
	a.o("JLT rest")
	a.label("loop")
	for i := range 4 {
		a.position(rows, i)
	}
	a.o("ADDQ $256, DX")
	a.o("ADDQ $16, SI")
	a.o("SUBQ $4, CX")
	a.o("JGE loop")
	a.label("rest")
	a.o("ADDQ $4, CX")
	a.o("JZ done")
	a.label("single")
	a.position(rows, 0)
	a.o("ADDQ $64, DX")
	a.o("ADDQ $4, SI")
	a.o("DECQ CX")
	a.o("JNZ single")
	a.label("done")
	for r := range rows {
		a.o("VMOVUPS Y%d, %s", 2*r, at(r, 0))
		a.o("VMOVUPS Y%d, %s", 2*r+1, at(r, 1))
	}
	a.fetch("R14", "attnArgs_aheadEnd(AX)", 2)
	a.o("ADDQ $%d, BX", rowBytes*rows)
	for range rows {
		a.o("ADDQ R8, DI")
	}
	a.o("DECQ R15")
	a.o("JNZ queries")
	a.o("ADDQ $64, R12")
	a.o("ADDQ attnArgs_vStride(AX), R11")
	a.o("DECQ R13")
	a.o("JNZ strip")
	a.o("MOVQ R14, attnArgs_ahead(AX)")
	a.end()
}

func (a *asm) position(rows, i int) {
	a.o("VMOVUPS %d(DX), Y12", 64*i)
	a.o("VMOVUPS %d(DX), Y13", 64*i+32)
	for r := range rows {
		p := 14 + r%2
		a.o("VBROADCASTSS %d(SI), Y%d", rowBytes*r+4*i, p)
		a.o("VFMADD231PS Y12, Y%d, Y%d", p, 2*r)
		a.o("VFMADD231PS Y13, Y%d, Y%d", p, 2*r+1)
	}
}
