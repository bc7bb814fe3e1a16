package model

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// Harmless are keys of config.json that change no number, with the reason.
type Harmless struct {
	Reason string
	Keys   []string // a star stands for any letters
}

// HarmlessKeys are those that change no number of any architecture. A key that is not here and that no architecture
// reads is told of by name; an architecture adds those that are harmless to it alone.
var HarmlessKeys = []Harmless{
	{"names, versions and classes", []string{"architectures", "model_type", "transformers_version", "_name_or_path", "name_or_path", "auto_map", "_commit_hash",
		"_diffusers_version", "model_name", "tokenizer_class", "processor_class", "id2label", "label2id", "num_labels", "problem_type", "finetuning_task",
		"task_specific_params", "unsloth_*", "mlx_lm_version", "for_llm_compressor", "transformers.js_config", "is_llama_config", "linear_impl_type"}},
	{"every tensor says how it is stored", []string{"dtype", "torch_dtype", "quantization", "quantization_config", "params_dtype", "compression_config"}},
	{"training alone", []string{"*dropout", "*_dropout_rate", "*_dropout_prob", "dropout_*", "*pdrop", "initializer_*", "init_std", "*_init_std", "*_init_scheme",
		"router_aux_loss_coef", "aux_loss_alpha", "seq_aux", "output_router_logits", "router_z_loss_coef", "z_loss_*", "gradient_checkpointing", "use_gradient_checkpointing",
		"router_jitter_noise", "input_jitter_noise", "rescale_prenorm_residual", "time_step_floor", "time_step_init_scheme", "init_method", "*_init_scale", "*_xavier_init", "ignore_index", "load_balance_coeff", "label_smoothing"}},
	{"what a call gives back, or keeps", []string{"use_cache", "return_dict", "use_return_dict", "output_hidden_states", "output_attentions", "torchscript", "use_bfloat16",
		"is_encoder_decoder", "is_decoder", "add_cross_attention", "cross_attention_hidden_size", "tie_encoder_decoder", "chunk_size_feed_forward", "pruned_heads",
		"tf_legacy_loss", "return_unused_kwargs", "keys_to_ignore_at_inference", "cache_implementation", "max_cache_length"}},
	{"tokens with a name: which ones end a reply is read apart, the rest is the tokenizer's", []string{"*_token_id", "*_token_ids", "*_token_index", "*_token_idx", "*_id", "sep_token", "pad_token"}},
	{"sampling, which generation_config.json recommends", []string{"temperature", "top_p", "top_k", "min_p", "typical_p", "repetition_penalty", "length_penalty", "do_sample",
		"num_beams", "num_beam_groups", "diversity_penalty", "max_length", "min_length", "max_new_tokens", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
		"early_stopping", "bad_words_ids", "num_return_sequences", "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens",
		"output_scores", "return_dict_in_generate", "prefix", "use_cache_*"}},
	{"which of several ways of computing the same", []string{"_attn_implementation*", "attn_implementation", "_experts_implementation*", "use_flash_attn", "flash_attn_*",
		"use_flash_attention*", "disable_flash_attention", "pretraining_tp", "ep_size", "use_mamba_kernels", "use_mambapy", "use_associative_scan", "chunk_size", "mamba_chunk_size", "use_fused_*", "fuse_*",
		"use_kernels", "use_liger_*", "tp_plan", "base_model_*_plan"}},
	{"float32 here, whatever it says", []string{"residual_in_fp32", "fp32_residual_connection", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "reorder_and_upcast_attn",
		"mamba_ssm_dtype", "*_upcast", "use_fp32_*", "router_dtype", "moe_router_dtype", "head_dtype"}},
	{"the parts that see and hear are not read", []string{"vision_config", "audio_config", "video_config", "vision_feature_*", "vision_*_token", "image_*", "video_*", "audio_*", "mm_*",
		"multimodal_projector_*", "projector_*", "projection_hidden_size", "projection_layer_norm_eps", "spatial_merge_size", "use_image_*", "vision_start_*", "vision_end_*", "boi_*", "eoi_*", "boa_*", "eoa_*", "media_placeholder_*",
		"vision_soft_tokens_per_image", "audio_soft_tokens_per_image", "downsample_factor", "encoder_patch_size", "max_image_*", "min_image_*", "tile_size", "max_tiles", "min_tiles",
		"max_num_patches", "max_pixels_*", "pixel_*", "use_thumbnail", "use_unified_vision_chunk", "do_image_splitting"}},
	{"a bias is added where the folder has one", []string{"attention_bias", "mlp_bias", "qkv_bias", "attention_out_bias", "attention_in_bias", "use_qkv_bias", "add_qkv_bias", "lm_head_bias"}},
	{"a position of text is the same on every axis", []string{"mrope_section", "mrope_interleaved"}},
	{"other names of how long a text may be", []string{"n_ctx", "max_sequence_length", "max_seq_len", "seq_length"}},
	{"read apart, for models that embed or rank", []string{"sentence_transformers", "sbert_ce_default_activation_function"}},
	{"heads that classify are not read", []string{"summary_*"}},
	{"layers that predict further tokens are left out", []string{"num_nextn_predict_layers", "mtp_*", "num_mtp_*", "_num_mtp_*", "use_mtp", "mtp"}},
}

// harmlessKeys are HarmlessKeys by name, and those with a star.
var harmlessKeys = sync.OnceValues(func() (names map[string]bool, stars []string) {
	names = map[string]bool{}
	for _, h := range HarmlessKeys {
		for _, key := range h.Keys {
			if strings.Contains(key, "*") {
				stars = append(stars, key)
			} else {
				names[key] = true
			}
		}
	}
	return names, stars
})

// harmless reports a key that changes no number.
func harmless(key string) bool {
	last := key[strings.LastIndexByte(key, '.')+1:]
	names, stars := harmlessKeys()
	return names[last] || names[key] || slices.ContainsFunc(stars, func(star string) bool {
		like, _ := path.Match(star, last)
		return like
	})
}

// expected maps keys that change numbers to the values, as JSON, that suit an architecture which does not read the key.
var expected = map[string][]string{
	"hidden_act":             {`"silu"`, `"swish"`},
	"use_sliding_window":     {"false"},
	"use_qk_norm":            {"false"},
	"qk_layernorm":           {"false"},
	"attn_logit_softcapping": {},
	"alibi":                  {"false"},
	"use_mrope":              {"false"},
	"use_rmsnorm":            {"true"},
	"normalization_function": {`"rmsnorm"`},
	"use_rotary_pos_emb":     {"true"},
	"use_pos_enc":            {"true"},
	"scale_attn_weights":     {"true"},
	"rope_interleaved":       {"false"},
	"use_cla":                {"false"},
	"norm_softmax":           {"false"},

	"using_split_qkv_in_self_attention": {"false"},

	"use_bidirectional_attention": {"false"}, // read for a model that embeds

	"per_layer_config": {"{}"},
}
