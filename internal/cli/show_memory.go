package cli

import (
	"fmt"
	"slices"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/config"
	"hearth/internal/model"
)

// shownMemory is what one sequence of that many tokens takes on the cpu backend: the weights as they are kept in memory, keys and
// values in bf16, and what a step with a whole chunk of a prompt needs beside them.
type shownMemory struct {
	Context int   `json:"context"`
	Bytes   int64 `json:"bytes"`
	Weights int64 `json:"weights"`
	State   int64 `json:"state"`
	Step    int64 `json:"step"`
}

// usualContexts are shown where nobody asks for others, as far as the model reaches.
var usualContexts = []int{4096, 32768}

func memoryOf(be *cpu.Backend, m *model.Loaded, weights int64, contexts []int) ([]shownMemory, error) {
	if len(contexts) == 0 {
		for _, n := range usualContexts {
			if m.Context == 0 || n < m.Context {
				contexts = append(contexts, n)
			}
		}
		if m.Context > 0 {
			contexts = append(contexts, m.Context)
		}
	}
	contexts = slices.Compact(slices.Sorted(slices.Values(contexts)))
	st, err := be.NewStore(m.States(), backend.KVPolicy{DType: backend.BF16})
	if err != nil {
		return nil, err
	}
	g, chunk := st.Geometry(), config.Default().PrefillStepSize
	var all []shownMemory
	for _, n := range contexts {
		if n <= 0 {
			return nil, fmt.Errorf("a context of %d tokens is none", n)
		}
		s := shownMemory{Context: n, Weights: weights, State: g.FixedBytes, Step: be.Scratch(min(n, chunk), 1)}
		for _, group := range g.Groups {
			kept := n
			if group.Window > 0 {
				kept = min(n, group.Window+chunk) // pages are released when a chunk is done
			}
			s.State += int64((kept+g.PageTokens-1)/g.PageTokens) * group.PageBytes
		}
		s.Bytes = s.Weights + s.State + s.Step
		all = append(all, s)
	}
	return all, nil
}
