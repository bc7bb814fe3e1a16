package vision

// Raster is an opaque picture: three bytes a pixel, red, green, blue, row after row without gaps.
type Raster struct {
	Width, Height int
	Pix           []byte // Width*Height*3
}

func newRaster(w, h int) *Raster { return &Raster{w, h, make([]byte, 3*w*h)} }

func (r *Raster) row(y int) []byte { return r.Pix[3*r.Width*y : 3*r.Width*(y+1)] }

// crop is the part of r of that size at (x, y), cut at r's edges.
func (r *Raster) crop(x, y, w, h int) *Raster {
	w, h = min(w, r.Width-x), min(h, r.Height-y)
	out := newRaster(w, h)
	for i := range h {
		copy(out.row(i), r.row(y + i)[3*x:])
	}
	return out
}

// turn is r as orientation, EXIF's number from 1 to 8, says that it is to be seen.
func (r *Raster) turn(orientation int) *Raster {
	w, h := r.Width, r.Height
	if orientation >= 5 {
		w, h = h, w
	}
	// A pixel (x, y) of the result is the pixel at start + x*dx + y*dy of r.
	lastX, lastY, line := 3*(r.Width-1), 3*r.Width*(r.Height-1), 3*r.Width
	var start, dx, dy int
	switch orientation {
	case 2: // mirrored
		start, dx, dy = lastX, -3, line
	case 3: // upside down
		start, dx, dy = lastX+lastY, -3, -line
	case 4:
		start, dx, dy = lastY, 3, -line
	case 5:
		start, dx, dy = 0, line, 3
	case 6: // to be turned to the right
		start, dx, dy = lastY, -line, 3
	case 7:
		start, dx, dy = lastX+lastY, -line, -3
	case 8: // to be turned to the left
		start, dx, dy = lastX, line, -3
	default:
		return r
	}
	out := newRaster(w, h)
	const tile = 32 // both pictures are walked in squares, so that neither misses the cache at every pixel
	for y0 := 0; y0 < h; y0 += tile {
		for x0 := 0; x0 < w; x0 += tile {
			for y := y0; y < min(y0+tile, h); y++ {
				from := start + y*dy + x0*dx
				to := out.row(y)[3*x0 : 3*min(x0+tile, w)]
				for ; len(to) >= 3; to = to[3:] {
					p := r.Pix[from : from+3 : from+3]
					to[0], to[1], to[2] = p[0], p[1], p[2]
					from += dx
				}
			}
		}
	}
	return out
}

// onWhite is a channel of a pixel with alpha a over white, rounded as Pillow's alpha_composite rounds.
func onWhite(c, a uint8) uint8 {
	v := uint32(c)*(uint32(a)<<7) + 255*((255-uint32(a))<<7) + 0x80<<7
	return uint8(((v>>8 + v) >> 8) >> 7)
}
