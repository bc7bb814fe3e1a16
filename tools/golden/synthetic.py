"""Weights by formula: the same bits as internal/model/synthetic.go (which states the formula)."""
import numpy as np

MODES = {"mxfp4": (4, 32), "mxfp8": (8, 32), "nvfp4": (4, 16)}  # bits, group


def key(name, seed):
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = (h ^ b) * 0x100000001B3 % 2**64
    return h ^ seed


def draws(name, seed, n):
    with np.errstate(over="ignore"):
        z = np.uint64(key(name, seed)) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def unit(r):
    return ((r >> np.uint64(40)).astype(np.float64) + 0.5) * 2.0**-23 - 1


def rounded(x, dtype):
    """float64 -> float32 -> F32, F16 or BF16, returned as float32."""
    x = x.astype(np.float32)
    if dtype == "F16":
        return x.astype(np.float16).astype(np.float32)
    if dtype == "BF16":
        u = x.view(np.uint32).astype(np.uint64)
        u = (u + 0x7FFF + ((u >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)
        return u.astype(np.uint32).view(np.float32)
    return x


def floats(name, seed, shape, dtype, base, amp):
    return rounded(base + amp * unit(draws(name, seed, int(np.prod(shape)))), dtype).reshape(shape)


def codes_of(path, seed, rows, words):
    return draws(path + ".weight", seed, (rows * words + 1) // 2).view("<u4")[: rows * words].reshape(rows, words)


def small(path, seed, rows, cols, mode):
    """-> uint32 codes, uint8 scales of the modes whose codes are small floats."""
    bits, group = MODES[mode]
    codes = codes_of(path, seed, rows, cols * bits // 32)
    top = 3.0
    if mode == "mxfp8":
        top = 112.0
        codes = codes & np.uint32(0xFEFEFEFE)
    base, low = int(np.frexp(np.sqrt(3 / cols) / top)[1]) - 1 + 127, 1
    if mode == "nvfp4":
        base, low = max(base - 120, 1) * 8, 7
    r = draws(path + ".scales", seed, rows * cols // group)
    return codes, (base + (r & np.uint64(low))).astype(np.uint8).reshape(rows, cols // group)


def affine(path, seed, rows, cols, bits, group, dtype):
    """-> uint32 codes, float32 scales and biases."""
    groups = cols // group
    codes = codes_of(path, seed, rows, cols * bits // 32)
    top = float(2**bits - 1)
    r = draws(path + ".scales", seed, rows * groups)
    amp = np.sqrt(3 / cols)
    v = 2 * amp / top * (1 + 0.25 * unit(r))
    s = rounded(np.where(r & np.uint64(1), -v, v), dtype)
    b = -s.astype(np.float64) * (top / 2) * (1 + 0.125 * unit(draws(path + ".biases", seed, rows * groups)))
    return codes, s.reshape(rows, groups), rounded(b, dtype).reshape(rows, groups)


def scheme(config, path, cols):
    """(mode, bits, group) of a module, or None: the rule of formats and of internal/model."""
    top = config.get("quantization")
    q = top.get(path, top) if top else None
    if not q or path not in top and cols % q["group_size"]:
        return None
    return q.get("mode", "affine"), q["bits"], q["group_size"]


def weights(config, shapes, seed, dtype, rename=lambda name: name):
    """All tensors of a model, as numpy arrays by name; shapes are those of the unquantised model. The formula goes by what
    internal/model calls a tensor: rename says what that is."""
    out = {}
    for name, shape in shapes.items():
        own = rename(name)
        path, _, kind = name.rpartition(".")
        if kind == "bias":
            out[name] = floats(own, seed, shape, dtype, 0, 0.1)
        elif name.endswith(".A_log"):
            out[name] = floats(own, seed, shape, dtype, -2, 2)
        elif name.endswith(("conv1d.weight", "conv.weight")):
            out[name] = floats(own, seed, shape, dtype, 0, np.sqrt(3 / shape[1]))
        elif len(shape) <= 1 or name.endswith((".q_weight", ".k_weight")):
            plus1 = config["model_type"].startswith("gemma") and not config["model_type"].startswith(("gemma4", "gemma3n"))
            plus1 = plus1 or config["model_type"] == "nemotron"
            out[name] = floats(own, seed, shape, dtype, 0 if plus1 else 1, 0.25)
        elif s := scheme(config, path, shape[-1]):
            rows, cols = int(np.prod(shape[:-1])), shape[-1]
            if s[0] == "affine":
                made = affine(own.rpartition(".")[0], seed, rows, cols, *s[1:], dtype)
            else:
                made = small(own.rpartition(".")[0], seed, rows, cols, s[0])
            for suffix, w in zip((".weight", ".scales", ".biases"), made):
                out[path + suffix] = w.reshape(*shape[:-1], -1)
        else:
            out[name] = floats(own, seed, shape, dtype, 0, np.sqrt(3 / shape[-1]))
    return out
