package quant_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"hearth/internal/golden"
	"hearth/internal/quant"
)

// inputs is what a golden quantises: rows of floats.
type inputs struct {
	Columns int           `json:"columns"`
	Input   golden.Floats `json:"input"`
}

// as is the input rounded to t.
func (in *inputs) as(t quant.DType) []float32 {
	stored := make([]byte, len(in.Input)*t.Size())
	quant.PutFloats(stored, t, in.Input)
	w := make([]float32, len(in.Input))
	quant.Floats(w, t, stored)
	return w
}

// digest is the SHA-256 of a matrix dequantised in t, as little-endian float32; every NaN counts as the same.
func digest(m *quant.Matrix, t quant.DType) string {
	h, row, raw := sha256.New(), make([]float32, m.In), make([]byte, 4*m.In)
	for r := range m.Rows {
		m.RowAs(row, t, r)
		for i, x := range row {
			if x != x {
				row[i] = math.Float32frombits(0x7fc00000)
			}
		}
		quant.PutFloats(raw, quant.F32, row)
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func update(t *testing.T) {
	golden.Update(t, filepath.FromSlash("../../tools/golden/quant.py"), "testdata")
}

// TestAffineGolden: codes, scales, biases and dequantised values are mx.quantize's and mx.dequantize's, bit by bit.
func TestAffineGolden(t *testing.T) {
	update(t)
	var g struct {
		inputs
		Cases []struct {
			Type   quant.DType   `json:"type"`
			Bits   int           `json:"bits"`
			Group  int           `json:"group"`
			Codes  []byte        `json:"codes"`
			Scales golden.Floats `json:"scales"`
			Biases golden.Floats `json:"biases"`
			Sum    string        `json:"dequantised_sha256"` // in float32
			Own    string        `json:"own_sha256"`         // in the type of the scales, as MLX does
		} `json:"cases"`
	}
	golden.Load(t, "testdata/affine.json", &g)
	rows := len(g.Input) / g.Columns
	for _, c := range g.Cases {
		t.Run(fmt.Sprintf("%s/%d/%d", c.Type, c.Bits, c.Group), func(t *testing.T) {
			m, err := quant.Quantize(quant.Scheme{Mode: quant.Affine, Bits: c.Bits, Group: c.Group}, g.as(c.Type), rows, g.Columns, c.Type)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(m.Weight, c.Codes) {
				t.Error("codes differ from mx.quantize")
			}
			n := g.Columns / c.Group
			scales, biases := make([]float32, rows*n), make([]float32, rows*n)
			for r := range rows {
				m.ScalesBiases(scales[r*n:(r+1)*n], biases[r*n:(r+1)*n], r)
			}
			if !slices.Equal(scales, c.Scales) {
				t.Errorf("scales differ from mx.quantize: %v, want %v", scales, c.Scales)
			}
			if !slices.Equal(biases, c.Biases) {
				t.Errorf("biases differ from mx.quantize: %v, want %v", biases, c.Biases)
			}
			if digest(m, quant.F32) != c.Sum {
				t.Error("dequantised values differ from mx.dequantize in float32")
			}
			if digest(m, c.Type) != c.Own {
				t.Errorf("dequantised values differ from mx.dequantize in %s", c.Type)
			}
		})
	}
}

// smallFloats is a case of a mode whose codes are small floats. Global 0 means that there is none.
type smallFloats struct {
	Mode   quant.Mode             `json:"mode"`
	Type   quant.DType            `json:"type"`
	Global float32                `json:"global"`
	Codes  []byte                 `json:"codes"`
	Scales []byte                 `json:"scales"`
	Sums   map[quant.DType]string `json:"dequantised_sha256"`
}

func (c *smallFloats) String() string {
	if c.Global != 0 {
		return string(c.Type + "/" + quant.DType(c.Mode) + "-global")
	}
	return string(c.Type + "/" + quant.DType(c.Mode))
}

func (c *smallFloats) compare(t *testing.T, m *quant.Matrix) {
	t.Helper()
	for _, dt := range []quant.DType{quant.F32, quant.F16, quant.BF16} {
		if digest(m, dt) != c.Sums[dt] {
			t.Errorf("dequantised values differ from mx.dequantize in %s", dt)
		}
	}
}

// TestSmallFloatsGolden is TestAffineGolden for mxfp4, mxfp8 and nvfp4.
func TestSmallFloatsGolden(t *testing.T) {
	update(t)
	var g struct {
		inputs
		Cases []smallFloats `json:"cases"`
		Every []smallFloats `json:"every_scale"`
	}
	golden.Load(t, "testdata/fp.json", &g)
	rows := len(g.Input) / g.Columns
	for _, c := range g.Cases {
		t.Run(c.String(), func(t *testing.T) {
			scheme, ok := c.Mode.Default()
			if !ok {
				t.Fatal("unknown mode")
			}
			m, err := quant.Quantize(scheme, g.as(c.Type), rows, g.Columns, c.Type)
			if c.Global != 0 {
				m, err = quant.QuantizeGlobal(g.as(c.Type), rows, g.Columns, c.Type, c.Global)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(m.Weight, c.Codes) {
				t.Error("codes differ from mx.quantize")
			}
			if !bytes.Equal(m.Scales, c.Scales) {
				t.Errorf("scales differ from mx.quantize:\n%v, want\n%v", m.Scales, c.Scales)
			}
			c.compare(t, m)
		})
	}
	for _, c := range g.Every {
		t.Run("every scale"+c.String(), func(t *testing.T) { c.compare(t, everyScale(t, c.Mode, c.Global)) })
	}
}

// everyScale has a row for each scale byte, with every code under it: 256 columns.
func everyScale(t *testing.T, mode quant.Mode, global float32) *quant.Matrix {
	t.Helper()
	s, ok := mode.Default()
	if !ok {
		t.Fatal("unknown mode")
	}
	codes := make([]uint8, 256)
	for i := range codes {
		codes[i] = uint8(i % (1 << s.Bits))
	}
	row := make([]byte, s.RowBytes(256))
	quant.Pack(row, codes, s.Bits)
	w := &quant.Data{DType: quant.U32, Shape: []int{256, 8 * s.Bits}}
	scales := &quant.Data{DType: quant.U8, Shape: []int{256, 256 / s.Group}}
	for i := range 256 {
		w.Bytes = append(w.Bytes, row...)
		scales.Bytes = append(scales.Bytes, bytes.Repeat([]byte{byte(i)}, 256/s.Group)...)
	}
	m, err := quant.NewMatrix(256, 256, s, w, scales, nil)
	if err != nil {
		t.Fatal(err)
	}
	if global != 0 {
		g := make([]byte, 4)
		quant.PutFloats(g, quant.F32, []float32{global})
		if err := m.SetGlobal(&quant.Data{DType: quant.F32, Bytes: g}); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestUniform: mxfp4 read as scale·code + bias has the values it has when dequantised, exactly, as long as they are
// finite, and bfloat16 holds its scales and biases.
func TestUniform(t *testing.T) {
	m := everyScale(t, quant.MXFP4, 0)
	if u, ok := m.Uniform(); !ok || u != (quant.Uniform{Bits: 5, BF16: true}) {
		t.Fatalf("uniform %+v, %v", u, ok)
	}
	n := m.In / m.Scheme.Group
	row, codes, scales, biases := make([]float32, m.In), make([]uint8, m.In), make([]float32, n), make([]float32, n)
	for r := range 253 { // 6·2^(253-127) is infinite
		m.Row(row, r)
		m.Codes(codes, r)
		m.ScalesBiases(scales, biases, r)
		for i, c := range codes {
			s, b := scales[i/m.Scheme.Group], biases[i/m.Scheme.Group]
			if got := float64(s)*float64(c) + float64(b); got != float64(row[i]) {
				t.Fatalf("scale %d code %d: %g, want %g", r, i, got, row[i])
			}
			if quant.BF16ToF32(quant.F32ToBF16(s)) != s || quant.BF16ToF32(quant.F32ToBF16(b)) != b {
				t.Fatalf("scale %d: %g and %g are no bfloat16 values", r, s, b)
			}
		}
	}
	for _, mode := range []quant.Mode{quant.MXFP8, quant.NVFP4} {
		if _, ok := everyScale(t, mode, 0).Uniform(); ok {
			t.Errorf("%s is uniform", mode)
		}
	}
}
