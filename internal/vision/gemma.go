package vision

import (
	"errors"
	"fmt"
	"math"
)

// newGemma3 is Gemma3ImageProcessor: a square of one size whatever the shape, and, if the file asks for "pan and scan", crops
// of long pictures behind it.
func newGemma3(p *Processor, s *settings, m *model) error {
	w, h := first(s.Size.Width, 224), first(s.Size.Height, 224)
	p.patch = first(m.Vision.Patch, s.Patch.Height, 14)
	if err := errors.Join(within("width", w, 1, maxSide/4), within("height", h, 1, maxSide/4), within("patch_size", p.patch, 1, 128)); err != nil {
		return err
	}
	grid := w / p.patch
	// The tower's rows are averaged over squares until so many are left.
	side := int(math.Sqrt(float64(first(m.ImageTokens, 256))))
	if side == 0 || w != h || w%p.patch != 0 || grid%side != 0 {
		return fmt.Errorf("%d by %d pixels in patches of %d do not make mm_tokens_per_image %d", w, h, p.patch, first(m.ImageTokens, 256))
	}
	p.merge = grid / side
	if s.low || !or(s.PanAndScan, false) {
		p.plan = func(int, int) (Plan, error) { return whole(w, h), nil }
		return nil
	}
	least, most, ratio := or(s.MinCrop, 256), or(s.MostCrops, 4), or(s.CropRatio, 1.2)
	if err := errors.Join(within("pan_and_scan_min_crop_size", least, 1, maxSide), within("pan_and_scan_max_num_crops", most, 1, maxTilesAsked)); err != nil {
		return err
	}
	p.plan = func(pw, ph int) (Plan, error) {
		plan := whole(w, h)
		long, short := max(pw, ph), min(pw, ph)
		if float64(long)/float64(short) < ratio {
			return plan, nil
		}
		n := min(long/least, int(math.Floor(float64(long)/float64(short)+0.5)))
		n = min(most, max(2, n))
		size := (long + n - 1) / n
		if min(size, short) < least {
			return plan, nil
		}
		plan.Rows, plan.Cols = 1, n
		if ph > pw {
			plan.Rows, plan.Cols = n, 1
		}
		for i := range n {
			t := Tile{width: w, height: h, part: [4]int{i * size, 0, min(size, pw-i*size), ph}}
			if ph > pw {
				t.part = [4]int{0, i * size, pw, min(size, ph-i*size)}
			}
			plan.Tiles = append(plan.Tiles, t)
		}
		return plan, nil
	}
	return nil
}

// newGemma4 is Gemma4ImageProcessor: the largest size of about the same proportions that has at most so many patches.
func newGemma4(p *Processor, s *settings, m *model) error {
	p.planes = false
	p.patch = first(s.Patch.Height, m.Vision.Patch, 16)
	p.merge = first(or(s.Pool, 0), m.Vision.Pool, 3)
	tokens := first(or(s.SoftTokens, 0), m.SoftTokens, 280)
	if err := errors.Join(agree("patch_size", p.patch, m.Vision.Patch), agree("pooling_kernel_size", p.merge, m.Vision.Pool),
		within("patch_size", p.patch, 1, 128), within("pooling_kernel_size", p.merge, 1, 16),
		within("max_soft_tokens", tokens, 1, 1<<13)); err != nil {
		return err
	}
	if s.low {
		tokens = min(tokens, lowTokens)
	}
	side := p.patch * p.merge
	pixels := tokens * side * side
	if pixels > maxPrepared {
		return fmt.Errorf("max_soft_tokens is %d: too many pixels", tokens)
	}
	p.plan = func(w, h int) (Plan, error) {
		scale := math.Sqrt(float64(pixels) / float64(w*h))
		th := int(math.Floor(float64(scale*float64(h))/float64(side))) * side
		tw := int(math.Floor(float64(scale*float64(w))/float64(side))) * side
		switch {
		case th == 0:
			th, tw = side, min(w/h*side, tokens*side)
		case tw == 0:
			tw, th = side, min(h/w*side, tokens*side)
		}
		if tw*th > pixels || tw*th == 0 {
			return Plan{}, refuse(Ratio, "is %d by %d: such a shape is too long for the model: crop it", w, h)
		}
		return whole(tw, th), nil
	}
	return nil
}
