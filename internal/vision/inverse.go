package vision

import "encoding/binary"

// Constants of jidctint.c: 13 bits behind the point.
const (
	f0298 = 2446
	f0390 = 3196
	f0541 = 4433
	f0765 = 6270
	f0899 = 7373
	f1175 = 9633
	f1501 = 12299
	f1847 = 15137
	f1961 = 16069
	f2053 = 16819
	f2562 = 20995
	f3072 = 25172
)

// inverse makes 8 by 8 samples of the coefficients of a block: libjpeg's jpeg_idct_islow. end is where the last one is in
// the order of the file.
func inverse(to []byte, stride int, codes *[64]int16, quant *[64]int32, end uint8) {
	if end == 0 {
		v := clip8((int32(codes[0])*quant[0]<<2+16)>>5 + 128)
		for y := range 8 {
			flat(to[y*stride:], v)
		}
		return
	}
	var half [64]int32
	for x := range 8 {
		c, q := codes[x:x+57], quant[x:x+57]
		if c[8]|c[16]|c[24]|c[32]|c[40]|c[48]|c[56] == 0 {
			v := int32(c[0]) * q[0] << 2
			h := half[x : x+57]
			h[0], h[8], h[16], h[24], h[32], h[40], h[48], h[56] = v, v, v, v, v, v, v, v
			continue
		}
		o0, o1, o2, o3, o4, o5, o6, o7 := eight(int32(c[0])*q[0], int32(c[8])*q[8], int32(c[16])*q[16], int32(c[24])*q[24],
			int32(c[32])*q[32], int32(c[40])*q[40], int32(c[48])*q[48], int32(c[56])*q[56])
		const round = 1 << 10
		h := half[x : x+57]
		h[0], h[8], h[16], h[24] = (o0+round)>>11, (o1+round)>>11, (o2+round)>>11, (o3+round)>>11
		h[32], h[40], h[48], h[56] = (o4+round)>>11, (o5+round)>>11, (o6+round)>>11, (o7+round)>>11
	}
	for y := range 8 {
		h := half[8*y : 8*y+8 : 8*y+8]
		row := to[y*stride : y*stride+8 : y*stride+8]
		if h[1]|h[2]|h[3]|h[4]|h[5]|h[6]|h[7] == 0 {
			flat(row, clip8((h[0]+16)>>5+128))
			continue
		}
		const middle = 128<<18 + 1<<17 // and rounded
		o0, o1, o2, o3, o4, o5, o6, o7 := eight(h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7])
		row[0], row[1], row[2], row[3] = clip8((o0+middle)>>18), clip8((o1+middle)>>18), clip8((o2+middle)>>18), clip8((o3+middle)>>18)
		row[4], row[5], row[6], row[7] = clip8((o4+middle)>>18), clip8((o5+middle)>>18), clip8((o6+middle)>>18), clip8((o7+middle)>>18)
	}
}

// eight is the transform of 8 numbers, 13 bits behind the point more than they have.
func eight(c0, c1, c2, c3, c4, c5, c6, c7 int32) (o0, o1, o2, o3, o4, o5, o6, o7 int32) {
	z := (c2 + c6) * f0541
	t2, t3 := z-c6*f1847, z+c2*f0765
	t0, t1 := (c0+c4)<<13, (c0-c4)<<13
	a0, a1, a2, a3 := t0+t3, t1+t2, t1-t2, t0-t3

	z1, z2, z3, z4 := c7+c1, c5+c3, c7+c3, c5+c1
	z5 := (z3 + z4) * f1175
	z1, z2, z3, z4 = -z1*f0899, -z2*f2562, z5-z3*f1961, z5-z4*f0390
	b0, b1, b2, b3 := c1*f1501+z1+z4, c3*f3072+z2+z3, c5*f2053+z2+z4, c7*f0298+z1+z3
	return a0 + b0, a1 + b1, a2 + b2, a3 + b3, a3 - b3, a2 - b2, a1 - b1, a0 - b0
}

// flat is eight samples of the same.
func flat(to []byte, v byte) { binary.LittleEndian.PutUint64(to, uint64(v)*0x0101010101010101) }
