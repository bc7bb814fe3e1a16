package main

// pack is the text of ../pack_amd64.s: what turns stored rows into panels. Every routine takes whole steps of what its
// loop does; ../pack.go has the rest.
func pack() []byte {
	var a asm
	a.raw(header, "#include \"textflag.h\"\n\n")
	packTables(&a)
	packLanes(&a)
	packScales(&a)
	packNibbles(&a)
	for _, w := range widths {
		w.emit(&a)
	}
	packE2M1(&a)
	packE4M3(&a)
	packF16(&a)
	return a.Bytes()
}

// width is the layout of 32 codes of so many bits, which the two 128-bit lanes of a register share: lane words of four
// codes start at a byte or in the middle of one.
type width struct {
	bits int
	high int // where the upper lane's load starts
}

// widths: loads stay within the 4·bits bytes that 32 codes take.
var widths = []width{{2, 4}, {3, 6}, {5, 4}, {6, 8}}

// bytes16 writes a 16-byte constant twice, for both lanes.
func (a *asm) bytes16(name string, lanes ...[16]byte) {
	if len(lanes) == 1 {
		lanes = append(lanes, lanes[0])
	}
	for i, l := range lanes {
		for half := range 2 {
			var x uint64
			for b := range 8 {
				x |= uint64(l[half*8+b]) << (8 * b)
			}
			a.raw(sprint("DATA %s<>+%d(SB)/8, $%#x\n", name, 16*i+8*half, x))
		}
	}
	a.raw(sprint("GLOBL %s<>(SB), RODATA|NOPTR, $32\n", name))
}

func (a *asm) word(name string, x uint32) {
	a.raw(sprint("DATA %s<>+0(SB)/4, $%#x\nGLOBL %s<>(SB), RODATA|NOPTR, $4\n", name, x, name))
}

func packTables(a *asm) {
	a.bytes16("packPairs", [16]byte{0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15})
	a.bytes16("packSwap", [16]byte{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15})
	a.bytes16("packShifts", [16]byte{4: 4, 12: 4})
	// The upper bytes of the values as float16; the lower ones are zero.
	a.bytes16("packHalves", [16]byte{0, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46, 0x80, 0xb8, 0xbc, 0xbe, 0xc0, 0xc2, 0xc4, 0xc6})
	for _, w := range widths {
		var lanes [2][16]byte
		for lane := range 2 {
			from := 0
			if lane == 1 {
				from = 2*w.bits - w.high
			}
			for d := range 4 {
				for b := range 4 {
					lanes[lane][4*d+b] = 0x80 // zero
					if b*8 < 4*w.bits+4*(d*w.bits%2) {
						lanes[lane][4*d+b] = byte(from + d*w.bits/2 + b)
					}
				}
			}
		}
		a.bytes16(sprint("packTake%d", w.bits), lanes[:]...)
		a.word(sprint("packHalf%d", w.bits), 1<<(2*w.bits)-1)
		a.word(sprint("packMask%d", w.bits), (1<<w.bits-1)*0x00010001)
	}
	a.word("packLow", 0x0f0f0f0f)
	a.word("packTwos", 0x03030303)
	a.word("packOnes", 0x01010101)
	a.word("packSeven", 0x007f007f)
	a.word("packSign", 0x00800080)
	a.word("packNaN", 0x7e007e00)
	a.word("pack256", 0x43800000)
	a.raw("\n")
}

// rowPointers are the registers of eight rows.
var rowPointers = []string{"AX", "BX", "CX", "DX", "SI", "R8", "R9", "R10"}

// turn4 transposes four lanes of eight rows: line j of Y8-Y11 is lane j of rows 0 to 7.
func turn4(a *asm) {
	for r := range 4 {
		a.o("VMOVDQU (%s)(R12*1), X%d", rowPointers[r], r)
	}
	for r := range 4 {
		a.o("VINSERTI128 $1, (%s)(R12*1), Y%d, Y%d", rowPointers[4+r], r, r)
	}
	a.o("VPUNPCKLDQ Y1, Y0, Y4")
	a.o("VPUNPCKHDQ Y1, Y0, Y5")
	a.o("VPUNPCKLDQ Y3, Y2, Y6")
	a.o("VPUNPCKHDQ Y3, Y2, Y7")
	a.o("VPUNPCKLQDQ Y6, Y4, Y8")
	a.o("VPUNPCKHQDQ Y6, Y4, Y9")
	a.o("VPUNPCKLQDQ Y7, Y5, Y10")
	a.o("VPUNPCKHQDQ Y7, Y5, Y11")
}

