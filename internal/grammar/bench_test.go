package grammar

import (
	"math/rand/v2"
	"testing"
)

// wideVocab is as large as those of today: 150,000 tokens of words, some with what JSON is made of before or behind them.
func wideVocab() *Vocab { return NewVocab(wideTokens(150_000)) }

func wideTokens(n int) (size int, text func(id int32) []byte) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := make([][]byte, n)
	edges := []string{"", "", "", " ", " ", " ", `"`, `",`, `":`, "{", "}", "[", "\n", `\`, "  ", `("`, `']`}
	for i := range texts {
		if i < 256 {
			texts[i] = []byte{byte(i)}
			continue
		}
		b := []byte(edges[r.IntN(10)])
		for range 1 + r.IntN(9) {
			b = append(b, byte('a'+r.IntN(26)))
		}
		if r.IntN(40) == 0 {
			b = append(b, edges[r.IntN(len(edges))]...)
		}
		texts[i] = b
	}
	return len(texts), func(id int32) []byte { return texts[id] }
}

func BenchmarkVocab(b *testing.B) {
	for b.Loop() {
		wideVocab()
	}
}
