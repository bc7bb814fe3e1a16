package generate

import (
	"sync"

	"hearth/internal/dialect"
)

// repairs counts what parsers put right in calls, by kind.
type repairs struct {
	mu     sync.Mutex
	counts map[string]int64
}

func (r *repairs) count(kind dialect.Repair) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int64{}
	}
	r.counts[string(kind)]++
}

// Repairs counts, by kind, what was put right in the model's calls so far; docs/dialects.md lists the kinds.
func (g *Generator) Repairs() map[string]int64 {
	g.repairs.mu.Lock()
	defer g.repairs.mu.Unlock()
	out := make(map[string]int64, len(g.repairs.counts))
	for kind, n := range g.repairs.counts {
		out[kind] = n
	}
	return out
}
