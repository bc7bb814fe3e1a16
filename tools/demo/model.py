"""The Qwen3 decoder in plain PyTorch, for training, and the names its weights have in a model folder."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 1408
    dim: int = 192
    layers: int = 6
    heads: int = 6
    kv_heads: int = 3
    head_dim: int = 32
    ffn: int = 512
    theta: float = 10000.0
    eps: float = 1e-6
    max_positions: int = 8192


SIZES = {
    "tiny": Config(dim=128, layers=6, heads=4, kv_heads=2, ffn=384),  # 1.4 M: an hour or less of two CPU cores
    "small": Config(),  # 2.7 M: some hours of two CPU cores
    "medium": Config(dim=256, heads=8, kv_heads=4, ffn=704),  # 4.8 M
    "large": Config(dim=384, layers=8, heads=12, kv_heads=6, ffn=1024),  # 13 M: a GPU
}


def norm(x, weight, eps):
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def rotate(x, cos, sin):
    """Rotary positions; x is batch, length, heads, head_dim, the halves of a head are the pairs."""
    a, b = x.chunk(2, -1)
    cos, sin = cos[None, :, None], sin[None, :, None]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def attend(q, k, v, mask):
    """q: batch, heads, T, d; k and v: batch, groups, S, d; mask: batch, 1, 1, T, S, added."""
    batch, heads, t, d = q.shape
    groups, s = k.shape[1], k.shape[2]
    p = (q.reshape(batch, groups, -1, d) @ k.mT).view(batch, groups, heads // groups, t, s) * d ** -0.5 + mask
    return (torch.softmax(p, -1).view(batch, groups, -1, s) @ v).view(batch, heads, t, d)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
        self.n1, self.n2 = nn.Parameter(torch.ones(c.dim)), nn.Parameter(torch.ones(c.dim))
        self.qn, self.kn = nn.Parameter(torch.ones(c.head_dim)), nn.Parameter(torch.ones(c.head_dim))
        self.qkv = nn.Parameter(torch.randn(q + 2 * kv, c.dim) * c.dim ** -0.5)
        # blocks begin by adding nothing, or they would drown the embeddings
        self.o = nn.Parameter(torch.zeros(c.dim, q))
        self.gu = nn.Parameter(torch.randn(2 * c.ffn, c.dim) * c.dim ** -0.5)
        self.down = nn.Parameter(torch.zeros(c.dim, c.ffn))

    def before(self, x, cos, sin):
        c, (batch, t, _) = self.c, x.shape
        h = F.linear(norm(x, self.n1, c.eps), self.qkv)
        q, k, v = h.view(batch, t, -1, c.head_dim).split([c.heads, c.kv_heads, c.kv_heads], 2)
        q, k = rotate(norm(q, self.qn, c.eps), cos, sin), rotate(norm(k, self.kn, c.eps), cos, sin)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def after(self, x, a):
        x = x + F.linear(a, self.o)
        g, u = F.linear(norm(x, self.n2, self.c.eps), self.gu).chunk(2, -1)
        return x + F.linear(F.silu(g) * u, self.down)

    def forward(self, x, cos, sin, mask):
        batch, t, _ = x.shape
        q, k, v = self.before(x, cos, sin)
        if x.is_cuda:
            r = self.c.heads // self.c.kv_heads
            a = F.scaled_dot_product_attention(q, k.repeat_interleave(r, 1), v.repeat_interleave(r, 1), mask[:, :, 0])
        else:  # blocks of queries that leave out the keys after them: half the work of the library's kernel
            a = torch.cat([attend(q[:, :, i:i + 128], k[:, :, :i + 128], v[:, :, :i + 128], mask[:, :, :, i:i + 128, :i + 128]) for i in range(0, t, 128)], 2)
        return self.after(x, a.transpose(1, 2).reshape(batch, t, -1))


class LM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.emb = nn.Parameter(torch.randn(c.vocab, c.dim) * 0.05)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.nf = nn.Parameter(torch.ones(c.dim))
        inv = c.theta ** -(torch.arange(0, c.head_dim, 2).float() / c.head_dim)
        angle = torch.arange(c.max_positions).float()[:, None] * inv
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def compile(self):
        """Compiles the parts around attention."""
        for b in self.blocks:
            b.before, b.after = torch.compile(b.before), torch.compile(b.after)

    def hidden(self, ids, documents):
        """ids and documents: batch, length; a token sees those before it in its own document."""
        t = ids.shape[1]
        see = (documents[:, :, None] == documents[:, None, :]).tril()
        x = F.embedding(ids, self.emb)
        mask = torch.zeros(see.shape, device=ids.device, dtype=x.dtype).masked_fill_(~see, float("-inf"))[:, None, None]
        for b in self.blocks:
            x = b(x, self.cos[:t], self.sin[:t], mask)
        return norm(x, self.nf, self.c.eps)

    def logits(self, hidden):
        return F.linear(hidden, self.emb)


def parameters(model):
    return sum(p.numel() for p in model.parameters())


def folder_weights(m):
    """The weights under the names of Hugging Face's and MLX's qwen3."""
    c = m.c
    q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    out = {"model.embed_tokens.weight": m.emb, "model.norm.weight": m.nf}
    for i, b in enumerate(m.blocks):
        parts = dict(zip(("q_proj", "k_proj", "v_proj"), b.qkv.split([q, kv, kv])), o_proj=b.o, q_norm=b.qn, k_norm=b.kn)
        mlp = dict(zip(("gate_proj", "up_proj"), b.gu.chunk(2)), down_proj=b.down)
        at = f"model.layers.{i}."
        out |= {at + "input_layernorm.weight": b.n1, at + "post_attention_layernorm.weight": b.n2}
        out |= {at + f"self_attn.{k}.weight": v for k, v in parts.items()} | {at + f"mlp.{k}.weight": v for k, v in mlp.items()}
    return {k: v.detach().float().contiguous() for k, v in out.items()}
