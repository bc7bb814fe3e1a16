"""Causal attention on the CPU: attention.cpp, compiled on first use, as an operation of PyTorch.

python attention.py      how far it is from the formula, forward and backward
"""
import ctypes
import os
import shutil
import subprocess
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def build(folder):
    """Compiles attention.cpp for this processor. -> the path of the library in folder, for use; "" where there is no compiler"""
    if not shutil.which("g++"):
        return ""
    path = os.path.abspath(os.path.join(folder, "attention.so"))
    subprocess.run(["g++", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fno-strict-aliasing", "-shared", "-fPIC", os.path.join(HERE, "attention.cpp"), "-o", path], check=True)
    return path


def use(path):
    global library
    library = ctypes.CDLL(path)


def call(name, batch, t, heads, *tensors):
    getattr(library, name)(*(ctypes.c_long(n) for n in (batch, t, heads)), *(ctypes.c_void_p(x.data_ptr()) for x in tensors))


@torch.library.custom_op("demo::attention", mutates_args=())
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """q, k, v: batch, t, heads, 32 in float32 -> the same of the output, and what its gradient needs."""
    batch, t, heads, _ = q.shape
    out, rest = torch.empty_like(q), q.new_empty(batch, heads, t)
    call("attention_forward", batch, t, heads, q, k, v, out, rest)
    return out, rest


@attention.register_fake
def _(q, k, v):
    return torch.empty_like(q), q.new_empty(q.shape[0], q.shape[2], q.shape[1])


@torch.library.custom_op("demo::attention_gradient", mutates_args=())
def gradient(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, rest: torch.Tensor, dout: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    d = [torch.empty_like(q) for _ in range(3)]
    call("attention_backward", *q.shape[:3], q, k, v, out, rest, dout, *d)
    return tuple(d)


@gradient.register_fake
def _(q, k, v, out, rest, dout):
    return tuple(torch.empty_like(q) for _ in range(3))


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs, *output)


def back(ctx, dout, _):
    return gradient(*ctx.saved_tensors, dout.contiguous())


attention.register_autograd(back, setup_context=keep)


def check(batch, t, heads):
    """The largest difference from the formula, of the output as a share of its largest number and of the gradients of theirs."""
    q, k, v = (torch.randn(batch, t, heads, 32, requires_grad=True) for _ in range(3))
    back = torch.randn(batch, t, heads, 32)
    out, _ = attention(q, k, v)
    mine = out, torch.stack(torch.autograd.grad(out, (q, k, v), back))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * 32 ** -0.5 + torch.full((t, t), float("-inf")).triu(1)
    out = torch.einsum("bhij,bjhd->bihd", torch.softmax(scores, -1), v)
    theirs = out, torch.stack(torch.autograd.grad(out, (q, k, v), back))
    return max(((x - y).abs().max() / y.abs().max()).item() for x, y in zip(mine, theirs))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        use(build(folder))
    worst = max(check(*s) for s in ((1, 1, 1), (2, 7, 3), (1, 32, 2), (1, 33, 2), (3, 205, 4), (1, 1000, 2)))
    print(f"{worst:.4f} off at most")
    if worst > 0.01:  # bfloat16 has 8 bits
        raise SystemExit("that is too much")
