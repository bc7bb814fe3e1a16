package main

// Codes in planes with AVX-512 and float activations. A column takes a shift and a look into a table of floats, which sees the
// lowest four bits only (five, in two tables), so that codes that lie in one plane need no bytes of their own; six bits are
// masked and converted. Registers: 28 and 29 masks of planes, 30 and 31 tables.

// table is a register of floats by code; 0: codes of that kind are converted.
func (r routine) table() int {
	if r.kind.bits() > 5 {
		return 0
	}
	return r.mask()
}

// planes512 fills the registers of masks and tables.
func (r routine) planes512(a *asm) {
	if len(r.kind.layout()) > 1 {
		for i, p := range r.kind.layout() {
			a.o("VPBROADCASTD %s, Z%d", p.mask(), 28+i)
		}
	}
	switch r.kind.bits() {
	case 2:
		a.o("VBROADCASTF32X4 floats<>(SB), Z%d", r.table())
	case 4:
		a.o("VMOVUPS %sfloats<>(SB), Z%d", r.kind.e2m1Table(), r.table())
	case 6:
		a.o("VPBROADCASTD low8<>(SB), Z%d", r.mask())
	default:
		a.o("VMOVUPS floats<>(SB), Z%d", r.table())
		a.o("VMOVUPS floats<>+64(SB), Z%d", r.table()+1)
	}
}

// exactPlanes512 is exactPlanes for whole panels.
func (r routine) exactPlanes512(a *asm, w, v int, l string) {
	a.o("MOVQ mulArgs_lines(AX), CX")
	r.clearChains(a)
	a.label("part" + l)
	a.shared("PART", func() {
		for q := range r.kind.quads() {
			r.prefetchPart(a, q)
			shift := r.quad512(a, q, w, v)
			for col := range 4 {
				r.widen512(a, shift+8*col, w, v)
				r.fma(a, v, col, q*16+col*4)
			}
		}
	})
	a.o("ADDQ $%d, SI", 8*r.kind.quads()*r.kind.bits())
	r.advanceX(a, 16*r.kind.quads())
	a.o("DECQ CX")
	a.o("JNZ part%s", l)
}

// quad512 leaves the codes of four columns, number q of eight, in dst, which has them for the quads of its line if there is one
// plane, and tells from which bit of every byte on.
func (r routine) quad512(a *asm, q, dst, tmp int) (shift int) {
	planes := r.kind.layout()
	if len(planes) == 1 {
		width := planes[0].width
		per := 8 / width
		if q%per == 0 {
			a.o("VMOVDQU32 %d(SI), Z%d", q/per*64, dst)
		}
		return q % per * width
	}
	for i, p := range planes {
		per := 8 / p.width
		at, to := (p.first+q/per)*64, dst
		if i > 0 {
			to = tmp
		}
		switch shift := q%per*p.width - p.at; {
		case shift > 0:
			a.o("VPSRLD $%d, %d(SI), Z%d", shift, at, to)
		case shift < 0:
			a.o("VPSLLD $%d, %d(SI), Z%d", -shift, at, to)
		default:
			a.o("VMOVDQU32 %d(SI), Z%d", at, to)
		}
		if i == 0 {
			a.o("VPANDD Z%d, Z%d, Z%d", 28, dst, dst)
		} else {
			a.o("VPTERNLOGD $0xf8, Z%d, Z%d, Z%d", 28+i, tmp, dst) // dst | tmp & mask
		}
	}
	return 0
}

// widen512 makes floats of the codes that begin with a bit of every lane of src.
func (r routine) widen512(a *asm, shift, src, dst int) {
	from := src
	if shift > 0 {
		a.o("VPSRLD $%d, Z%d, Z%d", shift, src, dst)
		from = dst
	}
	switch r.kind.bits() {
	case 2, 3, 4:
		a.o("VPERMPS Z%d, Z%d, Z%d", r.table(), from, dst)
	case 5:
		if from != dst {
			a.o("VMOVDQA32 Z%d, Z%d", from, dst)
		}
		a.o("VPERMI2PS Z%d, Z%d, Z%d", r.table()+1, r.table(), dst)
	default:
		if shift < 24 {
			a.o("VPANDD Z%d, Z%d, Z%d", r.mask(), from, dst)
		}
		a.o("VCVTDQ2PS Z%d, Z%d", dst, dst)
	}
}
