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
    "num_shared_experts": 1, "shared_expert_intermediate_size": 48, "norm_topk_prob": True,
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
SCALED = {"linear": LINEAR, "yarn": YARN, "llama3": LLAMA3, "dynamic": DYNAMIC}


def kinds(full=500.0, sliding=90.0, full_kind="default", **more):
    """rope_parameters by kind of layer."""
    return {"rope_parameters": {"full_attention": rope(full, full_kind, **more), "sliding_attention": rope(sliding)}}


MAMBA = {"state_size": 8, "conv_kernel": 4, "time_step_rank": 6}
BAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 2, "mamba_d_conv": 4, "mamba_chunk_size": 8}
VISION = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
CASES = {  # what the reference is given beside TINY
    "afmoe": SLIDING | {"num_dense_layers": 1, "mup_enabled": True, "route_scale": 1.5, "global_attn_every_n_layers": 2},
    "apertus": {},
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
    "gemma3_text": SLIDING | kinds() | {"query_pre_attn_scalar": 40},
    "glm": {},
    "glm4": {},
    "glm4_moe": GROUPS | {"first_k_dense_replace": 1, "use_qk_norm": True},
    "glm4_moe_lite": MLA | GROUPS | {"mlp_layer_types": ["dense", "sparse", "sparse"]},
    "gpt_neox": {"num_key_value_heads": None, "rope_parameters": rope(partial_rotary_factor=0.5)},
    "llama": {},
    "olmo3": SLIDING | kinds(),
    "qwen3": SLIDING | {"use_sliding_window": True},
    "qwen3_moe": {"mlp_only_layers": [1]},
}
VARIANTS = {}
LEFT_OUT = {}
SEEDS = {}  # cases whose row would sit on a router's tie


def tiny(cls, given):
    """The arguments of a config: TINY and what the case gives, of the keys that the class has."""
    default = cls().to_dict()
    out = {k: v for k, v in TINY.items() if k in default}
    out |= copy.deepcopy(given)
    for k, sub in cls.sub_configs.items():
        if k in given and isinstance(given[k], dict):
            out[k] = given[k] if "vision" in k or "audio" in k else tiny(sub, given[k])
    r = default.get("rope_parameters")
    if r and "rope_parameters" not in given:
        out["rope_parameters"] = r | {"rope_theta": 500.0} if "rope_type" in r else {k: v | {"rope_theta": 500.0} for k, v in r.items()}
    return {k: v for k, v in out.items() if v is not None or k in default}


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


def fill(folder, seed):
    """Overwrites the saved tensors with the formula's: -> their list."""
    made = []
    for path in sorted(folder.glob("*.safetensors")):
        new = {}
        for name, w in sorted(load_file(path).items()):
            assert w.dtype == np.float32, (name, w.dtype)
            base, amp = filling(name, w)
            made.append([name, list(w.shape), base, round(float(amp), 6)])
            new[name] = synthetic.floats(name, seed, w.shape, "F32", base, round(float(amp), 6))
        save_file(new, path, {"format": "pt"})
    return made


class Refused(Exception):
    pass


def read(cls, folder):
    model, info = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager", output_loading_info=True)
    for k in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        if info.get(k):
            raise Refused(f"{k}: {', '.join(str(x) for x in sorted(info[k], key=str)[:2])}")
    return model.eval()


def logits(model, tokens):
    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0].float().numpy()


def moves(model, tokens, first, rows):
    """How far the recorded logits move, as a share of their range, when all weights move by about half of their last bit."""
    worst, kept = 0.0, {k: v.clone() for k, v in model.state_dict().items()}
    for seed in range(3):
        g = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            seen = set()
            for k, v in model.state_dict().items():
                if v.is_floating_point() and v.data_ptr() not in seen:
                    seen.add(v.data_ptr())
                    v.copy_(kept[k] * (1 + 1e-7 * (2 * torch.rand(v.shape, generator=g) - 1)))
        worst = max(worst, float(np.abs(logits(model, tokens)[rows] - first[rows]).max()))
    model.load_state_dict(kept)
    return worst / float(first.max() - first.min())


# Keys that say nothing about what is computed, and those whose other values would build something large.
PLAIN = {"architectures", "transformers_version", "dtype", "torch_dtype", "model_type", "_name_or_path", "id2label", "label2id", "vision_config", "audio_config"}
STRINGS = {
    "hidden_act": ["gelu", "relu2"], "hidden_activation": ["silu", "gelu"], "activation_function": ["relu", "gelu"], "mlp_hidden_act": ["silu", "relu"],
    "mamba_hidden_act": ["gelu"], "topk_method": ["greedy", "group_limited_greedy", "noaux_tc"], "scoring_func": ["softmax", "sigmoid"],
    "position_embedding_type": ["nope", "rope"], "rope_type": [], "type": [], "use_bidirectional_attention": ["all"],
}
NULLS = {  # for keys that are null: another family's value, as small as the rest
    "sliding_window": 8, "head_dim": 16, "num_key_value_heads": 2, "q_lora_rank": 24, "pad_token_id": 0, "bos_token_id": 3, "eos_token_id": 5, "n_inner": 80,
    "attn_logit_softcapping": 3.0, "final_logit_softcapping": 3.0, "use_bidirectional_attention": True, "position_embedding_type": "rope", "n_group": 2,
    "topk_group": 1, "topk_method": "greedy", "clip_qkv": 0.5, "layer_types": ["full_attention"] * 3, "num_experts": 4, "n_shared_experts": 1,
    "swiglu_limits": [0.3, 0.3, 0.3], "summary_activation": "tanh",
}


