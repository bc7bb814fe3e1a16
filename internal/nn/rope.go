package nn

import (
	"math"

	B "hearth/internal/backend"
)

// RopeArgs is rope_parameters / rope_scaling after both spellings were merged.
type RopeArgs struct {
	Type                                  string // default linear llama3 yarn longrope proportional
	Theta, Factor, Partial                float64
	LowFreq, HighFreq, BetaFast, BetaSlow float64
	MScale, MScaleAllDim                  float64
	Orig, Max                             int
	LongFactor                            []float64
	Section                               []int // mrope
	Interleaved                           bool
}

// NewRope turns any variant into a frequency table: everything length- or config-dependent is settled here, in
// float64, so backends know one kind of rotation.
func NewRope(head int, a RopeArgs) *B.Rope {
	if a.Partial == 0 {
		a.Partial = 1
	}
	dims := int(float64(head) * a.Partial)
	r := &B.Rope{Head: head, Amp: 1}
	den := float64(dims)
	if a.Type == "proportional" {
		den, r.Split = float64(head), head/2
	}
	for i := 0; i < dims/2; i++ {
		f := math.Pow(a.Theta, -2*float64(i)/den)
		switch a.Type {
		case "linear":
			f /= a.Factor
		case "llama3":
			f = llama3(f, a)
		case "yarn", "deepseek_yarn":
			f = yarn(f, i, dims, a)
		case "longrope", "su":
			f /= a.LongFactor[i]
		}
		r.InvFreq = append(r.InvFreq, float32(f))
	}
	switch a.Type {
	case "yarn", "deepseek_yarn":
		r.Amp = float32(Mscale(a.Factor, orOne(a.MScale)) / Mscale(a.Factor, a.MScaleAllDim))
	case "longrope", "su":
		if a.Max > a.Orig {
			r.Amp = float32(math.Sqrt(1 + math.Log(float64(a.Max)/float64(a.Orig))/math.Log(float64(a.Orig))))
		}
	}
	if len(a.Section) == 3 {
		r.Axis = mropeAxes(dims/2, a.Section, a.Interleaved)
	}
	return r
}

// At is the same rotation for another place in the head (MLA keeps rotary columns last, traditional pairs).
func At(r *B.Rope, head, offset int, traditional bool) *B.Rope {
	c := *r
	c.Head, c.Offset, c.Traditional = head, offset, traditional
	return &c
}

// Rope2D is the vision rotation: the first half of the pairs follows rows, the second columns.
func Rope2D(head int, theta float64) *B.Rope {
	r := &B.Rope{Head: head, Amp: 1}
	for i := 0; i < head/2; i++ {
		j := i % (head / 4)
		r.InvFreq = append(r.InvFreq, float32(math.Pow(theta, -2*float64(j)/float64(head/2))))
		r.Axis = append(r.Axis, uint8(i/(head/4)))
	}
	return r
}

func Mscale(s, m float64) float64 {
	if s <= 1 || m == 0 {
		return 1
	}
	return 0.1*m*math.Log(s) + 1
}

func orOne(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

func llama3(f float64, a RopeArgs) float64 {
	wl := 2 * math.Pi / f
	low, high := float64(a.Orig)/a.LowFreq, float64(a.Orig)/a.HighFreq
	if wl > low {
		return f / a.Factor
	}
	if wl < high {
		return f
	}
	s := (float64(a.Orig)/wl - a.LowFreq) / (a.HighFreq - a.LowFreq)
	return f * ((1-s)/a.Factor + s)
}

func yarn(f float64, i, d int, a RopeArgs) float64 {
	at := func(n float64) float64 {
		return float64(d) * math.Log(float64(a.Orig)/(n*2*math.Pi)) / (2 * math.Log(a.Theta))
	}
	lo, hi := max(math.Floor(at(a.BetaFast)), 0), min(math.Ceil(at(a.BetaSlow)), float64(d-1))
	if lo == hi {
		hi += 0.001
	}
	mask := 1 - min(max((float64(i)-lo)/(hi-lo), 0), 1)
	return f/a.Factor*(1-mask) + f*mask
}

func mropeAxes(n int, sec []int, interleaved bool) []uint8 {
	ax := make([]uint8, n)
	for i := range ax {
		switch {
		case interleaved && i%3 == 1 && i < 3*sec[1]:
			ax[i] = 1
		case interleaved && i%3 == 2 && i < 3*sec[2]:
			ax[i] = 2
		case !interleaved && i >= sec[0]+sec[1]:
			ax[i] = 2
		case !interleaved && i >= sec[0]:
			ax[i] = 1
		}
	}
	return ax
}
