package model

import "hearth/internal/quant"

// Draws and Unit are the formula's numbers, for tests that fill other tensors than a model of formula has.
func Draws(name string, seed uint64) func(i int) uint64 {
	key := (&formula{Synthetic: Synthetic{Seed: seed}}).key(name)
	return func(i int) uint64 { return draw(key, i) }
}

var Unit = unit

// Fill makes n numbers around base, as goldens of saved folders have them.
func Fill(name string, seed uint64, n int, base, amp float64) []byte {
	return (&formula{Synthetic: Synthetic{Seed: seed, Type: quant.F32}}).floats(name, []int{n}, base, amp).Bytes
}

// Amplitudes makes the numbers of a float tensor, as a model of formula has them.
func Amplitudes(name string, seed uint64, n int, amp float64) []float32 {
	x := make([]float32, n)
	quant.Floats(x, quant.F32, (&formula{Synthetic: Synthetic{Seed: seed, Type: quant.F32}}).floats(name, []int{n}, 0, amp).Bytes)
	return x
}
