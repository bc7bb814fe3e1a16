package kernel

import (
	"fmt"
	"math"
	"slices"
)

// Values of small floats: twice those of e2m1, and e4m3's with ±480 for what is no number.
var (
	e2m1Doubled = func() (t [16]float32) {
		for i, c := range e2m1Codes12 {
			t[i] = float32(c) - 12
		}
		return t
	}()
	e4m3Values = func() (t [256]float32) {
		for i := range t {
			bits := uint32(i&0x80)<<24 | uint32(i&0x7f)<<20
			t[i] = math.Float32frombits(bits) * 0x1p120
		}
		return t
	}()
)

// Small reports a matrix of small floats.
func (m *Matrix) Small() bool { return m.spec.Format.small() }

// SetSmall stores row i of small floats: codes as a stream, 4 bits each of FloatE2M1 and 8 of FloatE4M3, and the scale of every
// group. A group with a code that is no number gets a scale that is none. It panics on a wrong length, and when bfloat16 would
// round a scale.
func (m *Matrix) SetSmall(i int, codes []byte, scales []float32) {
	f := m.spec.Format
	if !f.small() || len(codes)*8 != m.spec.Cols*f.bits() || len(scales) != m.units {
		panic(fmt.Sprintf("kernel: set small floats of row %d of %+v with %d bytes, %d scales", i, m.spec, len(codes), len(scales)))
	}
	r, at, n := i%PanelRows, m.data[m.panelAt(i):][:m.panel], len(codes)/m.units
	var nibbles [16]uint8
	for g := range m.units {
		c := codes[g*n:][:n]
		if f == FloatE4M3 {
			packBytes(at[g*m.group:], c, r)
			continue
		}
		for k := range nibbles {
			nibbles[k] = nibble(c, k)
		}
		packNibbles(at[g*m.group:], nibbles[:], r)
	}
	m.smallScales(at, r, codes, scales)
}

// smallScales stores the scales of row r of a panel.
func (m *Matrix) smallScales(panel []byte, r int, codes []byte, scales []float32) {
	n, odd := len(codes)/m.units, m.spec.Format == FloatE4M3 && slices.ContainsFunc(codes, noNumber)
	for g, s := range scales {
		switch {
		case m.spec.Format == FloatE2M1:
			s /= 2
		case odd && slices.ContainsFunc(codes[g*n:][:n], noNumber):
			s = float32(math.NaN())
		}
		m.putScale(panel[g*m.group+m.codeBytes():], r, s)
	}
}

// noNumber reports the codes of e4m3 that are none.
func noNumber(c byte) bool { return c&0x7f == 0x7f }

// small is number k of row r of a group, e2m1's doubled.
func (m *Matrix) small(grp []byte, r, k int) float32 {
	if m.spec.Format == FloatE2M1 {
		return e2m1Doubled[halfCode(grp, r, k)]
	}
	return e4m3Values[byteCode(grp, r, k)]
}

// smallRow is Row.
func (m *Matrix) smallRow(dst []float32, panel []byte, r int) {
	n := m.spec.Format.unit()
	for g := range m.units {
		grp := panel[g*m.group:][:m.group]
		s := m.scale(grp[m.codeBytes():], r)
		for k := range n {
			dst[g*n+k] = m.small(grp, r, k) * s
		}
	}
}

// smallFast is the product of a rounded row with a panel of FloatE2M1.
func (m *Matrix) smallFast(acc *[PanelRows]float32, w []byte, a *Acts, r int) {
	for g := range m.units {
		grp, q := w[g*m.group:][:m.group], a.q[r*a.stride+g*16:][:16]
		xs := a.scale[r*m.units+g]
		for i := range acc {
			var dot int32
			for k, v := range q {
				dot += int32(m.small(grp, i, k)) * int32(v)
			}
			acc[i] += float32(dot) * (m.scale(grp[m.codeBytes():], i) * xs)
		}
	}
}

// smallFloats is that of a row of floats with a panel of either format.
func (m *Matrix) smallFloats(acc *[PanelRows]float32, w []byte, x []float32) {
	n := m.spec.Format.unit()
	for g := range m.units {
		grp, part := w[g*m.group:][:m.group], x[g*n:][:n]
		var even, odd [PanelRows]float32
		for k := 0; k < n; k += 2 {
			for i := range acc {
				even[i] += m.small(grp, i, k) * part[k]
				odd[i] += m.small(grp, i, k+1) * part[k+1]
			}
		}
		for i := range acc {
			acc[i] += (even[i] + odd[i]) * m.scale(grp[m.codeBytes():], i)
		}
	}
}
