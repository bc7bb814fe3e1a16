package main

import (
	"fmt"
	"math"
)

// Tile shapes: as many sums as leave room for one operand of each side.
const (
	scoreRows  = 3 // queries, by 4 keys
	valueRows  = 6 // queries, by 16 columns
	rowQueries = 2 // that go past rows as they are stored
)

// rowBytes is a row of scores.
const rowBytes = 64 * 4

// fields loads arguments to general registers from R1.
func (a *asm) fields(args string, names ...string) {
	for i, n := range names {
		a.o("MOVD %s_%s(R0), R%d", args, n, 1+i)
	}
}

// scores writes the products of groups of queries with groups of four keys of a widened tile: eight lanes per pair, folded
// at the end as reduceScore does.
func (a *asm) scores(rows int) {
	a.text(fmt.Sprintf("attnScores%dNEON", rows), "attnArgs")
	a.fields("attnArgs", "q", "s", "qStride", "groups")
	var b bank
	acc, q, k := a.lanes(&b, rows), b.take(rows), b.take(2)
	a.label("queries")
	a.o("MOVD attnArgs_k(R0), R5")
	a.o("MOVD attnArgs_keys(R0), R6")
	a.o("MOVD R2, R7")
	a.label("keys")
	for r := range rows {
		if r == 0 {
			a.o("MOVD R1, R8")
		} else {
			a.o("ADD R3, R%d, R%d", 7+r, 8+r)
		}
	}
	a.o("MOVD attnArgs_steps(R0), R17")
	a.clear(acc)
	a.label("loop")
	for part := range 4 {
		for r := range rows {
			a.load(16*part, fmt.Sprintf("R%d", 8+r), q[r])
		}
		for i := range 4 {
			a.load(part/2*128+32*i+part%2*16, "R5", k[i%2])
			for r := range rows {
				a.v(fmla, acc[r][i][part%2], k[i%2], q[r])
			}
		}
	}
	for r := range rows {
		a.o("ADD $64, R%d", 8+r)
	}
	a.o("ADD $256, R5")
	a.loop("R17", "loop")
	for r := range rows {
		a.fold4(acc[r], k[0])
		a.store(acc[r][0][0], rowBytes*r, "R7")
	}
	a.o("ADD $16, R7")
	a.loop("R6", "keys")
	a.o("ADD $%d, R2", rowBytes*rows)
	for range rows {
		a.o("ADD R3, R1")
	}
	a.loop("R4", "queries")
	a.end()
}

// lanes takes sums of [query][key][half of eight lanes].
func (a *asm) lanes(b *bank, rows int) [][4][2]int {
	acc := make([][4][2]int, rows)
	for r := range acc {
		for i := range acc[r] {
			acc[r][i] = [2]int(b.take(2))
		}
	}
	return acc
}

func (a *asm) clear(acc [][4][2]int) {
	for _, row := range acc {
		for _, s := range row {
			a.zero(s[0])
			a.zero(s[1])
		}
	}
}

// fold4 leaves the sums of four keys in the first register.
func (a *asm) fold4(s [4][2]int, t int) {
	for h := range 2 {
		for i := 0; i < 4; i += 2 {
			x, y := s[i][h], s[i+1][h]
			a.v(zip1Pairs, t, x, y)
			a.v(zip2Pairs, x, x, y)
			a.v(fadd, x, t, x)
		}
		a.v(faddp, s[0][h], s[0][h], s[2][h])
	}
	a.v(fadd, s[0][0], s[0][0], s[0][1])
}

// values adds weighted rows of a widened tile to the sums of groups of queries, strips of 16 columns outside so that
// one strip of values stays in the nearest cache.
func (a *asm) values(rows int) {
	a.text(fmt.Sprintf("attnValues%dNEON", rows), "attnArgs")
	a.fields("attnArgs", "v", "acc", "accStride", "vStride", "strips")
	var b bank
	acc, v, p := b.take(4*rows), b.take(4), b.take(4)
	a.label("strip")
	a.o("MOVD attnArgs_s(R0), R6")
	a.o("MOVD attnArgs_groups(R0), R16")
	a.o("MOVD R2, R8")
	a.label("queries")
	a.rowPointers(rows, "R3")
	at := func(i int) string { return fmt.Sprintf("R%d", 8+i/4) }
	for i, d := range acc {
		a.load(16*(i%4), at(i), d)
	}
	a.o("MOVD R1, R14")
	a.o("MOVD R6, R15")
	a.o("MOVD attnArgs_positions(R0), R17")
	a.label("loop")
	for i := range 4 {
		a.load(16*i, "R14", v[i])
	}
	for r := range rows {
		a.o("FMOVS %d(R15), F%d", rowBytes*r, p[r%4])
		for i := range 4 {
			a.e(fmlaE, acc[4*r+i], v[i], p[r%4], 0)
		}
	}
	a.o("ADD $64, R14")
	a.o("ADD $4, R15")
	a.loop("R17", "loop")
	for i, d := range acc {
		a.store(d, 16*(i%4), at(i))
	}
	a.o("ADD $%d, R6", rowBytes*rows)
	a.o("ADD R3, R%d, R8", 7+rows)
	a.loop("R16", "queries")
	a.o("ADD $64, R2")
	a.o("ADD R4, R1")
	a.loop("R5", "strip")
	a.end()
}

