package model_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"hearth/internal/backend"
	"hearth/internal/backend/stub"
	"hearth/internal/model"
	"hearth/internal/quant"
	"hearth/internal/safetensors"
)

// TestEncoderConfigs: configs as models that embed or rank are published and saved give no warning; what would change numbers is
// refused or told of by name.
func TestEncoderConfigs(t *testing.T) {
	sizes := `"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 16, "max_position_embeddings": 24`
	bert := sizes + `, "model_type": "bert", "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1, "classifier_dropout": null, "gradient_checkpointing": false,
		"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0, "position_embedding_type": "absolute",
		"transformers_version": "4.55.0", "type_vocab_size": 2, "use_cache": true, "torch_dtype": "float32"`
	roberta := strings.Replace(bert, `"bert"`, `"xlm-roberta"`, 1) + `, "bos_token_id": 0, "eos_token_id": 2, "output_past": true, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0},
		"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid", "version": "5.1.0"}`
	five := `, "add_cross_attention": false, "is_decoder": false, "tie_word_embeddings": true, "dtype": "float32"`
	qwen3 := sizes + `, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 1,
		"head_dim": 16, "hidden_act": "silu", "initializer_range": 0.02, "max_window_layers": 28, "num_key_value_heads": 1, "rms_norm_eps": 1e-06, "rope_scaling": null,
		"rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true, "use_cache": true, "use_sliding_window": false`
	for _, tc := range []struct{ name, config, key string }{
		{"bert", bert, ""}, {"bert of transformers 5", bert + five, ""}, {"xlm-roberta", roberta, ""}, {"xlm-roberta of transformers 5", roberta + five, ""},
		{"the first bert", bert + `, "directionality": "bidi", "pooler_fc_size": 768, "pooler_type": "first_token_transform"`, ""},
		{"cross-encoder", bert + `, "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"`, ""},
		{"qwen3", qwen3, ""},
		{"decoder", bert + `, "is_decoder": true`, "is_decoder"}, {"cross attention", roberta + `, "add_cross_attention": true`, "add_cross_attention"},
		{"relative positions", bert + `, "position_embedding_type": "relative_key"`, "position_embedding_type"},
		{"activation", roberta + `, "hidden_act": "relu"`, "hidden_act"}, {"unknown", bert + `, "rope_theta": 300`, "rope_theta"},
		{"window", qwen3 + `, "layer_types": ["sliding_attention"]`, "layer_types"}, {"activation of a decoder", qwen3 + `, "hidden_act": "relu"`, "hidden_act"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := model.Synthetic{Config: lastOf(t, tc.config), Type: quant.F32}.LoadEncoder(stub.New(1), backend.Options{}, model.Pooling{Kind: model.Embeds})
			var said []string
			if err != nil {
				said = append(said, err.Error())
			} else {
				said = m.Warnings
			}
			if named := func(s string) bool { return strings.Contains(s, tc.key) }; tc.key != "" && !slices.ContainsFunc(said, named) || tc.key == "" && len(said) > 0 {
				t.Errorf("said %q, should name %q", said, tc.key)
			}
		})
	}
}

