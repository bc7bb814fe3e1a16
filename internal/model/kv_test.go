package model_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// kvGolden is made by tools/golden/kv.py.
type kvGolden struct {
	Cases []struct {
		Name   string                   `json:"name"`
		Config json.RawMessage          `json:"config"`
		Seed   uint64                   `json:"seed"`
		Type   quant.DType              `json:"type"`
		Prompt []int32                  `json:"prompt"`
		Decode []int32                  `json:"decode"`
		Rows   []int32                  `json:"rows"`
		Cut    int                      `json:"cut"`
		Logits map[string]golden.Floats `json:"logits"` // by type of keys and values: rows of the prompt, then decode steps
	} `json:"cases"`
}

// kvBounds are how far logits may be from those with float32 keys and values, as shares of their range.
var kvBounds = map[string]float64{"f32": 1e-4, "f16": 1e-3, "bf16": 1e-2, "q8": 1.5e-2, "q4": 0.25}

// TestKVTypes measures what each type of keys and values costs, and that 8 and 4 bits cost no more than mlx-lm's
// quantised cache of groups of 64, whose scales are float32 here. Cut anywhere, a prompt gives the same bits.
func TestKVTypes(t *testing.T) {
	file := filepath.Join("testdata", "kv.json")
	golden.Update(t, filepath.FromSlash("../../tools/golden/kv.py"), file)
	var g kvGolden
	golden.Load(t, file, &g)
	for _, c := range g.Cases {
		for _, be := range backends[:2] { // float activations
			if be.name == "ref" && testing.Short() {
				continue // slow
			}
			b := be.open()
			m, err := model.Synthetic{Config: c.Config, Seed: c.Seed, Type: c.Type}.Load(b, be.opts)
			if err != nil {
				t.Fatal(err)
			}
			f32 := c.Logits["f32"]
			for _, name := range backend.KVNames[1:] {
				p, err := backend.ParseKV(name)
				if err != nil {
					t.Fatal(err)
				}
				s := golden.NewSequenceKV(t, b, m, 200, p)
				got := s.Step(c.Prompt, c.Rows...)
				last := slices.Clone(got[len(got)-m.Vocab:])
				for _, tok := range c.Decode {
					got = append(got, s.Step([]int32{tok}, 0)...)
				}
				d := golden.Diff(got, f32, f32)
				theirs := kvBounds[name]
				if want := c.Logits[name]; want != nil && name != "f32" {
					theirs = golden.Diff(want, f32, f32)
					t.Logf("%s, %s, %-4s: %.2g of the range from f32, mlx-lm %.2g, %.2g from mlx-lm", c.Name, be.name, name, d, theirs, golden.Diff(got, want, f32))
				} else {
					t.Logf("%s, %s, %-4s: %.2g of the range from f32", c.Name, be.name, name, d)
				}
				if d > kvBounds[name] || d > 2*theirs {
					t.Errorf("%s, %s, %s: %g of the range from f32, bound %g, mlx-lm has %g", c.Name, be.name, name, d, kvBounds[name], theirs)
				}
				cut := golden.NewSequenceKV(t, b, m, 200, p)
				cut.Step(c.Prompt[:c.Cut])
				rest := c.Prompt[c.Cut:]
				if !slices.Equal(cut.Step(rest, int32(len(rest)-1)), last) {
					t.Errorf("%s, %s, %s: a chunked prompt gives other bits than the whole one", c.Name, be.name, name)
				}
			}
			m.Close()
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
