"""Logits of tiny models whose keys and values are quantised, from mlx-lm with float32 activations (and scales).

run: python tools/golden/kv.py internal/model/testdata/kv.json
"""
import sys

import numpy as np
from mlx_lm.models.cache import QuantizedKVCache, make_prompt_cache

import model as goldens
import pins

PROMPT, CUT, ROWS, STEPS = 150, 101, [64, 129, 149], 4
CASES = {
    "qwen3, heads of 128": goldens.QWEN3 | {"head_dim": 128},
    "qwen3, heads of 64": goldens.QWEN3 | {"head_dim": 64} | goldens.Q4,
    "llama, heads of 64": goldens.LLAMA | {"num_attention_heads": 2, "num_key_value_heads": 1},
}


def main(out):
    cases = []
    for name, config in CASES.items():
        config = goldens.BASE | config
        m = goldens.build(config, goldens.SEED, "BF16")
        tokens = [int(t) for t in np.random.default_rng(11).integers(0, config["vocab_size"], PROMPT + STEPS)]
        logits = {}
        for kind, cache in {"f32": None, "q8": 8, "q4": 4}.items():
            cache = [QuantizedKVCache(64, cache) for _ in m.layers] if cache else make_prompt_cache(m)
            prefill = goldens.run(m, cache, tokens[:PROMPT])
            decode = [goldens.run(m, cache, [t])[-1] for t in tokens[PROMPT:]]
            logits[kind] = pins.f32(np.stack([*prefill[ROWS], *decode]))
        cases.append({"name": name, "config": config, "seed": goldens.SEED, "type": "BF16", "prompt": tokens[:PROMPT],
                      "decode": tokens[PROMPT:], "rows": ROWS, "cut": CUT, "logits": logits})
    pins.write(out, {"made": pins.made(__file__), "cases": cases})


if __name__ == "__main__":
    main(sys.argv[1])
