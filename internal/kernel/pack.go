package kernel

import (
	"fmt"
	"unsafe"

	"hearth/internal/quant"
)

// Form is how the rows that a Packer reads are stored, all little-endian.
type Form uint8

const (
	FormCodes     Form = iota // a bit stream of codes of 2, 3, 4, 5, 6 or 8 bits: see FormatFor, or to Codes8
	FormE2M1Codes             // 4-bit small floats (e2m1), which become the codes 2·value+12: see FormatForE2M1, or to Codes8
	FormE2M1                  // the same with a scale for every 16, for FloatE2M1 or rounded to DenseBF16
	FormE4M3                  // 8-bit small floats (e4m3) with a scale for every 32, for FloatE4M3 or rounded to DenseBF16
	FormBF16                  // for DenseBF16
	FormF16                   // for DenseF32
	FormF32                   // for DenseF32
)

// Packer stores panels of a Matrix, sixteen rows at once: their pieces become lanes, four bytes of a row each, which a
// transposition puts into the lines of the panel. One goroutine uses a Packer; several may pack other panels of the same
// matrix with Packers of their own. The zero value is ready for Reset, which keeps buffers for reuse.
type Packer struct {
	m      *Matrix
	form   Form
	bits   int
	lanes  []byte // PanelRows pieces
	floats []float32
	zeros  []byte // what missing rows are read from
}

// pieceLanes is how many bytes of lanes a row has in a piece: sixteen rows of them and the lines they become fit the
// nearest caches.
const pieceLanes = 1024

// Reset prepares for packing m from rows of that form. bits is that of FormCodes. It panics if m is not for them.
func (p *Packer) Reset(m *Matrix, form Form, bits int) {
	f, fits := m.spec.Format, false
	switch form {
	case FormCodes:
		fits = m.coded() && f != CodesE2M1 && (f == Codes8 || f.bits() == bits)
	case FormE2M1Codes:
		fits = f == CodesE2M1 || f == Codes8
	case FormE2M1:
		fits = f == FloatE2M1 || f == DenseBF16 && m.spec.Cols%16 == 0
	case FormE4M3:
		fits = f == FloatE4M3 || f == DenseBF16 && m.spec.Cols%32 == 0
	case FormBF16:
		fits = f == DenseBF16
	case FormF16, FormF32:
		fits = f == DenseF32
	}
	if !fits {
		panic(fmt.Sprintf("kernel: pack form %d of %d bits into %+v", form, bits, m.spec))
	}
	p.m, p.form, p.bits = m, form, bits
	p.lanes = grow(p.lanes, PanelRows*pieceLanes)
	p.floats = grow(p.floats, pieceLanes/2) // columns of the smallest lanes that are made of floats
	if n := max(pieceLanes, m.groups*2); len(p.zeros) < n {
		p.zeros = make([]byte, n)
	}
}

// rowBits is what a column takes in a stored row.
func (p *Packer) rowBits() int {
	switch p.form {
	case FormCodes:
		return p.bits
	case FormE2M1Codes, FormE2M1:
		return 4
	case FormE4M3:
		return 8
	case FormF32:
		return 32
	}
	return 16
}

