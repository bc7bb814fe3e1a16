package model

import (
	"encoding/binary"
	"fmt"

	B "hearth/internal/backend"
	"hearth/internal/quant"
)

// AWQ and GPTQ store codes of 4 bits with the inputs down and the outputs across, eight outputs (AWQ) or eight inputs
// (GPTQ) to a word, scales [groups, outputs] and zero points [groups, outputs/8]. A weight is (code - zero)·scale, so
// MLX's bias is -zero·scale, rounded to the type of the scales as mlx-lm does.

// awqOrder[i] is the nibble in which output i of a word is.
var awqOrder = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

// ordered is GPTQ's order.
var ordered = [8]int{0, 1, 2, 3, 4, 5, 6, 7}

var (
	awq   = nibbles("awq", 0)
	gptq  = nibbles("gptq", 1) // stores a zero point less one
	gptq2 = nibbles("gptq", 0)
)

// nibbles is one of the two layouts. Files that call themselves GPTQ may have AWQ's; the shape tells.
func nibbles(method string, zero uint8) foreign {
	return foreign{
		keys: []string{".qweight"}, needs: []string{".scales"}, may: []string{".qzeros", ".g_idx"},
		check: func(m module, w Want) error { return checkNibbles(m, w) },
		convert: func(m module, w Want) B.Part {
			if method == "awq" || acrossOutputs(m.first, w) {
				return partNibbles(m, w, &awqOrder, 0)
			}
			return partNibbles(m, w, &ordered, zero)
		},
	}
}

// acrossOutputs reports AWQ's layout: a row for each input.
func acrossOutputs(t *B.Tensor, w Want) bool { return len(t.Shape) == 2 && t.Shape[0] == w.In }

func checkNibbles(m module, w Want) error {
	t, s, z := m.t[".qweight"], m.t[".scales"], m.t[".qzeros"]
	if len(t.Shape) != 2 || w.In%8 != 0 {
		return fmt.Errorf("expected two dimensions and columns in eights, found shape %v for %d columns", t.Shape, w.In)
	}
	n, want := t.Shape[1], []int{w.In / 8, t.Shape[1]}
	if acrossOutputs(t, w) {
		n, want[0] = 8*t.Shape[1], w.In
	}
	if !w.fits(n) {
		return fmt.Errorf("expected %d outputs, found shape %v", w.Rows*max(w.Ranks, 1), t.Shape)
	}
	if n%8 != 0 {
		return fmt.Errorf("%d outputs do not divide into words of eight", n)
	}
	if err := expect(t, want[0], want[1], intTypes...); err != nil {
		return err
	}
	if len(s.Shape) != 2 || s.Shape[0] <= 0 || w.In%s.Shape[0] != 0 {
		return fmt.Errorf("%s has shape %v, which does not divide %d columns into groups", s.Name, s.Shape, w.In)
	}
	if err := expect(s, s.Shape[0], n, floatTypes...); err != nil {
		return err
	}
	if z != nil {
		if err := expect(z, s.Shape[0], n/8, intTypes...); err != nil {
			return err
		}
	}
	group := w.In / s.Shape[0]
	if err := (quant.Scheme{Mode: quant.Affine, Bits: 4, Group: group}).Check(w.In); err != nil {
		return err
	}
	return checkOrder(m.t[".g_idx"], w.In, group)
}

// checkOrder refuses columns that are sorted by importance before they are grouped (desc_act): input i must be in
// group i/group.
func checkOrder(t *B.Tensor, in, group int) error {
	if t == nil {
		return nil
	}
	if t.DType != "I32" || len(t.Shape) != 1 || t.Shape[0] != in {
		return fmt.Errorf("%s is %s of shape %v, expected I32 of [%d]", t.Name, t.DType, t.Shape, in)
	}
	for i := range in {
		if g := binary.LittleEndian.Uint32(t.Bytes[4*i:]); g != uint32(i/group) {
			return fmt.Errorf("%s puts column %d into group %d: columns that are reordered before they are grouped are not supported",
				t.Name, i, int32(g))
		}
	}
	return nil
}

func partNibbles(m module, w Want, order *[8]int, zero uint8) B.Part {
	t, s, z := m.t[".qweight"], m.t[".scales"], m.t[".qzeros"]
	n, k := s.Shape[1], s.Shape[0]
	p := B.Part{Scheme: quant.Scheme{Mode: quant.Affine, Bits: 4, Group: w.In / k}}
	codes := make([]byte, n*w.In/2)
	if acrossOutputs(t, w) {
		transposeNibbles(codes, t.Bytes, n, w.In, order)
	} else {
		transposeWords(codes, t.Bytes, n, w.In/8)
	}
	p.Weight = &B.Tensor{Name: t.Name, DType: string(quant.U32), Shape: []int{n, w.In / 8}, Bytes: codes}

	stored, scales, biases := numbers(s), make([]float32, n*k), make([]float32, n*k)
	for g := range k {
		for r := range n {
			q := uint8(8)
			if z != nil {
				word := binary.LittleEndian.Uint32(z.Bytes[(g*n+r)/8*4:])
				q = (uint8(word>>(4*order[r%8]))&15 + zero) & 15
			}
			scales[r*k+g] = stored[g*n+r]
			biases[r*k+g] = -float32(q) * stored[g*n+r]
		}
	}
	p.Scales = floats(s.Name, quant.DType(s.DType), scales, n, k)
	p.Biases = floats(s.Name, quant.DType(s.DType), biases, n, k)
	return p
}

// transposeNibbles turns [in][out/8] words of eight outputs into [out][in/8] words of eight inputs.
func transposeNibbles(dst, src []byte, out, in int, order *[8]int) {
	var block [8]uint32
	for i := 0; i < in; i += 8 {
		for j := range out / 8 {
			for k := range block {
				block[k] = binary.LittleEndian.Uint32(src[((i+k)*(out/8)+j)*4:])
			}
			for o, nibble := range order {
				var word uint32
				for k, b := range block {
					word |= b >> (4 * nibble) & 15 << (4 * k)
				}
				binary.LittleEndian.PutUint32(dst[((j*8+o)*(in/8)+i/8)*4:], word)
			}
		}
	}
}

// transposeWords turns [words][out] into [out][words].
func transposeWords(dst, src []byte, out, words int) {
	for k := range words {
		for o := range out {
			copy(dst[(o*words+k)*4:][:4], src[(k*out+o)*4:])
		}
	}
}
