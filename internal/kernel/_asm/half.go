package main

// The Go assembler lacks VDPBF16PS; dotPair writes its bytes. To every sum it adds the products of a pair of bfloat16 numbers in
// a lane of w with the pair at x, the same for all lanes.

// dotPair: the activations of row m are off bytes, the name of a parameter and a multiple of four, behind its pointer.
func (r routine) dotPair(a *asm, m, w, sum int) {
	const (
		rdx, r8, r9, r12, r15 = 2, 8, 9, 12, 15
		noIndex               = 4
	)
	base, index, scale := [...]int{rdx, r15, r12}[m/4], [...]int{noIndex, r8, r8, r9}[m%4], [...]int{0, 0, 1, 0}[m%4]
	not := func(n, bit int) int { return ^n >> bit & 1 } // as the prefix has upper bits of a number
	a.o("BYTE $0x62; BYTE $%#x; BYTE $%#x; BYTE $%#x; BYTE $0x52; BYTE $%#x; BYTE $%#x; BYTE $(off/4)",
		not(sum, 3)<<7|not(index, 3)<<6|not(base, 3)<<5|not(sum, 4)<<4|2, // map 0F38
		^w&15<<3|1<<2|2,        // F3
		2<<5|1<<4|not(w, 4)<<3, // 512 bits, broadcast
		1<<6|sum&7<<3|4,        // a distance in one byte, in units of the four that are read
		scale<<6|index&7<<3|base&7)
}

// dotMacros defines the products of a line of pairs of columns with all rows, for each chain.
func (r routine) dotMacros(a *asm) {
	for c := range chains {
		a.macro(sprint("DOT%d", c), "off", func() {
			for m := range r.rows {
				r.dotPair(a, m, dotLine+c, r.chain(m, 0, c))
			}
		})
	}
}

// dotLine is the register of a line of weights of the first chain.
const dotLine = 24

// dotPairs sums all columns of a panel, two pairs per round.
func (r routine) dotPairs(a *asm) {
	r.clearChains(a)
	a.label("part0")
	for c := range chains {
		r.prefetch(a, c*64)
		a.o("VMOVUPS %d(SI), Z%d", c*64, dotLine+c)
		a.o("DOT%d(%d)", c, c*4)
	}
	a.o("ADDQ $128, SI")
	r.advanceX(a, 8)
	a.o("DECQ BX")
	a.o("JNZ part0")
	r.addChains(a)
	r.storeChains(a, 0)
}
