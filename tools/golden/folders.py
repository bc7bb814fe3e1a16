"""Logits of tiny folders in every published way to store quantised weights, from mlx-lm loading the same folder.

run: python tools/golden/folders.py internal/model/testdata/folders.json

The golden says how to fill each tensor (see fill), not its bytes. Where mlx-lm translates a tool's tensors in a model
file other than llama's, that file's own code, or its rule, is used on the names here; each case says whose it is.
"""
import json
import struct
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map
from mlx_lm.models import deepseek_v3, deepseek_v41, mistral4
from mlx_lm.utils import _get_classes, load_model

import pins
import synthetic

mx.set_default_device(mx.cpu)
SEED = 20261121
D, FFN, KV, VOCAB = 128, 256, 64, 64
CONFIG = {
    "model_type": "llama", "hidden_size": D, "num_hidden_layers": 1, "intermediate_size": FFN, "num_attention_heads": 4, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6, "vocab_size": VOCAB, "max_position_embeddings": 64, "rope_theta": 10000.0, "tie_word_embeddings": False,
}
LAYER = "model.layers.0."
LINEAR = {
    LAYER + "self_attn.q_proj": (D, D), LAYER + "self_attn.k_proj": (KV, D), LAYER + "self_attn.v_proj": (KV, D), LAYER + "self_attn.o_proj": (D, D),
    LAYER + "mlp.gate_proj": (FFN, D), LAYER + "mlp.up_proj": (FFN, D), LAYER + "mlp.down_proj": (D, FFN),
}
TABLES = {"model.embed_tokens": (VOCAB, D), "lm_head": (VOCAB, D)}
NORMS = ["model.norm", LAYER + "input_layernorm", LAYER + "post_attention_layernorm"]
TOKENS = [3, 41, 0, 63, 17, 5]
DTYPES = {"F32": "<f4", "F16": "<f2", "I32": "<i4", "I64": "<i8"}


def fill(t):
    """The bytes of a tensor. values: as they are. base and amp: base + amp·x with x in (-1, 1), rounded to the type. low and
    span: bytes low + draw mod span, with sign a random top bit."""
    n, dtype = int(np.prod(t["shape"])), t["dtype"]
    if "values" in t:
        return np.array(t["values"]).astype(DTYPES[dtype]).tobytes()
    if "amp" in t:
        x = synthetic.floats(t["name"], SEED, (n,), dtype, t["base"], t["amp"])
        if dtype == "BF16":
            return (x.view(np.uint32) >> 16).astype("<u2").tobytes()
        return x.astype(DTYPES[dtype]).tobytes()
    size = 4 if dtype in ("U32", "I32") else 1
    r = synthetic.draws(t["name"], SEED, n * size)
    b = np.uint64(t["low"]) + (r >> np.uint64(40)) % np.uint64(t["span"])
    if t.get("sign"):
        b |= (r & np.uint64(1)) << np.uint64(7)
    return b.astype(np.uint8).tobytes()


def floats(name, dtype, base, amp, *shape):
    return {"name": name, "dtype": dtype, "shape": shape, "base": base, "amp": amp}


def bytes_(name, dtype, low, span, *shape, sign=False):
    return {"name": name, "dtype": dtype, "shape": shape, "low": low, "span": span, "sign": sign}


def plain(path, shape, dtype="BF16"):
    return [floats(path + ".weight", dtype, 0, (3 / shape[-1]) ** 0.5, *shape)]


