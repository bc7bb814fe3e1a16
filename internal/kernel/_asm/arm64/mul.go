package main

import "fmt"

// kind is what a routine multiplies: fast and exact codes, or dense floats. Bytes are codes that unpack has made them of.
type kind int

const (
	fast4 kind = iota
	fast8
	fastBytes
	exact4
	exact8
	exactBytes
	bf16
	f32
	kinds
)

func (k kind) String() string {
	return [...]string{"Fast4", "Fast8", "FastBytes", "Exact4", "Exact8", "ExactBytes", "BF16", "F32"}[k]
}

func (k kind) fast() bool  { return k <= fastBytes }
func (k kind) dense() bool { return k >= bf16 }
func (k kind) bytes() bool { return k == fastBytes || k == exactBytes }

// perLine is how many quads of columns a line of 64 bytes holds.
func (k kind) perLine() int {
	if k == fast4 || k == exact4 {
		return 2
	}
	return 1
}

// set is how integers are multiplied. Their order is that of the toggles in ../../mul_arm64.go.
type set int

const (
	neon    set = iota // SMULL: 8 products into 16 bits
	dotprod            // SDOT: four products into each 32-bit lane
	i8mm               // USMMLA: two rows of 8 codes by two rows of x
)

var sets = []set{neon, dotprod, i8mm}

func (s set) String() string { return [...]string{"NEON", "DotProd", "I8MM"}[s] }

// rows is the tallest tile of a kind, as many as leave all sums in registers; 0 where neon's serve. Of bytes, that is as many
// as the routines for many rows leave.
func (s set) rows(k kind) int {
	switch {
	case !k.fast() && s != neon:
		return 0
	case k == exactBytes:
		return wideRows - 1
	case k.fast() && k != fastBytes && s != neon:
		return 4
	}
	return 3
}

// routine is one inner product: rows activation rows against whole panels, with the result of mulGeneric to the bit.
//
// General registers: R0 arguments, R1 weights, R2 y of the panel, R4 to R6 scale, sum and offset, R7 the stride of their
// rows, R8 to R11 rows of x, R15 bytes of codes, R16 groups left, R17 parts left, R19 row stride of y, R20 panels left, R21
// whether scales are float32, R23 bytes of groups done, R25 the panel, R26 how codes are packed, R3, R22 and R24 scratch.
type routine struct {
	set  set
	kind kind
	rows int
}

func (r routine) name() string { return fmt.Sprintf("mul%s%sx%d", r.kind, r.set, r.rows) }

// vecs is how many of the four vectors of a line a pass takes.
func (r routine) vecs() int {
	if r.kind.fast() && r.set == neon && r.rows > 1 {
		return 2
	}
	return 4
}

// passes over a panel.
func (r routine) passes() int { return 4 / r.vecs() }

// keeps reports a routine with room for y in registers; others add to it in memory.
func (r routine) keeps() bool { return r.rows == 1 || r.rows == 2 && r.passes() == 1 && !r.paired() }

// paired reports USMMLA.
func (r routine) paired() bool { return r.kind.fast() && r.set == i8mm && r.rows > 1 }

// bank hands out vector registers.
type bank struct{ used [32]bool }

func (b *bank) one() int {
	for i, used := range b.used {
		if !used {
			b.used[i] = true
			return i
		}
	}
	panic("out of vector registers")
}

func (b *bank) take(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = b.one()
	}
	return out
}

func (b *bank) give(regs ...int) {
	for _, r := range regs {
		b.used[r] = false
	}
}

func x(m int) string { return fmt.Sprintf("R%d", 8+m) }