// packLanes: per group and half of the rows, quads of lanes, and one more quad that begins back bytes of a row earlier, if
// back is not 0: lanes that are no whole quads.
func packLanes(a *asm) {
	a.raw("// func packLanesAVX2(dst, rows unsafe.Pointer, groups, quads, back, skip int)\n")
	a.raw("TEXT ·packLanesAVX2(SB), NOSPLIT, $0-48\n")
	a.o("MOVQ dst+0(FP), DI")
	a.o("MOVQ rows+8(FP), R15")
	a.o("XORQ R13, R13")
	a.label("group")
	for half := range 2 {
		for i, r := range rowPointers {
			a.o("MOVQ %d(R15), %s", half*64+i*8, r)
		}
		a.o("MOVQ R13, R12")
		a.o("MOVQ DI, R14")
		a.o("MOVQ quads+24(FP), R11")
		quad := func() {
			turn4(a)
			for j := range 4 {
				a.o("VMOVDQU Y%d, %d(R14)", 8+j, j*64+half*32)
			}
			a.o("ADDQ $16, R12")
			a.o("ADDQ $256, R14")
		}
		a.label(sprint("quad%d", half))
		quad()
		a.o("DECQ R11")
		a.o("JNZ quad%d", half)
		a.o("MOVQ back+32(FP), R11")
		a.o("TESTQ R11, R11")
		a.o("JZ whole%d", half)
		a.o("SUBQ R11, R12")
		a.o("SHLQ $4, R11")
		a.o("SUBQ R11, R14")
		quad()
		a.label(sprint("whole%d", half))
	}
	a.o("MOVQ R12, R13")
	a.o("MOVQ R14, DI")
	a.o("ADDQ skip+40(FP), DI")
	a.o("DECQ groups+16(FP)")
	a.o("JNZ group")
	a.o("VZEROUPPER")
	a.o("RET\n")
}

// packScales: rows of 16-bit numbers, eight groups at a time; the sixteen numbers of a group stand together.
func packScales(a *asm) {
	a.raw("// func packScalesAVX2(dst, rows unsafe.Pointer, octets, stride int)\n")
	a.raw("TEXT ·packScalesAVX2(SB), NOSPLIT, $0-32\n")
	a.o("MOVQ dst+0(FP), DI")
	a.o("MOVQ rows+8(FP), R15")
	a.o("MOVQ octets+16(FP), R11")
	a.o("MOVQ stride+24(FP), R13")
	a.o("XORQ R12, R12")
	a.label("octet")
	for half := range 2 {
		for i, r := range rowPointers {
			a.o("MOVQ %d(R15), %s", half*64+i*8, r)
		}
		turn4(a)
		for j := range 4 {
			a.o("VPSHUFB packPairs<>(SB), Y%d, Y%d", 8+j, 8+j+4*(1-half))
		}
	}
	for j := range 4 { // Y12-Y15 rows 0 to 7, Y8-Y11 rows 8 to 15: even group, odd group in every lane
		for _, op := range []string{"VPUNPCKLQDQ", "VPUNPCKHQDQ"} {
			a.o("%s Y%d, Y%d, Y0", op, 8+j, 12+j)
			a.o("VPERMQ $0xd8, Y0, Y0")
			a.o("VMOVDQU Y0, (DI)")
			a.o("ADDQ R13, DI")
		}
	}
	a.o("ADDQ $16, R12")
	a.o("DECQ R11")
	a.o("JNZ octet")
	a.o("VZEROUPPER")
	a.o("RET\n")
}

// rowText starts a routine that turns one row: DI destination, SI source, CX steps.
func rowText(a *asm, name string, scales bool) {
	args, size, at := "dst, src unsafe.Pointer, n int", 24, 16
	if scales {
		args, size, at = "dst, src, scales unsafe.Pointer, n int", 32, 24
	}
	a.raw("// func ", name, "(", args, ")\nTEXT ·", name, sprint("(SB), NOSPLIT, $0-%d\n", size))
	a.o("MOVQ dst+0(FP), DI")
	a.o("MOVQ src+8(FP), SI")
	if scales {
		a.o("MOVQ scales+16(FP), DX")
	}
	a.o("MOVQ n+%d(FP), CX", at)
}