// TestOwnKeys: keys that published folders of one family have give no warning; values of them that are not done are
// refused by name.
func TestOwnKeys(t *testing.T) {
	sizes := `"hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "vocab_size": 16, "max_position_embeddings": 64, `
	gpt := `"n_embd": 64, "n_layer": 1, "n_head": 2, "n_positions": 64, "vocab_size": 16, "n_inner": null, "summary_type": "cls_index", "summary_use_proj": true, "n_ctx": 64, `
	for _, tc := range []struct{ keys, key, other string }{
		{gpt + `"model_type": "gptj", "rotary_dim": 8, "rotary": true, "scale_attn_weights": true`, "rotary", "false"},
		{gpt + `"model_type": "gpt2", "reorder_and_upcast_attn": false, "activation_function": "gelu_new"`, "activation_function", `"mish"`},
		{sizes + `"model_type": "starcoder2", "mlp_type": "default", "norm_type": "layer_norm", "sliding_window": 8`, "mlp_type", `"gated"`},
		{sizes + `"model_type": "phi3", "full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": false, "attention_bias": false`, "full_attn_mod", "2"},
		{sizes + `"model_type": "hunyuan_v1_dense", "use_cla": false, "cla_share_factor": 2, "norm_type": "rms", "attention_head_dim": 32`, "use_cla", "true"},
		{sizes + `"model_type": "gpt_neox", "hidden_act": "gelu", "head_dim": 32`, "head_dim", "16"},
		{sizes + `"model_type": "stablelm", "hidden_act": "silu", "head_dim": 32`, "head_dim", "16"},
		{sizes + `"model_type": "olmo3", "sliding_window": 8, "rope_theta": 500000`, "rope_theta", "10000"},
		{sizes + `"model_type": "olmo3", "rope_parameters": {"full_attention": {"rope_theta": 300}}`, "rope_parameters", `{"rope_theta": 300}`},
		{sizes + `"model_type": "ministral3", "rope_parameters": {"type": "yarn", "factor": 2, "original_max_position_embeddings": 8}, "num_hidden_layers": 2, "sliding_window": 4, "layer_types": ["sliding_attention", "sliding_attention"]`,
			"layer_types", `["sliding_attention", "full_attention"]`},
		{sizes + `"model_type": "llama", "sliding_window": 4, "layer_types": ["full_attention"]`, "layer_types", `["sliding_attention"]`},
		{sizes + `"model_type": "exaone4", "sliding_window": 8, "sliding_window_pattern": 4`, "sliding_window_pattern", "0"},
		{sizes + `"model_type": "qwen2", "use_sliding_window": false, "sliding_window": 8, "max_window_layers": 21, "layer_types": ["full_attention"]`, "layer_types", `["sliding_attention"]`},
	} {
		said := func(config string) []string {
			m, err := model.Synthetic{Config: lastOf(t, config), Type: quant.F32}.Load(stub.New(1), backend.Options{})
			if err != nil {
				return []string{err.Error()}
			}
			return m.Warnings
		}
		if got := said(tc.keys); len(got) > 0 {
			t.Errorf("%s: said %q", tc.keys, got)
		}
		if got := said(tc.keys + `, "` + tc.key + `": ` + tc.other); !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tc.key) }) {
			t.Errorf("%s with %s: said %q", tc.keys, tc.other, got)
		}
	}
}

// lastOf is a config of which later keys count.
func lastOf(t *testing.T, keys string) []byte {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte("{"+keys+"}"), &all); err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// TestTextModels: a model of text and images has the language model that its config names, with what transformers left out of old
// configs; whether its head is tied is said in two places.
func TestTextModels(t *testing.T) {
	text := `"hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "vocab_size": 16, "max_position_embeddings": 64`
	for _, tc := range []struct {
		name, config, want string
		head               bool // the model asks for one
	}{
		{"defaults", `"model_type": "llava", "text_config": {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 64, "vocab_size": 16}`, "", true},
		{"no type", `"model_type": "mistral3", "text_config": {` + text + `}`, "", false},
		{"unknown type", `"model_type": "llava", "text_config": {"model_type": "later", ` + text + `}`, `text_config.model_type "later"`, false},
		{"itself", `"model_type": "llava", "text_config": {"model_type": "llava", ` + text + `}`, `text_config.model_type "llava"`, false},
		{"tied inside", `"model_type": "qwen2_vl", "tie_word_embeddings": false, "text_config": {"tie_word_embeddings": true, ` + text + `}`, "", false},
		{"tied outside", `"model_type": "qwen3_vl", "tie_word_embeddings": true, "text_config": {"tie_word_embeddings": false, ` + text + `}`, "", false},
		{"not tied", `"model_type": "qwen2_5_vl", "tie_word_embeddings": false, "text_config": {` + text + `}`, "", true},
		{"all keys in one", `"model_type": "qwen2_vl", "tie_word_embeddings": false, ` + text, "", true},
		{"window of a block", `"model_type": "nemotron-nas", "block_configs": [{"attention": {"n_heads_in_group": 1, "window_length": 8}, "ffn": {"ffn_mult": 1}}], ` + text,
			"block_configs[0].attention.window_length is 8", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var tensors []safetensors.Tensor
			m, err := model.Synthetic{Config: []byte("{" + tc.config + "}"), Type: quant.F32}.Load(record(&tensors), backend.Options{})
			switch {
			case tc.want == "" && err != nil:
				t.Fatal(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Fatalf("got %v, should say %s", err, tc.want)
			case tc.want != "":
				return
			}
			if len(m.Warnings) > 0 {
				t.Errorf("warnings %q", m.Warnings)
			}
			head := false
			for _, x := range tensors {
				head = head || x.Name == "lm_head.weight"
			}
			if head != tc.head {
				t.Errorf("a head of its own: %v, should be %v", head, tc.head)
			}
		})
	}
}
