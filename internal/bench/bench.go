// Package bench measures what the engine costs on this machine, for the command "hearth bench": steps of the model against the
// machine's limits, scenarios of several conversations, embedding, streams over HTTP, and any server that speaks such an API.
// Package cli mounts it; nothing that serves depends on it.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/console"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/regular"
)

// benchFlags say which model runs and how.
type benchFlags struct {
	folder    string // in place of a shape
	shape     string
	layers    int
	mode      string
	bits      int
	group     int
	threads   int
	precision string
	kv        string
	json      bool
}

// speedFlags are what "bench" measures.
type speedFlags struct {
	benchFlags
	prompts []int
	tokens  []int
	depths  []int
	batches []int
	workers []int // threads
	reps    int
	probe   int64
	draw    drawFlags

	version, commit string // of this build
}

// NewCmd is the command, of a build that results name.
func NewCmd(version, commit string) *cobra.Command {
	f := speedFlags{version: version, commit: commit}
	cmd := &cobra.Command{
		Use:   "bench [FOLDER]",
		Short: "Measure prefill and decode speed against the limits of the machine",
		Long: `bench runs prompts and decodes through a model of random weights made in memory, or the one in FOLDER, and prints tokens per
second beside what this machine could do at most: bytes read from memory and operations per second, measured with plain loops on
the same threads immediately before and after each repetition, the higher of which counts.

Decoding has to read every weight and the sequences' keys and values once per step; its limit is that or the arithmetic of the
step, whichever takes longer. The limit of a prompt is two operations per weight and token in 8-bit integers (the output head once
per prompt; with --precision exact four; with float32 in floats; of bfloat16 weights in floats or, fast and where the processor has it, in bfloat16), and attention
in the fastest multiplications that kernels could use for the keys: 8-bit integers for q8 and q4, 16-bit ones for i16, bfloat16 where the processor has it,
else floats, as always with exact and float32. The output says which.

--svg and --html draw what was measured: throughput by sequences and by depth, time to the first token by the length of the prompt, its
beginning computed fresh or there before, percentiles of decode steps, each beside the machine's limit. What one run did not vary is not drawn.

Tests are called pp for a prompt and tg for generated tokens. Lists such as --batch 1,8 measure every combination, in turns within
each repetition. Prompts run alone. Sampling is not part of it.

HEARTH_CPU=generic, avx2, avxvnni, avx512, avx512vnni or avx512bf16 (on Arm neon, dotprod or i8mm) in the environment forces one set of kernels, here and in every other command.`,
		Example: `  hearth bench
  hearth bench -p 512,2048 -n 128 -d 0,4096 -b 1,8 --threads 1,2 --reps 5
  hearth bench --shape qwen3-4b --bits 8 --json
  hearth bench -p 128,512,2048 -d 0,1024,4096 -b 1,2,4,8 --html bench.html
  hearth bench ./models/qwen3-0.6b-4bit`,
		Args: console.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.folder = args[0]
			}
			if err := f.draw.check(); err != nil {
				return err
			}
			var r *speedResult
			err := tell(cmd, f.json, func(ctx context.Context, progress func(string)) (_ *speedResult, err error) {
				r, err = f.run(ctx, progress)
				return r, err
			})
			if err != nil {
				return err
			}
			return f.draw.write(r.page(commandLine(cmd, args)))
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	f.shapeFlags(fl)
	fl.IntSliceVarP(&f.prompts, "prompt", "p", []int{512}, "tokens of prompts; 0: none")
	fl.IntSliceVarP(&f.tokens, "tokens", "n", []int{128}, "tokens to decode; 0: none")
	fl.IntSliceVarP(&f.depths, "depth", "d", []int{0}, "tokens that are there before")
	fl.IntSliceVarP(&f.batches, "batch", "b", []int{1}, "sequences that decode together")
	fl.IntSliceVar(&f.workers, "threads", nil, "threads that compute (default: the processors this process may use)")
	fl.IntVar(&f.reps, "reps", 5, "repetitions to take medians of")
	f.probe = 256 << 20
	fl.Var(config.Bytes(&f.probe), "probe-size", "`bytes` to measure the memory with: several times the processor's last cache")
	fl.StringVar(&f.kv, "kv-type", "auto", "how keys and values are kept: "+strings.Join(backend.KVNames, ", "))
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	f.draw.register(fl)
	cmd.AddCommand(newEngineCmd(), newReadCmd(), newEmbedCmd(), newFolderCmd(), newSpeculateCmd(version, commit), newServeCmd(version, commit))
	return cmd
}

