package main

import "fmt"

func sprint(f string, v ...any) string { return fmt.Sprintf(f, v...) }

// dot is the register of the integer sum of row m, half h.
func (r routine) dot(m, h int) int { return m*r.halves() + h }

// first free register after the accumulators.
func (r routine) work() int {
	switch {
	case r.width == 64:
		return 20
	case r.kind.planes() && !r.vex():
		return 4
	}
	return 8
}

// fastGroup sums a group's integer products and adds them to y.
func (r routine) fastGroup(a *asm, pass int, l string) {
	switch {
	case r.vex():
		r.vexParts(a, l)
	case r.kind.planes():
		r.planeParts(a, pass, l)
	case r.kind == fast4:
		r.madd4Parts(a, l)
	case r.width == 64:
		r.madd8Parts(a, l)
	default:
		r.sign8Parts(a, l)
	}
	if r.kind.small() {
		r.smallEpilogue(a, pass)
	} else {
		r.fastEpilogue(a, pass, l)
	}
}

// firstPart opens the loop over 32-column parts.
func (r routine) firstPart(a *asm, l string) {
	a.o("MOVQ mulArgs_lines(AX), CX")
	a.label("part" + l)
}

// nextPart closes the loop over 32-column parts whose codes take bytes.
func (r routine) nextPart(a *asm, l string, bytes int) {
	a.o("ADDQ $%d, SI", bytes)
	r.advanceX(a, 4*r.kind.quads())
	a.o("DECQ CX")
	a.o("JNZ part%s", l)
}

// madd4Parts: VPMADDUBSW pairs of u8·s8 products stay below 2·15·127 = 3810, so eight of them fit 16 bits: the four
// lines of a part are summed there before VPMADDWD widens. The 32-bit sums have registers of their own.
func (r routine) madd4Parts(a *asm, l string) {
	n := r.rows * r.halves()
	r.start(a, n, 8, l)
	r.firstPart(a, l)
	r.madd4Lines(a)
	for i := range n {
		a.o("VPMADDWD %s, %s, %s", r.v(r.ones()), r.v(i), r.v(i))
		a.o("VPADDD %s, %s, %s", r.v(i), r.v(n+i), r.v(n+i))
	}
	r.nextPart(a, l, 256)
	for i := range n {
		a.o("VMOVDQU Y%d, Y%d", n+i, i)
	}
}

// madd4Lines leaves 16-bit sums of the four lines of a part.
func (r routine) madd4Lines(a *asm) {
	w := r.work()
	x, t := w+2*r.halves(), w+2*r.halves()+1
	for line := range 4 {
		r.prefetch(a, line*64)
		for h := range r.halves() {
			a.o("VMOVDQU %d(SI), %s", line*64+h*32, r.v(w+2*h))
			a.o("VPSRLW $4, %s, %s", r.v(w+2*h), r.v(w+2*h+1))
			r.and(a, r.mask(), w+2*h, w+2*h)
			r.and(a, r.mask(), w+2*h+1, w+2*h+1)
		}
		for hi := range 2 {
			for m := range r.rows {
				a.o("VPBROADCASTD %s, %s", r.x(m, line*8+hi*4), r.v(x))
				for h := range r.halves() {
					sum := r.v(r.dot(m, h))
					if line == 0 && hi == 0 {
						a.o("VPMADDUBSW %s, %s, %s", r.v(x), r.v(w+2*h+hi), sum)
						continue
					}
					a.o("VPMADDUBSW %s, %s, %s", r.v(x), r.v(w+2*h+hi), r.v(t))
					a.o("VPADDW %s, %s, %s", r.v(t), sum, sum)
				}
			}
		}
	}
}

// madd8Parts splits 8-bit codes into nibbles, whose products fit 16 bits for the eight lines of a part, and puts them
// together again while widening: low·1 + high·16.
func (r routine) madd8Parts(a *asm, l string) {
	w := madd8Codes
	r.start(a, 0, 8, l)
	r.firstPart(a, l)
	for line := range 8 {
		r.prefetch(a, line*64)
		a.o("VMOVDQU64 %d(SI), Z%d", line*64, w)
		a.o("VPSRLW $4, Z%d, Z%d", w, w+1)
		r.and(a, r.mask(), w, w)
		r.and(a, r.mask(), w+1, w+1)
		if line == 0 {
			a.o("FIRST(%d)", line*4)
		} else {
			a.o("NEXT(%d)", line*4)
		}
	}
	for m := range r.rows {
		for hi := range 2 {
			a.o("VPMADDWD Z%d, Z%d, Z%d", r.ones()-2*hi, 8+2*m+hi, 8+2*m+hi)
			a.o("VPADDD Z%d, Z%d, Z%d", 8+2*m+hi, m, m)
		}
	}
	r.nextPart(a, l, 512)
}

