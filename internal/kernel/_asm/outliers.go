package main

// outliers is the product of high parts with the quads of columns that are listed: see ../outliers.go. Where codes lie comes with
// every quad, so that one routine serves all formats.
//
// General registers: AX arguments, SI weights of the panel, R9 of the group, DI y, R8 its stride, BX quads, R10 groups, DX x, R11
// steps, R13 the place of the quad, CX quads left, R12 groups left, R14 scratch.
type outliers struct {
	set
	rows int
}

func outlierRoutines() []outliers { return []outliers{{sets[0], 1}, {sets[0], 4}, {sets[3], 12}} }

func outlierProducts() []byte {
	var a asm
	a.raw(header, "#include \"go_asm.h\"\n#include \"textflag.h\"\n\n")
	a.constants()
	for _, o := range outlierRoutines() {
		o.emit(&a)
	}
	return a.Bytes()
}

func (o outliers) name() string { return sprint("mulOutliers%sx%d", o.set.name, o.rows) }

// halves of a panel that take a register each.
func (o outliers) halves() int { return 64 / o.width }

// Registers behind the sums, with AVX-512 behind y.
func (o outliers) codes(h int) int { return o.free() + h }
func (o outliers) tmp(h int) int   { return o.free() + o.halves() + h }
func (o outliers) x() int          { return o.free() + 2*o.halves() }
func (o outliers) shift() string   { return sprint("X%d", o.free()+2*o.halves()+1) }
func (o outliers) free() int {
	if o.width == 64 {
		return 2 * o.rows
	}
	return o.rows * o.halves()
}

func (o outliers) emit(a *asm) {
	a.raw("// func ", o.name(), "(a *outlierArgs)\nTEXT ·", o.name(), "(SB), NOSPLIT, $0-8\n")
	a.o("MOVQ a+0(FP), AX")
	a.o("MOVQ outlierArgs_w(AX), SI")
	a.o("MOVQ outlierArgs_y(AX), DI")
	a.o("MOVQ outlierArgs_yStride(AX), R8")
	a.label("panel")
	a.o("MOVQ outlierArgs_groups(AX), R10")
	a.o("MOVQ outlierArgs_quads(AX), BX")
	a.o("MOVQ outlierArgs_x(AX), DX")
	a.o("MOVQ outlierArgs_step(AX), R11")
	a.o("MOVQ outlierArgs_listed(AX), R12")
	if o.width == 64 {
		o.moveY(a, true)
	}
	a.label("group")
	a.o("MOVL (R10), CX")
	a.o("MOVL 4(R10), R9")
	a.o("IMULQ outlierArgs_group(AX), R9")
	a.o("ADDQ SI, R9")
	for i := range o.rows * o.halves() {
		routine{set: o.set}.zero(a, i)
	}
	a.label("quad")
	a.o("MOVBLZX (BX), R13")
	a.o("SHLQ $5, R13")
	a.o("ADDQ outlierArgs_places(AX), R13")
	o.unpack(a)
	for m := range o.rows {
		o.dot(a, m)
	}
	a.o("ADDQ outlierArgs_tile(AX), DX")
	a.o("INCQ BX")
	a.o("DECQ CX")
	a.o("JNZ quad")
	o.finish(a)
	a.o("ADDQ outlierArgs_tile(AX), R11")
	a.o("ADDQ $8, R10")
	a.o("DECQ R12")
	a.o("JNZ group")
	if o.width == 64 {
		o.moveY(a, false)
	}
	a.o("ADDQ $64, DI")
	a.o("ADDQ outlierArgs_panel(AX), SI")
	a.o("DECQ outlierArgs_panels(AX)")
	a.o("JNZ panel")
	a.o("VZEROUPPER")
	a.o("RET\n")
}

// moveY moves y of the panel to or from registers.
func (o outliers) moveY(a *asm, in bool) {
	a.o("MOVQ DI, R14")
	for m := range o.rows {
		if in {
			a.o("VMOVUPS (R14), Z%d", o.rows+m)
		} else {
			a.o("VMOVUPS Z%d, (R14)", o.rows+m)
		}
		if m < o.rows-1 {
			a.o("ADDQ R8, R14")
		}
	}
}

