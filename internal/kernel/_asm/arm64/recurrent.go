package main

// recurrent opens a routine over tokens and rows of a state with its arguments in registers from R1. Rows are [16]float32.
func (f *floats) recurrent(name, args string, fields ...string) {
	f.decls = append(f.decls, "func "+name+"(a *"+args+")")
	f.text(name, args)
	f.fields(args, fields...)
}

// delta: v0 to v3 hold k·S of the token at hand, v4 to v7 its δ, v8 to v11 its y, v12 to v15 k·S of the next one, v16 to v19
// a row of the state. After the last token, its own k stands for the next one.
func (f *floats) delta() {
	const k, q, next, gate, beta = 20, 21, 22, 23, 24
	f.recurrent("deltaNEON", "deltaArgs", "state", "k", "q", "v", "y", "gate", "beta", "n", "kdim", "ks", "vs", "ys", "gs")
	for i := range 4 {
		f.zero(i)
	}
	f.o("MOVD R1, R14")
	f.o("MOVD R2, R15")
	f.o("MOVD R9, R17")
	f.label("first")
	f.o("FMOVS.P 4(R15), F%d", k)
	for i := range 4 {
		f.load(16*i, "R14", 16+i)
		f.e(fmlaE, i, 16+i, k, 0)
	}
	f.o("ADD $64, R14")
	f.loop("R17", "first")

	f.label("token")
	f.o("FMOVS (R6), F%d", gate)
	f.o("FMOVS (R7), F%d", beta)
	for i := range 4 {
		f.load(16*i, "R4", 4+i)
		f.e(fmlsE, 4+i, i, gate, 0)
		f.e(fmulE, 4+i, 4+i, beta, 0)
		f.zero(8 + i)
		f.zero(12 + i)
	}
	f.o("MOVD R2, R15")
	f.o("MOVD R2, R19")
	f.o("CMP $1, R8")
	f.o("BEQ rows")
	f.o("ADD R10, R19")
	f.label("rows")
	f.o("MOVD R19, R2")
	f.o("MOVD R3, R16")
	f.o("MOVD R1, R14")
	f.o("MOVD R9, R17")
	f.label("row")
	f.o("FMOVS.P 4(R15), F%d", k)
	f.o("FMOVS.P 4(R16), F%d", q)
	f.o("FMOVS.P 4(R19), F%d", next)
	for i := range 4 {
		f.load(16*i, "R14", 16+i)
		f.e(fmulE, 16+i, 16+i, gate, 0)
		f.e(fmlaE, 16+i, 4+i, k, 0)
		f.store(16+i, 16*i, "R14")
		f.e(fmlaE, 8+i, 16+i, q, 0)
		f.e(fmlaE, 12+i, 16+i, next, 0)
	}
	f.o("ADD $64, R14")
	f.loop("R17", "row")
	for i := range 4 {
		f.store(8+i, 16*i, "R5")
		f.v(orr, i, 12+i, 12+i)
	}
	f.o("ADD R10, R3")
	f.o("ADD R11, R4")
	f.o("ADD R12, R5")
	f.o("ADD R13, R6")
	f.o("ADD R13, R7")
	f.loop("R8", "token")
	f.end()
}