const madd8Codes = 24 // the first of two registers, before two scratch ones

// madd8Macros are the products of a line, which begin or go on with sums of 16 bits.
func (r routine) madd8Macros(a *asm) {
	w := madd8Codes
	each := func(f func(sum, hi int)) func() {
		return func() {
			for m := range r.rows {
				a.o("VPBROADCASTD %s, Z%d", r.x(m, "off"), w+2)
				f(8+2*m, 0)
				f(8+2*m+1, 1)
			}
		}
	}
	a.macro("FIRST", "off", each(func(sum, hi int) { a.o("VPMADDUBSW Z%d, Z%d, Z%d", w+2, w+hi, sum) }))
	a.macro("NEXT", "off", each(func(sum, hi int) {
		a.o("VPMADDUBSW Z%d, Z%d, Z%d", w+2, w+hi, w+3)
		a.o("VPADDW Z%d, Z%d, Z%d", w+3, sum, sum)
	}))
}

// sign8Parts takes code-128 as a signed byte, |code-128| times sign(code-128)·q: a pair stays below 2·128·127 = 32512,
// so VPMADDUBSW never saturates. The offset 128·Σq is added once per group.
func (r routine) sign8Parts(a *asm, l string) {
	r.start(a, 0, 8, l)
	r.firstPart(a, l)
	for line := range 8 {
		r.prefetch(a, line*64)
		for h := range 2 {
			a.o("VPXOR %d(SI), Y%d, Y%d", line*64+h*32, r.mask(), 8+h)
			a.o("VPABSB Y%d, Y%d", 8+h, 10+h)
		}
		for m := range r.rows {
			a.o("VPBROADCASTD %s, Y12", r.x(m, line*4))
			for h := range 2 {
				a.o("VPSIGNB Y%d, Y12, Y13", 8+h)
				a.o("VPMADDUBSW Y13, Y%d, Y13", 10+h)
				a.o("VPMADDWD Y%d, Y13, Y13", r.ones())
				a.o("VPADDD Y13, Y%d, Y%d", r.dot(m, h), r.dot(m, h))
			}
		}
	}
	r.nextPart(a, l, 512)
	a.o("LEAQ (R10)(R12*1), CX")
	for m := range r.rows {
		a.o("VPBROADCASTD (CX), Y12")
		for h := range 2 {
			a.o("VPADDD Y12, Y%d, Y%d", r.dot(m, h), r.dot(m, h))
		}
		if m < r.rows-1 {
			a.o("ADDQ R13, CX")
		}
	}
}

// fastEpilogue is the one formula: y = bias·sum + y; y = D·(weight scale · activation scale) + y.
func (r routine) fastEpilogue(a *asm, pass int, l string) {
	w := r.work()
	r.loadScales(a, pass, w, l)
	x, y := w+2*r.halves(), w+2*r.halves()+1
	a.shared("FINISH", func() {
		a.o("LEAQ (DI), R14")
		a.o("MOVQ R10, CX")
		for m := range r.rows {
			for h := range r.halves() {
				d := r.v(r.dot(m, h))
				a.o("VBROADCASTSS (CX)(R11*1), %s", r.v(x))
				a.o("VMOVUPS %d(R14), %s", (pass+h)*32, r.v(y))
				a.o("VFMADD231PS %s, %s, %s", r.v(x), r.v(w+r.halves()+h), r.v(y))
				a.o("VBROADCASTSS (CX), %s", r.v(x))
				a.o("VMULPS %s, %s, %s", r.v(w+h), r.v(x), r.v(x))
				a.o("VCVTDQ2PS %s, %s", d, d)
				a.o("VFMADD231PS %s, %s, %s", d, r.v(x), r.v(y))
				a.o("VMOVUPS %s, %d(R14)", r.v(y), (pass+h)*32)
			}
			if m < r.rows-1 {
				a.o("ADDQ R13, CX")
				a.o("ADDQ mulArgs_yStride(AX), R14")
			}
		}
	})
}
