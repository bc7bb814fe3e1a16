package kernel

import (
	"fmt"
	"math"
	"unsafe"
)

// PanelRows is the number of weight rows that are multiplied together.
const PanelRows = 16

// Format is how a Matrix stores its elements.
type Format uint8

const (
	Codes4    Format = iota // unsigned 4-bit codes with scale and bias per group
	Codes8                  // unsigned 8-bit codes; where the following have no routines it holds narrower ones as well
	DenseBF16               // bfloat16
	DenseF32                // float32; float16 weights are stored so, too
	Codes2                  // unsigned codes of so many bits
	Codes3
	Codes5
	Codes6
	CodesE2M1 // the codes 2·v+12 of the numbers v of four bits, e2m1: 0 to 24
	FloatE2M1 // numbers of four bits, e2m1, with a scale for every 16 columns
	FloatE4M3 // numbers of eight bits, e4m3, with a scale for every 32 columns
)

// bits of a code as it is stored.
func (f Format) bits() int {
	return [...]int{Codes4: 4, Codes8: 8, DenseBF16: 16, DenseF32: 32, Codes2: 2, Codes3: 3, Codes5: 5, Codes6: 6, CodesE2M1: 4,
		FloatE2M1: 4, FloatE4M3: 8}[f]
}

// planes reports a format that only assembly multiplies well: see hasPlanes.
func (f Format) planes() bool { return f >= Codes2 && f <= CodesE2M1 }

// small reports numbers with scales and no biases.
func (f Format) small() bool { return f == FloatE2M1 || f == FloatE4M3 }

// unit is how many columns of small floats share a scale.
func (f Format) unit() int { return [...]int{FloatE2M1: 16, FloatE4M3: 32}[f] }

// Form is how activations are prepared for a product of precision p: formats without integer products have Floats alone, but
// DenseBF16 has Half for Fast where the CPU multiplies bfloat16 numbers.
func (f Format) Form(p Precision) Precision {
	switch {
	case f == FloatE2M1 && p == Outliers: // its groups are of 16
		return Fast
	case f != DenseBF16 && f != DenseF32 && f != FloatE4M3:
		return p
	case f == DenseBF16 && (p == Fast || p == Outliers) && hasHalf():
		return Half
	}
	return Floats
}

// FormatFor gives the narrowest format with routines for codes of so many bits.
func FormatFor(bits int) Format {
	if hasPlanes() {
		for _, f := range []Format{Codes2, Codes3, Codes5, Codes6} {
			if f.bits() == bits {
				return f
			}
		}
	}
	if bits == 4 {
		return Codes4
	}
	return Codes8
}

// FormatForE2M1 is FormatFor of the codes of e2m1 numbers.
func FormatForE2M1() Format {
	if hasPlanes() {
		return CodesE2M1
	}
	return Codes8
}

// FormatForSmall gives the narrowest format with routines for numbers of so many bits: 4 (e2m1, a scale for every 16 of a row) or
// 8 (e4m3, for every 32).
func FormatForSmall(bits int) Format {
	switch {
	case !hasSmall():
		return DenseBF16
	case bits == 4:
		return FloatE2M1
	}
	return FloatE4M3
}

// ScaleKind is how scales and biases are stored. Nothing is rounded: choose ScaleF32 unless they are bfloat16 already.
type ScaleKind uint8

const (
	ScaleBF16 ScaleKind = iota
	ScaleF32
)

// Spec describes a Matrix of Rows outputs by Cols inputs. Group and Scales matter for code formats only; Cols is then
// a multiple of Group, and Group is 32, 64 or 128. Cols of small floats is a multiple of what share a scale.
type Spec struct {
	Rows, Cols int
	Format     Format
	Group      int
	Scales     ScaleKind
}

