package nn

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func plain() RopeArgs { return RopeArgs{Theta: 10000, Partial: 1} }

// TestRopeTables checks the ends of every variant, which the formulas of the papers give in closed form; what lies
// between is compared with mlx-lm by the goldens of package model.
func TestRopeTables(t *testing.T) {
	with := func(f func(*RopeArgs)) RopeArgs {
		a := plain()
		f(&a)
		return a
	}
	yarn := with(func(a *RopeArgs) {
		a.Type, a.Factor, a.Orig, a.BetaFast, a.BetaSlow, a.MScale = "yarn", 4, 4096, 32, 1, 1
	})
	slowest := math.Pow(10000, -62.0/64)
	for _, c := range []struct {
		name        string
		a           RopeArgs
		pairs       int
		first, last float64
		amp         float64
	}{
		{"default", plain(), 32, 1, slowest, 1},
		{"half of the head", with(func(a *RopeArgs) { a.Partial = 0.5 }), 16, 1, math.Pow(10000, -30.0/32), 1},
		{"linear", with(func(a *RopeArgs) { a.Type, a.Factor, a.Orig = "linear", 8, 1 }), 32, 1.0 / 8, slowest / 8, 1},
		{"llama3", with(func(a *RopeArgs) {
			a.Type, a.Factor, a.Orig, a.LowFreq, a.HighFreq = "llama3", 8, 8192, 1, 4
		}), 32, 1, slowest / 8, 1},
		{"llama3, nothing between", with(func(a *RopeArgs) {
			a.Type, a.Factor, a.Orig, a.LowFreq, a.HighFreq = "llama3", 16, 8192, 1, 1
		}), 32, 1, slowest / 16, 1},
		{"yarn", yarn, 32, 1, slowest / 4, 0.1*math.Log(4) + 1},
		{"yarn, its own amplitude", with(func(a *RopeArgs) { *a = yarn; a.Amp = 0.8 }), 32, 1, slowest / 4, 0.8},
		{"dynamic", with(func(a *RopeArgs) { a.Type, a.Factor = "dynamic", 4 }), 32, 1, slowest, 1},
		{"longrope", with(func(a *RopeArgs) {
			a.Type, a.Orig, a.Factor, a.Long = "longrope", 4096, 4096, slices.Repeat([]float64{2}, 32)
		}), 32, 1.0 / 2, slowest / 2, math.Sqrt2},
		{"longrope, not longer", with(func(a *RopeArgs) {
			a.Type, a.Orig, a.Factor, a.Long = "su", 4096, 1, slices.Repeat([]float64{3}, 32)
		}), 32, 1.0 / 3, slowest / 3, 1},
		{"proportional", with(func(a *RopeArgs) { a.Type, a.Factor, a.Partial = "proportional", 4, 0.25 }), 8, 1.0 / 4, math.Pow(10000, -14.0/64) / 4, 1},
		{"deepseek_yarn", with(func(a *RopeArgs) { *a = yarn; a.Type, a.MScaleAllDim = "deepseek_yarn", 1 }), 32, 1, slowest / 4, 1},
	} {
		r, err := NewRope(64, c.a)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		near := func(got float32, want float64) bool { return math.Abs(float64(got)-want) <= 1e-6*want }
		if len(r.InvFreq) != c.pairs || !near(r.InvFreq[0], c.first) || !near(r.InvFreq[c.pairs-1], c.last) || !near(r.Amp, c.amp) || r.Head != 64 {
			t.Errorf("%s: %d pairs, first %g, last %g, amplitude %g; want %d, %g, %g, %g", c.name,
				len(r.InvFreq), r.InvFreq[0], r.InvFreq[len(r.InvFreq)-1], r.Amp, c.pairs, c.first, c.last, c.amp)
		}
	}
}

// TestProportional: the partners of the pairs that rotate are half a head away.
func TestProportional(t *testing.T) {
	for kind, split := range map[string]int{"proportional": 32, "default": 0} {
		a := plain()
		a.Type, a.Factor, a.Partial = kind, 1, 0.25
		if r, err := NewRope(64, a); err != nil || r.Split != split || len(r.InvFreq) != 8 {
			t.Errorf("%s: %+v, %v", kind, r, err)
		}
	}
}

// TestOddWidth: a pair turns for the column that is left, with the frequencies of the odd width.
func TestOddWidth(t *testing.T) {
	a := plain()
	a.Partial = 0.05
	r, err := NewRope(64, a)
	if want := float32(math.Pow(a.Theta, -2.0/3)); err != nil || len(r.InvFreq) != 2 || r.InvFreq[1] != want {
		t.Errorf("%+v, %v, want a second frequency of %g", r, err, want)
	}
}

func TestRopeErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*RopeArgs)
		want   string
	}{
		{func(a *RopeArgs) { a.Type = "3d" }, `type "3d" is not supported`},
		{func(a *RopeArgs) { a.Type = "longrope" }, "original_max_position_embeddings 0"},
		{func(a *RopeArgs) { a.Type, a.Orig = "su", 4096 }, "long_factor has 0 entries for 32 pairs"},
		{func(a *RopeArgs) { a.Type, a.Orig, a.Long = "su", 4096, make([]float64, 32) }, "long_factor[0] is 0"},
		{func(a *RopeArgs) { a.Theta = 0 }, "theta 0"},
		{func(a *RopeArgs) { a.Theta = math.NaN() }, "theta NaN"},
		{func(a *RopeArgs) { a.Theta = math.Inf(1) }, "theta +Inf"},
		{func(a *RopeArgs) { a.Partial = 1.5 }, "partial_rotary_factor 1.5"},
		{func(a *RopeArgs) { a.Partial = 0.01 }, "0 of 64 columns"},
		{func(a *RopeArgs) {
			a.Partial, a.Type, a.Factor, a.Orig, a.BetaFast, a.BetaSlow = 0.05, "yarn", 4, 512, 32, 1
		}, "3 of 64 columns"},
		{func(a *RopeArgs) { a.Type = "linear" }, "factor 0"},
		{func(a *RopeArgs) { a.Type = "proportional" }, "factor 0"},
		{func(a *RopeArgs) { a.Type, a.Factor, a.Traditional = "proportional", 1, true }, "not in traditional pairs"},
		{func(a *RopeArgs) { a.Type, a.Factor = "yarn", 4 }, "original_max_position_embeddings 0"},
		{func(a *RopeArgs) { a.Type, a.Factor, a.Orig = "yarn", 4, 512 }, "beta_fast 0"},
		{func(a *RopeArgs) { a.Type, a.Factor, a.Orig, a.LowFreq, a.HighFreq = "llama3", 4, 512, 4, 2 }, "low_freq_factor 4"},
	} {
		a := plain()
		c.change(&a)
		if _, err := NewRope(64, a); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q in it", a, err, c.want)
		}
	}
}
