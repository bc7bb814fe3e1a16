package main

// Numbers of 15 bits: what rows have above 8 is listed by quads of columns, see outlierLists in ../outliers.go. Sums of a group
// begin with its products.

// arg addresses a field of outlierArgs in the arguments.
func arg(of, field string) string {
	return sprint("%s_outlierArgs+outlierArgs_%s(AX)", of, field)
}

// start begins the sums of a group, in registers from first on. Three behind those of codes, which begin with temp, are scratch,
// as are CX and R14.
func (r routine) start(a *asm, first, temp int, l string) {
	n := r.rows * r.halves()
	a.shared("CLEAR", func() {
		for i := range n {
			r.zero(a, first+i)
		}
	})
	if r.kind.small() {
		return
	}
	a.o("CMPQ %s, $0", arg("mulArgs", "records"))
	a.o("JEQ started%s", l)
	a.shared("HEAD", func() {
		a.o("MOVQ %s, CX", arg("mulArgs", "heads"))
		a.o("MOVL (R10)(CX*1), CX")
		a.o("TESTL CX, CX")
	})
	a.o("JEQ started%s", l)
	a.shared("RECORD", func() {
		a.o("MOVQ %s, R14", arg("mulArgs", "records"))
		a.o("ADDQ CX, R14")
	})
	a.label("high" + l)
	a.shared("CODES", func() { r.highCodes(a, temp) })
	a.shared("HIGH", func() {
		r.highProducts(a, first, temp)
		r.nextHigh(a, "mulArgs")
	})
	a.o("JNE high%s", l)
	a.shared("SHIFT", func() {
		r.shiftHigh(a, first)
		r.ahead(a)
	})
	a.label("started" + l)
}

// shiftHigh makes the products' sums those of 256 times as much.
func (r routine) shiftHigh(a *asm, first int) {
	for i := range r.rows * r.halves() {
		a.o("VPSLLD $8, %s, %s", r.v(first+i), r.v(first+i))
	}
}

// nextHigh goes on to the next record and tells by flags whether the group has one.
func (r routine) nextHigh(a *asm, of string) {
	a.o("MOVQ %s, CX", arg(of, "back"))
	a.o("MOVL 4(R14)(CX*1), CX")
	a.o("ADDQ %s, R14", arg(of, "record"))
	a.o("TESTL CX, CX")
}

// highPlace points CX to where the quad's codes are.
func highPlace(a *asm) {
	a.o("MOVQ %s, CX", arg("mulArgs", "back"))
	a.o("MOVL (R14)(CX*1), CX")
	a.o("ADDQ %s, CX", arg("mulArgs", "places"))
}

// highCodes makes bytes of the quad's codes, in registers from temp on.
func (r routine) highCodes(a *asm, temp int) {
	and, or, load := "VPAND", "VPOR", "VMOVDQU"
	if r.width == 64 {
		and, or, load = "VPANDD", "VPORD", "VMOVDQU64"
	}
	tmp, x, x1 := temp+r.halves(), sprint("X%d", temp+r.halves()+1), sprint("X%d", temp+r.halves()+2)
	for h := range r.halves() {
		for i, p := range r.kind.layout() {
			highPlace(a)
			to := temp + h
			if i > 0 {
				to = tmp
			}
			if p.width < 8 {
				a.o("VMOVD %d(CX), %s", []int{8, 12}[i], x)
			}
			if i > 0 {
				a.o("VMOVD 16(CX), %s", x1)
			}
			a.o("MOVL %d(CX), CX", 4*i)
			a.o("%s %d(SI)(CX*1), %s", load, h*32, r.v(to))
			if p.width == 8 {
				continue
			}
			a.o("VPSRLW %s, %s, %s", x, r.v(to), r.v(to))
			if i > 0 {
				a.o("VPSLLW %s, %s, %s", x1, r.v(to), r.v(to))
			}
			mask := p.mask()
			if r.tiled() {
				mask = sprint("Z%d", tileMasks+i)
			}
			a.o("%s %s, %s, %s", and, mask, r.v(to), r.v(to))
		}
		if len(r.kind.layout()) > 1 {
			a.o("%s %s, %s, %s", or, r.v(tmp), r.v(temp+h), r.v(temp+h))
		}
		if r.kind.e2m1() {
			table := sprint("Z%d", tileMasks+1)
			if r.width == 32 {
				table = r.v(tmp)
				a.o("VMOVDQU %s<>(SB), %s", r.kind.e2m1Table(), table)
			}
			a.o("VPSHUFB %s, %s, %s", r.v(temp+h), table, r.v(temp+h))
		}
	}
}

// highProducts adds those of the record's rows. Pairs of them fit 16 bits: 2·255·63 = 32130.
func (r routine) highProducts(a *asm, first, temp int) {
	x, t, ones := temp+r.halves()+1, r.v(temp+r.halves()+2), "ones<>(SB)"
	switch {
	case r.tiled():
		ones = sprint("Z%d", tileOnes)
	case r.width == 64:
		ones = sprint("Z%d", r.ones())
	}
	for m := range r.rows {
		at := sprint("%d(R14)", 8+4*m)
		if r.vnni && r.width == 64 {
			a.o("VPDPBUSD.BCST %s, Z%d, Z%d", at, temp, first+m)
			continue
		}
		a.o("VPBROADCASTD %s, %s", at, r.v(x))
		for h := range r.halves() {
			sum := first + r.dot(m, h)
			if r.vex() {
				a.dot(x, temp+h, sum)
				continue
			}
			a.o("VPMADDUBSW %s, %s, %s", r.v(x), r.v(temp+h), t)
			a.o("VPMADDWD %s, %s, %s", ones, t, t)
			a.o("VPADDD %s, %s, %s", t, r.v(sum), r.v(sum))
		}
	}
}

// highSums adds 256 times the products of a group's records, from R14 on, to sums of eight registers or fewer at R15. codes makes
// bytes in registers 8 and 9.
func (r routine) highSums(a *asm, of string, codes func()) {
	n := r.rows * r.halves()
	for i := range n {
		r.zero(a, i)
	}
	a.label("high")
	codes()
	r.highProducts(a, 0, 8)
	r.nextHigh(a, of)
	a.o("JNE high")
	r.shiftHigh(a, 0)
	for i := range n {
		a.o("VPADDD %d(R15), Y%d, Y%d", i*32, i, i)
		a.o("VMOVDQU Y%d, %d(R15)", i, i*32)
	}
}
