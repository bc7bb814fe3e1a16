"""Logits of tiny random models that transformers itself built, saved and read again, and of the same folders with one key of
config.json changed: what the reference makes of every key.

run: python tools/golden/saved.py internal/model/testdata/saved [--no-mutations] [names ...]
It needs torch (CPU) and transformers, no mlx. A case holds no weights: tensors says by which base and amp synthetic.floats fills each.
"""
import copy
import json
import logging
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
import transformers as hf
from safetensors.numpy import load_file, save_file
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES

import pins
import synthetic

PINS = {"transformers": "5.24.0", "torch": "2.15.0"}
SEED, VOCAB, LENGTH = 20261125, 96, 24
MOVES = 1e-5  # more than this is written of a mutation too
PICKS = 16  # of the vocabulary, what is kept of a mutation's last row
torch.set_num_threads(1)
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
hf.utils.logging.disable_progress_bar()

# What a key is set to in every config that has it, so that its default would show.
TINY = {
    "vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-3, "layer_norm_eps": 1e-3, "norm_eps": 1e-3, "norm_epsilon": 1e-3, "layer_norm_epsilon": 1e-3,
    "head_dim": 24, "attention_bias": True, "mlp_bias": True, "use_bias": True, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2,
    "moe_intermediate_size": 32, "num_experts": 8, "num_local_experts": 8, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 1,
    "num_shared_experts": 1, "shared_expert_intermediate_size": 48, "norm_topk_prob": True, "n_embd": 64, "n_head": 4, "n_layer": 3, "n_positions": 64,
    "linear_conv_kernel_dim": 4,
}
MLA = {"head_dim": 8, "num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 12}
GROUPS = {"n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.5}
SLIDING = {"num_hidden_layers": 4, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"]}
DELTA = {"num_hidden_layers": 4, "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 12,
         "linear_conv_kernel_dim": 4, "layer_types": ["linear_attention", "full_attention", "linear_attention", "linear_attention"]}


def rope(theta=500.0, kind="default", **more):
    return {"rope_type": kind, "rope_theta": theta} | more


LINEAR = {"factor": 3.0}
DYNAMIC = {"factor": 4.0, "original_max_position_embeddings": 16}
YARN = {"factor": 4.0, "original_max_position_embeddings": 16}
LLAMA3 = {"factor": 4.0, "original_max_position_embeddings": 16, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


def longrope(pairs):
    return {"short_factor": [1 + 0.1 * i for i in range(pairs)], "long_factor": [1 + 0.3 * i for i in range(pairs)], "factor": 4.0,
            "original_max_position_embeddings": 16}


SCALED = {"linear": LINEAR, "yarn": YARN, "llama3": LLAMA3, "dynamic": DYNAMIC}


def kinds(full=500.0, sliding=90.0, full_kind="default", **more):
    """rope_parameters by kind of layer."""
    return {"rope_parameters": {"full_attention": rope(full, full_kind, **more), "sliding_attention": rope(sliding)}}


MAMBA = {"state_size": 8, "conv_kernel": 4, "time_step_rank": 6}
BAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 2, "mamba_d_conv": 4, "mamba_chunk_size": 8}
VISION = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
QWEN3_VISION = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 64, "num_position_embeddings": 16}
MROPE = rope(mrope_section=[1, 1, 1], mrope_interleaved=True, partial_rotary_factor=0.25)
GRANITE = {"embedding_multiplier": 3.0, "logits_scaling": 2.0, "residual_multiplier": 0.5, "attention_multiplier": 0.3}
GEMMA3 = SLIDING | kinds() | {"query_pre_attn_scalar": 40}
GEMMA3N = SLIDING | kinds() | {
    "intermediate_size": [96, 80, 96, 96], "activation_sparsity_pattern": [0.9, 0.5, 0.0, 0.0], "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 90,
    "num_kv_shared_layers": 1, "laurel_rank": 16, "altup_coef_clip": 0.5, "final_logit_softcapping": 3.0}
GEMMA4 = SLIDING | {
    "rope_parameters": {"full_attention": rope(500.0, "proportional", partial_rotary_factor=0.5), "sliding_attention": rope(90.0)}, "global_head_dim": 32,
    "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": VOCAB, "final_logit_softcapping": 3.0, "num_experts": None, "moe_intermediate_size": None}
LLAMA4 = {"num_hidden_layers": 4, "no_rope_layers": [1, 0, 1, 1], "attention_chunk_size": 8, "intermediate_size": 32, "intermediate_size_mlp": 96, "num_experts_per_tok": 1,
          "interleave_moe_layer_step": 2, "moe_layers": [1, 3], "floor_scale": 4, "attn_scale": 0.3}
MINISTRAL3 = {"rope_parameters": rope(500.0, "yarn", **YARN, beta_fast=1.0, beta_slow=0.25, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)}
CLIP = {"model_type": "clip_vision_model", "projection_dim": 16} | VISION
SIGLIP = {"model_type": "siglip_vision_model"} | VISION
GLM_VISION = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 64, "image_size": 28, "patch_size": 14}
NESTED = {  # models of text and images whose language model is another type's
    "aya_vision": {"text_config": {"model_type": "cohere2"} | SLIDING | {"logit_scale": 0.25}, "vision_config": SIGLIP},
    "cohere2_vision": {"text_config": {"model_type": "cohere2"} | SLIDING | {"logit_scale": 0.25}, "vision_config": SIGLIP, "alignment_intermediate_size": 32},
    "exaone4_5": {"text_config": {"model_type": "exaone4"} | SLIDING | {"sliding_window_pattern": 2},
                  "vision_config": {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "num_key_value_heads": 1, "out_hidden_size": 64, "fullatt_block_indexes": [0]}},
    "glm4v": {"text_config": {"rope_parameters": rope(mrope_section=[1, 1, 2], partial_rotary_factor=0.5)}, "vision_config": GLM_VISION},
    "glm46v": {"text_config": {"model_type": "glm4v_text", "rope_parameters": rope(mrope_section=[1, 1, 2], partial_rotary_factor=0.5)},
               "vision_config": GLM_VISION | {"model_type": "glm4v_vision"}},
    "glm4v_moe": {"text_config": GROUPS | {"first_k_dense_replace": 1, "rope_parameters": rope(mrope_section=[1, 1, 2], partial_rotary_factor=0.5)}, "vision_config": GLM_VISION},
    "got_ocr2": {"text_config": {"model_type": "qwen2"}, "vision_config": VISION | {"mlp_dim": 16, "output_channels": 16, "global_attn_indexes": [0], "image_size": 56}},
    "idefics3": {"text_config": {"model_type": "llama"}, "vision_config": VISION},
    "internvl": {"text_config": {"model_type": "qwen2"}, "vision_config": VISION | {"image_size": [28, 28], "patch_size": [14, 14]}},
    "llava_next": {"text_config": {"model_type": "mistral", "sliding_window": 8}, "vision_config": CLIP, "vision_feature_layer": -1},
    "llava_onevision": {"text_config": {"model_type": "qwen2"}, "vision_config": SIGLIP},
    "smolvlm": {"text_config": {"model_type": "llama"}, "vision_config": VISION},
    "lighton_ocr": {"text_config": {"model_type": "qwen3"}, "vision_config": {"model_type": "pixtral", "head_dim": 8} | VISION},
    "llava_next_video": {"text_config": {"model_type": "llama"}, "vision_config": CLIP, "vision_feature_layer": -1},
    "video_llava": {"text_config": {"model_type": "llama"}, "vision_config": CLIP, "vision_feature_layer": -1},
    "vipllava": {"text_config": {"model_type": "llama"}, "vision_config": CLIP, "vision_feature_layer": [-1]},
}
NESTED_VARIANTS = {
    "internvl-qwen3": {"text_config": {"model_type": "qwen3"}, "vision_config": NESTED["internvl"]["vision_config"]},
    "internvl-qwen3_moe": {"text_config": {"model_type": "qwen3_moe"}, "vision_config": NESTED["internvl"]["vision_config"]},
    "internvl-gpt_oss": {"text_config": {"model_type": "gpt_oss"} | SLIDING, "vision_config": NESTED["internvl"]["vision_config"]},
    "internvl-llama": {"text_config": {"model_type": "llama"}, "vision_config": NESTED["internvl"]["vision_config"], "tie_word_embeddings": False},
    "llava_next-llama": {"text_config": {"model_type": "llama"}, "vision_config": CLIP, "vision_feature_layer": -1},
    "llava-phi": {"text_config": {"model_type": "phi"}, "vision_config": CLIP, "vision_feature_layer": -1},
    "llava-qwen3_5": {"text_config": {"model_type": "qwen3_5_text"} | DELTA | {"rope_parameters": MROPE}, "vision_config": CLIP, "vision_feature_layer": -1},
    "llava-exaone": {"text_config": {"model_type": "exaone"}, "vision_config": CLIP, "vision_feature_layer": -1},
    "aya_vision-gemma2": {"text_config": {"model_type": "gemma2", "query_pre_attn_scalar": 40} | SLIDING | {"final_logit_softcapping": 3.0}, "vision_config": SIGLIP},
    "aya_vision-granite": {"text_config": {"model_type": "granite"} | GRANITE, "vision_config": SIGLIP},
    "llava_onevision-tied": {"text_config": {"model_type": "qwen2", "tie_word_embeddings": True}, "vision_config": SIGLIP},
}
CASES = {  # what the reference is given beside TINY
    "afmoe": SLIDING | {"num_dense_layers": 1, "mup_enabled": True, "route_scale": 1.5, "global_attn_every_n_layers": 2},
    "apertus": {"rope_parameters": rope(500.0, "llama3", **LLAMA3)},
    "bitnet": {},
    "cohere": {"use_qk_norm": True, "logit_scale": 0.25},
    "cohere2": SLIDING | {"logit_scale": 0.25},
    "deepseek_v2": MLA | GROUPS | {"topk_method": "group_limited_greedy", "first_k_dense_replace": 1},
    "deepseek_v3": MLA | GROUPS | {"first_k_dense_replace": 1},
    "dots1": SLIDING | GROUPS | {"first_k_dense_replace": 1},
    "ernie4_5": {},
    "ernie4_5_moe": {"moe_k": 3, "moe_num_experts": 8, "moe_num_shared_experts": 1, "moe_layer_start_index": 1, "moe_layer_end_index": 2},
    "exaone": {},
    "exaone4": SLIDING | {"sliding_window_pattern": 2},
    "exaone_moe": SLIDING | GROUPS | {"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "sliding_window_pattern": 2},
    "falcon_h1": BAMBA | {"mamba_d_ssm": 128, "num_hidden_layers": 2},
    "falcon_mamba": MAMBA,
    "gemma": {},
    "gemma2": SLIDING | {"query_pre_attn_scalar": 40, "final_logit_softcapping": 3.0, "attn_logit_softcapping": 3.0},
    "gemma3_text": GEMMA3,
    "glm": {},
    "glm4": {},
    "glm4_moe": GROUPS | {"first_k_dense_replace": 1, "use_qk_norm": True},
    "glm4_moe_lite": MLA | GROUPS | {"mlp_layer_types": ["dense", "sparse", "sparse"]},
    "gpt_neox": {"num_key_value_heads": None, "rope_parameters": rope(partial_rotary_factor=0.5)},
    "llama": {},
    "olmo3": SLIDING | kinds(),
    "qwen3": SLIDING | {"use_sliding_window": True},
    "qwen3_moe": {"mlp_only_layers": [1]},
    "gemma3": {"text_config": GEMMA3, "vision_config": VISION, "mm_tokens_per_image": 4},
    "gemma3n": {"text_config": GEMMA3N | {"model_type": "gemma3n_text"},  # needs timm, torchvision and pillow
                "vision_config": {"architecture": "test_efficientnet", "hidden_size": 16, "vocab_size": 4, "vocab_offset": 88, "model_args": None},
                "audio_config": {"hidden_size": 16, "vocab_size": 4, "vocab_offset": 92, "conf_num_hidden_layers": 1, "conf_num_attention_heads": 2,
                                 "conf_attention_chunk_size": 4, "conf_attention_context_left": 3, "sscp_conv_channel_size": [4, 4], "input_feat_size": 16}},
    "gemma3n_text": GEMMA3N,
    "gemma4": {"text_config": GEMMA4 | {"pad_token_id": 0}},
    "gemma4_text": GEMMA4 | {"num_hidden_layers": 6, "layer_types": ["sliding_attention", "full_attention"] * 3, "num_kv_shared_layers": 2, "use_double_wide_mlp": True},
    "gemma4_unified": {"text_config": {k: v for k, v in GEMMA4.items() if "per_layer" not in k} | {"pad_token_id": 0}},
    "gpt2": {},
    "gpt_bigcode": {},
    "gpt_oss": SLIDING | {"rope_parameters": rope(500.0, "yarn", **YARN, beta_fast=1.0, beta_slow=0.25, truncate=False), "swiglu_limit": 1.5},
    "gptj": {"rotary_dim": 8},
    "granite": GRANITE,
    "granitemoe": GRANITE,
    "granitemoehybrid": GRANITE | BAMBA | {"num_hidden_layers": 4, "layer_types": ["linear_attention", "full_attention", "linear_attention", "linear_attention"],
                                           "shared_intermediate_size": 48, "position_embedding_type": "rope"},
    "helium": {"head_dim": 16},
    "hunyuan_v1_dense": {},
    "internlm3": {},
    "iquestcoder": {},
    "jamba": {"num_hidden_layers": 4, "attn_layer_offset": 1, "attn_layer_period": 2, "expert_layer_offset": 1, "expert_layer_period": 2, "mamba_d_state": 8,
              "mamba_d_conv": 4, "mamba_dt_rank": 6, "num_experts": 4, "num_experts_per_tok": 2},
    "kimi_k25": {"text_config": {"model_type": "deepseek_v3"} | MLA | GROUPS | {"first_k_dense_replace": 1}, "projection_hidden_size": 16, "vision_config": {
        "model_type": "kimi_k25_vision", "patch_size": 14, "pos_emb_height": 2, "pos_emb_width": 2, "pos_emb_time": 2, "num_attention_heads": 2, "num_hidden_layers": 1, "hidden_size": 16,
        "intermediate_size": 16}},
    "kimi_linear": MLA | {"head_dim": 8, "q_lora_rank": None, "num_hidden_layers": 4, "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
                          "linear_head_dim": 12, "linear_num_heads": 4, "num_experts_per_token": 3, "num_expert_group": 4, "topk_group": 2, "model_max_length": 64},
    "laguna": SLIDING | {"num_attention_heads_per_layer": [4, 6, 4, 2], "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "moe_routed_scaling_factor": 1.5,
                         "moe_router_logit_softcapping": 2.0, "rope_parameters": {"full_attention": rope(500.0, "yarn", **YARN, partial_rotary_factor=0.5),
                                                                                  "sliding_attention": rope(90.0, partial_rotary_factor=1.0)}},
    "lfm2": {"num_hidden_layers": 4, "layer_types": ["conv", "full_attention", "conv", "full_attention"], "block_multiple_of": 16, "conv_bias": True},
    "lfm2_moe": {"num_hidden_layers": 4, "layer_types": ["conv", "full_attention", "conv", "full_attention"], "num_dense_layers": 1, "routed_scaling_factor": 1.5},
    "lfm2_vl": {"text_config": {"model_type": "lfm2", "num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 16},
                "vision_config": {k: v for k, v in VISION.items() if k != "image_size"} | {"model_type": "siglip2_vision_model", "num_patches": 4}, "projector_hidden_size": 16},
    "llama4": {"text_config": LLAMA4, "vision_config": VISION | {"vision_output_dim": 16, "projector_input_dim": 16, "projector_output_dim": 16, "intermediate_size": 64}},
    "llama4_text": LLAMA4,
    "llava": {"text_config": {"model_type": "llama"}, "vision_config": {"model_type": "clip_vision_model", "projection_dim": 16} | VISION, "vision_feature_layer": -1},
    "mamba": MAMBA,
    "mamba2": {"num_heads": 8, "head_dim": 16, "state_size": 8, "n_groups": 2, "conv_kernel": 4, "chunk_size": 8},
    "mellum": SLIDING | kinds(500.0, 90.0, "yarn", **YARN) | {"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"]},
    "mimo_v2_flash": SLIDING | {"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "v_head_dim": 16, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.5,
                                "attention_value_scale": 0.7, "rope_parameters": {"full_attention": rope(500.0, partial_rotary_factor=0.334),
                                                                                  "sliding_attention": rope(90.0, partial_rotary_factor=0.5)}},
    "minicpm3": MLA | {"scale_emb": 3, "scale_depth": 1.4, "dim_model_base": 32},
    "minimax": {"num_hidden_layers": 4, "layer_types": ["full_attention", "linear_attention", "linear_attention", "full_attention"], "block_size": 8,
                "full_attn_alpha_factor": 2, "full_attn_beta_factor": 1, "linear_attn_alpha_factor": 1, "linear_attn_beta_factor": 2, "mlp_alpha_factor": 3,
                "mlp_beta_factor": 2},
    "minimax_m2": {},
    "ministral3": MINISTRAL3,
    "mistral": {"sliding_window": 8},
    "mistral3": {"text_config": {"model_type": "mistral"}, "vision_config": {"model_type": "pixtral", "head_dim": 8} | VISION},
    "mistral4": MLA | GROUPS | {"first_k_dense_replace": 1, "qk_nope_head_dim": 24, "head_dim": 32, "rope_parameters": MINISTRAL3["rope_parameters"]},
    "mixtral": {},
    "nanochat": {"final_logit_softcapping": 3.0},
    "nemotron": {},
    "nemotron_h": GROUPS | {"num_hidden_layers": None, "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp", "linear_attention"], "mamba_num_heads": 8,
                            "mamba_head_dim": 16, "ssm_state_size": 8, "n_groups": 2, "conv_kernel": 4, "chunk_size": 8, "moe_shared_expert_intermediate_size": 48},
    "olmo2": {},
    "olmoe": {},
    "phi": {"qk_layernorm": True},
    "phi3": {"original_max_position_embeddings": 16, "rope_parameters": rope(partial_rotary_factor=0.75), "sliding_window": 8},
    "qwen2": SLIDING | {"use_sliding_window": True},
    "qwen2_moe": SLIDING | {"use_sliding_window": True, "mlp_only_layers": [1]},
    "qwen2_vl": {"text_config": SLIDING | {"use_sliding_window": True, "rope_parameters": rope(mrope_section=[2, 3, 3])},
                 "vision_config": {"depth": 1, "embed_dim": 16, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 1}},
    "qwen2_5_vl": {"text_config": SLIDING | {"use_sliding_window": True, "rope_parameters": rope(mrope_section=[2, 3, 3])},
                   "vision_config": {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 64, "fullatt_block_indexes": [0]}},
    "qwen3_5": {"text_config": DELTA | {"rope_parameters": MROPE}, "vision_config": QWEN3_VISION},
    "qwen3_5_text": DELTA | {"rope_parameters": MROPE},
    "qwen3_5_moe": {"text_config": DELTA | {"rope_parameters": MROPE}, "vision_config": QWEN3_VISION},
    "qwen3_5_moe_text": DELTA | {"rope_parameters": MROPE},
    "qwen3_next": DELTA | {"mlp_only_layers": [2]},
    "qwen3_vl": {"text_config": {"rope_parameters": rope(mrope_section=[6, 3, 3], mrope_interleaved=True)}, "vision_config": QWEN3_VISION | {"deepstack_visual_indexes": [0]}},
    "qwen3_vl_moe": {"text_config": {"mlp_only_layers": [1], "rope_parameters": rope(mrope_section=[6, 3, 3], mrope_interleaved=True)},
                     "vision_config": QWEN3_VISION | {"deepstack_visual_indexes": [0]}},
    "seed_oss": {"attention_out_bias": True},
    "smollm3": SLIDING | {"use_sliding_window": True, "no_rope_layers": [1, 0, 1, 1], "no_rope_layer_interval": 2},
    "solar_open": GROUPS,
    "stablelm": {"use_qkv_bias": True, "qk_layernorm": True},
    "starcoder2": {"sliding_window": 8},
    "step3p7": {"text_config": {"pad_token_id": 0} | SLIDING | kinds() | {"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "share_expert_dim": 48, "num_sliding_attention_heads": 6,
                                                    "moe_router_scaling_factor": 1.5, "swiglu_limits": [0.0, 0.5, 0.0, 0.3], "swiglu_limits_shared": [0.3, 0.0, 0.4, 0.2]},
                "vision_config": VISION | {"mlp_ratio": 1.0, "max_position_embeddings": 4}},
    "gemma4_unified_text": {k: v for k, v in GEMMA4.items() if "per_layer" not in k} | {"pad_token_id": 0},
} | NESTED
VARIANTS = {  # these have no mutations
    "cohere-plain": {"attention_bias": False, "use_qk_norm": False},
    "deepseek_v2-greedy": MLA | {"q_lora_rank": None, "topk_method": "greedy", "first_k_dense_replace": 0, "routed_scaling_factor": 1.5},
    "deepseek_v2-single": MLA | {"first_k_dense_replace": 1, "n_routed_experts": 1, "num_experts_per_tok": 1, "n_shared_experts": 2},
    "deepseek_v3-mscale": MLA | GROUPS | {"first_k_dense_replace": 1, "rope_parameters": rope(500.0, "yarn", **YARN, mscale=0.7, mscale_all_dim=1.0)},
    "deepseek_v3-plain": MLA | {"q_lora_rank": None, "n_group": 1, "topk_group": 1, "norm_topk_prob": False, "rope_interleave": False, "attention_bias": False},
    "exaone4-gelu": SLIDING | {"sliding_window_pattern": 2, "hidden_act": "gelu"},
    "falcon_h1-norm": BAMBA | {"mamba_d_ssm": 128, "num_hidden_layers": 2, "mamba_rms_norm": True, "mamba_norm_before_gate": False},
    "gemma4_text-full": GEMMA4 | {"num_hidden_layers": 2, "layer_types": ["full_attention"] * 2},
    "gemma4_text-moe": GEMMA4 | {"num_hidden_layers": 4, "enable_moe_block": True, "num_experts": 8, "top_k_experts": 3, "moe_intermediate_size": 32,
                                 "hidden_size_per_layer_input": 0, "attention_k_eq_v": True, "num_global_key_value_heads": 1},
    "gpt2-odd": {"n_embd": 60},
    "gpt2-inverse": {"scale_attn_by_inverse_layer_idx": True, "tie_word_embeddings": False, "n_inner": 80},
    "gpt_bigcode-heads": {"multi_query": False, "num_key_value_heads": 4},
    "gpt_neox-odd": {"num_key_value_heads": None, "hidden_size": 80, "rope_theta": 300.0, "partial_rotary_factor": 0.5, "rope_parameters": rope(partial_rotary_factor=0.25)},
    "gpt_neox-sequential": {"num_key_value_heads": None, "use_parallel_residual": False},
    "gpt_oss-tied": SLIDING | {"tie_word_embeddings": True, "swiglu_alpha": 1.0, "swiglu_limit": 1.5},
    "granite-quick": GRANITE | {"hidden_act": "quick_gelu"},
    "granitemoehybrid-dense": GRANITE | BAMBA | {
        "num_hidden_layers": 4, "layer_types": ["linear_attention", "full_attention", "linear_attention", "linear_attention"], "num_local_experts": 0,
        "num_experts_per_tok": 0, "shared_intermediate_size": 96, "mamba_proj_bias": True, "mamba_n_groups": 1},
    "jamba-attention": {"attn_layer_offset": 0, "attn_layer_period": 1, "expert_layer_offset": 1, "expert_layer_period": 2, "mamba_dt_rank": 6, "num_experts": 4,
                        "num_experts_per_tok": 2},
    "kimi_k25-apart": CASES["kimi_k25"] | {"text_config": CASES["kimi_k25"]["text_config"] | {"tie_word_embeddings": True}, "tie_word_embeddings": False},
    "kimi_linear-memory": CASES["kimi_linear"] | {"original_names": False},
    "llama-tied": {"attention_bias": False, "mlp_bias": False, "tie_word_embeddings": True, "num_key_value_heads": 1},
    "llava-qwen2": {"text_config": {"model_type": "qwen2"}, "vision_config": {"model_type": "clip_vision_model", "projection_dim": 16} | VISION},
    "mimo_v2_flash-full": CASES["mimo_v2_flash"] | {"num_key_value_heads": 4, "layer_types": ["full_attention"] * 4},
    "minicpm3-longrope": MLA | {"scale_emb": 3, "dim_model_base": 32, "rope_parameters": rope(500.0, "longrope", **longrope(4))},
    "minicpm3-short": MLA | {"dim_model_base": 32, "rope_parameters": rope(500.0, "longrope", **longrope(4) | {"original_max_position_embeddings": 64})},
    "mistral-plain": {"sliding_window": None},
    "mistral3-ministral3": {"text_config": {"model_type": "ministral3"} | MINISTRAL3, "vision_config": {"model_type": "pixtral", "head_dim": 8} | VISION},
    "minimax_m2-memory": {"original_names": False},  # tensors under the names that they have in memory
    "mistral4-default": CASES["mistral4"] | {"head_dim": 8, "rope_parameters": rope(llama_4_scaling_beta=0.1, original_max_position_embeddings=16)},
    "nemotron_h-memory": CASES["nemotron_h"] | {"original_names": False},
    "nemotron_h-bare": CASES["nemotron_h"] | {"use_bias": False, "mamba_proj_bias": True, "sliding_window": 8},
    "nemotron_h-bias": GROUPS | {
        "num_hidden_layers": None, "layers_block_type": ["linear_attention", "full_attention", "moe", "mlp"], "mamba_num_heads": 8, "mamba_head_dim": 16,
        "ssm_state_size": 8, "n_groups": 1, "conv_kernel": 4, "chunk_size": 8, "moe_shared_expert_intermediate_size": 48, "mamba_proj_bias": True,
        "moe_latent_size": 24, "n_group": 1, "topk_group": 1},
    "phi-plain": {"qk_layernorm": False, "rope_parameters": rope(partial_rotary_factor=0.25)},
    "phi3-longrope": {"original_max_position_embeddings": 16, "rope_parameters": rope(500.0, "longrope", partial_rotary_factor=0.75, **longrope(6))},
    "qwen2-plain": {},
    "qwen3_5_text-attention": CASES["qwen3_5_text"] | {"layer_types": ["full_attention"] * 4},
    "qwen3_next-memory": CASES["qwen3_next"] | {"layer_types": ["full_attention"] * 4, "original_names": False},
    "qwen3_next-dense": CASES["qwen3_next"] | {"layer_types": ["full_attention"] * 4, "mlp_only_layers": [0, 1, 2, 3]},
    "qwen3_moe-window": {"use_sliding_window": True, "sliding_window": 8, "decoder_sparse_step": 2, "norm_topk_prob": False},
    "qwen3-plain": {"attention_bias": False, "tie_word_embeddings": True},
    "smollm3-plain": {"num_hidden_layers": 4, "no_rope_layer_interval": 4},
    "stablelm-parallel": {"use_parallel_residual": True},
    "step3p7-tied": CASES["step3p7"] | {"tie_word_embeddings": True},
    "starcoder2-plain": {"use_bias": False, "tie_word_embeddings": False},
} | NESTED_VARIANTS
LLAMA3_TOO = ["llama", "qwen3", "olmo3", "granite", "mistral", "smollm3", "exaone4", "qwen2", "gemma3_text", "cohere2", "llama4_text", "seed_oss"]
LEFT_OUT = {
    "bert": "an encoder: encoder.py has it", "xlm-roberta": "an encoder: encoder.py has it", "pixtral": "a vision tower: there is no text model of this type",
    "step3p5": "transformers has no text-only model of this type; it is the text_config of step3p7",
} | {k: "transformers has no such type" for k in (
    "bailing_moe bailing_moe_linear deepseek internlm2 joyai_llm_flash kimi_k2 kimi_vl lfm2-vl mimo minicpm nemotron-nas plamo2 telechat3 xverse youtu_llm").split()}
SEEDS = {}  # cases whose row would sit on a router's tie


def tiny(cls, given):
    """The arguments of a config: TINY and what the case gives, of the keys that the class has."""
    default = cls().to_dict()
    out = {k: v for k, v in TINY.items() if k in default}
    out |= copy.deepcopy(given)
    for k, sub in cls.sub_configs.items():
        if k in given and isinstance(given[k], dict):
            sub = hf.CONFIG_MAPPING[given[k]["model_type"]] if "model_type" in given[k] else sub
            out[k] = given[k] if "vision" in k or "audio" in k else tiny(sub, given[k])
    special = [k for k in default if re.fullmatch(r".+_token_(id|index)", k) and isinstance(default[k], int) and k not in TINY]
    out |= {k: VOCAB - 1 - i for i, k in enumerate(special)}  # none of the prompt's
    r = default.get("rope_parameters")
    if r and "rope_parameters" not in given:
        out["rope_parameters"] = r | {"rope_theta": 500.0} if "rope_type" in r else {k: v | {"rope_theta": 500.0} for k, v in r.items()}
    if kind := out.pop("scaled", None):
        r = out["rope_parameters"]
        if "rope_type" in r:
            out["rope_parameters"] = r | {"rope_type": kind} | SCALED[kind]
        else:
            layers = "sliding_attention" if r["full_attention"]["rope_type"] == "proportional" else "full_attention"
            out["rope_parameters"] = r | {layers: r[layers] | {"rope_type": kind} | SCALED[kind]}
    return {k: v for k, v in out.items() if v is not None or k in default}


def variants():
    """VARIANTS, and one for each way to scale rotations, where the case has not its own."""
    out = dict(VARIANTS)
    for name, given in CASES.items():
        r = hf.CONFIG_MAPPING[name]().to_dict().get("rope_parameters")
        if r and name != "phi3" and given.get("rope_parameters", r).get("rope_type") != "yarn":  # phi3 makes longrope of yarn and refuses linear
            for kind in ["yarn", "linear"] + ["llama3"] * (name in LLAMA3_TOO):
                out[f"{name}-{kind}"] = given | {"scaled": kind}
    return out


def classes(kind):
    config = hf.CONFIG_MAPPING[kind]
    name = MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.get(kind) or MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[kind]
    return config, getattr(hf, name)


def filling(name, w):
    """(base, amp) of a tensor, from what the reference's own beginning gave."""
    leaf = name.rpartition(".")[2]
    if leaf == "A_log":
        return -2, 2
    if leaf in ("dt_bias",):
        return 0, 1
    if "conv" in name and w.ndim >= 3 and "vision" not in name:
        return 0, (3 / w.shape[-1]) ** 0.5
    if w.size and np.all(w == 1):
        return 1, 0.25
    if w.ndim <= 1:
        return 0, 0.1 if leaf == "bias" or not np.any(w) else 0.5
    return 0, (3 / w.shape[-1]) ** 0.5


COMPUTED = ("slope_rate", "_decay")


def fill(folder, seed):
    """Overwrites the saved tensors with the formula's: -> their list."""
    made = []
    for path in sorted(folder.glob("*.safetensors")):
        new = {}
        for name, w in sorted(load_file(path).items()):
            if ".timm_model." in name:  # another package's tower, which nobody here reads
                new[name] = w
                continue
            assert w.dtype == np.float32, (name, w.dtype)
            base, amp = filling(name, w)
            made.append([name, list(w.shape), base, round(float(amp), 6)])
            # minimax keeps what it computes from its config among its weights; nobody trains that
            new[name] = w if name.endswith(COMPUTED) else synthetic.floats(name, seed, w.shape, "F32", base, round(float(amp), 6))
        save_file(new, path, {"format": "pt"})
    return made


class Refused(Exception):
    pass


def read(cls, folder):
    """The model of a folder, with the config class of its model_type: some types share a model and not its config."""
    config = hf.AutoConfig.from_pretrained(folder)
    if type(config) is not cls.config_class and config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        cls = getattr(hf, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config.model_type])  # a mistral with layer_types is a ministral
    model, info = cls.from_pretrained(folder, config=config, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager", output_loading_info=True)
    for k in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        if info.get(k):
            raise Refused(f"{k}: {', '.join(str(x) for x in sorted(info[k], key=str)[:2])}")
    return model.eval()


def logits(model, tokens):
    if model.config.model_type == "llama4":
        model = model.language_model  # the whole of it wants an image
    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0].float().numpy()


