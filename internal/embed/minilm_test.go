package embed

import (
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
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
	s := openMiniLM(t, backend.Float32, quant.Scheme{})
	out, err := s.Embed(t.Context(), inputs(g.Texts...))
	if err != nil {
		t.Fatal(err)
	}
	if out.Tokens != g.Tokens {
		t.Errorf("%d tokens, the reference has %d", out.Tokens, g.Tokens)
	}
	worst := 1.0
	for i, v := range out.Vectors {
		cos := cosine(v, g.Rows[i*len(v):][:len(v)])
		if worst = min(worst, cos); cos < 0.9999 || math.Abs(length(v)-1) > 1e-6 {
			t.Errorf("%q: cosine %.9f", g.Texts[i], cos)
		}
	}
	t.Logf("least cosine 1 - %.2g over %d texts", 1-worst, len(g.Texts))
}

// openMiniLM loads the model of -minilm, its matrices quantised where the scheme is one.
func openMiniLM(t *testing.T, p backend.Precision, scheme quant.Scheme) *Service {
	t.Helper()
	if *minilm == "" {
		t.Skip("give the model's folder with -minilm")
	}
	fsys := os.DirFS(*minilm)
	c, err := model.OpenCheckpoint(fsys, *minilm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	how, err := c.Pooling()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	be := cpu.New()
	t.Cleanup(func() { _ = be.Close() })
	m, err := c.LoadEncoder(quantising{be, scheme}, backend.Options{Precision: p}, how)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	s, err := New(Config{Model: m, Backend: be, Tokenizer: tok, MaxTokens: 512, Truncate: true, StepRows: StepRows})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// quantising loads matrices of floats as a converter would have left them: the model has no published folder in so few bits.
type quantising struct {
	*cpu.Backend
	scheme quant.Scheme
}

func (q quantising) NewLoader(o backend.Options) backend.Loader {
	return quantisingLoader{q.Backend.NewLoader(o), q.scheme}
}

type quantisingLoader struct {
	backend.Loader
	scheme quant.Scheme
}

func (l quantisingLoader) Load(s backend.WeightSpec) (backend.Weight, error) {
	s.Parts = slices.Clone(s.Parts)
	for i := range s.Parts {
		p := &s.Parts[i]
		if l.scheme.None() || s.Use != backend.UseLinear && s.Use != backend.UseTable || !p.Scheme.None() {
			continue
		}
		rows, in := p.Weight.Shape[0], p.Weight.Shape[1]
		plain := quant.Matrix{Rows: rows, In: in, Weight: p.Weight.Bytes, Type: quant.DType(p.Weight.DType)}
		w := make([]float32, rows*in)
		for r := range rows {
			plain.RowAs(w[r*in:][:in], quant.BF16, r)
		}
		m, err := quant.Quantize(l.scheme, w, rows, in, quant.BF16)
		if err != nil {
			return nil, err
		}
		p.Scheme = l.scheme
		p.Weight = &backend.Tensor{DType: "U32", Shape: []int{rows, in * l.scheme.Bits / 32}, Bytes: m.Weight}
		p.Scales = &backend.Tensor{DType: string(m.ScaleType), Shape: []int{rows, in / l.scheme.Group}, Bytes: m.Scales}
		p.Biases = &backend.Tensor{DType: string(m.BiasType), Shape: []int{rows, in / l.scheme.Group}, Bytes: m.Biases}
	}
	return l.Loader.Load(s)
}

// TestMiniLMRounding tells how far vectors turn in each precision from those of float32, and holds them to what is said of it:
// backend.Precision.VectorRounding.
func TestMiniLMRounding(t *testing.T) {
	texts := passages(t)
	for _, bits := range []int{4, 8} {
		for _, group := range []int{32, 64} {
			scheme := quant.Scheme{Mode: quant.Affine, Bits: bits, Group: group}
			want := vectors(t, openMiniLM(t, backend.Float32, scheme), inputs(texts...))
			for p, most := range []float64{backend.Fast: 2e-3, backend.Outliers: 2e-4, backend.Exact: 1e-7} {
				worst, sum := 0.0, 0.0
				for i, v := range vectors(t, openMiniLM(t, backend.Precision(p), scheme), inputs(texts...)) {
					off := 1 - cosine(v, want[i])
					worst, sum = max(worst, off), sum+off
				}
				t.Logf("%v, %v: cosines to float32 1 - %.2g on average, 1 - %.2g at worst", scheme, backend.Precision(p), sum/float64(len(texts)), worst)
				if worst > most {
					t.Errorf("worse than 1 - %g", most)
				}
			}
		}
	}
}

func cosine(a, b []float32) (sum float64) {
	for k := range a {
		sum += float64(a[k]) * float64(b[k])
	}
	return sum / (length(a) * length(b))
}

// passages are a hundred texts: of one to twenty sentences, and parts of a document and of a program.
func passages(t *testing.T) (texts []string) {
	read := func(name string) string {
		b, err := os.ReadFile("../../tools/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	lines := strings.Split(read("real/prompts.txt"), "\n")
	for i := range 50 {
		texts = append(texts, strings.Join(lines[i:][:1+i%20], " "))
	}
	for _, name := range []string{"demo/README.md", "demo/calls.py"} {
		for part := range slices.Chunk([]byte(read(name))[:25*500], 500) {
			texts = append(texts, string(part))
		}
	}
	return texts
}