def others(key, value, types):
    """Other values of a key that the reference may or may not take."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        big = re.search(r"vocab|size|dim|rank|heads|^n_head|^n_embd|d_head|d_state|d_conv|d_ssm|position|max_", key)
        more = [2 * value] if big and value else [value - 1 if value > 1 else value + 1]
        if re.search(r"heads|n_head", key) and value > 1:
            more.append(value // 2)
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
        return changed(value, types) + [None]
    if value is None:
        return [NULLS[key]] if key in NULLS else []
    return []


def changed(value, types):
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


def ropes(r):
    """Other values of rope_parameters: (path below it, value)."""
    if "rope_type" not in r:
        for k in r:
            for p, v in ropes(r[k]) if isinstance(r[k], dict) else []:
                if p:
                    yield (k,) + p, v
                else:
                    yield (), r | {k: v}
        yield (), None
        return
    for k, v in r.items():
        if k not in ("rope_type", "type"):
            for o in others(k, v, ()):
                yield (k,), o
    if "partial_rotary_factor" not in r:
        yield ("partial_rotary_factor",), 0.5
    plain = {k: v for k, v in r.items() if k in ("rope_theta", "partial_rotary_factor", "mrope_section", "mrope_interleaved")}
    if r["rope_type"] != "default":
        yield (), plain | {"rope_type": "default"}
    for kind, more in SCALED.items():
        if kind != r["rope_type"]:
            yield (), plain | {"rope_type": kind} | more
    yield (), plain | {"rope_type": "yarn"} | YARN | {"beta_fast": 16, "beta_slow": 2, "attention_factor": 0.8, "truncate": False}
    yield (), plain | {"rope_type": "yarn"} | YARN | {"mscale": 0.7, "mscale_all_dim": 0.9}
    yield (), plain | {"rope_type": "yarn", "factor": 4.0}
    yield (), plain | {"type": "linear"} | LINEAR
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
        for o in others(path[-1], value, ()):
            yield from one(path, o)
    for path in [("rope_parameters",), ("text_config", "rope_parameters")]:
        at = config
        for k in path:
            at = at.get(k) if isinstance(at, dict) else None
        if at:
            for p, v in ropes(at):
                yield from one(path + p, v)
    for at, into in [(config, None), (config.get("text_config"), "text_config")]:
        if not at:
            continue
        for new, drop in old(at, cls if not into else cls.sub_configs[into]):
            entry = {"config": new, "drop": drop}
            out = {k: v for k, v in at.items() if k not in drop} | new
            if into:
                entry = {"config": {into: out}, "drop": []}
                out = config | {into: out}
            yield entry, out


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
        yield {"rope_scaling": {"rope_type": "linear"} | LINEAR}, []
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
    lines = [s.strip() for s in str(e).replace(str(folder), "").splitlines() if s.strip()]
    return f"{type(e).__name__}: {' '.join(lines[:2])}"[:140]


def mutations(config, cls, model, folder, tokens):
    out = []
    for entry, edited in edits(config, cls):
        (folder / "config.json").write_text(json.dumps(edited))
        try:
            y = logits(read(model, folder), tokens)[-1]
            if not np.all(np.isfinite(y)):
                raise Refused("the logits are not finite")
            entry["logits"] = pins.f32(y)
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
        c = config(**tiny(config, given))
        model._from_config(c, dtype=torch.float32, attn_implementation="eager").save_pretrained(folder)
        written = json.loads((folder / "config.json").read_text())
        tensors = fill(folder, seed)
        m = read(model, folder)
        tokens = [int(t) for t in synthetic.draws("tokens", seed, LENGTH) % np.uint64(VOCAB - 8) + np.uint64(6)]
        y = logits(m, tokens)
        rows = [0, 1, 7, 23] if base else [0, 23]
        golden = {"seed": seed, "config": written, "tensors": tensors, "tokens": tokens, "rows": rows, "logits": pins.f32(y[rows]),
                  "range": float(y.max() - y.min()), "moves": moves(m, tokens, y, rows)}
        if base:
            golden["mutations"] = mutations(written, config, model, folder, tokens) if "--no-mutations" not in sys.argv else []
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
    for name, given in (CASES | VARIANTS).items():
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
