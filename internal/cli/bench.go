package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/kernel"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// shape is the sizes of a published model; a benchmark needs no more of it.
type shape struct {
	Hidden  int `json:"hidden_size"`
	Layers  int `json:"num_hidden_layers"`
	Heads   int `json:"num_attention_heads"`
	KVHeads int `json:"num_key_value_heads"`
	FFN     int `json:"intermediate_size"`
	*mixers
}

// mixers are the layers of a hybrid: those whose number Interval divides attend, the others have the gated delta rule.
type mixers struct {
	Interval int `json:"full_attention_interval"`
	KHeads   int `json:"linear_num_key_heads"`
	VHeads   int `json:"linear_num_value_heads"`
	KDim     int `json:"linear_key_head_dim"`
	VDim     int `json:"linear_value_head_dim"`
	Kernel   int `json:"linear_conv_kernel_dim"`
}

// shapes are Qwen3's small dense models (head dim 128, vocabulary 151,936, tied head) and the smallest hybrid that followed them
// (head dim 256, vocabulary 248,320).
var shapes = map[string]shape{
	"qwen3-0.6b":   {1024, 28, 16, 8, 3072, nil},
	"qwen3-1.7b":   {2048, 28, 16, 8, 6144, nil},
	"qwen3-4b":     {2560, 36, 32, 8, 9728, nil},
	"qwen3.5-0.8b": {1024, 24, 8, 2, 3584, &mixers{4, 16, 16, 128, 128, 4}},
	"tiny":         {128, 2, 2, 1, 256, nil},
	"tiny-hybrid":  {128, 2, 2, 1, 256, &mixers{2, 1, 2, 64, 64, 4}},
}

// benchFlags are what one run measures.
type benchFlags struct {
	shape     string
	layers    int
	bits      int
	group     int
	threads   int
	precision string
	tokens    int
	prompt    int
	repeats   int
	batch     int
	kv        string
	json      bool
}

// benchResult is one run. Rates are medians over the repeats; bandwidth was probed before every one of them.
type benchResult struct {
	Shape         string  `json:"shape"`
	Bits          int     `json:"bits"`
	Group         int     `json:"group,omitempty"`
	Threads       int     `json:"threads"`
	Precision     string  `json:"precision"`
	KV            string  `json:"kv_type"`
	Kernel        string  `json:"kernel"`
	Prompt        int     `json:"prompt_tokens"`
	Tokens        int     `json:"decode_tokens"`
	Repeats       int     `json:"repeats"`
	Prefill       float64 `json:"prefill_tokens_per_s"`
	Decode        float64 `json:"decode_tokens_per_s"`
	BytesPerToken int64   `json:"bytes_per_token"` // weights and the cached keys and values, as laid out in memory
	Rate          float64 `json:"decode_bytes_per_s"`
	Bandwidth     float64 `json:"read_bandwidth_bytes_per_s"`
	Share         float64 `json:"bandwidth_share"` // median of the shares of each repeat
}

func newBenchCmd() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure prefill and decode speed of a random model against the memory's read bandwidth",
		Long: `bench makes a model of random weights in memory, runs a prompt and a decode through it and prints tokens per
second. Decoding reads every weight once per token, so it also prints the bytes read per second and their share of
what plain reads reach, measured in the same run before every repeat. Sampling is not part of the measurement.

With --batch N it compares N sequences that decode together in an engine with one alone, in turns, sampling (greedily)
included, and prints both rates and their ratio.`,
		Example: `  hearth bench
  hearth bench --shape qwen3-4b --bits 8 --threads 1 --json
  hearth bench --batch 8`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			progress := func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), "bench: "+line) }
			if f.batch > 1 {
				r, err := f.runBatch(cmd.Context(), progress)
				if err != nil {
					return err
				}
				return r.print(cmd.OutOrStdout(), f.json)
			}
			r, err := f.run(cmd.Context(), progress)
			if err != nil {
				return err
			}
			return r.print(cmd.OutOrStdout(), f.json)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	f.modelFlags(fl)
	fl.IntVar(&f.tokens, "tokens", 32, "tokens to decode in every repeat")
	fl.IntVar(&f.prompt, "prompt", 128, "tokens of the prompt")
	fl.IntVar(&f.repeats, "repeats", 5, "repeats to take medians of")
	fl.IntVar(&f.batch, "batch", 1, "sequences that decode together, against one alone")
	fl.StringVar(&f.kv, "kv-type", "auto", "how keys and values are kept: "+strings.Join(backend.KVNames, ", "))
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	cmd.AddCommand(newBenchEngineCmd(), newBenchReadCmd(), newBenchEmbedCmd())
	return cmd
}

