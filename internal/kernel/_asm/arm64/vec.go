package main

import (
	"fmt"
	"math"
	"strings"
)

// param is an argument of a float kernel: a pointer, an int or a float32.
type param struct{ name, typ string }

func pointers(names ...string) []param {
	var out []param
	for _, n := range names {
		out = append(out, param{n, "unsafe.Pointer"})
	}
	return out
}

// fn opens a float kernel: its pointers and ints go to general registers from R0, its float32 numbers to vector registers
// from 31 down, in every lane.
func (f *floats) fn(name string, params ...param) {
	var list []string
	size := 0
	for _, p := range params {
		list = append(list, p.name+" "+p.typ)
		if size += 8; p.typ == "float32" {
			size -= 4
		}
	}
	decl := fmt.Sprintf("func %s(%s)", name, strings.Join(list, ", "))
	f.decls = append(f.decls, decl)
	fmt.Fprintf(f, "// %s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", decl, name, size)
	reg, vec, off := 0, 31, 0
	for _, p := range params {
		if p.typ == "float32" {
			f.o("FMOVS %s+%d(FP), F%d", p.name, off, vec)
			f.dup(vec, vec, 0)
			vec, off = vec-1, off+4
			continue
		}
		f.o("MOVD %s+%d(FP), R%d", p.name, off, reg)
		reg, off = reg+1, off+8
	}
}

// floats collects the float kernels and their declarations. All but quantize take a multiple of eight elements, at least
// one such, dot of 32; sums have the lanes of the generic twins.
type floats struct {
	asm
	decls []string
}

var (
	length = param{"n", "int"}
	number = func(name string) param { return param{name, "float32"} }
)

// each closes a loop over so many elements of float32 slices, whose pointers it moves on.
func (f *floats) each(n int, count string, ptrs ...string) {
	for _, p := range ptrs {
		f.o("ADD $%d, %s", 4*n, p)
	}
	f.o("SUB $%d, %s", n, count)
	f.o("CBNZ %s, loop", count)
}

func (f *floats) table() string {
	s := "import \"unsafe\"\n"
	for _, d := range f.decls {
		s += "\n//go:noescape\n" + d + "\n"
	}
	return s
}

func vec() *floats {
	f := &floats{}
	f.WriteString(header + "#include \"go_asm.h\"\n#include \"textflag.h\"\n\n")
	f.elementwise()
	f.dot()
	f.rope()
	f.exps()
	f.halves()
	f.quantize()
	f.cache()
	f.delta()
	f.scan()
	f.keyDelta()
	f.pack()
	f.read()
	f.peaks()
	return f
}

func (f *floats) elementwise() {
	f.fn("addNEON", append(pointers("dst", "a", "b"), length)...)
	f.label("loop")
	for h := range 2 {
		f.load(16*h, "R1", h)
		f.load(16*h, "R2", 2+h)
		f.v(fadd, h, h, 2+h)
		f.store(h, 16*h, "R0")
	}
	f.each(8, "R3", "R0", "R1", "R2")
	f.end()

	f.fn("axpyNEON", append(pointers("y", "x"), length, number("f"))...)
	f.label("loop")
	for h := range 2 {
		f.load(16*h, "R0", h)
		f.load(16*h, "R1", 2+h)
		f.v(fmla, h, 2+h, 31)
		f.store(h, 16*h, "R0")
	}
	f.each(8, "R2", "R0", "R1")
	f.end()

	f.fn("mulAddNEON", append(pointers("y", "a", "b"), length)...)
	f.label("loop")
	for h := range 2 {
		f.load(16*h, "R0", h)
		f.load(16*h, "R1", 2+h)
		f.load(16*h, "R2", 4+h)
		f.v(fmla, h, 2+h, 4+h)
		f.store(h, 16*h, "R0")
	}
	f.each(8, "R3", "R0", "R1", "R2")
	f.end()

	f.fn("scaleMulNEON", append(pointers("dst", "x", "w"), length, number("f"))...)
	f.label("loop")
	for h := range 2 {
		f.load(16*h, "R1", h)
		f.load(16*h, "R2", 2+h)
		f.v(fmul, h, h, 31)
		f.v(fmul, h, h, 2+h)
		f.store(h, 16*h, "R0")
	}
	f.each(8, "R3", "R0", "R1", "R2")
	f.end()
}

