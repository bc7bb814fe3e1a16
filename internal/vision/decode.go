package vision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// Decode reads a file within limits into a picture as it is to be seen, flat on white.
func Decode(ctx context.Context, file []byte, l Limits) (*Raster, error) {
	h, err := Inspect(file, l)
	if err != nil {
		return nil, err
	}
	return decode(ctx, file, h)
}

// reader ends a decoder whose context has ended: the next time it asks for bytes it is told so.
type reader struct {
	*bytes.Reader
	ctx context.Context
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	const part = 64 << 10 // so that it asks often
	return r.Reader.Read(p[:min(len(p), part)])
}

func (r reader) ReadAt(p []byte, at int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.ReadAt(p, at)
}

var decoders = map[string]func(io.Reader) (image.Image, error){
	"png": png.Decode, "jpeg": jpeg.Decode, "gif": gif.Decode, "webp": webp.Decode, "bmp": bmp.Decode, "tiff": tiff.Decode,
}

// errPanic is what is said of a file at which a decoder panicked.
var errPanic = errors.New("it cannot be decoded")

func decode(ctx context.Context, file []byte, h Header) (*Raster, error) {
	if h.frame != nil {
		file = h.frame
	}
	m, err := decodeImage(ctx, file, h)
	if err == nil {
		err = h.matches(m)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, broken(h.Format, err)
	}
	r, err := flatten(ctx, m, h)
	if err != nil {
		return nil, err
	}
	return r.turn(h.Orientation), ctx.Err()
}

// decodeImage calls the format's decoder. The decoders are not ours, and a panic in one must be an answer.
func decodeImage(ctx context.Context, file []byte, h Header) (m image.Image, err error) {
	defer func() {
		if recover() != nil {
			m, err = nil, errPanic
		}
	}()
	if h.Format == "jpeg" {
		if m := baseline(ctx, file, h.raw[0], h.raw[1]); m != nil {
			return m, nil
		}
	}
	return decoders[h.Format](reader{bytes.NewReader(file), ctx})
}

// matches checks that what was decoded is of the size that was checked against the limits.
func (h Header) matches(m image.Image) error {
	b := m.Bounds()
	if h.Format == "gif" || h.frame != nil { // the first frame may be a part of the picture
		b = b.Add(image.Pt(h.frameX, h.frameY))
		if !b.In(image.Rect(0, 0, h.raw[0], h.raw[1])) {
			return fmt.Errorf("its first frame %v is outside its %d by %d pixels", b, h.raw[0], h.raw[1])
		}
		return nil
	}
	if b.Dx() != h.raw[0] || b.Dy() != h.raw[1] {
		return fmt.Errorf("it has %d by %d pixels and says %d by %d", b.Dx(), b.Dy(), h.raw[0], h.raw[1])
	}
	return nil
}

