package grammar

import (
	"math/rand/v2"
	"testing"
)

// wideVocab is as large as those of today: 150,000 tokens of words, some with what JSON is made of before or behind them.
func wideVocab() *Vocab { return NewVocab(wideTokens(150_000)) }

func wideCallVocab() *CallVocab { return NewCallVocab(wideTokens(150_000)) }

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

// BenchmarkAllowed: what the set costs after a token, at places of different kinds, over a vocabulary of 150,000.
func BenchmarkAllowed(b *testing.B) {
	v := wideCallVocab()
	for name, written := range map[string]string{
		"name":   `{"name": "`,
		"key":    `{"name": "f", "arguments": {`,
		"string": `{"name": "f", "arguments": {"a": "x`,
		"value":  `{"name": "f", "arguments": {"u": `,
		"any":    `{"name": "f", "arguments": {"o": {"k": [`,
		"end":    `{"name": "f", "arguments": {"a": "x"}`,
	} {
		b.Run(name, func(b *testing.B) {
			m := v.Matcher(callOf(wide), NewBudget(1))
			if !m.Accept([]byte(written)) {
				b.Fatal("not accepted")
			}
			b.ReportAllocs()
			for b.Loop() {
				m.of = nil
				m.budget.left = burst
				m.Allowed()
			}
			b.ReportMetric(float64(burst-m.budget.left), "steps")
		})
	}
}

func BenchmarkVocab(b *testing.B) {
	b.Run("any", func(b *testing.B) {
		for b.Loop() {
			wideVocab()
		}
	})
	b.Run("calls", func(b *testing.B) {
		for b.Loop() {
			wideCallVocab()
		}
	})
}
