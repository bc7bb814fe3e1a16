package golden_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/demo"
	"hearth/internal/golden"
	"hearth/internal/kernel"
	"hearth/internal/model"
	"hearth/internal/quant"
)

var allFormats = flag.Bool("quality", false, "measure what rounding costs for every weight format and architecture, not only at 4 bits")

// The gate for fast as the default: the mean, over at least leastPositions, of the Kullback-Leibler divergence of fast logits
// from those without rounding, in nats, with the same weights.
const (
	gate           = 0.002
	leastPositions = 2000
)

// outliersGate is how much of fast's divergence outliers may have: none is more than fast's but by chance.
const outliersGate = 1.1

// exactGate is that of exact where no router's row turns. One that does costs as much as it does in fast, only rarely.
const exactGate = 1e-6

// halfGate is the same for bfloat16 weights, which cost something only where the CPU multiplies such numbers.
const halfGate = 0.0002

// qualitySchemes are what is measured; the first is what the gate is about, the second is bfloat16.
var qualitySchemes = []quant.Scheme{
	{Mode: quant.Affine, Bits: 4, Group: 64}, {},
	{Mode: quant.Affine, Bits: 2, Group: 64}, {Mode: quant.Affine, Bits: 3, Group: 64}, {Mode: quant.Affine, Bits: 5, Group: 64},
	{Mode: quant.Affine, Bits: 6, Group: 64}, {Mode: quant.Affine, Bits: 8, Group: 64},
	{Mode: quant.Affine, Bits: 4, Group: 32}, {Mode: quant.Affine, Bits: 4, Group: 128},
	{Mode: quant.MXFP4, Bits: 4, Group: 32}, {Mode: quant.MXFP8, Bits: 8, Group: 32}, {Mode: quant.NVFP4, Bits: 4, Group: 16},
}

func schemes() []quant.Scheme {
	if *allFormats {
		return qualitySchemes
	}
	return qualitySchemes[:2]
}

// demoSchemes are those that the embedded model stays itself in. With five bits or fewer its distribution is flat, and what
// rounding costs such a one says nothing.
func demoSchemes() (kept []quant.Scheme) {
	for _, s := range qualitySchemes {
		if s.None() || s.Bits >= 6 {
			kept = append(kept, s)
		}
	}
	if !*allFormats {
		kept = kept[:2]
	}
	return kept
}

// check holds the divergences against what is allowed of the scheme.
func (r rounded) check(t *testing.T, s quant.Scheme) {
	t.Helper()
	t.Log("fast: ", r.fast)
	t.Log("outliers:", r.outliers)
	t.Log("exact:", r.exact)
	allowed := gate
	if s.None() {
		allowed = halfGate
	}
	if (s.None() || s.Bits >= 4) && !(r.fast.mean() < allowed) {
		t.Errorf("mean divergence %g, the gate is %g", r.fast.mean(), allowed)
	}
	if most := outliersGate * r.fast.mean(); !(r.outliers.mean() <= most) {
		t.Errorf("mean divergence of outliers %g, that of fast allows %g", r.outliers.mean(), most)
	}
	bound := exactGate
	if r.exact.turned > 0 {
		bound = gate
	}
	if !(r.exact.mean() < bound) {
		t.Errorf("mean divergence of exact %g, the gate is %g", r.exact.mean(), bound)
	}
	if s.None() && (r.exact.kl != 0 || !rounds() && r.fast.kl != 0) {
		t.Errorf("divergences of %g, %g where nothing is rounded", r.exact.kl, r.fast.kl)
	}
}

// rounds reports a CPU that multiplies bfloat16 numbers.
func rounds() bool { return kernel.DenseBF16.Form(kernel.Fast) == kernel.Half }

// quality sums up how logits differ from those without rounding.
type quality struct {
	positions, same int
	kl, worst       float64 // sum, largest
	entropy         float64 // of the distribution without: sum
	turned          float64 // share of routers' rows with other experts
}

