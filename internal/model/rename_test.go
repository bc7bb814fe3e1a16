package model

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// prefixed is an architecture whose checkpoints may put a prefix before every name.
type prefixed struct{ Model }

func (prefixed) Rename(name string) string { return strings.TrimPrefix(name, "language_model.") }

// TestRename: tensors, quantisation paths and errors all go through an architecture's renames.
func TestRename(t *testing.T) {
	cfg := `{"model_type": "llama", "quantization": {"bits": 4, "group_size": 64, "language_model.a": {"bits": 8, "group_size": 32}}}`
	open := func(tensors ...safetensors.Tensor) (Source, error) {
		var b bytes.Buffer
		if err := safetensors.Write(&b, tensors, nil); err != nil {
			t.Fatal(err)
		}
		c, err := OpenCheckpoint(fstest.MapFS{"config.json": {Data: []byte(cfg)}, "model.safetensors": {Data: b.Bytes()}}, "m")
		if err != nil {
			t.Fatal(err)
		}
		return c.source(prefixed{})
	}
	tensor := func(name string, dt quant.DType, shape ...int) safetensors.Tensor {
		n := dt.Size()
		for _, k := range shape {
			n *= k
		}
		return safetensors.Tensor{Name: name, DType: string(dt), Shape: shape, Bytes: make([]byte, n)}
	}
	s, err := open(tensor("language_model.a.weight", quant.U32, 2, 8), tensor("language_model.a.scales", quant.BF16, 2, 1), tensor("a.biases", quant.BF16, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	w := Want{Path: "a", Rows: 2, In: 32, Ranks: 1}
	if f := s.Check(w); len(f) != 0 {
		t.Errorf("faults %+v", f)
	}
	if p := s.Part(w); p.Scheme != (quant.Scheme{Mode: quant.Affine, Bits: 8, Group: 32}) || p.Weight.Name != "language_model.a.weight" {
		t.Errorf("%s of %s", p.Scheme, p.Weight.Name)
	}
	if f := s.Unused(); len(f) != 0 {
		t.Errorf("unused %+v", f)
	}
	if _, err := open(tensor("b.weight", quant.F32, 1), tensor("language_model.b.weight", quant.F32, 1)); err == nil ||
		!strings.Contains(err.Error(), "tensors b.weight and language_model.b.weight are two spellings of one") {
		t.Errorf("error %v", err)
	}

	cfg = `{"model_type": "llama", "quantization_config": {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"}}`
	s, err = open(tensor("language_model.a.weight_packed", quant.U8, 2, 16), tensor("language_model.a.weight_scale", quant.U8, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	if f := append(s.Check(w), s.Unused()...); len(f) != 0 {
		t.Errorf("faults %+v", f)
	}
	if p := s.Part(w); p.Scheme.Mode != quant.MXFP4 || p.Weight.Name != "language_model.a.weight_packed" {
		t.Errorf("%s of %s", p.Scheme, p.Weight.Name)
	}
}