// Matrix is a weight packed for products: panels of 16 rows, the last one padded with zero rows, each panel one
// sequential stream.
//
// Code formats: a panel is Cols/Group groups of { codes | 16 scales | 16 biases }. Codes come in 64-byte lines; lane r
// (4 bytes) of a line belongs to row r. In Codes4 line j holds columns 8j to 8j+7 of the group: low nibbles 8j..8j+3,
// high nibbles 8j+4..8j+7. In Codes8 it holds columns 4j to 4j+3. Scales and biases are bf16 (64 bytes together) or
// f32 (128). Codes of 2, 3, 5 and 6 bits lie in planes, for every 32 columns four lines with the four lowest bits (5 and 6
// bits) as in Codes4, then two lines with the next two (2, 3 and 6 bits) and a line with the highest (3 and 5 bits): a byte of
// a line has the bits of as many columns, four apart, as it has room for, the first in its lowest bits. CodesE2M1 has the
// numbers' own four bits.
//
// Dense formats pad columns with zeros to a multiple of 4. DenseF32: per column 16 floats. DenseBF16: per pair of
// columns 16 lanes of (even column in the low half, odd column in the high half).
//
// Small floats have the layout of codes: FloatE2M1 is { 16 columns of Codes4 | 16 scales } with half of each scale, FloatE4M3 is
// { 32 columns of Codes8 | 16 scales }, with scales in bf16. FloatE4M3 is too wide for integer products and counts as dense. Its
// codes 0x7f and 0xff, which are NaN, are read as ±480; a group that has one gets a NaN as its scale (see SetSmall).
type Matrix struct {
	spec   Spec
	groups int // per row; 0 for dense
	units  int // per row of small floats: those with a scale of their own
	group  int // bytes per group of a panel
	panel  int // bytes per panel
	data   []byte
}

// Bytes is the size of a matrix of that spec.
func (s Spec) Bytes() int {
	m := newMatrix(s, func(int) []byte { return nil })
	return m.panel * m.Panels()
}

func newMatrix(s Spec, bytes func(int) []byte) *Matrix {
	if s.Rows <= 0 || s.Cols <= 0 {
		panic(fmt.Sprintf("kernel: matrix of %d by %d", s.Rows, s.Cols))
	}
	m := &Matrix{spec: s}
	switch s.Format {
	case Codes4, Codes8, Codes2, Codes3, Codes5, Codes6, CodesE2M1:
		if s.Group != 32 && s.Group != 64 && s.Group != 128 || s.Cols%s.Group != 0 {
			panic(fmt.Sprintf("kernel: group %d over %d columns", s.Group, s.Cols))
		}
		m.groups = s.Cols / s.Group
		m.group = m.codeBytes() + 64
		if s.Scales == ScaleF32 {
			m.group += 64
		}
		m.panel = m.groups * m.group
	case FloatE2M1, FloatE4M3:
		n := s.Format.unit()
		if s.Cols%n != 0 {
			panic(fmt.Sprintf("kernel: scales for every %d of %d columns", n, s.Cols))
		}
		m.spec.Group, m.spec.Scales = 0, ScaleBF16
		m.units = s.Cols / n
		if s.Format == FloatE2M1 {
			m.spec.Group, m.groups = n, m.units
		}
		m.group = m.codeBytes() + 32
		m.panel = m.units * m.group
	case DenseBF16:
		m.spec.Group = 0
		m.panel = roundUp(s.Cols, 4) * PanelRows * 2
	case DenseF32:
		m.spec.Group = 0
		m.panel = roundUp(s.Cols, 4) * PanelRows * 4
	default:
		panic(fmt.Sprintf("kernel: format %d", s.Format))
	}
	m.data = bytes(m.panel * m.Panels())
	return m
}

// Rows is the number of outputs.
func (m *Matrix) Rows() int { return m.spec.Rows }

// Cols is the number of inputs.
func (m *Matrix) Cols() int { return m.spec.Cols }

// Group is the number of columns sharing a scale; 0 for dense formats.
func (m *Matrix) Group() int { return m.spec.Group }

// Format tells how elements are stored.
func (m *Matrix) Format() Format { return m.spec.Format }

// Dense reports a matrix without codes, or with those of FloatE4M3, which integers cannot multiply: see Format.Form.
func (m *Matrix) Dense() bool { return m.groups == 0 }

// coded reports codes with scales and biases.
func (m *Matrix) coded() bool { return m.groups > 0 && !m.Small() }

