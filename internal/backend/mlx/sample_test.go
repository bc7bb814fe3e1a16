//go:build darwin || linux

package mlx_test

import (
	"math"
	"math/rand/v2"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/sample"
)

// TestSample: the device draws what package sample draws, but for draws that fall on the border of two tokens.
func TestSample(t *testing.T) {
	be := testshim.Open(t)
	defer be.Close()
	const vocab, rows, rounds = 3000, 8, 12
	r := rand.New(rand.NewPCG(3, 4))
	params := []sample.Params{
		{}, {Temperature: 1}, {Temperature: 0.7, TopP: 0.9}, {Temperature: 1.3, TopK: 20}, {Temperature: 1, MinP: 0.05},
		{Temperature: 0.8, TopP: 0.95, TopK: 40, MinP: 0.02}, {Temperature: 1, TopK: 1}, {TopP: 0.5, TopK: 3, MinP: 0.5},
	}
	same, all := 0, 0
	for round := range rounds {
		logits := make([]float32, rows*vocab)
		for i := range logits {
			logits[i] = float32(r.NormFloat64()) * 3
			if round%3 == 2 { // many equals
				logits[i] = float32(math.Round(float64(logits[i])))
			}
		}
		sc := be.Begin(nil, &B.Batch{})
		var draws []sample.Draw
		var want []int32
		for i, p := range params {
			p.Seed = uint64(round)
			s := sample.New(p, nil)
			d, ok := s.Draw(0)
			if !ok {
				t.Fatal("no draw")
			}
			draws = append(draws, d)
			got, _, err := s.Next(logits[i*vocab:][:vocab], &sample.Work{}, -1, nil)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, got.ID)
		}
		x := sc.Upload(logits, rows, vocab)
		got, err := sc.Ints(be.Sample(sc, x, draws))
		if err != nil {
			t.Fatal(err)
		}
		greedy, err := sc.Ints(be.Sample(sc, x, make([]sample.Draw, rows)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			all++
			if got[i] == want[i] {
				same++
			} else if params[i].Temperature <= 0 || params[i].TopK == 1 {
				t.Errorf("round %d, row %d: token %d, want %d", round, i, got[i], want[i])
			}
		}
		if greedy[0] != want[0] || greedy[7] != want[7] {
			t.Errorf("round %d: greedy tokens %v", round, greedy)
		}
		sc.End()
	}
	t.Logf("%d of %d tokens are the same", same, all)
	if same < all-1 {
		t.Errorf("%d of %d tokens differ", all-same, all)
	}

	broken := make([]float32, 3*vocab)
	broken[5], broken[vocab+7] = float32(math.NaN()), float32(math.Inf(1))
	for i := range vocab {
		broken[2*vocab+i] = float32(math.Inf(-1))
	}
	for _, temperature := range []float32{0, 1} {
		sc := be.Begin(nil, &B.Batch{})
		draws := make([]sample.Draw, 3)
		for i := range draws {
			draws[i] = sample.Draw{Temperature: temperature, Uniform: 0.5}
		}
		got, err := sc.Ints(be.Sample(sc, sc.Upload(broken, 3, vocab), draws))
		if err != nil || got[0] != -1 || got[1] != -1 || got[2] != -1 {
			t.Errorf("temperature %g: tokens %v of logits that are not finite, %v", temperature, got, err)
		}
		sc.End()
	}
}
