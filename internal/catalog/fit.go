package catalog

import (
	"errors"
	"fmt"
	"runtime/debug"

	"hearth/internal/backend"
	"hearth/internal/config"
	"hearth/internal/model"
	"hearth/internal/sysmem"
)

// weightStorage is how the weights of a model are kept.
type weightStorage struct {
	mapped bool
	why    string // empty: the backend knows one way only
	taken  int64  // bytes of memory that are not there for keys and values; 0: as many as are stored
}

// String says which way it is, and why.
func (r weightStorage) String() string {
	switch {
	case r.why == "":
		return ""
	case r.mapped:
		return "weights read from their files in every step (" + r.why + ")"
	}
	return "weights repacked (" + r.why + ")"
}

const (
	// repackGrowth is more than weights grow when they are repacked: four-bit floats become bfloat16.
	repackGrowth = 4
	// spareMemory is more than keys, values and a step of any model take at least.
	spareMemory = 4 << 30
)

// chooseStorage decides between weights in memory of their own, in the form that products read fastest, and weights that stay in
// their mapped files, whose memory the system can take back. The second is slower, so that it is only for models that would not
// fit otherwise, and those of whom the user asks it. A model that fits neither way is refused, unless the user asks for the
// second: it then comes from the disk in every step. What images take does not decide: where there is no memory for them, texts
// are answered. open makes backends like be to forecast on; available is the memory that
// there is, 0 if unknown.
func chooseStorage(c *model.Checkpoint, src *Source, be backend.Backend, open func() (backend.Backend, error), o backend.Options, cfg *config.Config, available int64) (weightStorage, error) {
	if _, ok := be.(forecaster); !ok || cfg.LowMemory == nil && available == 0 {
		return weightStorage{}, nil
	}
	files, asked := WeightBytes(src.FS), cfg.LowMemory != nil
	if (!asked || !*cfg.LowMemory) && repackGrowth*files+spareMemory < available {
		return weightStorage{why: fits(available)}, nil // without a forecast, which takes a while for folders of other tools
	}
	packed, mapped, err := bothWays(c, open, o, cfg)
	if err != nil {
		return weightStorage{}, err
	}
	switch {
	case asked && *cfg.LowMemory && (available == 0 || mapped.Text() <= available):
		return weightStorage{mapped: true, why: "low-memory is set", taken: mapped.Weights}, nil
	case asked && *cfg.LowMemory:
		return weightStorage{}, mapped.refuse(c.Where, available, true)
	case available == 0 || packed.Text() <= available:
		return weightStorage{why: fits(available), taken: packed.Weights}, nil
	case asked || mapped.Text()+files > available:
		return weightStorage{}, packed.refuse(c.Where, available, false)
	}
	why := fmt.Sprintf("repacked they would take %s, and %s are available", size(packed.Weights), size(available))
	return weightStorage{mapped: true, why: why, taken: mapped.Weights + files}, nil
}

func fits(available int64) string {
	if available == 0 {
		return "low-memory is false"
	}
	return size(available) + " are available"
}

// CheckWeights refuses weights that do not fit into the memory that there is: the system would end the program. load loads them
// on a backend that only counts what be would take; nothing can be computed with what it makes, and be must be closed after.
func CheckWeights(be backend.Backend, o backend.Options, load func(backend.Backend) error) error {
	return checkWeights(be, o, load, sysmem.Available())
}

// checkWeights is CheckWeights with so much memory, 0 if unknown.
func checkWeights(be backend.Backend, o backend.Options, load func(backend.Backend) error, available int64) error {
	p, ok := be.(forecaster)
	if !ok || available == 0 {
		return nil
	}
	l, bytes := p.DryLoader(o)
	if err := load(backend.Visitor(l.Load)); err != nil {
		return err
	}
	if bytes() > available {
		return fmt.Errorf("the weights take %s of memory, and %s are available", size(bytes()), size(available))
	}
	return nil
}

// needs is the least that a model takes to run.
type needs struct {
	Forecast
	params int64
}

// bothWays forecasts the model with weights in memory of their own and in mapped files.
func bothWays(c *model.Checkpoint, open func() (backend.Backend, error), o backend.Options, cfg *config.Config) (packed, mapped needs, err error) {
	o.Mapped = false
	packed, err = estimate(c, open, o, cfg)
	if err == nil {
		o.Mapped = true
		mapped, err = estimate(c, open, o, cfg)
	}
	debug.FreeOSMemory() // what the forecasts took
	return packed, mapped, err
}

func estimate(c *model.Checkpoint, open func() (backend.Backend, error), o backend.Options, cfg *config.Config) (n needs, err error) {
	be, err := open()
	if err != nil {
		return n, err
	}
	defer func() { err = errors.Join(err, be.Close()) }()
	f, err := NewForecaster(c, be, o, cfg, nil)
	if err != nil {
		return n, err
	}
	tokens := min(leastContext, contextOf(f.Model.Context, cfg))
	if cfg.ContextLength > 0 {
		tokens = cfg.ContextLength
	}
	n.params = f.Model.Params
	n.Forecast, err = f.For(tokens)
	return n, err
}

// refuse says what does not fit, and what would.
func (n *needs) refuse(where string, available int64, mapped bool) error {
	e := &model.LoadError{Where: where, Problem: fmt.Sprintf("it needs %s of memory (weights %s, keys and values of %d tokens %s, a step %s), and %s are available",
		size(n.Text()), size(n.Weights), n.Tokens, size(n.Keys), size(n.Step), size(available))}
	room := max(available-n.Keys-n.Step, 0)
	bits := 8 * float64(room) / float64(max(n.params, 1))
	const slow = ", and --low-memory reads this one from the disk in every step, slowly"
	switch {
	case mapped:
		e.Hint = "a shorter --context-length or a smaller --prefill-step-size would fit"
	case bits >= 3:
		e.Hint = fmt.Sprintf("a version of it with up to %.1f bits per weight would fit", bits) + slow
	default:
		e.Hint = fmt.Sprintf("a model of up to %.1f billion parameters with 4 bits would fit", float64(room)*8/4.5/1e9) + slow
	}
	return e
}
