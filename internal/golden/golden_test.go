package golden_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"hearth/internal/golden"
)

func TestDiff(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	scale := []float32{-3, 1, 5}
	for _, c := range []struct {
		got, want []float32
		diff      float64
	}{
		{[]float32{1, 2}, []float32{1, 2}, 0},
		{[]float32{1, 2}, []float32{1, 6}, 0.5},
		{[]float32{-7}, []float32{1}, 1},
		{[]float32{1}, []float32{1, 2}, math.Inf(1)},
		{[]float32{nan}, []float32{1}, math.Inf(1)},
		{[]float32{inf}, []float32{1}, math.Inf(1)},
		{[]float32{inf}, []float32{inf}, math.Inf(1)},
	} {
		if d := golden.Diff(c.got, c.want, scale); d != c.diff {
			t.Errorf("Diff(%v, %v) = %g, want %g", c.got, c.want, d, c.diff)
		}
	}
	if d := golden.Diff(nil, nil, nil); !math.IsInf(d, 1) {
		t.Errorf("nothing compared with nothing differs by %g", d)
	}
	if d := golden.Diff([]float32{1}, []float32{2}, []float32{4, 4}); !math.IsInf(d, 1) {
		t.Errorf("on a scale without range the difference is %g", d)
	}
}

func TestFloats(t *testing.T) {
	var f golden.Floats
	if err := json.Unmarshal([]byte(`"AACAPwAAAMA="`), &f); err != nil || !slices.Equal(f, []float32{1, -2}) {
		t.Errorf("%v, %v", f, err)
	}
	for _, bad := range []string{`"AACAPwA="`, `"?"`, `[1]`} {
		if err := json.Unmarshal([]byte(bad), &f); err == nil {
			t.Errorf("%s gave no error", bad)
		}
	}
}
