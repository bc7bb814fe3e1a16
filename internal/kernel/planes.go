package kernel

// plane is some bits of every code of 32 columns: width of them, the lowest of which is bit at, in lines from first on.
type plane struct{ width, at, first int }

// planesOf is the layout of 32 columns of a format, as _asm/planes.go has it.
func planesOf(f Format) []plane {
	switch f.bits() {
	case 2:
		return []plane{{2, 0, 0}}
	case 3:
		return []plane{{2, 0, 0}, {1, 2, 2}}
	case 5:
		return []plane{{4, 0, 0}, {1, 4, 4}}
	case 6:
		return []plane{{4, 0, 0}, {2, 4, 4}}
	}
	return []plane{{4, 0, 0}}
}

// Tables from e2m1's four bits to CodesE2M1 and back.
var (
	e2m1Codes12 = [16]uint8{12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0}
	e2m1Nibbles = func() (t [25]uint8) {
		for i := range t {
			t[i] = 255
		}
		for n, c := range e2m1Codes12[:] {
			if t[c] == 255 {
				t[c] = uint8(n)
			}
		}
		return t
	}()
)

// lanesOfCodes makes lanes of codes: for every 32 columns so many words of four bytes as a code has bits. It panics on a code
// that the format has not.
func lanesOfCodes(dst []byte, codes []uint8, f Format) {
	var nibbles [32]uint8
	planes, n := planesOf(f), f.bits()
	for ; len(codes) >= 32; codes, dst = codes[32:], dst[4*n:] {
		part := codes[:32]
		if f == CodesE2M1 {
			for i, c := range part {
				nibbles[i] = e2m1Nibbles[min(c, 24)]
				if c > 24 || nibbles[i] > 15 {
					panic("kernel: code of no e2m1 number")
				}
			}
			part = nibbles[:]
		}
		var all uint32
		for _, p := range planes {
			per, mask := 8/p.width, uint32(1<<p.width-1)*0x01010101
			for q := 0; q < 8; q += per {
				var w uint32
				for i := range per {
					c := get32(part[4*(q+i):])
					w |= c >> p.at & mask << (i * p.width)
					all |= c
				}
				put32(dst[4*(p.first+q/per):], w)
			}
		}
		if all&(uint32(255<<n&255)*0x01010101) != 0 {
			panic("kernel: code above its bits")
		}
	}
}

// packPlanes stores the codes of a group's row r.
func packPlanes(grp []byte, codes []uint8, f Format, r int) {
	var lanes [128]byte
	lanesOfCodes(lanes[:], codes, f)
	for i := range len(codes) / 32 * f.bits() {
		put32(grp[64*i+4*r:], get32(lanes[4*i:]))
	}
}

// planeCode is code k of a group's row r.
func planeCode(grp []byte, f Format, r, k int) uint8 {
	var c uint8
	part := grp[k/32*64*f.bits():]
	for _, p := range planesOf(f) {
		per, q := 8/p.width, k%32/4
		c |= part[64*(p.first+q/per)+4*r+k%4] >> (q % per * p.width) & (1<<p.width - 1) << p.at
	}
	if f == CodesE2M1 {
		return e2m1Codes12[c]
	}
	return c
}

// planeBytes writes the codes of a group as Codes8 has them.
func planeBytes(dst, grp []byte, f Format) {
	planes, n := planesOf(f), f.bits()
	for ; len(grp) >= 64*n && len(dst) >= 512; grp, dst = grp[64*n:], dst[512:] {
		for q := range 8 {
			for at := 0; at < 64; at += 4 {
				var w uint32
				for _, p := range planes {
					per := 8 / p.width
					w |= get32(grp[64*(p.first+q/per)+at:]) >> (q % per * p.width) & (uint32(1<<p.width-1) * 0x01010101) << p.at
				}
				put32(dst[64*q+at:], w)
			}
		}
		if f == CodesE2M1 {
			for i, c := range dst[:512] {
				dst[i] = e2m1Codes12[c]
			}
		}
	}
}
