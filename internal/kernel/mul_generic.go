package kernel

import "math"

// mulGeneric is the specification of every product routine: one activation row against whole panels.
//
// Fast, per group ascending, with D = Σ code·q an exact integer, of outliers Σ code·(256·high + q):
//
//	acc = bias·sum + acc
//	acc = D·(weight scale · activation scale) + acc
//
// Floats, per group ascending, with d = Σ code·x in two float32 chains, of even and of odd columns:
//
//	acc = bias·sum + acc
//	acc = d·(weight scale) + acc
//
// Small floats, per group ascending, with D = Σ number·q (of e2m1 its double) or d = Σ number·x in the same chains:
//
//	acc = D·(weight scale · activation scale) + acc
//	acc = d·(weight scale) + acc
//
// Half: one chain of even and one of odd pairs of columns, added at the end; to a chain first the product of the odd column is
// added, then that of the even one, each with one rounding. Denormal numbers and sums count as zeros. That is what Zen 5 does
// with VDPBF16PS.
//
// Dense: the same chains over all columns, added at the end. Assembly fuses each multiply-add, Go here may not.
func mulGeneric(m *Matrix, y []float32, a *Acts, r, p, panels int) {
	for i := range panels {
		w := m.data[(p+i)*m.panel:][:m.panel]
		var acc [PanelRows]float32
		switch {
		case m.spec.Format.small() && a.prec == Fast:
			m.smallFast(&acc, w, a, r)
		case m.spec.Format.small():
			m.smallFloats(&acc, w, a.x[r*a.stride:][:m.spec.Cols])
		case a.prec == Half:
			halfGeneric(&acc, w, a.half[r*a.stride:][:roundUp(m.spec.Cols, 4)])
		case m.spec.Format == DenseF32:
			denseF32Generic(&acc, w, a.x[r*a.stride:][:roundUp(m.spec.Cols, 4)])
		case m.spec.Format == DenseBF16:
			denseBF16Generic(&acc, w, a.x[r*a.stride:][:roundUp(m.spec.Cols, 4)])
		case a.codes() == Fast:
			m.fastGeneric(&acc, w, a, r)
		default:
			m.floatsGeneric(&acc, w, a, r)
		}
		copy(y[i*PanelRows:][:PanelRows], acc[:])
	}
}

func (m *Matrix) fastGeneric(acc *[PanelRows]float32, w []byte, a *Acts, r int) {
	var bytes [128 * PanelRows]byte
	n := m.codeBytes()
	for g := range m.groups {
		grp := w[g*m.group:][:m.group]
		q := a.q[r*a.stride+g*m.spec.Group:][:m.spec.Group]
		var dot [PanelRows]int32
		codes := grp[:n]
		if m.spec.Format.planes() {
			codes = bytes[:PanelRows*len(q)]
			planeBytes(codes, grp[:n], m.spec.Format)
		}
		if a.prec == Outliers && a.quads[r*m.groups+g] != 0 {
			addDot(&dot, codes, a.high[r*a.stride+g*m.spec.Group:][:m.spec.Group], m.spec.Format)
			for i := range dot {
				dot[i] *= highUnit
			}
		}
		addDot(&dot, codes, q, m.spec.Format)
		xs, sum := a.scale[r*m.groups+g], a.sum[r*m.groups+g]
		for i := range acc {
			acc[i] += m.scale(grp[n:], PanelRows+i) * sum
			acc[i] += float32(dot[i]) * (m.scale(grp[n:], i) * xs)
		}
	}
}

// addDot adds the products of codes, where they lie in planes made bytes.
func addDot(dot *[PanelRows]int32, w []byte, q []int8, f Format) {
	if f == Codes4 {
		dot4(dot, w, q)
		return
	}
	dot8(dot, w, q)
}

func dot4(dot *[PanelRows]int32, w []byte, q []int8) {
	for ; len(q) >= 8 && len(w) >= 64; w, q = w[64:], q[8:] {
		for i := range dot {
			c := w[i*4:][:4]
			d := int32(c[0]&15)*int32(q[0]) + int32(c[1]&15)*int32(q[1]) + int32(c[2]&15)*int32(q[2]) + int32(c[3]&15)*int32(q[3])
			d += int32(c[0]>>4)*int32(q[4]) + int32(c[1]>>4)*int32(q[5]) + int32(c[2]>>4)*int32(q[6]) + int32(c[3]>>4)*int32(q[7])
			dot[i] += d
		}
	}
}

