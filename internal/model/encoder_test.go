package model_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// encoding is a golden of tools/golden/encoder.py.
type encoding struct {
	Config json.RawMessage `json:"config"`
	Seed   uint64          `json:"seed"`
	Type   quant.DType     `json:"type"`
	Params int64           `json:"params"`
	Use    struct {
		Kind      string `json:"kind"`
		Rows      string `json:"rows"`
		Normalize bool   `json:"normalize"`
		Raw       bool   `json:"raw"`
		Labels    int    `json:"labels"`
		Yes       int32  `json:"yes"`
		No        int32  `json:"no"`
		Dense     []struct {
			In   int    `json:"in"`
			Out  int    `json:"out"`
			Bias bool   `json:"bias"`
			Act  string `json:"act"`
		} `json:"dense"`
	} `json:"use"`
	Texts [][]int32     `json:"texts"`
	Types [][]int32     `json:"types"`
	Rows  golden.Floats `json:"rows"` // vectors, or scores, back to back
}

// The least cosine between our vectors and the reference's, and the largest difference of a score. exact rounds activations to 16
// bits, fast to 8, which only matters where weights are quantised.
const (
	leastCosine, fastCosine = 0.9999999, 0.999

	gatedCosine = 0.998 // fast, where layers multiply rounded rows with each other, as lfm2's do

	scoreBound, exactScore, fastScore = 1e-5, 1e-4, 0.05
)

func (g *encoding) pooling() model.Pooling {
	u := g.Use
	p := model.Pooling{Normalize: u.Normalize, Raw: u.Raw, Labels: u.Labels, Yes: u.Yes, No: u.No,
		Rows: map[string]backend.PoolKind{"mean": backend.PoolMean, "cls": backend.PoolFirst, "lasttoken": backend.PoolLast}[u.Rows],
		Kind: map[string]model.Kind{"embeds": model.Embeds, "ranks": model.Ranks}[u.Kind]}
	for _, d := range u.Dense {
		l := model.Dense{In: d.In, Out: d.Out, Bias: d.Bias}
		if d.Act == "Tanh" {
			l.Act = backend.Activation{Kind: backend.TanhCap, A: 1}
		}
		p.Dense = append(p.Dense, l)
	}
	return p
}

// run encodes the given texts in one step and gives the rows as a caller would use them.
func (g *encoding) run(t *testing.T, be backend.Backend, m *model.Encoder, texts ...int) []float32 {
	t.Helper()
	b := &backend.Batch{}
	for _, i := range texts {
		b.Spans = append(b.Spans, backend.Span{Slot: -1, Row: len(b.Tokens), Len: len(g.Texts[i])})
		b.Tokens = append(b.Tokens, g.Texts[i]...)
		if g.Types != nil {
			b.Types = append(b.Types, g.Types[i]...)
		}
		for k := range g.Texts[i] {
			b.Pos[0] = append(b.Pos[0], int32(k))
		}
	}
	m.Prepare(b)
	o := be.Begin(nil, b)
	defer o.End()
	f, err := o.Floats(m.Forward(o, b))
	if err != nil {
		t.Fatal(err)
	}
	if len(f) != len(texts)*m.Width {
		t.Fatalf("%d numbers for %d texts of width %d", len(f), len(texts), m.Width)
	}
	var rows []float32
	for i := range texts {
		row := slices.Clone(f[i*m.Width:][:m.Width])
		if m.Pooling.Kind == model.Ranks {
			rows = append(rows, float32(m.Pooling.Score(row)))
			continue
		}
		rows = append(rows, m.Pooling.Vector(row, m.Width)...)
	}
	return rows
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// TestEncoders compares vectors and scores of tiny models with transformers', and texts in a batch with the same alone.
func TestEncoders(t *testing.T) {
	golden.Update(t, filepath.FromSlash("../../tools/golden/encoder.py"), "testdata/encoders")
	for _, typ := range slices.Concat(model.EncoderTypes(), model.NearEncoderTypes(), []string{"qwen3", "gemma3_text", "llama", "lfm2"}) {
		files, _ := filepath.Glob(filepath.Join("testdata", "encoders", typ, "*.json"))
		if len(files) == 0 {
			t.Errorf("encoder %s has no golden in testdata/encoders/%s", typ, typ)
		}
		for _, file := range files {
			var g encoding
			golden.Load(t, file, &g)
			for _, be := range backends {
				if be.name == "ref" && testing.Short() && filepath.Base(file) != "f32.json" {
					continue // as in TestGoldens
				}
				name := typ + "/" + strings.TrimSuffix(filepath.Base(file), ".json") + "/" + be.name
				t.Run(name, func(t *testing.T) { g.compare(t, be.open(), be.opts) })
			}
		}
	}
}

func (g *encoding) compare(t *testing.T, be backend.Backend, opts backend.Options) {
	defer be.Close()
	m, err := model.Synthetic{Config: g.Config, Seed: g.Seed, Type: g.Type}.LoadEncoder(be, opts, g.pooling())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Params != g.Params {
		t.Errorf("%d parameters, the reference counts %d", m.Params, g.Params)
	}
	all := make([]int, len(g.Texts))
	for i := range all {
		all[i] = i
	}
	got := g.run(t, be, m, all...)
	if len(got) != len(g.Rows) {
		t.Fatalf("%d numbers, the reference has %d", len(got), len(g.Rows))
	}
	n, worst := len(got)/len(all), 1.0
	for i := range all {
		row, want := got[i*n:][:n], g.Rows[i*n:][:n]
		one := g.run(t, be, m, i)
		if be.Caps().Invariant && !slices.Equal(one, row) {
			t.Errorf("text %d alone differs in bits from the same in a batch", i)
		}
		if m.Pooling.Kind == model.Ranks {
			worst = min(worst, 1-math.Abs(float64(row[0]-want[0])))
			continue
		}
		worst = min(worst, cosine(row, want))
		if length := cosine(row, want) * math.Sqrt(dot(row)/dot(want)); math.Abs(length-1) > 0.01 {
			t.Errorf("text %d: the vector's length is %.4g of the reference's", i, length)
		}
	}
	bound := leastCosine
	switch {
	case m.Pooling.Kind == model.Ranks && opts.Precision == backend.Float32:
		bound = 1 - scoreBound
	case m.Pooling.Kind == model.Ranks && opts.Precision == backend.Exact:
		bound = 1 - exactScore
	case m.Pooling.Kind == model.Ranks:
		bound = 1 - fastScore
	case opts.Precision == backend.Fast && strings.Contains(string(g.Config), "conv_L_cache"):
		bound = gatedCosine
	case opts.Precision == backend.Fast:
		bound = fastCosine
	}
	t.Logf("1 - %.2g (bound 1 - %.1g)", 1-worst, 1-bound)
	if worst < bound {
		t.Errorf("worst text: 1 - %.3g, bound 1 - %.3g", 1-worst, 1-bound)
	}
}

func dot(a []float32) (sum float64) {
	for _, x := range a {
		sum += float64(x) * float64(x)
	}
	return sum
}