def affine(path, shape, bits, group, dtype="BF16", bias_dtype=None):
    *lead, cols = shape  # a stack of experts has one dimension more
    step = 3.5 / cols**0.5 / 2**bits
    return [bytes_(path + ".weight", "U32", 0, 256, *lead, cols * bits // 32), floats(path + ".scales", dtype, step, step / 4, *lead, cols // group),
            floats(path + ".biases", bias_dtype or dtype, -step * 2 ** (bits - 1), step, *lead, cols // group)]


def mxfp4(path, shape, codes=".weight", scales=".scales", dtype="U32", sdtype="U8"):
    *lead, cols = shape
    size = 4 if dtype == "U32" else 1
    return [bytes_(path + codes, dtype, 0, 256, *lead, cols // 2 // size), bytes_(path + scales, sdtype, 120, 4, *lead, cols // 32)]


def mxfp8(path, shape, sdtype="U8"):
    out, cols = shape
    t = bytes_(path + ".weight", "U32", 0, 120, out, cols // 4, sign=True)
    return [t, bytes_(path + ".scales", sdtype, 114, 3, out, cols // 32)]


def nvfp4(path, shape, codes=".weight", scales=".scales", dtype="U32", sdtype="U8", low=8):
    out, cols = shape
    size = 4 if dtype == "U32" else 1
    return [bytes_(path + codes, dtype, 0, 256, out, cols // 2 // size), bytes_(path + scales, sdtype, low, 12, out, cols // 16)]


def packed_ints(path, shape, group=32, bits=4):
    out, cols = shape
    step = 0.32 / 2**bits
    return [bytes_(path + ".weight_packed", "I32", 0, 256, out, cols * bits // 32), floats(path + ".weight_scale", "BF16", step, step / 2, out, cols // group),
            {"name": path + ".weight_shape", "dtype": "I64", "shape": [2], "values": shape}]


def awq(path, shape, group=64, zeros=True):
    out, cols = shape
    t = [bytes_(path + ".qweight", "I32", 0, 256, cols, out // 8), floats(path + ".scales", "F16", 0.02, 0.01, cols // group, out)]
    return t + ([bytes_(path + ".qzeros", "I32", 0, 256, cols // group, out // 8)] if zeros else [])


def gptq(path, shape, group=64):
    out, cols = shape
    return [bytes_(path + ".qweight", "I32", 0, 256, cols // 8, out), floats(path + ".scales", "F16", 0.02, 0.01, cols // group, out),
            bytes_(path + ".qzeros", "I32", 0x66, 2, cols // group, out // 8),
            {"name": path + ".g_idx", "dtype": "I32", "shape": [cols], "values": [i // group for i in range(cols)]}]


def block_fp8(path, shape):
    out, cols = shape
    return [bytes_(path + ".weight", "F8_E4M3", 0, 120, out, cols, sign=True), bytes_(path + ".scale", "F8_E8M0", 114, 3, (out + 31) // 32, cols // 32)]


def float_fp8(path, shape, scales):
    out, cols = shape
    s = floats(path + ".weight_scale_inv", "F32", 4e-4, 2e-4, *scales)
    return [bytes_(path + ".weight", "F8_E4M3", 0, 120, out, cols, sign=True), s]


def modelopt(path, shape):
    return nvfp4(path, shape, ".weight", ".weight_scale", "U8", "F8_E4M3", low=96) + [
        {"name": path + ".weight_scale_2", "dtype": "F32", "shape": [], "values": 3.7e-4},
        {"name": path + ".input_scale", "dtype": "F32", "shape": [], "values": 0.25}]


def packed_nvfp4(path, shape):
    return nvfp4(path, shape, ".weight_packed", ".weight_scale", "U8", "F8_E4M3", low=96) + [
        {"name": path + ".weight_global_scale", "dtype": "F32", "shape": [1], "values": [2711.0]}]


def packed_mxfp4(path, shape):
    return mxfp4(path, shape, ".weight_packed", ".weight_scale", "U8", "U8")


def every(f, tables=None, dtype="BF16"):
    """One layout for all linear layers; tables (plain if None) for the embedding and the head."""
    t = [x for path, shape in LINEAR.items() for x in f(path, shape)]
    for path, shape in TABLES.items():
        t += tables(path, shape) if tables else plain(path, shape, dtype)
    return t


# How the model of a case turns another tool's tensors into MLX's before mlx-lm's loader goes on.

def as_kimi_ints(w):
    """deepseek_v3.py (Kimi K2's int4): the code itself."""
    return deepseek_v3.Model.sanitize(SimpleNamespace(args=SimpleNamespace(num_hidden_layers=0)), w)


def as_bytes(w):
    """compressed-tensors with 8 bits, by its definition: w = (code - 128)·scale. mlx-lm has 4 bits only."""
    out = {k: v for k, v in w.items() if ".weight_" not in k}
    for k in [k for k in w if k.endswith(".weight_packed")]:
        p = k.removesuffix(".weight_packed")
        q, s = np.array(w[k]).view(np.uint8).astype(np.float32) - 128, np.array(w[p + ".weight_scale"].astype(mx.float32))
        out[p + ".weight"] = mx.array(q * np.repeat(s, q.shape[1] // s.shape[1], axis=1))
    return out


def as_kimi_mxfp4(w):
    """kimi_k3.py: weight_packed is read as uint32, weight_scale are the scales."""
    out = {}
    for k, v in w.items():
        if k.endswith(".weight_packed"):
            k, v = k.removesuffix("_packed"), v.view(mx.uint32)
        out[k.replace(".weight_scale", ".scales")] = v
    return out


def as_v41(w):
    """deepseek_v41.py: its _repack."""
    out = dict(w)
    for k in [k for k in w if k.endswith(".scale")]:
        p = k.removesuffix(".scale")
        out[p + ".weight"], out[p + ".scales"] = deepseek_v41._repack(out[p + ".weight"], out.pop(k))
    return out


def dequantised(codes, factor):
    """muse_spark.py's rule, global scale = 2688·weight_scale_2. mlx-lm's linear layers take none, so mx.dequantize applies it."""
    def f(w):
        out = {k: v for k, v in w.items() if "scale" not in k and not k.endswith(codes)}
        for k in [k for k in w if k.endswith(codes)]:
            p = k.removesuffix(codes)
            if p + ".weight_scale" in w:
                out[p + ".weight"] = mx.dequantize(w[k].view(mx.uint32), w[p + ".weight_scale"], group_size=16, bits=4, mode="nvfp4",
                                                   global_scale=mx.array(factor(w, p), mx.float32), dtype=mx.float32)
            else:
                out[k] = w[k]
        return out
    return f


def as_floats(w):
    """mistral4.py: bytes of e4m3 with float scales become bfloat16. What is quantised stays."""
    return mistral4.Model.sanitize(SimpleNamespace(args=SimpleNamespace(num_hidden_layers=0)), w)


def as_stacks(w):
    """Experts one by one, stacked with their scales as in deepseek_v3.py. qwen3_moe.py stacks codes alone."""
    out = {k: v for k, v in w.items() if ".experts." not in k}
    for k in [k for k in w if ".experts.0." in k]:
        out[k.replace(".experts.0.", ".switch_mlp.")] = mx.stack([w[k.replace(".experts.0.", f".experts.{e}.")] for e in range(EXPERTS)])
    return out


def as_gptq(w):
    """GPTQ's own layout, by its definition: w = (code - zero - 1)·scale, eight inputs to a word. mlx-lm refuses g_idx."""
    out = {k: v for k, v in w.items() if not k.endswith((".qweight", ".qzeros", ".scales", ".g_idx"))}
    nib = lambda a, axis: np.stack([a >> np.uint32(4 * i) & np.uint32(15) for i in range(8)], axis)
    for k in [k for k in w if k.endswith(".qweight")]:
        p = k.removesuffix(".qweight")
        q, z, s = np.array(w[k]).view(np.uint32), np.array(w[p + ".qzeros"]).view(np.uint32), np.array(w[p + ".scales"]).astype(np.float32)
        q = nib(q, 1).reshape(-1, q.shape[1]).astype(np.float32)
        z = nib(z, 2).reshape(z.shape[0], -1).astype(np.float32) + 1
        g = np.array(w[p + ".g_idx"])
        out[p + ".weight"] = mx.array(((q - z[g]) * s[g]).T)
    return out


def method(**kw):
    return {"quantization_config": kw}


MIXED = {"quantization": {
    "group_size": 32, "bits": 4, "mode": "mxfp4", "lm_head": {"group_size": 64, "bits": 8}, "model.embed_tokens": {"mode": "mxfp8", "bits": 8, "group_size": 32},
    LAYER + "self_attn.q_proj": {"mode": "nvfp4", "group_size": 16, "bits": 4}, LAYER + "self_attn.k_proj": {"bits": 3, "group_size": 32},
    LAYER + "self_attn.v_proj": False, LAYER + "mlp.up_proj": {"bits": 4},
}}
MIXED_TENSORS = (
    affine("lm_head", (VOCAB, D), 8, 64) + mxfp8("model.embed_tokens", (VOCAB, D)) + nvfp4(LAYER + "self_attn.q_proj", (D, D))
    + affine(LAYER + "self_attn.k_proj", (KV, D), 3, 32) + plain(LAYER + "self_attn.v_proj", (KV, D)) + mxfp4(LAYER + "self_attn.o_proj", (D, D))
    + mxfp4(LAYER + "mlp.gate_proj", (FFN, D)) + affine(LAYER + "mlp.up_proj", (FFN, D), 4, 64) + nvfp4(LAYER + "mlp.down_proj", (D, FFN)))
TIED = {"tie_word_embeddings": True}


def entry(bits, group, **kw):
    return {"group_size": group, "bits": bits, **kw}


def each(plan, linear=LINEAR, dtype="BF16", tables=TABLES):
    """Affine modules, bits and group by the last part of the name, which may begin with the number of the layer and a dot."""
    t = []
    for path, shape in (linear | tables).items():
        last, layer = path.split(".")[-1], [p for p in path.split(".") if p.isdigit()]
        bits, group = plan.get((layer[0] + "." if layer else "") + last) or plan.get(last) or plan[""]
        t += affine(path, shape, bits, group, dtype)
    return t


def layers(n):
    return {path.replace(".0.", f".{i}."): shape for i in range(n) for path, shape in LINEAR.items()}


def norms(n, prefix=""):
    names = [f"model.layers.{i}.{k}" for i in range(n) for k in ("input_layernorm", "post_attention_layernorm")] + ["model.norm"]
    return [floats(prefix + k + ".weight", "BF16", 1, 0.25, D) for k in names]


def said(tensors, only=lambda path: True):
    """The entries that mlx-lm's converter writes for affine tensors."""
    by = {t["name"]: t for t in tensors}
    out = {}
    for name, t in by.items():
        path = name.removesuffix(".scales")
        if name.endswith(".scales") and t["dtype"] != "U8" and only(path):
            words, cols = by[path + ".weight"]["shape"][-1], COLS[path.split(".")[-1]]
            out[path] = entry(words * 32 // cols, cols // t["shape"][-1])
    return out


EXPERTS, MOE = 4, 64
COLS = {k.split(".")[-1]: shape[1] for k, shape in (LINEAR | TABLES).items()} | {"gate": D}
RECIPE = each({"": (3, 64), "0.v_proj": (6, 64), "0.down_proj": (6, 64), "2.v_proj": (6, 64), "2.down_proj": (6, 64), "lm_head": (6, 64)}, layers(3))
PLAN = each({"": (4, 64), "q_proj": (2, 128), "k_proj": (5, 32), "v_proj": (8, 64), "o_proj": (5, 128), "gate_proj": (3, 32), "up_proj": (6, 128),
             "0.down_proj": (2, 32), "1.down_proj": (8, 128), "embed_tokens": (6, 32), "lm_head": (8, 32)}, layers(2))
FUSED = [  # parts of one product in other modes
    *mxfp8(LAYER + "self_attn.q_proj", (D, D)), *affine(LAYER + "self_attn.k_proj", (KV, D), 6, 32), *nvfp4(LAYER + "self_attn.v_proj", (KV, D)),
    *affine(LAYER + "self_attn.o_proj", (D, D), 5, 128), *mxfp4(LAYER + "mlp.gate_proj", (FFN, D)), *plain(LAYER + "mlp.up_proj", (FFN, D)),
    *affine(LAYER + "mlp.down_proj", (D, FFN), 3, 128), *affine("model.embed_tokens", (VOCAB, D), 8, 32), *mxfp8("lm_head", (VOCAB, D))]
NESTED = {"model_type": "mistral3", "text_config": CONFIG}
NESTED_TENSORS = [t | {"name": "language_model." + t["name"]} for t in PLAN if ".1." not in t["name"]]
NESTED_SAID = {"language_model." + k: v for k, v in said(PLAN).items() if ".1." not in k}
WITH_BIASES = {"model_type": "qwen2", "rope_theta": 1e6}
QKV_BIASES = [floats(LAYER + f"self_attn.{k}_proj.bias", "BF16", 0, 0.5, n) for k, n in (("q", D), ("k", KV), ("v", KV))]
PHI = {"model_type": "phi3", "original_max_position_embeddings": 64, "partial_rotary_factor": 1.0, "rope_scaling": None, "rope_traditional": False}
PHI_LINEAR = {LAYER + "self_attn.qkv_proj": (D + 2 * KV, D), LAYER + "self_attn.o_proj": (D, D), LAYER + "mlp.gate_up_proj": (2 * FFN, D), LAYER + "mlp.down_proj": (D, FFN)}
SPARSE = {"model_type": "qwen3_moe", "head_dim": D // 4, "num_experts": EXPERTS, "num_experts_per_tok": EXPERTS, "moe_intermediate_size": MOE, "decoder_sparse_step": 1,
          "mlp_only_layers": [], "norm_topk_prob": True}
SPARSE_SHARED = (
    each({"": (6, 32), "v_proj": (8, 64)}, {k: v for k, v in LINEAR.items() if "self_attn" in k}) + affine(LAYER + "mlp.gate", (EXPERTS, D), 8, 64)
    + [floats(LAYER + f"self_attn.{k}_norm.weight", "BF16", 1, 0.25, D // 4) for k in "qk"] + norms(1))
EXPERT = {"gate_proj": (MOE, D, 2, 64), "up_proj": (MOE, D, 5, 128), "down_proj": (D, MOE, 3, 32)}
STACKED = [t for k, (out, cols, bits, group) in EXPERT.items() for t in affine(LAYER + f"mlp.switch_mlp.{k}", (EXPERTS, out, cols), bits, group)]
APART = [t for k, (out, cols, bits, group) in EXPERT.items() for e in range(EXPERTS) for t in affine(LAYER + f"mlp.experts.{e}.{k}", (out, cols), bits, group)]
LATENT = {"model_type": "deepseek_v3", "num_key_value_heads": 4, "q_lora_rank": None, "kv_lora_rank": 64, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "v_head_dim": 32,
          "n_routed_experts": None, "moe_intermediate_size": MOE, "first_k_dense_replace": 1, "attention_bias": False, "rope_scaling": None}
LATENT_LINEAR = {LAYER + "self_attn.q_proj": (4 * 96, D), LAYER + "self_attn.kv_a_proj_with_mqa": (96, D), LAYER + "self_attn.kv_b_proj": (4 * 96, 64),
                 LAYER + "self_attn.o_proj": (D, D), **{k: v for k, v in LINEAR.items() if ".mlp." in k}}
LATENT_TENSORS = (each({"": (4, 32), "kv_b_proj": (6, 64), "kv_a_proj_with_mqa": (8, 64), "o_proj": (3, 64)}, LATENT_LINEAR)
                  + [floats(LAYER + "self_attn.kv_a_layernorm.weight", "BF16", 1, 0.25, 64)] + norms(1))
UNIFORM = {"quantization": entry(4, 64)}


def scales_of(dtype, bias_dtype=None):
    return every(lambda p, s: affine(p, s, 4, 32, dtype, bias_dtype), lambda p, s: affine(p, s, 8, 64, dtype, bias_dtype))


MIXED_CASES = {  # name: (config, tensors, translation or None, what config.json must say for mlx-lm to load it)
    "recipe mixed_3_6": ({"num_hidden_layers": 3, "quantization": entry(3, 64, mode="affine") | {k: v | {"mode": "affine"} for k, v in said(RECIPE).items()}}, RECIPE + norms(3), None, {}),
    "bits and groups by module, each said": ({"num_hidden_layers": 2} | {"quantization": entry(4, 64) | said(PLAN)}, PLAN + norms(2), None, {}),
    "bits and groups by module, none said": ({"num_hidden_layers": 2, "quantization": entry(2, 32)}, PLAN + norms(2), None, {}),
    "groups of 128": ({"quantization": entry(4, 128)}, each({"": (4, 128)}), None, {}),
    "groups of 32": (TIED | {"quantization": entry(4, 32)}, each({"": (4, 32)}, tables={"model.embed_tokens": (VOCAB, D)}), None, {}),
    "fused parts in other modes": (UNIFORM, FUSED, None, {}),
    "entries under other names, and of a tower": (
        NESTED | {"vision_config": {"model_type": "pixtral"}, "quantization": entry(4, 64) | NESTED_SAID
                  | {k.replace("language_model.", "model.language_model."): entry(7, 64, mode="nf4") for k in NESTED_SAID}
                  | {"vision_tower.blocks.0.fc1": entry(16, 64), "vision_tower.blocks.0.fc2": {"bits": "float"}, "multi_modal_projector": False}},
        NESTED_TENSORS + norms(1, "language_model."), None, {}),
    "entries by the names of other files": (NESTED | {"quantization": entry(4, 128) | {k.replace("language_model.", "model.language_model."): v for k, v in NESTED_SAID.items()}},
                                            NESTED_TENSORS + norms(1, "language_model."), None, {}),
    "entries that say nothing or no": ({"quantization": entry(6, 64) | {LAYER + "self_attn.v_proj": None, LAYER + "mlp.up_proj": {}, "lm_head": True, LAYER + "mlp.gate_proj": False}},
        plain(LAYER + "self_attn.v_proj", (KV, D)) + plain(LAYER + "mlp.up_proj", (FFN, D)) + plain(LAYER + "mlp.gate_proj", (FFN, D)) + [
            t for t in each({"": (3, 32), "lm_head": (6, 64)}) if not any(k in t["name"] for k in ("v_proj", "up_proj", "gate_proj"))], None, {}),
    "scales in float32": (UNIFORM, scales_of("F32"), None, {}),
    "scales in float16 beside bfloat16": (UNIFORM, scales_of("F16", "BF16"), None, {}),
    "scales called by their types": (UNIFORM, every(lambda p, s: mxfp8(p, s, "F8_E8M0"), lambda p, s: nvfp4(p, s, sdtype="F8_E4M3")), None, {}),
    "two dictionaries": (UNIFORM | method(quant_method="fp8", weight_block_size=[128, 128]), each({"": (5, 64)}), None, {}),
    "quantization_config of method mlx": (method(quant_method="mlx", bits=4, group_size=64), each({"": (5, 64)}), None, {"quantization": entry(4, 64)}),
    "a tied head quantised apart": (TIED | {"quantization": entry(4, 64) | {"lm_head": entry(6, 32)}}, each({"": (4, 64), "lm_head": (6, 32)}), None, {"tie_word_embeddings": False}),
    "a tied head quantised, the embedding not": (TIED | UNIFORM, [t for t in each({"": (4, 64), "lm_head": (8, 64)}) if "embed" not in t["name"]]
                                                 + plain("model.embed_tokens", (VOCAB, D)), None, {"tie_word_embeddings": False}),
    "fp8 beside affine": (UNIFORM, [
        *float_fp8(LAYER + "self_attn.q_proj", (D, D), [1, 1]), *float_fp8(LAYER + "self_attn.k_proj", (KV, D), []), *float_fp8(LAYER + "self_attn.o_proj", (D, D), [D, 1]),
        *float_fp8(LAYER + "mlp.up_proj", (FFN, D), [2, 1]), *float_fp8(LAYER + "mlp.down_proj", (D, FFN), [1, 2]),
        *affine(LAYER + "self_attn.v_proj", (KV, D), 4, 64), *affine(LAYER + "mlp.gate_proj", (FFN, D), 3, 64), *affine("model.embed_tokens", (VOCAB, D), 6, 64),
        *mxfp8("lm_head", (VOCAB, D))], as_floats, {}),
    "linear biases beside codes": (WITH_BIASES | UNIFORM, each({"": (4, 64), "q_proj": (6, 32), "k_proj": (3, 128)}) + QKV_BIASES, None, {}),
    "one module for several": (PHI | {"quantization": entry(4, 64) | {LAYER + "self_attn.qkv_proj": entry(6, 128)}}, each({"": (4, 64), "qkv_proj": (6, 128), "gate_up_proj": (5, 32)}, PHI_LINEAR), None, {}),
    "stacked experts": (SPARSE | {"quantization": entry(4, 64) | {LAYER + "mlp.gate": entry(8, 64), LAYER + "mlp.switch_mlp.up_proj": entry(5, 128)}},
                        SPARSE_SHARED + STACKED, None, {}),
    "experts apart": (SPARSE | UNIFORM, SPARSE_SHARED + APART, as_stacks, {}),
    "experts of gpt-oss's form beside affine": (SPARSE | UNIFORM, SPARSE_SHARED + [t for k, (out, cols, *_) in EXPERT.items()
        for t in mxfp4(LAYER + f"mlp.switch_mlp.{k}", (EXPERTS, out, cols))], None, {}),
    "two kinds of heads in one tensor": (LATENT | {"quantization": entry(4, 32) | {LAYER + "self_attn.kv_b_proj": entry(6, 64)}}, LATENT_TENSORS, None, {}),
}
CASES = {  # name: (config, tensors, translation or None, hf_quant_config.json or None)
    "mxfp4": ({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}, every(mxfp4, mxfp4), None, None),
    "mxfp8 tied": (TIED | {"quantization": {"group_size": 32, "bits": 8, "mode": "mxfp8"}}, every(mxfp8, mxfp8), None, None),
    "nvfp4 tied": (TIED | {"quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4"}}, every(nvfp4, nvfp4), None, None),
    "mixed overrides": (MIXED, MIXED_TENSORS, None, None),
    "groups differ in q, k, v": ({"quantization": {"group_size": 64, "bits": 4}}, affine(LAYER + "self_attn.q_proj", (D, D), 4, 128)
        + affine(LAYER + "self_attn.k_proj", (KV, D), 4, 32) + affine(LAYER + "self_attn.v_proj", (KV, D), 4, 64, "F16")
        + [t for t in every(lambda p, s: affine(p, s, 4, 64)) if "q_proj" not in t["name"] and "k_proj" not in t["name"] and "v_proj" not in t["name"]], None, None),
    "inferred against the defaults": ({"quantization": {"group_size": 64, "bits": 4}}, every(mxfp8, nvfp4), None, None),
    "method mxfp4": (method(quant_method="mxfp4"), every(mxfp4), None, None),
    "method mxfp8 in text_config": ({"text_config": CONFIG | method(quant_method="mxfp8")}, every(mxfp8), None, None),
    "method fp8 ue8m0": (method(quant_method="fp8", scale_fmt="ue8m0", weight_block_size=[32, 32]), every(block_fp8), as_v41, None),
    "compressed-tensors ints": (method(quant_method="compressed-tensors", format="pack-quantized"), every(packed_ints), as_kimi_ints, None),
    "compressed-tensors ints, groups of 128": (method(quant_method="compressed-tensors", format="pack-quantized"),
        every(lambda p, s: packed_ints(p, s, 128)), as_kimi_ints, None),
    "compressed-tensors ints of 8 bits": (method(quant_method="compressed-tensors", format="pack-quantized"),
        every(lambda p, s: packed_ints(p, s, 64, 8)), as_bytes, None),
    "compressed-tensors mxfp4": (method(quant_method="compressed-tensors", format="mxfp4-pack-quantized"), every(packed_mxfp4), as_kimi_mxfp4, None),
    "compressed-tensors nvfp4": (method(quant_method="compressed-tensors", format="nvfp4-pack-quantized"), every(packed_nvfp4),
        dequantised(".weight_packed", lambda w, p: 2688 / w[p + ".weight_global_scale"].item()), None),
    "modelopt": (method(quant_method="modelopt", quant_algo="NVFP4"), every(modelopt), dequantised(".weight", lambda w, p: 2688 * w[p + ".weight_scale_2"].item()), None),
    "modelopt beside": ({}, every(modelopt), dequantised(".weight", lambda w, p: 2688 * w[p + ".weight_scale_2"].item()),
        {"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4", "group_size": 16}}),
    "awq": (method(quant_method="awq", bits=4, group_size=64), every(awq, dtype="F16"), None, None),
    "awq symmetric": (method(quant_method="awq", bits=4, group_size=32), every(lambda p, s: awq(p, s, 32, False), dtype="F16"), None, None),
    "gptq in awq's layout": (method(quant_method="gptq", bits=4, group_size=128), every(lambda p, s: awq(p, s, 128), dtype="F16"), None, None),
    "gptq": (method(quant_method="gptq", bits=4, group_size=64), every(gptq, dtype="F16"), as_gptq, None),
}


def write(path, tensors):
    """A safetensors file; mlx's own writer knows no 8-bit floats."""
    head, body = {}, b""
    for t in tensors:
        b = fill(t)
        head[t["name"]] = {"dtype": t["dtype"], "shape": list(t["shape"]), "data_offsets": [len(body), len(body) + len(b)]}
        body += b
    js = json.dumps(head).encode()
    Path(path).write_bytes(struct.pack("<Q", len(js)) + js + body)


def logits(config, tensors, translate, hf, changes):
    kind, args = _get_classes(config)

    class Model(kind):
        def sanitize(self, w):
            w = translate(w) if translate else w
            return super().sanitize(w) if hasattr(kind, "sanitize") else w

    with tempfile.TemporaryDirectory() as d:
        (Path(d) / "config.json").write_text(json.dumps(config))
        if hf:
            (Path(d) / "hf_quant_config.json").write_text(json.dumps(hf))
        write(d + "/model.safetensors", tensors)
        reference = config | changes
        if translate in (as_gptq,):  # already floats: keep mlx-lm's own reading of the method out
            reference["quantization_config"] = None
        model, _ = load_model(Path(d), model_config=reference, get_model_classes=lambda config: (Model, args))
    model.update(tree_map(lambda p: p.astype(mx.float32) if mx.issubdtype(p.dtype, mx.floating) else p, model.parameters()))
    y = model(mx.array([TOKENS]))
    mx.eval(y)
    assert y.dtype == mx.float32
    return np.array(y[0])


def write_golden(path, golden):
    """As pins.write, with a line for each tensor."""
    cases = golden.pop("cases")
    lines = [json.dumps(golden)[:-1] + ', "cases": [']
    for i, c in enumerate(cases):
        lines.append("," * (i > 0) + json.dumps({k: v for k, v in c.items() if k != "tensors"})[:-1] + ', "tensors": [')
        lines.append(",\n".join(" " + json.dumps({k: v for k, v in t.items() if v is not False}) for t in c["tensors"]) + "]}")
    Path(path).write_text("\n".join(lines) + "\n]}\n")
    print(path, Path(path).stat().st_size, "bytes")


def main(out):
    made, cases = pins.made(__file__), []
    cases_of = {name: (*case, {}) for name, case in CASES.items()} | {name: (*case[:3], None, case[3]) for name, case in MIXED_CASES.items()}
    for name, (extra, tensors, translate, hf, changes) in cases_of.items():
        config = CONFIG | extra
        if config["tie_word_embeddings"] and not changes:
            tensors = [t for t in tensors if not t["name"].startswith("lm_head.")]
        if not any("layernorm" in t["name"] for t in tensors):
            dtype = "F16" if name in CASES and any(t["dtype"] == "F16" for t in tensors) else "BF16"
            tensors = tensors + [floats(n + ".weight", dtype, 1, 0.25, D) for n in NORMS]
        names = [t["name"] for t in tensors]
        tensors = tensors + [t for path, shape in TABLES.items() for t in plain(path, shape)
                             if config["model_type"] != "mistral3" and path + ".weight" not in names and not (path == "lm_head" and config["tie_word_embeddings"])]
        y = logits(config, tensors, translate, hf, changes)
        print(name, "range", np.ptp(y))
        cases.append({"name": name, "config": config, "beside": hf, "tensors": tensors, "logits": pins.f32(y[[0, 2, 5]])})
    write_golden(out, {"made": made, "seed": SEED, "tokens": TOKENS, "rows": [0, 2, 5], "cases": cases})


if __name__ == "__main__":
    main(sys.argv[1])