// modelFlags are those that say which model runs and how.
func (f *benchFlags) modelFlags(fl *pflag.FlagSet) {
	fl.StringVar(&f.shape, "shape", "qwen3-0.6b", "model sizes: "+strings.Join(shapeNames(), ", "))
	fl.IntVar(&f.layers, "layers", 0, "layers, if fewer than the shape's: a cut of it for long prompts")
	fl.IntVar(&f.bits, "bits", 4, "bits per weight: 2, 3, 4, 5, 6, 8, or 16 for bfloat16")
	fl.IntVar(&f.group, "group", 64, "weights that share a scale: 32, 64 or 128")
	fl.IntVar(&f.threads, "threads", 0, "threads that compute (default: the processors this process may use)")
	fl.StringVar(&f.precision, "precision", "fast", "fast (8-bit activations) or exact (float32 activations)")
}

func shapeNames() []string {
	var s []string
	for name := range shapes {
		s = append(s, name)
	}
	slices.Sort(s)
	return s
}

// check refuses what cannot run before anything is built.
func (f *benchFlags) check() error {
	scheme := quant.Scheme{Mode: quant.Affine, Bits: f.bits, Group: f.group}
	switch {
	case shapes[f.shape].Hidden == 0:
		return hintf(fmt.Errorf("unknown shape %q", f.shape), "shapes are %s", strings.Join(shapeNames(), ", "))
	case f.precision != "fast" && f.precision != "exact":
		return hintf(fmt.Errorf("unknown precision %q", f.precision), "precisions are fast and exact")
	case f.batch < 0 || f.batch > 256:
		return errors.New("--batch must be at most 256")
	case f.tokens < 1 || f.prompt < 1 || f.repeats < 1 || f.threads < 0:
		return errors.New("--tokens, --prompt and --repeats must be at least 1, --threads at least 0")
	case f.bits != 16 && scheme.Check(shapes[f.shape].Hidden) != nil:
		return hintf(scheme.Check(shapes[f.shape].Hidden), "--bits takes 2, 3, 4, 5, 6, 8 or 16, --group 32, 64 or 128")
	}
	_, err := backend.ParseKV(f.kv)
	return err
}

// cut is the shape with so many layers as asked for.
func (f *benchFlags) cut() shape {
	s := shapes[f.shape]
	if f.layers > 0 {
		s.Layers = min(s.Layers, f.layers)
	}
	return s
}

// config is the model's config.json.
func (f *benchFlags) config() []byte {
	type affine struct {
		Bits  int `json:"bits"`
		Group int `json:"group_size"`
	}
	c := struct {
		Type string `json:"model_type"`
		shape
		HeadDim int     `json:"head_dim"`
		Vocab   int     `json:"vocab_size"`
		Eps     float64 `json:"rms_norm_eps"`
		Theta   float64 `json:"rope_theta"`
		MaxPos  int     `json:"max_position_embeddings"`
		Tied    bool    `json:"tie_word_embeddings"`
		Quant   *affine `json:"quantization,omitempty"`
	}{"qwen3", f.cut(), 128, 151936, 1e-6, 1e6, 40960, true, nil}
	if c.mixers != nil {
		c.Type, c.HeadDim, c.Vocab = "qwen3_5", 256, 248320
	}
	if f.bits != 16 {
		c.Quant = &affine{f.bits, f.group}
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // a struct of numbers
	}
	return b
}

// open makes the backend and the model on it, and fixes f.threads. The caller closes both.
func (f *benchFlags) open(progress func(string)) (*cpu.Backend, *model.Loaded, error) {
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	if f.threads == 0 {
		f.threads = cpu.Threads()
	}
	if f.threads > runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(f.threads)
	}
	start := time.Now()
	be := cpu.New()
	opts := backend.Options{Threads: f.threads, Exact: f.precision == "exact"}
	m, err := model.Synthetic{Config: f.config(), Seed: 1, Type: quant.BF16}.Load(be, opts)
	if err != nil {
		return nil, nil, errors.Join(err, be.Close())
	}
	runtime.GC() // the unpacked weights
	progress(fmt.Sprintf("made %s in %.1fs", m.Description, time.Since(start).Seconds()))
	return be, m, nil
}

// policy is what check has seen to be one.
func (f *benchFlags) policy() backend.KVPolicy {
	p, err := backend.ParseKV(f.kv)
	if err != nil {
		panic(err)
	}
	return p
}

func (f *benchFlags) run(ctx context.Context, progress func(string)) (*benchResult, error) {
	be, m, err := f.open(progress)
	if err != nil {
		return nil, err
	}
	defer be.Close()
	defer m.Close()
	b, err := newBenchKV(be, m, f.policy(), f.prompt, f.tokens)
	if err != nil {
		return nil, err
	}
	r := &benchResult{Shape: f.shape, Bits: f.bits, Threads: f.threads, Precision: f.precision, KV: b.st.Policy().String(),
		Kernel: kernel.Current(), Prompt: f.prompt, Tokens: f.tokens, Repeats: f.repeats}
	if f.bits != 16 {
		r.Group = f.group
	}
	return r, b.measure(ctx, r, progress)
}

// bench is one sequence over a loaded model.
type bench struct {
	be     *cpu.Backend
	st     backend.Store
	m      *model.Loaded
	table  kv.Table
	tokens []int32
	batch  backend.Batch
}

func newBench(be *cpu.Backend, m *model.Loaded, prompt, tokens int) (*bench, error) {
	return newBenchKV(be, m, backend.KVPolicy{}, prompt, tokens)
}

