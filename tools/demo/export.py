"""Turns a checkpoint into model folders: bf16 and quantised (MLX affine, groups of 64).

python export.py RUN/final.pt OUT [BITS ...=8]    makes OUT/bf16 and OUT/8bit
"""
import json
import os
import random
import shutil
import sys

import jinja2
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

import mix
from model import folder_weights, load_checkpoint, parameters
from verify import context

HERE = os.path.dirname(os.path.abspath(__file__))
GROUP = 64


def quantise(w, bits):
    """MLX's affine quantisation of rows in groups: packed 32-bit words, scales and biases (x = scale * q + bias), as mlx.core.quantize makes them."""
    levels = 2 ** bits - 1
    g = w.view(w.shape[0], -1, GROUP)
    low, high = g.amin(-1), g.amax(-1)
    down = low.abs() > high.abs()
    scale = ((high - low) / levels).clamp(min=1e-7)
    scale = torch.where(down, scale, -scale)
    edge = torch.where(down, low, high)
    zero = torch.round(edge / scale)
    scale = torch.where(zero != 0, edge / zero, scale).to(torch.bfloat16)
    bias = torch.where(zero != 0, edge, torch.zeros_like(edge)).to(torch.bfloat16)
    q = torch.round((g - bias.float()[..., None]) / scale.float()[..., None]).clamp(0, levels).long().view(w.shape[0], -1)
    stream = (q[..., None] >> torch.arange(bits) & 1).view(w.shape[0], -1, 32)  # one value after the other, lowest bit first
    packed = (stream << torch.arange(32)).sum(-1)
    return torch.where(packed >= 2 ** 31, packed - 2 ** 32, packed).to(torch.int32).view(torch.uint32), scale, bias


def config_json(c, tok, bits):
    d = dict(architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_size=c.dim, num_hidden_layers=c.layers, num_attention_heads=c.heads, num_key_value_heads=c.kv_heads, head_dim=c.head_dim,
             intermediate_size=c.ffn, vocab_size=c.vocab, rms_norm_eps=c.eps, rope_theta=c.theta, rope_scaling=None, max_position_embeddings=c.max_positions, tie_word_embeddings=False, attention_bias=False,
             attention_dropout=0.0, hidden_act="silu", initializer_range=0.02, use_cache=True, use_sliding_window=False, sliding_window=None, max_window_layers=c.layers,
             bos_token_id=tok.token_to_id("<|endoftext|>"), eos_token_id=tok.token_to_id("<|im_end|>"), pad_token_id=tok.token_to_id("<|endoftext|>"), torch_dtype="bfloat16")
    if bits:
        d["quantization"] = d["quantization_config"] = dict(group_size=GROUP, bits=bits, mode="affine")
    return d


def write(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)


def side_files(folder, c, bits):
    tok = Tokenizer.from_file(os.path.join(HERE, "tokenizer.json"))
    shutil.copy(os.path.join(HERE, "tokenizer.json"), folder)
    shutil.copy(os.path.join(HERE, "chat_template.jinja"), folder)
    template = open(os.path.join(HERE, "chat_template.jinja"), encoding="utf-8").read()
    added = {str(i): dict(content=t.content, lstrip=False, normalized=False, rstrip=False, single_word=False, special=t.special) for i, t in tok.get_added_tokens_decoder().items()}
    write(folder, "config.json", config_json(c, tok, bits))
    write(folder, "tokenizer_config.json", dict(tokenizer_class="PreTrainedTokenizerFast", add_bos_token=False, add_prefix_space=False, clean_up_tokenization_spaces=False, errors="replace", split_special_tokens=False,
          model_max_length=c.max_positions, bos_token=None, eos_token="<|im_end|>", pad_token="<|endoftext|>", unk_token=None, added_tokens_decoder=added, chat_template=template))
    end, pad = tok.token_to_id("<|im_end|>"), tok.token_to_id("<|endoftext|>")
    # a model this small should be sampled cold; a repetition penalty would break copying, so only circles are cut: four times
    # the same dozen tokens, which nobody asks it to say, or the same sentence
    write(folder, "generation_config.json", dict(bos_token_id=pad, eos_token_id=[end, pad], pad_token_id=pad, do_sample=True, temperature=0.2, top_k=20, top_p=0.9, repetition_detection=dict(min_pattern_size=12, max_pattern_size=96, min_count=4)))


def main(checkpoint, out, *widths):
    check_template()
    d, m = load_checkpoint(checkpoint)
    c = m.c
    weights = folder_weights(m)
    for bits in [0, *map(int, widths or ["8"])]:
        folder = os.path.join(out, f"{bits}bit" if bits else "bf16")
        os.makedirs(folder, exist_ok=True)
        tensors = {}
        for k, w in weights.items():
            w = w.to(torch.bfloat16).contiguous()
            if bits and w.ndim == 2:
                base = k.removesuffix("weight")
                tensors[k], tensors[base + "scales"], tensors[base + "biases"] = quantise(w.float(), bits)
            else:
                tensors[k] = w.clone()
        save_file(tensors, os.path.join(folder, "model.safetensors"), metadata={"format": "mlx"})
        side_files(folder, c, bits)
        print(folder, sum(e.stat().st_size for e in os.scandir(folder)), "bytes;", parameters(m), "parameters, step", d["step"], "tokens", d["tokens"])


def check_template(count=400):
    """The template must write what the training saw."""
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda x: json.dumps(x, ensure_ascii=False)
    template = env.from_string(open(os.path.join(HERE, "chat_template.jinja"), encoding="utf-8").read())
    r = random.Random(3)
    for _ in range(count):
        c = mix.conversation(r)
        a = template.render(**context(c))
        if a != mix.text(c, prompt=True):
            raise SystemExit(f"the template differs:\n{a!r}\n{mix.text(c, prompt=True)!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