def moves(model, tokens, first, rows, seeds=3, by=1e-7):
    """How far the recorded logits move, as a share of their range, when all weights move by about their last bit; a larger by sees
    a router's tie from further away, and is divided out again."""
    worst, kept = 0.0, {k: v.clone() for k, v in model.state_dict().items()}
    for seed in range(seeds):
        g = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            seen = set()
            for k, v in model.state_dict().items():
                if v.is_floating_point() and v.data_ptr() not in seen:
                    seen.add(v.data_ptr())
                    v.copy_(kept[k] * (1 + by * (2 * torch.rand(v.shape, generator=g) - 1)))
        worst = max(worst, float(np.abs(logits(model, tokens)[rows] - first[rows]).max()))
    model.load_state_dict(kept)
    return worst / float(first.max() - first.min()) * (1e-7 / by)


# Keys that say nothing about what is computed, and those whose other values would build something large.
# rescale_prenorm_residual is about weights before training: the reference rescales trained ones too, at every load.
PLAIN = {"rescale_prenorm_residual", "architectures", "transformers_version", "dtype", "torch_dtype", "model_type", "_name_or_path", "id2label", "label2id", "vision_config", "audio_config"}
SMALL = {  # numbers whose absence builds nothing large
    "head_dim", "num_key_value_heads", "first_k_dense_replace", "n_group", "topk_group", "num_experts_per_tok", "sliding_window", "n_shared_experts", "num_shared_experts",
    "max_position_embeddings", "query_pre_attn_scalar", "rotary_dim", "num_expert_group", "moe_k", "no_rope_layer_interval", "sliding_window_pattern", "attn_layer_period",
    "interleave_moe_layer_step", "attention_chunk_size", "floor_scale", "attn_layer_offset", "expert_layer_period", "expert_layer_offset", "num_dense_layers",
    "num_kv_shared_layers", "original_max_position_embeddings", "max_window_layers", "block_size", "global_attn_every_n_layers", "expand", "mamba_expand",
    "n_positions", "time_step_rank", "mamba_dt_rank", "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval", "decoder_sparse_step", "dim_model_base",
    "scale_emb", "num_global_key_value_heads", "altup_active_idx", "altup_num_inputs", "chunk_size", "mamba_chunk_size", "num_nextn_predict_layers",
}
STRINGS = {
    "hidden_act": ["gelu", "relu2"], "hidden_activation": ["silu", "gelu"], "activation_function": ["relu", "gelu"], "mlp_hidden_act": ["silu", "relu"],
    "mamba_hidden_act": ["gelu"], "topk_method": ["greedy", "group_limited_greedy", "noaux_tc"], "scoring_func": ["softmax", "sigmoid"],
    "position_embedding_type": ["nope", "rope"], "rope_type": [], "type": [], "use_bidirectional_attention": ["all"],
}
ACTS = ["gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python", "gelu_10", "quick_gelu", "silu", "swish", "relu", "relu2", "relu6", "leaky_relu", "linear",
        "mish", "sigmoid", "tanh", "swiglu", "none"]
