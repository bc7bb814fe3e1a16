package cli

import (
	"runtime"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/backend/mlx"
	"hearth/internal/catalog"
	"hearth/internal/config"
)

// backends are those of this build; auto takes the first that works, and looks for MLX on Macs only.
func backends() catalog.Backends {
	b := catalog.Backends{
		Open: map[string]catalog.Opener{
			"cpu": func(*config.Config) (backend.Backend, error) { return cpu.New(), nil },
			"mlx": openMLX,
		},
		Auto: []string{"cpu"},
	}
	if runtime.GOOS == "darwin" {
		b.Auto = []string{"mlx", "cpu"}
	}
	return b
}

func openMLX(cfg *config.Config) (backend.Backend, error) {
	be, err := mlx.Open(mlx.Config{Path: cfg.MLXLib})
	if err != nil {
		return nil, hintf(err, "--backend cpu runs every model without it")
	}
	return be, nil
}
