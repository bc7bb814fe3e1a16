package generate

import (
	"maps"
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

// all are the counts so far.
func (r *repairs) all() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]int64, len(r.counts))
	maps.Copy(out, r.counts)
	return out
}
