package main

// Small floats with a scale for every 16 columns (e2m1) or 32 (e4m3) and no biases: y = d·scale + y, where d is the sum of
// products with the numbers themselves, of e2m1 with their doubles. Otherwise they are multiplied as codes are. Rounded
// activations meet codes 2·v+12 of e2m1, whose surplus is added up when the activations are rounded: d = Σ code·q - 12·Σq.

func (k kind) small() bool { return k >= floatE2M1 && k <= fastFloatE2M1 }

// quads is how many times four columns the loop over a group takes at once.
func (k kind) quads() int {
	if k.small() && k.e2m1() {
		return 4
	}
	return 8
}

// e2m1Table is the table from four bits to codes, or to whole numbers of both signs for floats without biases.
func (k kind) e2m1Table() string {
	if k == floatE2M1 {
		return "e2m1signed"
	}
	return "e2m1"
}

// e4m3Constants fills the mask of what bits e4m3 has in a float, and the power that such floats lack.
func (r routine) e4m3Constants(a *asm) {
	a.o("VPBROADCASTD e4m3<>(SB), %s", r.v(r.mask()))
	a.o("VPBROADCASTD two120<>(SB), %s", r.v(r.power()))
}

func (r routine) power() int {
	if r.width == 64 {
		return 31
	}
	return 12
}

// widenSmall makes floats of one of four columns. Bits of e4m3 that are moved to where a float has its own, the sign and what
// follows the four highest bits of the exponent, are the number times 2^-120, denormal ones too.
func (r routine) widenSmall(a *asm, col, src, dst int) {
	from := src
	if col < 3 {
		a.o("VPSLLD $%d, %s, %s", 24-8*col, r.v(src), r.v(dst))
		from = dst
	}
	if r.kind == floatE2M1 { // bytes of both signs
		a.o("VPSRAD $24, %s, %s", r.v(from), r.v(dst))
		a.o("VCVTDQ2PS %s, %s", r.v(dst), r.v(dst))
		return
	}
	a.o("VPSRAD $4, %s, %s", r.v(from), r.v(dst))
	r.and(a, r.mask(), dst, dst)
	a.o("VMULPS %s, %s, %s", r.v(r.power()), r.v(dst), r.v(dst))
}

// e4m3Line multiplies with the four columns of the line in w, the even ones before the odd ones: either are moved in words, all
// bits at once, so that one column of two has only to be masked.
func (r routine) e4m3Line(a *asm, w, v int) {
	even := w + 1
	a.o("VPSLLW $8, Z%d, Z%d", w, even)
	for i, from := range []int{even, w} {
		a.o("VPSRAW $4, Z%d, Z%d", from, from)
		a.o("VPSLLD $16, Z%d, Z%d", from, v)
		for _, col := range []int{i, i + 2} {
			src := v
			if col > 1 {
				src = from
			}
			r.and(a, r.mask(), src, v)
			a.o("VMULPS Z%d, Z%d, Z%d", r.power(), v, v)
			r.fma(a, v, col, col*4)
		}
	}
}

// loadSmallScales reads the scales of a group to registers from s and steps over them.
func (r routine) loadSmallScales(a *asm, pass, s int) {
	for h := range r.halves() {
		a.o("VPMOVZXWD %d(SI), %s", (pass+h)*r.width/2, r.v(s+h))
		a.o("VPSLLD $16, %s, %s", r.v(s+h), r.v(s+h))
	}
	a.o("ADDQ $32, SI")
}

// smallScales writes them before the floats.
func (w wide) smallScales(a *asm) {
	for h := range 2 {
		a.o("VPMOVZXWD %d(SI), Y0", h*16)
		a.o("VPSLLD $16, Y0, Y0")
		a.o("VMOVDQU Y0, %d(R15)", h*32)
	}
	a.o("ADDQ $32, SI")
}

// smallEpilogue is fastEpilogue: y = D·(weight scale · activation scale) + y.
func (r routine) smallEpilogue(a *asm, pass int) {
	w := r.work()
	r.loadSmallScales(a, pass, w)
	x, y := w+r.halves(), w+r.halves()+1
	a.o("LEAQ (DI), R14")
	a.o("MOVQ R10, CX")
	for m := range r.rows {
		for h := range r.halves() {
			d := r.v(r.dot(m, h))
			a.o("VPBROADCASTD (CX)(R12*1), %s", r.v(x))
			a.o("VPADDD %s, %s, %s", r.v(x), d, d)
			a.o("VBROADCASTSS (CX), %s", r.v(x))
			a.o("VMULPS %s, %s, %s", r.v(w+h), r.v(x), r.v(x))
			a.o("VCVTDQ2PS %s, %s", d, d)
			a.o("VMOVUPS %d(R14), %s", (pass+h)*32, r.v(y))
			a.o("VFMADD231PS %s, %s, %s", d, r.v(x), r.v(y))
			a.o("VMOVUPS %s, %d(R14)", r.v(y), (pass+h)*32)
		}
		if m < r.rows-1 {
			a.o("ADDQ R13, CX")
			a.o("ADDQ mulArgs_yStride(AX), R14")
		}
	}
}
