"""Logits of tiny models with formula weights, from mlx-lm with float32 activations.

run: python tools/golden/model.py internal/model/testdata [names | beginning of a case's name ...]
"""
import copy
import json
import re
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten, tree_map
from mlx_lm.models import bitnet
from mlx_lm.models.cache import ChunkedKVCache, KVCache, make_prompt_cache
from mlx_lm.utils import _get_classes, load_model

import pins
import synthetic

mx.set_default_device(mx.cpu)
bitnet.BitLinear = nn.Linear  # theirs is a kernel for Metal; stored codes are internal/model's to read

BASE = {
    "hidden_size": 128, "num_hidden_layers": 3, "intermediate_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6, "vocab_size": 96, "max_position_embeddings": 512, "rope_theta": 10000.0, "tie_word_embeddings": True,
}
Q4 = {"quantization": {"group_size": 64, "bits": 4, "mode": "affine"}}
MIXED = {"quantization": {
    "group_size": 64, "bits": 4, "mode": "affine",
    "model.embed_tokens": {"group_size": 32, "bits": 6},
    "model.layers.0.self_attn.o_proj": False,
    "model.layers.1.mlp.down_proj": {"group_size": 32, "bits": 3},
    "model.layers.2.self_attn.v_proj": {"group_size": 128, "bits": 5},
    "model.layers.2.mlp.gate_proj": {"group_size": 32, "bits": 2},
}}
QWEN3 = {"model_type": "qwen3", "head_dim": 48, "rope_theta": 500.0}
QWEN2 = {"model_type": "qwen2", "rope_theta": 1e6}
LLAMA = {"model_type": "llama", "rope_scaling": {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}
MISTRAL = {"model_type": "mistral", "rope_theta": 300.0, "tie_word_embeddings": False, "head_dim": 32}
SLIDING = {"num_hidden_layers": 4, "sliding_window": 6,
           "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"]}
YARN = {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}}
LONGROPE = {"type": "longrope", "short_factor": [1.0] * 12, "long_factor": [1 + 0.3 * i for i in range(12)]}
PHI3 = {"model_type": "phi3", "partial_rotary_factor": 0.75, "tie_word_embeddings": False, "original_max_position_embeddings": 16,
        "rope_scaling": LONGROPE}
MINISTRAL3 = {"model_type": "ministral3", "head_dim": 48, "tie_word_embeddings": False, "rope_parameters": {
    "rope_theta": 1000.0, "type": "yarn", "factor": 16.0, "original_max_position_embeddings": 8, "beta_fast": 4.0, "beta_slow": 1.0,
    "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.4}}
SMOLLM3 = {"model_type": "smollm3", "num_hidden_layers": 5}
OLMO2 = {"model_type": "olmo2", "tie_word_embeddings": False, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 32}
OLMO3 = OLMO2 | {"model_type": "olmo3", "num_hidden_layers": 4, "sliding_window": 6} | YARN
GRANITE = {"model_type": "granite", "embedding_multiplier": 12.0, "attention_multiplier": 0.05, "residual_multiplier": 0.22, "logits_scaling": 8.0,
           "attention_bias": False, "mlp_bias": False}
QWEN3_MOE = {"model_type": "qwen3_moe", "head_dim": 48, "num_experts": 12, "num_experts_per_tok": 3, "decoder_sparse_step": 1, "mlp_only_layers": [1],
             "moe_intermediate_size": 64, "norm_topk_prob": True}
GEMMA2 = {"model_type": "gemma2", "head_dim": 48, "query_pre_attn_scalar": 40.0, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 2.0}
GEMMA3 = {"model_type": "gemma3_text", "head_dim": 48, "num_hidden_layers": 5, "sliding_window": 6, "sliding_window_pattern": 3, "rope_theta": 5000.0,
          "rope_local_base_freq": 300.0, "query_pre_attn_scalar": 40.0, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
GEMMA4 = {"model_type": "gemma4_text", "head_dim": 48, "global_head_dim": 64, "num_hidden_layers": 7, "sliding_window": 6, "num_kv_shared_layers": 3,
          "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention",
                          "sliding_attention"], "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 96, "final_logit_softcapping": 2.0,
          "use_double_wide_mlp": True}  # theirs is by default, that of transformers is not
GEMMA4_DENSE = GEMMA4 | {"num_hidden_layers": 5, "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
                                                                 "sliding_attention"], "num_kv_shared_layers": 0, "hidden_size_per_layer_input": 0,
                         "use_double_wide_mlp": False, "attention_k_eq_v": True, "num_global_key_value_heads": 1}
GEMMA4_MOE = GEMMA4_DENSE | {"enable_moe_block": True, "num_experts": 12, "top_k_experts": 3, "num_experts_per_tok": 3, "moe_intermediate_size": 64}
# Scores are not divided by anything and norms are around 1 here: with wide heads softmax is so sharp that activations of 8 bits pick other keys.
GEMMA4_Q4 = {"head_dim": 8, "global_head_dim": 16, "num_hidden_layers": 3, "final_logit_softcapping": 30.0, "layer_types": SLIDING["layer_types"][:3],
             "quantization": Q4["quantization"] | {f"model.layers.{i}.router.proj": {"group_size": 64, "bits": 8} for i in range(3)}}
GEMMA3N = {"model_type": "gemma3n_text", "head_dim": 24, "num_hidden_layers": 6, "sliding_window": 6, "num_kv_shared_layers": 2, "rope_local_base_freq": 300.0,
           "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
           "intermediate_size": [192, 160, 192, 192, 224, 192], "activation_sparsity_pattern": [0.95, 0.8, 0.0, 0.0, 0.5, 0.0], "hidden_size_per_layer_input": 32,
           "vocab_size_per_layer_input": 90, "altup_num_inputs": 4, "altup_coef_clip": 120.0, "altup_correct_scale": True, "altup_active_idx": 0, "laurel_rank": 32,
           "final_logit_softcapping": 30.0}
GEMMA3N_Q4 = GEMMA3N | {"head_dim": 8, "hidden_size_per_layer_input": 64, "laurel_rank": 64, "intermediate_size": 192, "activation_sparsity_pattern": None}
GPT_OSS = {"model_type": "gpt_oss", "head_dim": 32, "num_hidden_layers": 4, "sliding_window": 6, "num_local_experts": 6, "num_experts_per_tok": 2,
           "intermediate_size": 96, "tie_word_embeddings": False,
           "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": True}}  # theirs truncates whatever this says
ROUTERS = {f"model.layers.{i}.mlp.router": {"group_size": 64, "bits": 8} for i in range(4)}
MIXTRAL = {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, "tie_word_embeddings": False}
MINIMAX = {"model_type": "minimax", "head_dim": 48, "rotary_dim": 24, "num_local_experts": 12, "num_experts_per_tok": 3, "shared_intermediate_size": 0,
           "intermediate_size": 64, "tie_word_embeddings": False}
OLMOE = {"model_type": "olmoe", "num_experts": 12, "num_experts_per_tok": 3, "intermediate_size": 64, "tie_word_embeddings": False}
QWEN2_MOE = {"model_type": "qwen2_moe", "num_experts": 12, "num_experts_per_tok": 3, "moe_intermediate_size": 64, "shared_expert_intermediate_size": 128,
             "tie_word_embeddings": False}
GLM4_MOE = {"model_type": "glm4_moe", "head_dim": 48, "partial_rotary_factor": 0.5, "n_routed_experts": 12, "n_shared_experts": 2, "num_experts_per_tok": 3,
            "moe_intermediate_size": 64, "first_k_dense_replace": 1, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.5, "norm_topk_prob": True,
            "attention_bias": True, "use_qk_norm": True, "rope_scaling": None, "tie_word_embeddings": False}
