package main

import "fmt"

// Codes in planes, and for many rows those of 4 bits, become bytes in memory first: lines as those of 8-bit codes, of a group
// at a time. That takes a store and a load for 16 codes more than using them at once, and a fraction of the code.

// packings are the formats that unpack takes, by the number in mulArgs.wide, which the table adds.
var packings = []packed{
	{"Codes2", []plane{{2, 0, 0}}}, {"Codes3", []plane{{2, 0, 0}, {1, 2, 2}}}, {"Codes5", []plane{{4, 0, 0}, {1, 4, 4}}},
	{"Codes6", []plane{{4, 0, 0}, {2, 4, 4}}}, {"CodesE2M1", []plane{{4, 0, 0}}}, {"Codes4", []plane{{4, 0, 0}}},
}

// codes8 is the number after them: bytes as they are.
var codes8 = len(packings)

type packed struct {
	format string
	planes []plane
}

// plane is width bits of every code, the lowest of which is bit at of it; its lines are first and up in a part of 32 columns:
// see Matrix in ../../matrix.go.
type plane struct{ width, at, first int }

const (
	unpackRegs    = 16       // vector registers that unpack may use, from 0
	unpackedBytes = 128 * 16 // of a group
)

// framed opens a routine that takes one pointer, to R0, and has so many bytes of memory.
func (a *asm) framed(name, args string, size int) {
	if size == 0 {
		a.text(name, args)
		return
	}
	fmt.Fprintf(a, "// func %s(a *%s)\nTEXT ·%s(SB), 0, $%d-8\n", name, args, name, size)
	a.o("NO_LOCAL_POINTERS")
	a.o("MOVD a+0(FP), R0")
	a.frame = size
}

// bytesAt points reg to the routine's memory.
func (a *asm) bytesAt(reg string, off int) {
	a.o("MOVD $bytes-%d(SP), %s", a.frame-off, reg)
}

// wide sets R21 and, if codes are to be unpacked, R26.
func (a *asm) wide(args string, packed bool) {
	a.o("MOVD %s_wide(R0), R21", args)
	if packed {
		a.o("LSR $1, R21, R26")
		a.o("AND $1, R21")
	}
}

// unpack writes the routine that others call for a group's codes.
func (a *asm) unpack() {
	a.WriteString("// unpackNEON turns R17 parts of codes at R1, of the format R26, into bytes at R15, and moves R1 behind them. R22 and v0 to\n// v15 are lost.\n")
	a.WriteString("TEXT ·unpackNEON(SB), NOSPLIT, $0-0\n")
	for i, p := range packings[1:] {
		a.o("CMP $%d, R26", i+1)
		a.o("BEQ %s", p.format)
	}
	for _, p := range packings {
		a.label(p.format)
		p.emit(a)
	}
}

func (p packed) emit(a *asm) {
	var b bank
	masks := map[int]int{}
	for _, l := range p.planes {
		if _, ok := masks[l.width]; !ok {
			masks[l.width] = b.one()
			a.constant(masks[l.width], (1<<l.width-1)*0x01010101)
		}
	}
	table := -1
	if p.format == "CodesE2M1" {
		table = b.one()
		a.o("MOVD $e2m1<>(SB), R22")
		a.load(0, "R22", table)
	}
	bits := 0
	for _, l := range p.planes {
		bits += l.width
	}
	a.label("part" + p.format)
	first := p.planes[0]
	per := 8 / first.width
	for v := range 4 {
		high := -1
		for line := range first.width {
			low, at := b.one(), v*16
			a.load(line*64+at, "R1", low)
			for i := range per {
				q := line*per + i
				dst := b.one()
				p.take(a, low, dst, i*first.width, first.width, masks)
				for _, l := range p.planes[1:] {
					if n := 8 / l.width; q%n == 0 {
						if high < 0 {
							high = b.one()
						}
						a.load((l.first+q/n)*64+at, "R1", high)
					}
					tmp := b.one()
					p.take(a, high, tmp, q%(8/l.width)*l.width, l.width, masks)
					a.sli16b(dst, tmp, l.at)
					b.give(tmp)
				}
				if table >= 0 {
					a.v(tbl, dst, table, dst)
				}
				a.store(dst, q*64+at, "R15")
				b.give(dst)
			}
			b.give(low)
		}
		if high >= 0 {
			b.give(high)
		}
	}
	a.o("ADD $%d, R1", bits*64)
	a.o("ADD $512, R15")
	a.loop("R17", "part"+p.format)
	a.end()
}

// take leaves bits of every byte in the lowest ones.
func (p packed) take(a *asm, src, dst, shift, width int, masks map[int]int) {
	if shift > 0 {
		a.ushr16b(dst, src, shift)
		src = dst
	}
	if shift+width < 8 {
		a.v(and, dst, src, masks[width])
	}
}

// e2m1 is the table of e2m1's values, doubled and less their least.
func (a *asm) e2m1() {
	for half, values := range [][8]uint64{{12, 13, 14, 15, 16, 18, 20, 24}, {12, 11, 10, 9, 8, 6, 4, 0}} {
		var x uint64
		for i, v := range values {
			x |= v << (8 * i)
		}
		fmt.Fprintf(a, "DATA e2m1<>+%d(SB)/8, $%#x\n", 8*half, x)
	}
	a.WriteString("GLOBL e2m1<>(SB), RODATA|NOPTR, $16\n\n")
}