func (f *floats) dot() {
	f.fn("dotNEON", append(pointers("a", "b", "sum"), length)...)
	for i := range 8 {
		f.load(16*i, "R2", i)
	}
	f.label("loop")
	for i := range 8 {
		f.load(16*i, "R0", 8+i)
		f.load(16*i, "R1", 16+i)
		f.v(fmla, i, 8+i, 16+i)
	}
	f.each(32, "R3", "R0", "R1")
	for i := range 8 {
		f.store(i, 16*i, "R2")
	}
	f.end()
}

// rope: (a, b) becomes (a·cos - b·sin, a·sin + b·cos), the products with b rounded.
func (f *floats) rope() {
	f.fn("ropeNEON", append(pointers("lo", "hi", "cos", "sin"), length)...)
	f.label("loop")
	for h := range 2 {
		a, b, c, s, t := 8*h, 8*h+1, 8*h+2, 8*h+3, 8*h+4
		f.load(16*h, "R0", a)
		f.load(16*h, "R1", b)
		f.load(16*h, "R2", c)
		f.load(16*h, "R3", s)
		f.v(fmul, t, b, s)
		f.v(fneg, t, t)
		f.v(fmla, t, a, c)
		f.v(fmul, b, b, c)
		f.v(fmla, b, a, s)
		f.store(t, 16*h, "R0")
		f.store(b, 16*h, "R1")
	}
	f.each(8, "R4", "R0", "R1", "R2", "R3")
	f.end()
}

// Registers of what exp needs; 30 and 31 stay free for arguments.
const (
	eLog2e = 16 + iota
	eLn2Hi
	eLn2Lo
	eOne
	eLow
	eHigh
	eInf
	eP0 // to P5
)

func bits(x float64) uint32 { return math.Float32bits(float32(x)) }

// expConstants fills registers 16 to 28.
func (a *asm) expConstants() {
	for i, x := range []float64{1.44269504, 0.693359375, -2.12194440e-4, 1, -87.33654, 88.37626, math.Inf(1), 1.9875691500e-4,
		1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		a.constant(eLog2e+i, bits(x))
	}
}

// exp turns register x into e^x as exp32 does, by way of the four after it. The saturated lanes are repaired at the end: a
// NaN passes through the arithmetic and no comparison takes it.
func (a *asm) exp(x int) {
	n, r, p, t := x+1, x+2, x+3, x+4
	a.v(fmul, n, x, eLog2e)
	a.v(frintn, n, n)
	a.v(orr, r, x, x)
	a.v(fmls, r, n, eLn2Hi)
	a.v(fmls, r, n, eLn2Lo)
	a.v(orr, t, eP0+1, eP0+1)
	a.v(fmla, t, r, eP0)
	for i := 2; i < 6; i++ {
		p, t = t, p
		a.v(orr, t, eP0+i, eP0+i)
		a.v(fmla, t, p, r)
	}
	a.v(fmul, p, r, r)
	a.v(fmla, r, t, p)
	a.v(fadd, r, r, eOne)
	a.v(fcvtns, n, n)
	a.shl(n, n, 23)
	a.v(add4s, n, n, eOne)
	a.v(fmul, r, r, n) // times 2^n
	a.v(fcmgt, p, eLow, x)
	a.v(bic, r, r, p)
	a.v(fcmgt, p, x, eHigh)
	a.v(bit, r, eInf, p)
	a.v(fcmeq, p, x, x)
	a.v(bit, x, r, p)
}

func (f *floats) exps() {
	f.fn("expNEON", append(pointers("dst", "x", "sum"), length, number("off"))...)
	f.expConstants()
	f.load(0, "R2", 10)
	f.load(16, "R2", 11)
	f.label("loop")
	for h := range 2 {
		x := 5 * h
		f.load(16*h, "R1", x)
		f.v(fsub, x, x, 31)
		f.exp(x)
		f.store(x, 16*h, "R0")
		f.v(fadd, 10+h, 10+h, x)
	}
	f.each(8, "R3", "R0", "R1")
	f.store(10, 0, "R2")
	f.store(11, 16, "R2")
	f.end()

	f.fn("siluMulNEON", append(pointers("dst", "gate", "up"), length)...)
	f.expConstants()
	f.label("loop")
	for h := range 2 {
		x := 5 * h
		f.load(16*h, "R1", 10+h)
		f.load(16*h, "R2", 12+h)
		f.v(fneg, x, 10+h)
		f.exp(x)
		f.v(fadd, x, x, eOne)
		f.v(fdiv, x, 10+h, x)
		f.v(fmul, x, x, 12+h)
		f.store(x, 16*h, "R0")
	}
	f.each(8, "R3", "R0", "R1", "R2")
	f.end()
}

