//go:build amd64 && !purego

package kernel

import "golang.org/x/sys/cpu"

// routine numbers a product routine of mul_amd64_table.go; 0 is the generic one.
type routine int

// Toggles: which assembly may run. mulSet indexes mulBase, -1 for none.
var (
	useAVX2   bool
	useAVX512 bool
	mulSet    int
)

// setToggles selects a level: 0 generic, 1 AVX2, 2 AVX-512, 3 AVX-512 with VNNI.
func setToggles(level int) { useAVX2, useAVX512, mulSet = level > 0, level > 1, level-1 }

func archImpls() []impl {
	avx2 := cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C
	avx512 := avx2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ
	return []impl{
		{"avx2", avx2, true, func() { setToggles(1) }},
		{"avx512", avx512, true, func() { setToggles(2) }},
		{"avx512vnni", avx512 && cpu.X86.HasAVX512VNNI, true, func() { setToggles(3) }},
	}
}

// productKind orders routines as _asm does.
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

// mulTile picks the routine for at most n rows and tells how many it takes: as even a share as the tallest tile allows.
func mulTile(f Format, p Precision, n int) (routine, int) {
	if mulSet < 0 {
		return 0, n
	}
	k := productKind(f, p)
	tiles := (n + mulMost[mulSet][k] - 1) / mulMost[mulSet][k]
	n = (n + tiles - 1) / tiles
	return mulBase[mulSet][k] + routine(n), n
}

// hasPlanes reports routines for codes in planes.
func hasPlanes() bool { return mulSet >= 0 }

// hasWide reports a routine for many rows with exact activations, hasTall one with rounded ones. AVX-512 needs neither: see Mul.
func hasWide(f Format, p Precision) bool {
	return p == Exact && mulSet == 0 && f != DenseBF16 && f != DenseF32
}

func hasTall(f Format) bool {
	return mulSet == 0 && (f.planes() || f == Codes4)
}
