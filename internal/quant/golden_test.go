package quant_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"hearth/internal/golden"
	"hearth/internal/quant"
)

// TestAffineGolden: codes, scales, biases and dequantised values are mx.quantize's and mx.dequantize's, bit by bit.
func TestAffineGolden(t *testing.T) {
	golden.Update(t, filepath.FromSlash("../../tools/golden/quant.py"), "testdata/affine.json")
	var g struct {
		Columns int           `json:"columns"`
		Input   golden.Floats `json:"input"`
		Cases   []struct {
			Type   quant.DType   `json:"type"`
			Bits   int           `json:"bits"`
			Group  int           `json:"group"`
			Codes  []byte        `json:"codes"`
			Scales golden.Floats `json:"scales"`
			Biases golden.Floats `json:"biases"`
			Sum    string        `json:"dequantised_sha256"`
		} `json:"cases"`
	}
	golden.Load(t, "testdata/affine.json", &g)
	rows := len(g.Input) / g.Columns
	for _, c := range g.Cases {
		t.Run(fmt.Sprintf("%s/%d/%d", c.Type, c.Bits, c.Group), func(t *testing.T) {
			stored := make([]byte, len(g.Input)*c.Type.Size())
			quant.PutFloats(stored, c.Type, g.Input)
			w := make([]float32, len(g.Input))
			quant.Floats(w, c.Type, stored)

			m, err := quant.Quantize(quant.Scheme{Mode: quant.Affine, Bits: c.Bits, Group: c.Group}, w, rows, g.Columns, c.Type)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(m.Weight, c.Codes) {
				t.Error("codes differ from mx.quantize")
			}
			n := g.Columns / c.Group
			scales, biases, deq := make([]float32, rows*n), make([]float32, rows*n), make([]float32, len(w))
			for r := range rows {
				m.ScalesBiases(scales[r*n:(r+1)*n], biases[r*n:(r+1)*n], r)
				m.Row(deq[r*g.Columns:(r+1)*g.Columns], r)
			}
			if !slices.Equal(scales, c.Scales) {
				t.Errorf("scales differ from mx.quantize: %v, want %v", scales, c.Scales)
			}
			if !slices.Equal(biases, c.Biases) {
				t.Errorf("biases differ from mx.quantize: %v, want %v", biases, c.Biases)
			}
			raw := make([]byte, 4*len(deq))
			quant.PutFloats(raw, quant.F32, deq)
			if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != c.Sum {
				t.Error("dequantised values differ from mx.dequantize in float32")
			}
		})
	}
}
