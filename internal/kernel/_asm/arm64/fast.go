package main

// offset reports sums of code-128: SMULL and SDOT take signed bytes, and 128·Σq is added once per group.
func (r routine) offset() bool { return r.kind == fast8 && r.set != i8mm }

// The functions of this file leave a group's integer sums, which are exact in any order, as [row][vector].

// dotted: SDOT adds four products of signed bytes to each 32-bit lane, USDOT takes codes as they are. Few rows alternate
// between two sums to hide the latency.
func (g *group) dotted() [][]int {
	sums := 1
	if g.rows <= 2 {
		sums = 2
	}
	dot := make([][]int, sums*g.rows)
	for i := range dot {
		dot[i] = g.take(g.vecs())
		g.startSums(dot[i], i)
	}
	xs, work := g.take(g.rows), g.take(2)
	multiply := sdotE
	if g.set == i8mm {
		multiply = usdotE
	}
	g.parts()
	for m := range g.rows {
		g.load(0, x(m), xs[m])
	}
	for line := range 4 / g.kind.perLine() {
		for v := range g.vecs() {
			for i, w := range g.codes(line, v, work) {
				quad := line*g.kind.perLine() + i
				for m := range g.rows {
					g.e(multiply, dot[quad%sums*g.rows+m][v], w, xs[m], quad)
				}
			}
		}
	}
	g.advanceX(16)
	g.nextPart()
	g.give(xs...)
	g.give(work...)
	if sums == 2 {
		g.each(func(m, v int) { g.v(add4s, dot[m][v], dot[m][v], dot[g.rows+m][v]) })
		for _, d := range dot[g.rows:] {
			g.give(d...)
		}
	}
	return dot[:g.rows]
}

// startSums clears the sums of a row; those of code-128 begin with the offset.
func (g *group) startSums(dot []int, m int) {
	if !g.offset() || m >= g.rows {
		for _, d := range dot {
			g.zero(d)
		}
		return
	}
	g.row(m, "R24", "R23", "R7")
	g.o("FMOVS (R6)(R24), F%d", dot[len(dot)-1])
	for _, d := range dot {
		g.dup(d, dot[len(dot)-1], 0)
	}
}

// multipliedPairs: USMMLA multiplies two rows of eight codes with two rows of x. An odd row takes the place of its own
// neighbour.
func (g *group) multipliedPairs() [][]int {
	pairs := (g.rows + 1) / 2
	sum := make([][][2]int, pairs) // of two weight rows by two rows each
	xs := make([][]int, pairs)
	for p := range pairs {
		for range g.vecs() {
			two := [2]int(g.take(2))
			sum[p] = append(sum[p], two)
			g.zero(two[0])
			g.zero(two[1])
		}
		xs[p] = g.take(2)
	}
	work := g.take(4)
	g.parts()
	for p := range pairs {
		g.load(0, x(2*p), xs[p][0])
		other := xs[p][0]
		if 2*p+1 < g.rows {
			other = work[0]
			g.load(0, x(2*p+1), other)
		}
		g.v(zip2Pairs, xs[p][1], xs[p][0], other)
		g.v(zip1Pairs, xs[p][0], xs[p][0], other)
	}
	for eight := range 2 {
		for v := range g.vecs() {
			w := work[2:]
			switch {
			case g.zipped:
				g.load(eight*128+32*v, "R15", w[0])
				g.load(eight*128+32*v+16, "R15", w[1])
			case g.kind == fast4:
				quads := g.codes(eight, v, work)
				g.v(zip1, w[0], quads[0], quads[1])
				g.v(zip2, w[1], quads[0], quads[1])
			default:
				g.codes(2*eight, v, work)
				g.codes(2*eight+1, v, work[1:])
				g.v(zip1, w[0], work[0], work[1])
				g.v(zip2, w[1], work[0], work[1])
			}
			for p := range pairs {
				g.v(usmmla, sum[p][v][0], w[0], xs[p][eight])
				g.v(usmmla, sum[p][v][1], w[1], xs[p][eight])
			}
		}
	}
	g.advanceX(16)
	g.nextPart()
	for p := range pairs {
		g.give(xs[p]...)
	}
	g.give(work...)
	dot := make([][]int, 2*pairs)
	spare := g.one()
	for p, row := range sum {
		for _, s := range row {
			g.v(uzp2, spare, s[0], s[1])
			g.v(uzp1, s[0], s[0], s[1])
			dot[2*p], dot[2*p+1] = append(dot[2*p], s[0]), append(dot[2*p+1], spare)
			spare = s[1]
		}
	}
	g.give(spare)
	for _, d := range dot[g.rows:] {
		g.give(d...)
	}
	return dot[:g.rows]
}