// Panels is the number of panels, the unit in which a product is split.
func (m *Matrix) Panels() int { return (m.spec.Rows + PanelRows - 1) / PanelRows }

// PanelBytes is how many bytes a product reads per panel.
func (m *Matrix) PanelBytes() int { return m.panel }

// Bytes is how many bytes a product reads.
func (m *Matrix) Bytes() int { return m.panel * m.Panels() }

// codeBytes is the size of one group's codes in a panel.
func (m *Matrix) codeBytes() int {
	n := m.spec.Group
	if m.spec.Format.small() {
		n = m.spec.Format.unit()
	}
	return n * PanelRows * m.spec.Format.bits() / 8
}

// Touch reads n bytes, a multiple of 256, that begin at byte from of a panel, into the nearest caches; what lies behind the
// last panel is left out.
func (m *Matrix) Touch(panel, from, n int) {
	at := panel*m.panel + from
	if n = min(n, len(m.data)-at) &^ 255; n > 0 {
		touchAll(m.data[at:][:n])
	}
}

// SetRow stores row i of a code format: Cols codes and Cols/Group scales and biases; nil biases are zeros. Different
// rows may be set from different goroutines. It panics on a wrong length, and when ScaleBF16 would round a value.
func (m *Matrix) SetRow(i int, codes []uint8, scales, biases []float32) {
	if !m.coded() || len(codes) != m.spec.Cols || len(scales) != m.groups || biases != nil && len(biases) != m.groups {
		panic(fmt.Sprintf("kernel: set row %d of %+v with %d codes, %d scales, %d biases", i, m.spec, len(codes), len(scales), len(biases)))
	}
	r := i % PanelRows
	at := m.data[m.panelAt(i):][:m.panel]
	for g := range m.groups {
		grp := at[g*m.group:][:m.group]
		c := codes[g*m.spec.Group:][:m.spec.Group]
		switch m.spec.Format {
		case Codes4:
			packNibbles(grp, c, r)
		case Codes8:
			packBytes(grp, c, r)
		default:
			packPlanes(grp, c, m.spec.Format, r)
		}
		m.putScales(grp, r, g, scales, biases)
	}
}

// SetScales stores the scales and biases of row i, as SetRow does.
func (m *Matrix) SetScales(i int, scales, biases []float32) {
	if !m.coded() || len(scales) != m.groups || biases != nil && len(biases) != m.groups {
		panic(fmt.Sprintf("kernel: set scales of row %d of %+v with %d scales, %d biases", i, m.spec, len(scales), len(biases)))
	}
	at := m.data[m.panelAt(i):][:m.panel]
	for g := range m.groups {
		m.putScales(at[g*m.group:][:m.group], i%PanelRows, g, scales, biases)
	}
}

func (m *Matrix) putScales(grp []byte, r, g int, scales, biases []float32) {
	var b float32
	if biases != nil {
		b = biases[g]
	}
	m.putScale(grp[m.codeBytes():], r, scales[g])
	m.putScale(grp[m.codeBytes():], PanelRows+r, b)
}

func packBytes(grp, c []uint8, r int) {
	for j := 0; j < len(c); j += 4 {
		put32(grp[j*PanelRows+r*4:], get32(c[j:]))
	}
}

func packNibbles(grp, c []uint8, r int) {
	for j := 0; j < len(c); j += 8 {
		line := grp[j*PanelRows/2+r*4:][:4]
		for t := range 4 {
			if c[j+t]|c[j+4+t] > 15 {
				panic("kernel: code above 4 bits")
			}
			line[t] = c[j+t] | c[j+4+t]<<4
		}
	}
}

func (m *Matrix) putScale(at []byte, n int, f float32) {
	bits := math.Float32bits(f)
	if m.spec.Scales == ScaleF32 {
		put32(at[n*4:], bits)
		return
	}
	if bits&0xffff != 0 {
		panic(fmt.Sprintf("kernel: scale %g is not a bfloat16", f))
	}
	put16(at[n*2:], uint16(bits>>16))
}

