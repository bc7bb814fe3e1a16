"""The halves of a decoder block on the CPU: blocks.cpp, compiled on first use, as operations of PyTorch.

python blocks.py      how far they are from the formulas of model.py, forward and backward
"""
import ctypes
import os
import shutil
import subprocess
import tempfile

import torch

from optim import fast_bf16

HERE = os.path.dirname(os.path.abspath(__file__))


def build(folder):
    """Compiles blocks.cpp for this processor. -> the path of the library in folder, for use; "" where there is no compiler, or no products of bfloat16"""
    if not shutil.which("g++") or not fast_bf16("cpu"):
        return ""
    path = os.path.abspath(os.path.join(folder, "blocks.so"))
    subprocess.run(["g++", "-std=c++17", "-O3", "-march=native", "-ffast-math", "-fno-strict-aliasing", "-shared", "-fPIC", os.path.join(HERE, "blocks.cpp"), "-o", path], check=True)
    return path


def use(path):
    global library
    library = ctypes.CDLL(path)


def call(name, fields, *tensors):
    """fields: of the structure that the function takes, in its order, all of 8 bytes: numbers, tensors, and None for a tensor that is not there"""
    values = [0 if x is None else x if isinstance(x, int) else x.data_ptr() for x in fields]
    getattr(library, name)((ctypes.c_int64 * len(values))(*values), *(ctypes.c_void_p(x.data_ptr()) for x in tensors))


def strips(rows, width):
    """Memory for Strips of tiles.h."""
    return torch.empty((width // 32 * rows + 32) * 32, dtype=torch.bfloat16)


def gradients(*parameters):
    """Where the gradients of parameters are added up; operations here add to them themselves."""
    for p in parameters:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    return [p.grad for p in parameters]


class Attend(torch.autograd.Function):
    @staticmethod
    def fields(b, x, cos, sin, *others):
        """Attend of blocks.cpp"""
        batch, t, dim = x.shape
        return batch, t, b.c.heads, b.guided, dim, x, b.n1, b.qkv, b.qn, b.kn, b.o, cos, sin, *others

    @staticmethod
    def forward(ctx, x, b, cos, sin):
        batch, t, dim = x.shape
        n = b.c.heads * b.c.head_dim
        kept = strips(batch * t, 3 * n), strips(batch * t, n), x.new_empty(batch, b.c.heads, t)
        guided = tuple(x.new_empty(batch, t, b.guided, b.c.head_dim) for _ in range(3)) if b.guided else ()
        y = torch.empty_like(x)
        call("attend_forward", Attend.fields(b, x, cos, sin, *kept, *guided or [None] * 3), y)
        ctx.b = b
        ctx.save_for_backward(x, cos, sin, *kept)
        return y, *guided

    @staticmethod
    def backward(ctx, dy, *guided):
        b, dy = ctx.b, dy.contiguous()
        dx = torch.empty_like(dy)
        guided = [x.contiguous() for x in guided] or [None] * 3
        call("attend_backward", Attend.fields(b, *ctx.saved_tensors, *guided), dy, dx, *gradients(b.n1, b.qkv, b.qn, b.kn, b.o))
        return dx, None, None, None


class Think(torch.autograd.Function):
    @staticmethod
    def fields(b, x, gu):
        """Think of blocks.cpp"""
        return x.numel() // x.shape[-1], x.shape[-1], b.c.ffn, x, b.n2, b.gu, b.down, gu

    @staticmethod
    def forward(ctx, x, b):
        gu, y = strips(x.numel() // x.shape[-1], 2 * b.c.ffn), torch.empty_like(x)
        call("think_forward", Think.fields(b, x, gu), y)
        ctx.b = b
        ctx.save_for_backward(x, gu)
        return y

    @staticmethod
    def backward(ctx, dy):
        b, dy = ctx.b, dy.contiguous()
        dx = torch.empty_like(dy)
        call("think_backward", Think.fields(b, *ctx.saved_tensors), dy, dx, *gradients(b.n2, b.gu, b.down))
        return dx, None


def check(batch, t, heads, guided):
    """The largest difference from the formulas, of what the halves give and of the gradients: its length as a share of theirs."""
    from model import Block, Config
    c = Config(dim=64, heads=heads, kv_heads=heads, ffn=96)
    b, x = Block(c, guided), torch.randn(batch, t, c.dim, requires_grad=True)
    with torch.no_grad():
        for p in b.parameters():
            p.copy_(torch.rand_like(p) + 1 if p.ndim == 1 else torch.randn_like(p) * p.shape[1] ** -0.5)
    angle = torch.arange(t)[:, None] * 0.3 ** torch.arange(16)
    cos, sin = angle.cos(), angle.sin()
    back = [torch.randn_like(x)] + [torch.randn(batch, t, guided, 32) for _ in range(3 if guided else 0)]

    def run(fused):
        for y in (x, *b.parameters()):
            y.grad = None
        Block.fused = fused
        y, *of_guided = b.attend(x, cos[:, None], sin[:, None], torch.full((t, t), float("-inf")).triu(1))
        out = b.think(y), *of_guided
        torch.autograd.backward(out, back)
        return [*out, x.grad, *(p.grad for p in b.parameters())]

    return max(((x - y).norm() / y.norm().clamp(min=1e-3)).item() for x, y in zip(run(True), run(False)))


if __name__ == "__main__":
    import blocks  # the same that model.py uses, which this is not

    with tempfile.TemporaryDirectory() as folder:
        blocks.use(build(folder))
    torch.manual_seed(0)
    worst = 0
    for shape in ((1, 1, 1, 0), (2, 7, 3, 2), (1, 32, 2, 2), (1, 33, 2, 0), (3, 205, 4, 4), (1, 1000, 2, 1)):
        print(shape, off := check(*shape))
        worst = max(worst, off)
    print(f"{worst:.4f} off at most")
    if worst > 0.03:  # bfloat16 has 8 bits; PyTorch's products of it are 0.03 off as well
        raise SystemExit("that is too much")