// multiplied: SMULL and SMLAL leave products of four columns of two rows in 16 bits: eight of
// 4-bit codes are at most 8·15·127, four of the bytes 4·63·127.
func (g *group) multiplied() [][]int {
	dot, short := make([][]int, g.rows), make([][][]int, g.rows)
	for m := range g.rows {
		dot[m] = g.take(g.vecs())
		for v := range g.vecs() {
			g.zero(dot[m][v])
			short[m] = append(short[m], g.take(2))
		}
	}
	work, bytes := make([][]int, g.vecs()), g.one()
	for v := range work {
		work[v] = g.take(g.kind.perLine())
	}
	g.parts()
	quad := 0
	for line := range g.quads() / g.kind.perLine() {
		codes := make([][]int, g.vecs())
		for v := range codes {
			codes[v] = g.codes(line, v, work[v])
		}
		for i := range codes[0] {
			multiply, multiply2 := smlal, smlal2
			if quad == 0 {
				multiply, multiply2 = smull, smull2
			}
			quad++
			for m := range g.rows {
				g.ld1r(bytes, 8+m)
				for v := range g.vecs() {
					g.v(multiply, short[m][v][0], codes[v][i], bytes)
					g.v(multiply2, short[m][v][1], codes[v][i], bytes)
				}
			}
		}
	}
	g.each(func(m, v int) {
		s := short[m][v]
		g.v(saddlp, s[0], s[0])
		g.v(saddlp, s[1], s[1])
		g.v(addp4s, s[0], s[0], s[1])
		g.v(add4s, dot[m][v], dot[m][v], s[0])
	})
	g.nextPart()
	g.each(func(m, v int) { g.give(short[m][v]...) })
	for _, w := range work {
		g.give(w...)
	}
	g.give(bytes)
	return dot
}

// multiplied8: products of code-128 are at most 128·127, so two of them fit 16 bits.
func (g *group) multiplied8() [][]int {
	sum, dot := make([][][]int, g.rows), make([][]int, g.rows)
	for m := range g.rows {
		for v := range g.vecs() {
			sum[m] = append(sum[m], g.take(2))
			g.zero(sum[m][v][0])
			g.zero(sum[m][v][1])
			dot[m] = append(dot[m], sum[m][v][0])
		}
	}
	xs, w, short := g.take(2*g.rows), g.take(2), g.take(2)
	g.parts()
	for line := 0; line < 4; line += 2 {
		for m := range g.rows {
			g.ld1r(xs[2*m], 8+m)
			g.ld1r(xs[2*m+1], 8+m)
		}
		for v := range g.vecs() {
			for i := range 2 {
				g.codes(line+i, v, w[i:])
			}
			for m := range g.rows {
				g.v(smull, short[0], w[0], xs[2*m])
				g.v(smull2, short[1], w[0], xs[2*m])
				g.v(smlal, short[0], w[1], xs[2*m+1])
				g.v(smlal2, short[1], w[1], xs[2*m+1])
				g.v(sadalp, sum[m][v][0], short[0])
				g.v(sadalp, sum[m][v][1], short[1])
			}
		}
	}
	g.nextPart()
	for m := range g.rows {
		g.row(m, "R24", "R23", "R7")
		g.o("FMOVS (R6)(R24), F%d", w[0])
		g.dup(w[0], w[0], 0)
		for v := range g.vecs() {
			s := sum[m][v]
			g.v(addp4s, s[0], s[0], s[1])
			g.v(add4s, s[0], s[0], w[0])
			g.give(s[1])
		}
	}
	g.give(xs...)
	g.give(w...)
	g.give(short...)
	return dot
}

// fastEpilogue: y = bias·sum + y; y = D·(weight scale · activation scale) + y.
func (g *group) fastEpilogue(dot [][]int) {
	g.highs(dot)
	scale, bias := g.scales()
	t := g.one()
	g.epilogue(bias, []string{"R4"}, func(y, m, v int, number []int) {
		g.e(fmulE, t, scale[v], number[0], 0)
		g.v(scvtf, dot[m][v], dot[m][v])
		g.v(fmla, y, dot[m][v], t)
	})
}
