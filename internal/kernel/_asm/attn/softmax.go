package main

// softmax turns rows of 64 scores into weights: see softmax in package kernel. Y7 holds the scale, Y8 to Y12 and Y15 what exp
// needs.
func (a *asm) softmax() {
	a.text("attnSoftmaxAVX2", "attnArgs")
	a.o("MOVQ attnArgs_s(AX), SI")
	a.o("MOVQ attnArgs_max(AX), R8")
	a.o("MOVQ attnArgs_sum(AX), R9")
	a.o("MOVQ attnArgs_acc(AX), DI")
	a.o("MOVQ attnArgs_groups(AX), R10")
	a.o("VBROADCASTSS attnArgs_scale(AX), Y7")
	a.expConstants()
	a.label("row")
	a.o("VBROADCASTSS (R8), Y6")
	for i := range 8 {
		a.o("VMULPS %d(SI), Y7, Y0", 32*i)
		a.o("VMAXPS Y6, Y0, Y6") // gives Y6 if the score is a NaN
	}
	a.o("VEXTRACTF128 $1, Y6, X0")
	a.o("VMAXPS X0, X6, X6")
	a.o("VPSHUFD $0x4e, X6, X0")
	a.o("VMAXPS X0, X6, X6")
	a.o("VPSHUFD $0xb1, X6, X0")
	a.o("VMAXPS X0, X6, X6")
	a.o("VBROADCASTSS X6, Y6")
	// All scores -Inf or NaN: weights 0 or NaN, not Inf-Inf.
	a.o("VBROADCASTSS negInf<>(SB), Y0")
	a.o("VCMPPS $0, Y0, Y6, Y0")
	a.o("VANDNPS Y6, Y0, Y6")
	a.o("VXORPS Y5, Y5, Y5")
	a.o("MOVQ $8, CX")
	a.label("loop")
	a.o("VMULPS (SI), Y7, Y0")
	a.o("VSUBPS Y6, Y0, Y0")
	a.exp()
	a.o("VMOVUPS Y0, (SI)")
	a.o("VADDPS Y0, Y5, Y5")
	a.o("ADDQ $32, SI")
	a.o("DECQ CX")
	a.o("JNZ loop")
	a.o("VEXTRACTF128 $1, Y5, X0")
	a.o("VADDPS X0, X5, X5")
	a.o("VPSHUFD $0x4e, X5, X0")
	a.o("VADDPS X0, X5, X5")
	a.o("VPSHUFD $0xb1, X5, X0")
	a.o("VADDSS X0, X5, X5")
	a.o("VMOVSS (R9), X14")
	a.o("VUCOMISS (R8), X6")
	a.o("JEQ add")
	// A new maximum: what was summed before shrinks.
	a.o("VBROADCASTSS (R8), Y0")
	a.o("VMOVSS X6, (R8)")
	a.o("VSUBPS Y6, Y0, Y0")
	a.exp()
	a.o("VMULSS X0, X14, X14")
	a.o("MOVQ DI, R11")
	a.o("MOVQ attnArgs_strips(AX), CX")
	a.label("shrink")
	a.o("VMULPS (R11), Y0, Y1")
	a.o("VMULPS 32(R11), Y0, Y2")
	a.o("VMOVUPS Y1, (R11)")
	a.o("VMOVUPS Y2, 32(R11)")
	a.o("ADDQ $64, R11")
	a.o("DECQ CX")
	a.o("JNZ shrink")
	a.label("add")
	a.o("VADDSS X5, X14, X14")
	a.o("VMOVSS X14, (R9)")
	a.o("ADDQ $4, R8")
	a.o("ADDQ $4, R9")
	a.o("ADDQ attnArgs_accStride(AX), DI")
	a.o("DECQ R10")
	a.o("JNZ row")
	a.end()
}

func (a *asm) expConstants() {
	for i, c := range []string{"log2e", "ln2Hi", "ln2Lo", "one", "expLo"} {
		a.o("VBROADCASTSS %s<>(SB), Y%d", c, 8+i)
	}
	a.o("VBROADCASTSS exp0<>(SB), Y13")
	a.o("VBROADCASTSS exp1<>(SB), Y15")
}

