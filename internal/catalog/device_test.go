package catalog

import (
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/ref"
	"hearth/internal/config"
)

// onGPU is a backend whose device has room for so many bytes of weights and state.
type onGPU struct {
	*ref.Backend
	limit int64
	rows  int
}

func (g *onGPU) Memory() backend.Memory { return backend.Memory{Limit: g.limit} }
func (g *onGPU) Idle()                  {}
func (g *onGPU) Room(weights int64, rows int) (int64, error) {
	if g.rows = rows; weights >= g.limit {
		return 0, &backend.MemoryError{What: "the weights", Need: weights, Limit: g.limit, Hint: "choose a smaller model"}
	}
	return g.limit - weights, nil
}

// TestOnDevice: the budget is what the device has room for, a larger one that was asked for is refused, and so are weights.
func TestOnDevice(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		weights, budget, want int64
		mb                    int
		err                   string
	}{
		{weights: 5 * gib, budget: 4 * gib, want: 4 * gib},
		{weights: 5 * gib, budget: 9 * gib, want: 7 * gib},
		{weights: 5 * gib, budget: 9 * gib, mb: 9 << 10, err: "the GPU has 7.0 GiB for keys and values beside the weights, and --cache-memory-mb asks for 9.0 GiB: lower it"},
		{weights: 12 * gib, budget: gib, err: "not enough memory on the GPU: the weights need 12.0 GiB of 12.0; choose a smaller model"},
	} {
		g := &onGPU{ref.New(), 12 * gib, 0}
		cfg := config.Default()
		cfg.CacheMemoryMB = c.mb
		got, err := onDevice(g, cfg, c.weights, c.budget)
		if err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)) || err == nil && (c.err != "" || got != c.want) {
			t.Errorf("weights %d, budget %d: %d, %v", c.weights, c.budget, got, err)
		}
		if g.rows != cfg.PrefillStepSize {
			t.Errorf("steps of %d rows", g.rows)
		}
	}
	cfg := config.Default()
	if got, err := onDevice(ref.New(), cfg, 5*gib, 9*gib); err != nil || got != 9*gib {
		t.Errorf("without a device: %d, %v", got, err)
	}
}