// flatten makes red, green and blue of whatever was decoded, over white, by Pillow's arithmetic.
func flatten(ctx context.Context, m image.Image, h Header) (*Raster, error) {
	b := m.Bounds()
	r := newRaster(b.Dx(), b.Dy())
	const rows = 64
	parts := (r.Height + rows - 1) / rows
	each := func(row func(y int, to []byte)) error {
		return share(ctx, parts, func(i int) {
			for y := i * rows; y < min((i+1)*rows, r.Height); y++ {
				row(y, r.row(y))
			}
		})
	}
	planes := func(m *image.YCbCr, webp bool, alpha []byte, stride int) error {
		rowOf := ycc(m, webp, alpha, stride)
		return share(ctx, parts, func(i int) {
			row := rowOf()
			for y := i * rows; y < min((i+1)*rows, r.Height); y++ {
				row(y, r.row(y))
			}
		})
	}
	var err error
	switch m := m.(type) {
	case *image.RGBA: // opaque, but for a TIFF file whose colours are multiplied by alpha
		err = each(func(y int, to []byte) {
			for in := m.Pix[y*m.Stride:]; len(to) >= 3; in, to = in[4:], to[3:] {
				addWhite(to, in[0], in[1], in[2], in[3])
				if len(in) < 8 {
					break
				}
			}
		})
	case *image.NRGBA:
		err = each(func(y int, to []byte) {
			in := m.Pix[y*m.Stride : y*m.Stride+4*r.Width]
			for ; len(in) >= 4 && len(to) >= 3; in, to = in[4:], to[3:] {
				overWhite(to, in[0], in[1], in[2], in[3])
			}
		})
	case *image.Gray:
		err = each(func(y int, to []byte) {
			for x, v := range m.Pix[y*m.Stride : y*m.Stride+r.Width] {
				p := to[3*x : 3*x+3 : 3*x+3]
				p[0], p[1], p[2] = v, v, v
			}
		})
	case *image.Gray16:
		err = each(func(y int, to []byte) {
			for x := range r.Width {
				in := m.Pix[y*m.Stride+2*x:]
				v := clip16(in[0], in[1])
				p := to[3*x : 3*x+3 : 3*x+3]
				p[0], p[1], p[2] = v, v, v
			}
		})
	case *image.RGBA64: // likewise; the low bytes are dropped
		err = each(func(y int, to []byte) {
			for x := range r.Width {
				in, p := m.Pix[y*m.Stride+8*x:], to[3*x:3*x+3:3*x+3]
				addWhite(p, in[0], in[2], in[4], in[6])
			}
		})
	case *image.NRGBA64:
		err = each(func(y int, to []byte) {
			for x := range r.Width {
				in, p := m.Pix[y*m.Stride+8*x:], to[3*x:3*x+3:3*x+3]
				if h.grey16 {
					v := clip16(in[0], in[1])
					p[0], p[1], p[2] = v, v, v
					continue
				}
				overWhite(p, in[0], in[2], in[4], in[6])
			}
		})
	case *image.Paletted:
		var colors [256][3]byte
		for i, c := range m.Palette[:min(len(m.Palette), 256)] {
			n := color.NRGBAModel.Convert(c).(color.NRGBA)
			overWhite(colors[i][:], n.R, n.G, n.B, n.A)
		}
		err = each(func(y int, to []byte) {
			for x, v := range m.Pix[y*m.Stride : y*m.Stride+r.Width] {
				*(*[3]byte)(to[3*x:]) = colors[v]
			}
		})
		if h.Format == "gif" {
			r = onCanvas(r, b.Min, h, canvasColor(m.Palette, colors))
		}
	case *image.YCbCr:
		err = planes(m, h.Format == "webp", nil, 0)
	case *image.NYCbCrA:
		err = planes(&m.YCbCr, true, m.A, m.AStride)
	case *image.CMYK:
		err = each(func(y int, to []byte) {
			in := m.Pix[y*m.Stride : y*m.Stride+4*r.Width]
			for ; len(in) >= 4 && len(to) >= 3; in, to = in[4:], to[3:] {
				k := 255 - int(in[3])
				for c := range 3 {
					t := int(in[c])*k + 128
					to[c] = uint8(max(k-(t>>8+t)>>8, 0))
				}
			}
		})
	default:
		err = fmt.Errorf("%T is not expected", m)
	}
	if err != nil {
		return nil, err
	}
	if h.frame != nil {
		r = onCanvas(r, image.Pt(h.frameX, h.frameY), h, [3]byte{255, 255, 255})
	}
	return r, nil
}

func overWhite(to []byte, r, g, b, a uint8) {
	_ = to[2]
	if a == 255 {
		to[0], to[1], to[2] = r, g, b
		return
	}
	to[0], to[1], to[2] = onWhite(r, a), onWhite(g, a), onWhite(b, a)
}

// addWhite is overWhite for colours that are multiplied by alpha already.
func addWhite(to []byte, r, g, b, a uint8) {
	_ = to[2]
	if a == 255 {
		to[0], to[1], to[2] = r, g, b
		return
	}
	white := 255 - int32(a)
	to[0], to[1], to[2] = clip8(int32(r)+white), clip8(int32(g)+white), clip8(int32(b)+white)
}

// clip16 is a grey of 16 bits as Pillow makes one of 8 from it: what is above 255 is white. So have the models been given
// them; of colours of 16 bits it takes the high byte.
func clip16(hi, lo uint8) uint8 {
	if hi != 0 {
		return 255
	}
	return lo
}

// canvasColor is what is around the first frame of a GIF: nothing, if some colour is transparent, and the first one otherwise.
func canvasColor(p color.Palette, flat [256][3]byte) [3]byte {
	for _, c := range p {
		if _, _, _, a := c.RGBA(); a == 0 {
			return [3]byte{255, 255, 255}
		}
	}
	return flat[0]
}

// onCanvas is a frame at its place in the whole picture.
func onCanvas(r *Raster, at image.Point, h Header, around [3]byte) *Raster {
	if r.Width == h.raw[0] && r.Height == h.raw[1] {
		return r
	}
	out := newRaster(h.raw[0], h.raw[1])
	for i := 0; i < len(out.Pix); i += 3 {
		*(*[3]byte)(out.Pix[i:]) = around
	}
	for y := range r.Height {
		copy(out.row(at.Y + y)[3*at.X:], r.row(y))
	}
	return out
}
