package ref_test

import (
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/backendtest"
	"hearth/internal/backend/ref"
)

// TestBackend: the oracle keeps its own rules, apart from the rounding of results to float32 when they are read.
func TestBackend(t *testing.T) {
	backendtest.Run(t, backendtest.Config{
		Open:    func() backend.Backend { return ref.New() },
		Eps:     1.0 / (1 << 24),
		Threads: []int{1},
	})
}
