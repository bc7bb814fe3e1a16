//go:build darwin || linux

package mlx_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hearth/internal/backend/mlx"
	"hearth/internal/backend/mlx/testshim"
)

// fake is a library with some symbols only.
type fake struct {
	mlx.Library
	lacks string
}

func (f *fake) Symbol(name string) (uintptr, bool) { return 1, name != f.lacks }

// TestBadLibraries: every failure is one sentence that says what to install or set.
func TestBadLibraries(t *testing.T) {
	file := filepath.Join(t.TempDir(), "libmlxc.dylib")
	if err := os.WriteFile(file, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config mlx.Config
		want   string
	}{
		"no file":    {mlx.Config{Path: file + "x", Link: testshim.Link}, "no MLX library at "},
		"no library": {mlx.Config{Path: file, Link: testshim.Link}, "brew install mlx-c"},
		"no symbol": {mlx.Config{Path: file, Link: func(string) (mlx.Library, error) { return &fake{lacks: "mlx_gather_mm"}, nil }},
			"has no mlx_gather_mm, so it is no mlx-c from 0.4 to 0.7: brew install mlx-c"},
		"loader": {mlx.Config{Path: file, Link: func(string) (mlx.Library, error) { return nil, errors.New("wrong architecture") }},
			"wrong architecture: brew install mlx-c"},
	} {
		_, err := mlx.Open(c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "HEARTH_MLX_LIB") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestLayouts: the releases of mlx-c that take other arguments are told apart, and pass the self-test.
func TestLayouts(t *testing.T) {
	for layout, want := range map[int]string{5: "mlx-c 0.4 or 0.5", 6: "mlx-c 0.6", 7: "mlx-c 0.7"} {
		c := testshim.Config(t, layout)
		b, err := mlx.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		i := b.Info()
		if i.Layout != want || i.Device != "cpu" || i.Version == "" || i.Path != c.Path || i.Checks < 40 {
			t.Errorf("layout %d: %+v", layout, i)
		}
		t.Logf("MLX %s on %s, called as %s: %d known answers", i.Version, i.Device, i.Layout, i.Checks)
	}
}

// TestBadMLX: an MLX that cannot be used is refused in one sentence that names the fallback or what to install.
func TestBadMLX(t *testing.T) {
	for name, c := range map[string]struct {
		rig    rigged
		device string
		want   string
	}{
		"no Metal":        {rigged{}, "metal", "finds no Metal device: use --backend cpu"},
		"no Metal either": {rigged{}, "", "finds no Metal device: use --backend cpu"},
		"device":          {rigged{}, "tpu", `unknown MLX device "tpu", want metal or cpu`},
		"old":             {rigged{version: "0.29.3"}, "cpu", "is too old, want 0.30 or newer: brew upgrade mlx mlx-c, or use --backend cpu"},
		"no function":     {rigged{lacks: "mlx_argmax_axis"}, "cpu", "has no mlx_argmax_axis, so it is no mlx-c from 0.4 to 0.7: brew install mlx-c"},
		"no float":        {rigged{lacks: "mlx_fast_rope"}, "cpu", "has no mlx_fast_rope, so it is no mlx-c from 0.4 to 0.7: brew install mlx-c"},
		"no sums":         {rigged{lacks: "mlx_cumsum_axis"}, "cpu", "has no mlx_cumsum, so it is no mlx-c"},
		"wrong function":  {rigged{version: "0.41.0", swap: map[string]string{"mlx_add": "mlx_subtract"}}, "cpu", "MLX 0.41.0 ("},
		"wrong numbers":   {rigged{swap: map[string]string{"mlx_add": "mlx_subtract"}}, "cpu", "fails its self-test at add: number 0 is -1, want 3; MLX 0.30 to 0.32 are known to work: brew install mlx-c"},
	} {
		_, err := c.rig.open(t, mlx.Config{Device: c.device})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := testshim.Open(t).Provoke(); err == nil {
		t.Error("another library's failure goes unnoticed")
	}
}
