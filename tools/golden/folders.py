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
from mlx_lm.models import deepseek_v3, deepseek_v41, llama
from mlx_lm.utils import load_model

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
    return [floats(path + ".weight", dtype, 0, (3 / shape[1]) ** 0.5, *shape)]


def affine(path, shape, bits, group, dtype="BF16"):
    out, cols = shape
    step = 3.5 / cols**0.5 / 2**bits
    return [bytes_(path + ".weight", "U32", 0, 256, out, cols * bits // 32), floats(path + ".scales", dtype, step, step / 4, out, cols // group),
            floats(path + ".biases", dtype, -step * 2 ** (bits - 1), step, out, cols // group)]


def mxfp4(path, shape, codes=".weight", scales=".scales", dtype="U32", sdtype="U8"):
    out, cols = shape
    size = 4 if dtype == "U32" else 1
    return [bytes_(path + codes, dtype, 0, 256, out, cols // 2 // size), bytes_(path + scales, sdtype, 120, 4, out, cols // 32)]


def mxfp8(path, shape):
    out, cols = shape
    t = bytes_(path + ".weight", "U32", 0, 120, out, cols // 4, sign=True)
    return [t, bytes_(path + ".scales", "U8", 114, 3, out, cols // 32)]


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


def logits(config, tensors, translate, hf):
    class Model(llama.Model):
        def sanitize(self, w):
            return super().sanitize(translate(w) if translate else w)

    with tempfile.TemporaryDirectory() as d:
        (Path(d) / "config.json").write_text(json.dumps(config))
        if hf:
            (Path(d) / "hf_quant_config.json").write_text(json.dumps(hf))
        write(d + "/model.safetensors", tensors)
        reference = dict(config)
        if translate in (as_gptq,):  # already floats: keep mlx-lm's own reading of the method out
            reference["quantization_config"] = None
        model, _ = load_model(Path(d), model_config=reference, get_model_classes=lambda config: (Model, llama.ModelArgs))
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
    for name, (extra, tensors, translate, hf) in CASES.items():
        config = CONFIG | extra
        if config["tie_word_embeddings"]:
            tensors = [t for t in tensors if not t["name"].startswith("lm_head.")]
        dtype = "F16" if any(t["dtype"] == "F16" for t in tensors) else "BF16"
        tensors = tensors + [floats(n + ".weight", dtype, 1, 0.25, D) for n in NORMS]
        y = logits(config, tensors, translate, hf)
        print(name, "range", np.ptp(y))
        cases.append({"name": name, "config": config, "beside": hf, "tensors": tensors, "logits": pins.f32(y[[0, 2, 5]])})
    write_golden(out, {"made": made, "seed": SEED, "tokens": TOKENS, "rows": [0, 2, 5], "cases": cases})


if __name__ == "__main__":
    main(sys.argv[1])
