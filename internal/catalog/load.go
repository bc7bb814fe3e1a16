package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"hearth/internal/backend"
	"hearth/internal/budget"
	"hearth/internal/config"
	"hearth/internal/engine"
	"hearth/internal/generate"
	"hearth/internal/kv"
	"hearth/internal/model"
	"hearth/internal/regular"
	"hearth/internal/remote"
	"hearth/internal/sysmem"
	"hearth/internal/tier"
	"hearth/internal/timeline"
)

// Opener makes a backend as the configuration says. The caller of this package chooses which there are.
type Opener func(*config.Config) (backend.Backend, error)

// Backends are the backends of this build by name, and in order of preference what auto means.
type Backends struct {
	Open    map[string]Opener
	Auto    []string
	Workers *Workers // nil: all models run in this process
	// Memory is this machine's: all models have shares of it. nil: each takes what its own settings say.
	Memory *budget.Machine
	// Limits tell of backends with a device how many bytes of the machine's memory that may use, 0: not known. They open nothing.
	Limits map[string]func() int64
	// Warn, if set, gets a line when something goes wrong with a model in this process; called from any goroutine.
	Warn func(line string)

	demand *demand       // nil: the model stays
	away   *remote.Share // in the process of a model: its share, nil if it has none
	loads  *loadCount    // nil: nobody counts
	hour   *timeline.Hour
}

// loadCount counts what is being loaded.
type loadCount struct {
	parts atomic.Int64 // weights that have been
	away  atomic.Int64 // models that a process of its own loads now
}

// stop is model.Checkpoint.Stop for a load that ends with ctx; it counts the weights that pass.
func (b Backends) stop(ctx context.Context) func() error {
	return func() error {
		if b.loads != nil {
			b.loads.parts.Add(1)
		}
		return ctx.Err()
	}
}

