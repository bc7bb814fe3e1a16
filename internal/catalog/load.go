package catalog

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"hearth/internal/backend"
	"hearth/internal/config"
	"hearth/internal/engine"
	"hearth/internal/model"
)

// Opener makes a backend as the configuration says. The caller of this package chooses which there are.
type Opener func(*config.Config) (backend.Backend, error)

// Backends are the backends of this build by name, and in order of preference what auto means.
type Backends struct {
	Open map[string]Opener
	Auto []string
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

// exactBytes is the size of weights up to which precision auto means exact: so small a model is not bound by its weights,
// so float activations cost nothing that anybody would notice.
const exactBytes = 64 << 20

// defaultContext is assumed where neither the model nor the user says how long it may get.
const defaultContext = 4096

// Weights is a model on a backend with its engine. Close frees all of it.
type Weights struct {
	Model   *model.Loaded
	Engine  *engine.Engine
	Backend string
	Exact   bool
	Took    time.Duration

	checkpoint *model.Checkpoint
	backend    backend.Backend
}

// OpenWeights loads the checkpoint of src as cfg says and starts an engine for it.
func OpenWeights(src *Source, cfg *config.Config, bs Backends) (*Weights, error) {
	c, err := model.OpenCheckpoint(src.FS, src.Where)
	if err != nil {
		return nil, err
	}
	return loadWeights(src, c, cfg, bs, nil)
}

// loadWeights takes over the checkpoint, also when it fails.
func loadWeights(src *Source, c *model.Checkpoint, cfg *config.Config, bs Backends, keep *Keep) (_ *Weights, err error) {
	start := time.Now()
	w := &Weights{checkpoint: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.backend, err = bs.open(cfg); err != nil {
		return nil, err
	}
	w.Backend = w.backend.Name()
	w.Exact = cfg.Precision == "exact" || cfg.Precision == "auto" && src.weightBytes() <= exactBytes
	if cfg.AdapterPath != "" {
		a, err := model.OpenAdapter(os.DirFS(cfg.AdapterPath), cfg.AdapterPath)
		if err != nil {
			return nil, err
		}
		defer a.Close() // its numbers are copied
		c.Adapter = a
	}
	if w.Model, err = c.Load(w.backend, backend.Options{Exact: w.Exact, Threads: cfg.Threads}); err != nil {
		return nil, err
	}
	policy, err := backend.ParseKV(cfg.KVType)
	if err != nil {
		return nil, fmt.Errorf("load model: %s: %w", c.Where, err)
	}
	budget, err := cacheBudget(cfg, w.Model.Bytes, machineMemory())
	if err != nil {
		return nil, fmt.Errorf("load model: %s: %w", c.Where, err)
	}
	context := contextOf(w.Model, cfg)
	least := min(leastContext, context)
	if cfg.ContextLength > 0 {
		least = context // what was asked for by name is not quietly cut
	}
	if w.Engine, err = engine.New(engine.Config{
		Model: w.Model, Backend: w.backend, KV: policy, Vocab: w.Model.Vocab, Budget: budget, MaxContext: context, MinContext: least,
		MaxSequences: cfg.MaxSequences, MaxQueue: config.MaxQueue, PrefillChunk: cfg.PrefillStepSize,
		StepTarget: cfg.StepTarget, NoCache: !cfg.PromptCache,
		CacheTTL: cfg.ContextTTL, CacheSessions: cfg.ContextSessions, CacheBytes: cfg.PromptCacheMax,
		Disk: keep.options(src, cfg),
	}); err != nil {
		return nil, fmt.Errorf("load model: %s: %w", c.Where, err)
	}
	w.Took = time.Since(start)
	return w, nil
}

// contextOf is the context asked for: the user may shorten what the model allows, or lengthen it at their own risk.
func contextOf(m *model.Loaded, cfg *config.Config) int {
	switch {
	case cfg.ContextLength > 0:
		return cfg.ContextLength
	case m.Context > 0:
		return m.Context
	}
	return defaultContext
}

// Close ends the engine, then frees weights and backend and unmaps the files.
func (w *Weights) Close() error {
	var errs []error
	if w.Engine != nil {
		errs = append(errs, w.Engine.Close())
	}
	if w.Model != nil {
		errs = append(errs, w.Model.Close())
	}
	if w.backend != nil {
		errs = append(errs, w.backend.Close())
	}
	errs = append(errs, w.checkpoint.Close())
	return errors.Join(errs...)
}

// Summary is one line about what was loaded and how it runs.
func (w *Weights) Summary() string {
	precision := "fast"
	if w.Exact {
		precision = "exact"
	}
	parts := []string{w.Model.Description, fmt.Sprintf("backend %s (%s)", w.Backend, precision), fmt.Sprintf("context %d", w.Engine.Context()),
		fmt.Sprintf("cache %s (%v)", size(w.Engine.Stats().Budget), w.Engine.KV())}
	if d := w.Engine.Stats().Cache.Disk; d.Dir != "" {
		parts = append(parts, fmt.Sprintf("prompt cache on disk up to %s (%s there) in %s", size(d.Quota), size(d.Bytes), d.Dir))
	}
	if n := w.Model.Context; n > 0 && w.Engine.Context() < n {
		parts[2] += fmt.Sprintf(" of %d", n)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}