// Pack stores the weights of a panel from its rows; nil are the rows that the last panel lacks. scales are those of
// FormE2M1 and FormE4M3; scales of codes are set apart.
func (p *Packer) Pack(panel int, rows *[PanelRows][]byte, scales *[PanelRows][]float32) {
	m := p.m
	cols, stored := m.spec.Cols, p.rowBits()
	if panel < 0 || panel >= m.Panels() {
		panic(fmt.Sprintf("kernel: pack panel %d of %d", panel, m.Panels()))
	}
	for r, row := range rows {
		if row == nil != (panel*PanelRows+r >= m.spec.Rows) || row != nil && len(row)*8 != cols*stored {
			panic(fmt.Sprintf("kernel: row %d of panel %d of %+v has %d bytes, form %d", r, panel, m.spec, len(row), p.form))
		}
	}
	lane := m.spec.Format.bits()          // of a column
	piece := pieceLanes * 8 / lane &^ 127 // whole groups
	var from [PanelRows]unsafe.Pointer
	for at := 0; at < cols; at += piece {
		n := min(piece, cols-at)
		bytes := n * lane / 8
		if m.Dense() {
			bytes = roundUp(n, 4) * lane / 8
		}
		for r, row := range rows {
			if row == nil {
				from[r] = unsafe.Pointer(&p.zeros[0])
				continue
			}
			src := row[at*stored/8 : (at+n)*stored/8]
			if p.direct() && len(src) == bytes {
				from[r] = unsafe.Pointer(&src[0])
				continue
			}
			lanes := p.lanes[r*pieceLanes:][:bytes]
			var s []float32
			if p.form == FormE2M1 {
				s = scales[r][at/16 : (at+n)/16]
			} else if p.form == FormE4M3 {
				s = scales[r][at/32 : (at+n)/32]
			}
			p.toLanes(lanes, src, s)
			from[r] = unsafe.Pointer(&lanes[0])
		}
		groups, skip, to := 1, 0, at*lane/8*PanelRows
		if all := max(m.groups, m.units); all > 0 {
			group := cols / all
			groups, skip, to = n/group, m.group-m.codeBytes(), at/group*m.group
		}
		packLanes(m.data[panel*m.panel+to:(panel+1)*m.panel], &from, groups, bytes/groups/4, skip)
	}
	if m.spec.Format.small() {
		for r, row := range rows {
			if row != nil {
				m.smallScales(m.data[panel*m.panel:][:m.panel], r, row, scales[r])
			}
		}
	}
}

// direct reports rows that are lanes as they are.
func (p *Packer) direct() bool {
	return p.form == FormBF16 || p.form == FormF32 || p.form == FormCodes && p.bits == 8 || p.m.spec.Format == FloatE4M3
}

// toLanes makes lanes of a piece of a row; what is left of them becomes zeros.
func (p *Packer) toLanes(lanes, src []byte, scales []float32) {
	switch p.form {
	case FormCodes:
		switch f := p.m.spec.Format; {
		case f == Codes4:
			nibbleLanes(lanes, src)
		case f == Codes8 && p.bits == 8:
			copy(lanes, src)
		case f == Codes8:
			quant.Unpack(lanes, src, p.bits)
		default:
			streamLanes(lanes, src, f)
		}
	case FormE2M1Codes:
		if p.m.spec.Format == CodesE2M1 {
			nibbleLanes(lanes, src)
			return
		}
		for i := range lanes {
			lanes[i] = e2m1Codes12[nibble(src, i)]
		}
	case FormE2M1, FormE4M3:
		if p.m.spec.Format == FloatE2M1 {
			nibbleLanes(lanes, src)
			return
		}
		n := len(lanes) / 2
		floats := p.floats[:n]
		if p.form == FormE2M1 {
			e2m1Floats(floats, src, scales)
		} else {
			e4m3Floats(floats, src, scales)
		}
		ToBF16(unsafe.Slice((*uint16)(unsafe.Pointer(&lanes[0])), n), floats)
	case FormF16:
		n := len(src) / 2
		f16Floats(unsafe.Slice((*float32)(unsafe.Pointer(&lanes[0])), n), src)
		clear(lanes[4*n:])
	default:
		clear(lanes[copy(lanes, src):])
	}
}

