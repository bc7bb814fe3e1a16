package model_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// TestFalconH1Factors: a folder as it was published, with its factors in config.json, has the logits of a conversion
// that has them in its weights. Powers of two leave the bits as they are.
func TestFalconH1Factors(t *testing.T) {
	const heads, width, state, groups = 4, 16, 16, 2 // of formMamba2
	plain := formulaFolder(t, "falcon_h1", `"head_dim": 32, `+formMamba2)
	published := spelled(t, plain, 1, ".mixer.", ".")
	js := string(published["config.json"].Data)
	published["config.json"] = text(strings.TrimSuffix(js, "}") + `, "embedding_multiplier": 4, "lm_head_multiplier": 0.5, "key_multiplier": 0.25, "attention_in_multiplier": 2,
		"attention_out_multiplier": 0.5, "ssm_in_multiplier": 2, "ssm_out_multiplier": 0.25, "mlp_multipliers": [0.5, 4], "ssm_multipliers": [0.5, 2, 4, 0.25, 8]}`)
	factors := map[string]float32{"embed_tokens.weight": 4, "lm_head.weight": 0.5, "q_proj.weight": 2, "k_proj.weight": 0.5, "v_proj.weight": 2, "o_proj.weight": 0.5,
		"mamba.out_proj.weight": 0.25, "gate_proj.weight": 0.5, "down_proj.weight": 4}
	converted := tensorsAs(t, spelled(t, plain, 2, ".mixer.", "."), func(x safetensors.Tensor) []safetensors.Tensor {
		v := make([]float32, len(x.Bytes)/4)
		quant.Floats(v, quant.F32, x.Bytes)
		for end, f := range factors {
			if strings.HasSuffix(x.Name, end) {
				for i := range v {
					v[i] *= f
				}
			}
		}
		if strings.HasSuffix(x.Name, "mamba.in_proj.weight") {
			rows := slices.Concat(slices.Repeat([]float32{0.5}, heads*width), slices.Repeat([]float32{2}, heads*width), slices.Repeat([]float32{4}, groups*state),
				slices.Repeat([]float32{0.25}, groups*state), slices.Repeat([]float32{8}, heads))
			for i := range v {
				v[i] *= 2 * rows[i/x.Shape[1]]
			}
		}
		x.Bytes = make([]byte, len(x.Bytes))
		quant.PutFloats(x.Bytes, quant.F32, v)
		return []safetensors.Tensor{x}
	})
	sameLogits(t, "falcon_h1", map[string]fstest.MapFS{"published": published, "converted": converted})
}
