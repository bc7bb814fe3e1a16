package main

import "fmt"

// kind is what a routine multiplies: fast and exact codes, or dense floats. Their order is that of productKind in
// ../mul_amd64.go.
type kind int

const (
	fast4 kind = iota
	fast8
	exact4
	exact8
	bf16
	f32
	fast2 // from here on codes in planes: see planes.go and, for AVX-512, tile.go and planes512.go
	fast3
	fast5
	fast6
	fastE2M1
	exact2
	exact3
	exact5
	exact6
	exactE2M1
	floatE2M1 // small floats with scales alone: see small.go
	floatE4M3
	fastFloatE2M1
	dots // bfloat16 weights and activations: see half.go
	kinds
)

func (k kind) String() string {
	return [...]string{"Fast4", "Fast8", "Exact4", "Exact8", "BF16", "F32", "Fast2", "Fast3", "Fast5", "Fast6", "FastE2M1",
		"Exact2", "Exact3", "Exact5", "Exact6", "ExactE2M1", "FloatE2M1", "FloatE4M3", "FastFloatE2M1",
		"Dots"}[k]
}

func (k kind) fast() bool   { return k <= fast8 || k >= fast2 && k < exact2 || k == fastFloatE2M1 }
func (k kind) dense() bool  { return k == bf16 || k == f32 || k == dots }
func (k kind) planes() bool { return k >= fast2 && k != floatE4M3 && k != dots }

// bits of a code as it is stored.
func (k kind) bits() int {
	switch {
	case k.small():
		return [...]int{4, 8, 4}[k-floatE2M1]
	case k.planes():
		return [...]int{2, 3, 5, 6, 4}[(k-fast2)%(exact2-fast2)]
	}
	return [...]int{4, 8, 4, 8, 16, 32}[k]
}

// set is an instruction set. Their order is that of the toggles in ../mul_amd64.go.
type set struct {
	name  string
	width int  // bytes of a vector register
	vnni  bool // VPDPBUSD
	bf16  bool // VDPBF16PS
}

var sets = []set{{"AVX2", 32, false, false}, {"AVXVNNI", 32, true, false}, {"AVX512", 64, false, false}, {"VNNI", 64, true, false}, {"BF16", 64, true, true}}

// chains is how many separate float sums an output has, by column modulo chains.
const chains = 2

// rows is the tallest tile of a kind: as many as leave all sums in registers; 0 where those of the set before serve, or
// there are none.
func (s set) rows(k kind) int {
	switch {
	case s.bf16 && k == dots:
		return 12
	case s.bf16 || k == dots || s.vnni && !k.fast():
		return 0
	case s.width == 64 && (s.vnni || !k.fast() || k.small()):
		return 12
	case s.width == 64:
		return 8
	case s.vnni:
		return 4
	case k.planes(): // from three and four rows on wide.go and tall.go are faster
		return 2
	case k.dense():
		return 3
	}
	return 4
}

func (s set) v(n int) string {
	if s.width == 64 {
		return fmt.Sprintf("Z%d", n)
	}
	return fmt.Sprintf("Y%d", n)
}

// routine is one inner product: rows activation rows against whole panels.
//
// General registers: AX arguments, SI weights, DX and R15 rows 0-3 and 4-7 of x, R8 and R9 one and three row strides,
// DI y of the panel, R10 scales (exact: sums) of the group, R11 and R12 distances from there to sums and offsets (exact: R12 rows
// 8-11 of x), R13 their row stride, BX groups left, CX and R14 scratch.
type routine struct {
	set
	kind kind
	rows int
}

func (r routine) name() string { return fmt.Sprintf("mul%s%sx%d", r.kind, r.set.name, r.rows) }

// halves is how many registers one column of a panel takes at a time: AVX2 needs two, and exact tiles of three and
// four rows of codes do one half of the panel after the other, to keep all chains in registers.
func (r routine) halves() int {
	if r.width == 64 || !r.kind.fast() && !r.kind.dense() && r.rows > 2 {
		return 1
	}
	return 2
}

// passes over a panel.
func (r routine) passes() int { return 64 / r.width / r.halves() }

// x addresses bytes off, a number or a name, of activation row m.
func (r routine) x(m int, off any) string {
	base := [...]string{"DX", "R15", "R12"}[m/4]
	switch m % 4 {
	case 1:
		return fmt.Sprintf("%v(%s)(R8*1)", off, base)
	case 2:
		return fmt.Sprintf("%v(%s)(R8*2)", off, base)
	case 3:
		return fmt.Sprintf("%v(%s)(R9*1)", off, base)
	}
	return fmt.Sprintf("%v(%s)", off, base)
}

func (r routine) advanceX(a *asm, n int) {
	a.o("ADDQ $%d, DX", n)
	if r.rows > 4 {
		a.o("ADDQ $%d, R15", n)
	}
	if r.rows > 8 {
		a.o("ADDQ $%d, R12", n)
	}
}

// prefetch asks for the line of weights that is 2 KiB further on. On Zen 3 a one-row AVX2 product from memory runs at
// 75 % of a plain read without it and at 96 % with it; 1 KiB gives 87 %, 4 KiB 93 %. With AVX-512 it is what R14 says: see
// weightsAhead.
func (r routine) prefetch(a *asm, off int) {
	switch {
	case r.fetches():
		a.o("PREFETCHT0 %d(SI)(R14*1)", off)
	case r.width == 32 && r.passes() == 1:
		a.o("PREFETCHT0 %d(SI)", off+2048)
	}
}

// fetches reports routines that need that.
func (r routine) fetches() bool {
	return r.width == 64 && (r.rows > 1 || r.kind != fast8 && r.kind != f32)
}

// ahead puts it there.
func (r routine) ahead(a *asm) {
	if r.fetches() {
		a.o("MOVQ ·weightsAhead(SB), R14")
	}
}

func (r routine) zero(a *asm, n int) {
	if r.width == 64 {
		a.o("VPXORD Z%d, Z%d, Z%d", n, n, n)
	} else {
		a.o("VPXOR Y%d, Y%d, Y%d", n, n, n)
	}
}

func (r routine) and(a *asm, mask, src, dst int) {
	op := "VPAND"
	if r.width == 64 {
		op = "VPANDD"
	}
	a.o("%s %s, %s, %s", op, r.v(mask), r.v(src), r.v(dst))
}
