package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/kernel"
)

// limits are what the machine does at most with some threads, per second: bytes read, operations on 8-bit integers, floats and
// bfloat16. 0: unknown.
type limits struct{ Read, Int8, Float, Half float64 }

// over is the higher of each limit.
func (l limits) over(m limits) limits {
	return limits{max(l.Read, m.Read), max(l.Int8, m.Int8), max(l.Float, m.Float), max(l.Half, m.Half)}
}

// multiplications are a kind of them that the machine is measured for.
type multiplications string

const (
	inInt8  multiplications = "int8"
	inInt16 multiplications = "int16"
	inHalf  multiplications = "bf16"
	inFloat multiplications = "float32"
)

// attending is the fastest kind that attention could use: on codes and whole numbers that of products of such, on bfloat16
// numbers those of such where the processor multiplies them faster than floats, and floats where queries are not to be rounded.
func attending(p backend.KVPolicy, precision string, l limits) multiplications {
	switch prec, _ := backend.ParsePrecision(precision); {
	case prec > backend.Outliers:
		return inFloat
	case p.Bits > 0:
		return inInt8
	case p.DType == backend.I16:
		return inInt16
	case p.DType == backend.BF16 && l.Half > l.Float:
		return inHalf
	}
	return inFloat
}

// of is the limit of a kind. What multiplies bytes in fours takes numbers of twice their size in pairs.
func (l limits) of(m multiplications) float64 {
	return map[multiplications]float64{inInt8: l.Int8, inInt16: l.Int8 / 2, inHalf: l.Half, inFloat: l.Float}[m]
}

// seconds is what work takes at least: its reads or its arithmetic. 0 if the arithmetic's speed is unknown.
func (l limits) seconds(w cpu.Work, state int64, attend multiplications) float64 {
	read := float64(w.Read+state) / l.Read
	var sums float64
	for _, s := range []struct {
		ops  int64
		rate float64
	}{{w.Fast, l.Int8}, {w.Half, l.Half}, {w.Floats, l.Float}, {w.Attend, l.of(attend)}} {
		if s.ops > 0 && s.rate == 0 {
			return 0
		}
		if s.ops > 0 {
			sums += float64(s.ops) / s.rate
		}
	}
	return max(read, sums)
}

// speedTest is one test: a prompt, or tokens to decode.
type speedTest struct {
	Test    string `json:"test"` // pp512, tg128
	Depth   int    `json:"depth"`
	Batch   int    `json:"batch"`
	Threads int    `json:"threads"`

	TPS    float64      `json:"tps"` // medians, of all sequences together
	Min    float64      `json:"tps_min"`
	Max    float64      `json:"tps_max"`
	Limit  float64      `json:"tps_limit"`         // median of what the machine could do in each repetition; 0: unknown
	Share  float64      `json:"limit_pct"`         // median of the repetitions' percentages; 0: the limit is unknown
	Steps  *percentiles `json:"step_ms,omitempty"` // of all repetitions' decode steps; nil for prompts
	tokens int
	decode bool
	tps    []float64
	share  []float64
	limit  []float64 // tokens per second
	steps  []float64 // milliseconds
	limits []limits
}

// percentiles are of a set of figures, each one of them: the nearest rank.
type percentiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// percentilesOf is nil where there are no figures.
func percentilesOf(x []float64) *percentiles {
	if len(x) == 0 {
		return nil
	}
	x = slices.Sorted(slices.Values(x))
	return &percentiles{round3(quantile(x, 0.5)), round3(quantile(x, 0.9)), round3(quantile(x, 0.99))}
}

// speedResult is what --json prints.
type speedResult struct {
	Version string       `json:"version"`
	Commit  string       `json:"commit"`
	CPU     string       `json:"cpu"`
	Kernel  string       `json:"kernel"`
	Machine machineRates `json:"machine"`
	Model   modelFacts   `json:"model"`
	Results []*speedTest `json:"results"`

	about string
}

// machineRates are the medians with the most threads.
type machineRates struct {
	Read  float64 `json:"read_gbps"`
	Int8  float64 `json:"int8_gops"`
	Float float64 `json:"bf16_gflops"` // in the widest form the kernels have for bfloat16 numbers
}

type modelFacts struct {
	Shape     string `json:"shape"`
	Bits      int    `json:"bits"`
	Bytes     int64  `json:"bytes"` // as stored
	Precision string `json:"precision"`
	Attention string `json:"attention"` // the multiplications that its limit is counted at
}

