package main

// AVX-VNNI has VPDPBUSD with 256-bit registers for CPUs without AVX-512. The Go assembler knows the instruction as AVX-512
// encodes it; dot writes the bytes of the other encoding.

// vex reports routines of that set.
func (r routine) vex() bool { return r.vnni && r.width == 32 }

// dot adds four products of bytes in w and signed bytes in x to each sum.
func (a *asm) dot(x, w, sum int) {
	high := func(n int) int { return ^n >> 3 & 1 } // the fourth bit, as the prefix has it
	a.o("BYTE $0xc4; BYTE $%#x; BYTE $%#x; BYTE $0x50; BYTE $%#x",
		high(sum)<<7|1<<6|high(x)<<5|2, (^w&15)<<3|1<<2|1, 3<<6|sum&7<<3|x&7)
}

// vexBytes puts the codes of a quad in two registers from w. Masks are in two from 14.
func (r routine) vexBytes(a *asm, q, w, tmp int) {
	for h := range 2 {
		if r.kind == fast8 {
			a.o("VMOVDQU %d(SI), Y%d", q*64+h*32, w+h)
		} else {
			r.quad(a, q, h, w+h, tmp, 14)
		}
	}
}

// vexMacros defines the products of a quad, its codes in registers 8 and 9, with all rows, added to sums from register 0 on.
func (r routine) vexMacros(a *asm) {
	a.macro("DOTS", "off", func() {
		for m := range r.rows {
			x := 11 + m%2
			a.o("VPBROADCASTD %s, Y%d", r.x(m, "off"), x)
			for h := range 2 {
				a.dot(x, 8+h, r.dot(m, h))
			}
		}
	})
}

// vexParts sums a group's integer products.
func (r routine) vexParts(a *asm, l string) {
	r.start(a, 0, 8, l)
	r.firstPart(a, l)
	a.shared("PART", func() {
		for q := range r.kind.quads() {
			r.prefetchPart(a, q)
			r.vexBytes(a, q, 8, 10)
			a.o("DOTS(%d)", 4*q)
		}
	})
	r.nextPart(a, l, 8*r.kind.quads()*r.kind.bits())
}

// vexGroup is group of tall.go: sums stay in registers until the group is through.
func (t tall) vexGroup(a *asm, first bool, l string) {
	for i := range 2 * t.rows {
		t.zero(a, i)
	}
	a.o("MOVQ wideArgs_lines(AX), CX")
	a.label("more" + l)
	for q := range 8 {
		if first {
			t.prefetchPart(a, q)
			t.vexBytes(a, q, 8, 10)
		}
		for h := range 2 {
			if first {
				a.o("VMOVDQU Y%d, %d(R14)", 8+h, q*64+h*32)
			} else {
				a.o("VMOVDQU %d(R14), Y%d", q*64+h*32, 8+h)
			}
		}
		a.o("DOTS(%d)", 4*q)
	}
	t.advance(a, first)
	a.o("DECQ CX")
	a.o("JNZ more%s", l)
	for i := range 2 * t.rows {
		a.o("VMOVDQU Y%d, %d(BX)", i, i*32)
	}
}
