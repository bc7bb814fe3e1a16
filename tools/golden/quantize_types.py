"""Holds the quantize command against mlx-lm's converter for one float config of every type that model.py has, to the bit. What is
right belongs into the list of internal/convert/rules.go.

With --saved it spells each config of model.py as transformers 5 saves it (rope_parameters, renamed numbers of experts, none of the
older names), and holds mlx-lm's logits of what the command writes from it against those of what it writes from the older spelling, as
shares of the logit range: the written folder has both. hearth's own logits of the folder are compared with mlx-lm's too. Floats are
from a formula, in float32.

With --folders it compares the same two logits of what the command writes from folders that are there.

With --mixed mlx-lm itself quantises each config of model.py with bits, groups and modes drawn by module and saves the folder; hearth's
logits of it are compared with mlx-lm's.

run: python tools/golden/quantize_types.py path/to/hearth [model_type ...]
     python tools/golden/quantize_types.py path/to/hearth --mixed [model_type ... | beginning of a case's name ...]
     python tools/golden/quantize_types.py path/to/hearth --folders FOLDER ...  (of floats, as transformers 5 saved them)
     python tools/golden/quantize_types.py path/to/hearth --saved [model_type ... | beginning of a case's name ...]
"""
import contextlib
import copy
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten, tree_map
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model, quantize_model, save_config, save_model

import model as models
import quantize

GROUP = 32


