package vision

import (
	"errors"
	"fmt"
	"math"
)

// newIdefics3 is Idefics3ImageProcessor and SmolVLMImageProcessor: the longer side gets one length, both become multiples of a
// tile's, tiles are cut, and the whole picture follows as a square.
func newIdefics3(p *Processor, s *settings, m *model) error {
	p.patch = first(m.Vision.Patch, s.Patch.Height, 14)
	p.merge = first(m.Scale, 2)
	longest, tile := first(s.Size.Longest, 4*364), first(s.MaxImage.Longest, 364)
	if err := errors.Join(within("patch_size", p.patch, 1, 128), within("scale_factor", p.merge, 1, 16),
		within("max_image_size", tile, p.patch, maxSide/4), within("longest_edge", longest, 1, maxSide/2)); err != nil {
		return err
	}
	if side := tile / p.patch; side%p.merge != 0 { // pixels beyond the last patch are not seen, as of a convolution
		return fmt.Errorf("max_image_size %d: %d patches along a side are no multiple of scale_factor %d", tile, side, p.merge)
	}
	if n := (longest + tile - 1) / tile; n*n > maxTilesAsked {
		return fmt.Errorf("longest_edge %d is too many tiles of %d", longest, tile)
	}
	split := or(s.Split, true) && !s.low
	p.plan = func(w, h int) (Plan, error) {
		w, h = toLongest(w, h, longest)
		plan := Plan{sizes: [][2]int{{w, h}}}
		if !split {
			plan.Tiles = []Tile{{width: tile, height: tile, from: 1}}
			return plan, nil
		}
		w, h = toTiles(w, h, tile)
		plan.sizes = append(plan.sizes, [2]int{w, h})
		if rows, cols := h/tile, w/tile; rows*cols > 1 {
			plan.Rows, plan.Cols = rows, cols
			plan.Tiles = grid(rows, cols, tile)
			for i := range plan.Tiles {
				plan.Tiles[i].from = 2
			}
		}
		plan.Tiles = append(plan.Tiles, Tile{width: tile, height: tile, from: 2})
		return plan, nil
	}
	return nil
}

// toLongest gives the longer side a length, the other an even one, and both at most 4096.
func toLongest(w, h, longest int) (int, int) {
	ratio := float64(w) / float64(h)
	if w >= h {
		w, h = longest, int(float64(longest)/ratio)
		h += h % 2
	} else {
		w, h = int(float64(longest)*ratio), longest
		w += w % 2
	}
	w, h = max(w, 1), max(h, 1)
	const ceiling = 4096
	ratio = float64(w) / float64(h)
	switch {
	case w >= h && w > ceiling:
		w, h = ceiling, int(ceiling/ratio)
	case h > w && h > ceiling:
		w, h = int(ceiling*ratio), ceiling
	}
	return max(w, 1), max(h, 1)
}

// toTiles rounds both sides up to whole tiles.
func toTiles(w, h, tile int) (int, int) {
	up := func(n int) int { return int(math.Ceil(float64(n)/float64(tile))) * tile }
	ratio := float64(w) / float64(h)
	if w >= h {
		w = up(w)
		h = up(int(float64(w) / ratio))
	} else {
		h = up(h)
		w = up(int(float64(h) * ratio))
	}
	return w, h
}
