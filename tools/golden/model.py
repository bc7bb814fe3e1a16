"""Logits of tiny models with formula weights, from mlx-lm with float32 activations.

run: python tools/golden/model.py internal/model/testdata [beginning of a case's name ...]
"""
import copy
import json
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_map
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import _get_classes, load_model

import pins
import synthetic

mx.set_default_device(mx.cpu)

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
GPT_OSS = {"model_type": "gpt_oss", "head_dim": 32, "num_hidden_layers": 4, "sliding_window": 6, "num_local_experts": 6, "num_experts_per_tok": 2,
           "intermediate_size": 96, "tie_word_embeddings": False,
           "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}}
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
GATES = {f"model.layers.{i}.mlp.gate": False for i in range(3)}  # this family's are no modules that mlx-lm quantises

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
    "mistral3/f32": ({"model_type": "mistral3", "text_config": BASE | MINISTRAL3 | SLIDING}, "F32"),
    "mistral3/4bit": ({"model_type": "mistral3", "text_config": BASE | MINISTRAL3} | Q4, "BF16"),
    "mistral3/llama": ({"model_type": "mistral3", "text_config": BASE | MISTRAL}, "BF16"),
    "llava/bf16": ({"model_type": "llava", "text_config": BASE | MISTRAL}, "BF16"),
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
    "gpt_oss/f32": (GPT_OSS, "F32"),
    "gpt_oss/bf16": (GPT_OSS | {"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]}, "BF16"),
    "gpt_oss/long": (GPT_OSS | {"sliding_window": 70}, "BF16"),
    "gpt_oss/4bit": (GPT_OSS | {"intermediate_size": 128} | {"quantization": Q4["quantization"] | ROUTERS}, "BF16"),
    "gpt_oss/mxfp4": (GPT_OSS | {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"} | ROUTERS}, "BF16"),
    "gemma/f32": ({"model_type": "gemma", "head_dim": 48}, "F32"),
    "gemma/4bit": ({"model_type": "gemma", "head_dim": 48} | Q4, "BF16"),
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
    "pixtral/bf16": ({"model_type": "pixtral", "text_config": BASE | MISTRAL}, "BF16"),
    "qwen2_vl/f32": ({"model_type": "qwen2_vl", "rope_scaling": {"type": "mrope", "mrope_section": [4, 6, 6]}}, "F32"),
    "qwen2_5_vl/4bit": ({"model_type": "qwen2_5_vl", "text_config": BASE | QWEN2} | Q4, "BF16"),
    "qwen3_vl/4bit": ({"model_type": "qwen3_vl", "text_config": BASE | QWEN3 | {"rope_scaling": {
        "mrope_interleaved": True, "mrope_section": [8, 8, 8], "rope_type": "default"}}} | Q4, "BF16"),
    "qwen3_vl_moe/4bit": ({"model_type": "qwen3_vl_moe", "text_config": BASE | QWEN3_MOE | {"tie_word_embeddings": False}} | Q4, "BF16"),
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


def shapes(config):
    """Tensor shapes of the unquantised model."""
    cls, args = _get_classes(config)
    all_ = {k: tuple(v.shape) for k, v in tree_flatten(cls(args.from_dict(copy.deepcopy(config))).parameters())}
    if config.get("text_config", config)["tie_word_embeddings"]:  # gemma3 makes a head and drops it if no file has one
        all_ = {k: s for k, s in all_.items() if not k.endswith("lm_head.weight")}
    return all_


def rename(name):
    """What internal/model calls a tensor."""
    for theirs, ours in {"language_model.": "", ".mlp.router.": ".mlp.gate.", ".mlp.experts.": ".mlp.switch_mlp.",
                         ".block_sparse_moe.e_score": ".mlp.gate.e_score", ".block_sparse_moe.": ".mlp.", ".shared_expert.": ".shared_experts."}.items():
        name = name.replace(theirs, ours)
    return name


def build(config, seed, dtype):
    """The model as mlx-lm loads it from a folder, then widened to float32: the weights keep their stored values."""
    tensors = {}
    for name, w in synthetic.weights(config, shapes(config), seed, dtype, rename).items():
        tensors[name] = mx.array(w) if w.dtype in (np.uint32, np.uint8) else mx.array(w).astype(DTYPES[dtype])
    with tempfile.TemporaryDirectory() as d:
        (Path(d) / "config.json").write_text(json.dumps(config))
        mx.save_safetensors(d + "/model.safetensors", tensors, {"format": "mlx"})
        model, _ = load_model(Path(d))
    model.update(tree_map(lambda p: p.astype(mx.float32) if mx.issubdtype(p.dtype, mx.floating) else p, model.parameters()))
    mx.eval(model.parameters())
    return model


def run(model, cache, tokens):
    y = model(mx.array([tokens]), cache=cache)
    mx.eval(y)
    assert y.dtype == mx.float32
    return np.array(y[0])


def main(out, *only):
    header = pins.made(__file__)
    for name, (config, dtype) in CASES.items():
        if only and not any(name.startswith(o) for o in only):
            continue
        config = BASE | config
        prompt, cut, rows = LONG if name.endswith("long") else SHORT
        model = build(config, SEED, dtype)
        tokens = [int(t) for t in np.random.default_rng(7).integers(0, config["vocab_size"], prompt + STEPS)]
        cache = make_prompt_cache(model)
        prefill = run(model, cache, tokens[:prompt])
        decode = np.stack([run(model, cache, [t])[-1] for t in tokens[prompt:]])
        cache = make_prompt_cache(model)
        run(model, cache, tokens[:cut])
        chunked = run(model, cache, tokens[cut:prompt])[-1]
        print(name, "range", np.ptp(prefill), "chunked differs by", np.abs(chunked - prefill[-1]).max())
        pins.write(f"{out}/{name}.json", {
            "made": header, "config": config, "seed": SEED, "type": dtype,
            "params": sum(int(np.prod(s)) for s in shapes(config).values()),
            "prompt": tokens[:prompt], "decode": tokens[prompt:], "rows": rows, "cut": cut,
            "prefill_logits": pins.f32(prefill[rows]), "decode_logits": pins.f32(decode), "chunked_logits": pins.f32(chunked),
        })


if __name__ == "__main__":
    main(*sys.argv[1:])
