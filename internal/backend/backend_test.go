package backend_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/quant"
)

func TestPageGroups(t *testing.T) {
	windows, group := B.PageGroups([]B.StateSpec{
		{Window: 128}, {}, {Kind: B.StateConv}, {Window: 128}, {Window: 64}, {Kind: B.StateLatent},
	})
	if !slices.Equal(windows, []int{0, 64, 128}) || !slices.Equal(group, []int{2, 0, -1, 2, 1, 0}) {
		t.Errorf("windows %v, groups %v", windows, group)
	}
}

func TestKVPolicy(t *testing.T) {
	for _, name := range B.KVNames {
		p, err := B.ParseKV(name)
		if err != nil || p.String() != name || p.Check() != nil {
			t.Errorf("%s: %+v (%v), %v", name, p, p, err)
		}
	}
	if _, err := B.ParseKV("fp8"); err == nil || !strings.Contains(err.Error(), "q8") {
		t.Errorf("fp8: %v", err)
	}
	for _, bad := range []B.KVPolicy{{Bits: 3}, {Bits: 8, DType: B.F16}, {DType: B.I32}, {Bits: 4, Group: -1}} {
		if bad.Check() == nil {
			t.Errorf("%+v passed", bad)
		}
	}
	for _, c := range [][3]int{{128, 0, 64}, {64, 64, 64}, {96, 64, 32}, {80, 64, 40}, {48, 64, 48}, {40, 64, 40}, {192, 64, 64},
		{256, 128, 128}, {16, 64, 16}, {7, 64, 7}, {160, 64, 32}} {
		if got := (B.KVPolicy{Bits: 8, Group: c[1]}).GroupOf(c[0]); got != c[2] {
			t.Errorf("heads of %d in groups of at most %d: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

func floats(name string, x []float32, shape ...int) *B.Tensor {
	b := make([]byte, 4*len(x))
	quant.PutFloats(b, quant.F32, x)
	return &B.Tensor{Name: name, DType: "F32", Shape: shape, Bytes: b}
}

// TestStack: parts on top of each other, one of them covering two outputs, another permuted, biases where they are.
func TestStack(t *testing.T) {
	spec := B.WeightSpec{In: 2, Out: []int{1, 2, 2}, Parts: []B.Part{
		{Weight: floats("ab", []float32{1, 1, 2, 2, 3, 3}, 3, 2)},
		{Weight: floats("c", []float32{4, 4, 5, 5}, 2, 2), Bias: floats("c.bias", []float32{40, 50}, 2), Perm: []int32{1, 0}},
	}}
	k, err := spec.Stack()
	if err != nil {
		t.Fatal(err)
	}
	var got []float32
	row := make([]float32, 2)
	for r := range k.Out {
		m, at := k.At(r)
		m.Row(row, at)
		got = append(got, row[0])
	}
	if !slices.Equal(got, []float32{1, 2, 3, 5, 4}) || !slices.Equal(k.Bias(), []float32{0, 0, 0, 50, 40}) {
		t.Errorf("rows %v, bias %v", got, k.Bias())
	}

	c := spec.Parts[1].Weight
	short := floats("c.bias", []float32{1, 2, 3}, 3)
	other := quant.Scheme{Mode: "other", Bits: 4, Group: 2}
	for want, bad := range map[string]B.WeightSpec{
		"want 4":         {In: 2, Out: []int{4}, Parts: spec.Parts[1:]},
		"c: permutation": {In: 2, Out: []int{2}, Parts: []B.Part{{Weight: c, Perm: []int32{0, 2}}}},
		"no weight":      {In: 2, Out: []int{2}, Parts: []B.Part{{}}},
		"c: weight have": {In: 3, Out: []int{2}, Parts: spec.Parts[1:]},
		"c.bias":         {In: 2, Out: []int{2}, Parts: []B.Part{{Weight: c, Bias: short}}},
		"not one matrix": {In: 2, Out: []int{2}, Count: 8, Parts: spec.Parts[1:]},
		"c: an adapter":  {In: 2, Out: []int{2}, Parts: []B.Part{{Weight: c, Adapter: &B.Adapter{Rank: 1, Down: make([]float32, 2)}}}},
		"not supported":  {In: 2, Out: []int{2}, Parts: []B.Part{{Weight: c, Scheme: other}}},
	} {
		if _, err := bad.Stack(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want something about %q", err, want)
		}
	}
}

// TestRoundings: documents say what lines at the start say.
func TestRoundings(t *testing.T) {
	half := B.Caps{Acts: []B.DType{B.BF16, B.BF16, B.F32, B.F32}}
	phrases := map[string][]string{
		"formats.md": {B.Outliers.Rounding(half)},
		"models.md":  {B.Outliers.VectorRounding(half)},
		"cache.md":   {},
		"config.md":  {},
	}
	for p := B.Fast; p < B.Float32; p++ {
		phrases["formats.md"] = append(phrases["formats.md"], p.String()+": "+p.Rounding(B.Caps{}))
		phrases["models.md"] = append(phrases["models.md"], p.String()+": "+p.VectorRounding(B.Caps{}))
	}
	for _, bits := range []int{8, 4} {
		phrase := B.KVPolicy{Bits: bits}.Rounding()
		phrases["cache.md"], phrases["config.md"] = append(phrases["cache.md"], phrase), append(phrases["config.md"], phrase)
	}
	for name, list := range phrases {
		b, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, phrase := range list {
			if phrase == "" || !strings.Contains(string(b), phrase) {
				t.Errorf("docs/%s does not say %q", name, phrase)
			}
		}
	}
	if s := B.Exact.Rounding(half); s != "activations in float32" {
		t.Error(s)
	}
}
