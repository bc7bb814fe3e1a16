package config

import (
	"slices"
	"testing"
)

// TestMLXEnviron: MLX's settings are changed on large machines, and where somebody asks for it.
func TestMLXEnviron(t *testing.T) {
	for _, c := range []struct {
		memory int64
		args   []string
		want   []string
	}{
		{16 << 30, nil, nil},
		{64 << 30, nil, []string{"MLX_METAL_FAST_SYNCH=1", "MLX_MAX_MB_PER_BUFFER=512", "MLX_MAX_OPS_PER_BUFFER=100"}},
		{64 << 30, []string{"--mlx-fast-synch=false", "--mlx-max-mb-per-buffer=40", "--mlx-max-ops-per-buffer=20"},
			[]string{"MLX_METAL_FAST_SYNCH=0", "MLX_MAX_MB_PER_BUFFER=40", "MLX_MAX_OPS_PER_BUFFER=20"}},
		{16 << 30, []string{"--mlx-fast-synch"}, []string{"MLX_METAL_FAST_SYNCH=1"}},
		{0, []string{"--mlx-max-ops-per-buffer=20"}, []string{"MLX_MAX_OPS_PER_BUFFER=20"}},
	} {
		cfg, _, err := load(t, nil, c.args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.MLXEnviron(c.memory); !slices.Equal(got, c.want) {
			t.Errorf("%d bytes, %v: %v, want %v", c.memory, c.args, got, c.want)
		}
	}
	if cfg, _, err := load(t, map[string]string{"MLX_MAX_MB_PER_BUFFER": "77"}); err != nil || cfg.MLXBufferMB != 77 {
		t.Errorf("%v, %v", cfg, err)
	}
}
