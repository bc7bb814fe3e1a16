package vision

import (
	"errors"
	"math"
	"slices"
)

// newLFM2 is Lfm2VlImageProcessor: a picture within the budget is one tile in about its own size; a larger one is split into
// a grid of squares that is nearest to its shape, and the whole of it follows, small.
func newLFM2(p *Processor, s *settings, m *model) error {
	p.planes = false
	p.patch = first(or(s.EncoderPatch, 0), m.Vision.Patch, 16)
	p.merge = first(or(s.Downsample, 0), m.Downsample, 2)
	leastTiles, mostTiles := or(s.MinTiles, 2), or(s.MaxTiles, 10)
	if s.low || !or(s.Split, true) {
		leastTiles, mostTiles = 1, 1
	}
	leastTokens, mostTokens := or(s.MinTokens, 64), or(s.MaxTokens, 256)
	tile, tolerance := or(s.Tile, 512), or(s.Tolerance, 2)
	if err := errors.Join(agree("encoder_patch_size", p.patch, m.Vision.Patch), agree("downsample_factor", p.merge, m.Downsample),
		within("encoder_patch_size", p.patch, 1, 128), within("downsample_factor", p.merge, 1, 16),
		within("min_tiles", leastTiles, 1, mostTiles), within("max_tiles", mostTiles, 1, 64), within("tile_size", tile, p.patch, maxSide/8),
		within("min_image_tokens", leastTokens, 1, mostTokens), within("max_image_tokens", mostTokens, 1, 1<<13)); err != nil {
		return err
	}
	factor := p.patch * p.merge
	if mostTokens*factor*factor > maxPrepared {
		return within("max_image_tokens", mostTokens, 1, maxPrepared/factor/factor)
	}
	if tile%factor != 0 {
		return errors.New("tile_size is no multiple of encoder_patch_size times downsample_factor")
	}
	least, most := leastTokens*factor*factor, mostTokens*factor*factor
	shapes := tileShapes(leastTiles, mostTiles)
	p.plan = func(w, h int) (Plan, error) {
		sw, sh := smart(w, h, factor, least, most, factor)
		bw := max(p.patch, int(math.RoundToEven(float64(w)/float64(factor)))*factor)
		bh := max(p.patch, int(math.RoundToEven(float64(h)/float64(factor)))*factor)
		if mostTiles == 1 || float64(bw*bh) <= float64(most)*tolerance {
			return whole(sw, sh), nil
		}
		cols, rows := nearestShape(shapes, w, h, tile)
		plan := Plan{Rows: rows, Cols: cols, sizes: [][2]int{{cols * tile, rows * tile}}}
		plan.Tiles = grid(rows, cols, tile)
		if or(s.Thumbnail, true) && rows*cols != 1 {
			plan.Tiles = append(plan.Tiles, Tile{width: sw, height: sh})
		}
		return plan, nil
	}
	return nil
}

// grid are the tiles of the first of Plan.sizes, row after row.
func grid(rows, cols, side int) (tiles []Tile) {
	for y := range rows {
		for x := range cols {
			tiles = append(tiles, Tile{width: side, height: side, from: 1, part: [4]int{x * side, y * side, side, side}})
		}
	}
	return tiles
}

// tileShapes are the columns and rows of all grids of so many tiles, small ones first.
func tileShapes(least, most int) (shapes [][2]int) {
	for w := 1; w <= most; w++ {
		for h := 1; w*h <= most; h++ {
			if w*h >= least {
				shapes = append(shapes, [2]int{w, h})
			}
		}
	}
	slices.SortStableFunc(shapes, func(a, b [2]int) int { return a[0]*a[1] - b[0]*b[1] })
	return shapes
}

// nearestShape is the grid whose proportions are nearest to a picture's; of grids as near as each other the larger one, if the
// picture has more than half its pixels.
func nearestShape(shapes [][2]int, w, h, tile int) (cols, rows int) {
	ratio, best := float64(w)/float64(h), math.Inf(1)
	for _, s := range shapes {
		switch d := math.Abs(ratio - float64(s[0])/float64(s[1])); {
		case d < best:
			best, cols, rows = d, s[0], s[1]
		case d == best && float64(w*h) > 0.5*float64(tile*tile*s[0]*s[1]):
			cols, rows = s[0], s[1]
		}
	}
	return cols, rows
}
