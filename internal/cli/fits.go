package cli

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"sync"
	"time"

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
	Context int   `json:"context"` // tokens: those that were asked for, or the model's own if that is less; 0 where they play no part
	Bytes   int64 `json:"bytes"`   // that it takes there: weights, keys and values, a step
	Fits    bool  `json:"fits"`
	Mapped  bool  `json:"low_memory,omitempty"` // only with weights that stay in their files
}

// fitOf estimates what a model on disk takes on the cpu backend with a context; nil where that is not known. capacity is what
// models may have together.
func fitOf(e *hub.Entry, context int, cfg *config.Config, capacity int64) *fit {
	if e.State == hub.Unusable || e.ModelType == "" {
		return nil
	}
	path := filepath.Join(e.Dir, "config.json")
	b, err := regular.Read(path, maxConfigBytes)
	if err != nil {
		return nil
	}
	return fitConfig(b, path, e.Kind == "", e.Bytes, context, cfg, capacity)
}

// fitConfig is fitOf for a config.json that came from path, of a model with so many bytes of weights in its files.
func fitConfig(conf []byte, path string, generates bool, weights int64, context int, cfg *config.Config, capacity int64) *fit {
	if !generates { // a step of texts is small beside the weights
		return &fit{Bytes: weights + serverBytes, Fits: weights+serverBytes <= capacity}
	}
	packed, f, err := estimate(conf, path, context, cfg, false)
	if err != nil {
		return nil
	}
	f.Bytes = packed
	f.Fits = f.Bytes <= capacity
	if !f.Fits {
		if mapped, _, err := estimate(conf, path, context, cfg, true); err == nil && mapped+weights <= capacity {
			f.Bytes, f.Fits, f.Mapped = mapped+weights, true, true
		}
	}
	return f
}

// estimate forecasts one sequence, with weights in memory of their own or in their files.
func estimate(conf []byte, path string, context int, cfg *config.Config, mapped bool) (int64, *fit, error) {
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
	out := &fit{Context: context}
	switch most := f.Model.Context; {
	case most > 0:
		out.Context = min(context, most)
	case context == math.MaxInt:
		return 0, nil, errors.New("how long a context it reads is not known")
	}
	at, err := f.For(out.Context)
	return at.Sum() + serverBytes, out, err
}

// fits remembers what models were said to take with the context that was asked for last: who looks at all of them every few
// seconds has each read once.
type fits struct {
	mu      sync.Mutex
	context int
	known   map[string]knownFit // by folder
}

// knownFit holds for a folder as it was.
type knownFit struct {
	time  time.Time
	bytes int64
	fit   *fit
}

// of is fitOf for each of the entries.
func (f *fits) of(ctx context.Context, entries []hub.Entry, tokens int, cfg *config.Config, capacity int64) ([]*fit, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.context != tokens {
		f.context, f.known = tokens, nil
	}
	all, known := make([]*fit, len(entries)), map[string]knownFit{}
	for i := range entries {
		e := &entries[i]
		k, ok := f.known[e.Dir]
		if !ok || !k.time.Equal(e.Time) || k.bytes != e.Bytes {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			k = knownFit{e.Time, e.Bytes, fitOf(e, tokens, cfg, capacity)}
		}
		all[i], known[e.Dir] = k.fit, k
	}
	f.known = known
	return all, nil
}
