package model_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/ref"
	"hearth/internal/golden"
	"hearth/internal/kernel"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// logits is a golden of tools/golden/model.py.
type logits struct {
	Config  json.RawMessage `json:"config"`
	Seed    uint64          `json:"seed"`
	Type    quant.DType     `json:"type"`
	Params  int64           `json:"params"`
	KVB     bool            `json:"kv_b"` // the matrices of latent attention are in one tensor
	Prompt  []int32         `json:"prompt"`
	Decode  []int32         `json:"decode"`
	Rows    []int32         `json:"rows"` // prompt rows of Prefill
	Cut     int             `json:"cut"`  // where the reference cut its chunked prefill
	Prefill golden.Floats   `json:"prefill_logits"`
	Steps   golden.Floats   `json:"decode_logits"`
	Chunked golden.Floats   `json:"chunked_logits"` // last row
}

// bounds are the largest differences allowed, as shares of the logit range.
type bounds struct{ floats, quantised float64 }

// Fast cpu rounds activations to 8 bits per group: a wrong layer still breaks its bound at once.
var exact, fast = bounds{1e-4, 1e-3}, bounds{1e-3, 3e-2}

func (g *logits) bound(b bounds) float64 {
	if b == fast && strings.Contains(string(g.Config), `"linear_num_key_heads"`) {
		b.quantised = 0.15 // every head's result is normalised, also where it is little more than rounding
	}
	if b == fast && (strings.Contains(string(g.Config), `"mamba"`) || strings.Contains(string(g.Config), `"plamo2"`)) {
		b.quantised = 0.06 // what the states keep of rounded rows stays for long, and plamo2 normalises what a layer adds
	}
	if strings.Contains(string(g.Config), `"quantization"`) {
		return b.quantised
	}
	return b.floats
}

// backends are what every architecture is measured on.
var backends = []struct {
	name string
	open func() backend.Backend
	opts backend.Options
	bounds
}{
	{"ref", func() backend.Backend { return ref.New() }, backend.Options{Precision: backend.Float32}, exact},
	{"cpu", func() backend.Backend { return cpu.New() }, backend.Options{Precision: backend.Float32, Threads: 2}, exact},
	{"cpu-exact", func() backend.Backend { return cpu.New() }, backend.Options{Precision: backend.Exact, Threads: 2}, exact},
	{"cpu-fast", func() backend.Backend { return cpu.New() }, backend.Options{Threads: 2}, fast},
}

// diff is the largest difference of any row, as a share of the logit range. Where rounded activations meet a router,
// one whose last two choices are near picks the other expert now and then, which later rows of the sequence see too:
// there it is that of the row after the best quarter, as long as none is off by half of the range.
func (g *logits) diff(got, want []float32, vocab int, rounded bool) float64 {
	worst := golden.Diff(got, want, g.Prefill)
	if !rounded || !strings.Contains(string(g.Config), `"num_experts_per_tok"`) || len(got) != len(want) || worst > 0.5 {
		return worst
	}
	var rows []float64
	for at := 0; at < len(got); at += vocab {
		rows = append(rows, golden.Diff(got[at:at+vocab], want[at:at+vocab], g.Prefill))
	}
	slices.Sort(rows)
	return rows[len(rows)/4]
}

// TestGoldens compares prefill, chunked prefill and decode of tiny models with mlx-lm.
func TestGoldens(t *testing.T) {
	golden.Update(t, filepath.FromSlash("../../tools/golden/model.py"), "testdata")
	for _, typ := range model.Types() {
		files, _ := filepath.Glob(filepath.Join("testdata", typ, "*.json"))
		if len(files) == 0 {
			t.Errorf("architecture %s has no golden in testdata/%s", typ, typ)
		}
		for _, file := range files {
			var g logits
			golden.Load(t, file, &g)
			for _, be := range backends {
				if be.name == "ref" && testing.Short() && filepath.Base(file) != "f32.json" {
					continue // the oracle is slow: once for every architecture
				}
				name := typ + "/" + strings.TrimSuffix(filepath.Base(file), ".json") + "/" + be.name
				t.Run(name, func(t *testing.T) { g.compare(t, be.open(), be.opts, g.bound(be.bounds)) })
			}
		}
	}
}

func (g *logits) compare(t *testing.T, be backend.Backend, opts backend.Options, bound float64) {
	defer be.Close()
	if kernel.DenseBF16.Form(kernel.Fast) == kernel.Half && g.Type == quant.BF16 && bound == fast.floats {
		opts.Precision = backend.Float32 // what fast costs is measured in package golden
	}
	stored := func(path string) bool { return g.KVB && strings.HasSuffix(path, ".kv_b_proj") }
	m, err := model.Synthetic{Config: g.Config, Seed: g.Seed, Type: g.Type, Stored: stored}.Load(be, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Params != g.Params {
		t.Errorf("%d parameters, mlx-lm counts %d", m.Params, g.Params)
	}
	n := len(g.Prompt) + len(g.Decode)
	whole := golden.NewSequence(t, be, m, n)
	got := map[string][]float32{"prefill": whole.Step(g.Prompt, g.Rows...)}
	for _, tok := range g.Decode {
		got["decode"] = append(got["decode"], whole.Step([]int32{tok}, 0)...)
	}
	cut := golden.NewSequence(t, be, m, n)
	cut.Step(g.Prompt[:g.Cut])
	rest := g.Prompt[g.Cut:]
	got["chunked"] = cut.Step(rest, int32(len(rest)-1))

	want := map[string][]float32{"prefill": g.Prefill, "decode": g.Steps, "chunked": g.Chunked}
	for _, k := range []string{"prefill", "chunked", "decode"} {
		if k == "chunked" && opts.Precision == backend.Fast && strings.Contains(string(g.Config), `"num_experts_per_tok"`) {
			continue // one row, in which a router may turn the other way; its bits are compared with those of prefill below
		}
		d := g.diff(got[k], want[k], m.Vocab, opts.Precision == backend.Fast)
		t.Logf("%-8s %.2g of the logit range (bound %.0e)", k, d, bound)
		if d > bound {
			t.Errorf("%s differs by %.3g of the logit range, bound %g", k, d, bound)
		}
	}
	if be.Caps().Invariant {
		last := got["prefill"][len(got["prefill"])-m.Vocab:]
		if !slices.Equal(got["chunked"], last) {
			t.Error("chunked prefill differs in bits from the whole one")
		}
	}
}
