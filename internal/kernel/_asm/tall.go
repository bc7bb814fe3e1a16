package main

// tall is the fast product of many rows for AVX2 and AVX-VNNI. The codes of a block of columns become bytes once, in the nearest
// cache, while the first four rows are multiplied with them; the other rows, four at a time, read the bytes. Sums stay integers
// until the block is through, as in blocked.go.
//
// General registers: AX arguments, SI weights, DI y of the panel, R8 and R9 one and three row strides of x, DX x of the tile,
// R10, R11 and R12 scales, sums and y of the tile, R13 and BX one and three strides of scales (while integers are
// summed, BX points to where sums go), R15 sums, bytes and scales in memory, R14 and CX scratch.
type tall struct{ routine }

const (
	tallRows  = 4
	tallParts = 16 // of 32 columns in a block
	// Memory of a block, from R15.
	tallCodes  = tallParts * tallRows * 64 // behind the sums
	tallScales = tallCodes + tallParts*512
	tallBytes  = tallScales + tallParts*128
)

// Locals.
const (
	tallLeft   = "0(SP)"  // groups after this block
	tallGroups = "8(SP)"  // groups in this block
	tallCount  = "16(SP)" // down from there
	tallMost   = "24(SP)" // groups in a full block
	tallTiles  = "32(SP)" // to go
	tallX      = "40(SP)" // of the block: x
	tallAt     = "48(SP)" // scales before the block
	tallTo     = "56(SP)" // scales in memory
	tallHeads  = "64(SP)" // of the tile
	tallSums   = "72(SP)" // R11
	tallLocals = 80
)

// manyKinds are those with routines for many rows.
func manyKinds(fast bool) []kind {
	if fast {
		return []kind{fast4, fast2, fast3, fast5, fast6, fastE2M1}
	}
	return []kind{exact4, exact8, exact2, exact3, exact5, exact6, exactE2M1, floatE2M1, floatE4M3}
}

// short is the kind without its precision.
func short(k kind) string {
	s := k.String()
	switch {
	case k.small():
		return s
	case k.fast():
		return s[len("Fast"):]
	}
	return s[len("Exact"):]
}

func formatName(k kind) string {
	if k.small() {
		return short(k)
	}
	return "Codes" + short(k)
}

func talls() []tall {
	var out []tall
	for _, s := range sets[:2] {
		for _, k := range manyKinds(true) {
			out = append(out, tall{routine{s, k, tallRows}})
		}
	}
	return out
}

func (t tall) emitTall(a *asm) {
	if t.vex() {
		t.vexMacros(a)
	}
	name := sprint("mulTall%s%s", short(t.kind), t.set.name)
	a.raw("// func ", name, "(a *wideArgs)\nTEXT ·", name, "(SB), 0, ", sprint("$%d-8\n", tallLocals+32+tallBytes))
	a.o("NO_LOCAL_POINTERS")
	a.o("MOVQ a+0(FP), AX")
	a.o("MOVQ wideArgs_w(AX), SI")
	a.o("MOVQ wideArgs_y(AX), DI")
	a.o("MOVQ wideArgs_xStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ wideArgs_gStride(AX), R13")
	a.o("LEAQ %d(SP), R15", tallLocals+31)
	a.o("ANDQ $-32, R15")
	a.o("MOVQ wideArgs_lines(AX), CX") // 1, 2, 4: shifts of 0, 1, 2
	a.o("SHRQ $1, CX")
	a.o("MOVQ $%d, R14", tallParts)
	a.o("SHRQ CX, R14")
	a.o("MOVQ R14, %s", tallMost)
	a.label("panel")
	a.o("MOVQ wideArgs_groups(AX), CX")
	a.o("MOVQ CX, %s", tallLeft)
	a.o("MOVQ wideArgs_x(AX), DX")
	a.o("MOVQ DX, %s", tallX)
	a.o("MOVQ $0, %s", tallAt)
	a.label("block")
	t.block(a)
	a.o("CMPQ %s, $0", tallLeft)
	a.o("JNE block")
	a.o("ADDQ $64, DI")
	a.o("DECQ wideArgs_panels(AX)")
	a.o("JNZ panel")
	a.o("VZEROUPPER")
	a.o("RET\n")
}

