package main

// pack: what turns stored rows into panels; ../../pack.go has the rest. Loads of a model spend their time here.
func (f *floats) pack() {
	f.packLanes()
	f.packScales()

	// Words of eight codes: low has the even ones, high the others.
	f.fn("nibbleLanesNEON", append(pointers("dst", "src"), length)...)
	const src, low, high, mask = 0, 1, 2, 31
	f.constant(mask, 0x0f0f0f0f)
	f.label("loop")
	f.load(0, "R1", src)
	f.v(and, low, src, mask)
	f.ushr16b(high, src, 4)
	f.v(zip1Bytes, 3, low, high)
	f.v(zip2Bytes, 4, low, high)
	f.v(uzp1, 5, 3, 4)
	f.v(uzp2, 6, 3, 4)
	f.sli16b(5, 6, 4)
	f.store(5, 0, "R0")
	f.o("ADD $16, R0")
	f.o("ADD $16, R1")
	f.loop("R2", "loop")
	f.end()

	f.fn("f16FloatsNEON", append(pointers("dst", "src"), length)...)
	f.label("loop")
	f.load(0, "R1", 0)
	f.v(fcvtl2, 1, 0)
	f.v(fcvtl, 0, 0)
	f.store(0, 0, "R0")
	f.store(1, 16, "R0")
	f.o("ADD $32, R0")
	f.o("ADD $16, R1")
	f.loop("R2", "loop")
	f.end()
}

// packLanes: per group, quads of lanes, and one more quad that begins back bytes of a row earlier, if back is not 0: lanes
// that are no whole quads.
func (f *floats) packLanes() {
	ints := []param{{"groups", "int"}, {"quads", "int"}, {"back", "int"}, {"skip", "int"}}
	f.fn("packLanesNEON", append(pointers("dst", "rows"), ints...)...)
	f.o("MOVD $0, R6") // bytes of a row done
	f.label("group")
	f.o("MOVD R3, R8")
	f.o("MOVD R4, R9")
	f.label("quad")
	for four := range 4 {
		for r := range 4 {
			f.o("MOVD %d(R1), R10", 32*four+8*r)
			f.o("ADD R6, R10")
			f.load(0, "R10", r)
		}
		f.v(zip1, 4, 0, 1)
		f.v(zip2, 5, 0, 1)
		f.v(zip1, 6, 2, 3)
		f.v(zip2, 7, 2, 3)
		for j, o := range []op{zip1Pairs, zip2Pairs, zip1Pairs, zip2Pairs} {
			f.v(o, 8+j, 4+j/2, 6+j/2)
			f.store(8+j, 64*j+16*four, "R0")
		}
	}
	f.o("ADD $16, R6")
	f.o("ADD $256, R0")
	f.loop("R8", "quad")
	f.o("CBZ R9, packed")
	f.o("SUB R9, R6")
	f.o("SUB R9<<4, R0")
	f.o("MOVD $0, R9")
	f.o("MOVD $1, R8")
	f.o("B quad")
	f.label("packed")
	f.o("ADD R5, R0")
	f.loop("R2", "group")
	f.end()
}

// packScales transposes eight 16-bit numbers of sixteen rows at a time.
func (f *floats) packScales() {
	f.fn("packScalesNEON", append(pointers("dst", "rows"), param{"octets", "int"}, param{"stride", "int"})...)
	f.o("MOVD $0, R6")
	f.label("octet")
	for half := range 2 {
		for r := range 8 {
			f.o("MOVD %d(R1), R10", 64*half+8*r)
			f.o("ADD R6, R10")
			f.load(0, "R10", r)
		}
		for turn := range 3 {
			from, to := turn%2*8, 8-turn%2*8
			for i := range 4 {
				f.v(zip1Halves, to+2*i, from+i, from+i+4)
				f.v(zip2Halves, to+2*i+1, from+i, from+i+4)
			}
		}
		f.o("MOVD R0, R7")
		for g := range 8 {
			f.store(8+g, 16*half, "R7")
			f.o("ADD R3, R7")
		}
	}
	f.o("MOVD R7, R0")
	f.o("ADD $16, R6")
	f.loop("R2", "octet")
	f.end()
}
