//go:build !amd64 || purego

package kernel

func hasFixed() bool { return false }

func fixedQueryAsm(_ []int16, _ *float32, _ []float32, _ float32) bool             { return false }
func (w *AttnSpace) fixedScoresAsm(_ *Attn, _, _ *Rows, _, _, _, _, _ int) bool    { return false }
func (a *Attn) fixedSoftmaxAsm(_ *AttnSpace, _ *Rows, _, _, _ int, _ float32) bool { return false }
func (a *Attn) fixedValuesAsm(_ *AttnSpace, _ *Rows, _ []byte, _, _, _ int) bool   { return false }
