package sample

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
)

// golden is testdata/mlx.json, written by tools/golden/sample.py.
type golden struct {
	Versions          map[string]string
	Logits            []float32
	Prompt, Generated []int32
	Cases             []struct {
		Params   goldenParams
		Logprobs []float64 // after the processors
		Argmax   int32
		Probs    []float64 // after filters and temperature; absent for greedy
	}
}

type goldenParams struct {
	Temperature       float32           `json:"temperature"`
	TopP              float32           `json:"top_p"`
	TopK              int               `json:"top_k"`
	MinP              float32           `json:"min_p"`
	RepetitionPenalty float32           `json:"repetition_penalty"`
	PresencePenalty   float32           `json:"presence_penalty"`
	FrequencyPenalty  float32           `json:"frequency_penalty"`
	LogitBias         map[int32]float32 `json:"logit_bias"`
}

func (g goldenParams) params() Params {
	return Params{Temperature: g.Temperature, TopP: g.TopP, TopK: g.TopK, MinP: g.MinP, LogitBias: g.LogitBias}.
		with(RepetitionPenalty, g.RepetitionPenalty).with(PresencePenalty, g.PresencePenalty).with(FrequencyPenalty, g.FrequencyPenalty)
}

// with is p with a processor's parameter.
func (p Params) with(n Number, x float32) Params {
	p.Numbers[n] = x
	return p
}

// after is a sampler that has generated the given tokens.
func after(p Params, prompt, generated []int32) *Sampler {
	s := New(p, prompt)
	for _, id := range generated {
		s.Accept(id)
	}
	return s
}

// distribution is what pick draws from, by token.
func distribution(kept []cand, temperature float32, vocab int) []float64 {
	probs := make([]float64, vocab)
	var total float64
	for _, c := range kept {
		probs[c.id] = math.Exp(-float64(c.gap) / float64(temperature))
		total += probs[c.id]
	}
	for i := range probs {
		probs[i] /= total
	}
	return probs
}

// TestGolden compares processed logprobs and the final distribution with those of mlx-lm.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/mlx.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if g.Versions["mlx-lm"] == "" || len(g.Cases) == 0 {
		t.Fatal("the golden names no mlx-lm version or has no cases")
	}
	for i, c := range g.Cases {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			var w Work
			s := after(c.Params.params(), g.Prompt, g.Generated)
			logits := s.process(g.Logits, &w)
			_, lse := Top(logits, 0, nil)
			for id, want := range c.Logprobs {
				if got := float64(logits[id]) - lse; math.Abs(got-want) > 2e-5 {
					t.Errorf("%+v: token %d: logprob %.5f, want %.5f", c.Params, id, got, want)
				}
			}
			best, peak := argmax(logits)
			if best != c.Argmax {
				t.Errorf("%+v: argmax %d, want %d", c.Params, best, c.Argmax)
			}
			if c.Probs == nil {
				return
			}
			for id, got := range distribution(s.candidates(logits, peak, &w), c.Params.Temperature, len(logits)) {
				if want := c.Probs[id]; math.Abs(got-want) > 2e-6 {
					t.Errorf("%+v: token %d: probability %.6f, want %.6f", c.Params, id, got, want)
				}
			}
		})
	}
}
