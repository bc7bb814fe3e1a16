package embed

import (
	"flag"
	"math"
	"os"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/tokenizer"
)

var minilm = flag.String("minilm", "", "folder of all-MiniLM-L6-v2, to compare its vectors with those of the golden; make minilm fetches it")

// TestMiniLM: texts become what they become with the reference, tokenizer, weights and pooling being a published model's.
func TestMiniLM(t *testing.T) {
	var g struct {
		Texts  []string      `json:"texts"`
		Tokens int           `json:"tokens"`
		Rows   golden.Floats `json:"rows"`
	}
	golden.Load(t, "testdata/minilm.json", &g)
	if *minilm == "" {
		t.Skip("give the model's folder with -minilm")
	}
	fsys := os.DirFS(*minilm)
	c, err := model.OpenCheckpoint(fsys, *minilm)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := c.Pooling()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	be := cpu.New()
	defer be.Close()
	m, err := c.LoadEncoder(be, backend.Options{Precision: backend.Float32}, p)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := New(Config{Model: m, Backend: be, Tokenizer: tok, StepRows: StepRows})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := s.Embed(t.Context(), inputs(g.Texts...))
	if err != nil {
		t.Fatal(err)
	}
	if out.Tokens != g.Tokens {
		t.Errorf("%d tokens, the reference has %d", out.Tokens, g.Tokens)
	}
	worst := 1.0
	for i, v := range out.Vectors {
		cos := 0.0
		for k, x := range v {
			cos += float64(x) * float64(g.Rows[i*len(v)+k])
		}
		if worst = min(worst, cos); cos < 0.9999 || math.Abs(length(v)-1) > 1e-6 {
			t.Errorf("%q: cosine %.9f", g.Texts[i], cos)
		}
	}
	t.Logf("least cosine 1 - %.2g over %d texts", 1-worst, len(g.Texts))
}