func (q *quality) String() string {
	n := float64(q.positions)
	return fmt.Sprintf("KL %.2g nats (worst %.2g) with %.2g of entropy, greedy agrees in %.2f %% of %d positions, %.2g %% of routers' rows turned",
		q.mean(), q.worst, q.entropy/n, 100*float64(q.same)/n, q.positions, 100*q.turned)
}

func (q *quality) mean() float64 { return q.kl / float64(q.positions) }

// add compares rows of logits.
func (q *quality) add(want, got []float32, vocab int) {
	for at := 0; at < len(want); at += vocab {
		p, r := logSoftmax(want[at:at+vocab]), logSoftmax(got[at:at+vocab])
		var kl, entropy float64
		for i, lp := range p {
			kl += math.Exp(lp) * (lp - r[i])
			entropy -= math.Exp(lp) * lp
		}
		q.positions++
		q.kl += kl
		q.entropy += entropy
		if !(kl <= q.worst) { // also if it is no number
			q.worst = kl
		}
		if best(p) == best(r) {
			q.same++
		}
	}
}

func logSoftmax(x []float32) []float64 {
	top, sum := float64(slices.Max(x)), 0.0
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v) - top
		sum += math.Exp(y[i])
	}
	for i := range y {
		y[i] -= math.Log(sum)
	}
	return y
}

func best(x []float64) int {
	top := 0
	for i, v := range x {
		if v > x[top] {
			top = i
		}
	}
	return top
}

// passage is a text that is measured from a position on.
type passage struct {
	tokens []int32
	from   int
}

// textLogits are those of the positions that count, with float32 keys and values: they have bounds of their own (docs/cache.md).
func textLogits(t *testing.T, be backend.Backend, m *model.Loaded, texts []passage) []float32 {
	var all []float32
	for _, text := range texts {
		var rows []int32
		for i := text.from; i < len(text.tokens); i++ {
			rows = append(rows, int32(i))
		}
		all = append(all, golden.NewSequence(t, be, m, len(text.tokens)).Step(text.tokens, rows...)...)
	}
	return all
}

// rounded is what each way of rounding activations costs against none.
type rounded struct{ fast, outliers, exact *quality }