func (m *Matrix) scale(at []byte, n int) float32 {
	if m.spec.Scales == ScaleF32 {
		return math.Float32frombits(get32(at[n*4:]))
	}
	return math.Float32frombits(uint32(get16(at[n*2:])) << 16)
}

// SetFloats stores row i of a dense matrix. DenseBF16 rounds to nearest even.
func (m *Matrix) SetFloats(i int, w []float32) {
	m.checkDense(i, len(w))
	at := m.data[m.panelAt(i):][:m.panel]
	for k, f := range w {
		if m.spec.Format == DenseF32 {
			put32(at[k*64+i%PanelRows*4:], math.Float32bits(f))
		} else {
			put16(at[k/2*64+i%PanelRows*4+k%2*2:], bf16(f))
		}
	}
}

// SetBF16 stores row i of a dense matrix from bfloat16 bits.
func (m *Matrix) SetBF16(i int, w []uint16) {
	m.checkDense(i, len(w))
	at := m.data[m.panelAt(i):][:m.panel]
	for k, h := range w {
		if m.spec.Format == DenseF32 {
			put32(at[k*64+i%PanelRows*4:], uint32(h)<<16)
		} else {
			put16(at[k/2*64+i%PanelRows*4+k%2*2:], h)
		}
	}
}

func (m *Matrix) checkDense(i, n int) {
	if !m.Dense() || m.spec.Format.small() || n != m.spec.Cols {
		panic(fmt.Sprintf("kernel: set dense row %d of %+v with %d values", i, m.spec, n))
	}
}

func (m *Matrix) panelAt(i int) int {
	if i < 0 || i >= m.spec.Rows {
		panic(fmt.Sprintf("kernel: row %d of %d", i, m.spec.Rows))
	}
	return i / PanelRows * m.panel
}

// Row writes row i as floats, scale·code + bias rounded after each step, as mlx dequantises float32 scales. len(dst)
// is Cols. Embedding tables that are also output heads read their rows this way.
func (m *Matrix) Row(dst []float32, i int) {
	if len(dst) != m.spec.Cols {
		panic(fmt.Sprintf("kernel: read row of %d columns into %d", m.spec.Cols, len(dst)))
	}
	r := i % PanelRows
	at := m.data[m.panelAt(i):][:m.panel]
	switch m.spec.Format {
	case FloatE2M1, FloatE4M3:
		m.smallRow(dst, at, r)
	case DenseF32:
		for k := range dst {
			dst[k] = math.Float32frombits(get32(at[k*64+r*4:]))
		}
	case DenseBF16:
		for k := range dst {
			dst[k] = math.Float32frombits(uint32(get16(at[k/2*64+r*4+k%2*2:])) << 16)
		}
	default:
		for g := range m.groups {
			grp := at[g*m.group:][:m.group]
			s, b := m.scale(grp[m.codeBytes():], r), m.scale(grp[m.codeBytes():], PanelRows+r)
			for k := range m.spec.Group {
				p := float32(m.code(grp, r, k)) * s
				dst[g*m.spec.Group+k] = float32(p) + b
			}
		}
	}
}

// byteCode is code k of a group's row r in Codes8.
func byteCode(grp []byte, r, k int) uint8 { return grp[k/4*64+r*4+k%4] }

// halfCode is the same in Codes4.
func halfCode(grp []byte, r, k int) uint8 { return grp[k/8*64+r*4+k%4] >> (k % 8 / 4 * 4) & 15 }

func (m *Matrix) code(grp []byte, r, k int) uint8 {
	switch {
	case m.spec.Format == Codes8:
		return byteCode(grp, r, k)
	case m.spec.Format.planes():
		return planeCode(grp, m.spec.Format, r, k)
	}
	return halfCode(grp, r, k)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

func put16(b []byte, v uint16) { *(*uint16)(unsafe.Pointer(&b[:2][0])) = v }
func put32(b []byte, v uint32) { *(*uint32)(unsafe.Pointer(&b[:4][0])) = v }
func get16(b []byte) uint16    { return *(*uint16)(unsafe.Pointer(&b[:2][0])) }
func get32(b []byte) uint32    { return *(*uint32)(unsafe.Pointer(&b[:4][0])) }
