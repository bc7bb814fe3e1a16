package vision

import (
	"context"
	"encoding/binary"
	"image"
	"runtime"
	"sync"
	"sync/atomic"
)

// baseline decodes the JPEG files that are most common: baseline, grey or YCbCr, in one scan that ends where the file says so. Of
// others, and of all in which anything is odd, it makes nothing, and image/jpeg says what they are. Its inverse transform is
// libjpeg's (jidctint.c), so that the samples are Pillow's to the bit. The planes are made while the codes are still read.
func baseline(ctx context.Context, file []byte, w, h int) (m image.Image) {
	defer func() {
		if recover() != nil {
			m = nil
		}
	}()
	d := &baselineFile{width: w, height: h}
	rest := d.header(file)
	if rest == nil {
		return nil
	}
	d.in = bits{data: rest}
	m = d.planes()
	if !d.scan(ctx) {
		return nil
	}
	return m
}

type baselineFile struct {
	width, height int
	quant         [4]*[64]int32 // in the order of rows
	dc, ac        [4]*huffman
	interval      int // MCUs between restarts; 0: there are none
	parts         []component
	across, down  int // MCUs
	in            bits
}

// component is a component.
type component struct {
	id, h, v, quant, dc, ac byte
	pix                     []byte
	stride                  int
	last                    int32 // DC of the block before
}

// ratios are what is said of luma where chroma has one block an MCU, one more than what package image calls it.
var ratios = map[[2]byte]image.YCbCrSubsampleRatio{{1, 1}: image.YCbCrSubsampleRatio444 + 1, {2, 1}: image.YCbCrSubsampleRatio422 + 1,
	{1, 2}: image.YCbCrSubsampleRatio440 + 1, {2, 2}: image.YCbCrSubsampleRatio420 + 1, {4, 1}: image.YCbCrSubsampleRatio411 + 1,
	{4, 2}: image.YCbCrSubsampleRatio410 + 1}

// zigzag is where the coefficients stand in rows; the 16 behind the last are for runs that are too long.
var zigzag = [64 + 16]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
	63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
}

// header reads what is before the codes, and gives what is from there on; nil: it is no file for baseline.
func (d *baselineFile) header(file []byte) []byte {
	if len(file) < 2 || file[0] != 0xff || file[1] != 0xd8 {
		return nil
	}
	for in := file[2:]; len(in) >= 4 && in[0] == 0xff; {
		size := int(binary.BigEndian.Uint16(in[2:]))
		if size < 2 || len(in) < 2+size {
			return nil
		}
		body := in[4 : 2+size]
		ok := true
		switch mark := in[1]; {
		case mark == 0xc0 || mark == 0xc1:
			ok = d.frame(body)
		case mark == 0xc4:
			ok = d.tables(body)
		case mark == 0xdb:
			ok = d.scales(body)
		case mark == 0xdd:
			ok = len(body) == 2
			if ok {
				d.interval = int(binary.BigEndian.Uint16(body))
			}
		case mark == 0xda:
			if !d.start(body) {
				return nil
			}
			return in[2+size:]
		case mark == 0xee: // Adobe's segment says whether colours are YCbCr
			ok = len(body) < 12 || string(body[:5]) != "Adobe" || body[11] == 1
		case mark < 0xe0 || mark > 0xef && mark != 0xfe: // another process, or no segment that says nothing of pixels
			ok = false
		}
		if !ok {
			return nil
		}
		in = in[2+size:]
	}
	return nil
}

func (d *baselineFile) frame(b []byte) bool {
	if d.parts != nil || len(b) < 6 || b[0] != 8 || int(binary.BigEndian.Uint16(b[1:])) != d.height || int(binary.BigEndian.Uint16(b[3:])) != d.width {
		return false
	}
	n := int(b[5])
	if n != 1 && n != 3 || len(b) != 6+3*n {
		return false
	}
	for c := range n {
		e := b[6+3*c:]
		p := component{id: e[0], h: e[1] >> 4, v: e[1] & 15, quant: e[2]}
		if p.quant > 3 || !power(p.h) || !power(p.v) {
			return false
		}
		d.parts = append(d.parts, p)
	}
	first := &d.parts[0]
	if n == 1 {
		first.h, first.v = 1, 1 // of one component there are no MCUs but blocks
		return true
	}
	if first.id == 'R' && d.parts[1].id == 'G' && d.parts[2].id == 'B' || ratios[[2]byte{first.h, first.v}] == 0 {
		return false
	}
	return d.parts[1].h == 1 && d.parts[1].v == 1 && d.parts[2].h == 1 && d.parts[2].v == 1
}

func power(n byte) bool { return n == 1 || n == 2 || n == 4 }

func (d *baselineFile) scales(b []byte) bool {
	for len(b) > 0 {
		wide, to := int(b[0]>>4), b[0]&15
		if wide > 1 || to > 3 || len(b) < 1+64*(1+wide) {
			return false
		}
		q := new([64]int32)
		for k := range 64 {
			if wide == 1 {
				q[zigzag[k]] = int32(binary.BigEndian.Uint16(b[1+2*k:]))
			} else {
				q[zigzag[k]] = int32(b[1+k])
			}
		}
		d.quant[to] = q
		b = b[1+64*(1+wide):]
	}
	return true
}

