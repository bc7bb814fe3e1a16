//go:build darwin || linux

package mlx_test

import (
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/backendtest"
	"hearth/internal/backend/mlx/testshim"
)

// TestBackend: MLX on its CPU device keeps the contract in float32.
func TestBackend(t *testing.T) {
	testshim.Open(t)
	backendtest.Run(t, backendtest.Config{
		Open: func() B.Backend {
			be := testshim.Open(t)
			be.SetTile(1 << 14) // so that some cases take several
			return be
		},
		Eps:     1.0 / (1 << 20), // of MLX's exponential, which is right to 2^-19 far from zero
		Threads: []int{1},
		Share:   1e-4,
		Small:   1e-6,
	})
}
