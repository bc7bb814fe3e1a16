package model

import (
	"fmt"
	"slices"

	B "hearth/internal/backend"
	"hearth/internal/nn"
	"hearth/internal/quant"
)

func init() { register("bitnet", newBitNet) }

// newBitNet is llama with squared relu, or what hidden_act says, and norms before the last product of attention and
// of the MLP. Its weights are -1, 0 and 1 times a number per tensor.
func newBitNet(cfg *config, b *Build) (Generator, error) {
	a := read[llamaArgs](cfg)
	a.Types = nil // the family has no windows
	if err := a.check(); err != nil {
		return nil, err
	}
	rope := cfg.rope(rotation{Head: a.HeadDim, Base: 500000})
	act := cfg.act("hidden_act", "relu2")
	return newDecoder(&a.common, b, func(i int) decoderLayer {
		l := a.layer(b, i, rope)
		result, hidden := nn.RMS(b.Local(a.Heads)*a.HeadDim, float32(a.Eps)), nn.RMS(b.Local(a.FFN), float32(a.Eps))
		l.Attn.SubNorm, l.MLP.SubNorm, l.MLP.Spec.Act = &result, &hidden, act
		return l
	}).plain(), nil
}

// ternary is how BitNet's weights are stored: bytes of four codes, of rows a quarter of the matrix apart, and one number for all,
// which multiplies or divides. Codes are one more than the weights, so that they are affine with two bits, exactly.
func ternary(divide bool) *foreign {
	return &foreign{
		keys: []string{".weight_scale"}, needs: []string{".weight"},
		check: func(m module, w Want) error {
			codes, s := m.t[".weight"], m.first
			if codes.DType != "U8" || len(codes.Shape) != 2 || codes.Shape[1] != w.In || !w.fits(4*codes.Shape[0]) {
				return fmt.Errorf("%s is %s of shape %v, expected U8 of [%d %d]", codes.Name, codes.DType, codes.Shape, w.Rows*max(w.Ranks, 1)/4, w.In)
			}
			if w.In%32 != 0 {
				return fmt.Errorf("%d columns do not divide into groups of 32", w.In)
			}
			if !slices.Contains(floatTypes, s.DType) || product(s.Shape) != 1 {
				return fmt.Errorf("%s is %s of shape %v, expected one number", s.Name, s.DType, s.Shape)
			}
			if x := numbers(s)[0]; !(x > 1e-20 && x < 1e20) {
				return fmt.Errorf("%s is %g", s.Name, x)
			}
			return nil
		},
		convert: func(m module, w Want) B.Part { return partTernary(m.t[".weight"], m.first, w.In, divide) },
	}
}

func partTernary(t, s *B.Tensor, in int, divide bool) B.Part {
	quarter, group := t.Shape[0], 32
	for group < 128 && in%(2*group) == 0 {
		group *= 2
	}
	scheme := quant.Scheme{Mode: quant.Affine, Bits: 2, Group: group}
	rows, groups := 4*quarter, in/group
	packed, codes := make([]byte, rows*in/4), make([]uint8, in)
	for r := range rows {
		for c, b := range t.Bytes[r%quarter*in:][:in] {
			codes[c] = b >> (2 * (r / quarter)) & 3
		}
		quant.Pack(packed[r*in/4:][:in/4], codes, 2)
	}
	x := numbers(s)[0]
	if divide {
		x = 1 / x
	}
	scales, biases := slices.Repeat([]float32{x}, rows*groups), slices.Repeat([]float32{-x}, rows*groups)
	return B.Part{Scheme: scheme, Weight: &B.Tensor{Name: t.Name, DType: string(quant.U32), Shape: []int{rows, in / 16}, Bytes: packed},
		Scales: floats(s.Name, quant.F32, scales, rows, groups), Biases: floats(s.Name, quant.F32, biases, rows, groups)}
}
