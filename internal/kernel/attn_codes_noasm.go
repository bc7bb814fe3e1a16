//go:build !amd64 || purego

package kernel

func hasCodes() bool { return false }

func codeQueryAsm(_ []int8, _, _ []float32) bool                                  { return false }
func (w *AttnSpace) codeScoresAsm(_ *Attn, _, _ *Rows, _, _, _, _, _ int) bool    { return false }
func (a *Attn) codeSoftmaxAsm(_ *AttnSpace, _ *Rows, _, _, _ int, _ float32) bool { return false }
func (a *Attn) codeValuesAsm(_ *AttnSpace, _ *Rows, _ []byte, _, _, _ int) bool   { return false }
