//go:build !amd64 || purego

package kernel

func hasI16() bool { return false }

func wholeNumbersAsm(_ []int16, _ *float32, _ []float32, _ float32) bool      { return false }
func (w *AttnSpace) i16ScoresAsm(_ *Attn, _, _ *Rows, _, _, _, _, _ int) bool { return false }
func (a *Attn) i16SoftmaxAsm(_ *AttnSpace, _ *Rows, _ []byte, _, _, _ int, _ float32) bool {
	return false
}
func (a *Attn) i16ValuesAsm(_ *AttnSpace, _ *Rows, _ []byte, _, _, _ int) bool { return false }