// Scales stores the scales and biases of a panel's codes from rows of bfloat16; nil rows as in Pack, nil biases are zeros.
func (p *Packer) Scales(panel int, scales, biases *[PanelRows][]byte) {
	m := p.m
	if !m.coded() || m.spec.Scales != ScaleBF16 {
		panic(fmt.Sprintf("kernel: bfloat16 scales for %+v", m.spec))
	}
	for i, rows := range []*[PanelRows][]byte{scales, biases} {
		if rows == nil {
			continue
		}
		var from [PanelRows]unsafe.Pointer
		for r, row := range rows {
			switch {
			case row == nil != (panel*PanelRows+r >= m.spec.Rows) || row != nil && len(row) != 2*m.groups:
				panic(fmt.Sprintf("kernel: row %d of panel %d of %+v has %d bytes of scales", r, panel, m.spec, len(row)))
			case row == nil:
				from[r] = unsafe.Pointer(&p.zeros[0])
			default:
				from[r] = unsafe.Pointer(&row[0])
			}
		}
		packScales(m.data[panel*m.panel+m.codeBytes()+i*2*PanelRows:(panel+1)*m.panel], &from, m.groups, m.group)
	}
}

// packLanes writes lane j of all rows to line j, words lines per group, leaving out skip bytes after each group.
func packLanes(dst []byte, rows *[PanelRows]unsafe.Pointer, groups, words, skip int) {
	if words >= 4 && packLanesAsm(dst, rows, groups, words, skip) {
		return
	}
	at := 0
	for g := range groups {
		for j := range words {
			for r, row := range rows {
				put32(dst[at+4*r:], *(*uint32)(unsafe.Add(row, 4*(g*words+j))))
			}
			at += 4 * PanelRows
		}
		at += skip
	}
}

// packScales writes number g of all rows to dst[g·stride:].
func packScales(dst []byte, rows *[PanelRows]unsafe.Pointer, groups, stride int) {
	done := packScalesAsm(dst, rows, groups, stride)
	for g := done; g < groups; g++ {
		for r, row := range rows {
			put16(dst[g*stride+2*r:], *(*uint16)(unsafe.Add(row, 2*g)))
		}
	}
}

// nibbleLanes turns words of eight 4-bit codes: the first four go to the low halves of the bytes, the others to the high ones.
func nibbleLanes(dst, src []byte) {
	done := 0
	if whole := len(dst) &^ 15; whole > 0 && nibbleLanesAsm(dst[:whole], src[:whole]) {
		done = whole
	}
	for i := done; i < len(dst); i += 4 {
		w := get32(src[i:])
		put32(dst[i:], spread(w&0xffff)|spread(w>>16)<<4)
	}
}

// spread puts four nibbles into four bytes.
func spread(x uint32) uint32 {
	x = (x | x<<8) & 0x00ff00ff
	return (x | x<<4) & 0x0f0f0f0f
}

// streamLanes puts a stream of codes, a multiple of 32, into the planes of a format.
func streamLanes(dst, src []byte, f Format) {
	if streamLanesAsm(dst, src, f.bits()) {
		return
	}
	var codes [32]uint8
	for n := 4 * f.bits(); len(dst) > 0; dst, src = dst[n:], src[n:] {
		quant.Unpack(codes[:], src[:n], f.bits())
		lanesOfCodes(dst, codes[:], f)
	}
}

func nibble(b []byte, i int) uint8 { return b[i/2] >> (i % 2 * 4) & 15 }

// e2m1Floats writes code·scale of groups of 16.
func e2m1Floats(dst []float32, src []byte, scales []float32) {
	if e2m1FloatsAsm(dst, src, scales) {
		return
	}
	for i := range dst {
		dst[i] = quant.E2M1(nibble(src, i)) * scales[i/16]
	}
}

// e4m3Floats writes code·scale of groups of 32.
func e4m3Floats(dst []float32, src []byte, scales []float32) {
	if e4m3FloatsAsm(dst, src, scales) {
		return
	}
	for i, c := range src {
		dst[i] = quant.E4M3(c) * scales[i/32]
	}
}

// f16Floats widens float16 numbers.
func f16Floats(dst []float32, src []byte) {
	for i := f16FloatsAsm(dst, src); i < len(dst); i++ {
		dst[i] = quant.F16ToF32(get16(src[2*i:]))
	}
}