// block multiplies all tiles with up to tallParts parts.
func (t tall) block(a *asm) {
	a.o("MOVQ %s, CX", tallLeft)
	a.o("MOVQ %s, R14", tallMost)
	a.o("CMPQ CX, R14")
	a.o("CMOVQGT R14, CX")
	a.o("SUBQ CX, %s", tallLeft)
	a.o("MOVQ CX, %s", tallGroups)
	a.o("MOVQ wideArgs_scale(AX), R10")
	a.o("MOVQ wideArgs_sum(AX), R11")
	a.o("ADDQ %s, R10", tallAt)
	a.o("ADDQ %s, R11", tallAt)
	a.o("MOVQ %s, DX", tallX)
	a.o("MOVQ DI, R12")
	a.o("MOVQ wideArgs_tiles(AX), CX")
	a.o("MOVQ CX, %s", tallTiles)
	a.o("MOVQ %s, CX", arg("wideArgs", "heads"))
	a.o("ADDQ %s, CX", tallAt)
	a.o("MOVQ CX, %s", tallHeads)
	t.firstTile(a)
	a.o("JMP finish")
	a.label("tile")
	t.nextTile(a)
	a.label("finish")
	t.highs(a)
	t.finish(a)
	// On to the next rows. R10 and R11 are at the end of the block's groups.
	a.o("MOVQ %s, CX", tallGroups)
	a.o("SHLQ $2, CX")
	a.o("SUBQ CX, R10")
	a.o("SUBQ CX, R11")
	a.o("LEAQ (R10)(R13*4), R10")
	a.o("LEAQ (R11)(R13*4), R11")
	a.o("MOVQ wideArgs_lines(AX), CX")
	a.o("IMULQ %s, CX", tallGroups)
	a.o("SHLQ $5, CX") // columns of the block
	a.o("SUBQ CX, DX")
	a.o("LEAQ (DX)(R8*4), DX")
	a.o("DECQ %s", tallTiles)
	a.o("JNZ tile")
	a.o("ADDQ CX, %s", tallX)
	a.o("MOVQ %s, CX", tallGroups)
	a.o("SHLQ $2, CX")
	a.o("ADDQ CX, %s", tallAt)
}

// firstTile makes bytes of the block's codes and floats of its scales, and sums the products of the first rows.
func (t tall) firstTile(a *asm) {
	a.o("MOVQ R15, BX")
	a.o("LEAQ %d(R15), R14", tallCodes)
	a.o("LEAQ %d(R15), CX", tallScales)
	a.o("MOVQ CX, %s", tallTo)
	a.o("MOVQ %s, CX", tallGroups)
	a.o("MOVQ CX, %s", tallCount)
	switch {
	case t.vex():
		t.planeMasks(a, 14)
	case t.kind == fast4:
		a.o("VMOVDQU plane15<>(SB), Y15")
	case t.kind.unit() > 2:
		t.planeMasks(a, 14)
	}
	a.label("group")
	t.group(a, true)
	a.o("MOVQ %s, CX", tallTo)
	a.o("CMPQ wideArgs_wide(AX), $0")
	a.o("JNE wide")
	for i := range 4 {
		a.o("VPMOVZXWD %d(SI), Y%d", i*16, i)
		a.o("VPSLLD $16, Y%d, Y%d", i, i)
		a.o("VMOVDQU Y%d, %d(CX)", i, i*32)
	}
	a.o("ADDQ $64, SI")
	a.o("JMP scaled")
	a.label("wide")
	for i := range 4 {
		a.o("VMOVUPS %d(SI), Y%d", i*32, i)
		a.o("VMOVUPS Y%d, %d(CX)", i, i*32)
	}
	a.o("ADDQ $128, SI")
	a.label("scaled")
	a.o("ADDQ $128, %s", tallTo)
	a.o("DECQ %s", tallCount)
	a.o("JNZ group")
}

// nextTile sums the products of four more rows.
func (t tall) nextTile(a *asm) {
	a.o("MOVQ R15, BX")
	a.o("LEAQ %d(R15), R14", tallCodes)
	a.o("MOVQ %s, CX", tallGroups)
	a.o("MOVQ CX, %s", tallCount)
	a.label("nextGroup")
	t.group(a, false)
	a.o("DECQ %s", tallCount)
	a.o("JNZ nextGroup")
}

// group leaves the sums of a group at BX and goes on. first takes the codes from the weights and leaves bytes at R14.
func (t tall) group(a *asm, first bool) {
	l := sprint("Part%v", first)
	if t.vex() {
		t.vexGroup(a, first, l)
	} else {
		a.o("MOVQ wideArgs_lines(AX), CX")
		t.part(a, first, false)
		a.o("DECQ CX")
		a.o("JZ summed%s", l)
		a.label("more" + l)
		t.part(a, first, true)
		a.o("DECQ CX")
		a.o("JNZ more%s", l)
		a.label("summed" + l)
	}
	a.o("ADDQ $%d, BX", tallRows*64)
}