ALL_ACTS = {"llama", "gemma2", "gpt2", "nemotron", "phi", "qwen3_moe", "mixtral", "deepseek_v3", "falcon_h1", "mamba", "mamba2", "nemotron_h"}  # the rest get two
NULLS = {  # for keys that are null: another family's value, as small as the rest
    "sliding_window": 8, "head_dim": 16, "num_key_value_heads": 2, "q_lora_rank": 24, "pad_token_id": 0, "bos_token_id": 3, "eos_token_id": 5, "n_inner": 80,
    "attn_logit_softcapping": 3.0, "final_logit_softcapping": 3.0, "use_bidirectional_attention": True, "position_embedding_type": "rope", "n_group": 2,
    "topk_group": 1, "topk_method": "greedy", "clip_qkv": 0.5, "layer_types": ["full_attention"] * 3, "num_experts": 4, "n_shared_experts": 1,
    "swiglu_limits": [0.3, 0.3, 0.3], "summary_activation": "tanh",
}


def others(key, value):
    """Other values of a key that the reference may or may not take."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        big = re.search(r"vocab|size|dim|rank|heads|^n_head|^n_embd|d_head|d_state|d_conv|d_ssm|position|max_", key)
        more = [2 * value] if big and value else [value - 1 if value > 1 else value + 1]
        if re.search(r"heads|n_head", key) and value > 1:
            more.append(value // 2)
        if key == "max_position_embeddings":
            more.append(value // 8)
        if key in ("num_hidden_layers", "n_layer"):
            more = [value - 1, value + 1]
        return more + [None]
    if isinstance(value, float):
        if value == float("inf"):
            return [0.25, None]
        return [value * 1000 if "eps" in key else value * 1.7 if value else 0.5, None]
    if isinstance(value, str):
        return [s for s in STRINGS.get(key, [value + "x"]) if s != value] + ([None] if key not in ("rope_type", "type") else [])
    if isinstance(value, list):
        return changed(value) + [None]
    if value is None:
        return [NULLS[key]] if key in NULLS else []
    return []


def changed(value):
    """A list with one element changed."""
    if not value:
        return [[0], [1]]
    out = list(value)
    if isinstance(value[0], str):
        seen = sorted(set(value))
        if len(seen) > 1:
            out[0] = next(s for s in seen if s != value[0])
            more = list(value)
            more[-1] = next(s for s in seen if s != value[-1])
            return [out, more, value[:-1]]
        out[0] = {"full_attention": "sliding_attention", "sparse": "dense", "dense": "sparse"}.get(value[0], value[0] + "x")
        return [out]
    if isinstance(value[0], (bool, int, float)):
        v = value[0]
        out[0] = not v if isinstance(v, bool) else (0 if v == 1 else v + 1) if isinstance(v, int) else 0.25 if v in (0, float("inf")) else v * 1.7
        return [out]
    return []


def leaves(config, path=()):
    for k, v in config.items():
        if k in PLAIN:
            continue
        if isinstance(v, dict) and v and k != "rope_parameters":
            yield from leaves(v, path + (k,))
        elif k != "rope_parameters":
            yield path + (k,), v


def put(config, path, value):
    out = copy.deepcopy(config)
    at = out
    for k in path[:-1]:
        at = at[k]
    at[path[-1]] = value
    return out


def ropes(r, head):
    """Other values of rope_parameters: (path below it, value)."""
    if "rope_type" not in r:
        for k in r:
            for p, v in ropes(r[k], head) if isinstance(r[k], dict) else []:
                if p:
                    yield (k,) + p, v
                else:
                    yield (), r | {k: v}
        yield (), None
        return
    for k, v in r.items():
        if k not in ("rope_type", "type"):
            for o in others(k, v):
                yield (k,), o
    for k in r:
        if len(r) > 1:
            yield (), {x: y for x, y in r.items() if x != k}
    if "partial_rotary_factor" not in r:
        yield ("partial_rotary_factor",), 0.5
    plain = {k: v for k, v in r.items() if k in ("rope_theta", "partial_rotary_factor", "mrope_section", "mrope_interleaved")}
    if r["rope_type"] != "default":
        yield (), plain | {"rope_type": "default"}
    for kind, more in SCALED.items():
        if kind != r["rope_type"]:
            yield (), plain | {"rope_type": kind} | more
    yield (), plain | {"rope_type": "yarn"} | YARN | {"beta_fast": 1, "beta_slow": 0.25, "attention_factor": 0.8, "truncate": False}
    yield (), plain | {"rope_type": "yarn"} | YARN | {"mscale": 0.7, "mscale_all_dim": 0.9}
    yield (), plain | {"rope_type": "yarn", "factor": 4.0}
    yield (), plain | {"rope_type": "longrope"} | longrope(int(head * r.get("partial_rotary_factor", 1)) // 2)
    yield (), plain | {"type": "linear"} | LINEAR
    yield (), plain | {"type": "linear", "rope_type": "yarn"} | YARN
    yield (), plain | {"rope_type": "default", "factor": 4.0}
    yield (), plain | {"factor": 4.0}
    yield (), plain | {"rope_type": "llama3", "factor": 4.0, "original_max_position_embeddings": 16}
    yield (), plain | {"rope_type": "llama3"} | {k: v for k, v in LLAMA3.items() if k != "original_max_position_embeddings"}
    yield (), plain | {"rope_type": "later"}
    yield (), None


def edits(config, cls):
    """(what to write of it, config) of every mutation."""
    seen = set()

    def one(path, value):
        entry = {"key": ".".join(path), "value": value}
        mark = json.dumps(entry, sort_keys=True)
        if mark not in seen:
            seen.add(mark)
            yield entry, put(config, path, value)

    for path, value in leaves(config):
        for o in others(path[-1], value):
            yield from one(path, o)
        if isinstance(value, str) and value in ACTS and config["model_type"] in ALL_ACTS:
            for o in ACTS:
                if o != value:
                    yield from one(path, o)
    for k, v in config.items():
        if k not in PLAIN and k != "rope_parameters" and (k in SMALL or not isinstance(v, (int, dict)) or isinstance(v, bool)) and v is not None:
            yield {"config": {}, "drop": [k]}, {x: y for x, y in config.items() if x != k}
    for path in [("rope_parameters",), ("text_config", "rope_parameters")]:
        at = config
        for k in path:
            at = at.get(k) if isinstance(at, dict) else None
        if at:
            c = config["text_config"] if path[0] == "text_config" else config
            head = c.get("qk_rope_head_dim") or c.get("head_dim") or c.get("hidden_size", 0) // c.get("num_attention_heads", 1)
            for p, v in ropes(at, head):
                yield from one(path + p, v)
    if config["model_type"] in ("qwen2_vl", "qwen2_5_vl"):  # published with their text model's keys at the top
        text = {k: v for k, v in config["text_config"].items() if k not in PLAIN}
        yield {"config": text, "drop": ["text_config"]}, {k: v for k, v in config.items() if k != "text_config"} | text
    if config["model_type"] in NESTED and "rope_type" in config["text_config"]["rope_parameters"]:  # EXAONE 4.5 is published so
        text = {k: v for k, v in config["text_config"].items() if k != "rope_parameters"} | {"rope_scaling": {"rope_theta": 300.0, "rope_type": "llama3"} | LLAMA3}
        yield {"config": {"text_config": text}, "drop": []}, config | {"text_config": text}
    if config["model_type"] == "kimi_k25":
        text = config["text_config"] | {"model_type": "kimi_k2"}
        yield {"config": {"text_config": text}, "drop": []}, config | {"text_config": text}
    if "text_config" in config:
        for new in FOREIGN_ABOVE:
            if not new.keys() & config.keys():
                yield {"config": new, "drop": []}, config | new
    for at, into in [(config, None), (config.get("text_config"), "text_config")]:
        if not at:
            continue
        for new, drop in old(at, cls if not into else hf.CONFIG_MAPPING[at["model_type"]]):
            entry = {"config": new, "drop": drop}
            out = {k: v for k, v in at.items() if k not in drop} | new
            if into and len(new) == 1 and not drop:
                (k, v), = new.items()
                yield from one((into, k), v)
                continue
            if into:
                entry = {"config": {into: out}, "drop": []}
                out = config | {into: out}
            yield entry, out


FOREIGN = [  # keys of other families: what a type does with a key that it does not have
    {"sliding_window": 8}, {"sliding_window": 8, "use_sliding_window": True}, {"layer_types": ["sliding_attention", "full_attention", "full_attention"]},
    {"attn_logit_softcapping": 2.0}, {"final_logit_softcapping": 2.0}, {"logit_scale": 0.5}, {"logits_scaling": 2.0}, {"embedding_multiplier": 2.0},
    {"attention_multiplier": 0.3}, {"residual_multiplier": 0.5}, {"query_pre_attn_scalar": 30}, {"qk_layernorm": True}, {"use_qk_norm": True}, {"use_qk_norm": False},
    {"no_rope_layers": [0, 1, 1, 1]}, {"rope_interleave": True}, {"rope_interleave": False}, {"attention_bias": True}, {"attention_bias": False}, {"mlp_bias": True},
    {"mlp_bias": False}, {"qkv_bias": True}, {"qkv_bias": False}, {"use_bias": True}, {"use_bias": False}, {"hidden_act": "gelu"}, {"hidden_activation": "gelu"},
    {"activation_function": "relu"}, {"rms_norm_eps": 0.5}, {"layer_norm_eps": 0.5}, {"norm_eps": 0.5}, {"layer_norm_epsilon": 0.5}, {"head_dim": 32},
    {"num_key_value_heads": 1}, {"use_parallel_residual": True}, {"use_parallel_residual": False}, {"scale_emb": 2}, {"attention_chunk_size": 4},
    {"use_bidirectional_attention": True}, {"clip_qkv": 0.3}, {"partial_rotary_factor": 0.5}, {"rope_traditional": True}, {"is_causal": False},
]
FOREIGN_ABOVE = [  # keys of the text model beside its text_config
    {"rms_norm_eps": 0.5}, {"hidden_size": 32}, {"vocab_size": 48}, {"num_hidden_layers": 1}, {"num_attention_heads": 2}, {"num_key_value_heads": 1}, {"head_dim": 8},
    {"rope_theta": 50.0}, {"rope_parameters": rope(50.0)}, {"rope_scaling": {"rope_type": "linear"} | LINEAR}, {"sliding_window": 4}, {"hidden_act": "gelu"},
    {"final_logit_softcapping": 2.0}, {"max_position_embeddings": 8}, {"intermediate_size": 48}, {"layer_types": ["full_attention"]}, {"num_experts_per_tok": 1},
]
FOREIGN_EXPERTS = [
    {"scoring_func": "softmax"}, {"scoring_func": "sigmoid"}, {"topk_method": "greedy"}, {"moe_layer_freq": 2}, {"norm_topk_prob": True}, {"norm_topk_prob": False},
    {"routed_scaling_factor": 2.0}, {"n_group": 2, "topk_group": 1}, {"first_k_dense_replace": 2}, {"mlp_only_layers": [0]}, {"decoder_sparse_step": 2},
    {"shared_expert_intermediate_size": 48}, {"swiglu_limit": 0.3},
]
ONCE = ["layer_types"]
OLD = {  # older spellings of one type
    "qwen3_next": [({"full_attention_interval": 2}, ONCE)], "qwen3_5_text": [({"full_attention_interval": 2}, ONCE)], "qwen3_5_moe_text": [({"full_attention_interval": 2}, ONCE)],
    "nemotron_h": [({"hybrid_override_pattern": "ME*-M"}, ["layers_block_type", "layer_types"]),
                   ({"layers_block_type": ["mamba", "moe", "attention", "mlp", "mamba"]}, ONCE)],
    "granitemoehybrid": [({"layer_types": ["mamba", "attention", "mamba", "mamba"]}, [])],
    "kimi_linear": [({"linear_attn_config": {"kda_layers": [1, 3], "full_attn_layers": [2, 4], "num_heads": 4, "head_dim": 12, "short_conv_kernel_size": 4}},
                     ["layer_types", "linear_head_dim", "linear_num_heads", "linear_conv_kernel_dim"])],
    "mimo_v2_flash": [({"sliding_window_size": 5}, ["sliding_window"]), ({"sliding_window_size": 5}, []), ({"layernorm_epsilon": 0.5}, ["rms_norm_eps"]),
                      ({"hybrid_layer_pattern": [1, 0, 1, 1]}, ONCE), ({"moe_layer_freq": [0, 1, 1, 1]}, ["mlp_layer_types"])],
    "lfm2": [({"full_attn_idxs": [1, 3]}, ONCE), ({"block_ff_dim": 96}, ["intermediate_size"]), ({"tie_embedding": True}, ["tie_word_embeddings"]),
             ({"tie_embedding": False}, ["tie_word_embeddings"])],
    "lfm2_moe": [({"full_attn_idxs": [1, 3]}, ONCE), ({"tie_embedding": True}, ["tie_word_embeddings"])],
    "gemma4_text": [({"global_head_dim": 32}, ["per_layer_config"]), ({"global_head_dim": 24}, ["per_layer_config"]), ({}, ["per_layer_config"])],
    "hunyuan_v1_dense": [({"rope_theta": 300.0, "rope_scaling": {"type": "dynamic", "alpha": 50.0, "factor": 1.0}}, ["rope_parameters"])],
    "minimax": [({"attn_type_list": [1, 0, 0, 1]}, ONCE), ({"layernorm_full_attention_alpha": 2}, ["full_attn_alpha_factor"])],
    "qwen2": [({"use_sliding_window": True, "max_window_layers": 2}, ONCE), ({"use_sliding_window": False}, ONCE)],
    "qwen2_moe": [({"use_sliding_window": True, "max_window_layers": 2}, ONCE)],
    "qwen3": [({"use_sliding_window": True, "max_window_layers": 2}, ONCE)],
    "dots1": [({"max_window_layers": 2}, ONCE)],
    "exaone4": [({"sliding_window_pattern": "LLG"}, ONCE), ({"sliding_window_pattern": "LG"}, ONCE)],
    "exaone_moe": [({"sliding_window_pattern": "LG"}, ONCE), ({"is_moe_layer": [False, True, True, True]}, ["mlp_layer_types"])],
    "phi3": [({"rope_theta": 500.0, "partial_rotary_factor": 0.75, "rope_scaling": {"type": t} | longrope(6)}, ["rope_parameters"]) for t in ("longrope", "su", "yarn")],
    "step3p5": [({"moe_layers_enum": "1,2,3"}, ["mlp_layer_types"]), ({"rope_theta": [90.0, 500.0, 90.0, 90.0]}, ["rope_parameters"]),
                ({"rope_theta": [90.0, 500.0, 90.0, 90.0], "partial_rotary_factors": [1.0, 0.5, 1.0, 1.0]}, ["rope_parameters"])],
    "qwen2_vl_text": [({"rope_theta": 300.0, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}, ["rope_parameters"])],
    "qwen2_5_vl_text": [({"rope_theta": 300.0, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}, ["rope_parameters"])],
    "qwen3_vl_text": [({"rope_theta": 300.0, "rope_scaling": {"rope_type": "default", "mrope_section": [6, 3, 3], "mrope_interleaved": True}}, ["rope_parameters"])],
    "gpt2": [({"n_ctx": 64}, ["n_positions"]), ({"num_key_value_heads": 2}, [])],
    "llama4_text": [({}, ["no_rope_layers"]), ({}, ["moe_layers"])],
}


def old(c, cls):
    """Older and other spellings of keys: (keys set, keys dropped)."""
    r = c.get("rope_parameters")
    if r and "rope_type" in r:
        partial = {"partial_rotary_factor": r["partial_rotary_factor"]} if "partial_rotary_factor" in r else {}
        yield {}, ["rope_parameters"]
        yield {"rope_theta": 300.0} | partial, ["rope_parameters"]
        yield {"rope_theta": 300.0, "rope_scaling": None}, ["rope_parameters"]
        yield {"rope_theta": 300.0}, []
        yield {"rope_theta": 300.0, "partial_rotary_factor": 0.25}, ["rope_parameters"]
        for kind, more in SCALED.items():
            yield {"rope_theta": 300.0, "rope_scaling": {"rope_type": kind} | more} | partial, ["rope_parameters"]
        for kind in ("linear", "yarn"):
            yield {"rope_theta": 300.0, "rope_scaling": {"type": kind} | SCALED[kind]} | partial, ["rope_parameters"]
        yield {"rope_theta": 300.0, "rope_scaling": {"factor": 4.0}} | partial, ["rope_parameters"]
        yield {"rope_scaling": {"rope_type": "linear"} | LINEAR}, []
        yield {"rope_parameters": r | {"rope_type": "dynamic", "factor": 4.0}, "max_position_embeddings": 16}, []
    elif r:
        yield {}, ["rope_parameters"]
        yield {"rope_theta": 300.0}, ["rope_parameters"]
        yield {"rope_theta": 300.0, "rope_local_base_freq": 50.0}, ["rope_parameters"]
        yield {"rope_theta": 300.0, "rope_local_base_freq": 50.0, "rope_scaling": {"rope_type": "linear"} | LINEAR}, ["rope_parameters"]
        for kind, more in SCALED.items():
            yield {"rope_theta": 300.0, "rope_scaling": {"rope_type": kind} | more}, ["rope_parameters"]
        yield {"rope_parameters": rope(300.0)}, []
        yield {"rope_parameters": rope(300.0, "yarn", **YARN)}, []
    if c.get("layer_types"):
        yield {}, ["layer_types"]
        yield {"sliding_window_pattern": 2}, ["layer_types"]
        yield {"_sliding_window_pattern": 2}, ["layer_types"]
        yield {"sliding_window_pattern": 3}, []
    yield from OLD.get(c["model_type"], [])
    for new in FOREIGN + FOREIGN_EXPERTS * any("expert" in k for k in c):
        if not new.keys() & c.keys():
            yield new, []
    for name in ("rotary_pct", "rotary_emb_base", "rotary_dim", "rotary_percent"):
        if c["model_type"] in ("gpt_neox", "gptj", "minimax", "stablelm", "glm", "glm4", "nemotron", "minimax_m2", "phi"):
            v = {"rotary_pct": 0.25, "rotary_emb_base": 300, "rotary_dim": 8, "rotary_percent": 0.25}[name]
            yield {name: v}, ["rope_parameters"] if r else []
            yield {name: v}, []
    for a, b in [("num_local_experts", "num_experts"), ("num_experts", "num_local_experts"), ("n_routed_experts", "num_experts"), ("n_routed_experts", "num_local_experts"),
                 ("num_experts", "n_routed_experts")]:
        if a in c and b not in c and c[a]:
            yield {b: c[a]}, [a]
    for a, b in cls.attribute_map.items():
        if b in c and a not in c and c[b] is not None:
            yield {a: c[b]}, [b]
    if "mlp_layer_types" in c:
        yield {"first_k_dense_replace": 1}, ["mlp_layer_types"]
        yield {"first_k_dense_replace": 2}, ["mlp_layer_types"]


def said(e, folder):
    if "ignore_mismatched_sizes" in str(e):
        return "shapes do not fit"
    text = str(e).replace(str(folder), "") if str(folder) else str(e)
    text = re.sub(r"\{('[^{}:]*')\}", lambda m: "{" + ", ".join(sorted(m[1].split(", "))) + "}", text)  # a set's order is chance
    lines = [s.strip() for s in text.splitlines() if s.strip()]
    return f"{type(e).__name__}: {' '.join(lines[:2])}"[:140]


def mutations(config, cls, model, folder, tokens, base, names):
    out, experts = [], any("expert" in k or "router" in k for k in names)
    for entry, edited in edits(config, cls):
        (folder / "config.json").write_text(json.dumps(edited))
        try:
            m = read(model, folder)
            y = logits(m, tokens)
            if not np.all(np.isfinite(y[-1])):
                raise Refused("the logits are not finite")
            entry["logits"] = pins.f32(y[-1][:PICKS])
            seeds = 6 if experts else 1  # a tie shows in some draws only
            if not np.array_equal(y, base) and (w := moves(m, tokens, y, [-1], seeds, 1e-6)) > MOVES:
                entry["moves"] = w
        except Exception as e:
            entry["error"] = said(e, folder)
        out.append(entry)
    return out


def case(name, given, base):
    kind = name.split("-")[0]
    config, model = classes(kind)
    seed = SEEDS.get(name, SEED)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        given = dict(given)
        names = {} if given.pop("original_names", True) else {"save_original_format": False}
        c = config(**tiny(config, given))
        model._from_config(c, dtype=torch.float32, attn_implementation="eager").save_pretrained(folder, **names)
        written = json.loads((folder / "config.json").read_text())
        tensors = fill(folder, seed)
        m = read(model, folder)
        tokens = [int(t) for t in synthetic.draws("tokens", seed, LENGTH) % np.uint64(VOCAB - 14) + np.uint64(6)]
        y = logits(m, tokens)
        rows = [0, 1, 7, 23] if base else [0, 23]
        golden = {"seed": seed, "config": written, "tensors": tensors, "tokens": tokens, "rows": rows, "logits": pins.f32(y[rows]),
                  "range": float(y.max() - y.min()), "moves": max(moves(m, tokens, y, rows), moves(m, tokens, y, rows, 6, 1e-6))}
        if base:
            golden["picks"] = PICKS
            golden["mutations"] = mutations(written, config, model, folder, tokens, y, [t[0] for t in tensors]) if "--no-mutations" not in sys.argv else []
    return golden


def tagged(x):
    """JSON has no infinities."""
    if isinstance(x, float) and not np.isfinite(x):
        return {"__float__": "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"}
    if isinstance(x, dict):
        return {k: tagged(v) for k, v in x.items()}
    return [tagged(v) for v in x] if isinstance(x, list) else x


def write(path, golden):
    """One tensor and one mutation a line."""
    parts = []
    for k, v in tagged(golden).items():
        if k in ("tensors", "mutations"):
            text = "[\n" + ",\n".join("  " + json.dumps(x) for x in v) + "\n ]" if v else "[]"
        elif k == "config":
            text = json.dumps(v, indent=1, sort_keys=True).replace("\n", "\n ")
            text = re.sub(r"\[[^\[\]{}]+\]", lambda m: re.sub(r"\s+", " ", m[0]), text)
        else:
            text = json.dumps(v)
        parts.append(f" {json.dumps(k)}: {text}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main(out, *only):
    header, failed = pins.made(__file__, PINS), []
    for name, given in (CASES | variants()).items():
        if only and name not in only and name.split("-")[0] not in only:
            continue
        start = time.time()
        try:
            golden = case(name, given, name in CASES)
        except Exception as e:
            if "-v" in sys.argv:
                raise
            failed.append(name)
            print("FAILED", name, said(e, ""), flush=True)
            continue
        path = Path(out) / f"{name}.json"
        write(path, {"made": header} | golden)
        ms = golden.get("mutations", [])
        print(f"{name}: {len(golden['tensors'])} tensors, range {golden['range']:.3g}, moves {golden['moves']:.1e}, {len(ms)} mutations "
              f"({sum('error' in m for m in ms)} refused), {path.stat().st_size} bytes, {time.time() - start:.1f} s", flush=True)
    if not only:
        (Path(out) / "left_out.json").write_text(json.dumps(LEFT_OUT, indent=1) + "\n")
    for k, why in LEFT_OUT.items():
        print("left out", k, why)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*[a for a in sys.argv[1:] if not a.startswith("-")]))
