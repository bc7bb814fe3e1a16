//go:build darwin || linux

package model_test

import (
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/mlx/testshim"
	"hearth/internal/golden"
	"hearth/internal/model"
)

// TestMLXGoldens runs every golden on MLX itself, in float32 on its CPU device.
func TestMLXGoldens(t *testing.T) {
	testshim.Library(t, testshim.Newest)
	for _, typ := range model.Types() {
		files, _ := filepath.Glob(filepath.Join("testdata", typ, "*.json"))
		for _, file := range files {
			var g logits
			golden.Load(t, file, &g)
			t.Run(typ+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				g.compare(t, testshim.Open(t), backend.Options{Exact: true}, g.bound(exact))
			})
		}
	}
}
