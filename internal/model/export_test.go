package model

// Draws and Unit are the formula's numbers, for tests that fill other tensors than a model of formula has.
func Draws(name string, seed uint64) func(i int) uint64 {
	key := (&formula{Synthetic: Synthetic{Seed: seed}}).key(name)
	return func(i int) uint64 { return draw(key, i) }
}

var Unit = unit
