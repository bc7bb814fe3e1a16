package main

// The product of rounded activations with e2m1 in groups of 16 columns: so short that what follows a group, its scales, counts as
// much as the sums of 64 products in each of their lanes. Outputs therefore stay in registers for the whole panel: 0 to 11; 12 to
// 23 are integer sums, 24 to 27 codes of four columns each, 28 scales, 29 scratch, 30 a mask, 31 the table.
//
// General registers as in routine, but R10 the scales of a group and R11 the distance to offsets; CX goes from row to row.

func (r routine) emitSmall512(a *asm) {
	r.enter(a)
	a.o("MOVQ mulArgs_gStride(AX), R13")
	r.ahead(a)
	a.o("VPBROADCASTD nibbles<>(SB), Z30")
	a.o("VBROADCASTI32X4 e2m1<>(SB), Z31")
	a.label("panel")
	r.firstColumn(a)
	a.o("MOVQ mulArgs_scale(AX), R10")
	a.o("MOVQ mulArgs_offset(AX), R11")
	a.o("SUBQ R10, R11")
	a.o("MOVQ mulArgs_groups(AX), BX")
	for m := range r.rows {
		r.zero(a, m)
	}
	a.label("group")
	for line := range 2 {
		lo, hi := 24+2*line, 25+2*line
		r.prefetch(a, line*64)
		a.o("VMOVDQU32 %d(SI), Z%d", line*64, lo)
		a.o("VPSRLD $4, Z%d, Z%d", lo, hi)
		for _, c := range []int{lo, hi} {
			a.o("VPANDD Z30, Z%d, Z%d", c, c)
			a.o("VPSHUFB Z%d, Z31, Z%d", c, c)
		}
	}
	r.prefetch(a, 128)
	a.o("VPMOVZXWD 128(SI), Z28")
	a.o("VPSLLD $16, Z28, Z28")
	if r.vnni {
		r.smallVNNI(a)
	} else {
		r.smallMadd(a)
	}
	a.o("MOVQ R10, CX")
	for m := range r.rows {
		a.o("VMULPS.BCST (CX), Z28, Z29")
		a.o("VCVTDQ2PS Z%d, Z%d", 12+m, 12+m)
		a.o("VFMADD231PS Z%d, Z29, Z%d", 12+m, m)
		if m < r.rows-1 {
			a.o("ADDQ R13, CX")
		}
	}
	a.o("ADDQ $160, SI")
	r.advanceX(a, 16)
	a.o("ADDQ $4, R10")
	a.o("DECQ BX")
	a.o("JNZ group")
	a.shared("STORE", func() {
		a.o("MOVQ DI, CX")
		for m := range r.rows {
			a.o("VMOVUPS Z%d, (CX)", m)
			if m < r.rows-1 {
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

// smallVNNI begins sums with the offsets.
func (r routine) smallVNNI(a *asm) {
	a.o("LEAQ (R10)(R11*1), CX")
	for m := range r.rows {
		a.o("VPBROADCASTD (CX), Z%d", 12+m)
		if m < r.rows-1 {
			a.o("ADDQ R13, CX")
		}
	}
	for q := range 4 {
		for m := range r.rows {
			a.o("VPDPBUSD.BCST %s, Z%d, Z%d", r.x(m, q*4), 24+q, 12+m)
		}
	}
}

// smallMadd adds in 16 bits, which 16 columns do not fill: 4·2·24·127.
func (r routine) smallMadd(a *asm) {
	for q := range 4 {
		for m := range r.rows {
			a.o("VPBROADCASTD %s, Z29", r.x(m, q*4))
			if q == 0 {
				a.o("VPMADDUBSW Z29, Z24, Z%d", 12+m)
				continue
			}
			a.o("VPMADDUBSW Z29, Z%d, Z29", 24+q)
			a.o("VPADDW Z29, Z%d, Z%d", 12+m, 12+m)
		}
	}
	a.o("VPBROADCASTD ones16<>(SB), Z29")
	a.o("LEAQ (R10)(R11*1), CX")
	for m := range r.rows {
		a.o("VPMADDWD Z29, Z%d, Z%d", 12+m, 12+m)
		a.o("VPADDD.BCST (CX), Z%d, Z%d", 12+m, 12+m)
		if m < r.rows-1 {
			a.o("ADDQ R13, CX")
		}
	}
}
