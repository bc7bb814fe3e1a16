package sample

import (
	"math"
	"slices"
	"testing"
)

// TestXTC: what is left of a row of known probabilities. The rows are those of apply_xtc in mlx-lm 0.32.2.
func TestXTC(t *testing.T) {
	probs := []float64{0.4, 0.3, 0.15, 0.1, 0.05}
	logits := make([]float32, len(probs))
	for i, p := range probs {
		logits[i] = float32(math.Log(p))
	}
	for _, tt := range []struct {
		name string
		p    Params
		want []int32
	}{
		{"two above", Params{}.with(XTCThreshold, 0.2), []int32{1, 2, 3, 4}},
		{"all above", Params{}.with(XTCThreshold, 0.01), []int32{4}},
		{"threshold 0", Params{}, []int32{4}},
		{"one above", Params{}.with(XTCThreshold, 0.35), []int32{0, 1, 2, 3, 4}},
		{"none above", Params{}.with(XTCThreshold, 0.5), []int32{0, 1, 2, 3, 4}},
		{"spared", Params{XTCSpare: []int32{0, 9}}.with(XTCThreshold, 0.12), []int32{0, 2, 3, 4}},
		{"after top_p", Params{TopP: 0.8}.with(XTCThreshold, 0.2), []int32{1, 2}},
		{"shares of what top_p keeps", Params{TopP: 0.6}.with(XTCThreshold, 0.45), []int32{0, 1}},
		{"after min_p", Params{MinP: 0.3}.with(XTCThreshold, 0.12), []int32{2}},
		{"before top_k", Params{TopK: 2}.with(XTCThreshold, 0.2), []int32{1, 2}},
	} {
		var got []int32
		for _, c := range New(tt.p.with(XTCProbability, 1), nil).candidates(logits, logits[0], &Work{}) {
			got = append(got, c.id)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: kept %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := New(Params{}.with(XTCProbability, 1).with(XTCThreshold, 0.05), nil).candidates([]float32{1, 1, 1}, 1, &Work{}); len(got) != 3 {
		t.Errorf("equals at the end: kept %d, want all", len(got))
	}
}

// TestXTCStrikes: as often as its probability says, by the seed and the token's index alone; never without one, and not
// where the most likely token is wanted.
func TestXTCStrikes(t *testing.T) {
	logits := []float32{2, 1, -20}
	for _, tt := range []struct {
		probability, temperature float32
		least, most              int // of 2000 tokens that are not the likeliest
	}{{0, 0.01, 0, 0}, {1, 0.01, 2000, 2000}, {0.3, 0.01, 500, 700}, {1, 0, 0, 0}} {
		var runs [2][]int32
		for i := range runs {
			s := New(Params{Temperature: tt.temperature, Seed: 7}.with(XTCProbability, tt.probability).with(XTCThreshold, 0.1), nil)
			var w Work
			for range 2000 {
				out, _, err := s.Next(logits, &w, -1, nil)
				if err != nil {
					t.Fatal(err)
				}
				runs[i] = append(runs[i], out.ID)
			}
		}
		n := 0
		for _, id := range runs[0] {
			if id != 0 {
				n++
			}
		}
		if n < tt.least || n > tt.most || !slices.Equal(runs[0], runs[1]) {
			t.Errorf("%+v: %d tokens, the same again: %t", tt, n, slices.Equal(runs[0], runs[1]))
		}
	}
}
