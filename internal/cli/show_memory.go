package cli

import (
	"slices"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/catalog"
	"hearth/internal/config"
	"hearth/internal/kv"
	"hearth/internal/model"
)

// shownMemory is what a server takes at its peak, on the cpu backend, when it has run one sequence of that many tokens: the
// weights as they are kept in memory, keys and values, what a step with a whole chunk of the prompt needs beside them, and the
// program with the model's tokenizer.
type shownMemory struct {
	Context int   `json:"context"`
	Bytes   int64 `json:"bytes"`
	Weights int64 `json:"weights"`
	State   int64 `json:"state"`
	Step    int64 `json:"step"`
	Images  int64 `json:"images,omitempty"` // of models that see
	Program int64 `json:"program"`

	LowMemory shownMapped `json:"low_memory"`
}

// shownMapped is the same with --low-memory. Files are the weights that every step reads where their files are mapped: they
// count as memory of the process while they are there, but the system drops them when it needs memory, and reads them again.
type shownMapped struct {
	Bytes int64 `json:"bytes"` // of memory that nobody can take back
	Files int64 `json:"files"` // at most
}

// serverBytes is about what a server has beside a model: its listeners and buffers, and the tables of pages.
const serverBytes = 32 << 20

// usualContexts are shown where nobody asks for others, as far as the model reaches.
var usualContexts = []int{4096, 32768}

// forecasts are those of both ways to keep weights.
type forecasts struct {
	packed, mapped *catalog.Forecaster
	program        int64
}

func newForecasts(c *model.Checkpoint, o backend.Options, cfg *config.Config, note func(backend.WeightSpec)) (f forecasts, err error) {
	if f.packed, err = catalog.NewForecaster(c, cpu.New(), o, cfg, note); err != nil {
		return f, err
	}
	o.Mapped = true
	if f.mapped, err = catalog.NewForecaster(c, cpu.New(), o, cfg, nil); err != nil {
		return f, err
	}
	return f, nil
}

// memory forecasts sequences of those lengths, or the usual ones. layers are the model's.
func (f *forecasts) memory(contexts []int, layers []shownLayers) ([]shownMemory, error) {
	if most := f.packed.Model.Context; len(contexts) == 0 {
		for _, n := range usualContexts {
			if most == 0 || n < most {
				contexts = append(contexts, n)
			}
		}
		if most > 0 {
			contexts = append(contexts, most)
		}
	}
	contexts = slices.Compact(slices.Sorted(slices.Values(contexts)))
	var all []shownMemory
	for _, n := range contexts {
		packed, err := f.packed.For(n)
		if err != nil {
			return nil, err
		}
		mapped, err := f.mapped.For(n)
		if err != nil {
			return nil, err
		}
		all = append(all, shownMemory{Context: n, Bytes: packed.Sum() + f.program, Weights: packed.Weights, State: packed.Keys, Step: packed.Step, Images: packed.Images, Program: f.program,
			LowMemory: shownMapped{mapped.Sum() + f.program, min(readAlways(layers), packed.Weights-mapped.Weights)}}) // none of the embedded model
	}
	return all, nil
}

// readAlways is the bytes of weights that every step reads: of tables that have a head beside them it reads a few rows.
func readAlways(layers []shownLayers) (n int64) {
	head := slices.ContainsFunc(layers, func(l shownLayers) bool { return l.Kind == "head" })
	for _, l := range layers {
		if !head || l.Kind != "embeddings" {
			n += l.Bytes
		}
	}
	return n
}

// stateOf is what tokens and sequences take in such a store.
func stateOf(g kv.Geometry, p backend.KVPolicy) shownState {
	s := shownState{Sequence: g.FixedBytes, KVType: p.String(), Rounding: p.Rounding()}
	for _, p := range g.Groups {
		s.Token += p.PageBytes / int64(g.PageTokens)
	}
	return s
}
