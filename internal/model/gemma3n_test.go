package model_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hearth/internal/backend"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

const tinyGemma3n = `{"model_type": "gemma3n", "text_config": {"hidden_size": 64, "num_hidden_layers": 4, "intermediate_size": 64, "num_attention_heads": 2,
	"num_key_value_heads": 1, "head_dim": 16, "rms_norm_eps": 1e-6, "vocab_size": 32, "sliding_window": 4, "num_kv_shared_layers": 2, "rope_theta": 1e6,
	"rope_local_base_freq": 1e4, "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
	"activation_sparsity_pattern": [0.9, 0, 0, 0], "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 8, "altup_num_inputs": 2,
	"altup_active_idx": 0, "altup_coef_clip": 120, "altup_correct_scale": true, "laurel_rank": 16, "final_logit_softcapping": 30}}`

// TestGemma3nFolders: the names of published folders, with what is beside the language model and what no layer uses, give the
// formula's logits.
func TestGemma3nFolders(t *testing.T) {
	s := model.Synthetic{Config: []byte(tinyGemma3n), Seed: 5, Type: quant.BF16}
	want := firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return s.Load(be, backend.Options{}) })
	tensors := tensorsOf(t, s)
	for i := range tensors {
		x := &tensors[i]
		x.Name = "model.language_model." + strings.TrimPrefix(x.Name, "model.")
		if strings.HasSuffix(x.Name, "correct_output_scale") {
			x.Shape = []int{64}
		}
	}
	for _, name := range []string{"model.vision_tower.x", "model.audio_tower.y", "model.embed_vision.z.weight", "model.embed_audio.z.weight",
		"model.language_model.layers.2.self_attn.k_proj.weight", "model.language_model.layers.3.self_attn.v_proj.weight",
		"model.language_model.layers.3.self_attn.k_norm.weight"} {
		tensors = append(tensors, safetensors.Tensor{Name: name, DType: "F32", Shape: []int{1}, Bytes: make([]byte, 4)})
	}
	c, err := model.OpenCheckpoint(fstest.MapFS{"config.json": text(tinyGemma3n), "model.safetensors": pack(t, tensors)}, "m")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := firstLogits(t, func(be backend.Backend) (*model.Loaded, error) { return c.Load(be, backend.Options{}) })
	if !slices.Equal(got, want) {
		t.Error("logits differ from the formula model's")
	}
}

func TestGemma3nConfigs(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"intermediate_size": 64`, `"intermediate_size": [64, 64]`, "intermediate_size has 2 entries for 4 layers"},
		{`"intermediate_size": 64`, `"intermediate_size": [64, 64, 0, 64]`, "intermediate_size 0 is out of range"},
		{`[0.9, 0, 0, 0]`, `[0.9]`, "activation_sparsity_pattern has 1 entries for 4 layers"},
		{`[0.9, 0, 0, 0]`, `[1, 0, 0, 0]`, "activation_sparsity_pattern has a share that is not from 0 to below 1"},
		{`"altup_num_inputs": 2`, `"altup_num_inputs": 0`, "altup_num_inputs 0 or altup_active_idx 0 is out of range"},
		{`"altup_active_idx": 0`, `"altup_active_idx": 2`, "altup_num_inputs 2 or altup_active_idx 2 is out of range"},
		{`"laurel_rank": 16`, `"laurel_rank": -1`, "laurel_rank -1 is missing"},
		{`"vocab_size_per_layer_input": 8`, `"vocab_size_per_layer_input": 0`, "vocab_size_per_layer_input 0 is missing"},
		{`"num_kv_shared_layers": 2`, `"num_kv_shared_layers": 3`, "num_kv_shared_layers 3 leaves none"},
		{`"rope_theta": 1e6`, `"rope_theta": 0`, "theta 0 is out of range"},
	} {
		if !strings.Contains(tinyGemma3n, c.old) {
			t.Fatalf("config has no %s", c.old)
		}
		_, _, err := model.New("gemma3n", []byte(strings.Replace(tinyGemma3n, c.old, c.new, 1)), 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.new, err, c.want)
		}
	}
}
