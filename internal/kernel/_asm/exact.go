package main

import "math/bits"

// chain is the register of the float sum of row m, half h, for columns that are c modulo chains.
func (r routine) chain(m, h, c int) int { return (m*r.halves()+h)*chains + c }

func (r routine) clearChains(a *asm) {
	a.shared("CLEAR", func() {
		for i := range r.rows * r.halves() * chains {
			r.zero(a, i)
		}
	})
}

// fma adds weights in registers v, v+1 (by half) times column col of x, off bytes from the current position.
func (r routine) fma(a *asm, v, col, off int) {
	if r.width == 64 {
		a.o("FMA%d(%d, Z%d)", col%chains, off, v)
		return
	}
	for m := range r.rows {
		a.o("VBROADCASTSS %s, Y15", r.x(m, off))
		for h := range r.halves() {
			a.o("VFMADD231PS Y15, Y%d, Y%d", v+h, r.chain(m, h, col%chains))
		}
	}
}

// fmaMacros defines what fma is with AVX-512: the products of all rows.
func (r routine) fmaMacros(a *asm) {
	for c := range chains {
		a.macro(sprint("FMA%d", c), "off, w", func() {
			for m := range r.rows {
				a.o("VFMADD231PS.BCST %s, w, Z%d", r.x(m, "off"), r.chain(m, 0, c))
			}
		})
	}
}

// addChains leaves the sum of both chains in the first.
func (r routine) addChains(a *asm) {
	a.shared("ADD", func() {
		for m := range r.rows {
			for h := range r.halves() {
				d := r.v(r.chain(m, h, 0))
				a.o("VADDPS %s, %s, %s", r.v(r.chain(m, h, 1)), d, d)
			}
		}
	})
}

// exactGroup turns codes into floats column by column and sums their products, then
// y = bias·sum + y; y = d·(weight scale) + y.
func (r routine) exactGroup(a *asm, pass int, l string) {
	w, v := 8, 10
	if r.width == 64 {
		w, v = 24, 26
	}
	if r.kind.planes() {
		if r.width == 64 {
			r.exactPlanes512(a, w, v, l)
		} else {
			r.exactPlanes(a, pass, w, v, l)
		}
		r.addChains(a)
		r.exactEpilogue(a, pass, w, l)
		return
	}
	a.o("MOVQ mulArgs_lines(AX), CX")
	cols := 32 / r.kind.bits() // of a line
	a.o("SHLQ $%d, CX", 5-bits.TrailingZeros(uint(cols)))
	r.clearChains(a)
	a.label("part" + l)
	r.prefetch(a, 0)
	for h := range r.halves() {
		a.o("VMOVUPS %d(SI), %s", (pass+h)*32, r.v(w+h))
	}
	if r.kind == floatE4M3 && r.width == 64 {
		r.e4m3Line(a, w, v)
	} else {
		for col := range cols {
			for h := range r.halves() {
				r.widen(a, col, w+h, v+h)
			}
			r.fma(a, v, col, col*4)
		}
	}
	a.o("ADDQ $64, SI")
	r.advanceX(a, cols*4)
	a.o("DECQ CX")
	a.o("JNZ part%s", l)
	r.addChains(a)
	r.exactEpilogue(a, pass, w, l)
}

// widen makes floats of the codes of one column of a line.
func (r routine) widen(a *asm, col, src, dst int) {
	if r.kind.small() {
		r.widenSmall(a, col, src, dst)
		return
	}
	shift := col * 8
	if r.kind == exact4 {
		shift = col%4*8 + col/4*4
	}
	from := src
	if shift > 0 {
		a.o("VPSRLD $%d, %s, %s", shift, r.v(src), r.v(dst))
		from = dst
	}
	if r.kind == exact4 && r.width == 64 {
		a.o("VPERMPS %s, %s, %s", r.v(r.mask()), r.v(from), r.v(dst)) // looks at the low four bits only
		return
	}
	if r.kind == exact4 && shift < 28 || r.kind != exact4 && shift < 24 {
		r.and(a, r.mask(), from, dst)
	}
	a.o("VCVTDQ2PS %s, %s", r.v(dst), r.v(dst))
}

func (r routine) exactEpilogue(a *asm, pass, w int, l string) {
	if r.kind.small() {
		r.loadSmallScales(a, pass, w)
	} else {
		r.loadScales(a, pass, w, l)
	}
	x := 15
	if r.width == 64 {
		x = 26
	}
	a.shared("FINISH", func() {
		a.o("LEAQ (DI), R14")
		a.o("MOVQ R10, CX")
		for m := range r.rows {
			if !r.kind.small() {
				a.o("VBROADCASTSS (CX), %s", r.v(x))
			}
			for h := range r.halves() {
				at, y := (pass+h)*32, r.chain(m, h, 1) // added up
				a.o("VMOVUPS %d(R14), %s", at, r.v(y))
				if !r.kind.small() {
					a.o("VFMADD231PS %s, %s, %s", r.v(x), r.v(w+r.halves()+h), r.v(y))
				}
				a.o("VFMADD231PS %s, %s, %s", r.v(r.chain(m, h, 0)), r.v(w+h), r.v(y))
				a.o("VMOVUPS %s, %d(R14)", r.v(y), at)
			}
			if m < r.rows-1 {
				a.o("ADDQ R13, CX")
				a.o("ADDQ mulArgs_yStride(AX), R14")
			}
		}
	})
}

// dense sums all columns of a panel, four per round.
func (r routine) dense(a *asm, pass int, l string) {
	v := 12
	if r.width == 64 {
		v = 26
	}
	r.clearChains(a)
	a.label("part" + l)
	for col := range 4 {
		if r.kind == f32 || col%2 == 0 {
			r.prefetch(a, col*64/int(f32+1-r.kind))
		}
		for h := range r.halves() {
			at := (pass + h) * 32
			switch {
			case r.kind == f32:
				a.o("VMOVUPS %d(SI), %s", col*64+at, r.v(v+h))
			case r.width == 64 && col%2 == 0:
				a.o("VMOVUPS %d(SI), %s", col/2*64+at, r.v(v-2+h))
				a.o("VPSLLD $16, %s, %s", r.v(v-2+h), r.v(v+h))
			case r.width == 64:
				r.and(a, r.mask(), v-2+h, v+h)
			case col%2 == 0:
				a.o("VMOVUPS %d(SI), %s", col/2*64+at, r.v(v+h))
				a.o("VPSLLD $16, %s, %s", r.v(v+h), r.v(v+h))
			default: // read again: three rows leave no register for the pair
				a.o("VPAND %d(SI), %s, %s", col/2*64+at, r.v(r.mask()), r.v(v+h))
			}
		}
		r.fma(a, v, col, col*4)
	}
	bytes := 256
	if r.kind == bf16 {
		bytes = 128
	}
	a.o("ADDQ $%d, SI", bytes)
	r.advanceX(a, 16)
	a.o("DECQ BX")
	a.o("JNZ part%s", l)
	r.addChains(a)
	a.o("LEAQ (DI), R14")
	for m := range r.rows {
		for h := range r.halves() {
			a.o("VMOVUPS %s, %d(R14)", r.v(r.chain(m, h, 0)), (pass+h)*32)
		}
		if m < r.rows-1 {
			a.o("ADDQ mulArgs_yStride(AX), R14")
		}
	}
}
