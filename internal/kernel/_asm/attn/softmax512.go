package main

// topRows is of how many rows softmax512 finds the maxima before it takes the exponentials: two short chains of instructions for
// a row overlap with those of the next rows better than a long one.
const topRows = 8

// softmax512 is softmax with the 64 scores of a row in four vectors, Z16 to Z19. Z5 holds the scale.
func (a *asm) softmax512() {
	a.framed("attnSoftmaxAVX512", "attnArgs", 4*topRows)
	a.o("MOVQ attnArgs_s(AX), SI")
	a.o("MOVQ attnArgs_max(AX), R8")
	a.o("MOVQ attnArgs_sum(AX), R9")
	a.o("MOVQ attnArgs_acc(AX), DI")
	a.o("MOVQ attnArgs_groups(AX), R10")
	a.o("VBROADCASTSS attnArgs_scale(AX), Z5")
	a.expConstants512()
	a.label("some")
	a.o("MOVQ $%d, R12", topRows)
	a.o("CMPQ R10, R12")
	a.o("CMOVQLT R10, R12")
	a.o("SUBQ R12, R10")
	a.o("XORQ DX, DX")
	a.label("top")
	a.o("VBROADCASTSS (R8)(DX*4), Z6")
	for i := range 4 {
		a.o("VMULPS %d(SI), Z5, Z%d", 64*i, 16+i)
		a.o("VMAXPS Z6, Z%d, Z%d", 16+i, 16+i) // gives Z6 if the score is a NaN
	}
	a.o("VMAXPS Z17, Z16, Z16")
	a.o("VMAXPS Z19, Z18, Z18")
	a.o("VMAXPS Z18, Z16, Z6")
	a.o("VEXTRACTF64X4 $1, Z6, Y0")
	a.o("VMAXPS Y0, Y6, Y6")
	a.o("VEXTRACTF128 $1, Y6, X0")
	a.o("VMAXPS X0, X6, X6")
	a.o("VPSHUFD $0x4e, X6, X0")
	a.o("VMAXPS X0, X6, X6")
	a.o("VPSHUFD $0xb1, X6, X0")
	a.o("VMAXPS X0, X6, X6")
	a.o("VMOVSS X6, tops-%d(SP)(DX*4)", 4*topRows)
	a.o("ADDQ $%d, SI", rowBytes)
	a.o("INCQ DX")
	a.o("CMPQ DX, R12")
	a.o("JNE top")
	a.o("SHLQ $8, DX")
	a.o("SUBQ DX, SI")
	a.o("XORQ DX, DX")
	a.label("row")
	a.o("VBROADCASTSS tops-%d(SP)(DX*4), Z6", 4*topRows)
	for i := range 4 {
		a.o("VMULPS %d(SI), Z5, Z%d", 64*i, 16+i)
	}
	// All scores -Inf or NaN: weights 0 or NaN, not Inf-Inf.
	a.o("VCMPPS.BCST $0, negInf<>(SB), Z6, K1")
	a.o("VPXORD Z6, Z6, K1, Z6")
	for i := range 4 {
		a.o("VSUBPS Z6, Z%d, Z%d", 16+i, 16+i)
	}
	a.exp512(16, 17, 18, 19)
	for i := range 4 {
		a.o("VMOVUPS Z%d, %d(SI)", 16+i, 64*i)
	}
	a.o("VADDPS Z17, Z16, Z16")
	a.o("VADDPS Z19, Z18, Z18")
	a.o("VADDPS Z18, Z16, Z16")
	a.o("VEXTRACTF64X4 $1, Z16, Y17")
	a.o("VADDPS Y17, Y16, Y16")
	a.o("VEXTRACTF32X4 $1, Y16, X17")
	a.o("VADDPS X17, X16, X16")
	a.o("VPSHUFD $0x4e, X16, X17")
	a.o("VADDPS X17, X16, X16")
	a.o("VPSHUFD $0xb1, X16, X17")
	a.o("VADDSS X17, X16, X7")
	a.o("VMOVSS (R9), X15")
	a.o("VUCOMISS (R8), X6")
	a.o("JEQ add")
	// A new maximum: what was summed before shrinks.
	a.o("VBROADCASTSS (R8), Z16")
	a.o("VMOVSS X6, (R8)")
	a.o("VSUBPS Z6, Z16, Z16")
	a.exp512(16)
	a.o("VMULSS X16, X15, X15")
	a.o("MOVQ DI, R11")
	a.o("MOVQ attnArgs_strips(AX), CX")
	a.label("shrink")
	a.o("VMULPS (R11), Z16, Z17")
	a.o("VMOVUPS Z17, (R11)")
	a.o("ADDQ $64, R11")
	a.o("DECQ CX")
	a.o("JNZ shrink")
	a.label("add")
	a.o("VADDSS X7, X15, X15")
	a.o("VMOVSS X15, (R9)")
	a.o("ADDQ $%d, SI", rowBytes)
	a.o("ADDQ $4, R8")
	a.o("ADDQ $4, R9")
	a.o("ADDQ attnArgs_accStride(AX), DI")
	a.o("INCQ DX")
	a.o("CMPQ DX, R12")
	a.o("JNE row")
	a.o("TESTQ R10, R10")
	a.o("JNZ some")
	a.end()
}