// rowLoop ends it.
func rowLoop(a *asm, src, dst int) {
	a.o("ADDQ $%d, SI", src)
	a.o("ADDQ $%d, DI", dst)
	a.o("DECQ CX")
	a.o("JNZ loop")
	a.o("VZEROUPPER")
	a.o("RET\n")
}

// packNibbles: of each word of eight codes, the first four go to the low halves of its bytes. With the even and the odd
// codes apart, the last two of both stand twelve bits above where they belong.
func packNibbles(a *asm) {
	rowText(a, "nibbleLanesAVX2", false)
	a.o("VPBROADCASTD packLow<>(SB), Y15")
	a.label("loop")
	a.o("VMOVDQU (SI), X0")
	a.o("VPAND X15, X0, X1")
	a.o("VPSRLW $4, X0, X2")
	a.o("VPAND X15, X2, X2")
	a.o("VPSRLD $12, X1, X3")
	a.o("VPOR X1, X3, X1")
	a.o("VPSRLD $12, X2, X3")
	a.o("VPOR X2, X3, X2")
	a.o("VPSLLD $16, X2, X2")
	a.o("VPBLENDW $0xaa, X2, X1, X1")
	a.o("VPSHUFB packSwap<>(SB), X1, X1")
	a.o("VMOVDQU X1, (DI)")
	rowLoop(a, 16, 16)
}

// emit: bytes to lanes, codes apart, pair by pair and then one by one, and then into planes.
func (w width) emit(a *asm) {
	b := w.bits
	rowText(a, sprint("streamLanes%dAVX2", b), false)
	for i, c := range []string{"packLow", "packTwos", "packOnes"} {
		a.o("VPBROADCASTD %s<>(SB), Y%d", c, 11-i)
	}
	a.o("VMOVDQU packTake%d<>(SB), Y15", b)
	a.o("VPBROADCASTD packHalf%d<>(SB), Y14", b)
	a.o("VPBROADCASTD packMask%d<>(SB), Y13", b)
	if b%2 == 1 {
		a.o("VMOVDQU packShifts<>(SB), Y12")
	}
	a.label("loop")
	switch b {
	case 2:
		a.o("VPBROADCASTQ (SI), Y0")
		// Both lanes hold all eight bytes; the table counts from the upper lane's own start.
		a.o("VPSRLDQ $4, Y0, Y1")
		a.o("VPBLENDD $0xf0, Y1, Y0, Y0")
	case 3:
		a.o("VMOVQ (SI), X0")
		a.o("VPINSRD $2, 8(SI), X0, X0")
		a.o("VPSRLDQ $6, X0, X1")
		a.o("VINSERTI128 $1, X1, Y0, Y0")
	default:
		a.o("VMOVDQU (SI), X0")
		a.o("VINSERTI128 $1, %d(SI), Y0, Y0", w.high)
	}
	a.o("VPSHUFB Y15, Y0, Y0")
	if b%2 == 1 {
		a.o("VPSRLVD Y12, Y0, Y0")
	}
	a.o("VPAND Y14, Y0, Y1")
	a.o("VPSRLD $%d, Y0, Y0", 2*b)
	a.o("VPAND Y14, Y0, Y0")
	a.o("VPSLLD $16, Y0, Y0")
	a.o("VPOR Y1, Y0, Y0")
	a.o("VPAND Y13, Y0, Y1")
	a.o("VPSRLD $%d, Y0, Y0", b)
	a.o("VPAND Y13, Y0, Y0")
	a.o("VPSLLD $8, Y0, Y0")
	a.o("VPOR Y1, Y0, Y0")
	rowLoop(a, 4*b, w.planes(a))
}

// planes writes the planes of 32 codes, bytes of Y0, and tells how many bytes they take. Of every two or more lanes one is made,
// each next one shifted up by the width of the plane.
func (w width) planes(a *asm) (bytes int) {
	low := 0 // bits below
	if w.bits > 4 {
		a.o("VPAND Y11, Y0, Y1")
		a.o("VPSRLQ $28, Y1, Y2")
		a.o("VPOR Y2, Y1, Y1")
		a.o("VPSHUFD $0x08, Y1, Y1")
		a.o("VPERMQ $0x08, Y1, Y1")
		a.o("VMOVDQU X1, (DI)")
		bytes, low = 16, 4
	}
	if w.bits%4 > 1 {
		a.o("VPSRLD $%d, Y0, Y1", low)
		a.o("VPAND Y10, Y1, Y1")
		w.fold(a, 2)
		a.o("VPUNPCKLDQ X2, X1, X1")
		a.o("VMOVQ X1, %d(DI)", bytes)
		bytes, low = bytes+8, low+2
	}
	if w.bits%2 > 0 {
		a.o("VPSRLD $%d, Y0, Y1", low)
		a.o("VPAND Y9, Y1, Y1")
		w.fold(a, 1)
		a.o("VPSLLD $4, X2, X2")
		a.o("VPOR X2, X1, X1")
		a.o("VMOVD X1, %d(DI)", bytes)
		bytes += 4
	}
	return bytes
}

