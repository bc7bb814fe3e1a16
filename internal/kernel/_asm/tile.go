package main

// tile is a fast product with 512-bit registers. All sums of a group and y of the panel stay in registers, so that a group costs
// little more than its products: three multiplications a row and a conversion.
//
// General registers as in routine, but R12 points to rows 8-11 of x, and R14 is how far ahead weights are fetched.
type tile struct{ routine }

// Vector registers of a tile: sums of 32 bits from 0 on, without VNNI those of 16 bits, then y, and these.
const (
	tileLine  = 24
	tileCodes = 25 // while a group is finished: scales
	tileTmp   = 26 // biases
	tileX     = 27
	tileDot   = 28
	tileOnes  = 29
	tileMasks = 30 // the second one: mask of the second plane, or table
)

// tiled reports routines that are tiles: codes of 8 bits need more registers without VNNI. For small floats see small512.go.
func (r routine) tiled() bool {
	return r.width == 64 && r.kind.fast() && !r.kind.small() && (r.vnni || r.kind != fast8)
}

// narrow is the register of a sum of 16 bits.
func (t tile) narrow(m int) int { return t.rows + m }

func (t tile) y(m int) int {
	if t.vnni {
		return t.rows + m
	}
	return 2*t.rows + m
}

func (t tile) emitTile(a *asm) {
	t.macros(a)
	t.enter(a)
	a.o("MOVQ mulArgs_gStride(AX), R13")
	t.ahead(a)
	t.constants(a)
	a.label("panel")
	t.firstColumn(a)
	a.o("MOVQ mulArgs_groups(AX), BX")
	a.o("MOVQ mulArgs_scale(AX), R10")
	a.o("MOVQ mulArgs_sum(AX), R11")
	a.o("SUBQ R10, R11")
	a.shared("CLEAR", func() {
		for m := range t.rows {
			t.zero(a, t.y(m))
		}
	})
	a.label("group")
	t.products(a)
	t.finish(a)
	a.o("ADDQ $4, R10")
	a.o("DECQ BX")
	a.o("JNZ group")
	a.o("MOVQ DI, CX")
	a.shared("STORE", func() {
		for m := range t.rows {
			a.o("VMOVUPS Z%d, (CX)", t.y(m))
			if m < t.rows-1 {
				a.o("ADDQ mulArgs_yStride(AX), CX")
			}
		}
	})
	a.o("ADDQ $64, DI")
	a.o("DECQ mulArgs_panels(AX)")
	a.o("JNZ panel")
	a.o("VZEROUPPER")
	a.o("RET\n")
}

func (t tile) constants(a *asm) {
	if t.kind != fast8 {
		for i, p := range t.kind.layout() {
			a.o("VPBROADCASTD %s, Z%d", p.mask(), tileMasks+i)
		}
	}
	if t.kind.e2m1() {
		a.o("VBROADCASTI32X4 e2m1<>(SB), Z%d", tileMasks+1)
	}
	if !t.vnni {
		a.o("VPBROADCASTD ones16<>(SB), Z%d", tileOnes)
	}
}

// products sums the integer products of a group.
func (t tile) products(a *asm) {
	t.start(a, 0, tileCodes, "")
	t.firstPart(a, "")
	a.shared("PART", func() { t.part(a) })
	t.nextPart(a, "", 64*t.kind.bits())
}

// part is the products of 32 columns.
func (t tile) part(a *asm) {
	for q := range 8 {
		t.prefetchPart(a, q)
		t.codes(a, q)
		unit := t.kind.unit()
		switch {
		case t.vnni:
			a.o("DOTS(%d)", 4*q)
		case q%unit == 0:
			a.o("FIRST(%d)", 4*q)
		default:
			a.o("NEXT(%d)", 4*q)
		}
		if !t.vnni && q%unit == unit-1 {
			a.o("WIDEN()")
		}
	}
}