// part sums 32 columns, to what is at BX if add is set.
func (t tall) part(a *asm, first, add bool) {
	switch {
	case t.kind.unit() == 2:
		t.partOf2(a, first, add)
	default:
		t.partOf16(a, first, add)
	}
	t.advance(a, first)
}

// advance goes on to the next part.
func (t tall) advance(a *asm, first bool) {
	if first {
		a.o("ADDQ $%d, SI", 64*t.kind.bits())
	}
	a.o("ADDQ $512, R14")
	a.o("ADDQ $32, DX")
}

// bytes puts the bytes of a quad in two registers from w.
func (t tall) bytes(a *asm, first bool, q, w, tmp int) {
	for h := range 2 {
		at, fixed := sprint("%d(R14)", q*64+h*32), 0
		if t.kind.unit() > 2 {
			fixed = 14
		}
		if !first {
			a.o("VMOVDQU %s, Y%d", at, w+h)
			continue
		}
		t.quad(a, q, h, w+h, tmp, fixed)
		a.o("VMOVDQU Y%d, %s", w+h, at)
	}
}

// nibbles is bytes of 4-bit codes: a line has two quads.
func (t tall) nibbles(a *asm, q int) {
	for h := range 2 {
		w, high := 8+h, 13+h
		if q%2 == 0 {
			a.o("VMOVDQU %d(SI), Y%d", q*32+h*32, w)
			a.o("VPSRLW $4, Y%d, Y%d", w, high)
			a.o("VPAND Y15, Y%d, Y%d", w, w)
		} else {
			a.o("VPAND Y15, Y%d, Y%d", high, w)
		}
		a.o("VMOVDQU Y%d, %d(R14)", w, q*64+h*32)
	}
}

// partOf16 sums as many quads as go in 16 bits before it widens; what does not go into one sum is added in memory. Where
// there are registers for it a row's products are added after the next row's are under way.
func (t tall) partOf16(a *asm, first, add bool) {
	unit := t.kind.unit()
	var late func()
	for q := range 8 {
		if first {
			t.prefetchPart(a, q)
		}
		if first && t.kind == fast4 {
			t.nibbles(a, q)
		} else {
			t.bytes(a, first, q, 8, 13)
		}
		for m := range tallRows {
			product := 11
			if !first && m%2 == 1 {
				product = 13
			}
			a.o("VPBROADCASTD %s, Y10", t.x(m, q*4))
			for h := range 2 {
				if q%unit == 0 {
					a.o("VPMADDUBSW Y10, Y%d, Y%d", 8+h, 2*m+h)
				} else {
					a.o("VPMADDUBSW Y10, Y%d, Y%d", 8+h, product+h)
				}
			}
			if late != nil {
				late()
			}
			late = nil
			if q%unit > 0 {
				late = func() {
					for h := range 2 {
						a.o("VPADDW Y%d, Y%d, Y%d", product+h, 2*m+h, 2*m+h)
					}
				}
			}
			if late != nil && (first || q%unit == unit-1 && m == tallRows-1) {
				late()
				late = nil
			}
		}
		if q%unit < unit-1 {
			continue
		}
		for i := range tallRows * 2 {
			a.o("VPMADDWD ones<>(SB), Y%d, Y%d", i, i)
			if add || q >= unit {
				a.o("VPADDD %d(BX), Y%d, Y%d", i*32, i, i)
			}
			a.o("VMOVDQU Y%d, %d(BX)", i, i*32)
		}
	}
}

// partOf2 widens the sums of two quads.
func (t tall) partOf2(a *asm, first, add bool) {
	for q := 0; q < 8; q += 2 {
		if first {
			t.prefetchPart(a, q)
			t.prefetchPart(a, q+1)
		}
		t.bytes(a, first, q, 8, 12)
		t.bytes(a, first, q+1, 10, 12)
		for m := range tallRows {
			a.o("VPBROADCASTD %s, Y12", t.x(m, q*4))
			a.o("VPBROADCASTD %s, Y13", t.x(m, q*4+4))
			for h := range 2 {
				i := 2*m + h
				a.o("VPMADDUBSW Y12, Y%d, Y14", 8+h)
				a.o("VPMADDUBSW Y13, Y%d, Y15", 10+h)
				a.o("VPADDW Y15, Y14, Y14")
				if q == 0 {
					a.o("VPMADDWD ones<>(SB), Y14, Y%d", i)
					continue
				}
				a.o("VPMADDWD ones<>(SB), Y14, Y14")
				a.o("VPADDD Y14, Y%d, Y%d", i, i)
			}
		}
	}
	for i := range tallRows * 2 {
		if add {
			a.o("VPADDD %d(BX), Y%d, Y%d", i*32, i, i)
		}
		a.o("VMOVDQU Y%d, %d(BX)", i, i*32)
	}
}

