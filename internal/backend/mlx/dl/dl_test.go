//go:build darwin || linux

package dl_test

import (
	"runtime"
	"testing"

	"hearth/internal/backend/mlx/dl"
)

// TestCallFloat: C's own rounding sees the float. That other arguments stay where they are is what package mlx's self-test shows.
func TestCallFloat(t *testing.T) {
	name := "libm.so.6"
	if runtime.GOOS == "darwin" {
		name = "/usr/lib/libSystem.B.dylib"
	}
	l, err := dl.Open(name)
	if err != nil {
		t.Skip(err)
	}
	round, ok := l.Symbol("lrintf")
	if !ok {
		t.Fatal("no lrintf")
	}
	for f, want := range map[float32]int{2.25: 2, -7.75: -8, 1e6: 1000000, 0: 0} {
		if got := int(l.CallFloat(round, f)); got != want {
			t.Errorf("lrintf(%g) is %d, want %d", f, got, want)
		}
	}
}