func (d *baselineFile) tables(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 17 {
			return false
		}
		n := 0
		for _, c := range b[1:17] {
			n += int(c)
		}
		class, to := b[0]>>4, b[0]&15
		if class > 1 || to > 3 || n > 256 || len(b) < 17+n {
			return false
		}
		t := newHuffman(b[1:17], b[17:17+n])
		if t == nil {
			return false
		}
		if class == 0 {
			d.dc[to] = t
		} else {
			d.ac[to] = t
		}
		b = b[17+n:]
	}
	return true
}

// start reads the header of the scan, which must be of all components.
func (d *baselineFile) start(b []byte) bool {
	n := len(d.parts)
	if n == 0 || len(b) != 4+2*n || int(b[0]) != n || b[1+2*n] != 0 || b[2+2*n] != 63 || b[3+2*n] != 0 {
		return false
	}
	for c := range d.parts {
		p := &d.parts[c]
		p.dc, p.ac = b[2+2*c]>>4, b[2+2*c]&15
		if b[1+2*c] != p.id || p.dc > 3 || p.ac > 3 || d.dc[p.dc] == nil || d.ac[p.ac] == nil || d.quant[p.quant] == nil {
			return false
		}
	}
	return true
}

// planes makes the picture's planes, of whole MCUs.
func (d *baselineFile) planes() image.Image {
	h, v := int(d.parts[0].h), int(d.parts[0].v)
	d.across, d.down = (d.width+8*h-1)/(8*h), (d.height+8*v-1)/(8*v)
	whole, seen := image.Rect(0, 0, 8*h*d.across, 8*v*d.down), image.Rect(0, 0, d.width, d.height)
	if len(d.parts) == 1 {
		m := image.NewGray(whole)
		d.parts[0].pix, d.parts[0].stride = m.Pix, m.Stride
		return m.SubImage(seen)
	}
	m := image.NewYCbCr(whole, ratios[[2]byte{d.parts[0].h, d.parts[0].v}]-1)
	d.parts[0].pix, d.parts[0].stride = m.Y, m.YStride
	d.parts[1].pix, d.parts[1].stride = m.Cb, m.CStride
	d.parts[2].pix, d.parts[2].stride = m.Cr, m.CStride
	return m.SubImage(seen)
}

// line is the coefficients of a row of MCUs: blocks in the order in which they come, and of each where its last one is.
type line struct {
	y     int
	codes []int16
	ends  []uint8
}

// scan reads the codes row by row, while others make samples of those before.
func (d *baselineFile) scan(ctx context.Context) bool {
	blocks := 0
	for i := range d.parts {
		blocks += int(d.parts[i].h) * int(d.parts[i].v)
	}
	workers := min(max(runtime.GOMAXPROCS(0)-1, 1), 4)
	todo, free := make(chan *line, workers+1), make(chan *line, workers+1)
	for range workers + 1 {
		free <- &line{codes: make([]int16, 64*blocks*d.across), ends: make([]uint8, blocks*d.across)}
	}
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for l := range todo {
				func() {
					defer func() {
						if recover() != nil {
							failed.Store(true)
						}
					}()
					d.samples(l)
				}()
				free <- l
			}
		})
	}
	fine := func() bool {
		defer wg.Wait()
		defer close(todo)
		done := 0
		for y := range d.down {
			if ctx.Err() != nil {
				return false
			}
			l := <-free
			l.y = y
			clear(l.codes)
			if !d.codes(l, &done) {
				return false
			}
			todo <- l
		}
		return true
	}()
	return fine && !failed.Load() && d.in.ended(0xd9)
}

// codes reads a row of MCUs; done counts them.
func (d *baselineFile) codes(l *line, done *int) bool {
	at := 0
	for range d.across {
		if d.interval > 0 && *done > 0 && *done%d.interval == 0 {
			if !d.in.ended(0xd0 + byte(*done/d.interval-1)%8) {
				return false
			}
			d.in = bits{data: d.in.data[d.in.at+2:]}
			for i := range d.parts {
				d.parts[i].last = 0
			}
		}
		for i := range d.parts {
			p := &d.parts[i]
			for range int(p.h) * int(p.v) {
				end := d.in.block((*[64]int16)(l.codes[64*at:]), d.dc[p.dc], d.ac[p.ac], &p.last)
				if end < 0 {
					return false
				}
				l.ends[at] = uint8(end)
				at++
			}
		}
		*done++
	}
	return true
}

// samples makes samples of a row of MCUs.
func (d *baselineFile) samples(l *line) {
	at := 0
	for x := range d.across {
		for i := range d.parts {
			p := &d.parts[i]
			for b := range int(p.h) * int(p.v) {
				row, col := l.y*int(p.v)+b/int(p.h), x*int(p.h)+b%int(p.h)
				inverse(p.pix[8*row*p.stride+8*col:], p.stride, (*[64]int16)(l.codes[64*at:]), d.quant[p.quant], l.ends[at])
				at++
			}
		}
	}
}

