"""What mlx-lm's converter makes of tiny folders: a hash of all tensors, and config.json's quantisation.

run: python tools/golden/quantize.py internal/convert/testdata/quantize.json [case whose tensors it prints ...]
"""
import copy
import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map_with_path
from mlx_lm.convert import mixed_quant_predicate_builder
from mlx_lm.utils import load_model, quantize_model, save_config, save_model

import model as models
import pins

SMALL = models.BASE | {"hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 40}
GROUPS = {"affine": (64, 4), "mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}


def case(config, dtype, mode="affine", bits=None, group=None, recipe=None, apart=False):
    g, b = GROUPS[mode]
    return {"config": SMALL | config, "type": dtype, "mode": mode, "bits": bits or b, "group": group or g, "recipe": recipe, "apart": apart}


QWEN3_MOE = models.QWEN3_MOE | {"num_experts": 4, "num_experts_per_tok": 2, "mlp_only_layers": [], "moe_intermediate_size": 64}
DEEPSEEK = {"model_type": "deepseek_v3", "num_experts_per_tok": 2, "n_routed_experts": 4, "n_shared_experts": 1, "moe_intermediate_size": 64, "q_lora_rank": 32,
            "kv_lora_rank": 64, "qk_rope_head_dim": 16, "qk_nope_head_dim": 64, "v_head_dim": 32, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
            "moe_layer_freq": 1, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True, "routed_scaling_factor": 1.0,
            "tie_word_embeddings": False, "rope_scaling": None}
CASES = {
    "qwen3": case(models.QWEN3, "BF16"),
    "qwen3, 3 bits, groups of 32": case(models.QWEN3 | {"tie_word_embeddings": False}, "F16", bits=3, group=32),
    "qwen3, 8 bits of float32 cast": case(models.QWEN3 | {"torch_dtype": "bfloat16"}, "F32", bits=8),
    "qwen3, float32": case(models.QWEN3, "F32", bits=6),
    "qwen3, mxfp4": case(models.QWEN3, "BF16", "mxfp4"),
    "qwen3, mxfp8": case(models.QWEN3, "BF16", "mxfp8"),
    "qwen3, nvfp4": case(models.QWEN3, "BF16", "nvfp4"),
    "qwen2 with biases": case(models.QWEN2, "BF16"),
    "phi3": case(models.PHI3 | {"rope_scaling": None, "partial_rotary_factor": 1.0}, "BF16"),
    "granite, mxfp4": case(models.GRANITE | {"intermediate_size": 128, "tie_word_embeddings": False}, "BF16", "mxfp4"),
    "gemma3": case({"model_type": "gemma3", "text_config": SMALL | models.GEMMA3 | {"num_hidden_layers": 2}}, "BF16"),
    "gemma4": case(models.GEMMA4 | {"num_hidden_layers": 3, "num_kv_shared_layers": 1, "layer_types": models.SLIDING["layer_types"][:3],
                                    "vocab_size_per_layer_input": 40, "enable_moe_block": True, "num_experts": 4, "top_k_experts": 2,
                                    "moe_intermediate_size": 64}, "BF16"),
    "qwen3_moe": case(QWEN3_MOE, "BF16"),
    "qwen3_moe, experts apart": case(QWEN3_MOE, "BF16", apart=True),
    "qwen2_moe": case(models.QWEN2_MOE | {"num_experts": 4, "num_experts_per_tok": 2}, "BF16"),
    "mixtral, experts apart": case(models.MIXTRAL | {"num_local_experts": 4, "intermediate_size": 64}, "BF16", apart=True),
    "minimax": case(models.MINIMAX | {"num_local_experts": 4, "num_experts_per_tok": 2}, "BF16"),
    "gpt_oss, mxfp4": case(models.GPT_OSS | {"num_hidden_layers": 2, "layer_types": None, "num_local_experts": 4, "intermediate_size": 64}, "BF16", "mxfp4"),
    "glm4_moe": case(models.GLM4_MOE | {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}, "BF16"),
    "deepseek_v3": case(DEEPSEEK | {"torch_dtype": "bfloat16"}, "F32"),
    "deepseek_v3, experts apart": case(DEEPSEEK, "BF16", apart=True),
    "deepseek_v2": case(models.DEEPSEEK_V2 | {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}, "BF16", group=32),
    "qwen3_next": case(models.QWEN3_NEXT | {"num_hidden_layers": 3, "num_experts": 4, "num_experts_per_tok": 2}, "BF16"),
    "mixed_2_6": case(models.QWEN3 | {"num_hidden_layers": 9, "tie_word_embeddings": False}, "BF16", recipe="mixed_2_6", group=32),
    "mixed_3_4": case(models.QWEN3 | {"num_hidden_layers": 8}, "BF16", recipe="mixed_3_4"),
    "mixed_4_6 of experts": case(QWEN3_MOE | {"num_hidden_layers": 8}, "BF16", recipe="mixed_4_6"),
}
APART = {"mixtral": ("block_sparse_moe.switch_mlp", "block_sparse_moe.experts", {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"})}


def number(k, shape):
    """The tensor with number k in order of names: steps that any language computes alike."""
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    return (((i * 7919 + k * 104729 + i // 61 * 31) % 2003 - 1001).astype(np.float32) / np.float32(1001)).reshape(shape)


def stored(config, shapes, apart):
    """Shapes under the names of the folder."""
    if not apart:
        return shapes
    stack, experts, parts = APART.get(config["model_type"], ("mlp.switch_mlp", "mlp.experts", {}))
    out = {}
    for name, shape in shapes.items():
        before, mid, after = name.partition("." + stack + ".")
        if not mid:
            out[name] = shape
            continue
        part, suffix = after.split(".")
        for e in range(shape[0]):
            out[f"{before}.{experts}.{e}.{parts.get(part, part)}.{suffix}"] = shape[1:]
    return out


def convert(c):
    config = c["config"]
    shapes = stored(config, models.shapes(config), c["apart"])
    tensors = {n: mx.array(number(k, shapes[n])).astype(models.DTYPES[c["type"]]) for k, n in enumerate(sorted(shapes))}
    with tempfile.TemporaryDirectory() as src, tempfile.TemporaryDirectory() as dst:
        (Path(src) / "config.json").write_text(json.dumps(config))
        mx.save_safetensors(src + "/model.safetensors", tensors, {"format": "mlx"})
        model, made = load_model(Path(src))
        if dtype := made.get("torch_dtype"):
            cast = getattr(model, "cast_predicate", lambda _: True)
            model.update(tree_map_with_path(
                lambda k, v: v.astype(getattr(mx, dtype)) if cast(k) and mx.issubdtype(v.dtype, mx.floating) else v, model.parameters()))
        predicate = mixed_quant_predicate_builder(c["recipe"], model, c["group"]) if c["recipe"] else None
        model, made = quantize_model(model, copy.deepcopy(made), c["group"], c["bits"], mode=c["mode"], quant_predicate=predicate)
        save_model(dst, model)
        save_config(made, Path(dst) / "config.json")
        made = json.loads((Path(dst) / "config.json").read_text())
        index = json.loads((Path(dst) / "model.safetensors.index.json").read_text())
        out = {}
        for name, w in mx.load(dst + "/model.safetensors").items():
            kind = {mx.uint32: "U32", mx.uint8: "U8", mx.float32: "F32", mx.float16: "F16", mx.bfloat16: "BF16"}[w.dtype]
            raw = np.array(w.view(mx.uint16) if w.dtype == mx.bfloat16 else w).tobytes()
            out[name] = f"{name} {kind} {'x'.join(map(str, w.shape))} {hashlib.sha256(raw).hexdigest()[:12]}\n"
    assert made["quantization"] == made["quantization_config"]
    return shapes, out, made["quantization"], index["metadata"]


def short(shapes, layers):
    """Shapes with one entry for all layers where they are alike: N is * then."""
    out = {}
    for name, shape in shapes.items():
        same = [re.sub(r"layers\.\d+\.", f"layers.{i}.", name) for i in range(layers)]
        if all(shapes.get(n) == shape for n in same):
            name = re.sub(r"layers\.\d+\.", "layers.*.", name)
        out[name] = list(shape)
    return out


def main(out, *only):
    cases = []
    for name, c in CASES.items():
        shapes, tensors, quantization, metadata = convert(c)
        text = "".join(tensors[n] for n in sorted(tensors))
        if name in only:
            print(text)
        layers = c["config"].get("text_config", c["config"])["num_hidden_layers"]
        cases.append({"name": name} | c | {"layers": layers, "shapes": short(shapes, layers), "tensors": len(tensors), "quantization": quantization,
                                           "metadata": metadata, "digest": hashlib.sha256(text.encode()).hexdigest()})
    pins.write(out, {"made": pins.made(__file__), "cases": cases})


if __name__ == "__main__":
    main(*sys.argv[1:])
