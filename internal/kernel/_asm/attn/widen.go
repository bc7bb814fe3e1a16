package main

// types are those of package kernel.
var types = []string{"F32", "BF16", "F16", "Q8", "Q4"}

func quantised(t string) bool { return t[0] == 'Q' }

// widen writes rows as float32 numbers, vectors of eight apart as the arguments say: keys and values go to tiles of
// different form. Numbers of codes are scale·code + bias.
func (a *asm) widen(t string) {
	a.text("attnWiden"+t+"AVX2", "widenArgs")
	a.o("MOVQ widenArgs_src(AX), SI")
	a.o("MOVQ widenArgs_dst(AX), DI")
	a.o("MOVQ widenArgs_rows(AX), CX")
	a.o("MOVQ widenArgs_odd(AX), R8")
	a.o("MOVQ widenArgs_pair(AX), R9")
	if t == "Q4" {
		a.o("VPBROADCASTD low4<>(SB), Y15")
	}
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
		a.o("VPBROADCASTD (R13), Y2")
		a.o("VPSLLD $16, Y2, Y3")
		a.o("VPSRLD $16, Y2, Y2")
		a.o("VPSLLD $16, Y2, Y2")
		a.o("ADDQ $4, R13")
	}
	a.o("MOVQ widenArgs_pairs(AX), BX")
	a.label("pair")
	a.load16(t)
	a.o("VMOVUPS Y0, (DX)")
	a.o("VMOVUPS Y1, (DX)(R8*1)")
	a.o("ADDQ R9, DX")
	a.nextPair(t)
}

// nextPair goes on to the next pair of vectors, scale, row and group of rows, and ends the routine behind the last.
func (a *asm) nextPair(t string) {
	a.o("DECQ BX")
	a.o("JNZ pair")
	if quantised(t) {
		a.o("DECQ R15")
		a.o("JNZ scale")
	}
	a.o("ADDQ widenArgs_stride(AX), SI")
	a.o("ADDQ widenArgs_row(AX), R10")
	a.o("DECQ CX")
	a.o("JZ done")
	a.o("DECQ R11")
	a.o("JNZ row")
	a.o("ADDQ widenArgs_group(AX), DI")
	a.o("JMP group")
	a.label("done")
	a.end()
}

// load16 leaves sixteen numbers at R12 in Y0 and Y1 and steps over them. Y3 and Y2 hold scale and bias of codes.
func (a *asm) load16(t string) {
	switch t {
	case "F32":
		a.o("VMOVUPS (R12), Y0")
		a.o("VMOVUPS 32(R12), Y1")
		a.o("ADDQ $64, R12")
	case "BF16":
		a.o("VPMOVZXWD (R12), Y0")
		a.o("VPMOVZXWD 16(R12), Y1")
		a.o("VPSLLD $16, Y0, Y0")
		a.o("VPSLLD $16, Y1, Y1")
		a.o("ADDQ $32, R12")
	case "F16":
		a.o("VCVTPH2PS (R12), Y0")
		a.o("VCVTPH2PS 16(R12), Y1")
		a.o("ADDQ $32, R12")
	case "Q8":
		a.o("VPMOVZXBD (R12), Y0")
		a.o("VPMOVZXBD 8(R12), Y1")
		a.o("ADDQ $16, R12")
	case "Q4":
		a.o("VPMOVZXBD (R12), Y1")
		a.o("VPAND Y15, Y1, Y0")
		a.o("VPSRLD $4, Y1, Y1")
		a.o("ADDQ $8, R12")
	}
	if quantised(t) {
		for _, v := range []string{"Y0", "Y1"} {
			a.o("VCVTDQ2PS %s, %s", v, v)
			a.o("VFMADD213PS Y2, Y3, %s", v)
		}
	}
}
