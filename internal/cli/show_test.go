package cli

import (
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/cpu"
	"hearth/internal/model"
)

// TestStateOf: of a hybrid, layers that attend take memory for every token, the others once.
func TestStateOf(t *testing.T) {
	m, _, err := model.New("qwen3_5", []byte(`{"model_type": "qwen3_5", "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8,
		"num_key_value_heads": 2, "intermediate_size": 3584, "tie_word_embeddings": true, "full_attention_interval": 4,
		"linear_num_key_heads": 16, "linear_num_value_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
		"linear_conv_kernel_dim": 4, "head_dim": 256, "vocab_size": 248320, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
		"max_position_embeddings": 40960, "quantization": {"mode": "affine", "bits": 4, "group_size": 64}}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	st, err := cpu.New().NewStore(m.States(), backend.KVPolicy{DType: backend.BF16})
	if err != nil {
		t.Fatal(err)
	}
	s := stateOf(st.Geometry(), st.Policy())
	if want := (shownState{Token: 2 * 2 * 2 * 256 * 2, Sequence: 6 * 4 * (16*128*128 + 3*(2*16*128+16*128)), KVType: "bf16"}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}
