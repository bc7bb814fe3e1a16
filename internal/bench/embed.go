package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/chat"
	"hearth/internal/console"
	"hearth/internal/demo"
	"hearth/internal/embed"
	"hearth/internal/kernel"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/tokenizer"
)

// encoderShapes are the sizes of published embedding models; what they have in common is in embedFlags.config.
var encoderShapes = map[string]struct {
	Type   string `json:"model_type"`
	Hidden int    `json:"hidden_size"`
	Layers int    `json:"num_hidden_layers"`
	Heads  int    `json:"num_attention_heads"`
	FFN    int    `json:"intermediate_size"`
	Vocab  int    `json:"vocab_size"`
	MaxPos int    `json:"max_position_embeddings"`
	Types  int    `json:"type_vocab_size"`
}{
	"minilm":   {"bert", 384, 6, 12, 1536, 30522, 512, 2},
	"e5-small": {"bert", 384, 12, 12, 1536, 250037, 512, 2},
	"bge-m3":   {"xlm-roberta", 1024, 24, 16, 4096, 250002, 8194, 1},
}

// embedFlags are what one run measures.
type embedFlags struct {
	benchFlags
	prompt   int
	repeats  int
	texts    int
	longest  int
	step     int
	requests int
}

// embedResult compares texts of mixed length that share steps with one long text, which is what the engine does with a
// prompt. Rates and their ratio are medians over the repeats.
type embedResult struct {
	Shape     string  `json:"shape"`
	Bits      int     `json:"bits"`
	Threads   int     `json:"threads"`
	Precision string  `json:"precision"`
	Kernel    string  `json:"kernel"`
	Texts     int     `json:"texts"`
	Tokens    int     `json:"tokens"`
	Prompt    int     `json:"prompt_tokens"`
	Repeats   int     `json:"repeats"`
	Prefill   float64 `json:"prefill_tokens_per_s"`
	Embed     float64 `json:"embed_tokens_per_s"`
	Ratio     float64 `json:"ratio"`
	RatioMin  float64 `json:"ratio_min"`
	RatioMax  float64 `json:"ratio_max"`
	Requests  int     `json:"requests,omitempty"`
	HeapGrown int64   `json:"heap_grown_bytes,omitempty"`
	RSSGrown  int64   `json:"rss_grown_bytes,omitempty"`
}

