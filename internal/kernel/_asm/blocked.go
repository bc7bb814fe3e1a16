package main

// blocked reports tiles that first take the integer sums of a block of groups and then turn them into floats. At the end
// of every group the sums are the end of a long chain: adding them to y there keeps the scheduler waiting. One Zen 3
// thread, GOPS, weights in the second-level cache, per group and blocked: 4 rows 218 and 226, 8 rows 217 and 228, 64 rows
// 210 and 219; 2 rows 196 and 196. Tried for 8-bit codes as well: no gain, their products are what takes the time.
func (r routine) blocked() bool { return r.width == 32 && !r.vnni && r.kind == fast4 && r.rows > 2 }

// sumsPerBlock is how many vectors of integer sums per row and half a block has: 8 KiB with four rows.
const sumsPerBlock = 32

// Locals of a blocked routine.
const (
	left    = "0(SP)"  // groups after this block
	inBlock = "8(SP)"  // groups in this block
	count   = "16(SP)" // down from there
	start   = "24(SP)" // first code of the block
	scales  = "32(SP)" // bytes of a group's scales and biases
	codes   = "40(SP)" // bytes of a group's codes
	most    = "48(SP)" // groups in a full block
	last    = "56(SP)" // behind the codes of the block
	locals  = 64
)

// emitBlocked writes a routine with the same result, to the bit, as one that finishes every group.
//
// General registers as in routine, but R10 and R11 point to the scales and sums of the group to be finished, BX is three
// group strides and R15 the integer sums, aligned.
func (r routine) emitBlocked(a *asm) {
	frame := locals + 32 + sumsPerBlock*r.rows*64
	a.raw("// func ", r.name(), "(a *mulArgs)\nTEXT ·", r.name(), "(SB), 0, ", sprint("$%d-8\n", frame))
	a.o("NO_LOCAL_POINTERS")
	a.o("MOVQ a+0(FP), AX")
	a.o("MOVQ mulArgs_w(AX), SI")
	a.o("MOVQ mulArgs_y(AX), DI")
	a.o("MOVQ mulArgs_xStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ mulArgs_gStride(AX), R13")
	a.o("LEAQ (R13)(R13*2), BX")
	a.o("LEAQ %d(SP), R15", locals+31)
	a.o("ANDQ $-32, R15")
	r.blockSizes(a)
	a.label("panel")
	r.clearY(a, 0)
	a.o("MOVQ mulArgs_x(AX), DX")
	a.o("MOVQ mulArgs_scale(AX), R10")
	a.o("MOVQ mulArgs_sum(AX), R11")
	a.o("MOVQ mulArgs_groups(AX), CX")
	a.o("MOVQ CX, %s", left)
	a.label("block")
	a.o("MOVQ %s, CX", left)
	a.o("MOVQ %s, R14", most)
	a.o("CMPQ CX, R14")
	a.o("CMOVQGT R14, CX")
	a.o("SUBQ CX, %s", left)
	a.o("MOVQ CX, %s", inBlock)
	a.o("MOVQ CX, %s", count)
	a.o("MOVQ SI, %s", start)
	r.blockSums(a)
	r.finishBlock(a)
	a.o("CMPQ %s, $0", left)
	a.o("JNE block")
	a.o("ADDQ $64, DI")
	a.o("DECQ mulArgs_panels(AX)")
	a.o("JNZ panel")
	a.o("VZEROUPPER")
	a.o("RET\n")
}

func (r routine) blockSizes(a *asm) {
	a.o("MOVQ mulArgs_wide(AX), CX")
	a.o("MOVQ $64, R14")
	a.o("SHLQ CX, R14")
	a.o("MOVQ R14, %s", scales)
	a.o("MOVQ mulArgs_lines(AX), CX")
	a.o("MOVQ CX, R14")
	a.o("SHLQ $8, R14")
	a.o("MOVQ R14, %s", codes)
	a.o("SHRQ $1, CX") // 1, 2, 4 lines: shifts of 0, 1, 2
	a.o("MOVQ $%d, R14", sumsPerBlock)
	a.o("SHRQ CX, R14")
	a.o("MOVQ R14, %s", most)
}

// blockSums leaves the sums of the block's groups at R15.
func (r routine) blockSums(a *asm) {
	r.loadConstants(a)
	a.o("MOVQ R15, R14")
	a.label("group")
	a.o("MOVQ mulArgs_lines(AX), CX")
	a.label("part")
	r.madd4Lines(a)
	for i := range r.rows * 2 {
		a.o("VPMADDWD Y%d, Y%d, Y%d", r.ones(), i, i)
		a.o("VMOVDQU Y%d, %d(R14)", i, i*32)
	}
	a.o("ADDQ $%d, R14", r.rows*64)
	r.nextPart(a, "", 256)
	a.o("ADDQ %s, SI", scales)
	a.o("DECQ %s", count)
	a.o("JNZ group")
	r.blockHighs(a)
}

