package main

// Codes of 2, 3, 5 and 6 bits lie in planes: lines that hold 4, 2 or 1 bits of every code (see Matrix in ../matrix.go), at
// the widths that their bits add up to. Those of e2m1 are one plane of 4 bits that number the values of a table.

// plane is width bits of every code, the lowest of which is bit at of it; its lines are first and up in a part of 32 columns.
type plane struct{ width, at, first int }

func (k kind) layout() []plane {
	switch k.bits() {
	case 2:
		return []plane{{2, 0, 0}}
	case 3:
		return []plane{{2, 0, 0}, {1, 2, 2}}
	case 5:
		return []plane{{4, 0, 0}, {1, 4, 4}}
	case 6:
		return []plane{{4, 0, 0}, {2, 4, 4}}
	case 8:
		return []plane{{8, 0, 0}}
	}
	return []plane{{4, 0, 0}}
}

func (k kind) e2m1() bool {
	return k == fastE2M1 || k == exactE2M1 || k == floatE2M1 || k == fastFloatE2M1
}

// top is the largest code.
func (k kind) top() int {
	if k.e2m1() {
		return 24
	}
	return 1<<k.bits() - 1
}

// unit is how many quads of columns fit sums of 16 bits: a pair of products is at most 2·top·127.
func (k kind) unit() int {
	for n := 8; n > 1; n /= 2 {
		if n*2*127*k.top() <= 1<<15-1 {
			return n
		}
	}
	return 1
}

// quad makes bytes of the codes of four columns, number q of eight, of half h of a panel. The part begins at SI. fixed is
// the first of the registers that planeMasks has filled; 0: there are none.
func (r routine) quad(a *asm, q, h, dst, tmp, fixed int) {
	for i, p := range r.kind.layout() {
		per := 8 / p.width // quads in a line
		at := sprint("%d(SI)", (p.first+q/per)*64+h*32)
		to, mask := dst, p.mask()
		if i > 0 {
			to = tmp
		}
		if fixed > 0 {
			mask = sprint("Y%d", fixed+i)
		}
		switch shift := q%per*p.width - p.at; {
		case shift == 0 && fixed > 0:
			a.o("VPAND %s, %s, Y%d", at, mask, to)
		case shift == 0:
			a.o("VMOVDQU %s, Y%d", at, to)
			a.o("VPAND %s, Y%d, Y%d", mask, to, to)
		default:
			op := "VPSRLW"
			if shift < 0 {
				op, shift = "VPSLLW", -shift
			}
			a.o("VMOVDQU %s, Y%d", at, to)
			a.o("%s $%d, Y%d, Y%d", op, shift, to, to)
			a.o("VPAND %s, Y%d, Y%d", mask, to, to)
		}
		if i > 0 {
			a.o("VPOR Y%d, Y%d, Y%d", tmp, dst, dst)
		}
	}
	if !r.kind.e2m1() {
		return
	}
	if fixed == 0 {
		a.o("VMOVDQU %s<>(SB), Y%d", r.kind.e2m1Table(), tmp)
	} else {
		tmp = fixed + 1
	}
	a.o("VPSHUFB Y%d, Y%d, Y%d", dst, tmp, dst)
}

// mask is the place of a plane's mask in memory.
func (p plane) mask() string { return sprint("plane%d<>(SB)", (1<<p.width-1)<<p.at) }

// planeMasks puts the planes' masks, and e2m1's table, in two registers from fixed.
func (r routine) planeMasks(a *asm, fixed int) {
	for i, p := range r.kind.layout() {
		a.o("VMOVDQU %s, Y%d", p.mask(), fixed+i)
	}
	if r.kind.e2m1() {
		a.o("VMOVDQU %s<>(SB), Y%d", r.kind.e2m1Table(), fixed+1)
	}
}

// prefetchPart is prefetch of a line of a part, if it has so many.
func (r routine) prefetchPart(a *asm, line int) {
	switch {
	case line >= r.kind.bits():
	case r.width == 64:
		r.prefetch(a, line*64)
	default:
		a.o("PREFETCHT0 %d(SI)", line*64+2048)
	}
}

// e2m1Values are the codes that four bits number: twice e2m1's values, less their least.
var e2m1Values = [16]int{12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0}

// planeConstants are masks of planes and e2m1's values, doubled and less their least, in vectors.
func (a *asm) planeConstants() {
	vector := func(name string, b func(i int) int) {
		for i := range 4 {
			var x uint64
			for j := range 8 {
				x |= uint64(b(8*i+j)) << (8 * j)
			}
			a.raw(sprint("DATA %s<>+%d(SB)/8, $%#x\n", name, 8*i, x))
		}
		a.raw(sprint("GLOBL %s<>(SB), RODATA|NOPTR, $32\n", name))
	}
	for _, m := range []int{3, 4, 15, 16, 48} {
		vector(sprint("plane%d", m), func(int) int { return m })
	}
	vector("ones", func(i int) int { return 1 - i%2 })
	vector("e2m1", func(i int) int { return e2m1Values[i%16] })
	vector("e2m1signed", func(i int) int { return (e2m1Values[i%16] - 12) & 255 })
	a.raw("\n")
}

// planeParts sums a group's integer products: in 16 bits over a unit of quads, then in 32.
func (r routine) planeParts(a *asm, pass int, l string) {
	n := r.rows * r.halves()
	w, tmp, x, t := 8, 10, 11, 12
	r.start(a, 4, w, l)
	r.firstPart(a, l)
	unit := r.kind.unit()
	for q := range r.kind.quads() {
		r.prefetchPart(a, q)
		for h := range r.halves() {
			r.quad(a, q, pass+h, w+h, tmp, 13)
		}
		for m := range r.rows {
			a.o("VPBROADCASTD %s, Y%d", r.x(m, q*4), x)
			for h := range r.halves() {
				if q%unit == 0 {
					a.o("VPMADDUBSW Y%d, Y%d, Y%d", x, w+h, r.dot(m, h))
					continue
				}
				a.o("VPMADDUBSW Y%d, Y%d, Y%d", x, w+h, t)
				a.o("VPADDW Y%d, Y%d, Y%d", t, r.dot(m, h), r.dot(m, h))
			}
		}
		if q%unit == unit-1 {
			for i := range n {
				a.o("VPMADDWD ones<>(SB), Y%d, Y%d", i, i)
				a.o("VPADDD Y%d, Y%d, Y%d", i, 4+i, 4+i)
			}
		}
	}
	r.nextPart(a, l, 8*r.kind.quads()*r.kind.bits())
	for i := range n {
		a.o("VMOVDQU Y%d, Y%d", 4+i, i)
	}
}

// exactPlanes is the sum over a group, column by column.
func (r routine) exactPlanes(a *asm, pass, w, v int, l string) {
	a.o("MOVQ mulArgs_lines(AX), CX")
	r.clearChains(a)
	a.label("part" + l)
	for q := range r.kind.quads() {
		r.prefetchPart(a, q)
		for h := range r.halves() {
			r.quad(a, q, pass+h, w+h, v, 12)
		}
		for col := range 4 {
			for h := range r.halves() {
				r.widen(a, col, w+h, v+h)
			}
			r.fma(a, v, col, q*16+col*4)
		}
	}
	a.o("ADDQ $%d, SI", 8*r.kind.quads()*r.kind.bits())
	r.advanceX(a, 16*r.kind.quads())
	a.o("DECQ CX")
	a.o("JNZ part%s", l)
}