// unpack makes bytes of the quad's codes.
func (o outliers) unpack(a *asm) {
	s := func(n int) string { return o.v(n) }
	and, or, load := "VPAND", "VPOR", "VMOVDQU"
	if o.width == 64 {
		and, or, load = "VPANDD", "VPORD", "VMOVDQU64"
	}
	line := func(at, right, left int, to func(int) int, mask string) {
		a.o("MOVL %d(R13), R14", at)
		a.o("VMOVD %d(R13), %s", right, o.shift())
		for h := range o.halves() {
			a.o("%s %d(R9)(R14*1), %s", load, h*32, s(to(h)))
			a.o("VPSRLW %s, %s, %s", o.shift(), s(to(h)), s(to(h)))
		}
		if left > 0 {
			a.o("VMOVD %d(R13), %s", left, o.shift())
			for h := range o.halves() {
				a.o("VPSLLW %s, %s, %s", o.shift(), s(to(h)), s(to(h)))
			}
		}
		a.o("VPBROADCASTD %s, %s", mask, s(o.x()))
		for h := range o.halves() {
			a.o("%s %s, %s, %s", and, s(o.x()), s(to(h)), s(to(h)))
		}
	}
	line(0, 8, 0, o.codes, "outlierArgs_masks+0(AX)")
	a.o("CMPL outlierArgs_masks+4(AX), $0")
	a.o("JEQ whole")
	line(4, 12, 16, o.tmp, "outlierArgs_masks+4(AX)")
	for h := range o.halves() {
		a.o("%s %s, %s, %s", or, s(o.tmp(h)), s(o.codes(h)), s(o.codes(h)))
	}
	a.label("whole")
	a.o("CMPQ outlierArgs_table(AX), $0")
	a.o("JEQ bytes")
	if o.width == 64 {
		a.o("VBROADCASTI32X4 e2m1<>(SB), %s", s(o.x()))
	} else {
		a.o("VMOVDQU e2m1<>(SB), %s", s(o.x()))
	}
	for h := range o.halves() {
		a.o("VPSHUFB %s, %s, %s", s(o.codes(h)), s(o.x()), s(o.codes(h)))
	}
	a.label("bytes")
}

// dot adds the products of row m. Pairs of them fit 16 bits: 2·255·63 = 32130.
func (o outliers) dot(a *asm, m int) {
	if o.vnni {
		a.o("VPDPBUSD.BCST %d(DX), Z%d, Z%d", 4*m, o.codes(0), m)
		return
	}
	a.o("VPBROADCASTD %d(DX), %s", 4*m, o.v(o.x()))
	for h := range o.halves() {
		t := o.v(o.tmp(h))
		a.o("VPMADDUBSW %s, %s, %s", o.v(o.x()), o.v(o.codes(h)), t)
		a.o("VPMADDWD ones<>(SB), %s, %s", t, t)
		a.o("VPADDD %s, %s, %s", t, o.v(m*o.halves()+h), o.v(m*o.halves()+h))
	}
}

// finish is the one formula, y = D·(weight scale · step) + y.
func (o outliers) finish(a *asm) {
	a.o("MOVQ outlierArgs_codes(AX), R14")
	a.o("CMPQ outlierArgs_wide(AX), $0")
	a.o("JNE wide")
	for h := range o.halves() {
		a.o("VPMOVZXWD %d(R9)(R14*1), %s", h*o.width/2, o.v(o.codes(h)))
		a.o("VPSLLD $16, %s, %s", o.v(o.codes(h)), o.v(o.codes(h)))
	}
	a.o("JMP scaled")
	a.label("wide")
	for h := range o.halves() {
		a.o("VMOVUPS %d(R9)(R14*1), %s", h*o.width, o.v(o.codes(h)))
	}
	a.label("scaled")
	if o.width == 64 {
		for m := range o.rows {
			a.o("VMULPS.BCST %d(R11), Z%d, Z%d", 4*m, o.codes(0), o.tmp(0))
			a.o("VCVTDQ2PS Z%d, Z%d", m, m)
			a.o("VFMADD231PS Z%d, Z%d, Z%d", m, o.tmp(0), o.rows+m)
		}
		return
	}
	a.o("MOVQ DI, R14")
	for m := range o.rows {
		a.o("VBROADCASTSS %d(R11), %s", 4*m, o.v(o.x()))
		for h := range o.halves() {
			d := o.v(m*o.halves() + h)
			a.o("VMULPS %s, %s, %s", o.v(o.codes(h)), o.v(o.x()), o.v(o.tmp(h)))
			a.o("VCVTDQ2PS %s, %s", d, d)
			a.o("VFMADD213PS %d(R14), %s, %s", h*32, o.v(o.tmp(h)), d)
			a.o("VMOVUPS %s, %d(R14)", d, h*32)
		}
		if m < o.rows-1 {
			a.o("ADDQ R8, R14")
		}
	}
}