// exp turns Y0 into e^Y0 as exp32 does, for numbers up to 0, -Inf and NaN. Y1 to Y4 are lost. A NaN passes through the
// arithmetic: its power of two comes out as 1 and no comparison takes it.
func (a *asm) exp() {
	a.o("VMULPS Y8, Y0, Y4")
	a.o("VROUNDPS $0, Y4, Y4")
	a.o("VMOVAPS Y0, Y1")
	a.o("VFNMADD231PS Y9, Y4, Y1")
	a.o("VFNMADD231PS Y10, Y4, Y1")
	a.o("VMOVAPS Y13, Y2")
	a.o("VFMADD213PS Y15, Y1, Y2")
	for _, c := range []string{"exp2", "exp3", "exp4", "exp5"} {
		a.o("VBROADCASTSS %s<>(SB), Y3", c)
		a.o("VFMADD213PS Y3, Y1, Y2")
	}
	a.o("VMULPS Y1, Y1, Y3")
	a.o("VFMADD213PS Y1, Y3, Y2")
	a.o("VADDPS Y11, Y2, Y2")
	a.o("VCVTPS2DQ Y4, Y4")
	a.o("VPSLLD $23, Y4, Y4")
	a.o("VPADDD Y11, Y4, Y4")
	a.o("VMULPS Y4, Y2, Y2")
	a.o("VCMPPS $17, Y12, Y0, Y3") // below: 0
	a.o("VANDNPS Y2, Y3, Y0")
}

// softcap turns scores into cap·tanh(score·scale/cap), eight at a time: see tanh32.
func (a *asm) softcap() {
	a.text("attnSoftcapAVX2", "attnArgs")
	a.o("MOVQ attnArgs_s(AX), SI")
	a.o("MOVQ attnArgs_groups(AX), R10") // of 64 scores
	a.o("SHLQ $3, R10")
	a.o("VBROADCASTSS attnArgs_scale(AX), Y7")
	a.o("VBROADCASTSS attnArgs_cap(AX), Y14")
	a.expConstants()
	a.label("loop")
	a.o("VMULPS (SI), Y7, Y5")
	a.o("VDIVPS Y14, Y5, Y5")
	// Far from 0: 1 - 2e/(1+e) with e = exp(-2|x|), and the sign of x.
	a.o("VBROADCASTSS sign<>(SB), Y6")
	a.o("VANDNPS Y5, Y6, Y0")
	a.o("VBROADCASTSS minusTwo<>(SB), Y1")
	a.o("VMULPS Y1, Y0, Y0")
	a.exp()
	a.o("VADDPS Y0, Y0, Y1")
	a.o("VADDPS Y11, Y0, Y0")
	a.o("VDIVPS Y0, Y1, Y1")
	a.o("VSUBPS Y1, Y11, Y1")
	a.o("VANDPS Y5, Y6, Y2")
	a.o("VORPS Y2, Y1, Y0")
	// Near 0: a polynomial of x².
	a.o("VMULPS Y5, Y5, Y1")
	a.o("VBROADCASTSS tanh0<>(SB), Y2")
	for _, c := range []string{"tanh1", "tanh2", "tanh3", "tanh4"} {
		a.o("VBROADCASTSS %s<>(SB), Y3", c)
		a.o("VFMADD213PS Y3, Y1, Y2")
	}
	a.o("VMULPS Y1, Y2, Y2")
	a.o("VFMADD213PS Y5, Y5, Y2")
	a.o("VANDNPS Y5, Y6, Y3")
	a.o("VBROADCASTSS tanhEdge<>(SB), Y4")
	a.o("VCMPPS $17, Y4, Y3, Y3")
	a.o("VBLENDVPS Y3, Y2, Y0, Y0")
	a.o("VMULPS Y14, Y0, Y0")
	a.o("VMOVUPS Y0, (SI)")
	a.o("ADDQ $32, SI")
	a.o("DECQ R10")
	a.o("JNZ loop")
	a.end()
}