DEEPSEEK_V3 = {"model_type": "deepseek_v3", "num_attention_heads": 6, "num_key_value_heads": 6, "q_lora_rank": 64, "kv_lora_rank": 96, "qk_rope_head_dim": 16,
               "qk_nope_head_dim": 32, "v_head_dim": 24, "n_routed_experts": 12, "n_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 64,
               "first_k_dense_replace": 1, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5, "tie_word_embeddings": False, "rope_scaling": {
                   "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}}
DEEPSEEK_Q4 = DEEPSEEK_V3 | {"kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 16, "v_head_dim": 32, "moe_intermediate_size": 128}
DEEPSEEK_V2 = DEEPSEEK_V3 | {"model_type": "deepseek_v2", "topk_method": "group_limited_greedy", "routed_scaling_factor": 16.0, "norm_topk_prob": False}
DEEPSEEK_V2Q = {k: DEEPSEEK_V2[k] for k in ("model_type", "topk_method", "routed_scaling_factor", "norm_topk_prob")}
GLM4_LITE = DEEPSEEK_Q4 | {"model_type": "glm4_moe_lite", "num_attention_heads": 5, "num_key_value_heads": 5, "rms_norm_eps": 1e-5, "rope_theta": 1e6, "rope_scaling": None,
                           "routed_scaling_factor": 1.8, "partial_rotary_factor": 1.0, "v_head_dim": 64}
GLM4 = {"model_type": "glm4", "head_dim": 48, "attention_bias": True, "partial_rotary_factor": 0.5, "tie_word_embeddings": False}
EXAONE = {"model_type": "exaone", "num_layers": 3, "layer_norm_epsilon": 1e-5, "head_dim": 32}
EXAONE4 = {"model_type": "exaone4", "head_dim": 48, "num_hidden_layers": 5, "sliding_window": 6, "sliding_window_pattern": "LLG",
           "rope_scaling": LLAMA["rope_scaling"]}
ERNIE_MOE = {"model_type": "ernie4_5_moe", "use_bias": True, "moe_num_experts": 12, "moe_k": 3, "moe_intermediate_size": 64, "moe_num_shared_experts": 2,
             "moe_layer_start_index": 1, "num_experts_per_tok": 3}
DOTS1 = {"model_type": "dots1", "head_dim": 48, "n_routed_experts": 12, "n_shared_experts": 2, "num_experts_per_tok": 3, "moe_intermediate_size": 64,
         "first_k_dense_replace": 1, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5, "norm_topk_prob": True, "scoring_func": "noaux_tc",
         "tie_word_embeddings": False}
DEEPSEEK = {"model_type": "deepseek", "n_routed_experts": 12, "n_shared_experts": 2, "num_experts_per_tok": 3, "moe_intermediate_size": 64,
            "first_k_dense_replace": 1, "tie_word_embeddings": False}
BAILING = {"model_type": "bailing_moe", "num_experts": 12, "num_shared_experts": 2, "norm_topk_prob": True, "num_experts_per_tok": 3,
           "moe_intermediate_size": 64, "first_k_dense_replace": 1, "tie_word_embeddings": False}
MINICPM = {"model_type": "minicpm", "dim_model_base": 32, "scale_depth": 1.4, "scale_emb": 12.0}
MINICPM3 = MINICPM | {"model_type": "minicpm3", "q_lora_rank": 64, "kv_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "rope_scaling": {
    "type": "longrope", "original_max_position_embeddings": 16, "short_factor": [1.0] * 8, "long_factor": [1 + 0.3 * i for i in range(8)]}}
YOUTU = {"model_type": "youtu_llm", "q_lora_rank": 64, "kv_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 24,
         "attention_bias": True, "mlp_bias": True, "rope_scaling": {"type": "linear", "factor": 2.0}}
COHERE = {"model_type": "cohere", "layer_norm_eps": 1e-5, "logit_scale": 0.25}
COHERE2 = COHERE | {"model_type": "cohere2", "head_dim": 32, "num_hidden_layers": 5, "sliding_window": 6, "sliding_window_pattern": 3}
STABLELM = {"model_type": "stablelm", "layer_norm_eps": 1e-5, "use_qkv_bias": True, "partial_rotary_factor": 0.25, "tie_word_embeddings": False}
NEMOTRON = {"model_type": "nemotron", "norm_eps": 1e-5, "hidden_act": "relu2"}
MISTRAL4 = {k: v for k, v in DEEPSEEK_V3.items() if k != "rope_scaling"} | {
    "model_type": "mistral4", "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 1.0,
    "rope_parameters": MINISTRAL3["rope_parameters"]}
EXAONE_MOE = {"model_type": "exaone_moe", "head_dim": 48, "num_experts": 12, "num_shared_experts": 2, "num_experts_per_tok": 3, "moe_intermediate_size": 64,
              "is_moe_layer": [False, True, True, True], "n_group": 4, "topk_group": 2} | SLIDING
LLAMA4 = {"model_type": "llama4_text", "head_dim": 48, "num_hidden_layers": 5, "attention_bias": False, "attention_chunk_size": 8, "intermediate_size": 64,
          "interleave_moe_layer_step": 2, "intermediate_size_mlp": 128, "num_local_experts": 6, "num_experts_per_tok": 1, "rope_scaling": LLAMA["rope_scaling"],
          "use_qk_norm": True, "floor_scale": 5, "attn_scale": 0.3, "tie_word_embeddings": False}
LLAMA4_TEXT = {"model_type": "llama4_text", "head_dim": 48, "intermediate_size": 64, "intermediate_size_mlp": 192, "use_qk_norm": True, "no_rope_layers": [1, 1, 1],
               "moe_layers": [], "attn_temperature_tuning": False, "layer_types": ["full_attention"] * 3, "tie_word_embeddings": False}  # what theirs takes for granted
AFMOE = {"model_type": "afmoe", "head_dim": 48, "num_experts": 12, "num_shared_experts": 1, "num_experts_per_tok": 3, "moe_intermediate_size": 64,
         "num_dense_layers": 1, "mup_enabled": True, "route_scale": 2.826,  # which theirs takes for granted
         "n_group": 4, "topk_group": 2, "tie_word_embeddings": False} | SLIDING
NAS = {"model_type": "nemotron-nas", "num_hidden_layers": 5, "rope_scaling": LLAMA["rope_scaling"], "block_configs": [
    {"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 1.3}}, {"attention": {"no_op": True}, "ffn": {"ffn_mult": 4.0}},
    {"attention": {"replace_with_linear": True}, "ffn": {"no_op": True}}, {"attention": {"n_heads_in_group": 4}, "ffn": {"replace_with_linear": True}},
    {"attention": {"n_heads_in_group": 1}, "ffn": {"ffn_mult": 0.5}}]}
# Theirs does this activation and an MLP four times as wide whatever the config says, which counts in transformers.
NEOX = {"model_type": "gpt_neox", "num_key_value_heads": 4, "layer_norm_eps": 1e-5, "rotary_emb_base": 500, "rotary_pct": 0.25, "tie_word_embeddings": False,
        "hidden_act": "gelu_new", "intermediate_size": 512}
GATES = {f"model.layers.{i}.mlp.gate": False for i in range(3)}  # this family's are no modules that mlx-lm quantises

QWEN3_NEXT = {"model_type": "qwen3_next", "head_dim": 48, "num_hidden_layers": 6, "full_attention_interval": 3, "partial_rotary_factor": 0.25,
              "linear_num_value_heads": 6, "linear_num_key_heads": 2, "linear_key_head_dim": 32, "linear_value_head_dim": 24, "linear_conv_kernel_dim": 4,
              "num_experts": 12, "num_experts_per_tok": 3, "decoder_sparse_step": 1, "shared_expert_intermediate_size": 64, "mlp_only_layers": [1],
              "moe_intermediate_size": 64, "norm_topk_prob": True, "tie_word_embeddings": False}
WIDE = {"linear_value_head_dim": 32}  # the delta layers' outputs divide into groups of 64
QWEN3_5 = {"model_type": "qwen3_5_text", "head_dim": 48, "num_hidden_layers": 8, "full_attention_interval": 4, "rope_theta": 77.0,
           "linear_num_value_heads": 6, "linear_num_key_heads": 3, "linear_key_head_dim": 32, "linear_value_head_dim": 24, "linear_conv_kernel_dim": 4,
           "rope_parameters": {"rope_type": "default", "mrope_section": [2, 2, 2], "mrope_interleaved": True, "rope_theta": 500.0, "partial_rotary_factor": 0.25}}
QWEN3_5_MOE = QWEN3_5 | {"model_type": "qwen3_5_moe_text", "num_hidden_layers": 4, "num_experts": 12, "num_experts_per_tok": 3, "moe_intermediate_size": 64,
                         "shared_expert_intermediate_size": 128, "tie_word_embeddings": False}
NVFP4 = {"quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4"}}
GATED = {f"language_model.model.layers.{i}.mlp.{g}": {"group_size": 64, "bits": 8} for i in range(4) for g in ("gate", "shared_expert_gate")}
LFM2 = {"model_type": "lfm2", "num_hidden_layers": 5, "norm_eps": 1e-5, "conv_bias": False, "conv_L_cache": 3, "block_dim": 128, "block_ff_dim": 256,
        "block_multiple_of": 32, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": True, "rope_theta": 500.0,
        "layer_types": ["conv", "conv", "full_attention", "conv", "full_attention"]}
LFM2_MOE = {"model_type": "lfm2_moe", "num_hidden_layers": 4, "norm_eps": 1e-5, "conv_bias": False, "conv_L_cache": 3, "num_experts": 12, "num_experts_per_tok": 3,
            "moe_intermediate_size": 64, "norm_topk_prob": True, "use_expert_bias": True, "num_dense_layers": 1, "rope_theta": 500.0, "full_attn_idxs": [1, 3]}
MAMBA2 = {"model_type": "mamba2", "num_hidden_layers": 3, "num_heads": 8, "head_dim": 24, "state_size": 16, "n_groups": 2, "conv_kernel": 4, "use_bias": True,
          "use_conv_bias": True, "layer_norm_epsilon": 1e-5, "time_step_limit": [0.0, 1e9], "time_step_rank": "auto"}
NEMOTRON_H = {"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*-M", "layer_norm_epsilon": 1e-5, "attention_bias": False, "mlp_bias": False,
              "use_bias": False, "mamba_num_heads": 8, "mamba_head_dim": 24, "mamba_proj_bias": False, "ssm_state_size": 16, "conv_kernel": 4, "n_groups": 2,
              "use_conv_bias": True, "head_dim": 48, "tie_word_embeddings": False}
NEMOTRON_MOE = NEMOTRON_H | {"hybrid_override_pattern": ["M", "E", "*", "E"], "n_routed_experts": 12, "n_shared_experts": 1, "num_experts_per_tok": 3,
                             "moe_intermediate_size": 64, "moe_shared_expert_intermediate_size": 128, "n_group": 1, "topk_group": 1, "norm_topk_prob": True,
                             "routed_scaling_factor": 2.5}
GRANITE_H = GRANITE | {
    "model_type": "granitemoehybrid", "num_hidden_layers": 4, "layer_types": ["mamba", "attention", "mamba", "mamba"], "mamba_n_heads": 8, "mamba_d_head": 24,
    "mamba_proj_bias": False, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_n_groups": 1, "mamba_conv_bias": True, "position_embedding_type": "nope"}
GRANITE_HMOE = GRANITE_H | {"num_local_experts": 12, "num_experts_per_tok": 3, "intermediate_size": 64, "shared_intermediate_size": 128}
FALCON_H1 = {"model_type": "falcon_h1", "head_dim": 48, "mamba_d_ssm": 192, "mamba_n_heads": 8, "mamba_d_head": 24, "mamba_d_state": 16, "mamba_d_conv": 4,
             "mamba_n_groups": 2}
MAMBA = {"model_type": "mamba", "state_size": 16, "conv_kernel": 4, "use_bias": False, "use_conv_bias": True, "time_step_rank": 8, "intermediate_size": 232}
JAMBA = {"model_type": "jamba", "num_hidden_layers": 5, "attn_layer_offset": 1, "attn_layer_period": 3, "expert_layer_offset": 1, "expert_layer_period": 2,
         "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_expand": 2, "num_experts": 6, "num_experts_per_tok": 2}
PLAMO2 = {"model_type": "plamo2", "num_hidden_layers": 4, "hidden_size_per_head": 24, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_num_heads": 8, "mamba_step": 2}
KIMI_LINEAR = {"model_type": "kimi_linear", "num_hidden_layers": 5, "head_dim": 32, "kv_lora_rank": 96, "qk_rope_head_dim": 16, "qk_nope_head_dim": 32,
               "v_head_dim": 24, "model_max_length": 512, "num_experts": 12, "num_experts_per_token": 3, "num_experts_per_tok": 3, "moe_intermediate_size": 64,
               "num_shared_experts": 1, "first_k_dense_replace": 1, "num_expert_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5,
               "tie_word_embeddings": False, "linear_attn_config": {"kda_layers": [1, 2, 4, 5], "full_attn_layers": [3], "num_heads": 4, "head_dim": 24,
                                                                    "short_conv_kernel_size": 4}}
BAILING_LINEAR = {"model_type": "bailing_moe_linear", "num_hidden_layers": 5, "num_attention_heads": 6, "num_key_value_heads": 2, "hidden_size": 144,
                  "num_experts": 12, "num_shared_experts": 1, "norm_topk_prob": True, "num_experts_per_tok": 3, "moe_intermediate_size": 64, "first_k_dense_replace": 1,
                  "layer_group_size": 4, "group_norm_size": 3, "use_qk_norm": True, "score_function": "sigmoid", "moe_router_enable_expert_bias": True,
                  "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5, "partial_rotary_factor": 0.5, "tie_word_embeddings": False}
GPT2 = {"model_type": "gpt2", "n_ctx": 512, "n_embd": 128, "n_head": 4, "n_layer": 3, "n_positions": 512, "layer_norm_epsilon": 1e-5, "num_key_value_heads": 4}
# Theirs does this activation whatever the config says, which counts in transformers.
BIGCODE = {"model_type": "gpt_bigcode", "n_embd": 128, "n_head": 4, "n_layer": 3, "n_inner": 320, "n_positions": 512, "layer_norm_epsilon": 1e-5,
           "activation_function": "gelu"}
GPTJ = {"model_type": "gptj", "n_embd": 128, "n_head": 4, "n_layer": 3, "n_positions": 512, "rotary_dim": 16, "tie_word_embeddings": False}
MIMO_V2 = {"model_type": "mimo_v2_flash", "num_hidden_layers": 4, "hybrid_layer_pattern": [0, 1, 1, 0], "moe_layer_freq": [0, 1, 1, 1], "n_shared_experts": None,
           "n_routed_experts": 12, "num_experts_per_tok": 3, "moe_intermediate_size": 64, "add_swa_attention_sink_bias": True, "add_full_attention_sink_bias": False,
           "sliding_window_size": 6, "routed_scaling_factor": None, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True, "n_group": 1,
           "topk_group": 1, "layernorm_epsilon": 1e-5, "swa_rope_theta": 300.0, "swa_num_attention_heads": 6, "swa_num_key_value_heads": 3, "head_dim": 48,
           "v_head_dim": 32, "swa_head_dim": 40, "swa_v_head_dim": 24, "partial_rotary_factor": 0.25, "attention_value_scale": 0.7, "tie_word_embeddings": False}
STEP3 = {"model_type": "step3p5", "num_hidden_layers": 4, "num_attention_groups": 2, "head_dim": 48, "sliding_window": 6, "layer_types": SLIDING["layer_types"],
         "rope_theta": [500.0, 10000.0, 300.0, 300.0], "partial_rotary_factors": [0.5, 1.0, 1.0, 0.5], "attention_other_setting": {
             "num_attention_heads": 6, "num_attention_groups": 3}, "moe_num_experts": 12, "moe_top_k": 3, "moe_intermediate_size": 64, "share_expert_dim": 96,
         "num_experts_per_tok": 3, "moe_layers_enum": "1,3", "moe_router_scaling_factor": 2.5, "swiglu_limits": [0.0, 0.5, 0, 0.3], "swiglu_limits_shared": [0.3, 0.0, 0.4, 0.2],
         "yarn_only_types": ["full_attention"], "rope_scaling": LLAMA["rope_scaling"], "tie_word_embeddings": False}
MELLUM = {"model_type": "mellum", "head_dim": 48, "num_experts": 12, "num_experts_per_tok": 3, "moe_intermediate_size": 64, "norm_topk_prob": True,
          "tie_word_embeddings": False, "rope_parameters": {"full_attention": YARN["rope_scaling"] | {"rope_type": "yarn", "rope_theta": 500.0},
                                                            "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}}} | SLIDING
LAGUNA = {"model_type": "laguna", "head_dim": 48, "num_experts": 12, "num_experts_per_tok": 3, "moe_intermediate_size": 64, "shared_expert_intermediate_size": 96,
          "moe_routed_scaling_factor": 2.5, "num_attention_heads_per_layer": [4, 6, 4, 2], "tie_word_embeddings": False, "rope_parameters": {
              "full_attention": {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 32, "partial_rotary_factor": 0.5},
              "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}}} | SLIDING


def qwen3_5(text, **more):
    return {"model_type": text["model_type"].removesuffix("_text"), "text_config": BASE | text} | {k: text[k] for k in ["tie_word_embeddings"] if k in text} | more


CASES = {  # file: (config, dtype of floats, scales and biases)
    "qwen3/f32": (QWEN3, "F32"),
    "qwen3/bf16": (QWEN3 | {"tie_word_embeddings": False}, "BF16"),
    "qwen3/4bit": (QWEN3 | Q4, "BF16"),
    "qwen3/8bit": (QWEN3 | {"tie_word_embeddings": False, "quantization": {"group_size": 32, "bits": 8}}, "BF16"),
    "qwen3/mixed": (QWEN3 | MIXED, "BF16"),
    "qwen3/mxfp4": (QWEN3 | {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}, "BF16"),
    "qwen2/mxfp8": (QWEN2 | {"quantization": {"group_size": 32, "bits": 8, "mode": "mxfp8"}}, "BF16"),
    "llama/nvfp4": (LLAMA | {"quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4"}}, "BF16"),
    "qwen2/f32": (QWEN2 | YARN, "F32"),
    "qwen2/bf16": (QWEN2, "BF16"),
    "qwen2/4bit": (QWEN2 | Q4, "BF16"),
    "llama/f32": (LLAMA | {"attention_bias": True, "mlp_bias": True}, "F32"),
    "llama/bf16": (LLAMA | {"tie_word_embeddings": False}, "BF16"),
    "llama/4bit": (LLAMA | Q4, "BF16"),
    "llama/f16": ({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2.0}, "rope_traditional": True}, "F16"),
    "mistral/f32": (MISTRAL | SLIDING, "F32"),
    "mistral/bf16": (MISTRAL, "BF16"),
    "mistral/long": (MISTRAL | SLIDING | {"sliding_window": 70}, "BF16"),  # windows and cuts across pages of 64 positions
    "mistral/4bit": (MISTRAL | SLIDING | Q4, "BF16"),
    "llama/dynamic": ({"model_type": "llama", "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "BF16"),
    "llama/longrope": ({"model_type": "llama", "head_dim": 24, "rope_scaling": LONGROPE | {"original_max_position_embeddings": 16}}, "BF16"),
    "llama/yarn": ({"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8, "beta_fast": 8,
                    "beta_slow": 2, "mscale": 0.7, "mscale_all_dim": 0.4}}, "BF16"),
    "iquestcoder/bf16": ({"model_type": "iquestcoder"}, "BF16"),
    "xverse/bf16": ({"model_type": "xverse", "tie_word_embeddings": False}, "BF16"),
    "ministral3/f32": (MINISTRAL3 | SLIDING, "F32"),
    "ministral3/bf16": (MINISTRAL3 | {"tie_word_embeddings": True}, "BF16"),
    "ministral3/4bit": (MINISTRAL3 | Q4, "BF16"),
    # theirs looks at tie_word_embeddings in text_config alone
    "mistral3/f32": ({"model_type": "mistral3", "tie_word_embeddings": False, "text_config": BASE | MINISTRAL3 | SLIDING}, "F32"),
    "mistral3/4bit": ({"model_type": "mistral3", "tie_word_embeddings": False, "text_config": BASE | MINISTRAL3} | Q4, "BF16"),
    "mistral3/llama": ({"model_type": "mistral3", "tie_word_embeddings": False, "text_config": BASE | MISTRAL}, "BF16"),
    "llava/bf16": ({"model_type": "llava", "tie_word_embeddings": False, "text_config": BASE | MISTRAL}, "BF16"),
    "smollm3/f32": (SMOLLM3, "F32"),
    "smollm3/bf16": (SMOLLM3 | {"no_rope_layers": [0, 1, 1, 0, 1], "tie_word_embeddings": False}, "BF16"),
    "smollm3/4bit": (SMOLLM3 | Q4, "BF16"),
    "phi3/f32": (PHI3, "F32"),
    "phi3/bf16": (PHI3 | {"rope_scaling": None, "partial_rotary_factor": 1.0}, "BF16"),
    "phi3/linear": (PHI3 | {"rope_scaling": {"type": "linear", "factor": 2.0, "long_factor": []}, "tie_word_embeddings": True}, "BF16"),
    "phi3/4bit": (PHI3 | {"original_max_position_embeddings": 256} | Q4, "BF16"),
    "olmo2/f32": (OLMO2, "F32"),
    "olmo2/bf16": (OLMO2 | {"tie_word_embeddings": True} | YARN, "BF16"),
    "olmo2/4bit": (OLMO2 | Q4, "BF16"),
    "olmo3/f32": (OLMO3, "F32"),
    "olmo3/long": (OLMO3 | {"sliding_window": 70}, "BF16"),
    "olmo3/4bit": (OLMO3 | Q4, "BF16"),
    "granite/f32": (GRANITE | {"attention_bias": True, "mlp_bias": True}, "F32"),
    "granite/bf16": (GRANITE | {"tie_word_embeddings": False}, "BF16"),
    "granite/4bit": (GRANITE | Q4, "BF16"),
    "gemma2/f32": (GEMMA2, "F32"),
    "gemma2/bf16": (GEMMA2 | {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}, "BF16"),
    "gemma2/4bit": (GEMMA2 | Q4, "BF16"),
    "gemma3_text/f32": (GEMMA3, "F32"),
    "gemma3_text/bf16": (GEMMA3 | {"rope_scaling": None}, "BF16"),
    "gemma3_text/long": (GEMMA3 | {"sliding_window": 70}, "BF16"),
    "gemma3_text/4bit": (GEMMA3 | Q4, "BF16"),
    "gemma3_text/mixed": (GEMMA3 | MIXED, "BF16"),
    "gemma3/f32": ({"model_type": "gemma3", "text_config": BASE | GEMMA3}, "F32"),
    "gemma3/4bit": ({"model_type": "gemma3", "text_config": BASE | GEMMA3} | Q4, "BF16"),
    "gemma4_text/f32": (GEMMA4, "F32"),
    "gemma4_text/bf16": (GEMMA4 | {"tie_word_embeddings": False, "use_double_wide_mlp": False, "final_logit_softcapping": None, "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 5000.0, "factor": 4.0},
        "sliding_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 300.0}}}, "BF16"),
    "gemma4_text/long": (GEMMA4 | {"sliding_window": 70}, "BF16"),
    "gemma4_text/dense": (GEMMA4_DENSE, "BF16"),
    "gemma4_text/experts": (GEMMA4_MOE, "BF16"),
    "gemma4_text/4bit": (GEMMA4 | {"hidden_size_per_layer_input": 64} | GEMMA4_Q4 | {"num_kv_shared_layers": 1}, "BF16"),
    "gemma4_text/experts4bit": (GEMMA4_MOE | GEMMA4_Q4, "BF16"),
    "gemma4/f32": ({"model_type": "gemma4", "vocab_size": 96, "text_config": BASE | GEMMA4_MOE}, "F32"),
    "gemma4/4bit": ({"model_type": "gemma4", "vocab_size": 96, "text_config": BASE | GEMMA4 | {"hidden_size_per_layer_input": 64} | GEMMA4_Q4 | {"num_kv_shared_layers": 1, "quantization": None}} | Q4, "BF16"),
    "gemma4_unified/bf16": ({"model_type": "gemma4_unified", "vocab_size": 96, "text_config": BASE | GEMMA4_DENSE}, "BF16"),
    "gemma3n/f32": ({"model_type": "gemma3n", "text_config": BASE | GEMMA3N}, "F32"),
    "gemma3n/bf16": ({"model_type": "gemma3n", "text_config": BASE | GEMMA3N | {"altup_num_inputs": 3, "altup_active_idx": 1, "altup_correct_scale": False,
                      "altup_coef_clip": None, "num_kv_shared_layers": 0, "intermediate_size": 192}}, "BF16"),
    "gemma3n/long": ({"model_type": "gemma3n", "text_config": BASE | GEMMA3N | {"sliding_window": 70}}, "BF16"),
    "gemma3n/4bit": ({"model_type": "gemma3n", "text_config": BASE | GEMMA3N_Q4} | Q4, "BF16"),
    "gpt_oss/f32": (GPT_OSS, "F32"),
    "gpt_oss/bf16": (GPT_OSS | {"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]}, "BF16"),
    "gpt_oss/long": (GPT_OSS | {"sliding_window": 70}, "BF16"),
    "gpt_oss/4bit": (GPT_OSS | {"intermediate_size": 128} | {"quantization": Q4["quantization"] | ROUTERS}, "BF16"),
    "gpt_oss/mxfp4": (GPT_OSS | {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"} | ROUTERS}, "BF16"),
    "gemma/f32": ({"model_type": "gemma", "hidden_act": "gelu_python", "head_dim": 48}, "F32"),  # theirs is the exact gelu whatever this says; for transformers gelu is the other one
    "gemma/4bit": ({"model_type": "gemma", "hidden_act": "gelu_python", "head_dim": 48} | Q4, "BF16"),
    "seed_oss/f32": ({"model_type": "seed_oss", "head_dim": 48, "attention_bias": True}, "F32"),
    "seed_oss/4bit": ({"model_type": "seed_oss", "head_dim": 48, "attention_bias": True, "attention_out_bias": True, "tie_word_embeddings": False} | Q4, "BF16"),
    "mixtral/f32": (MIXTRAL, "F32"),
    "mixtral/4bit": (MIXTRAL | Q4, "BF16"),
    "minimax/f32": (MINIMAX, "F32"),
    "minimax/bf16": (MINIMAX | {"use_qk_norm": False, "rotary_dim": 48}, "BF16"),
    "minimax/4bit": (MINIMAX | Q4, "BF16"),
    "minimax_m2/4bit": (MINIMAX | {"model_type": "minimax_m2"} | Q4, "BF16"),
    "olmoe/f32": (OLMOE, "F32"),
    "olmoe/4bit": (OLMOE | {"norm_topk_prob": True} | Q4, "BF16"),
    "qwen2_moe/f32": (QWEN2_MOE, "F32"),
    "qwen2_moe/4bit": (QWEN2_MOE | Q4, "BF16"),
    "glm4_moe/f32": (GLM4_MOE, "F32"),
    "glm4_moe/bf16": (GLM4_MOE | {"n_group": 1, "topk_group": 1, "norm_topk_prob": False, "use_qk_norm": False, "attention_bias": False}, "BF16"),
    "glm4_moe/4bit": (GLM4_MOE | {"quantization": Q4["quantization"] | GATES}, "BF16"),
    "deepseek_v3/f32": (DEEPSEEK_V3, "F32"),
    "deepseek_v3/bf16": (DEEPSEEK_V3 | {"q_lora_rank": None, "attention_bias": True, "rope_scaling": None, "n_group": 1, "topk_group": 1, "moe_layer_freq": 2,
                         "norm_topk_prob": False, "first_k_dense_replace": 0, "n_shared_experts": None}, "BF16"),
    "deepseek_v3/long": (DEEPSEEK_V3 | {"n_routed_experts": None}, "BF16"),
    "deepseek_v3/4bit": (DEEPSEEK_Q4 | {"quantization": Q4["quantization"] | GATES}, "BF16"),
    "deepseek_v3/8bit": (DEEPSEEK_Q4 | {"quantization": {"group_size": 32, "bits": 8} | GATES}, "BF16"),
    "deepseek_v3/mxfp4": (DEEPSEEK_Q4 | {"num_hidden_layers": 2, "rope_scaling": None, "quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"} | GATES}, "BF16"),
    "deepseek_v3/mixed": (DEEPSEEK_Q4 | {"quantization": Q4["quantization"] | GATES | {"model.layers.1.self_attn.embed_q": {"group_size": 32, "bits": 6},
                          "model.layers.2.self_attn.unembed_out": {"group_size": 128, "bits": 8}, "model.layers.0.self_attn.embed_q": False}}, "BF16"),
    "deepseek_v3/kv_b": (DEEPSEEK_V3, "F32"),
    "deepseek_v3/kv_b_4bit": (DEEPSEEK_Q4 | {"quantization": Q4["quantization"] | GATES}, "BF16"),
    "deepseek_v3/kv_b_8bit": (DEEPSEEK_Q4 | {"quantization": {"group_size": 32, "bits": 8} | GATES}, "F16"),
    "kimi_k2/4bit": (DEEPSEEK_Q4 | {"model_type": "kimi_k2", "n_group": 1, "topk_group": 1, "num_hidden_layers": 2, "quantization": Q4["quantization"] | GATES}, "BF16"),
    "kimi_k25/4bit": ({"model_type": "kimi_k25", "text_config": BASE | DEEPSEEK_Q4, "quantization": Q4["quantization"] | {"language_model." + g: False for g in GATES}}, "BF16"),
    "kimi_vl/bf16": ({"model_type": "kimi_vl", "text_config": BASE | DEEPSEEK_V3 | {"q_lora_rank": None, "rope_scaling": None, "num_hidden_layers": 2}}, "BF16"),
    "joyai_llm_flash/bf16": (DEEPSEEK_V3 | {"model_type": "joyai_llm_flash", "num_hidden_layers": 2}, "BF16"),
    "deepseek_v2/f32": (DEEPSEEK_V2, "F32"),
    "deepseek_v2/bf16": (DEEPSEEK_V2 | {"q_lora_rank": None, "topk_method": "greedy", "n_group": 1, "topk_group": 1, "n_shared_experts": 2}, "BF16"),
    "deepseek_v2/4bit": (DEEPSEEK_Q4 | DEEPSEEK_V2Q | {"quantization": Q4["quantization"] | GATES}, "BF16"),
    "deepseek_v2/8bit": (DEEPSEEK_Q4 | DEEPSEEK_V2Q | {"q_lora_rank": None, "quantization": {"group_size": 32, "bits": 8} | GATES}, "BF16"),
    "glm4_moe_lite/f32": (GLM4_LITE, "F32"),
    "glm4_moe_lite/bf16": (GLM4_LITE | {"q_lora_rank": None, "attention_bias": True, "rope_scaling": DEEPSEEK_V3["rope_scaling"], "n_group": 1, "topk_group": 1}, "BF16"),
    "glm4_moe_lite/4bit": (GLM4_LITE | {"quantization": Q4["quantization"] | GATES}, "BF16"),
    "glm4_moe_lite/8bit": (GLM4_LITE | {"quantization": {"group_size": 32, "bits": 8} | GATES}, "BF16"),
    "glm/f32": ({"model_type": "glm", "partial_rotary_factor": 1.0, "head_dim": 48, "attention_bias": True}, "F32"),
    "glm/4bit": ({"model_type": "glm", "partial_rotary_factor": 1.0, "head_dim": 32, "tie_word_embeddings": False} | Q4, "BF16"),
    "glm4/f32": (GLM4, "F32"),
    "glm4/4bit": (GLM4 | {"attention_bias": False, "head_dim": 32} | Q4, "BF16"),
    "exaone/f32": (EXAONE | {"attention_bias": True, "mlp_bias": True}, "F32"),
    "exaone/4bit": (EXAONE | {"tie_word_embeddings": False} | Q4, "BF16"),
    "exaone4/f32": (EXAONE4, "F32"),
    "exaone4/bf16": (EXAONE4 | {"sliding_window_pattern": None, "sliding_window": None}, "BF16"),
    "exaone4/4bit": (EXAONE4 | {"head_dim": 32, "tie_word_embeddings": False} | Q4, "BF16"),
    "ernie4_5/f32": ({"model_type": "ernie4_5", "head_dim": 48, "use_bias": True}, "F32"),
    "ernie4_5/4bit": ({"model_type": "ernie4_5", "head_dim": 32, "use_bias": False, "tie_word_embeddings": False} | Q4, "BF16"),
    "ernie4_5_moe/f32": (ERNIE_MOE, "F32"),
    "ernie4_5_moe/bf16": (ERNIE_MOE | {"use_bias": False, "moe_gate_act": "sigmoid", "moe_layer_start_index": [1, 2], "moe_layer_end_index": [1, 1],
                          "moe_num_shared_experts": 0, "moe_intermediate_size": 0}, "BF16"),
    "ernie4_5_moe/4bit": (ERNIE_MOE | {"use_bias": False, "tie_word_embeddings": False} | Q4, "BF16"),
    "hunyuan_v1_dense/f32": ({"model_type": "hunyuan_v1_dense", "head_dim": 48, "attention_bias": True, "rope_scaling": {"alpha": 50.0, "factor": 1.0, "type": "dynamic"}}, "F32"),
    "hunyuan_v1_dense/4bit": ({"model_type": "hunyuan_v1_dense", "use_qk_norm": False, "tie_word_embeddings": False} | Q4, "BF16"),
    "mimo/f32": ({"model_type": "mimo"}, "F32"),
    "mimo/4bit": ({"model_type": "mimo", "tie_word_embeddings": False} | Q4, "BF16"),
    "internlm2/f32": ({"model_type": "internlm2"}, "F32"),
    "internlm2/4bit": ({"model_type": "internlm2", "bias": False, "num_attention_heads": 8, "tie_word_embeddings": False} | Q4, "BF16"),
    "internlm3/f32": ({"model_type": "internlm3", "qkv_bias": True, "bias": True}, "F32"),
    "internlm3/4bit": ({"model_type": "internlm3", "tie_word_embeddings": False} | Q4, "BF16"),
    "helium/f32": ({"model_type": "helium", "head_dim": 32, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False}, "F32"),
    "helium/4bit": ({"model_type": "helium", "head_dim": 32, "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False} | Q4, "BF16"),
    "telechat3/4bit": ({"model_type": "telechat3", "head_dim": 32, "tie_word_embeddings": False} | YARN | Q4, "BF16"),
    "dots1/f32": (DOTS1 | {"mlp_bias": True}, "F32"),
    "dots1/4bit": (DOTS1 | {"n_group": 1, "topk_group": 1, "head_dim": 32, "quantization": Q4["quantization"] | GATES}, "BF16"),
    "deepseek/f32": (DEEPSEEK | {"attention_bias": True}, "F32"),
    "deepseek/4bit": (DEEPSEEK | {"n_shared_experts": None, "quantization": Q4["quantization"] | GATES}, "BF16"),
    "bailing_moe/f32": (BAILING | {"use_bias": True, "use_qkv_bias": True, "use_qk_norm": True}, "F32"),
    "bailing_moe/bf16": (BAILING | {"score_function": "sigmoid", "moe_router_enable_expert_bias": True, "n_group": 4, "topk_group": 2, "partial_rotary_factor": 0.5,
                         "routed_scaling_factor": 2.5, "moe_shared_expert_intermediate_size": 32, "use_qk_norm": True}, "BF16"),
    "bailing_moe/4bit": (BAILING | {"rotary_dim": 16, "tie_word_embeddings": True} | Q4, "BF16"),
    "granitemoe/f32": (GRANITE | {"model_type": "granitemoe", "num_local_experts": 12, "num_experts_per_tok": 3, "intermediate_size": 64}, "F32"),
    "granitemoe/4bit": (GRANITE | {"model_type": "granitemoe", "num_local_experts": 12, "num_experts_per_tok": 3, "attention_bias": True, "tie_word_embeddings": False} | Q4, "BF16"),
    "minicpm/f32": (MINICPM | {"tie_word_embeddings": False, "num_key_value_heads": 1}, "F32"),
    "minicpm/4bit": (MINICPM | {"tie_word_embeddings": False} | Q4, "BF16"),
    "minicpm3/f32": (MINICPM3 | {"dim_model_base": 128}, "F32"),  # where the table is the head, theirs ignores this
    "minicpm3/4bit": (MINICPM3 | {"kv_lora_rank": 128, "tie_word_embeddings": False} | Q4, "BF16"),
    "youtu_llm/f32": (YOUTU, "F32"),
    "youtu_llm/4bit": (YOUTU | {"q_lora_rank": None, "kv_lora_rank": 128, "rope_traditional": False, "tie_word_embeddings": False} | Q4, "BF16"),
    "llama4/f32": ({"model_type": "llama4", "text_config": BASE | LLAMA4}, "F32"),
    # theirs normalises the heads of all layers, the one that does not rotate among them
    "llama4_text/f32": (LLAMA4_TEXT | {"no_rope_layers": [1, 0, 1], "use_qk_norm": False}, "F32"),
    "llama4_text/4bit": (LLAMA4_TEXT | {"head_dim": 32} | Q4, "BF16"),
    "llama4/long": ({"model_type": "llama4", "text_config": BASE | LLAMA4 | {"attention_chunk_size": 70, "use_qk_norm": False, "attention_bias": True,
                     "attn_temperature_tuning": 0}}, "BF16"),
    "llama4/4bit": ({"model_type": "llama4", "text_config": BASE | LLAMA4 | {"interleave_moe_layer_step": 1, "head_dim": 32}} | Q4, "BF16"),
    "afmoe/f32": (AFMOE, "F32"),
    "afmoe/4bit": (AFMOE | {"num_shared_experts": 0, "head_dim": 32, "mup_enabled": False, "route_norm": False, "route_scale": 1.0} | Q4, "BF16"),
    "nemotron-nas/f32": (NAS | {"attention_bias": True, "mlp_bias": True}, "F32"),
    "nemotron-nas/4bit": (NAS | {"tie_word_embeddings": False} | Q4, "BF16"),
    "apertus/f32": ({"model_type": "apertus", "mlp_bias": True, "attention_bias": False, "post_norm": False, "qk_norm": True, "rope_scaling": LLAMA["rope_scaling"]}, "F32"),
    "apertus/4bit": ({"model_type": "apertus", "mlp_bias": False, "attention_bias": False, "post_norm": False, "qk_norm": True, "tie_word_embeddings": False,
                      "rope_scaling": {"rope_type": "default"}} | Q4, "BF16"),
    "bitnet/f32": ({"model_type": "bitnet", "head_dim": 32, "attention_bias": True, "mlp_bias": True}, "F32"),
    "bitnet/4bit": ({"model_type": "bitnet", "tie_word_embeddings": False} | Q4, "BF16"),
    "nanochat/f32": ({"model_type": "nanochat", "rms_norm_eps": 1e-5, "tie_word_embeddings": False}, "F32"),
    "nanochat/4bit": ({"model_type": "nanochat", "rms_norm_eps": 1e-5, "rope_theta": 500.0, "tie_word_embeddings": False} | Q4, "BF16"),
    "gpt_neox/f32": (NEOX, "F32"),
    "gpt_neox/4bit": (NEOX | {"use_parallel_residual": False, "rotary_pct": 0.5} | Q4, "BF16"),
    "mistral4/f32": (MISTRAL4, "F32"),
    "mistral4/bf16": (MISTRAL4 | {"q_lora_rank": None, "rope_interleave": False, "norm_topk_prob": False, "routed_scaling_factor": 1.5}, "BF16"),
    "mistral4/4bit": (MISTRAL4 | {"kv_lora_rank": 128, "qk_nope_head_dim": 64, "v_head_dim": 32, "num_hidden_layers": 2} | Q4, "BF16"),
    "mistral3/mistral4": ({"model_type": "mistral3", "tie_word_embeddings": False, "text_config": BASE | MISTRAL4}, "BF16"),
    "solar_open/bf16": (GLM4_MOE | {"model_type": "solar_open"}, "BF16"),
    "exaone_moe/f32": (EXAONE_MOE, "F32"),
    "exaone_moe/4bit": (EXAONE_MOE | {"layer_types": ["full_attention"] * 4, "sliding_window": None,  # theirs rotates where no layer has a window, whatever this says
                        "num_shared_experts": 0, "head_dim": 32, "tie_word_embeddings": False,
                        "quantization": Q4["quantization"] | GATES | {"model.layers.3.mlp.gate": False}}, "BF16"),
    "cohere/f32": (COHERE | {"layer_norm_bias": True, "attention_bias": True}, "F32"),
    "cohere/4bit": (COHERE | Q4, "BF16"),
    "cohere2/f32": (COHERE2, "F32"),
    "cohere2/long": (COHERE2 | {"sliding_window": 70}, "BF16"),
    "cohere2/4bit": (COHERE2 | {"layer_norm_bias": True} | Q4, "BF16"),
    # theirs does this activation whatever the config says, which counts in transformers
    "starcoder2/f32": ({"model_type": "starcoder2", "norm_epsilon": 1e-5, "hidden_act": "gelu"}, "F32"),
    "starcoder2/4bit": ({"model_type": "starcoder2", "norm_epsilon": 1e-5, "hidden_act": "gelu", "tie_word_embeddings": False} | Q4, "BF16"),
    "phi/f32": ({"model_type": "phi", "partial_rotary_factor": 0.5, "tie_word_embeddings": False}, "F32"),
    "phi/4bit": ({"model_type": "phi", "partial_rotary_factor": 0.25, "tie_word_embeddings": False} | Q4, "BF16"),
    "stablelm/f32": (STABLELM, "F32"),
    "stablelm/4bit": (STABLELM | {"use_parallel_residual": True, "use_qkv_bias": False} | Q4, "BF16"),
    "nemotron/f32": (NEMOTRON | {"attention_bias": True, "mlp_bias": True, "rope_scaling": {"type": "linear", "factor": 2.0}}, "F32"),
    "nemotron/4bit": (NEMOTRON | {"tie_word_embeddings": False} | Q4, "BF16"),
    "pixtral/bf16": ({"model_type": "pixtral", "tie_word_embeddings": False, "text_config": BASE | MISTRAL}, "BF16"),
    "qwen2_vl/f32": ({"model_type": "qwen2_vl", "rope_scaling": {"type": "mrope", "mrope_section": [4, 6, 6]}}, "F32"),
    "qwen2_5_vl/4bit": ({"model_type": "qwen2_5_vl", "text_config": BASE | QWEN2} | Q4, "BF16"),
    "qwen3_vl/4bit": ({"model_type": "qwen3_vl", "text_config": BASE | QWEN3 | {"rope_scaling": {
        "mrope_interleaved": True, "mrope_section": [8, 8, 8], "rope_type": "default"}}} | Q4, "BF16"),
    "qwen3_vl_moe/4bit": ({"model_type": "qwen3_vl_moe", "tie_word_embeddings": False, "text_config": BASE | QWEN3_MOE | {"tie_word_embeddings": False}} | Q4, "BF16"),
    "qwen3_next/f32": (QWEN3_NEXT, "F32"),
    "qwen3_next/bf16": (QWEN3_NEXT | {"attention_bias": True, "norm_topk_prob": False, "decoder_sparse_step": 2, "mlp_only_layers": [], "linear_conv_kernel_dim": 3,
                        "tie_word_embeddings": True, "rope_scaling": {"type": "linear", "factor": 2.0}}, "BF16"),
    "qwen3_next/long": (QWEN3_NEXT | {"linear_num_key_heads": 3, "linear_value_head_dim": 16}, "BF16"),
    "qwen3_next/4bit": (QWEN3_NEXT | WIDE | {"quantization": Q4["quantization"] | {"model.layers.0.mlp.gate": {"group_size": 64, "bits": 8},
                        "model.layers.3.linear_attn.in_proj_ba": False}}, "BF16"),
    "qwen3_next/8bit": (QWEN3_NEXT | WIDE | {"quantization": {"group_size": 32, "bits": 8}}, "BF16"),
    "qwen3_5/f32": (qwen3_5(QWEN3_5), "F32"),
    "qwen3_5/bf16": (qwen3_5(QWEN3_5 | {"tie_word_embeddings": False, "linear_num_key_heads": 6}), "BF16"),
    "qwen3_5/flat": (QWEN3_5 | {"model_type": "qwen3_5", "rope_parameters": None, "num_hidden_layers": 4}, "BF16"),
    "qwen3_5/long": (qwen3_5(QWEN3_5 | {"num_hidden_layers": 4}), "BF16"),
    "qwen3_5/4bit": (qwen3_5(QWEN3_5 | WIDE, **Q4), "BF16"),
    "qwen3_5/8bit": (qwen3_5(QWEN3_5 | WIDE, quantization={"group_size": 32, "bits": 8}), "BF16"),
    "qwen3_5/nvfp4": (qwen3_5(QWEN3_5, **NVFP4), "BF16"),
    "qwen3_5_moe/f32": (qwen3_5(QWEN3_5_MOE), "F32"),
    "qwen3_5_moe/bf16": (qwen3_5(QWEN3_5_MOE | {"norm_topk_prob": False}), "BF16"),
    "qwen3_5_moe/4bit": (qwen3_5(QWEN3_5_MOE | WIDE, quantization=Q4["quantization"] | GATED), "BF16"),
    "qwen3_5_moe/8bit": (qwen3_5(QWEN3_5_MOE | WIDE, quantization={"group_size": 32, "bits": 8}), "BF16"),
    "qwen3_5_moe/nvfp4": (qwen3_5(QWEN3_5_MOE, quantization=NVFP4["quantization"] | GATED), "BF16"),
    "lfm2/f32": (LFM2, "F32"),
    "lfm2/bf16": (LFM2 | {"conv_bias": True, "conv_L_cache": 4, "block_auto_adjust_ff_dim": False, "rope_parameters": {"rope_theta": 300.0},
                  "layer_types": ["full_attention", "conv", "conv", "conv", "conv"]}, "BF16"),
    "lfm2/long": (LFM2, "BF16"),
    "lfm2/4bit": (LFM2 | {"block_multiple_of": 64} | Q4, "BF16"),
    "lfm2-vl/bf16": ({"model_type": "lfm2-vl", "text_config": BASE | LFM2}, "BF16"),
    "lfm2_moe/f32": (LFM2_MOE, "F32"),
    "lfm2_moe/bf16": (LFM2_MOE | {"norm_topk_prob": False, "use_expert_bias": False, "routed_scaling_factor": 1.5, "conv_bias": True}, "BF16"),
    "lfm2_moe/4bit": (LFM2_MOE | {"quantization": Q4["quantization"] | {f"model.layers.{i}.feed_forward.gate": {"group_size": 64, "bits": 8} for i in (1, 2, 3)}}, "BF16"),
    "kimi_linear/f32": (KIMI_LINEAR, "F32"),
    "kimi_linear/bf16": (KIMI_LINEAR | {"num_expert_group": 1, "topk_group": 1, "moe_renormalize": False, "num_shared_experts": 0, "first_k_dense_replace": 0,
                         "moe_layer_freq": 2, "tie_word_embeddings": True}, "BF16"),
    "kimi_linear/long": (KIMI_LINEAR | {"num_experts": 0, "num_hidden_layers": 3}, "BF16"),
    "kimi_linear/4bit": (KIMI_LINEAR | {"kv_lora_rank": 128, "qk_nope_head_dim": 64, "v_head_dim": 32, "moe_intermediate_size": 128, "linear_attn_config":
                         KIMI_LINEAR["linear_attn_config"] | {"head_dim": 64}} | Q4, "BF16"),
    "bailing_moe_linear/f32": (BAILING_LINEAR, "F32"),
    "bailing_moe_linear/bf16": (BAILING_LINEAR | {"use_qk_norm": False, "score_function": "softmax", "moe_router_enable_expert_bias": False, "n_group": 1, "topk_group": 1,
                                "use_bias": True, "use_qkv_bias": True, "layer_group_size": 2, "group_norm_size": 1, "partial_rotary_factor": 1.0}, "BF16"),
    "bailing_moe_linear/long": (BAILING_LINEAR | {"num_attention_heads": 4}, "BF16"),
    "bailing_moe_linear/4bit": (BAILING_LINEAR | {"hidden_size": 128, "num_attention_heads": 4, "group_norm_size": 1} | Q4, "BF16"),
    "gpt2/f32": (GPT2, "F32"),
    "gpt2/4bit": (GPT2 | Q4, "BF16"),
    "gpt_bigcode/f32": (BIGCODE, "F32"),
    "gpt_bigcode/bf16": (BIGCODE | {"attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False}, "BF16"),
    "gpt_bigcode/4bit": (BIGCODE | Q4, "BF16"),
    "gptj/f32": (GPTJ, "F32"),
    "gptj/4bit": (GPTJ | {"rotary_dim": None} | Q4, "BF16"),
    "mimo_v2_flash/f32": (MIMO_V2, "F32"),
    "mimo_v2_flash/bf16": (MIMO_V2 | {"n_shared_experts": 1, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5, "attention_value_scale": None,
                           "add_full_attention_sink_bias": True, "add_swa_attention_sink_bias": False}, "BF16"),
    "mimo_v2_flash/long": (MIMO_V2 | {"sliding_window_size": 70}, "BF16"),
    "mimo_v2_flash/4bit": (MIMO_V2 | {"v_head_dim": 32, "swa_v_head_dim": 32, "quantization": Q4["quantization"] | GATES | {"model.layers.3.mlp.gate": False}}, "BF16"),
    "step3p5/f32": (STEP3, "F32"),
    "step3p5/bf16": (STEP3 | {"layer_types": None, "rope_theta": 700.0, "attention_other_setting": None, "moe_layers_enum": None, "yarn_only_types": None,
                     "norm_expert_weight": False, "use_head_wise_attn_gate": False, "swiglu_limits": None, "partial_rotary_factors": None}, "BF16"),
    "step3p5/long": (STEP3 | {"sliding_window": 70}, "BF16"),
    "step3p5/4bit": (STEP3 | {"share_expert_dim": 128, "head_dim": 32} | Q4, "BF16"),
    "mellum/f32": (MELLUM, "F32"),
    "mellum/4bit": (MELLUM | {"norm_topk_prob": False, "head_dim": 32, "tie_word_embeddings": True, "sliding_window": 9} | Q4, "BF16"),
    "laguna/f32": (LAGUNA, "F32"),
    "laguna/bf16": (LAGUNA | {"gating": False, "qkv_bias": True, "attention_bias": True, "num_attention_heads_per_layer": None, "layer_types": None,
                    "mlp_layer_types": ["sparse", "dense", "sparse", "dense"]}, "BF16"),
    "laguna/4bit": (LAGUNA | {"moe_routed_scaling_factor": 1.0, "shared_expert_intermediate_size": 128, "head_dim": 32} | Q4, "BF16"),
    "mamba2/f32": (MAMBA2, "F32"),
    "mamba2/bf16": (MAMBA2 | {"use_bias": False, "use_conv_bias": False, "ssm_state_size": 20, "time_step_limit": [1.0, 1.4], "tie_word_embeddings": False}, "BF16"),
    "mamba2/long": (MAMBA2, "BF16"),
    "mamba2/4bit": (MAMBA2 | {"head_dim": 32} | Q4, "BF16"),
    "nemotron_h/f32": (NEMOTRON_H, "F32"),
    "nemotron_h/bf16": (NEMOTRON_H | {"hybrid_override_pattern": None, "layers_block_type": ["attention", "mamba", "mlp", "mamba", "mlp"], "attention_bias": True,
                        "mlp_bias": True, "mamba_proj_bias": True, "use_conv_bias": False, "time_step_limit": [0.5, 1.5]}, "BF16"),
    "nemotron_h/long": (NEMOTRON_MOE, "BF16"),
    "nemotron_h/experts": (NEMOTRON_MOE | {"n_group": 4, "topk_group": 2, "moe_latent_size": 64, "mlp_bias": True}, "F32"),
    "nemotron_h/4bit": (NEMOTRON_H | {"mamba_head_dim": 32} | Q4, "BF16"),
    "nemotron_h/experts4bit": (NEMOTRON_MOE | {"mamba_head_dim": 32, "quantization": Q4["quantization"] | {f"backbone.layers.{i}.mixer.gate": False for i in (1, 3)}}, "BF16"),
    "granitemoehybrid/f32": (GRANITE_HMOE, "F32"),
    "granitemoehybrid/bf16": (GRANITE_H | {"mlp_bias": True, "attention_bias": True, "mamba_proj_bias": True, "position_embedding_type": "rope",
                              "tie_word_embeddings": False}, "BF16"),
    "granitemoehybrid/long": (GRANITE_H, "BF16"),
    "granitemoehybrid/4bit": (GRANITE_H | {"mamba_d_head": 32} | Q4, "BF16"),
    "granitemoehybrid/experts4bit": (GRANITE_HMOE | {"mamba_d_head": 32} | Q4, "BF16"),
    "falcon_h1/f32": (FALCON_H1, "F32"),
    "falcon_h1/bf16": (FALCON_H1 | {"mamba_rms_norm": True, "attention_bias": True, "mlp_bias": True, "projectors_bias": True, "mamba_proj_bias": True,
                       "mamba_conv_bias": False, "tie_word_embeddings": False}, "BF16"),
    "falcon_h1/long": (FALCON_H1 | {"mamba_rms_norm": True, "mamba_norm_before_gate": True}, "BF16"),
    "falcon_h1/4bit": (FALCON_H1 | {"mamba_d_ssm": 256, "mamba_d_head": 32} | Q4, "BF16"),
    "mamba/f32": (MAMBA, "F32"),
    "mamba/bf16": (MAMBA | {"use_bias": True, "use_conv_bias": False, "time_step_rank": "auto", "use_bcdt_rms": True, "tie_word_embeddings": False}, "BF16"),
    "mamba/long": (MAMBA, "BF16"),
    "mamba/4bit": (MAMBA | {"intermediate_size": 256} | Q4, "BF16"),
    "falcon_mamba/f32": (MAMBA | {"model_type": "falcon_mamba"}, "F32"),
    "jamba/f32": (JAMBA, "F32"),
    "jamba/bf16": (JAMBA | {"num_experts": 1, "mamba_conv_bias": False, "mamba_proj_bias": True, "layers_block_type": ["mamba", "mamba", "attention", "mamba", "mamba"],
                   "tie_word_embeddings": False}, "BF16"),
    "jamba/4bit": (JAMBA | {"quantization": Q4["quantization"] | {f"model.layers.{i}.feed_forward.router": {"group_size": 64, "bits": 8} for i in (1, 3)}}, "BF16"),
    "plamo2/f32": (PLAMO2, "F32"),
    "plamo2/bf16": (PLAMO2 | {"num_hidden_layers": 5, "mamba_step": 4, "tie_word_embeddings": False}, "BF16"),
    "plamo2/4bit": (PLAMO2 | {"hidden_size_per_head": 32} | Q4, "BF16"),
    "qwen3_moe/f32": (QWEN3_MOE, "F32"),
    "qwen3_moe/bf16": (QWEN3_MOE | {"norm_topk_prob": False, "decoder_sparse_step": 2, "mlp_only_layers": [], "tie_word_embeddings": False}, "BF16"),
    "qwen3_moe/long": (QWEN3_MOE | {"num_experts": 6, "moe_intermediate_size": 40}, "BF16"),  # several tiles of rows per expert
    "qwen3_moe/4bit": (QWEN3_MOE | {"quantization": Q4["quantization"] | {"model.layers.0.mlp.gate": {"group_size": 64, "bits": 8}}}, "BF16"),
    "qwen3_moe/8bit": (QWEN3_MOE | {"quantization": {"group_size": 32, "bits": 8}}, "BF16"),
    "qwen3_moe/mxfp4": (QWEN3_MOE | {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}, "BF16"),
    "qwen3_moe/nvfp4": (QWEN3_MOE | {"quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4"}}, "BF16"),
}
SEED, STEPS = 20261121, 8
SHORT = (20, 7, [0, 5, 6, 13, 19])  # prompt tokens, where the chunked prefill is cut, rows whose logits are kept
LONG = (150, 101, [0, 64, 100, 129, 149])
DTYPES = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}


def shapes(config, kv_b=False):
    """Tensor shapes of the unquantised model; with kv_b where the matrices of latent attention are in one tensor."""
    cls, args = _get_classes(config)
    all_ = {k: tuple(v.shape) for k, v in tree_flatten(cls(args.from_dict(copy.deepcopy(config))).parameters())}
    if config.get("text_config", config)["tie_word_embeddings"]:  # gemma3 makes a head and drops it if no file has one
        all_ = {k: s for k, s in all_.items() if not k.endswith("lm_head.weight")}
    for k in [k for k in all_ if kv_b and k.endswith("embed_q.weight")]:
        heads, lora, nope = all_.pop(k)
        values = all_.pop(k.replace("embed_q", "unembed_out"))[1]
        all_[k.replace("embed_q", "kv_b_proj")] = (heads * (nope + values), lora)
    return all_


PLAIN_MLP = {".c_fc": ".up_proj", ".c_proj": ".down_proj", ".mlp.fc1": ".mlp.up_proj", ".mlp.fc2": ".mlp.down_proj", ".self_attn.dense": ".self_attn.o_proj",
             "final_layernorm": "norm"}
GPT2_NAMES = {"model.h.": "model.layers.", "transformer.h.": "model.layers.", "transformer.": "model.", "wte": "embed_tokens", "wpe": "positions", "ln_f": "norm",
              ".ln_1": ".input_layernorm", ".ln_2": ".post_attention_layernorm", ".attn.c_attn": ".self_attn.qkv_proj", ".attn.c_proj": ".self_attn.o_proj",
              ".mlp.c_fc": ".mlp.up_proj", ".mlp.c_proj": ".mlp.down_proj"}
LFM2_NAMES = {"embedding_norm": "norm", ".operator_norm": ".input_layernorm", ".ffn_norm": ".post_attention_layernorm",
              ".self_attn.q_layernorm": ".self_attn.q_norm", ".self_attn.k_layernorm": ".self_attn.k_norm", ".self_attn.out_proj": ".self_attn.o_proj",
              ".conv.conv": ".mixer.conv", ".conv.in_proj": ".mixer.in_proj", ".conv.out_proj": ".mixer.out_proj",
              ".feed_forward.expert_bias": ".mlp.gate.e_score_correction_bias", ".feed_forward": ".mlp", ".w1": ".gate_proj", ".w2": ".down_proj", ".w3": ".up_proj"}
FAMILIES = {  # names that only one family has for parts
    "glm4": {"post_attention_layernorm": "pre_feedforward_layernorm", "post_self_attn_layernorm": "post_attention_layernorm",
             "post_mlp_layernorm": "post_feedforward_layernorm"},
    "exaone": {"transformer.wte": "model.embed_tokens", "transformer.h.": "model.layers.", "transformer.ln_f": "model.norm",
               ".attn.attention.out_proj": ".self_attn.o_proj", ".attn.attention.": ".self_attn.", ".ln_1": ".input_layernorm",
               ".ln_2": ".post_attention_layernorm", ".c_fc_0": ".gate_proj", ".c_fc_1": ".up_proj", ".c_proj": ".down_proj"},
    "hunyuan_v1_dense": {".query_layernorm": ".q_norm", ".key_layernorm": ".k_norm"},
    "internlm2": {"tok_embeddings": "embed_tokens", ".attention.wqkv": ".self_attn.qkv_proj", ".attention.wo": ".self_attn.o_proj",
                  ".attention_norm": ".input_layernorm", ".ffn_norm": ".post_attention_layernorm", ".feed_forward.w1": ".mlp.gate_proj",
                  ".feed_forward.w2": ".mlp.down_proj", ".feed_forward.w3": ".mlp.up_proj", "output": "lm_head"},
    "bailing_moe": {"word_embeddings": "embed_tokens", ".attention.query_key_value": ".self_attn.qkv_proj", ".attention.dense": ".self_attn.o_proj",
                    ".attention.query_layernorm": ".self_attn.q_norm", ".attention.key_layernorm": ".self_attn.k_norm", ".gate.gate_proj": ".gate",
                    ".gate.expert_bias": ".gate.e_score_correction_bias"},
    "granitemoe": {".block_sparse_moe.router.layer": ".mlp.gate"},
    "gpt2": GPT2_NAMES, "gpt_bigcode": GPT2_NAMES,
    "gptj": {"model.h.": "model.layers.", "wte": "embed_tokens", "ln_f": "norm", ".ln_1": ".input_layernorm", ".attn.out_proj": ".self_attn.o_proj",
             ".attn.": ".self_attn.", ".mlp.fc_in": ".mlp.up_proj", ".mlp.fc_out": ".mlp.down_proj"},
    "mimo_v2_flash": {".attention_sink_bias": ".sinks"},
    "step3p5": {".mlp.gate.gate": ".mlp.gate", ".mlp.gate.router_bias": ".mlp.gate.e_score_correction_bias", ".mlp.share_expert.": ".mlp.shared_experts."},
    "laguna": {".mlp.gate.proj": ".mlp.gate", ".mlp.shared_expert.": ".mlp.shared_experts."},
    "kimi_linear": {".mlp.e_score_correction_bias": ".mlp.gate.e_score_correction_bias"},
    "bailing_moe_linear": {"word_embeddings": "embed_tokens", ".attention.query_key_value": ".self_attn.qkv_proj", ".attention.dense": ".self_attn.o_proj",
                           ".attention.query_layernorm": ".self_attn.q_norm", ".attention.key_layernorm": ".self_attn.k_norm", ".attention.": ".self_attn.",
                           ".gate.gate_proj": ".gate", ".gate.expert_bias": ".gate.e_score_correction_bias"},
    "nemotron_h": {".switch_mlp.fc1": ".switch_mlp.up_proj", ".switch_mlp.fc2": ".switch_mlp.down_proj"},
    "granitemoehybrid": {".block_sparse_moe.router.layer": ".mlp.gate", ".shared_mlp.input_linear": ".mlp.shared_experts.gate_up_proj",
                         ".shared_mlp.output_linear": ".mlp.shared_experts.down_proj", ".mamba.": ".mixer."},
    "falcon_h1": {".mamba.": ".mixer.mamba.", ".self_attn.": ".mixer.self_attn.", ".feed_forward.": ".mlp.", ".pre_ff_layernorm": ".post_attention_layernorm",
                  "final_layernorm": "norm"},
    "jamba": {".mamba.": ".mixer.", ".feed_forward.router": ".mlp.gate", ".feed_forward.": ".mlp.", ".pre_ff_layernorm": ".post_attention_layernorm",
              "final_layernorm": "norm"},
    "plamo2": {"model.layers.layers.": "model.layers.", ".dt_norm_weight": ".dt_norm.weight", ".B_norm_weight": ".b_norm.weight",
               ".C_norm_weight": ".c_norm.weight", ".q_weight": ".q_norm.weight", ".k_weight": ".k_norm.weight", ".pre_mixer_norm": ".input_layernorm",
               ".post_mixer_norm": ".post_attention_layernorm", ".pre_mlp_norm": ".pre_feedforward_layernorm", ".post_mlp_norm": ".post_feedforward_layernorm"},
    "lfm2": LFM2_NAMES, "lfm2-vl": LFM2_NAMES, "lfm2_moe": LFM2_NAMES,
    "starcoder2": PLAIN_MLP, "phi": PLAIN_MLP,
    "gpt_neox": {"model.embed_in": "model.embed_tokens", "model.embed_out": "lm_head", "model.h.": "model.layers.", "model.final_layer_norm": "model.norm",
                 ".attention.query_key_value": ".self_attn.qkv_proj", ".attention.dense": ".self_attn.o_proj", ".dense_h_to_4h": ".up_proj",
                 ".dense_4h_to_h": ".down_proj"},
    "nanochat": {"transformer.wte": "model.embed_tokens", "transformer.h.": "model.layers.", ".attn.c_q": ".self_attn.q_proj", ".attn.c_k": ".self_attn.k_proj",
                 ".attn.c_v": ".self_attn.v_proj", ".attn.c_proj": ".self_attn.o_proj", ".mlp.c_fc": ".mlp.up_proj", ".mlp.c_proj": ".mlp.down_proj"},
    "apertus": {"attention_layernorm": "input_layernorm", "feedforward_layernorm": "post_attention_layernorm"},
    "afmoe": {".mlp.router.gate": ".mlp.gate", ".mlp.expert_bias": ".mlp.gate.e_score_correction_bias", "pre_mlp_layernorm": "pre_feedforward_layernorm",
              "post_mlp_layernorm": "post_feedforward_layernorm"},
    "llama4_text": {".feed_forward.": ".mlp.", "output.": "lm_head."},
    "llama4": {".feed_forward.router": ".mlp.gate", ".feed_forward.experts.": ".mlp.switch_mlp.", ".feed_forward.shared_expert.": ".mlp.shared_experts.",
               ".feed_forward.": ".mlp."},
}


def unused(config, name):
    """gemma3n has keys and values also for layers that use those of others."""
    text = config.get("text_config", {})
    if config["model_type"] != "gemma3n" or not any(k in name for k in (".k_proj.", ".v_proj.", ".k_norm.")):
        return False
    return int(name.split("layers.")[1].split(".")[0]) >= text["num_hidden_layers"] - text["num_kv_shared_layers"]


def rename(name, family=""):
    """What internal/model calls a tensor."""
    if own := FAMILIES.get(family):
        name = re.sub("|".join(re.escape(k) for k in own), lambda m: own[m[0]], name)
    for theirs, ours in {"language_model.": "", ".mlp.router.": ".mlp.gate.", ".mlp.experts.": ".mlp.switch_mlp.",
                         ".block_sparse_moe.e_score": ".mlp.gate.e_score", ".block_sparse_moe.": ".mlp.", ".shared_expert.": ".shared_experts."}.items():
        name = name.replace(theirs, ours)
    return name


def build(config, seed, dtype, kv_b=False):
    """The model as mlx-lm loads it from a folder, then widened to float32: the weights keep their stored values."""
    tensors = {}
    for name, w in synthetic.weights(config, shapes(config, kv_b), seed, dtype, lambda name: rename(name, config["model_type"])).items():
        tensors[name] = mx.array(w) if w.dtype in (np.uint32, np.uint8) else mx.array(w).astype(DTYPES[dtype])
    with tempfile.TemporaryDirectory() as d:
        (Path(d) / "config.json").write_text(json.dumps(config))
        mx.save_safetensors(d + "/model.safetensors", tensors, {"format": "mlx"})
        model, _ = load_model(Path(d))
    model.update(tree_map(lambda p: p.astype(mx.float32) if mx.issubdtype(p.dtype, mx.floating) else p, model.parameters()))
    mx.eval(model.parameters())
    return model


class Whole(KVCache):
    """Keeps what mlx-lm's cache of chunks would throw away, which it does right only for chunks of its own step."""
    start_position = 0

    def maybe_trim_front(self):
        pass


def fresh(model):
    return [Whole() if isinstance(c, ChunkedKVCache) else c for c in make_prompt_cache(model)]


def run(model, cache, tokens):
    y = model(mx.array([tokens]), cache=cache)
    mx.eval(y)
    assert y.dtype == mx.float32
    return np.array(y[0])


def names(out, header):
    """What mlx-lm calls the tensors of families that have names of their own, all layers together."""
    types = {}
    for name, (config, _) in CASES.items():
        kind = config["model_type"]
        if kind in FAMILIES or kind in ("kimi_k25", "kimi_vl", "mistral3", "dots1", "granitemoe", "qwen2_moe", "minimax"):
            config = BASE | {k: v for k, v in config.items() if k != "quantization"}
            types.setdefault(kind, {"config": config, "names": sorted({re.sub(r"\.\d+\.", ".0.", n) for n in shapes(config)})})
    pins.write(f"{out}/names.json", {"made": header, "types": types})


def written(config):
    """The config that says to transformers what mlx-lm makes of the one that it reads."""
    if config["model_type"] == "mimo_v2_flash":  # theirs counts the row itself among the positions of a window
        return config | {"sliding_window_size": config["sliding_window_size"] - 1}
    return config


def main(out, *only):
    header = pins.made(__file__)
    if not only or "names" in only:
        names(out, header)
    for name, (config, dtype) in CASES.items():
        if only and not any(name.startswith(o) for o in only):
            continue
        config = BASE | config
        prompt, cut, rows = LONG if name.endswith("long") else SHORT
        kv_b = "/kv_b" in name
        model = build(config, SEED, dtype, kv_b)
        tokens = [int(t) for t in np.random.default_rng(7).integers(0, config["vocab_size"], prompt + STEPS)]
        cache = fresh(model)
        prefill = run(model, cache, tokens[:prompt])
        decode = np.stack([run(model, cache, [t])[-1] for t in tokens[prompt:]])
        cache = fresh(model)
        run(model, cache, tokens[:cut])
        chunked = run(model, cache, tokens[cut:prompt])[-1]
        print(name, "range", np.ptp(prefill), "chunked differs by", np.abs(chunked - prefill[-1]).max())
        pins.write(f"{out}/{name}.json", {
            "made": header, "config": written(config), "seed": SEED, "type": dtype,
            "params": sum(int(np.prod(s)) for k, s in shapes(config, kv_b).items() if not unused(config, k)),
            **({"kv_b": True} if kv_b else {}),
            "prompt": tokens[:prompt], "decode": tokens[prompt:], "rows": rows, "cut": cut,
            "prefill_logits": pins.f32(prefill[rows]), "decode_logits": pins.f32(decode), "chunked_logits": pins.f32(chunked),
        })


if __name__ == "__main__":
    main(*sys.argv[1:])