// rowPointers sets R9 and those after it to the rows after that at R8.
func (a *asm) rowPointers(rows int, stride string) {
	for r := 1; r < rows; r++ {
		a.o("ADD %s, R%d, R%d", stride, 7+r, 8+r)
	}
}

// softmax turns rows of 64 scores into weights: see softmax in package kernel.
func (a *asm) softmax() {
	const scale, top, lanes, sum, f = 31, 30, 10, 12, 13
	a.text("attnSoftmaxNEON", "attnArgs")
	a.fields("attnArgs", "s", "max", "sum", "acc", "groups", "accStride")
	a.o("FMOVS attnArgs_scale(R0), F%d", scale)
	a.expConstants()
	a.label("row")
	a.o("FMOVS (R2), F%d", top)
	a.dup(top, top, 0)
	for i := range 16 {
		x := i % 4
		a.load(16*i, "R1", x)
		a.e(fmulE, x, x, scale, 0)
		a.v(fmaxnm, top, top, x) // passes over a NaN
	}
	a.v(fmaxnmv, top, top)
	a.dup(top, top, 0)
	// All scores -Inf or NaN: weights 0 or NaN, not Inf-Inf.
	a.v(fneg, 0, eInf)
	a.v(fcmeq, 0, 0, top)
	a.v(bic, top, top, 0)
	a.zero(lanes)
	a.zero(lanes + 1)
	a.o("MOVD $8, R17")
	a.label("loop")
	for h := range 2 {
		x := 5 * h
		a.load(16*h, "R1", x)
		a.e(fmulE, x, x, scale, 0)
		a.v(fsub, x, x, top)
		a.exp(x)
		a.store(x, 16*h, "R1")
		a.v(fadd, lanes+h, lanes+h, x)
	}
	a.o("ADD $32, R1")
	a.loop("R17", "loop")
	a.v(fadd, lanes, lanes, lanes+1)
	a.v(zip2Pairs, lanes+1, lanes, lanes)
	a.v(fadd, lanes, lanes, lanes+1)
	a.v(faddp, lanes, lanes, lanes)
	a.o("FMOVS (R3), F%d", sum)
	a.o("FMOVS (R2), F0")
	a.o("FCMPS F%d, F0", top)
	a.o("BEQ add")
	// A new maximum: what was summed before shrinks.
	a.o("FMOVS F%d, (R2)", top)
	a.dup(0, 0, 0)
	a.v(fsub, 0, 0, top)
	a.exp(0)
	a.v(fmul, sum, sum, 0)
	a.o("MOVD R4, R7")
	a.o("MOVD attnArgs_strips(R0), R17")
	a.label("shrink")
	for i := range 4 {
		a.load(16*i, "R7", 1+i)
		a.v(fmul, 1+i, 1+i, 0)
		a.store(1+i, 16*i, "R7")
	}
	a.o("ADD $64, R7")
	a.loop("R17", "shrink")
	a.label("add")
	a.v(fadd, sum, sum, lanes)
	a.o("FMOVS F%d, (R3)", sum)
	a.o("ADD $4, R2")
	a.o("ADD $4, R3")
	a.o("ADD R6, R4")
	a.loop("R5", "row")
	a.end()
}

// softcap turns scores into cap·tanh(score·scale/cap): see tanh32.
func (a *asm) softcap() {
	const x, z, p, t, sign, tanh, edge, minusTwo, capped, scale = 5, 6, 7, 8, 9, 10, 15, 29, 30, 31
	a.text("attnSoftcapNEON", "attnArgs")
	a.fields("attnArgs", "s", "groups")
	a.o("LSL $4, R2") // groups are of 64 scores
	a.o("FMOVS attnArgs_scale(R0), F%d", scale)
	a.o("FMOVS attnArgs_cap(R0), F%d", capped)
	a.dup(capped, capped, 0)
	a.expConstants()
	a.constant(sign, 0x80000000)
	for i, c := range []float64{-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1} {
		a.constant(tanh+i, math.Float32bits(float32(c)))
	}
	a.constant(edge, bits(0.625))
	a.constant(minusTwo, bits(-2))
	a.label("loop")
	a.load(0, "R1", x)
	a.e(fmulE, x, x, scale, 0)
	a.v(fdiv, x, x, capped)
	// Far from 0: 1 - 2e/(1+e) with e = exp(-2|x|), and the sign of x.
	a.v(fabs, 0, x)
	a.v(fmul, 0, 0, minusTwo)
	a.exp(0)
	a.v(fadd, 1, 0, 0)
	a.v(fadd, 0, 0, eOne)
	a.v(fdiv, 1, 1, 0)
	a.v(fsub, 1, eOne, 1)
	a.v(orr, 0, sign, sign)
	a.v(bsl, 0, x, 1)
	// Near 0: a polynomial of x².
	a.v(fmul, z, x, x)
	a.v(orr, p, tanh, tanh)
	sum, next := p, t
	for i := 1; i < 5; i++ {
		a.v(orr, next, tanh+i, tanh+i)
		a.v(fmla, next, sum, z)
		sum, next = next, sum
	}
	a.v(fmul, sum, sum, z)
	a.v(orr, next, x, x)
	a.v(fmla, next, sum, x)
	a.v(fabs, 1, x)
	a.v(fcmgt, 1, edge, 1)
	a.v(bit, 0, next, 1)
	a.v(fmul, 0, 0, capped)
	a.store(0, 0, "R1")
	a.o("ADD $16, R1")
	a.loop("R2", "loop")
	a.end()
}
