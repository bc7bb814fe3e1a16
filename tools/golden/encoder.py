"""Vectors and scores of tiny encoders with formula weights, from transformers in float32.

run: python tools/golden/encoder.py internal/model/testdata/encoders [beginning of a case's name ...]
It needs torch (CPU) beside the pinned packages; mlx dequantises what a case has quantised.
"""
import sys

import mlx.core as mx
import numpy as np
import torch
import transformers as hf

import pins
import synthetic

mx.set_default_device(mx.cpu)
torch.set_num_threads(1)

BERT = {"model_type": "bert", "hidden_size": 96, "num_hidden_layers": 3, "intermediate_size": 160, "num_attention_heads": 3, "vocab_size": 80,
        "max_position_embeddings": 40, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
XLMR = BERT | {"model_type": "xlm-roberta", "max_position_embeddings": 42, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}
DECODER = {"hidden_size": 128, "num_hidden_layers": 3, "intermediate_size": 192, "num_attention_heads": 4, "num_key_value_heads": 2,
           "rms_norm_eps": 1e-6, "vocab_size": 80, "max_position_embeddings": 512, "rope_theta": 10000.0, "tie_word_embeddings": True}
QWEN3 = DECODER | {"model_type": "qwen3", "head_dim": 48}
GEMMA3 = DECODER | {"model_type": "gemma3_text", "hidden_size": 64, "head_dim": 48, "num_hidden_layers": 5, "sliding_window": 12,
                    "sliding_window_pattern": 3, "rope_local_base_freq": 300.0, "query_pre_attn_scalar": 40,
                    "use_bidirectional_attention": True}
DENSE = [{"in": 64, "out": 96, "bias": False, "act": "Identity"}, {"in": 96, "out": 48, "bias": True, "act": "Tanh"}]


def q(bits, group=32, mode="affine"):
    return {"quantization": {"group_size": group, "bits": bits, "mode": mode}}


LLAMA = DECODER | {"model_type": "llama", "head_dim": 32, "pad_token_id": 0}
BIDIREC = LLAMA | {"model_type": "llama_bidirec", "pooling": "avg"}
MINISTRAL3 = LLAMA | {"model_type": "ministral3_embedding", "rope_parameters": {
    "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 1.0, "beta_slow": 0.25,
    "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}}
LFM2 = {"model_type": "lfm2", "hidden_size": 128, "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 80,
        "max_position_embeddings": 512, "norm_eps": 1e-5, "conv_L_cache": 3, "conv_bias": False, "block_ff_dim": 256, "block_multiple_of": 32,
        "block_auto_adjust_ff_dim": True, "block_ffn_dim_multiplier": 1.0, "rope_theta": 500.0, "tie_word_embeddings": True,
        "layer_types": ["conv", "conv", "full_attention", "conv", "full_attention"]}
LFM2_BOTH = {"architectures": ["Lfm2BidirectionalModel"]}
EMBED, RANK = {"kind": "embeds", "rows": "mean", "normalize": True}, {"kind": "ranks", "labels": 1}
ONE = {"num_labels": 1}
CASES = {  # file: (config, dtype of floats, transformers' class, what is done with rows)
    "bert/f32": (BERT, "F32", hf.BertModel, EMBED),
    "bert/bf16": (BERT | {"hidden_act": "gelu_new", "type_vocab_size": 1}, "BF16", hf.BertModel, EMBED | {"rows": "cls", "normalize": False}),
    "bert/4bit": (BERT | q(4), "BF16", hf.BertModel, EMBED),
    "bert/8bit": (BERT | q(8), "F16", hf.BertModel, EMBED | {"rows": "cls"}),
    "bert/long": (BERT | {"num_hidden_layers": 2, "max_position_embeddings": 1100}, "BF16", hf.BertModel, EMBED),
    "bert/rank": (BERT | ONE, "F32", hf.BertForSequenceClassification, RANK),
    "bert/rank4": (BERT | ONE | q(4), "BF16", hf.BertForSequenceClassification, RANK | {"raw": True}),
    "xlm-roberta/f32": (XLMR, "F32", hf.XLMRobertaModel, EMBED),
    "xlm-roberta/4bit": (XLMR | q(4), "BF16", hf.XLMRobertaModel, EMBED | {"rows": "cls"}),
    "xlm-roberta/rank": (XLMR | ONE, "F32", hf.XLMRobertaForSequenceClassification, RANK),
    "roberta/f32": (XLMR | {"model_type": "roberta"}, "F32", hf.RobertaModel, EMBED),
    "camembert/f32": (XLMR | {"model_type": "camembert"}, "F32", hf.CamembertModel, EMBED),
    "qwen3/f32": (QWEN3, "F32", hf.Qwen3Model, EMBED | {"rows": "lasttoken"}),
    "qwen3/4bit": (QWEN3 | q(4, 64), "BF16", hf.Qwen3Model, EMBED | {"rows": "lasttoken"}),
    "qwen3/score": (QWEN3 | ONE | {"pad_token_id": 0}, "F32", hf.Qwen3ForSequenceClassification, RANK),
    "qwen3/yesno": (QWEN3, "F32", hf.Qwen3ForCausalLM, RANK | {"rows": "lasttoken", "yes": 17, "no": 5}),
    "qwen3/yesno4": (QWEN3 | {"tie_word_embeddings": False} | q(4, 64), "BF16", hf.Qwen3ForCausalLM, RANK | {"rows": "lasttoken", "yes": 17, "no": 5}),
    "gemma3_text/f32": (GEMMA3, "F32", hf.Gemma3TextModel, EMBED | {"dense": DENSE}),
    "gemma3_text/4bit": (GEMMA3 | q(4), "BF16", hf.Gemma3TextModel, EMBED),
    "gemma3_text/causal": (GEMMA3 | {"use_bidirectional_attention": False}, "BF16", hf.Gemma3TextModel, EMBED),
    "gemma3_text/long": (GEMMA3 | {"sliding_window": 140}, "BF16", hf.Gemma3TextModel, EMBED),
    "llama/score": (DECODER | ONE | {"model_type": "llama", "head_dim": 32, "pad_token_id": 0}, "F32", hf.LlamaForSequenceClassification, RANK),
    # NVIDIA's class is llama that sees both ways: its head reads the pooled row, and divides.
    "llama_bidirec/f32": (BIDIREC, "F32", hf.LlamaModel, EMBED),
    "llama_bidirec/last": (BIDIREC | {"pooling": "last"}, "BF16", hf.LlamaModel, EMBED | {"rows": "lasttoken"}),
    "llama_bidirec/rank": (BIDIREC | ONE | {"temperature": 0.25}, "F32", hf.LlamaForSequenceClassification, RANK),
    "ministral3_embedding/f32": (MINISTRAL3, "F32", hf.Ministral3Model, EMBED),
    "gemma3_embedding/f32": ({k: v for k, v in GEMMA3.items() if "bidir" not in k} | {"model_type": "gemma3_embedding"}, "F32", hf.Gemma3TextModel, EMBED | {"dense": DENSE}),
    # LiquidAI's class is Lfm2Model whose attention sees both ways and whose convolutions are centred: here Lfm2Model with Centred in their place.
    "lfm2_embedding/f32": (LFM2 | {"model_type": "lfm2_embedding"}, "F32", hf.Lfm2Model, EMBED | {"rows": "cls"}),
    "lfm2_embedding/4bit": (LFM2 | {"model_type": "lfm2_embedding", "conv_bias": True} | q(4, 64), "BF16", hf.Lfm2Model, EMBED | {"rows": "cls"}),
    "lfm2_bidirectional/f32": (LFM2 | {"model_type": "lfm2_bidirectional", "conv_bias": True, "conv_L_cache": 4}, "F32", hf.Lfm2Model, EMBED | {"rows": "cls"}),
    "lfm2/f32": (LFM2 | LFM2_BOTH, "F32", hf.Lfm2Model, EMBED | {"rows": "mean"}),
    "lfm2/long": (LFM2 | LFM2_BOTH | {"conv_L_cache": 5}, "BF16", hf.Lfm2Model, EMBED | {"rows": "cls"}),
    "lfm2/causal": (LFM2, "BF16", hf.Lfm2Model, EMBED | {"rows": "lasttoken"}),
    "qwen3_embedding/f32": (QWEN3 | {"model_type": "qwen3_embedding"}, "F32", hf.Qwen3Model, EMBED | {"rows": "lasttoken"}),
}
SEED = 20261121
LENGTHS = [9, 1, 38, 16, 23]  # of texts
LONG = {"bert/long": [1090, 33], "gemma3_text/long": [200, 33], "lfm2/long": [3, 1, 2, 300, 4]}  # beyond where attention is split, and beyond the window
SPLIT = 6  # a pair's first text in encoders


class Centred(torch.nn.Module):
    """A short convolution of whole texts, with L // 2 zeros on either side, from the parts of transformers' causal one."""

    def __init__(self, causal):
        super().__init__()
        self.conv, self.in_proj, self.out_proj = causal.conv, causal.in_proj, causal.out_proj

    def forward(self, hidden_states, **kwargs):
        before, after, x = self.in_proj(hidden_states).transpose(-1, -2).chunk(3, dim=-2)
        w = self.conv.weight
        y = torch.nn.functional.conv1d(before * x, w, self.conv.bias, padding=w.shape[-1] // 2, groups=w.shape[0])[..., :x.shape[-1]]
        return self.out_proj((after * y).transpose(-1, -2))


def bidirectional(config):
    return config["model_type"] in ("lfm2_embedding", "lfm2_bidirectional") or config.get("architectures") == LFM2_BOTH["architectures"]


LFM2_NAMES = {"embedding_norm": "norm", ".operator_norm": ".input_layernorm", ".ffn_norm": ".post_attention_layernorm", "q_layernorm": "q_norm",
              "k_layernorm": "k_norm", ".self_attn.out_proj": ".self_attn.o_proj", ".conv.": ".mixer.",
              ".feed_forward": ".mlp", ".w1": ".gate_proj", ".w2": ".down_proj", ".w3": ".up_proj"}


def rename(name):
    """What internal/model calls a tensor."""
    for p in ("bert.", "roberta."):
        name = name.removeprefix(p)
    if name.split(".")[0] in ("layers", "embed_tokens", "norm"):
        name = "model." + name
    return name


def lfm2_name(name):
    if name.split(".")[0] in ("layers", "embed_tokens", "embedding_norm"):
        name = "model." + name
    for theirs, ours in LFM2_NAMES.items():
        name = name.replace(theirs, ours)
    return name


def tensors(config, shapes, dtype):
    """The weights as float32, dequantised where they are quantised."""
    taps = {k: (s[0], s[2], s[1]) for k, s in shapes.items() if k.endswith("conv.weight")}  # as MLX lays them out
    made = synthetic.weights(config, shapes | taps, SEED, dtype, lfm2_name if config["model_type"].startswith("lfm2") else rename)
    made |= {k: made[k].reshape(shapes[k]) for k in taps}
    out = {}
    for name, shape in shapes.items():
        path = name.removesuffix(".weight")
        if path + ".scales" not in made:
            out[name] = made[name]
            continue
        mode, bits, group = synthetic.scheme(config, path, shape[-1])
        kind = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}[dtype]
        s, b = (mx.array(made[path + k]).astype(kind).astype(mx.float32) for k in (".scales", ".biases"))
        out[name] = np.array(mx.dequantize(mx.array(made[name]), s, b, group, bits, mode))
    return out


def build(config, dtype, cls):
    theirs = {k: v for k, v in config.items() if k not in ("model_type", "quantization")}
    theirs.setdefault("pad_token_id", None)
    if config["model_type"] == "gemma3_embedding":
        theirs["use_bidirectional_attention"] = True
    theirs.pop("pooling", None)
    if cls is hf.Lfm2Model:
        theirs["intermediate_size"] = theirs.pop("block_ff_dim")
        theirs.pop("architectures", None)
    if cls.config_class.model_type in ("qwen3", "llama", "lfm2"):
        theirs["rope_parameters"] = {"rope_type": "default", "rope_theta": theirs.pop("rope_theta")}
    kw = {"add_pooling_layer": False} if cls.__name__ in ("BertModel", "XLMRobertaModel", "RobertaModel", "CamembertModel") else {}
    cfg = cls.config_class(**theirs)
    cfg._attn_implementation = "eager"
    model = cls(cfg, **kw).eval().to(torch.float32)
    state = {k: v for k, v in model.state_dict().items() if not k.endswith(("position_ids", "token_type_ids"))}
    shapes = {k: tuple(v.shape) for k, v in state.items()}
    if config.get("tie_word_embeddings") and "lm_head.weight" in shapes:
        del shapes["lm_head.weight"]
    made = {k: torch.tensor(v) for k, v in tensors(config, shapes, dtype).items()}
    missing, extra = model.load_state_dict(made, strict=False)
    assert not extra and all(k.endswith(("position_ids", "token_type_ids", "lm_head.weight")) for k in missing), (missing, extra)
    model.tie_weights()
    model.both = config.get("temperature", 1.0) if config["model_type"] in ("llama_bidirec", "ministral3_embedding") else 0  # what scores are divided by
    if bidirectional(config):
        model.both = 1.0
        for layer in model.layers:
            if not layer.is_attention_layer:
                layer.conv = Centred(layer.conv)
    return model, sum(int(np.prod(s)) for s in shapes.values())


def dense(layers, x, dtype):
    params = 0
    for i, d in enumerate(layers):
        w = synthetic.floats(f"dense.{i}.weight", SEED, (d["out"], d["in"]), dtype, 0, np.sqrt(3 / d["in"])).astype(np.float64)
        x = x @ w.T
        params += w.size
        if d["bias"]:
            b = synthetic.floats(f"dense.{i}.bias", SEED, (d["out"],), dtype, 0, 0.1)
            x, params = x + b, params + b.size
        if d["act"] == "Tanh":
            x = np.tanh(x)
    return x, params


def run(model, use, ids, types):
    kw = {"token_type_ids": torch.tensor([types])} if types else {}
    if model.both:
        kw["attention_mask"] = torch.zeros((1, 1, len(ids), len(ids)))
    with torch.no_grad():
        if model.both and use["kind"] == "ranks":
            y = model.score(model.model(input_ids=torch.tensor([ids]), **kw).last_hidden_state.mean(1)) / model.both
            return 1 / (1 + np.exp(-y[0].numpy().astype(np.float64)))
        y = model(input_ids=torch.tensor([ids]), **kw)
    if use["kind"] == "ranks":
        logits = y.logits.numpy().astype(np.float64)
        x = logits[0, -1, use["yes"]] - logits[0, -1, use["no"]] if "yes" in use else logits[0, 0]
        return np.array([x if use.get("raw") else 1 / (1 + np.exp(-x))])
    h = y.last_hidden_state[0].numpy().astype(np.float64)
    return {"mean": h.mean(0), "cls": h[0], "lasttoken": h[-1]}[use["rows"]]


def main(out, *only):
    header = pins.made(__file__) | {"transformers": hf.__version__, "torch": torch.__version__}
    for name, (config, dtype, cls, use) in CASES.items():
        if only and not any(name.startswith(o) for o in only):
            continue
        model, params = build(config, dtype, cls)
        rng = np.random.default_rng(7)
        texts = [[int(t) for t in rng.integers(2, config["vocab_size"], n)] for n in LONG.get(name, LENGTHS)]
        types = None
        if use["kind"] == "ranks" and config.get("type_vocab_size", 1) > 1:
            types = [[int(i >= SPLIT) for i in range(n)] for n in LENGTHS]
        rows = []
        for i, t in enumerate(texts):
            v = run(model, use, t, types and types[i])
            if use["kind"] == "embeds":
                v, more = dense(use.get("dense", []), v, dtype)
                params += more if i == 0 else 0
                if use["normalize"]:
                    v = v / np.linalg.norm(v)
            rows.append(v.reshape(-1))
        rows = np.stack(rows)
        print(name, rows.shape, np.abs(rows).max(), rows[:, 0])
        pins.write(f"{out}/{name}.json", {"made": header, "config": config, "seed": SEED, "type": dtype, "use": use, "params": params,
                                          "texts": texts, "types": types, "rows": pins.f32(rows)})


if __name__ == "__main__":
    main(*sys.argv[1:])
