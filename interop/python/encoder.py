"""A tiny bert in a folder, for tests: it reads letters, has 32 columns and 300 positions, and embeds or ranks.

run: python encoder.py FOLDER, for tests in other languages
"""

import array
import json
import math
import sys
from pathlib import Path

D, FFN, VOCAB, POSITIONS = 32, 48, 300, 300


def shapes(ranks):
    out = {"embeddings.word_embeddings.weight": [VOCAB, D], "embeddings.position_embeddings.weight": [POSITIONS, D],
           "embeddings.token_type_embeddings.weight": [2, D]}

    def linear(name, rows, columns):
        out[name + ".weight"], out[name + ".bias"] = [rows, columns], [rows]

    def norm(name):
        out[name + ".weight"], out[name + ".bias"] = [D], [D]

    norm("embeddings.LayerNorm")
    layer = "encoder.layer.0."
    for part in ("query", "key", "value"):
        linear(f"{layer}attention.self.{part}", D, D)
    linear(layer + "attention.output.dense", D, D)
    norm(layer + "attention.output.LayerNorm")
    linear(layer + "intermediate.dense", FFN, D)
    linear(layer + "output.dense", D, FFN)
    norm(layer + "output.LayerNorm")
    if ranks:
        linear("pooler.dense", D, D)
        linear("classifier", 1, D)
    return out


def safetensors(tensors):
    header, data = {}, b""
    for k, (name, shape) in enumerate(tensors.items()):
        n = math.prod(shape)
        numbers = array.array("f", (math.sin((i + 1) * (k + 1) * 0.7) for i in range(n)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * n]}
        data += numbers.tobytes()
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + data


def write(folder, ranks=False):
    folder = Path(folder)
    folder.mkdir()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocab = {n: i for i, n in enumerate(names)}
    for c in "abcdefghijklmnopqrstuvwxyz":
        vocab[c] = len(vocab)
        vocab["##" + c] = len(vocab)
    special = [{"id": i, "content": n, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i, n in enumerate(names)]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": special, "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}, "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 1000, "vocab": vocab}}))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "architectures": ["BertForSequenceClassification" if ranks else "BertModel"], "num_labels": 1, "hidden_size": D,
        "num_hidden_layers": 1, "intermediate_size": FFN, "num_attention_heads": 2, "vocab_size": VOCAB, "max_position_embeddings": POSITIONS}))
    (folder / "model.safetensors").write_bytes(safetensors(shapes(ranks)))
    return str(folder)


if __name__ == "__main__":
    write(sys.argv[1])