// halves: bfloat16 and float16.
func (f *floats) halves() {
	f.fn("toBF16NEON", append(pointers("dst", "src"), length)...)
	f.constant(29, 0x7fff)
	f.constant(30, 1)
	f.constant(31, 0x400000) // makes a NaN quiet
	f.label("loop")
	for h := range 2 {
		x, t, nan, ok := 4*h, 4*h+1, 4*h+2, 4*h+3
		f.load(16*h, "R1", x)
		f.ushr(t, x, 16)
		f.v(and, t, t, 30)
		f.v(add4s, t, t, 29)
		f.v(add4s, t, t, x)
		f.v(orr, nan, x, 31)
		f.v(fcmeq, ok, x, x)
		f.v(bsl, ok, t, nan)
		f.v([]op{shrn16, shrn162}[h], 8, ok)
	}
	f.store(8, 0, "R0")
	f.o("ADD $16, R0")
	f.each(8, "R2", "R1")
	f.end()

	f.fn("fromBF16NEON", append(pointers("dst", "src"), length)...)
	f.label("loop")
	f.load(0, "R1", 0)
	f.v(shll2, 1, 0)
	f.v(shll, 0, 0)
	f.store(0, 0, "R0")
	f.store(1, 16, "R0")
	f.o("ADD $16, R1")
	f.each(8, "R2", "R0")
	f.end()

	f.fn("toF16NEON", append(pointers("dst", "src"), length, number("limit"))...)
	f.v(fneg, 30, 31)
	f.label("loop")
	for h := range 2 {
		f.load(16*h, "R1", h)
		f.v(fmin, h, h, 31)
		f.v(fmax, h, h, 30)
		f.v([]op{fcvtn, fcvtn2}[h], 2, h)
	}
	f.store(2, 0, "R0")
	f.o("ADD $16, R0")
	f.each(8, "R2", "R1")
	f.end()
}

// quantize turns groups, a multiple of 16 numbers each, into codes. Magnitudes compare as integers, where a NaN is above
// everything and so is not lost.
func (f *floats) quantize() {
	f.fn("quantizeNEON", append(pointers("q", "scale", "sum", "offset", "x"), param{"groups", "int"}, param{"group", "int"})...)
	f.constant(31, 0x7fffffff)
	f.constant(30, bits(127))
	f.o("MOVW $%#x, R10", bits(1e-30))
	f.o("MOVW $%#x, R11", bits(math.Inf(1)))
	f.label("group")
	f.o("MOVD R4, R7")
	f.o("MOVD R6, R8")
	f.zero(0)
	f.label("top")
	for i := range 4 {
		f.load(16*i, "R7", 1+i)
		f.v(and, 1+i, 1+i, 31)
	}
	f.v(umax4s, 1, 1, 2)
	f.v(umax4s, 3, 3, 4)
	f.v(umax4s, 1, 1, 3)
	f.v(umax4s, 0, 0, 1)
	f.o("ADD $64, R7")
	f.o("SUB $16, R8")
	f.o("CBNZ R8, top")
	f.v(umaxv, 0, 0)
	f.o("FMOVS F0, R9")
	f.o("MOVD R6, R8")
	f.zero(5)
	f.zero(7)
	f.o("FMULS F0, F7, F7") // 0, or NaN
	f.o("CMPW R10, R9")
	f.o("BLO zeros")
	f.o("CMPW R11, R9")
	f.o("BHI zeros")
	f.o("FDIVS F0, F30, F6")
	f.o("FDIVS F30, F0, F7") // scale
	f.label("codes")
	for i := range 4 {
		f.load(16*i, "R4", 1+i)
		f.e(fmulE, 1+i, 1+i, 6, 0)
		f.v(fcvtns, 1+i, 1+i)
		f.v(add4s, 5, 5, 1+i)
	}
	f.v(sqxtn, 1, 1)
	f.v(sqxtn2, 1, 2)
	f.v(sqxtn, 3, 3)
	f.v(sqxtn2, 3, 4)
	f.v(sqxtnB, 1, 1)
	f.v(sqxtnB2, 1, 3)
	f.store(1, 0, "R0")
	f.o("ADD $16, R0")
	f.o("ADD $64, R4")
	f.o("SUB $16, R8")
	f.o("CBNZ R8, codes")
	f.label("sums")
	f.v(addv, 5, 5)
	f.o("FMOVS F5, R9")
	f.v(scvtf, 5, 5)
	f.o("FMULS F7, F5, F5")
	f.o("LSL $7, R9")
	f.o("FMOVS F7, (R1)")
	f.o("FMOVS F5, (R2)")
	f.o("MOVW R9, (R3)")
	for _, p := range []string{"R1", "R2", "R3"} {
		f.o("ADD $4, %s", p)
	}
	f.loop("R5", "group")
	f.end()
	f.label("zeros")
	f.store(5, 0, "R0")
	f.o("ADD $16, R0")
	f.o("ADD $64, R4")
	f.o("SUB $16, R8")
	f.o("CBNZ R8, zeros")
	f.o("B sums\n")
}

