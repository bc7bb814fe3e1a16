package vision

import (
	"errors"
	"math"
)

// newQwen is Qwen2VLImageProcessor, of qwen2_vl, qwen2_5_vl, qwen3_vl and qwen3_5: both sides become multiples of a merged
// patch's, and their product stays between two bounds.
func newQwen(p *Processor, s *settings, m *model) error {
	p.patch = first(s.Patch.Height, m.Vision.Patch, 14)
	p.temporal = first(or(s.Temporal, 0), m.Vision.Temporal, 2)
	p.merge = first(or(s.Merge, 0), m.Vision.MergeSize, 2)
	p.squares = true
	// An object in "size" replaces the class's, and min_pixels and max_pixels replace what is in either.
	least := or(s.MinPixels, first(s.Size.Shortest, 56*56))
	most := or(s.MaxPixels, first(s.Size.Longest, 28*28*1280))
	if err := errors.Join(
		agree("patch_size", p.patch, m.Vision.Patch), agree("temporal_patch_size", p.temporal, m.Vision.Temporal),
		agree("merge_size", p.merge, m.Vision.MergeSize),
		within("patch_size", p.patch, 1, 128), within("merge_size", p.merge, 1, 16),
		within("shortest_edge (min_pixels)", least, 1, maxPrepared), within("longest_edge (max_pixels)", most, least, maxPrepared),
	); err != nil {
		return err
	}
	factor := p.patch * p.merge
	if most < factor*factor {
		return within("longest_edge (max_pixels)", most, factor*factor, maxPrepared)
	}
	if s.low {
		most = max(min(most, lowSide*lowSide), factor*factor)
		least = min(least, most)
	}
	p.plan = func(w, h int) (Plan, error) {
		const mostRatio = 200
		if max(w, h) > mostRatio*min(w, h) {
			return Plan{}, refuse(Ratio, "is %d by %d: the model takes none whose longer side is more than %d times the other: crop it", w, h, mostRatio)
		}
		w, h = smart(w, h, factor, least, most, 0)
		return whole(w, h), nil
	}
	return nil
}

// smart is the function smart_resize that several processors have: multiples of factor, with a number of pixels between least
// and most, in about the same proportions. No side is below smallest.
func smart(w, h, factor, least, most, smallest int) (int, int) {
	f := float64(factor)
	fw, fh := float64(w), float64(h)
	bw := max(int(math.RoundToEven(fw/f))*factor, smallest)
	bh := max(int(math.RoundToEven(fh/f))*factor, smallest)
	switch {
	case bw*bh > most:
		beta := math.Sqrt(float64(w*h) / float64(most))
		bh = max(factor, int(math.Floor(fh/beta/f))*factor)
		bw = max(factor, int(math.Floor(fw/beta/f))*factor)
	case bw*bh < least:
		beta := math.Sqrt(float64(least) / float64(w*h))
		bh = int(math.Ceil(fh*beta/f)) * factor
		bw = int(math.Ceil(fw*beta/f)) * factor
	}
	return bw, bh
}

// whole is a plan of one tile: the picture in that size.
func whole(w, h int) Plan { return Plan{Tiles: []Tile{{width: w, height: h}}} }
