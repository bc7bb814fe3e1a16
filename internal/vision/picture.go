package vision

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Plan is what becomes of a picture of some size: what the tower is given, in the order in which the model expects it.
type Plan struct {
	Tiles []Tile
	// Rows and Cols say how the first Rows*Cols tiles lie beside each other where the picture is split; what follows them, if
	// anything, is the whole picture, small. Both are 0 where it is not split. A family that adds crops (gemma3) has the whole
	// picture first, and Rows and Cols of the crops behind it.
	Rows, Cols int

	sizes [][2]int // widths and heights that the whole picture goes through before tiles are cut, one after the other
}

// Tile is one input of the tower.
type Tile struct {
	Grid      [3]int // patches: in time, from top to bottom, from left to right
	Positions int    // rows that the tower gives for it, after its merger: the positions it takes in a sequence
	Columns   int    // of those, beside each other

	width, height int    // in pixels, as the tower reads it
	from          int    // which of Plan.sizes it is taken from, counted from 1; 0 is the picture as it came
	part          [4]int // x, y, width, height of what is taken; all of it if the width is 0
}

// Size is its width and height in pixels, as the tower reads it.
func (t Tile) Size() [2]int { return [2]int{t.width, t.height} }

// Positions are those of all tiles.
func (p Plan) Positions() (n int) {
	for _, t := range p.Tiles {
		n += t.Positions
	}
	return n
}

// PatchCount is the number of patches of all tiles.
func (p Plan) PatchCount() (n int) {
	for _, t := range p.Tiles {
		n += t.Grid[0] * t.Grid[1] * t.Grid[2]
	}
	return n
}

// Picture is an image as a tower reads it. It holds 8 bits a channel: the floats of a patch are a table's, and are made when
// they are read, since they are 4 times as much and 8 times where patches are doubled in time.
type Picture struct {
	Plan
	// Digest is of the prepared pixels and of how they are read: equal pictures have equal rows of the tower.
	Digest [sha256.Size]byte

	tiles []*Raster
	proc  *Processor
}

// Prepare makes a picture of a raster.
func (p *Processor) Prepare(ctx context.Context, r *Raster) (*Picture, error) {
	plan, err := p.Plan(r.Width, r.Height)
	if err != nil {
		return nil, err
	}
	whole := []*Raster{r}
	for _, s := range plan.sizes {
		if r, err = r.resize(ctx, s[0], s[1], p.filter); err != nil {
			return nil, err
		}
		whole = append(whole, r)
	}
	pic := &Picture{Plan: plan, proc: p}
	for _, t := range plan.Tiles {
		r := whole[t.from]
		if t.part[2] > 0 {
			r = r.crop(t.part[0], t.part[1], t.part[2], t.part[3])
		}
		if r, err = r.resize(ctx, t.width, t.height, p.filter); err != nil {
			return nil, err
		}
		pic.tiles = append(pic.tiles, r)
	}
	pic.Digest, err = pic.digest(ctx)
	return pic, err
}

// strip is how many bytes of a tile are one part of its digest: parts are hashed side by side.
const strip = 256 << 10

// digest is SHA-256 of the processor's key and, for each tile, its width and height as 32 bits, little endian, and the SHA-256
// of each strip.
func (p *Picture) digest(ctx context.Context) (sum [sha256.Size]byte, err error) {
	all := append([]byte(nil), p.proc.key...)
	for _, t := range p.tiles {
		all = binary.LittleEndian.AppendUint32(all, uint32(t.Width))
		all = binary.LittleEndian.AppendUint32(all, uint32(t.Height))
		parts := (len(t.Pix) + strip - 1) / strip
		at := len(all)
		all = append(all, make([]byte, parts*sha256.Size)...)
		if err := share(ctx, parts, func(i int) {
			part := sha256.Sum256(t.Pix[i*strip : min((i+1)*strip, len(t.Pix))])
			copy(all[at+i*sha256.Size:], part[:])
		}); err != nil {
			return sum, err
		}
	}
	return sha256.Sum256(all), nil
}

// PatchLen is the number of floats of a patch.
func (p *Picture) PatchLen() int { return p.proc.PatchLen() }

// Patches writes n patches of a tile, from the first one, one behind the other: the tower's order of patches, and in a patch
// the order of its weights. dst has n*PatchLen() floats.
func (p *Picture) Patches(dst []float32, tile, first, n int) {
	r, proc := p.tiles[tile], p.proc
	size := proc.patch
	per := proc.PatchLen()
	cols := r.Width / size
	for i := range n {
		y, x := proc.place(first+i, cols)
		out := dst[i*per : (i+1)*per]
		if !proc.planes { // as rows of pixels
			for row := range size {
				in := r.row(y*size + row)[3*x*size : 3*(x+1)*size]
				to := out[3*row*size : 3*(row+1)*size]
				for ; len(in) >= 3 && len(to) >= 3; in, to = in[3:], to[3:] {
					to[0], to[1], to[2] = proc.table[0][in[0]], proc.table[1][in[1]], proc.table[2][in[2]]
				}
			}
			continue
		}
		plane := size * size
		frames := proc.temporal * plane // of a channel: it has the same plane for each moment
		for row := range size {
			in := r.row(y*size + row)[3*x*size : 3*(x+1)*size]
			red, green, blue := out[row*size:][:size], out[frames+row*size:][:size], out[2*frames+row*size:][:size]
			for j := range red {
				c := in[3*j : 3*j+3 : 3*j+3]
				red[j], green[j], blue[j] = proc.table[0][c[0]], proc.table[1][c[1]], proc.table[2][c[2]]
			}
		}
		for c := range 3 {
			ch := out[c*frames : (c+1)*frames]
			for t := plane; t < frames; t += plane {
				copy(ch[t:], ch[:plane])
			}
		}
	}
}

// place is where a patch is, in patches from the top and from the left of a tile of so many columns: row after row, or, where
// the tower merges squares of neighbours that follow each other, square after square.
func (p *Processor) place(i, cols int) (y, x int) {
	if !p.squares {
		return i / cols, i % cols
	}
	m := p.merge
	square, in := i/(m*m), i%(m*m)
	perRow := cols / m
	return square/perRow*m + in/m, square%perRow*m + in%m
}

// TileDigest is a tile's in a picture with that digest: the same where the tile is all of it.
func (p *Plan) TileDigest(picture [sha256.Size]byte, tile int) [sha256.Size]byte {
	if len(p.Tiles) == 1 {
		return picture
	}
	return sha256.Sum256(binary.LittleEndian.AppendUint32(picture[:], uint32(tile)))
}

// Recipe spells all that decides what the pixels of a file become, by a plan for their size: by the same recipe the same file
// has the same digest.
func (p *Processor) Recipe(plan *Plan) []byte {
	return fmt.Appendf(nil, "%s%d %v", p.key, p.resample, *plan)
}
