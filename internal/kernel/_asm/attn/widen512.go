package main

// widen512 is widen with vectors of sixteen, pair apart; odd counts for nothing.
func (a *asm) widen512(t string) {
	a.text("attnWiden"+t+"AVX512", "widenArgs")
	a.o("MOVQ widenArgs_src(AX), SI")
	a.o("MOVQ widenArgs_dst(AX), DI")
	a.o("MOVQ widenArgs_rows(AX), CX")
	a.o("MOVQ widenArgs_pair(AX), R9")
	a.codes512(t)
	a.label("group")
	a.o("MOVQ DI, R10")
	a.o("MOVQ $4, R11")
	a.label("row")
	a.o("MOVQ SI, R12")
	a.o("MOVQ R10, DX")
	if quantised(t) {
		a.o("MOVQ SI, R13")
		a.o("ADDQ widenArgs_tail(AX), R13")
		a.o("MOVQ widenArgs_scales(AX), R15")
		a.label("scale")
		a.scale512(t, "(R13)", 24)
		a.o("ADDQ $4, R13")
	}
	a.o("MOVQ widenArgs_pairs(AX), BX")
	a.label("pair")
	a.load16to(t, "(R12)", 0, 0, 24)
	a.o("ADDQ $%d, R12", 64/packing(t))
	a.o("VMOVUPS Z0, (DX)")
	a.o("ADDQ R9, DX")
	a.nextPair(t)
}
