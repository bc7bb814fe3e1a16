package bench

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"hearth/internal/backend"
	"hearth/internal/console"
	"hearth/internal/demo"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/kernel"
	"hearth/internal/kv"
	"hearth/internal/regular"
	"hearth/internal/tokenizer"
)

//go:embed texts
var texts embed.FS

// textNames are the embedded ones: prompts, and answers that repeat much of them or nothing.
var textNames = []string{"edits", "json", "corrections", "prose"}

// textCut stands between a prompt and its answer.
const textCut = "\n-----\n"

// speculateFlags are what "bench speculate" measures.
type speculateFlags struct {
	benchFlags
	tokenizer string
	texts     []string
	batches   []int
	tokens    int
	pairs     int
	first     int

	version, commit string
}

func newSpeculateCmd(version, commit string) *cobra.Command {
	f := speculateFlags{version: version, commit: commit}
	cmd := &cobra.Command{
		Use:   "speculate [TEXT...]",
		Short: "Measure decoding with drafts against decoding without",
		Long: `speculate lets a model of random weights say recorded answers: every step runs at its full cost, and then the token that comes
next in the answer takes the place of the one that the model would say. So which drafts are right is the text's, and time is the machine's.

A TEXT is ` + strings.Join(textNames, ", ") + `, or a file with a prompt, a line "-----" and its answer; all four, if none is named. The
sequences of a batch have tokens of their own, so that none finds another's. Each turn runs without drafts, with them, and without
again: the two without are compared with each other, and their mean with the one between. Intervals are of the median, at 95 %.
Of prompts without recurrent layers only the last row is computed; the time to the first token is measured on one that is whole.

The ceiling of a batch is what drafts could bring if all were right: tokens of a step of so many rows of each sequence, by its time
beside that of one row each. The time of such steps is printed, too.`,
		Example: `  hearth bench speculate
  hearth bench speculate edits prose -b 1 --pairs 20
  HEARTH_CPU=avx2 hearth bench speculate edits --tokenizer ./models/qwen3-0.6b --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.texts = args
			return tell(cmd, f.json, f.run)
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	f.modelFlags(fl)
	fl.StringVar(&f.folder, "folder", "", "the model in this folder, in place of a shape")
	fl.StringVar(&f.tokenizer, "tokenizer", "", "the folder of a model whose tokenizer divides the texts (default: that of --folder, else of the demo model)")
	fl.IntSliceVarP(&f.batches, "batch", "b", []int{1, 8}, "sequences that decode together")
	fl.IntVarP(&f.tokens, "tokens", "n", 160, "tokens of an answer at most")
	fl.IntVar(&f.pairs, "pairs", 8, "turns of each text and batch")
	fl.IntVar(&f.first, "first", 512, "tokens of the prompt whose time to the first token is measured; 0: none")
	fl.StringVar(&f.kv, "kv-type", "auto", "how keys and values are kept: "+strings.Join(backend.KVNames, ", "))
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

// text is a recorded one.
type text struct {
	name           string
	prompt, answer []int32
}

// rowCost is a step of a batch in which each sequence has so many rows.
type rowCost struct {
	Batch int     `json:"batch"`
	Rows  int     `json:"rows"`
	MS    float64 `json:"ms"`
	Ratio float64 `json:"ratio"` // to one row each
}

// interval is a median between bounds.
type interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

func (i interval) String() string { return fmt.Sprintf("%.3f [%.3f, %.3f]", i.Median, i.Low, i.High) }

// speculateTest is a text and a batch.
type speculateTest struct {
	Text     string   `json:"text"`
	Batch    int      `json:"batch"`
	Prompt   int      `json:"prompt_tokens"`
	Tokens   int      `json:"tokens"`
	Drafted  int      `json:"drafted_tokens"` // in all turns
	Accepted int      `json:"accepted_tokens"`
	Steps    float64  `json:"tokens_per_step"` // of a sequence
	Plain    float64  `json:"plain_tps"`
	Drafts   float64  `json:"tps"`
	Ratio    interval `json:"ratio"`
	Same     interval `json:"same_ratio"` // without drafts to without
	Ceiling  float64  `json:"ceiling"`
	First    bool     `json:"first_token,omitempty"` // the ratios are of times to it, and nothing else is known
}

// speculateResult is what --json prints.
type speculateResult struct {
	Version string           `json:"version"`
	Commit  string           `json:"commit"`
	CPU     string           `json:"cpu"`
	Kernel  string           `json:"kernel"`
	Model   modelFacts       `json:"model"`
	Pairs   int              `json:"pairs"`
	Rows    []rowCost        `json:"rows"`
	Results []*speculateTest `json:"results"`

	about string
}

func (f *speculateFlags) check() error {
	for _, n := range f.batches {
		if n < 1 || n > marks {
			return fmt.Errorf("--batch takes numbers from 1 to %d", marks)
		}
	}
	switch {
	case len(f.batches) == 0:
		return errors.New("there is nothing to measure")
	case f.tokens < 2 || f.pairs < 1 || f.first < 0 || f.first > 1<<20:
		return errors.New("--tokens must be at least 2, --pairs at least 1 and --first from 0 to 1048576")
	}
	return f.benchFlags.check()
}

func (f *speculateFlags) run(ctx context.Context, progress func(string)) (*speculateResult, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	all, err := f.read()
	if err != nil {
		return nil, err
	}
	be, m, err := f.open(progress)
	if err != nil {
		return nil, err
	}
	defer be.Close()
	defer m.Close()
	for _, t := range all {
		for _, id := range slices.Concat(t.prompt, t.answer) {
			if int(id) >= m.Vocab-marks {
				return nil, console.Hintf(fmt.Errorf("token %d of %s is not one of the model's %d", id, t.name, m.Vocab), "--tokenizer names the folder of another one")
			}
		}
	}
	b := &engineBench{ctx: ctx, be: be, m: m, f: &engineFlags{benchFlags: f.benchFlags, chunk: benchChunk}, progress: progress}
	s := &speculateRun{b: b, f: f, r: &recorded{Backend: be, vocab: m.Vocab, whole: backend.Fixed(m.States()), slots: map[kv.SlotID]int{}}}
	r := &speculateResult{Version: f.version, Commit: f.commit, CPU: cpuName(), Kernel: kernel.Current(), Pairs: f.pairs,
		Model: modelFacts{Shape: f.name(), Bytes: m.Bytes, Precision: f.precision}}
	r.about = fmt.Sprintf("%s, %s, %s", r.Model.Shape, m.Description, f.precision)
	_, _ = fmt.Sscanf(m.Width, "%d bits", &r.Model.Bits)
	if r.Rows, err = s.rows(all); err != nil {
		return nil, err
	}
	if err := s.start(all); err != nil {
		return nil, err
	}
	defer s.close()
	for _, t := range all {
		for _, batch := range f.batches {
			test, err := s.measure(&t, batch)
			if err != nil {
				return nil, err
			}
			test.Ceiling = ceiling(r.Rows, batch)
			r.Results = append(r.Results, test)
		}
	}
	if f.first > 0 {
		test, err := s.firstToken()
		if err != nil {
			return nil, err
		}
		r.Results = append(r.Results, test)
	}
	return r, nil
}

// read reads and divides the texts.
func (f *speculateFlags) read() ([]text, error) {
	from := demo.FS()
	if dir := cmp.Or(f.tokenizer, f.folder); dir != "" {
		from = regular.Dir(dir)
	}
	side, err := generate.Load(from, "")
	if err != nil && !errors.Is(err, generate.ErrNoTemplate) {
		return nil, err
	}
	if len(f.texts) == 0 {
		f.texts = textNames
	}
	var all []text
	for _, name := range f.texts {
		var b []byte
		if slices.Contains(textNames, name) {
			b, err = texts.ReadFile("texts/" + name + ".txt")
		} else {
			b, err = os.ReadFile(name)
		}
		if err != nil {
			return nil, console.Hintf(err, "a text is %s, or a file", strings.Join(textNames, ", "))
		}
		prompt, answer, ok := strings.Cut(string(b), textCut)
		t := text{name: filepath.Base(name), prompt: side.Tokenizer.Encode(prompt, tokenizer.EncodeOptions{}), answer: side.Tokenizer.Encode(answer, tokenizer.EncodeOptions{})}
		if !ok || len(t.prompt) == 0 || len(t.answer) < 2 {
			return nil, fmt.Errorf("%s: a prompt, a line ----- and an answer are wanted", name)
		}
		t.answer = t.answer[:min(len(t.answer), f.tokens)]
		all = append(all, t)
	}
	return all, nil
}

// speculateRun is an engine with drafts and one without over the same model.
type speculateRun struct {
	b           *engineBench
	f           *speculateFlags
	r           *recorded
	plain, with *engine.Engine
	salt        byte
	turn        int
}

// rowsOf are rows of each sequence that are measured.
var rowsOf = []int{1, 2, 3, 4, 6, 8, 12, 16}

// rowsAtOnce is how many rows a step is measured with at most.
const rowsAtOnce = 96

// rows measures steps of several rows of each sequence, in turns.
func (s *speculateRun) rows(all []text) ([]rowCost, error) {
	depth := 0
	for _, t := range all {
		depth = max(depth, len(t.prompt)+len(t.answer)/2)
	}
	raw, err := newBench(s.b.be, s.b.m, s.f.policy(), depth+rowsOf[len(rowsOf)-1], slices.Max(s.f.batches), 1)
	if err != nil {
		return nil, err
	}
	if err := raw.fill(s.b.ctx, []int{depth}); err != nil {
		return nil, err
	}
	var costs []rowCost
	for _, batch := range s.f.batches {
		from, took := len(costs), map[int][]float64{}
		for round := range min(s.f.pairs, 7) + 1 {
			for _, n := range rowsOf {
				if n*batch > rowsAtOnce && n > 1 {
					continue
				}
				if err := raw.rewind(depth, batch); err != nil {
					return nil, err
				}
				start := time.Now()
				if err := raw.step(s.b.ctx, depth, n, batch, n); err != nil {
					return nil, err
				}
				if round > 0 { // to warm up
					took[n] = append(took[n], time.Since(start).Seconds())
				}
			}
		}
		for _, n := range rowsOf {
			if len(took[n]) > 0 {
				costs = append(costs, rowCost{batch, n, round3(1e3 * median(took[n])), round3(median(took[n]) / median(took[1]))})
			}
		}
		s.b.progress(fmt.Sprintf("steps of %d sequences behind %d tokens: %.1f ms of one row each, %.2f times that of %d",
			batch, depth, costs[from].MS, costs[len(costs)-1].Ratio, costs[len(costs)-1].Rows))
	}
	return costs, nil
}

// ceiling is the most that drafts could bring a batch.
func ceiling(costs []rowCost, batch int) float64 {
	best := 0.0
	for _, c := range costs {
		if c.Batch == batch {
			best = max(best, float64(c.Rows)/c.Ratio)
		}
	}
	return round3(best)
}

// start starts both engines with the memory for all that is asked. The prompts of a batch run in one step, so that none decodes
// beside those of others.
func (s *speculateRun) start(all []text) error {
	most := max(s.f.first, 1)
	for _, t := range all {
		most = max(most, len(t.prompt)+len(t.answer))
	}
	most += 3 * backend.PageTokens
	bytes, err := s.b.need(most * slices.Max(s.f.batches))
	if err != nil {
		return err
	}
	start := func(speculate bool) (*engine.Engine, error) {
		return engine.New(engine.Config{Model: recordedModel{s.b.m.Generator}, Backend: s.r, KV: s.f.policy(), Vocab: s.b.m.Vocab, Budget: 2*bytes + 128<<20,
			MaxContext: most, MaxSequences: max(slices.Max(s.f.batches), 8), PrefillChunk: max(benchChunk, most*slices.Max(s.f.batches)), Speculate: speculate})
	}
	if s.plain, err = start(false); err != nil {
		return err
	}
	if s.with, err = start(true); err != nil {
		return errors.Join(err, s.plain.Close())
	}
	return nil
}

func (s *speculateRun) close() {
	_ = s.plain.Close() // nobody waits for them
	_ = s.with.Close()
}

// turnOf runs without drafts, with them and without.
func (s *speculateRun) turnOf(run func(*engine.Engine) (float64, error)) (before, with, after float64, err error) {
	for _, of := range []struct {
		e   *engine.Engine
		got *float64
	}{{s.plain, &before}, {s.with, &with}, {s.plain, &after}} {
		if err == nil {
			*of.got, err = run(of.e)
		}
	}
	return before, with, after, err
}

// measure runs a text in turns. The first turn is to warm up: what the engine has learned of steps stays with it.
func (s *speculateRun) measure(t *text, batch int) (*speculateTest, error) {
	test := &speculateTest{Text: t.name, Batch: batch, Prompt: len(t.prompt) + 1, Tokens: len(t.answer)}
	var plain, with, ratio, same []float64
	steps := 0
	for turn := range s.f.pairs + 1 {
		prompts, right := s.load(t, batch), ""
		a, b, c, err := s.turnOf(func(e *engine.Engine) (float64, error) {
			speed, drafted, accepted, err := s.say(e, prompts, len(t.answer))
			if e == s.with {
				right = fmt.Sprintf("%d of %d right", accepted, drafted)
			}
			if turn > 0 && e == s.with {
				test.Drafted, test.Accepted = test.Drafted+drafted, test.Accepted+accepted
				steps += batch*(len(t.answer)-1) - accepted
			}
			return speed, err
		})
		if err != nil {
			return nil, err
		}
		s.b.progress(fmt.Sprintf("%s, %d together, turn %d of %d: %.1f tok/s, %.1f with drafts (%s), %.1f", t.name, batch, turn, s.f.pairs, a, b, right, c))
		if turn > 0 {
			plain, with = append(plain, (a+c)/2), append(with, b)
			ratio, same = append(ratio, 2*b/(a+c)), append(same, c/a)
		}
	}
	test.Plain, test.Drafts, test.Ratio, test.Same = round3(median(plain)), round3(median(with)), between(ratio), between(same)
	test.Steps = round3(float64(s.f.pairs*batch*(len(t.answer)-1)) / float64(max(steps, 1)))
	return test, nil
}

// load gives each sequence of a batch tokens of its own, of the same pattern.
func (s *speculateRun) load(t *text, batch int) [][]int32 {
	s.turn++
	words := s.r.vocab - marks
	moved := func(ids []int32, k int) []int32 {
		out := make([]int32, len(ids))
		for i, id := range ids {
			out[i] = int32((int(id) + (s.turn*marks+k)*7919) % words)
		}
		return out
	}
	s.r.answers, s.r.begins = s.r.answers[:0], s.r.begins[:0]
	var prompts [][]int32
	for k := range batch {
		p := append(moved(t.prompt, k), s.r.mark(k))
		prompts = append(prompts, p)
		s.r.answers, s.r.begins = append(s.r.answers, moved(t.answer, k)), append(s.r.begins, len(p))
	}
	return prompts
}

// say runs prompts together and gives the tokens a second behind their first ones.
func (s *speculateRun) say(e *engine.Engine, prompts [][]int32, tokens int) (speed float64, drafted, accepted int, err error) {
	s.salt++
	runtime.GC() // no collection of the other's garbage falls into it
	var streams []*engine.Stream
	for k, p := range prompts {
		st, err := e.Submit(s.b.ctx, engine.Prompt{Tokens: p, MaxTokens: tokens, Logprobs: -1, Salt: kv.Salt{s.salt, byte(k), byte(s.turn), byte(s.turn >> 8)}})
		if err != nil {
			return 0, 0, 0, err
		}
		streams = append(streams, st)
	}
	var first, last time.Time
	for k, st := range streams {
		ids, err := read(st)
		if err != nil {
			return 0, 0, 0, err
		}
		if !slices.Equal(ids, s.r.answers[k][:tokens]) {
			return 0, 0, 0, errors.New("an answer is not the recorded one")
		}
		u := st.Usage()
		if drafted, accepted = drafted+u.Drafted, accepted+u.Accepted; k == 0 || u.First.Before(first) {
			first = u.First
		}
		if u.Ended.After(last) {
			last = u.Ended
		}
	}
	return float64(len(prompts)*(tokens-1)) / last.Sub(first).Seconds(), drafted, accepted, nil
}

// firstToken compares the time from a prompt's arrival to its first token.
func (s *speculateRun) firstToken() (*speculateTest, error) {
	s.r.whole = true
	prompt := make([]int32, s.f.first-1)
	test := &speculateTest{Text: "first token", Batch: 1, Prompt: s.f.first, Tokens: 1, First: true}
	var ratio, same []float64
	for turn := range s.f.pairs + 1 {
		for i := range prompt {
			prompt[i] = int32((i*i + turn*8191) % (s.r.vocab - marks))
		}
		t := &text{prompt: prompt, answer: []int32{1, 2}}
		a, b, c, err := s.turnOf(func(e *engine.Engine) (float64, error) {
			s.salt++
			prompts := s.load(t, 1)
			st, err := e.Submit(s.b.ctx, engine.Prompt{Tokens: prompts[0], MaxTokens: 2, Logprobs: -1, Salt: kv.Salt{s.salt, byte(s.turn), byte(s.turn >> 8)}})
			if err != nil {
				return 0, err
			}
			if _, err := read(st); err != nil {
				return 0, err
			}
			u := st.Usage()
			return u.First.Sub(u.Submitted).Seconds(), nil
		})
		if err != nil {
			return nil, err
		}
		s.b.progress(fmt.Sprintf("first token, turn %d of %d: %.1f ms, %.1f with drafts, %.1f", turn, s.f.pairs, 1e3*a, 1e3*b, 1e3*c))
		if turn > 0 {
			ratio, same = append(ratio, 2*b/(a+c)), append(same, c/a)
		}
	}
	test.Ratio, test.Same = between(ratio), between(same)
	return test, nil
}

// between is the median of x with its interval at 95 %, from order alone; of few numbers all that there are.
func between(x []float64) interval {
	x = slices.Sorted(slices.Values(x))
	n, k, below := len(x), 0, math.Pow(0.5, float64(len(x)))
	for sum := below; 2*sum <= 0.05; sum += below {
		k++ // so many of each end are left out
		below *= float64(n-k+1) / float64(k)
	}
	k = max(k-1, 0)
	return interval{round3(median(x)), round3(x[k]), round3(x[n-1-k])}
}

func (r *speculateResult) print(w io.Writer) error {
	fmt.Fprintf(w, "model   %s, %.0f MB\n", r.about, float64(r.Model.Bytes)/1e6)
	fmt.Fprintf(w, "machine %s, kernel %s\n\n", r.CPU, r.Kernel)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "batch\trows each\tms\ttimes one\t")
	for _, c := range r.Rows {
		fmt.Fprintf(tw, "%d\t%d\t%.1f\t%.2f\t\n", c.Batch, c.Rows, c.MS, c.Ratio)
	}
	fmt.Fprintln(tw, "\t\t\t\t")
	if err := tw.Flush(); err != nil {
		return err
	}
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "text\tbatch\tprompt\ttokens\taccepted\ta step\ttok/s\twith drafts\tratio\toff to off\tceiling\t")
	for _, t := range r.Results {
		if t.First {
			fmt.Fprintf(tw, "%s\t%d\t%d\t\t\t\t\t\t%s\t%s\t\t\n", t.Text, t.Batch, t.Prompt, t.Ratio, t.Same)
			continue
		}
		share := "none run"
		if t.Drafted > 0 {
			share = fmt.Sprintf("%.0f%%", 100*float64(t.Accepted)/float64(t.Drafted))
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%s\t%.2f\t%.1f\t%.1f\t%s\t%s\t%.2f\t\n", t.Text, t.Batch, t.Prompt, t.Tokens, share, t.Steps, t.Plain, t.Drafts, t.Ratio, t.Same, t.Ceiling)
	}
	return tw.Flush()
}
