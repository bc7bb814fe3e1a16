"""Logits of tiny models with formula weights, from mlx-lm with float32 activations.

run: python tools/golden/model.py internal/model/testdata
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
}
SEED, STEPS = 20261121, 8
SHORT = (20, 7, [0, 5, 6, 13, 19])  # prompt tokens, where the chunked prefill is cut, rows whose logits are kept
LONG = (150, 101, [0, 64, 100, 129, 149])
DTYPES = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}


def shapes(config):
    """Tensor shapes of the unquantised model."""
    cls, args = _get_classes(config)
    return {k: tuple(v.shape) for k, v in tree_flatten(cls(args.from_dict(copy.deepcopy(config))).parameters())}


def build(config, seed, dtype):
    """The model as mlx-lm loads it from a folder, then widened to float32: the weights keep their stored values."""
    tensors = {}
    for name, w in synthetic.weights(config, shapes(config), seed, dtype).items():
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


def main(out):
    header = pins.made(__file__)
    for name, (config, dtype) in CASES.items():
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
    main(sys.argv[1])
