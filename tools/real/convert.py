"""Writes an MLX folder from a GGUF file: the very weights of the file as far as MLX has a place for them, or all of them as float32.

Knows the architectures llama and gemma3 and what the published files of quality.py are made of. MLX has value = scale * code + bias,
one of each per group; these blocks keep their values:

    Q4_1  4 bits, 32 a group   scale d      bias m
    Q5_0  5 bits, 32 a group   scale d      bias -16 d
    Q8_0  8 bits, 32 a group   scale d      bias -128 d
    Q4_K  4 bits, 32 a group   scale d*sc   bias -dmin*m   (products that need float32)

All others (Q6_K has groups of 16, which affine has not) become floats.
"""

import json
import pathlib
import shutil

import gguf
import mlx.core as mx
import numpy as np

GROUP = 32


def nibbles(b):
    """[..., 16] bytes -> [..., 32] codes: low halves first."""
    return np.concatenate([b & 15, b >> 4], axis=-1)


def half(b):
    return b.copy().view(np.float16).astype(np.float32)


def scales_of_k(s):
    """The 12 bytes of a K block -> eight scales and eight minimums of 6 bits."""
    low, middle, high = s[..., 0:4], s[..., 4:8], s[..., 8:12]
    scale = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], axis=-1)
    minimum = np.concatenate([middle & 63, (high >> 4) | (middle >> 6 << 4)], axis=-1)
    return scale.astype(np.float32), minimum.astype(np.float32)


def affine(kind, raw):
    """Blocks [rows, blocks, bytes] -> bits, codes [rows, groups, 32], scales and biases [rows, groups]; None where MLX has no such thing."""
    if kind == "Q4_1":
        return 4, nibbles(raw[..., 4:20]), half(raw[..., 0:2])[..., 0], half(raw[..., 2:4])[..., 0]
    if kind == "Q5_0":
        d, fifth = half(raw[..., 0:2])[..., 0], np.unpackbits(raw[..., 2:6], axis=-1, bitorder="little")
        return 5, nibbles(raw[..., 6:22]) | fifth << 4, d, -16 * d
    if kind == "Q8_0":
        d = half(raw[..., 0:2])[..., 0]
        return 8, raw[..., 2:34] ^ 128, d, -128 * d
    if kind == "Q4_K":
        rows = raw.shape[0]
        scale, minimum = scales_of_k(raw[..., 4:16])
        q = raw[..., 16:144].reshape(*raw.shape[:2], 4, 32)
        codes = np.stack([q & 15, q >> 4], axis=-2).reshape(rows, -1, 32)
        return 4, codes, (half(raw[..., 0:2]) * scale).reshape(rows, -1), (-half(raw[..., 2:4]) * minimum).reshape(rows, -1)
    return None


def pack(codes, bits):
    """[rows, columns] codes -> words, the lowest bits first, as MLX lays them out."""
    stream = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., :bits]
    return np.packbits(stream.reshape(len(codes), -1), axis=-1, bitorder="little").view(np.uint32)


LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
NORMS = {
    "llama": {"ffn_norm": "post_attention_layernorm"},
    "gemma3": {
        "post_attention_norm": "post_attention_layernorm",
        "ffn_norm": "pre_feedforward_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm",
    },
}
TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


def module(name, arch):
    """GGUF's name of a tensor -> MLX's of its module."""
    stem = name.removesuffix(".weight")
    if stem in TOP:
        return TOP[stem]
    _, layer, part = stem.split(".")
    return f"model.layers.{layer}." + (LAYER | NORMS[arch])[part]


def rows_in_halves(rows, heads):
    """The order of rows that takes interleaved rotation, which llama's queries and keys have in GGUF, back to halves."""
    return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).reshape(-1)