// tests are all combinations.
func (f *speedFlags) tests() []*speedTest {
	var all []*speedTest
	for _, threads := range f.workers {
		for _, depth := range f.depths {
			for _, n := range f.prompts {
				if n > 0 {
					all = append(all, &speedTest{Test: fmt.Sprintf("pp%d", n), Depth: depth, Batch: 1, Threads: threads, tokens: n})
				}
			}
			for _, n := range f.tokens {
				for _, batch := range f.batches {
					if n > 0 {
						all = append(all, &speedTest{Test: fmt.Sprintf("tg%d", n), Depth: depth, Batch: batch, Threads: threads, tokens: n, decode: true})
					}
				}
			}
		}
	}
	return all
}

func (f *speedFlags) run(ctx context.Context, progress func(string)) (*speedResult, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if len(f.workers) == 0 {
		f.workers = []int{cpu.Threads()}
	}
	f.threads = slices.Max(f.workers)
	be, m, err := f.open(progress)
	if err != nil {
		return nil, err
	}
	defer be.Close()
	defer m.Close()
	b, err := newBench(be, m, f.policy(), slices.Max(f.depths)+slices.Max(slices.Concat(f.prompts, f.tokens)), slices.Max(f.batches), len(f.depths))
	if err != nil {
		return nil, err
	}
	r := &speedResult{CPU: cpuName(), Kernel: kernel.Current(), Model: modelFacts{Shape: f.name(), Bytes: m.Bytes, Precision: f.precision}, Results: f.tests()}
	r.Version, r.Commit = f.version, f.commit
	_, _ = fmt.Sscanf(m.Width, "%d bits", &r.Model.Bits)
	r.about = fmt.Sprintf("%s, %s, %s, keys and values %s", f.name(), m.Description, f.precision, b.st.Policy())
	s := &speedRun{b: b, f: f, probe: kernel.NewProbe(int(f.probe)), progress: progress}
	defer s.probe.Close()
	s.attend = attending(b.st.Policy(), f.precision, s.look())
	r.Model.Attention = string(s.attend)
	if err := s.measure(ctx, r.Results); err != nil {
		return nil, err
	}
	r.finish()
	return r, nil
}

// speedRun measures tests in turns.
type speedRun struct {
	b        *bench
	attend   multiplications
	f        *speedFlags
	probe    *kernel.Probe
	progress func(string)
}

// measure runs every test once to warm up and to count its work, then all of them in turns.
func (s *speedRun) measure(ctx context.Context, tests []*speedTest) error {
	start := time.Now()
	if err := s.b.fill(ctx, s.f.depths); err != nil {
		return err
	}
	work := make([]cpu.Work, len(tests))
	for i, t := range tests {
		w, err := s.warm(ctx, t)
		if err != nil {
			return err
		}
		work[i] = w
	}
	s.progress(fmt.Sprintf("warm after %.1fs", time.Since(start).Seconds()))
	for rep := range s.f.reps {
		for i, t := range tests {
			if err := s.once(ctx, t, work[i]); err != nil {
				return err
			}
			n := len(t.tps) - 1
			s.progress(fmt.Sprintf("repetition %d of %d: %s depth %d batch %d threads %d: %.1f tok/s, %s", rep+1, s.f.reps,
				t.Test, t.Depth, t.Batch, t.Threads, t.tps[n], percent(t.share[n])))
		}
	}
	return nil
}

// warm runs a test, or the first token of a decode, and gives the work of a whole repetition.
func (s *speedRun) warm(ctx context.Context, t *speedTest) (cpu.Work, error) {
	before, steps := s.b.be.Work(), 1
	if t.decode {
		steps = t.tokens
	}
	_, err := s.step(ctx, t, t.tokens/steps)
	w := s.b.be.Work()
	n := int64(steps)
	return cpu.Work{Read: n * (w.Read - before.Read), Fast: n * (w.Fast - before.Fast),
		Half: n * (w.Half - before.Half), Floats: n * (w.Floats - before.Floats), Attend: n * (w.Attend - before.Attend)}, err
}

// step runs so many tokens of a test, and says how long each decode step took, or the whole prompt.
func (s *speedRun) step(ctx context.Context, t *speedTest, tokens int) ([]time.Duration, error) {
	s.threads(t.Threads)
	if err := s.b.rewind(t.Depth, t.Batch); err != nil {
		return nil, err
	}
	if t.decode {
		return s.b.decode(ctx, t.Depth, t.Depth+tokens, t.Batch)
	}
	took, err := s.b.run(ctx, t.Depth, t.Depth+tokens, benchChunk)
	return []time.Duration{took}, err
}

