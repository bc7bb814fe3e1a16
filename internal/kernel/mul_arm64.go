//go:build arm64 && !purego

package kernel

import "golang.org/x/sys/cpu"

// routine numbers a product routine of mul_arm64_table.go; 0 is the generic one.
type routine int

// Toggles: which assembly may run. mulSet indexes mulBase, -1 for none.
var (
	useNEON bool
	mulSet  int
)

// setToggles selects a level: 0 generic, 1 NEON, 2 the same with SDOT, 3 also with USMMLA.
func setToggles(level int) { useNEON, mulSet = level > 0, level-1 }

// archImpls: every arm64 CPU has NEON. Only integer products differ, so that in exact precision all three have the same
// bits. None has run on hardware yet: they pass their tests under emulation, where no time can be taken.
func archImpls() []impl {
	dot := cpu.ARM64.HasASIMDDP
	return []impl{
		{name: "neon", usable: true, enable: func() { setToggles(1) }},
		{name: "dotprod", usable: dot, enable: func() { setToggles(2) }},
		{name: "i8mm", usable: dot && cpu.ARM64.HasI8MM, enable: func() { setToggles(3) }},
	}
}

// productKind orders routines as _asm/arm64 does.
func productKind(f Format, p Precision) int {
	switch {
	case f == DenseBF16:
		return 4
	case f == DenseF32:
		return 5
	case f.planes() && p == Fast:
		return 6 + int(f-Codes2)
	case f.planes():
		return 11 + int(f-Codes2)
	case p == Fast:
		return int(f)
	default:
		return 2 + int(f)
	}
}

// hasPlanes reports routines for codes in planes.
func hasPlanes() bool { return mulSet >= 0 }

// hasSmall reports routines for small floats.
func hasSmall() bool { return false }

// hasHalf reports products of bfloat16 numbers.
func hasHalf() bool { return false }

// hasWide reports a routine for many rows with exact activations, hasTall one with rounded ones. Bytes gain only from being
// put into pairs.
func hasWide(f Format, p Precision) bool {
	return mulSet >= 0 && p == Floats && f != DenseBF16 && f != DenseF32 && !f.small()
}

func hasTall(f Format) bool {
	return mulSet >= 0 && (f == Codes4 || f.planes() || f == Codes8 && mulSet == 2)
}
