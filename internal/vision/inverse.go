package vision

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

// inverse makes 8 by 8 samples of the coefficients of a block: jpeg_idct_islow of libjpeg. end is where the last coefficient is in
// the order of the file.
func inverse(to []byte, stride int, codes *[64]int16, quant *[64]int32, end uint8) {
	if end == 0 {
		v := clip8((int32(codes[0])*quant[0]<<2+16)>>5 + 128)
		for range 7 {
			row := to[:8:8]
			for x := range row {
				row[x] = v
			}
			to = to[stride:]
		}
		row := to[:8:8]
		for x := range row {
			row[x] = v
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
		a, b := eight(int32(c[0])*q[0], int32(c[8])*q[8], int32(c[16])*q[16], int32(c[24])*q[24],
			int32(c[32])*q[32], int32(c[40])*q[40], int32(c[48])*q[48], int32(c[56])*q[56])
		h := half[x : x+57]
		for i := range 4 {
			h[8*i] = (a[i] + b[i] + 1<<10) >> 11
			h[56-8*i] = (a[i] - b[i] + 1<<10) >> 11
		}
	}
	for y := range 8 {
		h := half[8*y : 8*y+8 : 8*y+8]
		row := to[y*stride : y*stride+8 : y*stride+8]
		if h[1]|h[2]|h[3]|h[4]|h[5]|h[6]|h[7] == 0 {
			v := clip8((h[0]+16)>>5 + 128)
			for x := range row {
				row[x] = v
			}
			continue
		}
		a, b := eight(h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7])
		for i := range 4 {
			row[i] = clip8((a[i]+b[i]+1<<17)>>18 + 128)
			row[7-i] = clip8((a[i]-b[i]+1<<17)>>18 + 128)
		}
	}
}

// eight is the transform of 8 numbers, as its even part and its odd one: the sums are the first half of the result, the differences
// the second, backwards.
func eight(c0, c1, c2, c3, c4, c5, c6, c7 int32) (a, b [4]int32) {
	z := (c2 + c6) * f0541
	t2, t3 := z-c6*f1847, z+c2*f0765
	t0, t1 := (c0+c4)<<13, (c0-c4)<<13
	a = [4]int32{t0 + t3, t1 + t2, t1 - t2, t0 - t3}

	z1, z2, z3, z4 := c7+c1, c5+c3, c7+c3, c5+c1
	z5 := (z3 + z4) * f1175
	z1, z2, z3, z4 = -z1*f0899, -z2*f2562, z5-z3*f1961, z5-z4*f0390
	b = [4]int32{c1*f1501 + z1 + z4, c3*f3072 + z2 + z3, c5*f2053 + z2 + z4, c7*f0298 + z1 + z3}
	return a, b
}
