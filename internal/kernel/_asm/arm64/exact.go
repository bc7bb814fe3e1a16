package main

// exact turns codes into floats column by column and sums their products in two chains, by column modulo two. Then
// y = bias·sum + y; y = d·(weight scale) + y.
func (g *group) exact() {
	chain := g.chains()
	xs, raw, w := g.take(g.rows), g.one(), g.take(2)
	g.parts()
	for half := range g.kind.perLine() {
		for m := range g.rows {
			g.load(half*16, x(m), xs[m])
		}
		for v := range g.vecs() {
			g.load(g.at(v), g.from(), raw)
			for i := range 4 {
				g.float(g.kind, half, i, raw, w[i%2], g.and)
				for m := range g.rows {
					g.e(fmlaE, chain[m][v][i%2], w[i%2], xs[m], i)
				}
			}
		}
	}
	g.advanceX(g.quads() * 16)
	g.nextPart()
	g.give(xs...)
	g.give(raw)
	g.give(w...)
	g.addChains(chain)
	scale, bias := g.scales()
	g.epilogue(bias, nil, func(y, m, v int, _ []int) { g.v(fmla, y, chain[m][v][0], scale[v]) })
}

// chains takes two cleared sums for every row and vector.
func (g *group) chains() [][][]int {
	chain := make([][][]int, g.rows)
	g.each(func(m, v int) {
		chain[m] = append(chain[m], g.take(2))
		g.zero(chain[m][v][0])
		g.zero(chain[m][v][1])
	})
	return chain
}

// addChains leaves the sum of both chains in the first one.
func (g *group) addChains(chain [][][]int) {
	g.each(func(m, v int) {
		c := chain[m][v]
		g.v(fadd, c[0], c[0], c[1])
		g.give(c[1])
	})
}

// float makes floats of column i of a quad of codes; those of 4 bits lie in a half of the bytes.
func (a *asm) float(k kind, half, i, src, dst, mask int) {
	width := 8 / k.perLine()
	shift, from := i*8+half*4, src
	if shift > 0 {
		a.ushr(dst, src, shift)
		from = dst
	}
	if shift+width < 32 {
		a.v(and, dst, from, mask)
	}
	a.v(scvtf, dst, dst)
}

// dense sums all columns of a panel in two chains, four columns per round.
func (g *group) dense() {
	mask := -1
	if g.kind == bf16 {
		mask = g.one()
		g.constant(mask, 0xffff0000)
	}
	chain := g.chains()
	xs, w := g.take(g.rows), g.take(2)
	g.label("part")
	for m := range g.rows {
		g.load(0, x(m), xs[m])
	}
	for pair := range 2 {
		for v := range g.vecs() {
			if g.kind == bf16 {
				g.load(pair*64+g.at(v), "R1", w[1])
				g.shl(w[0], w[1], 16)
				g.v(and, w[1], w[1], mask)
			} else {
				g.load(2*pair*64+g.at(v), "R1", w[0])
				g.load((2*pair+1)*64+g.at(v), "R1", w[1])
			}
			for i := range 2 {
				for m := range g.rows {
					g.e(fmlaE, chain[m][v][i], w[i], xs[m], 2*pair+i)
				}
			}
		}
	}
	g.advanceX(16)
	g.o("ADD $%d, R1", map[kind]int{bf16: 128, f32: 256}[g.kind])
	g.loop("R16", "part")
	g.addChains(chain)
	g.memory(func(m, v, off int) { g.store(chain[m][v][0], off, "R22") })
}