// lookBits is how much of a code is looked up at once.
const lookBits = 10

// huffman is a table of codes.
type huffman struct {
	look   [1 << lookBits]uint16 // length of a code, and above it what it means; 0: it is longer
	whole  [1 << lookBits]uint32 // length of a code with the value behind it, run of zeros, and above it the value; 0: they are longer
	longer [17]int32             // end of the codes of each length, in 16 bits
	first  [17]int32             // where the values of that length begin, less their first code
	values []byte
}

func newHuffman(counts, values []byte) *huffman {
	t := &huffman{values: values}
	code, at := int32(0), int32(0)
	for n := int32(1); n <= 16; n++ {
		t.first[n] = at - code
		for range counts[n-1] {
			if code >= 1<<n-1 { // all ones are no code
				return nil
			}
			if n <= lookBits {
				for i := code << (lookBits - n); i < (code+1)<<(lookBits-n); i++ {
					t.look[i] = uint16(values[at])<<8 | uint16(n)
				}
			}
			code, at = code+1, at+1
		}
		t.longer[n] = code << (16 - n)
		code <<= 1
	}
	for i := range t.look {
		n, size, run := int32(t.look[i]&255), int32(t.look[i]>>8&15), uint32(t.look[i]>>12)
		if n == 0 || size == 0 || n+size > lookBits {
			continue
		}
		v := extend(int32(i)>>(lookBits-n-size)&(1<<size-1), size)
		t.whole[i] = uint32(uint16(int16(v)))<<16 | run<<8 | uint32(n+size)
	}
	return t
}

// extend is the number that size bits stand for.
func extend(v, size int32) int32 {
	if v < 1<<(size-1) {
		return v - 1<<size + 1
	}
	return v
}

// bits reads codes: from the top of have, of which n are there.
type bits struct {
	data   []byte
	at     int
	have   uint64
	n      int
	filled int // bits that were made up behind the end
}

// fill has at least 48 bits there; behind the end of the codes they are zeros.
func (b *bits) fill() {
	if b.at+8 <= len(b.data) {
		w := binary.BigEndian.Uint64(b.data[b.at:])
		if (^w-0x0101010101010101)&w&0x8080808080808080 == 0 { // no byte is 0xff
			b.have |= w >> b.n
			b.at += (63 - b.n) >> 3
			b.n |= 56
			return
		}
	}
	for b.n <= 56 {
		var c byte
		switch {
		case b.at >= len(b.data):
			b.filled += 8
		case b.data[b.at] != 0xff:
			c = b.data[b.at]
			b.at++
		case b.at+1 < len(b.data) && b.data[b.at+1] == 0:
			c = 0xff
			b.at += 2
		default:
			b.filled += 8
		}
		b.have |= uint64(c) << (56 - b.n)
		b.n += 8
	}
}

// ended reports whether the codes end here, all of them used, and a mark follows.
func (b *bits) ended(mark byte) bool {
	left := b.n - b.filled
	return left >= 0 && left < 8 && b.at+2 <= len(b.data) && b.data[b.at] == 0xff && b.data[b.at+1] == mark
}

// block reads the coefficients of a block, which are zero, in the order of rows, and gives where the last of them is in the order
// of the file; -1: it is wrong.
func (b *bits) block(to *[64]int16, dc, ac *huffman, last *int32) int {
	if b.n < b.filled { // behind the end
		return -1
	}
	if b.n < 48 {
		b.fill()
	}
	size := b.symbol(dc)
	if size < 0 || size > 11 {
		return -1
	}
	if size > 0 {
		*last += extend(int32(b.have>>(64-size)), size)
		b.have <<= size
		b.n -= int(size)
	}
	to[0] = int16(*last)
	end := 0
	for k := 1; k < 64; k++ {
		if b.n < 32 {
			b.fill()
		}
		if e := ac.whole[b.have>>(64-lookBits)]; e != 0 {
			n := e & 255
			b.have <<= n
			b.n -= int(n)
			k += int(e >> 8 & 15)
			to[zigzag[k]] = int16(e >> 16)
			end = k
			continue
		}
		rs := b.symbol(ac)
		if rs < 0 {
			return -1
		}
		run, size := rs>>4, rs&15
		if rs == 0 { // no more
			break
		}
		if size == 0 {
			if run != 15 { // of progressive files
				return -1
			}
			k += 15
			continue
		}
		k += int(run)
		v := extend(int32(b.have>>(64-size)), size)
		b.have <<= size
		b.n -= int(size)
		to[zigzag[k]] = int16(v)
		end = k
	}
	if end > 63 {
		return -1
	}
	return end
}

// symbol reads a code; -1: there is no such.
func (b *bits) symbol(t *huffman) int32 {
	if e := t.look[b.have>>(64-lookBits)]; e != 0 {
		b.have <<= e & 255
		b.n -= int(e & 255)
		return int32(e >> 8)
	}
	top := int32(b.have >> 48)
	for n := int32(lookBits + 1); n <= 16; n++ {
		if top < t.longer[n] {
			b.have <<= n
			b.n -= int(n)
			return int32(t.values[t.first[n]+top>>(16-n)])
		}
	}
	return -1
}