// Registers of the constants of exp512.
var expRegister = map[string]int{"log2e": 1, "ln2Hi": 2, "ln2Lo": 3, "expLo": 4,
	"exp0": 8, "exp1": 9, "exp2": 10, "exp3": 11, "exp4": 12, "exp5": 13, "one": 14}

func (a *asm) expConstants512() {
	for _, c := range []string{"log2e", "ln2Hi", "ln2Lo", "expLo", "exp0", "exp1", "exp2", "exp3", "exp4", "exp5", "one"} {
		a.o("VBROADCASTSS %s<>(SB), Z%d", c, expRegister[c])
	}
}

// exp512 turns registers into e to their power as exp32 does, for numbers up to 0, -Inf and NaN. For register x it loses
// those four, eight and twelve further, Z0 and K1. A NaN passes through the arithmetic, and no comparison takes it.
func (a *asm) exp512(x ...int) {
	each := func(f func(x, n, r, p int)) {
		for _, x := range x {
			f(x, x+4, x+8, x+12)
		}
	}
	c := expRegister
	each(func(x, n, r, p int) { a.o("VMULPS Z%d, Z%d, Z%d", c["log2e"], x, n) })
	each(func(x, n, r, p int) { a.o("VRNDSCALEPS $0, Z%d, Z%d", n, n) })
	each(func(x, n, r, p int) { a.o("VMOVAPS Z%d, Z%d", x, r) })
	each(func(x, n, r, p int) { a.o("VFNMADD231PS Z%d, Z%d, Z%d", c["ln2Hi"], n, r) })
	each(func(x, n, r, p int) { a.o("VFNMADD231PS Z%d, Z%d, Z%d", c["ln2Lo"], n, r) })
	each(func(x, n, r, p int) { a.o("VMOVAPS Z%d, Z%d", c["exp0"], p) })
	for _, k := range []string{"exp1", "exp2", "exp3", "exp4", "exp5"} {
		each(func(x, n, r, p int) { a.o("VFMADD213PS Z%d, Z%d, Z%d", c[k], r, p) })
	}
	each(func(x, n, r, p int) {
		a.o("VMULPS Z%d, Z%d, Z0", r, r)
		a.o("VFMADD213PS Z%d, Z0, Z%d", r, p)
	})
	each(func(x, n, r, p int) { a.o("VADDPS Z%d, Z%d, Z%d", c["one"], p, p) })
	each(func(x, n, r, p int) {
		a.o("VCMPPS $21, Z%d, Z%d, K1", c["expLo"], x) // not below, where 0 belongs
		a.o("VSCALEFPS.Z Z%d, Z%d, K1, Z%d", n, p, x)
	})
}

// softcap512 is softcap for sixteen scores at a time.
func (a *asm) softcap512() {
	a.text("attnSoftcapAVX512", "attnArgs")
	a.o("MOVQ attnArgs_s(AX), SI")
	a.o("MOVQ attnArgs_groups(AX), R10") // of 64 scores
	a.o("SHLQ $2, R10")
	a.o("VBROADCASTSS attnArgs_scale(AX), Z5")
	a.o("VBROADCASTSS attnArgs_cap(AX), Z6")
	a.o("VPBROADCASTD sign<>(SB), Z7")
	a.expConstants512()
	a.label("loop")
	a.o("VMULPS (SI), Z5, Z17")
	a.o("VDIVPS Z6, Z17, Z17")
	// Far from 0: 1 - 2e/(1+e) with e = exp(-2|x|), and the sign of x.
	a.o("VPANDND Z17, Z7, Z18")
	a.o("VMULPS.BCST minusTwo<>(SB), Z18, Z16")
	a.exp512(16)
	a.o("VADDPS Z16, Z16, Z19")
	a.o("VADDPS Z14, Z16, Z16")
	a.o("VDIVPS Z16, Z19, Z16")
	a.o("VSUBPS Z16, Z14, Z16")
	a.o("VPANDD Z17, Z7, Z19")
	a.o("VPORD Z19, Z16, Z16")
	// Near 0: a polynomial of x².
	a.o("VMULPS Z17, Z17, Z19")
	a.o("VBROADCASTSS tanh0<>(SB), Z20")
	for _, c := range []string{"tanh1", "tanh2", "tanh3", "tanh4"} {
		a.o("VFMADD213PS.BCST %s<>(SB), Z19, Z20", c)
	}
	a.o("VMULPS Z19, Z20, Z20")
	a.o("VFMADD213PS Z17, Z17, Z20")
	a.o("VCMPPS.BCST $17, tanhEdge<>(SB), Z18, K1")
	a.o("VMOVAPS Z20, K1, Z16")
	a.o("VMULPS Z6, Z16, Z16")
	a.o("VMOVUPS Z16, (SI)")
	a.o("ADDQ $64, SI")
	a.o("DECQ R10")
	a.o("JNZ loop")
	a.end()
}
