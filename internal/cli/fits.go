package cli

import (
	"path/filepath"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/hub"
	"hearth/internal/model"
	"hearth/internal/regular"
)

// fitContext is the context at which models are said to fit this machine, in tokens.
const fitContext = 32768

// fit is whether a model fits this machine, by its config.json alone.
type fit struct {
	Context int   `json:"context"` // tokens: fitContext, or the model's own if that is less
	Bytes   int64 `json:"bytes"`   // that it takes there: weights, keys and values, a step
	Fits    bool  `json:"fits"`
	Mapped  bool  `json:"low_memory,omitempty"` // only with weights that stay in their files
}

// fitOf estimates what a model on disk takes on the cpu backend; nil where that is not known. capacity is what models may have
// together.
func fitOf(e *hub.Entry, cfg *config.Config, capacity int64) *fit {
	if e.State == hub.Unusable || e.ModelType == "" {
		return nil
	}
	path := filepath.Join(e.Dir, "config.json")
	b, err := regular.Read(path, maxConfigBytes)
	if err != nil {
		return nil
	}
	return fitConfig(b, path, e.Kind == "", e.Bytes, cfg, capacity)
}

// fitConfig is fitOf for a config.json that came from path, of a model with so many bytes of weights in its files.
func fitConfig(conf []byte, path string, generates bool, weights int64, cfg *config.Config, capacity int64) *fit {
	if !generates { // a step of texts is small beside the weights
		return &fit{Bytes: weights + serverBytes, Fits: weights+serverBytes <= capacity}
	}
	packed, f, err := estimate(conf, path, cfg, false)
	if err != nil {
		return nil
	}
	f.Bytes = packed
	f.Fits = f.Bytes <= capacity
	if !f.Fits {
		if mapped, _, err := estimate(conf, path, cfg, true); err == nil && mapped+weights <= capacity {
			f.Bytes, f.Fits, f.Mapped = mapped+weights, true, true
		}
	}
	return f
}

// estimate forecasts one sequence, with weights in memory of their own or in their files.
func estimate(conf []byte, path string, cfg *config.Config, mapped bool) (int64, *fit, error) {
	c, err := model.OpenConfig(conf, path)
	if err != nil {
		return 0, nil, err
	}
	defer c.Close()
	be := cpu.New()
	defer be.Close()
	o := backend.Options{Threads: 1, Mapped: mapped, Precision: backend.Outliers}
	f, err := catalog.NewForecaster(c, be, o, cfg, nil)
	if err != nil {
		return 0, nil, err
	}
	out := &fit{Context: fitContext}
	if f.Model.Context > 0 {
		out.Context = min(out.Context, f.Model.Context)
	}
	at, err := f.For(out.Context)
	return at.Sum() + serverBytes, out, err
}