// emit writes the loop over panels, and passes over a panel.
func (r routine) emit(a *asm) {
	frame := 0
	if r.kind.bytes() {
		frame = unpackedBytes
	}
	a.framed(r.name(), "mulArgs", frame)
	a.o("MOVD mulArgs_w(R0), R1")
	a.o("MOVD mulArgs_y(R0), R2")
	a.o("MOVD mulArgs_panels(R0), R20")
	if r.rows > 1 {
		a.o("MOVD mulArgs_yStride(R0), R19")
	}
	if !r.kind.dense() {
		a.o("MOVD mulArgs_sum(R0), R5")
		a.wide("mulArgs", r.kind.bytes())
		if r.rows > 1 {
			a.o("MOVD mulArgs_gStride(R0), R7")
		}
	}
	if r.kind.fast() {
		a.o("MOVD mulArgs_scale(R0), R4")
		if r.offset() {
			a.o("MOVD mulArgs_offset(R0), R6")
		}
	}
	a.label("panel")
	for pass := range r.passes() {
		r.pass(a, pass)
	}
	a.o("ADD $64, R2")
	a.loop("R20", "panel")
	a.end()
}

// pass runs all groups of a panel, or of one half of it.
func (r routine) pass(a *asm, pass int) {
	if r.passes() > 1 {
		if pass == 0 {
			a.o("MOVD R1, R25")
		} else {
			a.o("MOVD R25, R1")
		}
	}
	a.o("MOVD mulArgs_x(R0), R8")
	if r.rows > 1 {
		a.o("MOVD mulArgs_xStride(R0), R3")
	}
	for m := 1; m < r.rows; m++ {
		a.o("ADD R3, %s, %s", x(m-1), x(m))
	}
	a.o("MOVD mulArgs_groups(R0), R16")
	g := &group{routine: r, asm: a, pass: pass, l: fmt.Sprint(pass)}
	if r.kind.dense() {
		g.dense()
		return
	}
	a.o("MOVD $0, R23")
	var below []int
	if r.kind.bytes() {
		below = g.take(unpackRegs)
	}
	g.mask()
	g.begin()
	g.give(below...)
	g.sums()
	g.finish()
}

// sums adds the products of a group to y.
func (g *group) sums() {
	switch {
	case !g.kind.fast():
		g.exact()
	case g.set == neon && g.kind == fast8:
		g.fastEpilogue(g.multiplied8())
	case g.set == neon:
		g.fastEpilogue(g.multiplied())
	case g.paired():
		g.fastEpilogue(g.multipliedPairs())
	default:
		g.fastEpilogue(g.dotted())
	}
}

// group writes the loop over the groups of a pass.
type group struct {
	routine
	*asm
	pass int
	l    string // ends labels
	bank
	and    int     // the constant that codes are taken apart with
	y      [][]int // [row][vector], if they are kept
	tall   bool    // scales stay where they are, for the next tile
	zipped bool    // bytes are what zip has made of them
}

// begin opens the loop, finish closes it.
func (g *group) begin() {
	if g.keeps() {
		for range g.rows {
			g.y = append(g.y, g.take(g.vecs()))
		}
		g.each(func(m, v int) { g.zero(g.y[m][v]) })
	} else {
		g.zero(31)
		g.memory(func(_, _, off int) { g.store(31, off, "R22") })
	}
	g.label("group" + g.l)
	g.o("MOVD mulArgs_lines(R0), R17")
	if g.kind.bytes() {
		g.bytesAt("R15", 0)
		g.o("CALL ·unpackNEON(SB)")
		g.o("MOVD mulArgs_lines(R0), R17")
		g.bytesAt("R15", 0)
	}
}

func (g *group) finish() {
	g.o("ADD $4, R23")
	g.loop("R16", "group"+g.l)
	if g.keeps() {
		g.memory(func(m, v, off int) { g.store(g.y[m][v], off, "R22") })
	}
}

func (g *group) each(f func(m, v int)) {
	for m := range g.rows {
		for v := range g.vecs() {
			f(m, v)
		}
	}
}

// memory visits the place of every vector of y, at off(R22).
func (g *group) memory(f func(m, v, off int)) {
	g.each(func(m, v int) {
		if v == 0 {
			g.row(m, "R22", "R2", "R19")
		}
		f(m, v, g.at(v))
	})
}

// row makes p point to row m, if it has been called for the row before.
func (g *group) row(m int, p, first, stride string) {
	if m == 0 {
		g.o("MOVD %s, %s", first, p)
	} else {
		g.o("ADD %s, %s", stride, p)
	}
}

