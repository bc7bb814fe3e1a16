"""Causal attention on the CPU: attention.cpp, compiled on first use, as an operation of PyTorch.

python attention.py      how far it is from the formula, forward and backward
"""
import ctypes
import os
import shutil
import subprocess
import tempfile

import torch
import torch.nn.functional as F

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
def attention(qkv: torch.Tensor, qn: torch.Tensor, kn: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """qkv: batch, t, 3 * heads * 32 in bfloat16; qn, kn: the norms' 32 weights; cos, sin: t, 16, of the angles of the places.
    -> the output, batch, t, heads * 32 in bfloat16, and what its gradient needs"""
    batch, t, n = qkv.shape
    out, rest = qkv.new_empty(batch, t, n // 3), qn.new_empty(batch, n // 96, t)
    call("attention_forward", batch, t, n // 96, qkv, qn, kn, cos, sin, out, rest)
    return out, rest


@attention.register_fake
def _(qkv, qn, kn, cos, sin):
    batch, t, n = qkv.shape
    return qkv.new_empty(batch, t, n // 3), qn.new_empty(batch, n // 96, t)


@torch.library.custom_op("demo::attention_gradient", mutates_args=())
def gradient(qkv: torch.Tensor, qn: torch.Tensor, kn: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, out: torch.Tensor, rest: torch.Tensor, dout: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    d = torch.empty_like(qkv), torch.zeros_like(qn), torch.zeros_like(kn)
    call("attention_backward", *qkv.shape[:2], qkv.shape[2] // 96, qkv, qn, kn, cos, sin, out, rest, dout, *d)
    return d


@gradient.register_fake
def _(qkv, qn, kn, cos, sin, out, rest, dout):
    return torch.empty_like(qkv), torch.empty_like(qn), torch.empty_like(kn)


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs, *output)


def back(ctx, dout, _):
    return *gradient(*ctx.saved_tensors, dout.contiguous()), None, None


attention.register_autograd(back, setup_context=keep)


def check(batch, t, heads):
    """The largest difference from the formula, of the output as a share of its largest number and of the gradients of theirs."""
    qkv = torch.randn(batch, t, 96 * heads).bfloat16().float().requires_grad_()
    qn, kn = (torch.rand(32).add(1).requires_grad_() for _ in range(2))
    angle = torch.arange(t)[:, None] * 0.3 ** torch.arange(16)
    cos, sin, back = angle.cos(), angle.sin(), torch.randn(batch, t, heads * 32).bfloat16().float()
    out, _ = attention(qkv.bfloat16(), qn, kn, cos, sin)
    mine = out, *torch.autograd.grad(out, (qkv, qn, kn), back.bfloat16())
    q, k, v = qkv.view(batch, t, 3, heads, 32).unbind(2)
    turned = lambda x: x * cos.repeat(1, 2)[:, None] + torch.cat((-x[..., 16:], x[..., :16]), -1) * sin.repeat(1, 2)[:, None]
    q, k = (turned(F.rms_norm(x, (32,), n, 1e-6)) for x, n in ((q, qn), (k, kn)))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * 32 ** -0.5 + torch.full((t, t), float("-inf")).triu(1)
    out = torch.einsum("bhij,bjhd->bihd", torch.softmax(scores, -1), v).flatten(2)
    theirs = out, *torch.autograd.grad(out, (qkv, qn, kn), back)
    return max(((x - y).abs().max() / y.abs().max().clamp(min=1e-3)).item() for x, y in zip(mine, theirs))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        use(build(folder))
    torch.manual_seed(0)  # or a gradient that nearly cancels out is 1 % off now and then
    worst = 0
    for shape in ((1, 1, 1), (2, 7, 3), (1, 32, 2), (1, 33, 2), (3, 205, 4), (1, 1000, 2)):
        print(shape, off := check(*shape))
        worst = max(worst, off)
    print(f"{worst:.4f} off at most")
    if worst > 0.01:  # bfloat16 has 8 bits
        raise SystemExit("that is too much")