// scan: v4 to v7 hold v of the token at hand, v8 to v11 its y, v16 to v19 a row of the state. The wide one has a factor per
// number of the state and one token.
func (f *floats) scan() {
	const k, q, gate = 20, 21, 22
	for _, wide := range []bool{false, true} {
		name := "scanNEON"
		if wide {
			name = "scanWideNEON"
		}
		f.recurrent(name, "scanArgs", "state", "k", "q", "v", "y", "gate", "n", "kdim", "ks", "qs", "vs", "ys", "gs")
		f.label("token")
		for i := range 4 {
			f.load(16*i, "R4", 4+i)
			f.zero(8 + i)
		}
		if !wide {
			f.o("FMOVS (R6), F%d", gate)
		}
		f.o("MOVD R1, R14")
		f.o("MOVD R2, R15")
		f.o("MOVD R3, R16")
		f.o("MOVD R8, R17")
		f.label("row")
		f.o("FMOVS.P 4(R15), F%d", k)
		f.o("FMOVS.P 4(R16), F%d", q)
		for i := range 4 {
			f.load(16*i, "R14", 16+i)
			if wide {
				f.load(16*i, "R6", 24+i)
				f.v(fmul, 16+i, 16+i, 24+i)
			} else {
				f.e(fmulE, 16+i, 16+i, gate, 0)
			}
			f.e(fmlaE, 16+i, 4+i, k, 0)
			f.store(16+i, 16*i, "R14")
			f.e(fmlaE, 8+i, 16+i, q, 0)
		}
		f.o("ADD $64, R14")
		if wide {
			f.o("ADD $64, R6")
		}
		f.loop("R17", "row")
		for i := range 4 {
			f.store(8+i, 16*i, "R5")
		}
		if !wide {
			for i, p := range []string{"R2", "R3", "R4", "R5", "R6"} {
				f.o("ADD R%d, %s", 9+i, p)
			}
			f.loop("R7", "token")
		}
		f.end()
	}

	f.fn("timesNEON", append(pointers("dst", "a", "by"), length)...)
	for i := range 4 {
		f.load(16*i, "R2", 4+i)
	}
	f.label("loop")
	for i := range 4 {
		f.load(16*i, "R1", i)
		f.v(fmul, i, i, 4+i)
		f.store(i, 16*i, "R0")
	}
	f.each(16, "R3", "R0", "R1")
	f.end()
}

// keyDelta has the registers of delta, with (k∘g)·S in the place of k·S.
func (f *floats) keyDelta() {
	const k, q, next, gate, beta = 20, 21, 22, 23, 24
	f.recurrent("keyDeltaNEON", "keyDeltaArgs", "state", "k", "q", "v", "y", "gate", "beta", "kg", "n", "kdim", "ks", "vs", "ys", "gs", "bs")
	for i := range 4 {
		f.zero(i)
	}
	f.o("MOVD R1, R16")
	f.o("MOVD R8, R17")
	f.o("MOVD R10, R25")
	f.label("first")
	f.o("FMOVS.P 4(R17), F%d", k)
	for i := range 4 {
		f.load(16*i, "R16", 16+i)
		f.e(fmlaE, i, 16+i, k, 0)
	}
	f.o("ADD $64, R16")
	f.loop("R25", "first")

	f.label("token")
	f.o("FMOVS (R7), F%d", beta)
	for i := range 4 {
		f.load(16*i, "R4", 4+i)
		f.v(fsub, 4+i, 4+i, i)
		f.e(fmulE, 4+i, 4+i, beta, 0)
		f.zero(8 + i)
		f.zero(12 + i)
	}
	f.o("CMP $1, R9")
	f.o("BEQ rows")
	f.o("ADD R14, R8")
	f.label("rows")
	f.o("MOVD R1, R16")
	f.o("MOVD R2, R17")
	f.o("MOVD R3, R19")
	f.o("MOVD R6, R20")
	f.o("MOVD R8, R21")
	f.o("MOVD R10, R25")
	f.label("row")
	f.o("FMOVS.P 4(R17), F%d", k)
	f.o("FMOVS.P 4(R19), F%d", q)
	f.o("FMOVS.P 4(R20), F%d", gate)
	f.o("FMOVS.P 4(R21), F%d", next)
	for i := range 4 {
		f.load(16*i, "R16", 16+i)
		f.e(fmulE, 16+i, 16+i, gate, 0)
		f.e(fmlaE, 16+i, 4+i, k, 0)
		f.store(16+i, 16*i, "R16")
		f.e(fmlaE, 8+i, 16+i, q, 0)
		f.e(fmlaE, 12+i, 16+i, next, 0)
	}
	f.o("ADD $64, R16")
	f.loop("R25", "row")
	for i := range 4 {
		f.store(8+i, 16*i, "R5")
		f.v(orr, i, 12+i, 12+i)
	}
	f.o("ADD R11, R2")
	f.o("ADD R11, R3")
	f.o("ADD R12, R4")
	f.o("ADD R13, R5")
	f.o("ADD R14, R6")
	f.o("ADD R15, R7")
	f.loop("R9", "token")
	f.end()
}
