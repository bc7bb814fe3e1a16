package nn

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	B "hearth/internal/backend"
)

// RopeArgs is rope_parameters or rope_scaling after both spellings were merged and defaults filled in.
type RopeArgs struct {
	Type                                     string // as in config.json: default, linear, llama3, yarn, longrope …
	Theta                                    float64
	Partial                                  float64 // share of the head that is rotated
	Factor                                   float64
	Orig                                     float64 // context the model was first trained on
	LowFreq, HighFreq                        float64 // llama3
	BetaFast, BetaSlow, MScale, MScaleAllDim float64 // yarn
	Amp                                      float64 // attention_factor: of cosines and sines; 0: as yarn and longrope have it
	Whole                                    bool    // yarn's ramp begins and ends between pairs: truncate is false
	Alpha                                    float64 // hunyuan's, which raises the base; not read here
	Traditional                              bool    // pairs (2i, 2i+1)
	Sections                                 []int   // mrope's: so many pairs turn with each of three axes of positions; nil: one axis
	InTurn                                   bool    // pairs of the sections take turns; else each section's are side by side

	Max   float64   // positions the model allows
	Long  []float64 // longrope's divisor of every pair
	Short []float64 // of short texts; not read here, as in mlx-lm
}

// NewRope turns a variant into a frequency table for heads of the given width. Everything that depends on the config
// is settled here, in float64, so that backends know one kind of rotation. Formulas as in mlx-lm's rope_utils. What would
// change with the length of a text is settled too, because cached keys cannot follow: dynamic is the plain rotation, as
// it is up to the positions the model allows.
func NewRope(head int, a RopeArgs) (*B.Rope, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	dims := int(float64(head) * a.Partial)
	if a.Type == "proportional" {
		dims -= dims % 2
	}
	wide := dims
	if dims%2 != 0 && dims < head && a.odd() {
		dims++ // as in transformers: a pair for what is left, frequencies of the odd width
	}
	if dims < 2 || dims%2 != 0 {
		return nil, fmt.Errorf("rope %s: partial_rotary_factor %g: %d of %d columns would rotate, not a positive even number", cmp.Or(a.Type, "default"), a.Partial, dims, head)
	}
	r := &B.Rope{Head: head, Amp: 1, Traditional: a.Traditional}
	if a.long() && len(a.Long) != dims/2 {
		return nil, fmt.Errorf("rope %s: long_factor has %d entries for %d pairs", a.Type, len(a.Long), dims/2)
	}
	scale := a.frequencies(dims)
	if a.Type == "proportional" { // frequencies and partners of the whole head, of which the fastest pairs rotate
		wide, r.Split = head, head/2
	}
	for i := range dims / 2 {
		f := math.Pow(a.Theta, -2*float64(i)/float64(wide))
		r.InvFreq = append(r.InvFreq, float32(scale(f, i)))
		if x := float64(r.InvFreq[i]); math.IsInf(x, 0) || math.IsNaN(x) {
			return nil, fmt.Errorf("rope %s: factor %g is out of range", a.Type, a.Factor)
		}
	}
	if len(a.Sections) > 0 {
		var err error
		if r.Axis, err = a.axes(len(r.InvFreq)); err != nil {
			return nil, err
		}
	}
	switch {
	case a.Amp > 0 && (a.yarn() || a.long()):
		r.Amp = float32(a.Amp)
	case a.yarn() && a.MScale != 0 && a.MScaleAllDim != 0:
		r.Amp = float32(mscale(a.Factor, a.MScale) / mscale(a.Factor, a.MScaleAllDim))
	case a.yarn():
		r.Amp = float32(mscale(a.Factor, 1))
	case a.long() && a.Factor > 1:
		r.Amp = float32(math.Sqrt(1 + math.Log(a.Factor)/math.Log(a.Orig)))
	}
	return r, nil
}

// axes says which axis turns each pair. Where sections take turns, pairs are left over for the first axis.
func (a *RopeArgs) axes(pairs int) ([]uint8, error) {
	const three = 3
	total := 0
	for _, n := range a.Sections {
		if n < 0 || n > 1<<16 {
			return nil, fmt.Errorf("mrope_section %v is out of range", a.Sections)
		}
		total += n
	}
	if len(a.Sections) != three || !a.InTurn && total != pairs {
		return nil, fmt.Errorf("mrope_section %v are not three parts of %d pairs", a.Sections, pairs)
	}
	axis := make([]uint8, pairs)
	if a.InTurn {
		for i := range axis {
			if turn := i % three; i < three*a.Sections[turn] {
				axis[i] = uint8(turn)
			}
		}
		return axis, nil
	}
	at := 0
	for n, width := range a.Sections {
		for range width {
			axis[at] = uint8(n)
			at++
		}
	}
	return axis, nil
}

// ropeTypes are the values of rope_type.
var ropeTypes = []string{"default", "dynamic", "linear", "llama3", "longrope", "mrope", "proportional", "su", "yarn", "deepseek_yarn"}