def compare(hearth, config, dtype, folder):
    """-> what differs, "" if nothing does."""
    src, dst = Path(folder) / "src", Path(folder) / "dst"
    src.mkdir()
    shapes = models.shapes(config)
    tensors = {n: mx.array(quantize.number(k, shapes[n])).astype(models.DTYPES[dtype]) for k, n in enumerate(sorted(shapes))}
    (src / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(src / "model.safetensors"), tensors, {"format": "mlx"})
    done = subprocess.run([hearth, "quantize", str(src), str(dst), "--group-size", str(GROUP)], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    with contextlib.redirect_stdout(io.StringIO()):
        model, made = load_model(src)
        model, made = quantize_model(model, made, GROUP, 4)
    want, got = dict(tree_flatten(model.parameters())), mx.load(str(dst / "model.safetensors"))
    wrong = sorted(set(want) ^ set(got)) + [k for k in want if k in got and (
        want[k].dtype != got[k].dtype or want[k].shape != got[k].shape or not bool(mx.all(want[k] == got[k])))]
    mine = json.loads((dst / "config.json").read_text())["quantization"]
    wrong += [f"config.json: {k}" for k in mine.keys() | made["quantization"].keys() if mine.get(k) != made["quantization"].get(k)]
    return ", ".join(wrong[:6]) + (f" and {len(wrong) - 6} more" if len(wrong) > 6 else "")


LOCAL = {"gemma3": "rope_local_base_freq", "gemma3_text": "rope_local_base_freq", "gemma3n": "rope_local_base_freq", "mimo_v2_flash": "swa_rope_theta",
         "olmo3": "rope_theta"}
RENAMED = {"exaone": {"num_layers": "num_hidden_layers", "layer_norm_epsilon": "rms_norm_eps"}, "qwen3_moe": {"num_experts": "num_local_experts"},
           "qwen3_vl_moe": {"num_experts": "num_local_experts"}, "mellum": {"num_experts": "num_local_experts"}}


def saved(config):
    """The config as transformers 5 spells it."""
    config = copy.deepcopy(config)
    kind = config["model_type"]
    c = config.get("text_config", config)
    for old, new in RENAMED.get(kind, {}).items():
        if old in c:
            c[new] = c.pop(old)
    theta, partial = ("rotary_emb_base", "rotary_pct") if kind == "gpt_neox" else ("rope_theta", "partial_rotary_factor")
    if "rope_parameters" in c or theta not in c or kind in ("step3p5", "llama4", "mellum", "laguna") or kind.startswith("gemma4"):
        return config
    rope = {"rope_type": "default"} | (c.pop("rope_scaling", None) or {})
    rope["rope_type"] = rope.pop("type", rope["rope_type"])
    rope["rope_theta"] = c[theta]
    if partial in c and kind not in ("bailing_moe", "bailing_moe_linear", "glm4_moe_lite"):
        rope["partial_rotary_factor"] = c.pop(partial)
        if kind == "mimo_v2_flash":  # transformers turns an odd column in another way
            rope["partial_rotary_factor"] = int(c["head_dim"] * rope["partial_rotary_factor"]) // 2 * 2 / c["head_dim"]
    if kind in ("minimax", "minimax_m2"):
        config["model_type"] = "minimax_m2"  # transformers has another model under the other name
        rope["partial_rotary_factor"] = c.pop("rotary_dim") / c["head_dim"]
    if kind in LOCAL:
        sliding = {"rope_type": "default", "rope_theta": c[LOCAL[kind]]} | {k: v for k, v in rope.items() if k == "partial_rotary_factor"}
        c.pop(LOCAL[kind], None)
        rope = {"full_attention": rope, "sliding_attention": sliding}
    c.pop(theta, None)
    c["rope_parameters"] = rope
    return config


WAYS = [{"bits": b, "group_size": g} for b in (2, 3, 4, 5, 6, 8) for g in (32, 64, 128)] + [
    {"bits": 4, "group_size": 32, "mode": "mxfp4"}, {"bits": 8, "group_size": 32, "mode": "mxfp8"}, {"bits": 4, "group_size": 16, "mode": "nvfp4"}]


def compare_mixed(hearth, config, dtype, folder):
    src, dst = Path(folder) / "src", Path(folder) / "dst"
    source(config, models.shapes(config), dtype, src)
    model, made = load_model(src)

    def way(path, module):
        rng = np.random.default_rng(list(path.encode()))
        fit = [w for w in WAYS if module.weight.shape[-1] % w["group_size"] == 0]
        # Codes of few bits of what is only written as floats would be noise; a router turns with every bit.
        if any(k in path for k in ("gate", "router")) and "gate_proj" not in path and "gate_up" not in path:
            fit = [w for w in fit if w["bits"] == 8 and "mode" not in w]
        return dict(fit[rng.integers(len(fit))]) if fit and rng.random() > 0.1 else False

    with contextlib.redirect_stdout(io.StringIO()):
        model, made = quantize_model(model, made, 16, 4, quant_predicate=way)
    save_model(dst, model)
    save_config(made, dst / "config.json")
    return apart(hearth, dst, tokens := some_tokens(config), reference(dst, tokens))


def source(config, shapes, dtype, src):
    """A folder of floats."""
    src.mkdir(parents=True)
    tensors = {}
    for n, shape in shapes.items():
        x = np.random.default_rng(list(n.encode())).uniform(-1, 1, shape)
        x = 1 + x / 4 if "norm" in n and len(shape) == 1 else x * (3 / (shape or [1])[-1]) ** 0.5
        tensors[n] = mx.array(x).astype(models.DTYPES[dtype])
    (src / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(src / "model.safetensors"), tensors, {"format": "mlx"})


def written(hearth, src, dst):
    """Runs the command. -> why it refuses, "" if it does not."""
    done = subprocess.run([hearth, "quantize", str(src), str(dst), "--group-size", str(GROUP), "--bits", "8"], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


def looked_up(self, x):
    """MLX makes bfloat16 of rows in the small floats, in which gemma's factors would round."""
    biases = self.get("biases")
    return mx.dequantize(self["weight"][x], self["scales"][x], None if biases is None else biases[x], group_size=self.group_size, bits=self.bits,
                         mode=self.mode, dtype=mx.float32)


def reference(folder, tokens):
    nn.QuantizedEmbedding.__call__ = looked_up
    model, _ = load_model(folder)
    model.update(tree_map(lambda p: p.astype(mx.float32) if mx.issubdtype(p.dtype, mx.floating) else p, model.parameters()))
    y = model(mx.array([tokens]), cache=make_prompt_cache(model))  # without one gemma3n shares no keys
    return np.array(y[0].astype(mx.float32))


def apart(hearth, folder, tokens, want):
    """How far hearth's best tokens of every position are from the reference's, as a share of the logit range."""
    done = subprocess.run([hearth, "debug", "logits", "--model", str(folder), "--precision", "float32"], input=json.dumps({"tokens": tokens}),
                          capture_output=True, text=True)
    answer = json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr}
    if "error" in answer:
        return answer["error"].strip()
    want = want.astype(np.float64)
    want -= np.log(np.exp(want - want.max(-1, keepdims=True)).sum(-1, keepdims=True)) + want.max(-1, keepdims=True)
    off = max(abs(want[i, int(t)] - lp) for i, row in enumerate(answer["top"]) for t, lp in row)
    return f"{off / np.ptp(want):.1e}"


def some_tokens(config):
    return [int(t) for t in np.random.default_rng(7).integers(0, config.get("text_config", config).get("vocab_size", 96), 40)]


def compare_saved(hearth, config, dtype, folder):
    tokens, made = some_tokens(config), {}
    for name, c in (("older", config), ("saved", saved(config))):
        made[name] = Path(folder) / name / "dst"
        source(c, models.shapes(config), dtype, Path(folder) / name / "src")
        if refused := written(hearth, Path(folder) / name / "src", made[name]):
            return f"{name}: {refused}"
    older, new = reference(made["older"], tokens), reference(made["saved"], tokens)
    d = np.abs(older - new).max() / np.ptp(older)
    return f"mlx-lm {d:.1e}, hearth of the older {apart(hearth, made['older'], tokens, older)}, of the saved {apart(hearth, made['saved'], tokens, new)}"


def compare_folder(hearth, src, folder):
    dst = Path(folder) / "dst"
    if refused := written(hearth, src, dst):
        return refused
    tokens = some_tokens(json.loads((dst / "config.json").read_text()))
    return apart(hearth, dst, tokens, reference(dst, tokens))


def main(hearth, *only):
    if only[:1] == ("--folders",):
        for src in only[1:]:
            with tempfile.TemporaryDirectory() as d:
                try:
                    print(src, compare_folder(hearth, src, d), flush=True)
                except Exception as e:  # of mlx-lm
                    print(src, "mlx-lm:", type(e).__name__, str(e)[:200], flush=True)
        return
    if only[:1] in (("--saved",), ("--mixed",)):
        seen = []
        for name, (config, dtype, *_) in models.CASES.items():
            config = {k: v for k, v in (models.BASE | config).items() if k != "quantization"}
            if config in seen or only[1:] and not any(name.startswith(o) for o in only[1:]):
                continue
            seen.append(config)
            with tempfile.TemporaryDirectory() as d:
                try:
                    print(name, {"--saved": compare_saved, "--mixed": compare_mixed}[only[0]](hearth, config, dtype, d), flush=True)
                except Exception as e:  # of mlx-lm
                    print(name, "mlx-lm:", type(e).__name__, str(e)[:200], flush=True)
        return
    seen = {}
    for config, dtype, *_ in models.CASES.values():
        config = {k: v for k, v in (models.BASE | config).items() if k != "quantization"}
        seen.setdefault(config["model_type"], (config, dtype))
    for name, (config, dtype) in sorted(seen.items()):
        if not only or name in only:
            with tempfile.TemporaryDirectory() as d:
                print(name, compare(hearth, config, dtype, d) or "equal", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
