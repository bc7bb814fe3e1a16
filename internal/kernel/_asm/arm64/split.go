package main

import "fmt"

// splits writes the routines that give the largest numbers of a group 15 bits: see splitArgs in ../../outliers.go.
func splits() []byte {
	a := text()
	a.WriteString("DATA quads<>+0(SB)/8, $0x100000000\nDATA quads<>+8(SB)/8, $0x300000002\nGLOBL quads<>(SB), RODATA|NOPTR, $16\n\n")
	for _, g := range []int{32, 64, 128} {
		a.split(g)
	}
	return a.Bytes()
}

// split counts for every quad those that are larger: so many have 15 bits where this one limits the codes. The quad of the least
// cost is taken. A loop as fewest's would go through nearly all quads of a group that is large as a whole.
//
// General registers: R0 arguments, R1 x, R2 and R3 bytes of codes and of high parts, R4 keys in memory, R5 counts loops down.
func (a *asm) split(group int) {
	var b bank
	vecs := group / 16 // of keys; so many times 16 numbers
	a.framed(fmt.Sprintf("split%dNEON", group), "splitArgs", group)
	a.fields("splitArgs", "x", "q", "high")
	a.bytesAt("R4", 0)
	keys, rank, t := b.take(vecs), b.take(vecs), b.take(4)
	number, one, floor := b.one(), b.one(), b.one()
	a.constant(number, 31)
	a.constant(one, 1)
	a.o("MOVD $quads<>(SB), R22")
	quads, four := b.one(), b.one()
	a.load(0, "R22", quads)
	a.constant(four, 4)
	for i, key := range keys {
		for k, d := range t {
			a.load(64*i+16*k, "R1", d)
			a.v(fabs, d, d)
		}
		a.v(umaxp4s, t[0], t[0], t[1])
		a.v(umaxp4s, t[2], t[2], t[3])
		a.v(umaxp4s, key, t[0], t[2])
		a.v(bic, key, key, number)
		a.v(orr, key, key, quads)
		a.v(add4s, quads, quads, four)
		a.store(key, 16*i, "R4")
		a.zero(rank[i])
	}
	b.give(quads, four)
	a.o("MOVD $%d, R5", group/4)
	a.label("rank")
	a.ld1r(t[0], 4)
	for i, key := range keys {
		a.v(cmhi, t[1], t[0], key)
		a.v(sub4s, rank[i], rank[i], t[1])
	}
	a.loop("R5", "rank")

	// fold leaves what f makes of the vectors, together, in t[0].
	fold := func(o op, f func(i, d int)) {
		f(0, t[0])
		for i := 1; i < vecs; i++ {
			f(i, t[1])
			a.v(o, t[0], t[0], t[1])
		}
	}
	fold(umax4s, func(i, d int) { a.v(orr, d, keys[i], number) })
	a.v(umaxv, t[0], t[0])
	a.dup(floor, t[0], 0)
	a.constant(t[1], 0x42fc0000) // 126, outlierReach
	a.v(fdiv, floor, floor, t[1])
	costs := b.take(vecs)
	a.o("FMOVS splitArgs_cost(R0), F%d", t[1])
	for i, c := range costs {
		a.v(orr, c, keys[i], number)
		a.v(fmax, c, c, floor)
		a.v(fmul, c, c, c)
		a.v(scvtf, t[2], rank[i])
		a.e(fmulE, t[2], t[2], t[1], 0)
		a.v(fadd, c, c, t[2])
	}
	least := b.one()
	fold(fmin, func(i, d int) { a.v(orr, d, costs[i], costs[i]) })
	a.v(fminv, t[0], t[0])
	a.dup(least, t[0], 0)
	fold(umin4s, func(i, d int) {
		a.v(fcmeq, d, costs[i], least)
		a.v(orn, d, rank[i], d)
	})
	a.v(uminv, t[0], t[0])
	best := least
	a.dup(best, t[0], 0)
	fold(orr, func(i, d int) {
		a.v(and, t[2], keys[i], number)
		a.v(ushl4s, t[2], one, t[2])
		a.v(cmhi, d, best, rank[i])
		a.v(and, d, d, t[2])
	})
	a.v(addv, t[0], t[0])
	a.o("FMOVS F%d, splitArgs_chosen(R0)", t[0])
	a.o("FMOVS F%d, R5", t[0])
	a.o("CBZ R5, done")
	fold(orr, func(i, d int) {
		a.v(cmeq, d, best, rank[i])
		a.v(and, d, d, keys[i])
	})
	a.v(umaxv, t[0], t[0])
	a.v(orr, t[0], t[0], number)
	a.v(fmax, t[0], t[0], floor)
	a.o("FMOVS F%d, splitArgs_limit(R0)", t[0])
	b.give(keys...)
	b.give(rank...)
	b.give(costs...)

	// A code is the lowest eight bits, and the high part what is above them: nothing in quads that are not chosen.
	inverse, least8, codes, highs, q, high := b.one(), b.one(), b.one(), b.one(), b.one(), b.one()
	a.constant(inverse, 0x42fe0000) // 127
	a.v(fdiv, inverse, inverse, t[0])
	a.constant(least8, 0x81818181) // -127
	a.zero(codes)
	a.zero(highs)
	a.o("MOVD $%d, R5", vecs)
	a.label("numbers")
	for k, d := range t {
		a.load(16*k, "R1", d)
		a.e(fmulE, d, d, inverse, 0)
		a.v(fcvtns, d, d)
	}
	for i := range 2 {
		d := t[2*i]
		a.v(xtn, d, d)
		a.v(xtn2, d, t[2*i+1])
		a.v([]op{xtnB, xtnB2}[i], q, d)
		a.v([]op{rshrn, rshrn2}[i], high, d)
	}
	a.v(smax16b, q, q, least8)
	a.store(q, 0, "R2")
	a.store(high, 0, "R3")
	a.v(saddlpB, q, q)
	a.v(sadalp, codes, q)
	a.v(saddlpB, high, high)
	a.v(sadalp, highs, high)
	a.o("ADD $64, R1")
	a.o("ADD $16, R2")
	a.o("ADD $16, R3")
	a.loop("R5", "numbers")
	a.v(addv, codes, codes)
	a.o("FMOVS F%d, splitArgs_codes(R0)", codes)
	a.v(addv, highs, highs)
	a.shl(highs, highs, 8)
	a.v(add4s, codes, codes, highs)
	a.o("FMOVS F%d, splitArgs_all(R0)", codes)
	a.label("done")
	a.end()
}