func (a *RopeArgs) yarn() bool { return a.Type == "yarn" || a.Type == "deepseek_yarn" }

// odd reports variants that take odd widths.
func (a *RopeArgs) odd() bool {
	switch a.Type {
	case "", "default", "dynamic", "linear", "llama3":
		return true
	}
	return false
}

func (a *RopeArgs) long() bool { return a.Type == "longrope" || a.Type == "su" }

func (a *RopeArgs) check() error {
	bad := func(what string, x float64) error {
		return fmt.Errorf("rope %s: %s %g is out of range", cmp.Or(a.Type, "default"), what, x)
	}
	switch {
	case !(a.Theta > 1) || math.IsInf(a.Theta, 0):
		return bad("rope_theta", a.Theta)
	case !(a.Partial > 0 && a.Partial <= 1):
		return bad("partial_rotary_factor", a.Partial)
	}
	switch a.Type {
	case "", "default", "dynamic", "mrope": // the last has one position per token in text
		return nil
	case "longrope", "su":
		return a.checkLong()
	case "proportional":
		if a.Traditional {
			return fmt.Errorf("rope proportional: not in traditional pairs")
		}
	case "linear", "llama3", "yarn", "deepseek_yarn":
	default:
		return fmt.Errorf("rope_type %q is not supported: %s are", a.Type, strings.Join(ropeTypes, ", "))
	}
	switch {
	case math.Abs(a.MScale) > 1e6 || math.Abs(a.MScaleAllDim) > 1e6:
		return fmt.Errorf("rope %s: mscale %g or mscale_all_dim %g is out of range", a.Type, a.MScale, a.MScaleAllDim)
	case a.Amp > 1e6:
		return bad("attention_factor", a.Amp)
	case !(a.Factor > 0) || math.IsInf(a.Factor, 0):
		return bad("factor", a.Factor)
	case a.Type == "proportional":
		return nil
	case !(a.Orig > 0) || math.IsInf(a.Orig, 0):
		return bad("original_max_position_embeddings", a.Orig)
	case a.Type == "llama3" && !(a.LowFreq > 0 && a.HighFreq >= a.LowFreq):
		return fmt.Errorf("rope llama3: low_freq_factor %g and high_freq_factor %g are out of range", a.LowFreq, a.HighFreq)
	case a.yarn() && !(a.BetaFast > 0 && a.BetaSlow > 0):
		return fmt.Errorf("rope yarn: beta_fast %g and beta_slow %g are out of range", a.BetaFast, a.BetaSlow)
	}
	return nil
}

func (a *RopeArgs) checkLong() error {
	if !(a.Orig > 1) || math.IsInf(a.Orig, 0) {
		return fmt.Errorf("rope %s: original_max_position_embeddings %g is out of range", a.Type, a.Orig)
	}
	for i, f := range a.Long {
		if !(f > 0) || math.IsInf(f, 0) {
			return fmt.Errorf("rope %s: long_factor[%d] is %g", a.Type, i, f)
		}
	}
	return nil
}

// frequencies returns what the variant does to the plain frequency f of pair i.
func (a *RopeArgs) frequencies(dims int) func(f float64, i int) float64 {
	switch a.Type {
	case "linear", "proportional":
		return func(f float64, _ int) float64 { return f / a.Factor }
	case "llama3":
		return a.llama3
	case "yarn", "deepseek_yarn":
		return a.ramp(dims)
	case "longrope", "su":
		return func(f float64, i int) float64 { return f / a.Long[i] }
	}
	return func(f float64, _ int) float64 { return f }
}

// llama3 keeps short waves, stretches long ones by Factor and blends between.
func (a *RopeArgs) llama3(f float64, _ int) float64 {
	wave := 2 * math.Pi / f
	switch low, high := a.Orig/a.LowFreq, a.Orig/a.HighFreq; {
	case wave > low:
		return f / a.Factor
	case wave <= high:
		return f
	}
	s := (a.Orig/wave - a.LowFreq) / (a.HighFreq - a.LowFreq)
	return f * ((1-s)/a.Factor + s)
}

// ramp is yarn's blend between kept and stretched frequencies over the pair index.
func (a *RopeArgs) ramp(dims int) func(f float64, i int) float64 {
	at := func(rotations float64) float64 {
		return float64(dims) * math.Log(a.Orig/(rotations*2*math.Pi)) / (2 * math.Log(a.Theta))
	}
	lo, hi := at(a.BetaFast), at(a.BetaSlow)
	if !a.Whole {
		lo, hi = math.Floor(lo), math.Ceil(hi)
	}
	lo, hi = max(lo, 0), min(hi, float64(dims-1))
	if lo == hi {
		hi += 0.001
	}
	return func(f float64, i int) float64 {
		keep := 1 - min(max((float64(i)-lo)/(hi-lo), 0), 1)
		return f/a.Factor*(1-keep) + f*keep
	}
}

func mscale(s, m float64) float64 {
	if s <= 1 {
		return 1
	}
	return 0.1*m*math.Log(s) + 1
}
