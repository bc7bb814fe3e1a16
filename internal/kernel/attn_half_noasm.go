//go:build !amd64 || purego

package kernel

func (w *AttnSpace) halfScoresAsm(_ []uint16, _, _ *Rows, _, _, _, _ int) bool { return false }
func (w *AttnSpace) columnScoresAsm(_ []float32, _ *Rows, _, _, _, _ int) bool { return false }
func halfSoftmaxAsm(_, _, _, _ []float32, _ int, _ float32) bool               { return false }
func (a *Attn) halfValuesAsm(_ *AttnSpace, _ *Rows, _ []byte, _, _, _, _, _, _ int) bool {
	return false
}