// codes makes bytes of the codes of quad q of the part.
func (t tile) codes(a *asm, q int) {
	for i, p := range t.kind.layout() {
		per := 8 / p.width // quads in a line
		from, to := sprint("%d(SI)", (p.first+q/per)*64), tileCodes
		switch {
		case i > 0:
			to = tileTmp
		case per > 1:
			if q%per == 0 {
				a.o("VMOVDQU64 %s, Z%d", from, tileLine)
			}
			from = sprint("Z%d", tileLine)
		}
		switch shift := q%per*p.width - p.at; {
		case shift > 0:
			a.o("VPSRLW $%d, %s, Z%d", shift, from, to)
			from = sprint("Z%d", to)
		case shift < 0:
			a.o("VPSLLW $%d, %s, Z%d", -shift, from, to)
			from = sprint("Z%d", to)
		}
		switch {
		case t.kind == fast8:
			a.o("VMOVDQU64 %s, Z%d", from, to)
		case i == 0:
			a.o("VPANDD %s, Z%d, Z%d", from, tileMasks, to)
		default: // codes | bits & mask
			a.o("VPTERNLOGD $0xf8, %s, Z%d, Z%d", from, tileMasks+1, tileCodes)
		}
	}
	if t.kind.e2m1() {
		a.o("VPSHUFB Z%d, Z%d, Z%d", tileCodes, tileMasks+1, tileCodes)
	}
}

// macros are the products of a quad with all rows. Without VNNI pairs of them go to sums of 16 bits, which have room for a unit
// of quads, and then to those of 32.
func (t tile) macros(a *asm) {
	each := func(f func(m int)) func() {
		return func() {
			for m := range t.rows {
				f(m)
			}
		}
	}
	if t.vnni {
		a.macro("DOTS", "off", each(func(m int) { a.o("VPDPBUSD.BCST %s, Z%d, Z%d", t.x(m, "off"), tileCodes, m) }))
		return
	}
	a.macro("FIRST", "off", each(func(m int) {
		a.o("VPBROADCASTD %s, Z%d", t.x(m, "off"), tileX)
		a.o("VPMADDUBSW Z%d, Z%d, Z%d", tileX, tileCodes, t.narrow(m))
	}))
	a.macro("NEXT", "off", each(func(m int) {
		a.o("VPBROADCASTD %s, Z%d", t.x(m, "off"), tileX)
		a.o("VPMADDUBSW Z%d, Z%d, Z%d", tileX, tileCodes, tileDot)
		a.o("VPADDW Z%d, Z%d, Z%d", tileDot, t.narrow(m), t.narrow(m))
	}))
	a.macro("WIDEN", "", each(func(m int) {
		a.o("VPMADDWD Z%d, Z%d, Z%d", tileOnes, t.narrow(m), t.narrow(m))
		a.o("VPADDD Z%d, Z%d, Z%d", t.narrow(m), m, m)
	}))
}

// finish is the one formula, y = bias·sum + y; y = D·(weight scale · activation scale) + y.
func (t tile) finish(a *asm) {
	a.o("CMPQ mulArgs_wide(AX), $0")
	a.o("JNE wide")
	for i, v := range []int{tileCodes, tileTmp} {
		a.o("VPMOVZXWD %d(SI), Z%d", i*32, v)
		a.o("VPSLLD $16, Z%d, Z%d", v, v)
	}
	a.o("ADDQ $64, SI")
	a.o("JMP scaled")
	a.label("wide")
	a.o("VMOVUPS (SI), Z%d", tileCodes)
	a.o("VMOVUPS 64(SI), Z%d", tileTmp)
	a.o("ADDQ $128, SI")
	a.label("scaled")
	a.o("MOVQ R10, CX")
	a.shared("FINISH", func() {
		for m := range t.rows {
			a.o("VFMADD231PS.BCST (CX)(R11*1), Z%d, Z%d", tileTmp, t.y(m))
			a.o("VMULPS.BCST (CX), Z%d, Z%d", tileCodes, tileX)
			a.o("VCVTDQ2PS Z%d, Z%d", m, m)
			a.o("VFMADD231PS Z%d, Z%d, Z%d", m, tileX, t.y(m))
			if m < t.rows-1 {
				a.o("ADDQ R13, CX")
			}
		}
	})
}
