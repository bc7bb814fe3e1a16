//go:build (!amd64 && !arm64) || purego

package kernel

type routine int

func archImpls() []impl { return nil }

func setToggles(int) {}

func mulTile(_ Format, _ Precision, n int) (routine, int) { return 0, n }

func callMul(routine, *mulArgs) {}

// HasSwish reports a routine for Swish, without which a table is faster.
func HasSwish() bool { return false }

func swishAsm(_, _ []float32, _, _ float64) {}

func hasHalf() bool { return false }

func hasWide(Format, Precision) bool { return false }

func callWide(Format, *wideArgs) {}

func addAsm(_, _, _ []float32) bool                                            { return false }
func axpyAsm(_, _ []float32, _ float32) bool                                   { return false }
func dotAsm(_, _ []float32) (float32, bool)                                    { return 0, false }
func scaleMulAsm(_, _, _ []float32, _ float32) bool                            { return false }
func ropeAsm(_, _, _, _ []float32) bool                                        { return false }
func siluMulAsm(_, _, _ []float32) bool                                        { return false }
func expSumAsm(_, _ []float32, _ float32) (float32, bool)                      { return 0, false }
func toBF16Asm(_ []uint16, _ []float32) bool                                   { return false }
func fromBF16Asm(_ []float32, _ []uint16) bool                                 { return false }
func quantizeAsm(_ []int8, _, _ []float32, _ []int32, _ []float32, _ int) bool { return false }
func readAsm([]byte) bool                                                      { return false }
func softcapAsm(_ []float32, _, _ float32) bool                                { return false }
func softmaxAsm(_, _, _, _ []float32, _ int, _ float32) bool                   { return false }
func toF16Asm(_ []uint16, _ []float32) bool                                    { return false }
func extremesAsm(_ []float32) (_, _ float32, _, _ bool)                        { return }
func putCodesAsm(_ []byte, _ []float32, _ int, _ CacheType, _, _ float32) bool { return false }

func (w *AttnSpace) scoreAsm(_ []float32, _, _ *Rows, _, _, _, _ int) bool          { return false }
func (a *Attn) valueAsm(_ *AttnSpace, _ *Rows, _ []byte, _, _, _, _, _, _ int) bool { return false }

func outlierTile() int { return 1 }

func splitAsm(*splitArgs) bool { return false }