// blockHighs adds to the first sums of every group 256 times the products of high parts. SI goes through the codes, BX
// through the heads.
func (r routine) blockHighs(a *asm) {
	a.o("CMPQ %s, $0", arg("mulArgs", "records"))
	a.o("JEQ highsDone")
	a.o("MOVQ %s, BX", arg("mulArgs", "heads"))
	a.o("ADDQ R10, BX")
	a.o("MOVQ SI, %s", last)
	a.o("MOVQ %s, SI", start)
	a.o("MOVQ %s, CX", inBlock)
	a.o("MOVQ CX, %s", count)
	a.label("highs")
	a.o("MOVL (BX), CX")
	a.o("TESTL CX, CX")
	a.o("JEQ noHigh")
	a.o("MOVQ %s, R14", arg("mulArgs", "records"))
	a.o("ADDQ CX, R14")
	r.highSums(a, "mulArgs", func() { r.highCodes(a, 8) })
	a.label("noHigh")
	a.o("ADDQ $4, BX")
	a.o("ADDQ %s, SI", codes)
	a.o("ADDQ %s, SI", scales)
	a.o("MOVQ mulArgs_lines(AX), CX")
	a.o("IMULQ $%d, CX", r.rows*64)
	a.o("ADDQ CX, R15")
	a.o("DECQ %s", count)
	a.o("JNZ highs")
	a.o("MOVQ %s, SI", last)
	a.o("LEAQ %d(SP), R15", locals+31)
	a.o("ANDQ $-32, R15")
	a.o("LEAQ (R13)(R13*2), BX")
	a.label("highsDone")
	r.loadConstants(a)
}

// strided addresses row m of numbers per group, behind pointer reg.
func strided(reg string, m int) string {
	return "(" + reg + ")" + [...]string{"", "(R13*1)", "(R13*2)", "(BX*1)"}[m]
}

// finishBlock adds the block's groups to y, in order.
func (r routine) finishBlock(a *asm) {
	r.yRows(a, func(m, h int) { a.o("VMOVUPS %d(R14), Y%d", h*32, r.dot(m, h)) })
	a.o("MOVQ R15, R14")
	a.o("MOVQ %s, CX", start)
	a.o("ADDQ %s, CX", codes)
	a.o("CMPQ mulArgs_lines(AX), $2")
	a.o("JLT finish1")
	a.o("JGT finish4")
	r.finishGroups(a, 2)
	a.o("JMP finished")
	r.finishGroups(a, 1)
	a.o("JMP finished")
	r.finishGroups(a, 4)
	a.label("finished")
	r.yRows(a, func(m, h int) { a.o("VMOVUPS Y%d, %d(R14)", r.dot(m, h), h*32) })
}

func (r routine) yRows(a *asm, f func(m, h int)) {
	a.o("MOVQ DI, R14")
	for m := range r.rows {
		f(m, 0)
		f(m, 1)
		if m < r.rows-1 {
			a.o("ADDQ mulArgs_yStride(AX), R14")
		}
	}
}

// finishGroups is the one formula, y = bias·sum + y; y = D·(weight scale · activation scale) + y, for sums that came in
// so many parts.
func (r routine) finishGroups(a *asm, parts int) {
	l := sprint("%d", parts)
	a.label("finish" + l)
	r.loadScalesAt(a, "CX", l)
	for m := range r.rows {
		a.o("VBROADCASTSS %s, Y12", strided("R11", m))
		a.o("VFMADD231PS Y12, Y10, Y%d", r.dot(m, 0))
		a.o("VFMADD231PS Y12, Y11, Y%d", r.dot(m, 1))
		a.o("VBROADCASTSS %s, Y12", strided("R10", m))
		for h := range 2 {
			at := r.dot(m, h) * 32
			if parts == 1 {
				a.o("VCVTDQ2PS %d(R14), Y14", at)
			} else {
				a.o("VMOVDQU %d(R14), Y14", at)
				for p := 1; p < parts; p++ {
					a.o("VPADDD %d(R14), Y14, Y14", at+p*r.rows*64)
				}
				a.o("VCVTDQ2PS Y14, Y14")
			}
			a.o("VMULPS Y%d, Y12, Y13", 8+h)
			a.o("VFMADD231PS Y14, Y13, Y%d", r.dot(m, h))
		}
	}
	a.o("ADDQ $4, R10")
	a.o("ADDQ $4, R11")
	a.o("ADDQ $%d, R14", parts*r.rows*64)
	a.o("ADDQ %s, CX", codes)
	a.o("DECQ %s", inBlock)
	a.o("JNZ finish%s", l)
}

// loadScalesAt reads the scales of a group to Y8 and Y9, its biases to Y10 and Y11, and steps over them.
func (r routine) loadScalesAt(a *asm, reg, l string) {
	a.o("CMPQ mulArgs_wide(AX), $0")
	a.o("JNE wide%s", l)
	for i := range 4 {
		a.o("VPMOVZXWD %d(%s), Y%d", i*16, reg, 8+i)
		a.o("VPSLLD $16, Y%d, Y%d", 8+i, 8+i)
	}
	a.o("ADDQ $64, %s", reg)
	a.o("JMP scaled%s", l)
	a.label("wide" + l)
	for i := range 4 {
		a.o("VMOVUPS %d(%s), Y%d", i*32, reg, 8+i)
	}
	a.o("ADDQ $128, %s", reg)
	a.label("scaled" + l)
}
