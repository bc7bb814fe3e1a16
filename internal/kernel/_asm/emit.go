package main

// emit writes what all routines but the blocked ones share: the loop over panels, and passes over a panel.
func (r routine) emit(a *asm) {
	if r.tiled() {
		tile{r}.emitTile(a)
		return
	}
	if r.blocked() {
		r.emitBlocked(a)
		return
	}
	if r.width == 64 && r.kind == fastFloatE2M1 {
		r.emitSmall512(a)
		return
	}
	r.macros(a)
	r.enter(a)
	if !r.kind.dense() {
		a.o("MOVQ mulArgs_gStride(AX), R13")
	}
	r.loadConstants(a)
	a.label("panel")
	for pass := range r.passes() {
		r.pass(a, pass)
	}
	a.o("ADDQ $64, DI")
	a.o("DECQ mulArgs_panels(AX)")
	a.o("JNZ panel")
	a.o("VZEROUPPER")
	a.o("RET\n")
}

// macros defines those of the routine.
func (r routine) macros(a *asm) {
	switch {
	case r.vex():
		r.vexMacros(a)
	case r.kind == dots:
		r.dotMacros(a)
	case r.width == 64 && r.kind.fast():
		r.madd8Macros(a)
	case r.width == 64:
		r.fmaMacros(a)
	}
}

func (r routine) loadConstants(a *asm) {
	if r.vex() {
		if r.kind != fast8 {
			r.planeMasks(a, 14)
		}
		return
	}
	bcast := func(name string, n int) { a.o("VPBROADCASTD %s<>(SB), %s", name, r.v(n)) }
	switch r.kind {
	case fast4:
		bcast("nibbles", r.mask())
		bcast("ones16", r.ones())
	case fast8:
		bcast("ones16", r.ones())
		if r.width == 64 {
			bcast("nibbles", r.mask())
			bcast("sixteens16", r.ones()-2)
		} else {
			bcast("signs", r.mask())
		}
	case exact4:
		if r.width == 64 {
			a.o("VMOVUPS floats<>(SB), %s", r.v(r.mask()))
		} else {
			bcast("low4", r.mask())
		}
	case exact8:
		bcast("low8", r.mask())
	case floatE4M3:
		r.e4m3Constants(a)
	case exact2, exact3, exact5, exact6, exactE2M1, floatE2M1:
		if r.width == 64 {
			r.planes512(a)
			break
		}
		bcast("low8", r.mask())
		r.planeMasks(a, 12)
	case fast2, fast3, fast5, fast6, fastE2M1, fastFloatE2M1:
		r.planeMasks(a, 13)
	case bf16:
		bcast("high16", r.mask())
	}
}

// mask and ones are the last registers.
func (r routine) ones() int {
	if r.width == 64 {
		return 31
	}
	return 15
}
func (r routine) mask() int { return r.ones() - 1 }

// enter opens a routine and reads what all of them begin with.
func (r routine) enter(a *asm) {
	a.raw("// func ", r.name(), "(a *mulArgs)\nTEXT ·", r.name(), "(SB), NOSPLIT, $0-8\n")
	a.o("MOVQ a+0(FP), AX")
	a.o("MOVQ mulArgs_w(AX), SI")
	a.o("MOVQ mulArgs_y(AX), DI")
	a.o("MOVQ mulArgs_xStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
}

// firstColumn points to the rows of x, four by four.
func (r routine) firstColumn(a *asm) {
	a.o("MOVQ mulArgs_x(AX), DX")
	if r.rows > 4 {
		a.o("LEAQ (DX)(R8*4), R15")
	}
	if r.rows > 8 {
		a.o("LEAQ (DX)(R8*8), R12")
	}
}

// pass runs all groups of a panel, or of one half of it.
func (r routine) pass(a *asm, pass int) {
	l := sprint("%d", pass)
	r.firstColumn(a)
	a.o("MOVQ mulArgs_groups(AX), BX")
	if pass > 0 {
		a.o("MOVQ mulArgs_w(AX), SI")
	}
	if r.kind.dense() {
		r.ahead(a)
		if r.kind == dots {
			r.dotPairs(a)
		} else {
			r.dense(a, pass, l)
		}
		r.nextPanel(a, pass)
		return
	}
	if r.kind.fast() {
		a.o("MOVQ mulArgs_scale(AX), R10")
		a.o("MOVQ mulArgs_sum(AX), R11")
		a.o("MOVQ mulArgs_offset(AX), R12")
		a.o("SUBQ R10, R11")
		a.o("SUBQ R10, R12")
	} else {
		a.o("MOVQ mulArgs_sum(AX), R10")
	}
	r.clearY(a, pass)
	a.label("group" + l)
	r.ahead(a)
	switch {
	case r.kind.fast():
		r.fastGroup(a, pass, l)
	default:
		r.exactGroup(a, pass, l)
	}
	a.o("ADDQ $4, R10")
	a.o("DECQ BX")
	a.o("JNZ group%s", l)
	r.nextPanel(a, pass)
}

// nextPanel remembers where the next panel starts when a panel takes two passes.
func (r routine) nextPanel(a *asm, pass int) {
	if r.passes() > 1 && pass == r.passes()-1 {
		a.o("MOVQ SI, mulArgs_w(AX)")
	}
}

func (r routine) clearY(a *asm, pass int) {
	a.shared("CLEARY", func() {
		r.zero(a, 0)
		a.o("LEAQ (DI), R14")
		for m := range r.rows {
			for h := range r.halves() {
				a.o("VMOVUPS %s, %d(R14)", r.v(0), (pass+h)*32)
			}
			if m < r.rows-1 {
				a.o("ADDQ mulArgs_yStride(AX), R14")
			}
		}
	})
}

// loadScales reads the weight scales and biases of a group, either width, and steps over them. Scales go to registers
// from s, biases follow.
func (r routine) loadScales(a *asm, pass, s int, l string) {
	half := r.width / 2
	a.o("CMPQ mulArgs_wide(AX), $0")
	a.o("JNE wide%s", l)
	for part := range 2 {
		for h := range r.halves() {
			v := r.v(s + part*r.halves() + h)
			a.o("VPMOVZXWD %d(SI), %s", part*32+(pass+h)*half, v)
			a.o("VPSLLD $16, %s, %s", v, v)
		}
	}
	a.o("ADDQ $64, SI")
	a.o("JMP scaled%s", l)
	a.label("wide" + l)
	for part := range 2 {
		for h := range r.halves() {
			a.o("VMOVUPS %d(SI), %s", part*64+(pass+h)*r.width, r.v(s+part*r.halves()+h))
		}
	}
	a.o("ADDQ $128, SI")
	a.label("scaled" + l)
}
