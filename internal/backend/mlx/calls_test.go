//go:build darwin || linux

package mlx_test

import (
	"testing"

	B "hearth/internal/backend"
	"hearth/internal/backend/mlx"
	"hearth/internal/golden"
	"hearth/internal/model"
	"hearth/internal/quant"
)

// TestCalls: a decode step of three layers calls MLX as often as it should. Queries and keys are normalised and rotated together,
// what a layer let go of is overwritten by the next, and nothing is asked for that is known.
func TestCalls(t *testing.T) {
	for typ, want := range map[string]map[string]int{
		"qwen3": {"mlx_fast_rms_norm": 3*3 + 1, "mlx_fast_rope": 3, "mlx_slice_update": 3 * 2, "mlx_array_ndim": 0},
		"llama": {"mlx_fast_rms_norm": 3*2 + 1, "mlx_fast_rope": 3, "mlx_slice_update": 3 * 2, "mlx_array_ndim": 0},
	} {
		r := rigged{}
		be, err := r.open(t, mlx.Config{Device: "cpu"})
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Synthetic{Config: configOf(t, typ), Seed: 3, Type: quant.F32}.Load(be, B.Options{Precision: B.Float32})
		if err != nil {
			t.Fatal(err)
		}
		s := golden.NewSequence(t, be, m, 8)
		for i := range 4 {
			s.Step([]int32{int32(i)}, 0)
		}
		be.Live() // what the last step left is freed
		r.calls = map[string]int{}
		s.Step([]int32{5}, 0)
		be.Live()
		if n := r.calls["mlx_array_free"]; n > 24 {
			t.Errorf("%s: %d arrays are freed one by one, more than a layer has: %v", typ, n, r.calls)
		}
		for name, n := range want {
			if r.calls[name] != n {
				t.Errorf("%s: %d calls of %s, want %d", typ, r.calls[name], name, n)
			}
		}
		m.Close()
		if err := be.Close(); err != nil {
			t.Error(err)
		}
	}
}
