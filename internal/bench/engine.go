package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/engine"
	"hearth/internal/model"
	"hearth/internal/sample"
	"hearth/internal/sched"
	"hearth/internal/tier"
)

// engineFlags are what one run of "bench engine" measures.
type engineFlags struct {
	benchFlags
	scale  float64 // of token counts
	target time.Duration
	chunk  int
	svg    string
	again  bool // turns: restart from disk in the middle
}

// figure is one measured number and, where there is one, the limit it has to keep.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Limit float64 `json:"limit,omitempty"` // at most; 0: none
}

type scenario struct {
	name, doc string
	run       func(*engineBench) ([]figure, error)
}

// scenarios are loads on the engine.
var scenarios = []scenario{
	{"turns", "an agent's 20 turns against computing only what is new", (*engineBench).turns},
	{"depth", "time to first token of 200 new tokens behind a long prompt", (*engineBench).depth},
	{"restore", "first token behind 30,000 known tokens, from memory and, after a restart, from disk", (*engineBench).restore},
	{"long", "a prompt of 131,072 tokens, and its memory against the forecast", (*engineBench).long},
	{"mixed", "a long prompt and short ones beside eight streams", (*engineBench).mixed},
	{"conversations", "10,000 conversations through 1 GB of cache", (*engineBench).conversations},
	{"masks", "16 sequences of which each is held to a form", (*engineBench).masks},
	{"forced", "a sequence of which every other stretch is forced", (*engineBench).forced},
	{"forms", "JSON of fixed keys against free text, both written by the model of --folder", (*engineBench).forms},
	{"stream", "processor time of a token from the scheduler to the socket, without a model", (*engineBench).stream},
}