// cache: what storing rows of codes takes.
func (f *floats) cache() {
	f.fn("extremesNEON", append(pointers("out", "x"), length)...)
	f.load(0, "R1", 0)
	f.v(orr, 1, 0, 0)
	f.zero(2)
	f.label("loop")
	for h := range 2 {
		f.load(16*h, "R1", 3)
		f.v(fmin, 0, 0, 3)
		f.v(fmax, 1, 1, 3)
		f.v(fsub, 3, 3, 3)
		f.v(orr, 2, 2, 3) // 0, or the bits of a NaN
	}
	f.each(8, "R2", "R1")
	f.v(fminv, 0, 0)
	f.v(fmaxv, 1, 1)
	f.v(umaxv, 2, 2)
	for i := range 3 {
		f.o("FMOVS F%d, %d(R0)", i, 4*i)
	}
	f.end()

	code := func(off, d int) {
		f.load(off, "R1", d)
		f.v(fsub, d, d, 30)
		f.v(fdiv, d, d, 31)
		f.v(fmax, d, d, 29)
		f.v(fmin, d, d, 28)
		f.v(fcvtns, d, d) // of a NaN: 0
	}
	for _, bits4 := range []bool{false, true} {
		name, top, n := "codes8NEON", 255.0, 8
		if bits4 {
			name, top, n = "codes4NEON", 15, 16
		}
		f.fn(name, append(pointers("dst", "x"), length, number("scale"), number("bias"))...)
		f.zero(29)
		f.constant(28, bits(top))
		f.label("loop")
		for h := range 2 {
			code(16*h, h)
			if bits4 {
				code(32+16*h, 2+h)
				f.shl(2+h, 2+h, 4)
				f.v(orr, h, h, 2+h)
			}
		}
		f.v(xtn, 0, 0)
		f.v(xtn2, 0, 1)
		f.v(xtnB, 0, 0)
		f.o("FMOVD F0, (R0)")
		f.o("ADD $8, R0")
		f.each(n, "R2", "R1")
		f.end()
	}
}

// read loads a multiple of 256 bytes.
func (f *floats) read() {
	f.fn("readNEON", param{"b", "unsafe.Pointer"}, length)
	f.label("loop")
	for i := 0; i < 16; i += 2 {
		f.o("FLDPQ %d(R0), (F%d, F%d)", 16*i, i, i+1)
	}
	f.o("ADD $256, R0")
	f.o("SUB $256, R1")
	f.o("CBNZ R1, loop")
	f.end()
}

// peaks are loops of nothing but the instructions that products consist of, as many sums side by side as hide their latency.
func (f *floats) peaks() {
	for _, p := range []struct {
		name     string
		multiply []op
	}{
		{"int8LoopNEON", []op{smlal, smlal2}}, {"int8LoopDotProd", []op{sdotE}}, {"int8LoopI8MM", []op{usmmla}}, {"floatLoopNEON", []op{fmlaE}},
	} {
		f.fn(p.name, length)
		for i := range 32 {
			f.zero(i)
		}
		f.label("loop")
		for i := range peakSums {
			switch o := p.multiply[i%len(p.multiply)]; o {
			case sdotE, fmlaE:
				f.e(o, i, 30, 31, 0)
			default:
				f.v(o, i, 30, 31)
			}
		}
		f.loop("R0", "loop")
		f.end()
	}
}

const peakSums = 24
