package vision

import "image"

// ycc is for pictures of planes: the chroma planes are made as large as the luma's and the three are converted, as libjpeg-turbo
// does by default ("fancy upsampling"), or libwebp. alpha is a plane too, or nil. It returns what makes functions, each for one
// goroutine, that make row y.
func ycc(m *image.YCbCr, webp bool, alpha []byte, stride int) func() func(y int, to []byte) {
	w := m.Rect.Dx()
	across, downward := 1, 1
	switch m.SubsampleRatio {
	case image.YCbCrSubsampleRatio422:
		across = 2
	case image.YCbCrSubsampleRatio420:
		across, downward = 2, 2
	case image.YCbCrSubsampleRatio440:
		downward = 2
	case image.YCbCrSubsampleRatio411:
		across = 4
	case image.YCbCrSubsampleRatio410:
		across, downward = 4, 2
	}
	cw := (w + across - 1) / across
	ch := (m.Rect.Dy() + downward - 1) / downward
	return func() func(y int, to []byte) {
		space := [2][]byte{make([]byte, w+1), make([]byte, w+1)}
		return func(y int, to []byte) {
			luma := m.Y[y*m.YStride : y*m.YStride+w]
			var lines [2][]byte
			for i, plane := range [2][]byte{m.Cb, m.Cr} {
				row := func(n int) []byte {
					n = min(max(n, 0), ch-1)
					return plane[n*m.CStride : n*m.CStride+cw]
				}
				near, far := row(y/downward), row(y/downward-1+2*(y%downward))
				out := space[i]
				switch {
				case across == 1 && downward == 1:
					lines[i] = near
					continue
				case webp:
					lines[i] = webpLine(out, near, far)
				case across == 2 && cw <= 2: // no triangle for lines as short as this either
					lines[i] = repeated(out, near, across)
				case across == 2 && downward == 2:
					lines[i] = both(out, near, far)
				case across == 2:
					lines[i] = sideways(out, near)
				case across == 1: // 440: between two rows, rounded down in the upper and up in the lower
					bias := 1 + y%2
					for x := range near {
						out[x] = uint8((3*int(near[x]) + int(far[x]) + bias) >> 2)
					}
					lines[i] = out
				default: // libjpeg has no triangle for other ratios: samples are repeated
					lines[i] = repeated(out, near, across)
				}
			}
			cb, cr := lines[0][:len(luma)], lines[1][:len(luma)]
			if webp {
				for x, l := range luma {
					p := to[3*x : 3*x+3 : 3*x+3]
					webpColor(p, l, cb[x], cr[x])
					if alpha != nil {
						overWhite(p, p[0], p[1], p[2], alpha[y*stride+x])
					}
				}
				return
			}
			for x, l := range luma {
				p := to[3*x : 3*x+3 : 3*x+3]
				b, r := int32(cb[x])-128, int32(cr[x])-128
				v := int32(l)
				// The fractions are those of jdcolor.c: 16 bits, rounded.
				p[0] = clip8(v + (91881*r+1<<15)>>16)
				p[1] = clip8(v + (-22554*b-46802*r+1<<15)>>16)
				p[2] = clip8(v + (116130*b+1<<15)>>16)
			}
		}
	}
}

func clip8(v int32) uint8 {
	if uint32(v) > 255 {
		return uint8(^(v >> 31))
	}
	return uint8(v)
}

// The functions that follow make a line of samples longer. out has room for one more than the picture is wide.

func repeated(out, in []byte, times int) []byte {
	out = out[:len(out)-1]
	for x := range out {
		out[x] = in[x/times]
	}
	return out
}

// sideways is h2v1_fancy_upsample: each sample becomes two, three quarters itself and a quarter its neighbour.
func sideways(out, in []byte) []byte {
	last := len(in) - 1
	for x, v := range in {
		out[2*x] = uint8((3*int(v) + int(in[max(x-1, 0)]) + 1) >> 2)
		out[2*x+1] = uint8((3*int(v) + int(in[min(x+1, last)]) + 2) >> 2)
	}
	// The two ends are the samples themselves.
	out[0], out[2*last+1] = in[0], in[last]
	return out
}

// both is h2v2_fancy_upsample: near is the row in which a sample lies, far the other row that it is next to.
func both(out, near, far []byte) []byte {
	out = out[:2*len(near)]
	last := len(near) - 1
	far = far[:len(near)]
	this := 3*int(near[0]) + int(far[0])
	before := this
	out[0] = uint8((4*this + 8) >> 4)
	for x := range last {
		next := 3*int(near[x+1]) + int(far[x+1])
		if x > 0 {
			out[2*x] = uint8((3*this + before + 8) >> 4)
		}
		out[2*x+1] = uint8((3*this + next + 7) >> 4)
		before, this = this, next
	}
	if last > 0 {
		out[2*last] = uint8((3*this + before + 8) >> 4)
	}
	out[2*last+1] = uint8((4*this + 7) >> 4)
	return out
}

// webpLine is libwebp's upsampling: nine, three, three and one sixteenths, but in two steps that round down.
func webpLine(out, near, far []byte) []byte {
	out = out[:len(out)-1]
	last := len(near) - 1
	for x := range out {
		i := x / 2
		j := min(max(i-1+2*(x%2), 0), last)
		a, b, c, d := int(near[i]), int(near[j]), int(far[i]), int(far[j]) // itself, beside, above or below, across
		if i == j {
			out[x] = uint8((3*a + c + 2) >> 2)
			continue
		}
		// UPSAMPLE_FUNC of dsp/upsampling.c: the average of a and of the two diagonals' averages.
		diagonal := (a + b + c + d + 8 + 2*(b+c)) >> 3
		out[x] = uint8((diagonal + a) >> 1)
	}
	return out
}

// webpColor is VP8YuvToRgb of libwebp's dsp/yuv.h.
func webpColor(to []byte, y, u, v uint8) {
	hi := func(v, k int32) int32 { return v * k >> 8 }
	clip := func(v int32) uint8 {
		if v&^(256<<6-1) == 0 {
			return uint8(v >> 6)
		}
		return uint8(^(v >> 31))
	}
	l := hi(int32(y), 19077)
	to[0] = clip(l + hi(int32(v), 26149) - 14234)
	to[1] = clip(l - hi(int32(u), 6419) - hi(int32(v), 13320) + 8708)
	to[2] = clip(l + hi(int32(u), 33050) - 17685)
}
