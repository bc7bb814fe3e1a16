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

// Instruction sets for products, in the order of mulBase.
const (
	setAVX2 = iota
	setAVXVNNI
	setAVX512
	setVNNI
	setBF16
)

// weightsAhead is how many bytes ahead products with AVX-512 ask for weights. Zen 4 reads slower so: it asks for those that it
// reads.
var weightsAhead = func() int {
	if family() == zen4 {
		return 0
	}
	return 8192
}()

// cpuVersion is the family, model and stepping as CPUID has them.
func cpuVersion() uint32

// family is the processor's as CPUID has it, the extended family added.
func family() uint32 {
	v := cpuVersion()
	f := v >> 8 & 15
	if f == 15 {
		f += v >> 20 & 255
	}
	return f
}

// zen4 is the family of AMD's first processors with AVX-512.
const zen4 = 25

// setToggles selects a level: 0 generic, otherwise one more than the set for products.
func setToggles(level int) {
	mulSet = level - 1
	useAVX2, useAVX512 = mulSet >= setAVX2, mulSet >= setAVX512
	sharedBytes = sharedSmall
	if useAVX512 {
		sharedBytes = sharedLarge
	}
}

func archImpls() []impl {
	avx2 := cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C
	avx512 := avx2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ
	// AMD's processors take a VDPBF16PS as often as a float multiply-add, so that it does twice the work. Intel's take one in the
	// time of four (Emerald Rapids: 0.65 ns and 0.16): half the speed of floats. Their unit for bfloat16 is AMX.
	slowBF16 := family() < zen4
	return []impl{
		{name: "avx2", usable: avx2, enable: func() { setToggles(1 + setAVX2) }},
		{name: "avxvnni", usable: avx2 && cpu.X86.HasAVXVNNI, enable: func() { setToggles(1 + setAVXVNNI) }},
		{name: "avx512", usable: avx512, enable: func() { setToggles(1 + setAVX512) }},
		{name: "avx512vnni", usable: avx512 && cpu.X86.HasAVX512VNNI, enable: func() { setToggles(1 + setVNNI) }},
		{name: "avx512bf16", usable: avx512 && cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX512BF16, slower: slowBF16,
			enable: func() { setToggles(1 + setBF16) }},
	}
}

// productKind orders routines as _asm does.
func productKind(f Format, p Precision) int {
	switch {
	case p == Half:
		return 19
	case f == DenseBF16:
		return 4
	case f == DenseF32:
		return 5
	case f == FloatE2M1 && p == Fast:
		return 18
	case f.small():
		return 16 + int(f-FloatE2M1)
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
func hasSmall() bool { return mulSet >= 0 }

// hasHalf reports products of bfloat16 numbers.
func hasHalf() bool { return mulSet >= setBF16 }

// hasWide reports a routine for many rows with exact activations, hasTall one with rounded ones. AVX-512 needs neither: see
// docs/benchmarks.md.
func hasWide(f Format, p Precision) bool {
	return p == Floats && useAVX2 && !useAVX512 && f != DenseBF16 && f != DenseF32
}

func hasTall(f Format) bool {
	return useAVX2 && !useAVX512 && (f.planes() || f == Codes4)
}