// fold makes one lane of each half of Y1, in X1 and X2.
func (w width) fold(a *asm, plane int) {
	a.o("VPSRLQ $%d, Y1, Y2", 32-plane)
	a.o("VPOR Y2, Y1, Y1")
	a.o("VPSRLDQ $8, Y1, Y2")
	a.o("VPSLLD $%d, Y2, Y2", 2*plane)
	a.o("VPOR Y2, Y1, Y1")
	a.o("VEXTRACTI128 $1, Y1, X2")
}

// nibbleBytes leaves the nibbles of the words of v as bytes, the lower ones first.
func nibbleBytes(a *asm, v, tmp string) {
	a.o("VPSLLW $4, %s, %s", v, tmp)
	a.o("VPOR %s, %s, %s", v, tmp, v)
	a.o("VPAND %s15, %s, %s", v[:1], v, v)
}

// packE2M1: groups of sixteen codes, eight bytes.
func packE2M1(a *asm) {
	rowText(a, "e2m1FloatsAVX2", true)
	a.o("VPBROADCASTD packLow<>(SB), Y15")
	a.o("VMOVDQU packHalves<>(SB), Y14")
	a.o("VPXOR X13, X13, X13")
	a.label("loop")
	a.o("VPMOVZXBW (SI), X0")
	nibbleBytes(a, "X0", "X1")
	a.o("VPSHUFB X0, X14, X0")
	a.o("VBROADCASTSS (DX), Y3")
	for i, op := range []string{"VPUNPCKLBW", "VPUNPCKHBW"} {
		a.o("%s X0, X13, X1", op)
		a.o("VCVTPH2PS X1, Y1")
		a.o("VMULPS Y3, Y1, Y1")
		a.o("VMOVUPS Y1, %d(DI)", i*32)
	}
	a.o("ADDQ $4, DX")
	rowLoop(a, 8, 64)
}

// packE4M3: groups of 32 codes. A code's bits, a little further up, are a float16 that is smaller by 2^8; only NaN, all
// ones but for the sign, is none there.
func packE4M3(a *asm) {
	rowText(a, "e4m3FloatsAVX2", true)
	for i, c := range []string{"packSeven", "packSign", "packNaN", "pack256"} {
		a.o("VPBROADCASTD %s<>(SB), Y%d", c, 15-i)
	}
	a.label("loop")
	a.o("VBROADCASTSS (DX), Y4")
	for half := range 2 {
		a.o("VPMOVZXBW %d(SI), Y0", half*16)
		a.o("VPAND Y15, Y0, Y1")
		a.o("VPAND Y14, Y0, Y0")
		a.o("VPSLLW $8, Y0, Y0")
		a.o("VPCMPEQW Y15, Y1, Y2")
		a.o("VPAND Y13, Y2, Y2")
		a.o("VPSLLW $7, Y1, Y1")
		a.o("VPOR Y1, Y0, Y0")
		a.o("VPOR Y2, Y0, Y0")
		a.o("VEXTRACTI128 $1, Y0, X1")
		for i := range 2 {
			a.o("VCVTPH2PS X%d, Y%d", i, i)
			a.o("VMULPS Y12, Y%d, Y%d", i, i)
			a.o("VMULPS Y4, Y%d, Y%d", i, i)
			a.o("VMOVUPS Y%d, %d(DI)", i, half*64+i*32)
		}
	}
	a.o("ADDQ $4, DX")
	rowLoop(a, 32, 128)
}

// packF16 widens eight float16 numbers.
func packF16(a *asm) {
	rowText(a, "f16FloatsAVX2", false)
	a.label("loop")
	a.o("VCVTPH2PS (SI), Y0")
	a.o("VMOVUPS Y0, (DI)")
	rowLoop(a, 16, 32)
}