// mask fills the register of the constant that codes are taken apart with, if there is one.
func (g *group) mask() {
	var w uint32
	switch {
	case g.kind == fast4:
		w = 0x0f0f0f0f
	case g.offset():
		w = 0x80808080
	case g.kind == exact4:
		w = 15
	case g.kind == exact8, g.kind == exactBytes:
		w = 255
	default:
		return
	}
	g.and = g.one()
	g.constant(g.and, w)
}

// quads is how many of them a turn of the inner loop takes.
func (r routine) quads() int {
	switch {
	case !r.kind.fast():
		return r.kind.perLine()
	case r.kind == fast4 && r.set == neon:
		return 8
	}
	return 4
}

// from points to the codes.
func (g *group) from() string {
	if g.kind.bytes() {
		return "R15"
	}
	return "R1"
}

// parts opens the inner loop, nextPart closes it.
func (g *group) parts() {
	if n := 8 / g.quads(); n > 1 {
		g.o("LSL $%d, R17", map[int]int{2: 1, 4: 2, 8: 3}[n])
	}
	g.label("part" + g.l)
}

func (g *group) nextPart() {
	g.o("ADD $%d, %s", g.quads()/g.kind.perLine()*64, g.from())
	g.loop("R17", "part"+g.l)
}

// codes leaves bytes of the codes of a line, four columns in a register. It may use both work registers.
func (g *group) codes(line, v int, work []int) []int {
	g.load(line*64+g.at(v), g.from(), work[0])
	switch {
	case g.kind == fast4:
		g.v(and, work[1], work[0], g.and)
		g.ushr16b(work[0], work[0], 4)
		return []int{work[1], work[0]}
	case g.offset():
		g.v(eor, work[0], work[0], g.and)
	}
	return work[:1]
}

func (g *group) advanceX(n int) {
	for m := range g.rows {
		g.o("ADD $%d, %s", n, x(m))
	}
}

// at is where in a line vector v lies.
func (g *group) at(v int) int { return (g.pass*g.vecs() + v) * 16 }

// scales reads the weight scales and biases of a group, either width, and steps over them.
func (g *group) scales() (scale, bias []int) {
	n := g.vecs()
	both := g.take(2 * n)
	g.o("CBNZ R21, wide%s", g.l)
	for i, d := range both {
		g.loadD(i/n*32+(g.pass*n+i%n)*8, "R1", d)
		g.v(shll, d, d)
	}
	if !g.tall {
		g.o("ADD $64, R1")
	}
	g.o("B scaled%s", g.l)
	g.label("wide" + g.l)
	for i, d := range both {
		g.load(i/n*64+(g.pass*n+i%n)*16, "R1", d)
	}
	if !g.tall {
		g.o("ADD $128, R1")
	}
	g.label("scaled" + g.l)
	return both[:n], both[n:]
}

// epilogue is the one formula: y = bias·sum + y, then term, which is to add what scale makes of the products. numbers
// names pointers whose entries of the row at hand term gets in lane 0 of registers.
func (g *group) epilogue(bias []int, numbers []string, term func(y, m, v int, number []int)) {
	regs, spare := g.take(1+len(numbers)), 0
	if !g.keeps() {
		spare = g.one()
	}
	for m := range g.rows {
		g.row(m, "R24", "R23", "R7")
		if !g.keeps() {
			g.row(m, "R22", "R2", "R19")
		}
		for i, p := range append([]string{"R5"}, numbers...) {
			g.o("FMOVS (%s)(R24), F%d", p, regs[i])
		}
		for v := range g.vecs() {
			y, off := spare, g.at(v)
			if g.keeps() {
				y = g.y[m][v]
			} else {
				g.load(off, "R22", y)
			}
			g.e(fmlaE, y, bias[v], regs[0], 0)
			term(y, m, v, regs[1:])
			if !g.keeps() {
				g.store(y, off, "R22")
			}
		}
	}
}