func newEmbedCmd() *cobra.Command {
	f := embedFlags{benchFlags: benchFlags{group: 64, kv: "auto"}, prompt: 512}
	cmd := &cobra.Command{
		Use:   "embed",
		Short: "Measure batches of texts of mixed length against a prompt of the same model",
		Long: `embed makes an embedding model of random weights in memory and embeds batches of texts whose lengths are spread evenly
over the powers of two from 8 tokens on. Beside every batch it runs one prompt through the same layers, and prints both rates
in tokens per second and their ratio. For a decoder the prompt goes through the engine's own path, with keys and values stored.

With --requests N it then sends so many batches and prints by how much memory has grown since a tenth of them.`,
		Example: `  hearth bench embed
  hearth bench embed --shape qwen3-0.6b --bits 4
  hearth bench embed --shape tiny --requests 10000 --texts 4`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return tell(cmd, f.json, f.runEmbed) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.shape, "shape", "minilm", "model sizes: "+strings.Join(embedShapes(), ", "))
	fl.IntVar(&f.bits, "bits", 16, "bits per weight: 2, 3, 4, 5, 6, 8, or 16 for bfloat16")
	fl.IntVar(&f.threads, "threads", 0, "threads that compute (default: the processors this process may use)")
	f.precisionFlag(fl)
	fl.IntVar(&f.texts, "texts", 64, "texts of a batch")
	fl.IntVar(&f.longest, "longest", 512, "tokens of the longest text")
	fl.IntVar(&f.step, "step", embed.StepRows, "from how many tokens on texts no longer share a step")
	fl.IntVar(&f.layers, "layers", 0, "layers, if fewer than the shape's; decoders only")
	fl.IntVar(&f.repeats, "repeats", 5, "repeats to take medians of")
	fl.IntVar(&f.requests, "requests", 0, "batches to send for the memory they take")
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func embedShapes() []string {
	names := slices.AppendSeq(shapeNames(), maps.Keys(encoderShapes))
	slices.Sort(names)
	return names
}

// config is the model's config.json.
func (f *embedFlags) config() []byte {
	s, ok := encoderShapes[f.shape]
	if !ok {
		return f.benchFlags.config()
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a struct of numbers
	}
	if f.bits != 16 {
		b = fmt.Appendf(b[:len(b)-1], `,"quantization":{"bits":%d,"group_size":%d}}`, f.bits, f.group)
	}
	return b
}

func (f *embedFlags) check() error {
	s, encoder := encoderShapes[f.shape]
	scheme := quant.Scheme{Mode: quant.Affine, Bits: f.bits, Group: f.group}
	switch {
	case f.texts < 1 || f.step < 1 || f.repeats < 1 || f.requests < 0 || f.threads < 0:
		return errors.New("--texts, --step and --repeats must be at least 1, --requests and --threads at least 0")
	case f.longest < 8 || f.longest > 512:
		return errors.New("--longest must be between 8 and 512")
	case !encoder && shapes[f.shape].Hidden == 0:
		return console.Hintf(fmt.Errorf("unknown shape %q", f.shape), "shapes are %s", strings.Join(embedShapes(), ", "))
	case !encoder:
		return f.benchFlags.check()
	case f.bits != 16:
		if err := scheme.Check(s.Hidden); err != nil {
			return err
		}
	}
	return f.checkPrecision()
}

// runEmbed measures.
func (f *embedFlags) runEmbed(ctx context.Context, progress func(string)) (*embedResult, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	source := model.Synthetic{Config: f.config(), Seed: 1, Type: quant.BF16}
	how := model.Pooling{Kind: model.Embeds, Normalize: true}
	_, encoder := encoderShapes[f.shape]
	if !encoder {
		how.Rows = backend.PoolLast
	}
	blank := source
	blank.Blank = true
	unseen, err := blank.LoadEncoder(counts(), backend.Options{}, how)
	if err != nil {
		return nil, err
	}
	f.choose(how.Kind, unseen.Bytes)
	opts := f.options()
	be := cpu.New()
	defer be.Close()
	if err := f.fits(func(be backend.Backend) error {
		_, err := blank.LoadEncoder(be, opts, how)
		if err == nil && !encoder { // prefill has one of its own
			_, err = blank.Load(be, opts)
		}
		return err
	}); err != nil {
		return nil, err
	}
	m, err := source.LoadEncoder(be, opts, how)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	progress("made " + m.Description)
	tok, err := tokenizer.Load(demo.FS()) // a Service has one; the texts are given as ids
	if err != nil {
		return nil, err
	}
	s, err := embed.New(embed.Config{Model: m, Backend: be, Tokenizer: tok, MaxTokens: 512, StepRows: f.step})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	prefill, done, err := f.prefill(be, m, source, opts)
	if err != nil {
		return nil, err
	}
	defer done()
	req, tokens := f.batch(m.Vocab)
	r := &embedResult{Shape: f.shape, Bits: f.bits, Threads: f.threads, Precision: f.precision, Kernel: kernel.Current(),
		Texts: f.texts, Tokens: tokens, Prompt: f.prompt, Repeats: f.repeats, Requests: f.requests}
	if err := r.compare(ctx, s, req, prefill, progress); err != nil {
		return nil, err
	}
	return r, r.grow(ctx, s, req, progress)
}

// batch is texts whose lengths are spread evenly over the powers of two.
func (f *embedFlags) batch(vocab int) (*chat.EmbedRequest, int) {
	r := rand.New(rand.NewPCG(1, 2))
	req, tokens := &chat.EmbedRequest{}, 0
	for range f.texts {
		ids := make([]int32, int(8*math.Pow(float64(f.longest)/8, r.Float64())))
		for i := range ids {
			ids[i] = r.Int32N(int32(vocab))
		}
		tokens += len(ids)
		req.Inputs = append(req.Inputs, chat.Input{Tokens: ids})
	}
	return req, tokens
}

// prefill gives what runs a prompt through the same layers: for a decoder as the engine does, for an encoder as one text.
func (f *embedFlags) prefill(be *cpu.Backend, m *model.Encoder, source model.Synthetic, opts backend.Options) (run func(context.Context) (time.Duration, error), done func(), err error) {
	if _, ok := encoderShapes[f.shape]; !ok {
		other := cpu.New()
		l, err := source.Load(other, opts)
		if err != nil {
			return nil, nil, errors.Join(err, other.Close())
		}
		b, err := newBench(other, l, backend.KVPolicy{}, f.prompt+1, 1, 0)
		if err != nil {
			return nil, nil, errors.Join(err, l.Close(), other.Close())
		}
		return func(ctx context.Context) (time.Duration, error) { return b.run(ctx, 0, f.prompt, benchChunk) },
			func() { _, _ = l.Close(), other.Close() }, nil
	}
	b := &backend.Batch{Spans: []backend.Span{{Slot: -1, Len: f.prompt}}}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range f.prompt {
		b.Tokens = append(b.Tokens, r.Int32N(int32(m.Vocab)))
		b.Pos[0] = append(b.Pos[0], int32(i))
	}
	m.Prepare(b)
	return func(context.Context) (time.Duration, error) {
		start := time.Now()
		o := be.Begin(nil, b)
		defer o.End()
		_, err := o.Floats(m.Forward(o, b))
		return time.Since(start), err
	}, func() {}, nil
}

// compare fills in the rates. The first pass warms buffers up and is not timed.
func (r *embedResult) compare(ctx context.Context, s *embed.Service, req *chat.EmbedRequest, prefill func(context.Context) (time.Duration, error), progress func(string)) error {
	var one, many, ratio []float64
	for i := range r.Repeats + 1 {
		p, err := prefill(ctx)
		if err != nil {
			return err
		}
		start := time.Now()
		if _, err := s.Embed(ctx, req); err != nil {
			return err
		}
		e := time.Since(start)
		if i == 0 {
			continue
		}
		one, many = append(one, float64(r.Prompt)/p.Seconds()), append(many, float64(r.Tokens)/e.Seconds())
		ratio = append(ratio, many[i-1]/one[i-1])
		progress(fmt.Sprintf("repeat %d of %d: prompt %.0f tok/s, texts %.0f tok/s, ratio %.2f", i, r.Repeats, one[i-1], many[i-1], ratio[i-1]))
	}
	r.Prefill, r.Embed, r.Ratio = median(one), median(many), median(ratio)
	r.RatioMin, r.RatioMax = slices.Min(ratio), slices.Max(ratio)
	return nil
}

// grow sends requests and notes how much memory they have left behind since a tenth of them.
func (r *embedResult) grow(ctx context.Context, s *embed.Service, req *chat.EmbedRequest, progress func(string)) error {
	var heap [2]int64
	var rss [2]int64
	for i := range r.Requests {
		if _, err := s.Embed(ctx, req); err != nil {
			return err
		}
		if at := i + 1; at == max(r.Requests/10, 1) || at == r.Requests {
			k := at / r.Requests
			heap[k], rss[k] = heapBytes(), console.ResidentMemory()
			progress(fmt.Sprintf("%d requests: %d bytes of heap, %d resident", at, heap[k], rss[k]))
		}
	}
	r.HeapGrown, r.RSSGrown = heap[1]-heap[0], rss[1]-rss[0]
	return nil
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func (r *embedResult) print(w io.Writer) error {
	_, err := fmt.Fprintf(w, `model      %s, %d bits, %s
threads    %d, kernel %s
prompt     %.0f tok/s over %d tokens
texts      %.0f tok/s over %d texts of %d tokens together
ratio      %.2f (%.2f to %.2f)
`, r.Shape, r.Bits, r.Precision, r.Threads, r.Kernel, r.Prefill, r.Prompt, r.Embed, r.Texts, r.Tokens, r.Ratio, r.RatioMin, r.RatioMax)
	if err == nil && r.Requests > 0 {
		_, err = fmt.Fprintf(w, "memory     %+d bytes of heap, %+d resident after %d requests\n", r.HeapGrown, r.RSSGrown, r.Requests)
	}
	return err
}
