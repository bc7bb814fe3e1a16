package vision

import (
	"errors"
	"math"
)

// newPixtral is PixtralImageProcessor, of pixtral and mistral3: at most a box, both sides rounded up to whole merged patches.
func newPixtral(p *Processor, s *settings, m *model) error {
	p.patch = first(m.Vision.Patch, s.Patch.Height, 16)
	p.merge = first(m.MergeSize, 1)
	w, h := first(s.Size.Longest, s.Size.Width, 1024), first(s.Size.Longest, s.Size.Height, 1024)
	if err := errors.Join(within("width (longest_edge)", w, 1, maxSide/2), within("height (longest_edge)", h, 1, maxSide/2),
		within("patch_size", p.patch, 1, 128), within("spatial_merge_size", p.merge, 1, 16)); err != nil {
		return err
	}
	if s.low {
		w, h = min(w, lowSide), min(h, lowSide)
	}
	side := p.patch * p.merge
	up := func(n int) int { return (n + side - 1) / side * side }
	p.plan = func(pw, ph int) (Plan, error) {
		tw, th := pw, ph
		if ratio := max(float64(ph)/float64(h), float64(pw)/float64(w)); ratio > 1 {
			tw, th = int(math.Floor(float64(pw)/ratio)), int(math.Floor(float64(ph)/ratio))
		}
		if tw == 0 || th == 0 {
			return Plan{}, refuse(Ratio, "is %d by %d: such a shape has no pixel left in the model's %d by %d: crop it", pw, ph, w, h)
		}
		return whole(up(tw), up(th)), nil
	}
	return nil
}