func newBenchKV(be *cpu.Backend, m *model.Loaded, p backend.KVPolicy, prompt, tokens int) (*bench, error) {
	st, err := be.NewStore(m.States(), p)
	if err != nil {
		return nil, err
	}
	pages := (prompt+tokens)/backend.PageTokens + 1
	b := &bench{be: be, st: st, m: m}
	capacity := kv.Capacity{Slots: 1}
	for range st.Geometry().Groups {
		var ids []kv.PageID
		for i := range pages {
			ids = append(ids, kv.PageID(i+1))
		}
		b.table.Pages = append(b.table.Pages, ids)
		capacity.Pages = append(capacity.Pages, pages)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range prompt + tokens {
		b.tokens = append(b.tokens, r.Int32N(int32(m.Vocab)))
	}
	return b, st.Resize(capacity)
}

// chunk is how many prompt tokens run in one step.
const benchChunk = 512

// run runs tokens [from, to) in steps of at most chunk and reads the logits of the last one.
func (b *bench) run(ctx context.Context, from, to, chunk int) (time.Duration, error) {
	if from == 0 { // state that cannot be cut starts anew
		if err := b.st.Open(0, kv.Match{}, nil); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	for b.table.Len = from; b.table.Len < to; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n := min(chunk, to-b.table.Len)
		b.batch.Tokens, b.batch.Pos[0] = b.tokens[b.table.Len:][:n], b.batch.Pos[0][:0]
		for i := range n {
			b.batch.Pos[0] = append(b.batch.Pos[0], int32(b.table.Len+i))
		}
		b.batch.Spans = append(b.batch.Spans[:0], backend.Span{Len: n, Start: b.table.Len, Table: &b.table})
		b.batch.Out = b.batch.Out[:0]
		if last := b.table.Len + n; last == to || chunk == 1 {
			b.batch.Out = append(b.batch.Out, int32(n-1))
		}
		if err := b.step(); err != nil {
			return 0, err
		}
		b.table.Len += n
	}
	return time.Since(start), nil
}

func (b *bench) step() error {
	o := b.be.Begin(b.st, &b.batch)
	defer o.End()
	h := b.m.Forward(o, &b.batch)
	if len(b.batch.Out) == 0 {
		return o.Err()
	}
	if _, err := o.Floats(b.m.Logits(o, h)); err != nil {
		return err
	}
	return o.Err()
}

// probeBytes is several times any last-level cache of a desktop.
const probeBytes = 256 << 20

// measure fills r. The first pass warms buffers up and counts bytes, and is not timed.
func (b *bench) measure(ctx context.Context, r *benchResult, progress func(string)) error {
	if _, err := b.run(ctx, 0, r.Prompt, benchChunk); err != nil {
		return err
	}
	before := b.be.BytesRead()
	if _, err := b.run(ctx, r.Prompt, r.Prompt+1, 1); err != nil {
		return err
	}
	r.BytesPerToken = b.be.BytesRead() - before
	r.BytesPerToken += b.st.Geometry().FixedBytes
	for _, g := range b.st.Geometry().Groups {
		r.BytesPerToken += g.PageBytes / backend.PageTokens * int64(r.Prompt+r.Tokens/2)
	}
	var prefill, decode, bandwidth, share []float64
	for i := range r.Repeats {
		probe := kernel.ReadBandwidth(probeBytes, r.Threads)
		p, err := b.run(ctx, 0, r.Prompt, benchChunk)
		if err != nil {
			return err
		}
		d, err := b.run(ctx, r.Prompt, r.Prompt+r.Tokens, 1)
		if err != nil {
			return err
		}
		prefill = append(prefill, float64(r.Prompt)/p.Seconds())
		decode = append(decode, float64(r.Tokens)/d.Seconds())
		bandwidth = append(bandwidth, probe)
		share = append(share, decode[i]*float64(r.BytesPerToken)/probe)
		progress(fmt.Sprintf("repeat %d of %d: prefill %.1f tok/s, decode %.1f tok/s, %.0f%% of %.1f GB/s",
			i+1, r.Repeats, prefill[i], decode[i], 100*share[i], probe/1e9))
	}
	r.Prefill, r.Decode, r.Bandwidth, r.Share = median(prefill), median(decode), median(bandwidth), median(share)
	r.Rate = r.Decode * float64(r.BytesPerToken)
	return nil
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

func (r *benchResult) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := fmt.Fprintf(w, `model      %s, %d bits, %s, keys and values %s
threads    %d, kernel %s
prefill    %.1f tok/s over %d tokens
decode     %.1f tok/s over %d tokens
reads      %.1f MB per token, %.1f GB/s, %.0f%% of %.1f GB/s
`, r.Shape, r.Bits, r.Precision, r.KV, r.Threads, r.Kernel, r.Prefill, r.Prompt, r.Decode, r.Tokens,
		float64(r.BytesPerToken)/1e6, r.Rate/1e9, 100*r.Share, r.Bandwidth/1e9)
	return err
}