// compareRounded runs the texts in every precision. load is called with a backend and its options.
func compareRounded(t *testing.T, texts []passage, load func(backend.Backend, backend.Options) (*model.Loaded, error)) rounded {
	t.Helper()
	r, vocab := &routes{}, 0
	run := func(p backend.Precision) []float32 {
		be := cpu.New()
		m, err := load(be, backend.Options{Precision: p, Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		vocab = m.Vocab
		r.next, r.turned, r.rows = 0, 0, 0
		logits := textLogits(t, watched{be, r}, m, texts)
		if err := errors.Join(r.err, m.Close(), be.Close()); err != nil {
			t.Error(err)
		}
		r.known = true
		return logits
	}
	want := run(backend.Float32)
	against := func(p backend.Precision) *quality {
		q := &quality{}
		q.add(want, run(p), vocab)
		q.turned = float64(r.turned) / float64(max(r.rows, 1))
		if q.positions < leastPositions {
			t.Errorf("%d positions, want %d at least", q.positions, leastPositions)
		}
		return q
	}
	return rounded{fast: against(backend.Fast), outliers: against(backend.Outliers), exact: against(backend.Exact)}
}

// routes are the choices of a run's routers, one entry per call.
type routes struct {
	chosen       [][]int32
	known        bool // chosen is of an earlier run
	next         int
	turned, rows int // rows for which other experts were chosen
	err          error
}

// watched is a backend that records what routers choose, or compares it with what is recorded.
type watched struct {
	backend.Backend
	r *routes
}

func (b watched) Begin(s backend.Store, batch *backend.Batch) backend.Scope {
	return watchedScope{b.Backend.Begin(s, batch), b.r}
}

type watchedScope struct {
	backend.Scope
	r *routes
}

func (s watchedScope) Route(scores backend.Array, o *backend.Router) backend.Routing {
	res := s.Scope.Route(scores, o)
	ids, err := s.Ints(res.IDs)
	s.r.err = errors.Join(s.r.err, err)
	if !s.r.known {
		s.r.chosen = append(s.r.chosen, slices.Clone(ids))
		return res
	}
	want := s.r.chosen[s.r.next]
	s.r.next++
	for at := 0; at < len(ids); at += o.K {
		if s.r.rows++; !slices.Equal(ids[at:at+o.K], want[at:at+o.K]) {
			s.r.turned++
		}
	}
	return res
}

// TestQualityDemo: the embedded model on its own text, its weights requantised.
func TestQualityDemo(t *testing.T) {
	texts := demoTexts(t)
	for _, s := range demoSchemes() {
		t.Run(s.String(), func(t *testing.T) {
			q := compareRounded(t, texts, func(be backend.Backend, o backend.Options) (*model.Loaded, error) {
				return loadDemo(t, requantised{be, s, quant.Scheme{Mode: quant.Affine, Bits: 8, Group: 64}}, o)
			})
			q.check(t, s)
			if s.None() && rounds() && q.fast.kl == 0 {
				t.Error("no divergence: activations have not been rounded")
			}
		})
	}
}

// demoTexts are replies to the reference's prompts that the model itself draws at temperature 1, each to its end: what comes
// behind it nobody reads, and the model has not learnt it.
func demoTexts(t *testing.T) (texts []passage) {
	var g struct {
		Cases []conversation `json:"cases"`
	}
	golden.Load(t, "testdata/demo.json", &g)
	be := cpu.New()
	defer be.Close()
	m := openDemo(t, be, backend.Float32)
	r := rand.New(rand.NewPCG(1, 0))
	for measured := 0; measured < leastPositions; {
		for _, c := range g.Cases {
			text := passage{slices.Clone(c.Prompt), len(c.Prompt) - 1}
			const most = 64 // tokens of a reply
			s := golden.NewSequence(t, be, m, len(c.Prompt)+most)
			row := s.Step(c.Prompt, int32(len(c.Prompt)-1))
			for range most {
				next, left := int32(0), r.Float64()
				for j, lp := range logSoftmax(row) {
					next = int32(j)
					if left -= math.Exp(lp); left < 0 {
						break
					}
				}
				if slices.Contains(m.Generation.EOS, next) {
					break
				}
				text.tokens = append(text.tokens, next)
				row = s.Step([]int32{next}, 0)
			}
			texts = append(texts, text)
			measured += len(text.tokens) - text.from
		}
	}
	return texts
}

func loadDemo(t *testing.T, be backend.Backend, o backend.Options) (*model.Loaded, error) {
	c, err := model.OpenCheckpoint(demo.FS(), demo.Name)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.Load(be, o)
}

// requantised is a backend whose loader gets the weights of one format in another.
type requantised struct {
	backend.Backend
	to, from quant.Scheme
}

func (b requantised) NewLoader(o backend.Options) backend.Loader {
	return requantiser{b.Backend.NewLoader(o), b.to, b.from}
}

type requantiser struct {
	backend.Loader
	to, from quant.Scheme
}

func (l requantiser) Load(s backend.WeightSpec) (backend.Weight, error) {
	s.Parts = slices.Clone(s.Parts)
	for i, p := range s.Parts {
		if p.Scheme != l.from || l.from == l.to || !l.to.None() && s.In%l.to.Group != 0 {
			continue
		}
		lead := p.Weight.Shape[:len(p.Weight.Shape)-1] // two numbers for a stack
		rows := 1
		for _, n := range lead {
			rows *= n
		}
		m, err := quant.NewMatrix(rows, s.In, p.Scheme, data(p.Weight), data(p.Scales), data(p.Biases))
		if err != nil {
			return nil, err
		}
		w := make([]float32, m.Rows*m.In)
		for r := range m.Rows {
			m.Row(w[r*m.In:][:m.In], r)
		}
		shape := func(last int) []int { return append(slices.Clone(lead), last) }
		p.Scheme = l.to
		if l.to.None() {
			p.Weight, p.Scales, p.Biases = &backend.Tensor{DType: string(quant.BF16), Shape: shape(m.In), Bytes: bf16(w)}, nil, nil
			s.Parts[i] = p
			continue
		}
		q, err := quant.Quantize(l.to, w, m.Rows, m.In, quant.BF16)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		p.Weight = &backend.Tensor{DType: string(quant.U32), Shape: shape(q.In * l.to.Bits / 32), Bytes: q.Weight}
		p.Scales = &backend.Tensor{DType: string(q.ScaleType), Shape: shape(q.In / l.to.Group), Bytes: q.Scales}
		if p.Biases = nil; q.Biases != nil {
			p.Biases = &backend.Tensor{DType: string(q.BiasType), Shape: shape(q.In / l.to.Group), Bytes: q.Biases}
		}
		s.Parts[i] = p
	}
	return l.Loader.Load(s)
}

// bf16 stores numbers as bfloat16.
func bf16(x []float32) []byte {
	h := make([]uint16, len(x))
	kernel.ToBF16(h, x)
	b := make([]byte, 0, 2*len(h))
	for _, v := range h {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

func data(t *backend.Tensor) *quant.Data {
	if t == nil {
		return nil
	}
	return &quant.Data{DType: quant.DType(t.DType), Shape: t.Shape, Bytes: t.Bytes}
}

// TestQualityRandom: tiny models of random weights, of every architecture, on random tokens. What they say is nearly noise (the
// entropy tells), so hardly any token is likelier than the next, and greedy agreement is low for a small divergence. What
// this shows is that no layer of any architecture loses more than the others; what text loses the demo model shows.
//
// Random routers are no better: their last choices are so near that activations of 8 bits would turn up to a fifth of the rows
// to other experts, which have nothing to do with the first. Models with routers and recurrences therefore keep 16: see Load in
// package model.
func TestQualityRandom(t *testing.T) {
	for _, typ := range model.Types() {
		if !*allFormats && !slices.Contains([]string{"qwen3", "gemma3", "deepseek_v3"}, typ) {
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", "model", "testdata", typ, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no golden: %v", typ, err)
		}
		var g randomModel
		golden.Load(t, files[0], &g) // 4bit.json, where there is one
		for _, s := range schemes() {
			t.Run(typ+"/"+s.String(), func(t *testing.T) { g.measure(t, s) })
		}
	}
}

// randomModel is what a golden of tools/golden/model.py says of a model.
type randomModel struct {
	Config map[string]any `json:"config"`
	Seed   uint64         `json:"seed"`
	KVB    bool           `json:"kv_b"`
}

func (g *randomModel) measure(t *testing.T, s quant.Scheme) {
	config, scheme := maps.Clone(g.Config), map[string]any{}
	if q, ok := config["quantization"].(map[string]any); ok {
		scheme = maps.Clone(q) // with what it says of single modules
	}
	stored := s
	if s.None() {
		delete(config, "quantization")
	} else if s.Mode != quant.Affine { // random codes would be other weights, up to twice as large
		stored = quant.Scheme{Mode: quant.Affine, Bits: 8, Group: 64}
	}
	if !s.None() {
		scheme["mode"], scheme["bits"], scheme["group_size"] = stored.Mode, stored.Bits, stored.Group
		config["quantization"] = scheme
	}
	b, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	has := func(path string) bool { return g.KVB && strings.HasSuffix(path, ".kv_b_proj") }
	texts := make([]passage, 8)
	r := rand.New(rand.NewPCG(3, 5))
	for i := range texts {
		for range leastPositions / len(texts) {
			texts[i].tokens = append(texts[i].tokens, r.Int32N(96)) // the vocabulary of all goldens
		}
	}
	q := compareRounded(t, texts, func(be backend.Backend, o backend.Options) (*model.Loaded, error) {
		return model.Synthetic{Config: b, Seed: g.Seed, Type: quant.BF16, Stored: has}.Load(requantised{be, s, stored}, o)
	})
	q.check(t, s)
}