func newEngineCmd() *cobra.Command {
	var f engineFlags
	var names []string
	var doc strings.Builder
	for _, s := range scenarios {
		names = append(names, s.name)
		fmt.Fprintf(&doc, "\n  %-14s %s", s.name, s.doc)
	}
	cmd := &cobra.Command{
		Use:   "engine SCENARIO",
		Short: "Measure scheduling and prefix cache on a random model",
		Long: `engine puts a load on the engine that serves requests, with a model of random weights, and compares it with running
the same tokens through the model without an engine where there is something to compare. Scenarios:
` + doc.String(),
		Example: `  hearth bench engine turns
  hearth bench engine long --shape tiny --json`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			return tell(cmd, f.json, func(ctx context.Context, progress func(string)) (figures, error) {
				return f.run(ctx, args[0], progress)
			})
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	f.modelFlags(fl)
	fl.StringVar(&f.folder, "folder", "", "the model in this folder, in place of a shape")
	fl.Float64Var(&f.scale, "scale", 1, "multiply token counts by this, for a quick look")
	fl.DurationVar(&f.target, "step-target", 150*time.Millisecond, "what a step may take while sequences decode")
	fl.IntVar(&f.chunk, "prefill-step-size", benchChunk, "prompt tokens per step at most")
	fl.BoolVar(&f.again, "restart", false, "turns: end the engine in the middle and go on from disk")
	fl.StringVar(&f.svg, "svg", "", "mixed: write a timeline to this file")
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (f *engineFlags) run(ctx context.Context, name string, progress func(string)) ([]figure, error) {
	if f.scale <= 0 || f.chunk < 1 {
		return nil, errors.New("--scale must be above 0 and --prefill-step-size at least 1")
	}
	b := &engineBench{ctx: ctx, f: f, progress: progress, rng: rand.New(rand.NewPCG(1, 2))}
	if name == "stream" { // the only one without a model
		return b.stream()
	}
	var err error
	if b.be, b.m, err = f.open(progress); err != nil {
		return nil, err
	}
	defer func() { b.m.Close(); b.be.Close() }() // which may not be those of now, see reload
	i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
	return scenarios[i].run(b)
}

// engineBench is a loaded model and what the scenarios share.
type engineBench struct {
	ctx      context.Context
	be       *cpu.Backend
	m        *model.Loaded
	f        *engineFlags
	progress func(string)
	rng      *rand.Rand
	disk     string // folder of the cache on disk; "": none
	quota    int64  // of it; 0: what a server would have
}

// reload begins anew with the model, as a new process does: a backend keeps the memory of all its stores to its end.
func (b *engineBench) reload() error {
	b.m.Close()
	b.be.Close()
	be, m, err := b.f.open(func(string) {})
	if err == nil {
		b.be, b.m = be, m
	}
	return err
}

// scaled is n tokens, or as many as --scale makes of them.
func (b *engineBench) scaled(n int) int { return max(int(float64(n)*b.f.scale), 1) }

// text is n random tokens.
func (b *engineBench) text(n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = b.rng.Int32N(int32(b.m.Vocab))
	}
	return t
}

// engine starts one with the memory for so many tokens of context.
func (b *engineBench) engine(context int, budget int64, trace func(engine.Step)) (*engine.Engine, error) {
	if budget == 0 {
		bytes, err := b.need(context + 4*backend.PageTokens)
		if err != nil {
			return nil, err
		}
		budget = bytes
	}
	cfg := engine.Config{Model: b.m, Backend: b.be, KV: b.f.policy(), Vocab: b.m.Vocab, Budget: budget, MaxContext: context,
		PrefillChunk: b.f.chunk, StepTarget: b.f.target, Trace: trace}
	return b.open(cfg)
}

// drafting is an engine with so much context that runs drafts, but not of earlier answers, which are the same.
func (b *engineBench) drafting(context int) (*engine.Engine, error) {
	budget, err := b.need(context + 4*backend.PageTokens)
	if err != nil {
		return nil, err
	}
	return b.open(engine.Config{Model: b.m, Backend: b.be, KV: b.f.policy(), Vocab: b.m.Vocab, Budget: 2*budget + 1<<24, MaxContext: context,
		PrefillChunk: b.f.chunk, StepTarget: b.f.target, Speculate: true, NoCache: true})
}

func (b *engineBench) open(cfg engine.Config) (*engine.Engine, error) {
	if b.disk != "" {
		cfg.Disk = &tier.Options{Dir: b.disk, Name: "bench", Fingerprint: b.m.Description, Quota: b.quota}
	}
	return engine.New(cfg)
}

// need is the bytes of keys and values of so many tokens.
func (b *engineBench) need(tokens int) (int64, error) {
	st, err := b.be.NewStore(b.m.States(), b.f.policy())
	if err != nil {
		return 0, err
	}
	return st.Geometry().Need(tokens, b.f.chunk), nil
}

// ask runs a prompt to its end, greedily, and gives what it generated.
func (b *engineBench) ask(e *engine.Engine, prompt []int32, tokens int) ([]int32, engine.Usage, error) {
	s, err := e.Submit(b.ctx, engine.Prompt{Tokens: prompt, MaxTokens: tokens, Sampling: sample.Params{}, Logprobs: -1})
	if err != nil {
		return nil, engine.Usage{}, err
	}
	out, err := read(s)
	return out, s.Usage(), err
}

// read gives all that a stream has.
func read(s *engine.Stream) (ids []int32, err error) {
	for {
		t, err := s.Next()
		if errors.Is(err, io.EOF) {
			return ids, nil
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, t.ID)
	}
}

type figures []figure

func (all figures) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range all {
		limit := ""
		if f.Limit > 0 {
			limit = fmt.Sprintf("at most %.4g", f.Limit)
		}
		fmt.Fprintf(tw, "%s\t%.4g %s\t%s\n", f.Name, f.Value, f.Unit, limit)
	}
	return tw.Flush()
}

// recorder keeps the steps of a trace.
type recorder struct {
	steps  []engine.Step
	starts []sched.ID // of all steps, which hold parts of it
}

func (r *recorder) add(s engine.Step) {
	from := len(r.starts)
	r.starts = append(r.starts, s.Starts...)
	s.Starts = r.starts[from:]
	r.steps = append(r.steps, s)
}

// end is when a step's tokens are out.
func end(s *engine.Step) time.Time { return s.Began.Add(s.Plan + s.Run + s.Book) }
