"""Writes internal/sample/testdata/mlx.json: what mlx-lm's processors and samplers make of fixed logits.

Run by hand: python tools/golden/sample.py
"""

import importlib.metadata
import json
import pathlib

import mlx.core as mx
from mlx_lm import sample_utils as su

VOCAB = 40
PROMPT = [3, 7, 7, 1, 0, 39, 12, 12, 5, 8, 9, 10, 11, 13]
GENERATED = [2, 7, 2, 4, 2, 19, 7, 30]

# Spread like a language model's, with ties at 5.0, at -1.0 and at the top.
LOGITS = [round(((i * 37) % 41 - 20) * 0.31 + ((i * 17) % 7) * 0.55, 4) for i in range(VOCAB)]
LOGITS[6] = LOGITS[9] = LOGITS[33] = 5.0
LOGITS[20] = LOGITS[21] = -1.0
LOGITS[14] = LOGITS[28] = 8.25

CASES = [
    {},
    {"temperature": 1.0},
    {"temperature": 0.7, "top_p": 0.95},
    {"temperature": 1.0, "top_p": 0.5},
    {"temperature": 1.0, "top_p": 0.93},
    {"temperature": 1.5, "top_p": 0.999},
    {"temperature": 1.0, "top_p": 0.01},
    {"temperature": 0.3, "min_p": 0.05},
    {"temperature": 1.0, "min_p": 1.0},
    {"temperature": 2.0, "top_k": 1},
    {"temperature": 2.0, "top_k": 2},
    {"temperature": 1.0, "top_k": 12},
    {"temperature": 0.9, "top_p": 0.9, "min_p": 0.02, "top_k": 5},
    {"temperature": 1.0, "top_p": 0.99, "top_k": 30, "min_p": 0.001},
    {"temperature": 1.0, "repetition_penalty": 1.3},
    {"temperature": 1.0, "repetition_penalty": 0.8},
    {"temperature": 1.0, "presence_penalty": 0.75},
    {"temperature": 1.0, "frequency_penalty": 0.4},
    {"temperature": 1.0, "logit_bias": {"0": 3.5, "14": -100.0, "39": 1.25}},
    {
        "temperature": 0.8,
        "top_p": 0.9,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.5,
        "frequency_penalty": -0.25,
        "logit_bias": {"2": 4.0, "7": 2.0},
    },
]


def run(case):
    logits = mx.array([LOGITS])
    bias = {int(k): v for k, v in case.get("logit_bias", {}).items()}
    history = [  # each penalty sees the tokens hearth shows it
        (su.make_logits_processors(logit_bias=bias), None),
        (su.make_logits_processors(repetition_penalty=case.get("repetition_penalty")), PROMPT + GENERATED),
        (su.make_logits_processors(presence_penalty=case.get("presence_penalty"), presence_context_size=1000), GENERATED),
        (su.make_logits_processors(frequency_penalty=case.get("frequency_penalty"), frequency_context_size=1000), GENERATED),
    ]
    for processors, tokens in history:
        for p in processors:
            logits = p(mx.array(tokens) if tokens else None, logits)
    logprobs = logits - mx.logsumexp(logits, keepdims=True)
    out = {"logprobs": [round(x, 5) for x in logprobs[0].tolist()], "argmax": mx.argmax(logprobs, axis=-1).item()}
    temperature = case.get("temperature", 0)
    if temperature == 0:
        return out
    kept = logprobs
    if 0 < case.get("top_p", 0) < 1:
        kept = su.apply_top_p(kept, case["top_p"])
    if case.get("min_p", 0) != 0:
        kept = su.apply_min_p(kept, case["min_p"])
    if case.get("top_k", 0) > 0:
        kept = su.apply_top_k(kept, case["top_k"])
    out["probs"] = [round(x, 6) for x in mx.softmax(kept / temperature, axis=-1)[0].tolist()]
    return out


def main():
    versions = {p: importlib.metadata.version(p) for p in ("mlx", "mlx-lm")}
    golden = {
        "versions": versions,
        "logits": LOGITS,
        "prompt": PROMPT,
        "generated": GENERATED,
        "cases": [{"params": c, **run(c)} for c in CASES],
    }
    path = pathlib.Path(__file__).parents[2] / "internal/sample/testdata/mlx.json"
    path.parent.mkdir(exist_ok=True)
    lines = [json.dumps({"params": c["params"], **{k: v for k, v in c.items() if k != "params"}}) for c in golden["cases"]]
    head = {k: v for k, v in golden.items() if k != "cases"}
    body = json.dumps(head)[:-1] + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n"
    path.write_text(body)
    print(versions, len(CASES), "cases")


main()