// tell runs a measurement, which tells of its progress, and prints the result.
func tell[R interface{ print(io.Writer) error }](cmd *cobra.Command, asJSON bool, run func(context.Context, func(string)) (R, error)) error {
	r, err := run(cmd.Context(), func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), "bench: "+line) })
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
	}
	return r.print(cmd.OutOrStdout())
}

// shapeFlags adds the flags that say which model runs, and in which precision.
func (f *benchFlags) shapeFlags(fl *pflag.FlagSet) {
	fl.StringVar(&f.shape, "shape", "qwen3-0.6b", "model sizes: "+strings.Join(shapeNames(), ", "))
	fl.IntVar(&f.layers, "layers", 0, "layers, if fewer than the shape's: a cut of it for long prompts")
	fl.StringVar(&f.mode, "mode", "affine", "how weights are stored: affine, mxfp4, mxfp8 or nvfp4")
	fl.IntVar(&f.bits, "bits", 4, "bits per weight of affine: 2, 3, 4, 5, 6, 8, or 16 for bfloat16")
	fl.IntVar(&f.group, "group", 64, "weights of affine that share a scale: 32, 64 or 128")
	f.precisionFlag(fl)
}

func (f *benchFlags) precisionFlag(fl *pflag.FlagSet) {
	fl.StringVar(&f.precision, "precision", "auto", "fast (8-bit activations, or bfloat16 for bfloat16 weights), outliers (the same, but more bits for the largest of groups that stand out), exact (16-bit) or float32; auto is what serve would choose")
}

// modelFlags are shapeFlags and the threads.
func (f *benchFlags) modelFlags(fl *pflag.FlagSet) {
	f.shapeFlags(fl)
	fl.IntVar(&f.threads, "threads", 0, "threads that compute (default: the processors this process may use)")
}

// scheme is how the model's weights are stored; the zero value for bfloat16.
func (f *benchFlags) scheme() (quant.Scheme, error) {
	mode := quant.Mode(f.mode)
	s, ok := mode.Default()
	switch {
	case f.mode == "" || mode == quant.Affine:
		s = quant.Scheme{Mode: quant.Affine, Bits: f.bits, Group: f.group}
	case !ok:
		return s, console.Hintf(fmt.Errorf("unknown mode %q", f.mode), "modes are affine, mxfp4, mxfp8 and nvfp4")
	}
	if s.Mode == quant.Affine && f.bits == 16 {
		return quant.Scheme{}, nil
	}
	if err := s.Check(shapes[f.shape].Hidden); err != nil {
		return s, console.Hintf(err, "--bits takes 2, 3, 4, 5, 6, 8 or 16, --group 32, 64 or 128")
	}
	return s, nil
}

// check refuses what cannot run before anything is built.
func (f *benchFlags) check() error {
	switch {
	case shapes[f.shape].Hidden == 0:
		return console.Hintf(fmt.Errorf("unknown shape %q", f.shape), "shapes are %s", strings.Join(shapeNames(), ", "))
	case f.threads < 0:
		return errors.New("--threads must be at least 0")
	}
	if err := f.checkPrecision(); err != nil {
		return err
	}
	if _, err := f.scheme(); err != nil {
		return err
	}
	_, err := backend.ParseKV(f.kv)
	return err
}

func (f *benchFlags) checkPrecision() error {
	if f.precision == "auto" || slices.Contains(backend.PrecisionNames, f.precision) {
		return nil
	}
	return console.Hintf(fmt.Errorf("unknown precision %q", f.precision), "precisions are auto, %s", strings.Join(backend.PrecisionNames, ", "))
}

// choose makes f.precision what serve would run a model of such use and so many bytes of weights with, on the cpu backend.
func (f *benchFlags) choose(kind model.Kind, weights int64) {
	f.precision = catalog.Precision(f.precision, kind, weights, backend.Caps{}).String()
}

// counts is a backend that only looks at weights.
func counts() backend.Backend {
	return backend.Visitor(func(backend.WeightSpec) (backend.Weight, error) { return nil, nil })
}