// highs adds to the block's sums 256 times the products of high parts. R15 goes through the sums, R11 through the bytes, BX
// through the heads.
func (t tall) highs(a *asm) {
	a.o("CMPQ %s, $0", arg("wideArgs", "records"))
	a.o("JEQ highsDone")
	a.o("MOVQ R11, %s", tallSums)
	a.o("LEAQ %d(R15), R11", tallCodes)
	a.o("MOVQ %s, BX", tallHeads)
	a.o("ADDQ R13, %s", tallHeads)
	a.o("MOVQ %s, CX", tallGroups)
	a.o("MOVQ CX, %s", tallCount)
	a.label("highs")
	a.o("MOVL (BX), CX")
	a.o("TESTL CX, CX")
	a.o("JEQ noHigh")
	a.o("MOVQ %s, R14", arg("wideArgs", "records"))
	a.o("ADDQ CX, R14")
	t.highSums(a, "wideArgs", func() {
		a.o("MOVL (R14), CX")
		for h := range 2 {
			a.o("VMOVDQU %d(R11)(CX*2), Y%d", h*32, 8+h)
		}
	})
	a.label("noHigh")
	a.o("ADDQ $4, BX")
	a.o("ADDQ $%d, R15", tallRows*64)
	a.o("MOVQ wideArgs_lines(AX), CX")
	a.o("SHLQ $9, CX")
	a.o("ADDQ CX, R11")
	a.o("DECQ %s", tallCount)
	a.o("JNZ highs")
	a.o("LEAQ %d(SP), R15", tallLocals+31)
	a.o("ANDQ $-32, R15")
	a.o("MOVQ %s, R11", tallSums)
	a.label("highsDone")
}

// finish adds the block's groups to y of the tile, in order.
func (t tall) finish(a *asm) {
	a.o("LEAQ (R13)(R13*2), BX")
	a.o("CMPQ %s, $0", tallAt)
	a.o("JNE more")
	for i := range tallRows * 2 {
		a.o("VPXOR Y%d, Y%d, Y%d", i, i, i)
	}
	a.o("JMP loaded")
	a.label("more")
	t.yTile(a, func(m, h int) { a.o("VMOVUPS %d(R14), Y%d", h*32, 2*m+h) })
	a.label("loaded")
	a.o("MOVQ R15, R14")
	a.o("MOVQ %s, CX", tallGroups)
	a.o("MOVQ CX, %s", tallCount)
	a.o("LEAQ %d(R15), CX", tallScales)
	t.finishGroups(a)
	t.yTile(a, func(m, h int) { a.o("VMOVUPS Y%d, %d(R14)", 2*m+h, h*32) })
	a.o("MOVQ R14, R12")
	a.o("ADDQ wideArgs_yStride(AX), R12")
}

// yTile visits y of the tile's rows, at R14.
func (t tall) yTile(a *asm, f func(m, h int)) {
	a.o("MOVQ R12, R14")
	for m := range tallRows {
		f(m, 0)
		f(m, 1)
		if m < tallRows-1 {
			a.o("ADDQ wideArgs_yStride(AX), R14")
		}
	}
}

// finishGroups is the one formula, y = bias·sum + y; y = D·(weight scale · activation scale) + y.
func (t tall) finishGroups(a *asm) {
	a.label("finishGroup")
	for i := range 4 {
		a.o("VMOVUPS %d(CX), Y%d", i*32, 8+i)
	}
	for m := range tallRows {
		a.o("VBROADCASTSS %s, Y12", strided("R11", m))
		a.o("VFMADD231PS Y12, Y10, Y%d", 2*m)
		a.o("VFMADD231PS Y12, Y11, Y%d", 2*m+1)
		a.o("VBROADCASTSS %s, Y12", strided("R10", m))
		for h := range 2 {
			a.o("VCVTDQ2PS %d(R14), Y13", (2*m+h)*32)
			a.o("VMULPS Y%d, Y12, Y14", 8+h)
			a.o("VFMADD231PS Y13, Y14, Y%d", 2*m+h)
		}
	}
	a.o("ADDQ $4, R10")
	a.o("ADDQ $4, R11")
	a.o("ADDQ $%d, R14", tallRows*64)
	a.o("ADDQ $128, CX")
	a.o("DECQ %s", tallCount)
	a.o("JNZ finishGroup")
}
