//go:build !amd64 || purego

package kernel

type routine int

func archImpls() []impl { return nil }

func setToggles(int) {}

func mulTile(_ Format, _ Precision, n int) (routine, int) { return 0, n }

func callMul(routine, *mulArgs) {}

func addAsm(_, _, _ []float32) bool                                            { return false }
func axpyAsm(_, _ []float32, _ float32) bool                                   { return false }
func axpyBF16Asm(_ []float32, _ []uint16, _ float32) bool                      { return false }
func dotAsm(_, _ []float32) (float32, bool)                                    { return 0, false }
func dotBF16Asm(_ []float32, _ []uint16) (float32, bool)                       { return 0, false }
func scaleMulAsm(_, _, _ []float32, _ float32) bool                            { return false }
func ropeAsm(_, _, _, _ []float32) bool                                        { return false }
func siluMulAsm(_, _, _ []float32) bool                                        { return false }
func expSumAsm(_, _ []float32, _ float32) (float32, bool)                      { return 0, false }
func toBF16Asm(_ []uint16, _ []float32) bool                                   { return false }
func fromBF16Asm(_ []float32, _ []uint16) bool                                 { return false }
func quantizeAsm(_ []int8, _, _ []float32, _ []int32, _ []float32, _ int) bool { return false }
func readAsm([]byte) bool                                                      { return false }
func scoresAsm(_, _, _ []float32, _ *Rows, _ int) bool                         { return false }
func addValuesAsm(_, _ []float32, _ *Rows, _ int) bool                         { return false }
func toF16Asm(_ []uint16, _ []float32) bool                                    { return false }
func extremesAsm(_ []float32) (_, _ float32, _, _ bool)                        { return }
func putCodesAsm(_ []byte, _ []float32, _ int, _ CacheType, _, _ float32) bool { return false }