func (f *speedFlags) check() error {
	for _, l := range []struct {
		name  string
		of    []int
		least int
		most  int
	}{{"prompt", f.prompts, 0, 1 << 20}, {"tokens", f.tokens, 0, 1 << 20}, {"depth", f.depths, 0, 1 << 20}, {"batch", f.batches, 1, 256}, {"threads", f.workers, 1, 1024}} {
		for _, n := range l.of {
			if n < l.least || n > l.most {
				return fmt.Errorf("--%s takes numbers from %d to %d", l.name, l.least, l.most)
			}
		}
	}
	switch {
	case f.reps < 1:
		return errors.New("--reps must be at least 1")
	case f.probe < 1<<20 || f.probe > 64<<30:
		return errors.New("--probe-size takes 1MiB to 64GiB")
	case len(f.batches)*len(f.depths) == 0 || slices.Max(slices.Concat(f.prompts, f.tokens, []int{0})) == 0:
		return errors.New("there is nothing to measure")
	}
	return f.benchFlags.check()
}

// options says how the model is loaded; it raises GOMAXPROCS where there are to be more threads.
func (f *benchFlags) options() backend.Options {
	if f.threads == 0 {
		f.threads = cpu.Threads()
	}
	if f.threads > runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(f.threads)
	}
	p, _ := backend.ParsePrecision(f.precision)
	return backend.Options{Threads: f.threads, Precision: p}
}

// open makes the backend and the model on it, or loads that, and fixes f.threads. The caller closes both.
func (f *benchFlags) open(progress func(string)) (*cpu.Backend, *model.Loaded, error) {
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	if f.folder != "" {
		return f.openFolder(progress)
	}
	source := model.Synthetic{Config: f.config(), Seed: 1, Type: quant.BF16}
	blank := source
	blank.Blank = true
	unseen, err := blank.Load(counts(), backend.Options{})
	if err != nil {
		return nil, nil, err
	}
	f.choose(model.Generates, unseen.Bytes)
	if err := f.fits(func(be backend.Backend) error {
		_, err := blank.Load(be, f.options())
		return err
	}); err != nil {
		return nil, nil, err
	}
	start := time.Now()
	be := cpu.New()
	m, err := source.Load(be, f.options())
	if err != nil {
		return nil, nil, errors.Join(err, be.Close())
	}
	runtime.GC() // the unpacked weights
	progress(fmt.Sprintf("made %s in %.1fs", m.Description, time.Since(start).Seconds()))
	return be, m, nil
}

// fits refuses a model whose weights are more than the memory. load is given a backend that only counts.
func (f *benchFlags) fits(load func(backend.Backend) error) error {
	be := cpu.New()
	err := catalog.CheckWeights(be, f.options(), load)
	if err = errors.Join(err, be.Close()); err != nil {
		return console.Hintf(err, "a smaller --shape, fewer --bits or some of its --layers take less")
	}
	return nil
}

// openFolder is open for the model in a folder. Its files are closed: everything is packed.
func (f *benchFlags) openFolder(progress func(string)) (*cpu.Backend, *model.Loaded, error) {
	fsys := regular.Dir(f.folder)
	c, err := model.OpenCheckpoint(fsys, f.folder)
	if err != nil {
		return nil, nil, err
	}
	f.choose(model.Generates, catalog.WeightBytes(fsys))
	if err := f.fits(func(be backend.Backend) error {
		_, err := c.Load(be, f.options())
		return err
	}); err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	start := time.Now()
	be := cpu.New()
	m, err := c.Load(be, f.options())
	if err = errors.Join(err, c.Close()); err != nil {
		return nil, nil, errors.Join(err, be.Close())
	}
	took := time.Since(start).Seconds()
	progress(fmt.Sprintf("loaded %s in %.2fs, %.2f GB/s", m.Description, took, float64(m.Bytes)/1e9/took))
	return be, m, nil
}

// name is what the results call the model.
func (f *benchFlags) name() string {
	if f.folder != "" {
		if abs, err := filepath.Abs(f.folder); err == nil {
			return filepath.Base(abs)
		}
		return f.folder
	}
	return f.shape
}

// policy is --kv-type, which check has accepted.
func (f *benchFlags) policy() backend.KVPolicy {
	p, _ := backend.ParseKV(f.kv)
	return p
}
