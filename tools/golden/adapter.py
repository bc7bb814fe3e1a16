"""Logits of tiny models with low-rank adapters, weights and adapters by formula, from mlx-lm with float32 activations.

run: python tools/golden/adapter.py internal/model/testdata/adapter.json
"""
import json
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_map
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.tuner.utils import linear_to_lora_layers, load_adapters

import model as models
import pins
import synthetic

CASES = {  # name: (config, dtype, layers from the end, modules or None for all that mlx-lm takes)
    "qwen3, 4 bits, all modules of two layers": (models.QWEN3 | models.Q4, "BF16", 2, None),
    "qwen3, table and head": (models.QWEN3, "BF16", 1, ["self_attn.v_proj", "mlp.down_proj", "model.embed_tokens"]),
    "experts": (models.QWEN3_MOE | {"num_experts": 4, "num_experts_per_tok": 2}, "F32", 1, None),
    "nested": ({"model_type": "gemma3", "text_config": models.BASE | models.GEMMA3}, "BF16", 2, ["self_attn.q_proj", "mlp.up_proj"]),
    "streams, with modules that nobody uses": ({"model_type": "gemma3n", "text_config": models.BASE | models.GEMMA3N}, "BF16", 3,
                                               ["self_attn.q_proj", "self_attn.k_proj", "mlp.gate_proj", "laurel.linear_left", "altup.modality_router"]),
    "latent attention": (models.DEEPSEEK_Q4 | models.DEEPSEEK_V2Q | {"quantization": models.Q4["quantization"] | models.GATES}, "BF16", 2, ["self_attn.kv_b_proj", "self_attn.kv_a_proj_with_mqa", "self_attn.o_proj"]),
    "shared keys and values": (models.GEMMA4, "BF16", 5, ["self_attn.q_proj", "self_attn.k_proj", "per_layer_input_gate"]),
}
RANK, SCALE = 3, 4.0


def adapter(model):
    """The adapter's tensors: half of the first's amplitude is enough to show."""
    out = {}
    for name, w in tree_flatten(model.parameters()):
        if name.endswith((".lora_a", ".lora_b")):
            amp = 0.1 if name.endswith("_b") else 0.2
            out[name] = mx.array(synthetic.floats(name, models.SEED, w.shape, "F32", 0, amp))
    return out


def main(out):
    header, cases = pins.made(__file__), []
    for name, (config, dtype, layers, keys) in CASES.items():
        config = models.BASE | config
        params = {"rank": RANK, "scale": SCALE, "dropout": 0.0} | ({"keys": keys} if keys else {})
        made = models.build(config, models.SEED, dtype)
        linear_to_lora_layers(made, layers, params)
        tensors = adapter(made)
        written = {"fine_tune_type": "lora", "num_layers": layers, "lora_parameters": params}
        model = models.build(config, models.SEED, dtype)
        with tempfile.TemporaryDirectory() as d:
            (Path(d) / "adapter_config.json").write_text(json.dumps(written))
            mx.save_safetensors(d + "/adapters.safetensors", tensors)
            load_adapters(model, d)
        model.update(tree_map(lambda p: p.astype(mx.float32) if mx.issubdtype(p.dtype, mx.floating) else p, model.parameters()))
        model.eval()
        tokens = [int(t) for t in np.random.default_rng(8).integers(0, config["vocab_size"], 14)]
        cache = make_prompt_cache(model)
        prefill = models.run(model, cache, tokens[:12])[[0, 5, 11]]
        decode = np.stack([models.run(model, cache, [t])[-1] for t in tokens[12:]])
        plain = models.build(config, models.SEED, dtype)
        print(name, len(tensors), "tensors, adds", np.abs(prefill - models.run(plain, make_prompt_cache(plain), tokens[:12])[[0, 5, 11]]).max())
        cases.append({"name": name, "config": config, "seed": models.SEED, "type": dtype, "adapter": written,
                      "shapes": {k: list(v.shape) for k, v in tensors.items()}, "prompt": tokens[:12], "decode": tokens[12:], "rows": [0, 5, 11],
                      "prefill_logits": pins.f32(prefill), "decode_logits": pins.f32(decode)})
    pins.write(out, {"made": header, "cases": cases})


if __name__ == "__main__":
    main(*sys.argv[1:])