def config_of(meta, arch):
    def get(key, default=None):
        return meta.get(f"{arch}.{key}", default)

    heads, hidden = get("attention.head_count"), get("embedding_length")
    config = {
        "hidden_size": hidden,
        "intermediate_size": get("feed_forward_length"),
        "num_hidden_layers": get("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": get("attention.head_count_kv"),
        "head_dim": get("attention.key_length", hidden // heads),
        "max_position_embeddings": get("context_length"),
        "rms_norm_eps": float(f"{get('attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_theta": get("rope.freq_base"),
        "vocab_size": len(meta["tokenizer.ggml.tokens"]),
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "tie_word_embeddings": True,
        "attention_bias": False,
    }
    if arch == "llama":
        return config | {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "mlp_bias": False}
    return config | {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "hidden_activation": "gelu_pytorch_tanh",
        "sliding_window": get("attention.sliding_window"),
        "sliding_window_pattern": 6,
        "rope_local_base_freq": 10000.0,
        "query_pre_attn_scalar": get("attention.key_length"),
    }


def weights_of(reader, arch, meta, floats):
    """-> tensors, and what config.json has under "quantization"."""
    heads = {"attn_q": meta[f"{arch}.attention.head_count"], "attn_k": meta[f"{arch}.attention.head_count_kv"]}
    out, modules = {}, {}
    for t in reader.tensors:
        name, kind, shape = module(t.name, arch), t.tensor_type.name, [int(n) for n in reversed(t.shape)]
        if len(shape) == 1:
            # Gemma's norms are stored as what multiplies; elsewhere one is added to them
            out[name + ".weight"] = np.asarray(t.data, np.float32) - (arch == "gemma3")
            continue
        part = t.name.split(".")[-2]
        order = rows_in_halves(shape[0], heads[part]) if arch == "llama" and part in heads else slice(None)
        values = gguf.dequantize(t.data, t.tensor_type).reshape(shape).astype(np.float32)
        size = gguf.GGML_QUANT_SIZES[t.tensor_type][1]
        got = None if floats else affine(kind, np.asarray(t.data).view(np.uint8).reshape(shape[0], -1, size))
        if got is None:
            out[name + ".weight"] = values[order]
            modules[name] = False
            continue
        bits, codes, scales, biases = got
        again = (scales[..., None] * codes.reshape(shape[0], -1, GROUP) + biases[..., None]).reshape(shape)
        if not np.allclose(again, values, rtol=0, atol=2e-6 * np.abs(values).max()):
            raise SystemExit(f"{t.name}: {kind} came out otherwise than the gguf package has it")
        out[name + ".weight"] = pack(codes.reshape(shape)[order], bits)
        out[name + ".scales"], out[name + ".biases"] = scales[order], biases[order]
        modules[name] = {"group_size": GROUP, "bits": bits}
    if floats:
        return {k: mx.array(v) for k, v in out.items()}, None

    # float16 where that loses nothing, and one type for all scales
    def fits(v):
        return np.array_equal(v.astype(np.float16).astype(np.float32), v)

    def of_scales(k):
        return k.endswith(("scales", "biases"))

    small = all(fits(v) for k, v in out.items() if of_scales(k))
    tensors = {}
    for k, v in out.items():
        a = mx.array(v)
        if a.dtype != mx.uint32 and small and (of_scales(k) or fits(v)):
            a = a.astype(mx.float16)
        tensors[k] = a
    kinds = [json.dumps(m) for m in modules.values() if m]
    common = json.loads(max(kinds, key=kinds.count))
    return tensors, common | {k: m for k, m in modules.items() if m != common}


CONTROL, NORMAL, USER = 3, 1, 4
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
DIGITS = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTES]}
SPACE = "\u2581"


def tokenizer_of(meta):
    pieces, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    vocab = {p: i for i, p in enumerate(pieces)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [{"id": i, "content": p, "special": k == CONTROL, **flags} for i, (p, k) in enumerate(zip(pieces, kinds)) if k in (CONTROL, USER)]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
    model |= {"fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab}
    head = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "post_processor": None}
    if meta.get("tokenizer.ggml.add_bos_token"):
        bos = meta["tokenizer.ggml.bos_token_id"]
        token, a, b = ({"SpecialToken": {"id": pieces[bos], "type_id": 0}}, *({"Sequence": {"id": s, "type_id": n}} for n, s in enumerate("AB")))
        special = {pieces[bos]: {"id": pieces[bos], "ids": [bos], "tokens": [pieces[bos]]}}
        head["post_processor"] = {"type": "TemplateProcessing", "single": [token, a], "pair": [token, a, b], "special_tokens": special}
    if meta["tokenizer.ggml.model"] == "gpt2":
        if meta["tokenizer.ggml.pre"] != "smollm":
            raise SystemExit(f"what splits texts for {meta['tokenizer.ggml.pre']} is not known here")
        merges = [m.split(" ", 1) for m in meta["tokenizer.ggml.merges"]]
        return head | {"normalizer": None, "pre_tokenizer": DIGITS, "decoder": BYTES, "model": model | {"merges": merges}}
    # two neighbours join when what they make is a piece, the best score first
    scores, plain, merges = meta["tokenizer.ggml.scores"], (NORMAL, USER), []
    for p, i in vocab.items():
        for cut in range(1, len(p)) if kinds[i] in plain else ():
            left, right = vocab.get(p[:cut]), vocab.get(p[cut:])
            if left is not None and right is not None and NORMAL == kinds[left] == kinds[right] == kinds[i]:
                merges.append((-scores[i], left, right))
    merges = [[pieces[a], pieces[b]] for _, a, b in sorted(merges)]
    unknown = pieces[meta["tokenizer.ggml.unknown_token_id"]]
    spaces = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    return head | {
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": [spaces, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": model | {"merges": merges, "byte_fallback": True, "fuse_unk": True, "unk_token": unknown},
    }


def tokenizer_config_of(meta):
    pieces, config = meta["tokenizer.ggml.tokens"], {}
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        if (i := meta.get(f"tokenizer.ggml.{key}_token_id")) is not None:
            config[f"{name}_token"] = pieces[i]
    config["add_bos_token"] = bool(meta.get("tokenizer.ggml.add_bos_token"))
    return config | {"clean_up_tokenization_spaces": False, "tokenizer_class": "PreTrainedTokenizerFast"}


def convert(file, folder, floats=False):
    """Writes a folder unless it is there."""
    folder = pathlib.Path(folder)
    if folder.exists():
        return
    reader = gguf.GGUFReader(file)
    meta = {k: f.contents() for k, f in reader.fields.items()}
    arch = meta["general.architecture"]
    config = config_of(meta, arch)
    tensors, quantization = weights_of(reader, arch, meta, floats)
    if quantization:
        config |= {"quantization": quantization, "quantization_config": quantization}
    else:
        config["torch_dtype"] = "float32"
    unfinished = folder.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    generation = {k: config[k] for k in ("bos_token_id", "eos_token_id")}
    files = {"config": config, "generation_config": generation, "tokenizer": tokenizer_of(meta), "tokenizer_config": tokenizer_config_of(meta)}
    for name, value in files.items():
        (unfinished / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    if "tokenizer.chat_template" in meta:
        (unfinished / "chat_template.jinja").write_text(meta["tokenizer.chat_template"], encoding="utf-8")
    mx.save_safetensors(str(unfinished / "model.safetensors"), tensors, metadata={"format": "mlx"})
    unfinished.rename(folder)
