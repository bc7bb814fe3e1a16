package catalog

import (
	"errors"
	"fmt"

	"hearth/internal/backend"
	"hearth/internal/config"
	"hearth/internal/engine"
	"hearth/internal/kv"
	"hearth/internal/model"
)

// forecaster is a backend that can say what a model takes before it is loaded, and read weights where their files are mapped.
type forecaster interface {
	backend.Backend
	// DryLoader gives a loader that only counts the bytes that weights take in memory of their own.
	DryLoader(backend.Options) (l backend.Loader, bytes func() int64)
	// Rehearse tells what steps on such a model take beside weights and state.
	Rehearse(steps func() error) (int64, error)
}

// Forecaster is a model whose weights were counted and not loaded.
type Forecaster struct {
	Model *model.Loaded // of which nothing can be computed

	be      forecaster
	cfg     *config.Config
	weights int64
	store   backend.Store
	tower   *model.Tower // nil: it cannot see
	opts    backend.Options
}

// Forecast is the memory in bytes that a model takes while it reads and continues one sequence.
type Forecast struct {
	Tokens  int
	Weights int64 // memory of their own
	Keys    int64 // keys and values of the tokens, what else a sequence carries on, and the copies of that in the prompt cache
	Step    int64 // what a step takes beside these; most for a whole chunk of a prompt
	// Images is what they take beside these: the tower, what is kept of them, and what a step with one takes more; not before the
	// first.
	Images int64
}

// Sum is the memory that nobody can take back.
func (f *Forecast) Sum() int64 { return f.Text() + f.Images }

// Text is Sum for who sends no images.
func (f *Forecast) Text() int64 { return f.Weights + f.Keys + f.Step }

// errNoForecast is for backends with a device of their own: they cannot say what a model takes before it is loaded.
var errNoForecast = errors.New("the backend does not say what models take")

// NewForecaster counts the weights of a checkpoint on be. tap, if not nil, sees every weight on its way. The checkpoint stays
// the caller's, and must not be closed before the Forecaster's last use.
func NewForecaster(c *model.Checkpoint, be backend.Backend, o backend.Options, cfg *config.Config, tap func(backend.WeightSpec)) (*Forecaster, error) {
	p, ok := be.(forecaster)
	if !ok {
		return nil, errNoForecast
	}
	l, bytes := p.DryLoader(o)
	m, err := c.Load(backend.Visitor(func(s backend.WeightSpec) (backend.Weight, error) {
		if tap != nil {
			tap(s)
		}
		return l.Load(s)
	}), o)
	if err != nil {
		return nil, err
	}
	policy, err := backend.ParseKV(cfg.KVType)
	if err != nil {
		return nil, fmt.Errorf("load model: %s: %w", c.Where, err)
	}
	st, err := be.NewStore(m.States(), policy)
	if err != nil {
		return nil, fmt.Errorf("load model: %s: %w", c.Where, err)
	}
	tower, err := c.Tower()
	if err != nil {
		tower = nil // the model loads without it, and says so
	}
	return &Forecaster{Model: m, be: p, cfg: cfg, weights: bytes(), store: st, tower: tower, opts: o}, nil
}

// State is how the model's state is divided, and how keys and values are kept.
func (f *Forecaster) State() (kv.Geometry, backend.KVPolicy) {
	return f.store.Geometry(), f.store.Policy()
}

// For forecasts a sequence of so many tokens.
func (f *Forecaster) For(tokens int) (Forecast, error) {
	if tokens <= 0 {
		return Forecast{}, fmt.Errorf("a context of %d tokens is none", tokens)
	}
	rows := min(tokens, f.cfg.PrefillStepSize)
	step, err := f.be.Rehearse(func() error { return f.rehearse(rows) })
	if err != nil {
		return Forecast{}, err
	}
	g := f.store.Geometry()
	keys := g.Need(tokens, f.cfg.PrefillStepSize)
	if f.cfg.PromptCache { // copies where the answer begins, where it ends, and now and then
		keys += g.SnapBytes * int64(2+tokens/engine.SnapshotEvery)
	}
	images, err := f.images(tokens, step)
	return Forecast{Tokens: tokens, Weights: f.weights, Keys: keys, Step: step, Images: images}, err
}

// images is what the engine promises a tower beside steps of so many bytes: see engine.Config.Sights.
func (f *Forecaster) images(tokens int, step int64) (int64, error) {
	if f.tower == nil {
		return 0, nil
	}
	grid, ok := f.tower.Largest(tokens)
	if !ok {
		return 0, nil // no image fits
	}
	weights, seeing, err := f.tower.Weigh(f.be, f.opts, grid)
	return weights + f.cfg.ImageCacheBytes + f.tower.FeatureBytes(grid) + max(seeing-step, 0), err
}

// rehearse runs one step of so many rows of a prompt, as the engine would.
func (f *Forecaster) rehearse(rows int) error {
	tables, capacity := f.store.Geometry().Preallocate(1, rows)
	if err := f.store.Resize(capacity); err != nil {
		return err
	}
	if err := f.store.Open(0, kv.Match{}, nil); err != nil {
		return err
	}
	b := backend.Batch{Tokens: make([]int32, rows), Out: []int32{int32(rows - 1)}, Spans: []backend.Span{{Len: rows, Table: &tables[0]}}}
	for i := range rows {
		b.Pos[0] = append(b.Pos[0], int32(i))
	}
	o := f.be.Begin(f.store, &b)
	defer o.End()
	if _, err := o.Floats(f.Model.Logits(o, f.Model.Forward(o, &b))); err != nil {
		return err
	}
	return o.Err()
}
