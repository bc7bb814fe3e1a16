package model_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// TestNames: what mlx-lm calls the tensors of a family are, once renamed, the tensors that the architecture asks for.
// Goldens cannot see that, for their weights are made under our names.
func TestNames(t *testing.T) {
	file := filepath.Join("testdata", "names.json")
	golden.Update(t, filepath.FromSlash("../../tools/golden/model.py"), "testdata")
	var g struct {
		Types map[string]struct {
			Config json.RawMessage `json:"config"`
			Names  []string        `json:"names"`
		} `json:"types"`
	}
	golden.Load(t, file, &g)
	digits := regexp.MustCompile(`\.\d+\.`)
	for typ, theirs := range g.Types {
		m, _, err := model.New(typ, theirs.Config, 1)
		if err != nil {
			t.Error(err)
			continue
		}
		got, want := map[string]bool{}, map[string]bool{}
		for _, name := range theirs.Names {
			if n := m.(interface{ Rename(string) string }).Rename(name); n != "" {
				got[n] = true
			}
		}
		for _, x := range tensorsOf(t, model.Synthetic{Config: theirs.Config, Type: quant.F32}) {
			want[digits.ReplaceAllString(x.Name, ".0.")] = true
		}
		if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
			t.Errorf("%s: mlx-lm's tensors are\n%q, the architecture's\n%q", typ, a, b)
		}
	}
}