func dot8(dot *[PanelRows]int32, w []byte, q []int8) {
	for ; len(q) >= 4 && len(w) >= 64; w, q = w[64:], q[4:] {
		for i := range dot {
			c := w[i*4:][:4]
			dot[i] += int32(c[0])*int32(q[0]) + int32(c[1])*int32(q[1]) + int32(c[2])*int32(q[2]) + int32(c[3])*int32(q[3])
		}
	}
}

func (m *Matrix) floatsGeneric(acc *[PanelRows]float32, w []byte, a *Acts, r int) {
	var bytes [128 * PanelRows]byte
	n := m.codeBytes()
	for g := range m.groups {
		grp := w[g*m.group:][:m.group]
		codes := grp
		if m.spec.Format.planes() {
			codes = bytes[:]
			planeBytes(codes, grp[:n], m.spec.Format)
		}
		x := a.x[r*a.stride+g*m.spec.Group:][:m.spec.Group]
		var even, odd [PanelRows]float32
		for k := 0; k < len(x); k += 2 {
			for i := range acc {
				var c [2]uint8
				if m.spec.Format == Codes4 {
					c = [2]uint8{halfCode(codes, i, k), halfCode(codes, i, k+1)}
				} else {
					c = [2]uint8{byteCode(codes, i, k), byteCode(codes, i, k+1)}
				}
				even[i] += float32(c[0]) * x[k]
				odd[i] += float32(c[1]) * x[k+1]
			}
		}
		sum := a.sum[r*m.groups+g]
		for i := range acc {
			acc[i] += m.scale(grp[n:], PanelRows+i) * sum
			acc[i] += (even[i] + odd[i]) * m.scale(grp[n:], i)
		}
	}
}

func denseF32Generic(acc *[PanelRows]float32, w []byte, x []float32) {
	var odd [PanelRows]float32
	for k := 0; k+1 < len(x); k += 2 {
		line := w[k*64:][:128]
		for i := range acc {
			acc[i] += math.Float32frombits(get32(line[i*4:])) * x[k]
			odd[i] += math.Float32frombits(get32(line[64+i*4:])) * x[k+1]
		}
	}
	for i := range acc {
		acc[i] += odd[i]
	}
}

func denseBF16Generic(acc *[PanelRows]float32, w []byte, x []float32) {
	var odd [PanelRows]float32
	for k := 0; k+1 < len(x); k += 2 {
		line := w[k*32:][:64]
		for i := range acc {
			pair := get32(line[i*4:])
			acc[i] += math.Float32frombits(pair<<16) * x[k]
			odd[i] += math.Float32frombits(pair&0xffff0000) * x[k+1]
		}
	}
	for i := range acc {
		acc[i] += odd[i]
	}
}

func halfGeneric(acc *[PanelRows]float32, w []byte, x []uint16) {
	var odd [PanelRows]float32
	for k := 0; k+3 < len(x); k += 4 {
		addPairs(acc, w[k*32:][:64], x[k], x[k+1])
		addPairs(&odd, w[k*32+64:][:64], x[k+2], x[k+3])
	}
	for i := range acc {
		acc[i] += odd[i]
	}
}

// addPairs adds the products of a pair of columns to each sum.
func addPairs(sum *[PanelRows]float32, line []byte, even, odd uint16) {
	x0, x1 := flush(widen(even)), flush(widen(odd))
	for i := range sum {
		pair := get32(line[i*4:])
		sum[i] = addProduct(sum[i], flush(math.Float32frombits(pair&0xffff0000)), x1)
		sum[i] = addProduct(sum[i], flush(math.Float32frombits(pair<<16)), x0)
	}
}

// addProduct rounds once: a float64 has room for the product of two bfloat16 numbers, and what it rounds of the sum is too small
// to change how that rounds to a float32.
func addProduct(sum, w, x float32) float32 {
	return flush(float32(float64(sum) + float64(w)*float64(x)))
}

// flush makes zeros, of the same sign, of denormal numbers.
func flush(f float32) float32 {
	if u := math.Float32bits(f); u&0x7f800000 == 0 {
		return math.Float32frombits(u & 0x80000000)
	}
	return f
}
