"""What mlx-lm makes of tokens, with weights dequantised first and multiplied by numpy: the same sums at a multiple of the speed that MLX has on a CPU."""

import hashlib
import pathlib
import pickle

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_map_with_path
from mlx_lm.utils import load_model

mx.set_default_device(mx.cpu)


class Linear(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self._w = np.ascontiguousarray(np.array(weight.astype(mx.float32)).T)

    def __call__(self, x):
        y = np.array(x.astype(mx.float32)).reshape(-1, len(self._w)) @ self._w
        return mx.array(y.reshape(*x.shape[:-1], -1)).astype(x.dtype)


class Embedding(Linear):
    """Of tokens, and the head."""

    def __init__(self, weight, dtype):
        super().__init__(weight)
        self._dtype, self._factor = dtype, np.float32(1)

    def __call__(self, ids):
        return mx.array(self._factor * self._w[:, np.array(ids)].transpose(1, 2, 0)).astype(self._dtype)

    def as_linear(self, x):
        y = super().__call__(x.astype(mx.float32))
        self._unrounded = y
        return y.astype(x.dtype)


class Norm(nn.Module):
    """Keeps its float32 weights where activations are bfloat16."""

    def __init__(self, inner):
        super().__init__()
        inner.set_dtype(mx.float32)
        self._inner = inner

    def __call__(self, x):
        return self._inner(x.astype(mx.float32)).astype(x.dtype)


def weight_of(m):
    if "scales" in m:
        return mx.dequantize(m.weight, m.scales.astype(mx.float32), m.biases.astype(mx.float32), m.group_size, m.bits)
    return m.weight


class Model:
    """The model of a folder with activations of a type. No weight is rounded to it, so that the activations alone cost what it costs."""

    def __init__(self, folder, dtype):
        self._model, _ = load_model(pathlib.Path(folder))

        def replaced(_, m):
            if isinstance(m, (nn.QuantizedEmbedding, nn.Embedding)):
                return Embedding(weight_of(m), dtype)
            if isinstance(m, (nn.QuantizedLinear, nn.Linear)):
                return Linear(weight_of(m))
            return Norm(m) if "weight" in m else m

        self._model.update_modules(tree_map_with_path(replaced, self._model.leaf_modules(), is_leaf=nn.Module.is_module))
        self._head = self._model.model.embed_tokens
        if dtype == mx.float32 and self._model.model_type == "gemma3_text":
            # mlx-lm rounds what Gemma's embeddings are multiplied with to bfloat16 in any type, transformers to the type of the weights
            exact = len(self._head._w) ** 0.5
            self._head._factor = np.float32(exact / mx.array(exact, mx.bfloat16).item())

    def logits(self, tokens):
        """-> logits of every position as mlx-lm has them, and before they were rounded to the type of the activations"""
        y = self._model(mx.array([tokens]))[0]
        mx.eval(y)
        return np.array(y.astype(mx.float32)), np.array(self._head._unrounded[0])


def logprobs(logits, ids):
    """Logprobs of some tokens of every position; MLX's own sums of exponentials are off by 1e-4 over a vocabulary."""
    top = logits.max(-1, keepdims=True)
    total = np.exp(logits - top).sum(-1, keepdims=True, dtype=np.float64)
    return np.take_along_axis(logits, ids, -1) - top - np.log(total)


def run(folder, dtype, sequences):
    """-> of every sequence, as mlx-lm has it and with unrounded logits: logprobs of the tokens it comes with, and the likeliest ones

    What was computed is kept beside the folder, for it is most of the work and nothing of hearth's changes it.
    """
    weights = hashlib.sha256((folder / "model.safetensors").read_bytes()).digest()
    asked = hashlib.sha256(pickle.dumps((weights, dtype, [(s, ids.tolist()) for s, ids in sequences]))).hexdigest()
    kept = folder.parent / f"{folder.name}.{asked[:16]}.pickle"
    if not kept.exists():
        model = Model(folder, getattr(mx, dtype))
        answer = [[(logprobs(y, ids), y.argmax(-1)) for y in model.logits(s)] for s, ids in sequences]
        kept.write_bytes(pickle.dumps(answer))
    return pickle.loads(kept.read_bytes())
