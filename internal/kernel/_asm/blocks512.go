package main

import "fmt"

// Products of many rows with dense weights for AVX-512: see blocks in ../mul_blocks_amd64.go. Floats of a block of columns of two
// panels stay in the nearest cache, and tiles of blockTile rows go over them: every number of x that is read serves two
// registers of weights, where a tile of one panel reads one for each product.

const (
	blockTile   = 6 // of a tile: with two panels and two chains, 24 sums
	blockPanels = 2
)

// blockSum is the register of the sum of row m, panel p, for columns that are c modulo chains.
func blockSum(m, p, c int) int { return (m*blockPanels+p)*chains + c }

// blocks512 is the text of them all.
func blocks512() []byte {
	var a asm
	a.raw(header, "#include \"go_asm.h\"\n#include \"textflag.h\"\n\n")
	a.raw("DATA high16<>+0(SB)/4, $0xffff0000\nGLOBL high16<>(SB), RODATA|NOPTR, $4\n\n")
	blockFloats(&a, bf16)
	blockFloats(&a, f32)
	blockProducts(&a)
	return a.Bytes()
}

// blockFloats makes floats of columns of two panels, four at a time: 16 of the first, 16 of the second, column by column.
func blockFloats(a *asm, k kind) {
	name := fmt.Sprintf("mulFloats%sAVX512", k)
	a.raw("// func ", name, "(a *blockArgs)\nTEXT ·", name, "(SB), NOSPLIT, $0-8\n")
	a.o("MOVQ a+0(FP), AX")
	a.o("MOVQ blockArgs_w(AX), SI")
	a.o("MOVQ blockArgs_panel(AX), R8")
	a.o("MOVQ blockArgs_floats(AX), DI")
	a.o("MOVQ blockArgs_quads(AX), CX")
	a.o("VPBROADCASTD high16<>(SB), Z30")
	a.label("loop")
	for col := range 4 {
		for p := range blockPanels {
			panel, to := []string{"", "(R8*1)"}[p], 128*col+64*p
			switch {
			case k == f32:
				a.o("VMOVUPS %d(SI)%s, Z%d", col*64, panel, p)
				a.o("VMOVUPS Z%d, %d(DI)", p, to)
			case col%2 == 0:
				a.o("VMOVUPS %d(SI)%s, Z%d", col*32, panel, p)
				a.o("VPSLLD $16, Z%d, Z%d", p, 2+p)
				a.o("VMOVUPS Z%d, %d(DI)", 2+p, to)
			default:
				a.o("VPANDD Z30, Z%d, Z%d", p, p)
				a.o("VMOVUPS Z%d, %d(DI)", p, to)
			}
		}
	}
	a.o("ADDQ $%d, SI", 256/int(f32+1-k))
	a.o("ADDQ $512, DI")
	a.o("DECQ CX")
	a.o("JNZ loop")
	a.o("VZEROUPPER")
	a.o("RET\n")
}

// blockProducts adds the products of a block of columns to the sums of some tiles, which begin at 0 and end in y.
//
// General registers: AX arguments, SI floats, DI y of the tile, DX and R15 rows 0-3 and 4-5 of x, R8 and R9 one and three row
// strides, R10 sums of the tile, R11 its rows of x, R12 stride of y, R13 and R14 what DX and R15 will be for the next tile, whose
// rows are fetched, BX tiles left, CX quads left.
func blockProducts(a *asm) {
	r := routine{set: sets[2], kind: f32, rows: blockTile}
	a.raw("// func mulBlocksAVX512(a *blockArgs)\nTEXT ·mulBlocksAVX512(SB), NOSPLIT, $0-8\n")
	a.o("MOVQ a+0(FP), AX")
	a.o("MOVQ blockArgs_x(AX), R11")
	a.o("MOVQ blockArgs_y(AX), DI")
	a.o("MOVQ blockArgs_sums(AX), R10")
	a.o("MOVQ blockArgs_xStride(AX), R8")
	a.o("LEAQ (R8)(R8*2), R9")
	a.o("MOVQ blockArgs_yStride(AX), R12")
	a.o("MOVQ blockArgs_tiles(AX), BX")
	a.label("tile")
	a.o("CMPQ blockArgs_first(AX), $0")
	a.o("JNE zero")
	for i := range blockTile * blockPanels * chains {
		a.o("VMOVUPS %d(R10), Z%d", 64*i, i)
	}
	a.o("JMP begun")
	a.label("zero")
	for i := range blockTile * blockPanels * chains {
		a.o("VPXORD Z%d, Z%d, Z%d", i, i, i)
	}
	a.label("begun")
	a.o("MOVQ blockArgs_floats(AX), SI")
	a.o("MOVQ blockArgs_quads(AX), CX")
	a.o("MOVQ R11, DX")
	a.o("LEAQ (R11)(R8*4), R15")
	a.o("LEAQ (R11)(R9*2), R13")
	a.o("LEAQ (R15)(R9*2), R14")
	a.label("loop")
	for m := range blockTile {
		a.o("PREFETCHT0 (%s)%s", []string{"R13", "R14"}[m/4], []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[m%4])
	}
	for col := range 4 {
		for p := range blockPanels {
			a.o("VMOVUPS %d(SI), Z%d", 128*col+64*p, 24+p)
		}
		for m := range blockTile {
			x := 26 + m
			a.o("VBROADCASTSS %s, Z%d", r.x(m, 4*col), x)
			for p := range blockPanels {
				a.o("VFMADD231PS Z%d, Z%d, Z%d", x, 24+p, blockSum(m, p, col%chains))
			}
		}
	}
	a.o("ADDQ $512, SI")
	a.o("ADDQ $16, DX")
	a.o("ADDQ $16, R15")
	a.o("ADDQ $16, R13")
	a.o("ADDQ $16, R14")
	a.o("DECQ CX")
	a.o("JNZ loop")
	a.o("CMPQ blockArgs_last(AX), $0")
	a.o("JNE last")
	for i := range blockTile * blockPanels * chains {
		a.o("VMOVUPS Z%d, %d(R10)", i, 64*i)
	}
	a.o("JMP done")
	a.label("last")
	a.o("MOVQ DI, R14")
	for m := range blockTile {
		for p := range blockPanels {
			d := blockSum(m, p, 0)
			a.o("VADDPS Z%d, Z%d, Z%d", blockSum(m, p, 1), d, d)
			a.o("VMOVUPS Z%d, %d(R14)", d, 64*p)
		}
		a.o("ADDQ R12, R14")
	}
	a.o("MOVQ R14, DI")
	a.label("done")
	a.o("ADDQ $%d, R10", 64*blockTile*blockPanels*chains)
	a.o("LEAQ (R11)(R9*2), R11")
	a.o("DECQ BX")
	a.o("JNZ tile")
	a.o("VZEROUPPER")
	a.o("RET\n")
}