// threads sets how many of them compute from now on.
func (s *speedRun) threads(n int) {
	o := s.f.options()
	o.Threads = n
	s.b.be.NewLoader(o)
}

// once runs a test between two looks at the machine.
func (s *speedRun) once(ctx context.Context, t *speedTest, w cpu.Work) error {
	s.threads(t.Threads)
	before := s.look()
	steps, err := s.step(ctx, t, t.tokens)
	if err != nil {
		return err
	}
	took := 0.0 // seconds
	for _, d := range steps {
		took += d.Seconds()
		if t.decode {
			t.steps = append(t.steps, 1e3*d.Seconds())
		}
	}
	state := s.b.stateBytes(t.Depth+t.tokens, 1)
	if t.decode {
		state = s.b.stateBytes(t.Depth+t.tokens/2, t.Batch) * int64(t.tokens)
	}
	after := s.look()
	s.progress(fmt.Sprintf("reads %.1f before and %.1f after GB/s, int8 %.0f and %.0f GOPS, float %.0f and %.0f, bfloat16 %.0f and %.0f GFLOPS", before.Read/1e9, after.Read/1e9,
		before.Int8/1e9, after.Int8/1e9, before.Float/1e9, after.Float/1e9, before.Half/1e9, after.Half/1e9))
	l := before.over(after)
	t.limits = append(t.limits, l)
	t.tps = append(t.tps, float64(t.tokens*t.Batch)/took)
	least := l.seconds(w, state, s.attend)
	t.share = append(t.share, 100*least/took)
	if least > 0 {
		t.limit = append(t.limit, float64(t.tokens*t.Batch)/least)
	}
	return nil
}

// look measures the machine with the threads that compute.
func (s *speedRun) look() limits {
	spread := s.b.be.Spread
	return limits{s.probe.Read(spread), s.probe.Int8(spread), s.probe.Float(spread), s.probe.Half(spread)}
}

// finish takes medians.
func (r *speedResult) finish() {
	most := 0
	for _, t := range r.Results {
		most = max(most, t.Threads)
		t.TPS, t.Share, t.Limit = round3(median(t.tps)), round3(median(t.share)), round3(median(t.limit))
		t.Steps = percentilesOf(t.steps)
		t.Min, t.Max = round3(slices.Min(t.tps)), round3(slices.Max(t.tps))
	}
	var all []limits
	for _, t := range r.Results {
		if t.Threads == most {
			all = append(all, t.limits...)
		}
	}
	m := medians(all)
	r.Machine = machineRates{round3(m.Read / 1e9), round3(m.Int8 / 1e9), round3(max(m.Float, m.Half) / 1e9)}
}

func medians(all []limits) limits {
	of := func(get func(limits) float64) float64 {
		var x []float64
		for _, l := range all {
			x = append(x, get(l))
		}
		return median(x)
	}
	return limits{of(func(l limits) float64 { return l.Read }), of(func(l limits) float64 { return l.Int8 }),
		of(func(l limits) float64 { return l.Float }), of(func(l limits) float64 { return l.Half })}
}

// round3 keeps three decimals.
func round3(x float64) float64 { return math.Round(1000*x) / 1000 }

func percent(share float64) string {
	if share == 0 {
		return "limit unknown"
	}
	return fmt.Sprintf("%.0f%% of the limit", share)
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

func (r *speedResult) print(w io.Writer) error {
	fmt.Fprintf(w, "model   %s, %.0f MB\n", r.about, float64(r.Model.Bytes)/1e6)
	fmt.Fprintf(w, "machine %s, kernel %s, page of %d tokens\n", r.CPU, r.Kernel, backend.PageTokens)
	fmt.Fprintf(w, "limit   of attention: multiplications of %s\n\n", r.Model.Attention)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "test\tdepth\tbatch\tthreads\ttok/s\tmin\tmax\tread GB/s\tint8 GOPS\tfloat GFLOPS\tbf16 GFLOPS\tof limit\t")
	for _, t := range r.Results {
		m := medians(t.limits)
		share := "unknown"
		if t.Share > 0 {
			share = fmt.Sprintf("%.1f%%", t.Share)
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t%s\t\n", t.Test, t.Depth, t.Batch, t.Threads, t.TPS, t.Min, t.Max,
			m.Read/1e9, m.Int8/1e9, m.Float/1e9, m.Half/1e9, share)
	}
	return tw.Flush()
}
