package model_test

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

const bitnetKeys = `{"model_type": "bitnet", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "num_attention_heads": 2, "num_key_value_heads": 1,
	"rms_norm_eps": 1e-6, "vocab_size": 32, "max_position_embeddings": 64, "tie_word_embeddings": true`

// ternaries stores the matrices of layers as -1, 0 and 1 times an eighth: as floats, or packed as published, with the number
// that multiplies or divides.
func ternaries(t *testing.T, folder fstest.MapFS, packed bool, number float32) fstest.MapFS {
	return tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
		path, isWeight := strings.CutSuffix(x.Name, ".weight")
		if !isWeight || !strings.Contains(path, "_proj") {
			return []safetensors.Tensor{x}
		}
		rows, in := x.Shape[0], x.Shape[1]
		x.Bytes = slices.Clone(x.Bytes)
		codes := make([]byte, rows/4*in)
		for i := range rows * in {
			w := math.Float32frombits(binary.LittleEndian.Uint32(x.Bytes[4*i:]))
			c := 1
			if amp := float32(math.Sqrt(3 / float64(in))); w > amp/3 {
				c = 2
			} else if w < -amp/3 {
				c = 0
			}
			binary.LittleEndian.PutUint32(x.Bytes[4*i:], math.Float32bits(float32(c-1)/8))
			r := i / in
			codes[r%(rows/4)*in+i%in] |= byte(c << (2 * (r / (rows / 4))))
		}
		if !packed {
			return []safetensors.Tensor{x}
		}
		return []safetensors.Tensor{
			{Name: x.Name, DType: "U8", Shape: []int{rows / 4, in}, Bytes: codes},
			{Name: path + ".weight_scale", DType: "F32", Shape: []int{1}, Bytes: binary.LittleEndian.AppendUint32(nil, math.Float32bits(number))},
		}
	})
}

// TestTernary: packed weights are the floats that they stand for.
func TestTernary(t *testing.T) {
	cfg := bitnetKeys + "}"
	formula := fstest.MapFS{"config.json": text(cfg), "model.safetensors": pack(t, tensorsOf(t, model.Synthetic{Config: []byte(cfg), Seed: 6, Type: quant.F32}))}
	logits := func(name string, folder fstest.MapFS) []float32 {
		c, err := model.OpenCheckpoint(folder, name)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return c.Load(be, backend.Options{}) })
	}
	want := logits("floats", ternaries(t, formula, false, 0))
	for name, f := range map[string]struct {
		class  string
		number float32
	}{"multiplies": {"autobitlinear", 0.125}, "divides": {"bitlinear", 8}} {
		folder := with(ternaries(t, formula, true, f.number), "config.json",
			text(bitnetKeys+`, "quantization_config": {"quant_method": "bitnet", "linear_class": "`+f.class+`"}}`))
		if got := logits(name, folder); !slices.Equal(got, want) {
			t.Errorf("%s: other logits than with floats", name)
		}
		broken := tensorsAs(t, folder, func(x safetensors.Tensor) []safetensors.Tensor {
			if strings.HasSuffix(x.Name, "0.mlp.up_proj.weight") {
				x.Shape, x.Bytes = []int{x.Shape[0], x.Shape[1] / 2}, x.Bytes[:len(x.Bytes)/2]
			}
			return []safetensors.Tensor{x}
		})
		const fault = "model.layers.0.mlp.up_proj.weight is U8 of shape [24 32], expected U8 of [24 64]"
		if err := load(broken); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("error %v, want %q in it", err, fault)
		}
	}
}
