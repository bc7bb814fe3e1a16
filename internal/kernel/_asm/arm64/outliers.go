package main

import "fmt"

// highRecord is the length of a record of one row: see outlierLists in ../../outliers.go. Here every row has a list of its own.
const highRecord = 12

// arg addresses a field of outlierArgs in the arguments.
func (g *group) arg(field string) string {
	of := "mulArgs"
	if g.tall {
		of = "wideArgs"
	}
	return fmt.Sprintf("%s_outlierArgs+outlierArgs_%s(R0)", of, field)
}

// highs adds 256 times the products of high parts to the sums of a group, once its codes have been read. R15, R17, R22 and R24
// are scratch, and so are R3 of 4-bit codes and R8 of zipped bytes.
func (g *group) highs(dot [][]int) {
	g.o("MOVD %s, R22", g.arg("records"))
	g.o("CBZ R22, noHighs%s", g.l)
	g.o("MOVD %s, R24", g.arg("heads"))
	g.o("ADD R23, R24")
	if !g.tall {
		g.o("ADD R4, R24")
	}
	for m := range g.rows {
		if m > 0 {
			g.o("ADD R7, R24")
		}
		g.o("MOVWU (R24), R22")
		g.o("CBZ R22, noHigh%s_%d", g.l, m)
		g.o("MOVD %s, R15", g.arg("records"))
		g.o("ADD R15, R22")
		g.rowHighs(dot[m], fmt.Sprintf("high%s_%d", g.l, m))
		g.label(fmt.Sprintf("noHigh%s_%d", g.l, m))
	}
	g.label("noHighs" + g.l)
}

// rowHighs does so for a row, with its records from R22 on.
func (g *group) rowHighs(dot []int, l string) {
	n := 1 // vectors of a sum
	if g.set == neon || g.zipped {
		n = 2 // which ADDP makes one of
	}
	sums, offset := make([][]int, len(dot)), []int{}
	for v := range sums {
		sums[v] = g.take(n)
	}
	if g.offset() {
		offset = g.take(1)
	}
	for _, s := range append(sums, offset) {
		for _, d := range s {
			g.zero(d)
		}
	}
	x, shift, codes := g.one(), g.one(), g.take(2)
	if g.kind.bytes() {
		g.bytesAt("R15", 0)
	} else {
		g.o("MOVD mulArgs_lines(R0), R17")
		g.o("SUB R17<<%d, R1, R15", map[kind]int{fast4: 8, fast8: 9}[g.kind])
	}
	g.label(l)
	g.highPlace(x, shift)
	for v := range dot {
		switch {
		case g.zipped:
			g.load(32*v, "R17", codes[0])
			g.load(32*v+16, "R17", codes[1])
			g.v(usdot, sums[v][0], codes[0], x)
			g.v(usdot, sums[v][1], codes[1], x)
			continue
		case g.kind == fast4:
			g.load(g.at(v), "R17", codes[0])
			g.v(ushl16b, codes[0], codes[0], shift)
			g.v(and, codes[0], codes[0], g.and)
		default:
			g.load(g.at(v), "R17", codes[0])
		}
		if g.offset() {
			g.v(eor, codes[0], codes[0], g.and)
		}
		g.highProducts(sums[v], codes[0], x, codes[1])
	}
	if g.offset() {
		g.highProducts(offset, g.and, x, codes[1])
	}
	g.o("MOVWU 4(R22), R17")
	g.o("ADD $%d, R22", highRecord)
	g.o("CBNZ R17, %s", l)
	if g.offset() && g.set == neon {
		g.v(addp4s, offset[0], offset[0], offset[0])
	}
	for v, d := range dot {
		s := sums[v][0]
		if n == 2 {
			g.v(addp4s, s, s, sums[v][1])
		}
		if g.offset() {
			g.v(sub4s, s, s, offset[0])
		}
		g.shl(s, s, 8)
		g.v(add4s, d, d, s)
		g.give(sums[v]...)
	}
	g.give(offset...)
	g.give(x, shift)
	g.give(codes...)
}

// highPlace points R17 to the line of the record's quad, tells how far 4-bit codes are shifted there, and reads the high parts.
// The place of a quad is 32 times its number.
func (g *group) highPlace(x, shift int) {
	g.o("MOVWU (R22), R17")
	switch {
	case g.zipped: // every other four bytes are those of the quad, the others are multiplied by zeros
		g.o("MOVWU 8(R22), R8")
		g.o("LSL R17, R8") // by its lowest six bits
		g.v(dup2d, x, 8)
		g.o("BIC $63, R17")
		g.o("ADD R17<<1, R15, R17")
		return
	case g.kind == fast4:
		g.o("AND $32, R17, R3")
		g.o("LSR $3, R3")
		g.o("NEG R3, R3")
		g.v(dupBytes, shift, 3)
		g.o("BIC $63, R17")
		g.o("ADD R15, R17")
	default:
		g.o("ADD R17<<1, R15, R17")
	}
	g.o("FMOVS 8(R22), F%d", x)
	if g.set == neon {
		g.dup(x, x, 0)
	}
}

// highProducts adds those of signed bytes, of any with USDOT. t is lost.
func (g *group) highProducts(sums []int, codes, x, t int) {
	switch g.set {
	case neon:
		for i, multiply := range []op{smull, smull2}[:len(sums)] {
			g.v(multiply, t, codes, x)
			g.v(sadalp, sums[i], t)
		}
	case dotprod:
		g.e(sdotE, sums[0], codes, x, 0)
	default:
		g.e(usdotE, sums[0], codes, x, 0)
	}
}