// open makes the configured backend, or with auto the first that can be made.
func (b Backends) open(cfg *config.Config) (backend.Backend, error) {
	if name := cfg.Backend; name != "auto" {
		f, ok := b.Open[name]
		if !ok {
			return nil, fmt.Errorf("open backend: %q is not part of this build", name)
		}
		return f(cfg)
	}
	var errs []error
	for _, name := range b.Auto {
		be, err := b.Open[name](cfg)
		if err == nil {
			return be, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("open backend: none works here: %w", errors.Join(errs...))
}

// stuck warns of a step in this process that does not end.
func (b Backends) stuck(id string) func(time.Duration) {
	return func(d time.Duration) {
		if b.Warn != nil {
			b.Warn(fmt.Sprintf("a step of %s has not ended for %v: its requests wait; a restart of the server ends that, and --model-process always lets it end by itself", id, d))
		}
	}
}

// float32Bytes is the size of weights up to which precision auto means float32: so small a model is not bound by its weights,
// so float activations cost nothing that anybody would notice.
const float32Bytes = 64 << 20

// Precision is that of a name for a model of such use and so many bytes of weights on a backend of such caps. Vectors and scores
// are compared by small differences: for them auto is what keeps a cosine of 0.9999 to float32.
func Precision(name string, kind model.Kind, weights int64, c backend.Caps) backend.Precision {
	p, ok := backend.ParsePrecision(name)
	switch {
	case ok:
		return p
	case weights <= float32Bytes:
		return backend.Float32
	case kind == model.Generates, c.Acts != nil:
		return backend.Outliers
	}
	return backend.Exact
}

// defaultContext is assumed where neither the model nor the user says how long it may get.
const defaultContext = 4096

// Engine is one in this process, or in another.
type Engine interface {
	generate.Tokens
	KV() backend.KVPolicy
	Stats() engine.Stats
	Live() []engine.Live
	Stored(salt kv.Salt) engine.Stored
	Tree(ctx context.Context, q engine.TreeQuery) (engine.Tree, error)
	DropCache(ctx context.Context) (engine.Stored, error)
	DropSalt(ctx context.Context, salt kv.Salt) (engine.Stored, error)
	Save(name string, data []byte) error
	Saved(name string) []byte
	Close() error
}

var (
	_ Engine = (*engine.Engine)(nil)
	_ Engine = (*remote.Engine)(nil)
)

// Facts are what there is to know about a loaded model, wherever it runs: see model.Loaded.
type Facts struct {
	Type, Description, Width string
	Vocab, Context           int
	Bytes                    int64
}

// Runs is how a loaded model runs.
type Runs struct {
	Backend   string
	Precision backend.Precision
	Rounding  string // what Precision costs, in a phrase
}

func (r *Runs) line() string {
	s := fmt.Sprintf("backend %s (%v", r.Backend, r.Precision)
	if r.Rounding != "" {
		s += ": " + r.Rounding
	}
	return s + ")"
}

// Weights is a model on a backend with its engine. Close frees all of it.
type Weights struct {
	Runs
	Model  Facts
	Engine Engine
	Ahead  bool // overlap scheduling: a step begins before the tokens of the last one are read
	Took   time.Duration

	warnings   []string // of its folder
	summary    string   // of a model in a worker process, which has the fields below
	loaded     *model.Loaded
	tower      *model.Tower // nil: the model cannot see
	storage    weightStorage
	checkpoint *model.Checkpoint
	backend    backend.Backend
	holding    holding
}

// OpenWeights loads the checkpoint of src as cfg says and starts an engine for it.
func OpenWeights(src *Source, cfg *config.Config, bs Backends) (*Weights, error) {
	cfg = Settings(src, cfg)
	c, err := model.OpenCheckpoint(src.FS, src.Where)
	if err != nil {
		return nil, err
	}
	return loadWeights(src, c, cfg, bs, nil, remote.Hooks{})
}

// Options are how a model of such use is loaded on a backend of such caps, but for where its weights are kept.
func Options(src *Source, cfg *config.Config, kind model.Kind, c backend.Caps) backend.Options {
	return backend.Options{Threads: cfg.Threads, Precision: Precision(cfg.Precision, kind, WeightBytes(src.FS), c)}
}

// loadWeights loads a model in this process. It takes over the checkpoint, also when it fails. Disk and hooks are the engine's.
func loadWeights(src *Source, c *model.Checkpoint, cfg *config.Config, bs Backends, disk *tier.Options, h remote.Hooks) (_ *Weights, err error) {
	start := time.Now()
	w := &Weights{checkpoint: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.backend, err = bs.open(cfg); err != nil {
		return nil, noBackendError{err}
	}
	w.Backend, w.Ahead = w.backend.Name(), w.backend.Caps().LateTokens
	opts := Options(src, cfg, model.Generates, w.backend.Caps())
	w.Precision = opts.Precision
	if cfg.AdapterPath != "" {
		a, err := model.OpenAdapter(regular.Dir(cfg.AdapterPath), cfg.AdapterPath)
		if err != nil {
			return nil, err
		}
		defer a.Close() // its numbers are copied
		c.Adapter = a
	}
	if w.storage, err = chooseStorage(c, src, w.backend, func() (backend.Backend, error) { return bs.open(cfg) }, opts, cfg, sysmem.Available()); err != nil {
		return nil, err
	}
	opts.Mapped = w.storage.mapped
	if _, err = deviceRoom(w.backend, cfg, WeightBytes(src.FS)); err != nil {
		return nil, fmt.Errorf("load model: %s: %w", c.Where, err)
	}
	if err = w.holding.take(bs, src, w.backend, cmp.Or(w.storage.taken, WeightBytes(src.FS))); err != nil {
		return nil, err
	}
	if w.loaded, err = c.Load(w.backend, opts); err != nil {
		return nil, err
	}
	if err := w.holding.settle(src, w.backend, w.storage.mapped); err != nil {
		return nil, err
	}
	w.Rounding = opts.Precision.Rounding(w.backend.Caps())
	m := w.loaded
	w.Model = Facts{Type: m.Type, Description: m.Description, Width: m.Width, Vocab: m.Vocab, Context: m.Context, Bytes: m.Bytes}
	w.warnings = m.Warnings
	var blind error
	if w.tower, blind = c.Tower(); blind != nil {
		w.warnings = append(slices.Clip(w.warnings), "the model cannot see images: "+model.Reason(blind))
	}
	policy, err := backend.ParseKV(cfg.KVType)
	if err != nil {
		return nil, fmt.Errorf("load model: %s: %w", c.Where, err)
	}
	seeing := int64(0) // weights of the tower and what is kept of images
	if w.tower != nil {
		if seeing, err = w.tower.Weights(w.backend, opts); err != nil {
			return nil, err
		}
		seeing += cfg.ImageCacheBytes
	}
	state, err := cacheBudget(cfg, cmp.Or(w.storage.taken, m.Bytes)+seeing, sysmem.Total())
	if err == nil {
		state, err = onDevice(w.backend, cfg, m.Bytes+seeing, state)
	}
	if err != nil {
		return nil, fmt.Errorf("load model: %s: %w", c.Where, err)
	}
	context := contextOf(m.Context, cfg)
	least := min(leastContext, context)
	if cfg.ContextLength > 0 {
		least = context // what was asked for by name is not quietly cut
	}
	e, err := engine.New(engine.Config{
		Tower: w.tower, Seeing: opts, Sights: cfg.ImageCacheBytes,
		Model: m, Backend: w.backend, KV: policy, Vocab: m.Vocab, Budget: state, Share: w.holding.Holding, MaxContext: context, MinContext: least,
		MaxSequences: cfg.MaxSequences, MaxQueue: cfg.MaxQueue, PrefillChunk: cfg.PrefillStepSize,
		StepTarget: cfg.StepTarget, Speculate: speculate(cfg, w.Ahead), NoCache: !cfg.PromptCache,
		CacheTTL: cfg.ContextTTL, CacheSessions: cfg.ContextSessions, CacheBytes: cfg.PromptCacheMax,
		Disk: disk, Timings: cfg.Measured(), Hour: bs.hour, Trace: h.Trace, Stuck: h.Stuck,
	})
	if err != nil {
		return nil, fmt.Errorf("load model: %s: %w", c.Where, err)
	}
	w.Engine = e // not before: a nil *engine.Engine is no nil Engine
	w.Took = time.Since(start)
	return w, nil
}

// contextOf is the context asked for: the user may shorten what the model allows (0: it does not say), or lengthen it at their
// own risk.
func contextOf(allows int, cfg *config.Config) int {
	switch {
	case cfg.ContextLength > 0:
		return cfg.ContextLength
	case allows > 0:
		return allows
	}
	return defaultContext
}

// Close ends the engine, then frees weights and backend and unmaps the files.
func (w *Weights) Close() error {
	var errs []error
	if w.Engine != nil {
		errs = append(errs, w.Engine.Close())
	}
	errs = append(errs, w.tower.Close())
	if w.loaded != nil {
		errs = append(errs, w.loaded.Close())
	}
	if w.backend != nil {
		errs = append(errs, w.backend.Close())
	}
	if w.checkpoint != nil {
		errs = append(errs, w.checkpoint.Close())
	}
	w.holding.close()
	return errors.Join(errs...)
}

// Process is the model's own and how many there have been; 0 and 0: it runs in this one.
func (w *Weights) Process() (pid, starts int) {
	if e, ok := w.Engine.(*remote.Engine); ok {
		return e.Worker()
	}
	return 0, 0
}

// Summary is one line about what was loaded and how it runs.
func (w *Weights) Summary() string {
	if w.summary != "" {
		return w.summary + ", in a process of its own"
	}
	parts := []string{w.Model.Description, w.line(), fmt.Sprintf("context %d", w.Engine.Context()),
		fmt.Sprintf("cache %s (%v)", size(w.Engine.Stats().Budget), w.Engine.KV())}
	if d := w.Engine.Stats().Cache.Disk; d.Dir != "" {
		parts = append(parts, fmt.Sprintf("prompt cache on disk up to %s (%s there) in %s", size(d.Quota), size(d.Bytes), d.Dir))
	}
	if n := w.Model.Context; n > 0 && w.Engine.Context() < n {
		parts[2] += fmt.Sprintf(" of %d", n)
	}
	parts = append(parts, w.storage.String())
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}
