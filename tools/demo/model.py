"""The Qwen3 decoder in plain PyTorch, for training, its first weights, and the names its weights have in a model folder.

The first weights are not noise. Some heads begin as the parts of a copying machine: heads of the first layer that look
one, two and three tokens back, and heads of the second that look for the place where the same tokens stood before and
pass on what came next. All of it is only a beginning; training moves every weight.
"""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

import attention


@dataclass
class Config:
    vocab: int = 1792
    dim: int = 192
    layers: int = 5
    heads: int = 6
    kv_heads: int = 6
    head_dim: int = 32
    ffn: int = 256
    theta: float = 1e7
    eps: float = 1e-6
    max_positions: int = 8192


SIZES = {
    "tiny": Config(),  # 2.2 M, 1.5 M of them in the blocks: an hour or two of one CPU core
    "small": Config(dim=256, layers=6, heads=8, kv_heads=8, ffn=512),  # 4.9 M, 3.9 M of them in the blocks: two hours of two CPU cores, better a night
    "medium": Config(dim=384, layers=8, heads=12, kv_heads=12, ffn=1024),  # 15 M: a GPU
}


def norm(x, weight, eps):
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def rotate(x, cos, sin):
    """Rotary positions; x is batch, length, heads, head_dim, the halves of a head are the pairs."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Block(nn.Module):
    fused = False  # attention by attention.cpp, whose library must be in use

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

    def attend(self, x, cos, sin, mask):
        c, (batch, t, _) = self.c, x.shape
        h = F.linear(norm(x, self.n1, c.eps), self.qkv)
        q, k, v = h.view(batch, t, -1, c.head_dim).split([c.heads, c.kv_heads, c.kv_heads], 2)
        q, k = rotate(norm(q, self.qn, c.eps), cos, sin), rotate(norm(k, self.kn, c.eps), cos, sin)
        if self.fused:
            out, _ = attention.attention(q.float().contiguous(), k.float().contiguous(), v.float().contiguous())
        else:
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            p = torch.softmax((q @ k.mT) * c.head_dim ** -0.5 + mask, -1)
            out = (p @ v).transpose(1, 2)
        return x + F.linear(out.reshape(batch, t, -1), self.o)

    def think(self, x):
        g, u = F.linear(norm(x, self.n2, self.c.eps), self.gu).chunk(2, -1)
        return x + F.linear(F.silu(g) * u, self.down)


class LM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.emb = nn.Parameter(torch.randn(c.vocab, c.dim) * 0.05)
        self.head = nn.Parameter(torch.zeros(c.vocab, c.dim))
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.nf = nn.Parameter(torch.ones(c.dim))
        inv = c.theta ** -(torch.arange(0, c.head_dim, 2).float() / c.head_dim)
        angle = torch.arange(c.max_positions).float()[:, None] * inv
        self.register_buffer("cos", angle.cos()[:, None], persistent=False)
        self.register_buffer("sin", angle.sin()[:, None], persistent=False)
        begin(self)

    def compile(self):
        """Compiles the halves of the blocks, for any batch and length."""
        for b in self.blocks:
            b.attend, b.think = torch.compile(b.attend, dynamic=True), torch.compile(b.think, dynamic=True)

    def hidden(self, ids, at):
        """ids: batch, length; every row is one conversation, padded at its end. -> the last state at the flat positions at."""
        t = ids.shape[1]
        mask = torch.full((t, t), float("-inf"), device=ids.device).triu(1)
        x = F.embedding(ids, self.emb)
        for i, b in enumerate(self.blocks):
            x = b.attend(x, self.cos[:t], self.sin[:t], mask)
            if i == self.c.layers - 1:
                x = x.flatten(0, 1)[at][None]
            x = b.think(x)
        return norm(x[0], self.nf, self.c.eps)

    def logits(self, hidden):
        return F.linear(hidden, self.head)


def rows(n, m):
    """n orthogonal rows of length m."""
    return torch.linalg.qr(torch.randn(m, n))[0].T


@torch.no_grad()
def begin(m, lags=3, copiers=(3, 2), positional=7, size=3, firm=6):
    """The copying machine. Dimensions: what a token is (content), what comes next (next), one that is constant, and what the
    tokens 1, 2, 3 places before are (lag)."""
    c, hd, half = m.c, m.c.head_dim, m.c.head_dim // 2
    e = c.dim // 3
    lag = min(hd, (c.dim - 2 * e - 1) // lags)
    content, after, constant = slice(0, e), slice(e, 2 * e), 2 * e
    spot = [slice(2 * e + 1 + i * lag, 2 * e + 1 + (i + 1) * lag) for i in range(lags)]
    what = torch.randn(c.vocab, e)
    what /= what.norm(dim=1, keepdim=True)
    m.emb.mul_(0.2)
    m.emb[:, content] += what
    m.emb[:, constant] += 0.7
    m.emb.mul_(size)
    m.head.copy_(torch.randn(c.vocab, c.dim) * 0.01)
    m.head[:, after] += what * 0.7
    scale = c.dim ** 0.5 / 1.3  # of a unit of the residual after the norm
    seen = rows(lag, e)
    b = m.blocks[0]
    w = dict(zip("qkv", (x.view(-1, hd, c.dim) for x in b.qkv.split([c.heads * hd, c.kv_heads * hd, c.kv_heads * hd]))))
    out = b.o.view(c.dim, c.heads, hd)
    angle = torch.tensor(c.theta) ** -(torch.arange(0, hd, 2).float() / hd)
    b.qn.fill_(2), b.kn.fill_(2)
    for h in range(lags):  # content-free queries and keys of the fast pairs, the query turned back by h+1 places
        w["q"][h], w["k"][h], w["v"][h] = 0, 0, 0
        for i in range(3):
            w["k"][h, i, constant] = firm / 4
            w["q"][h, i, constant] = torch.cos(-(h + 1) * angle[i]) * firm / 4
            w["q"][h, half + i, constant] = torch.sin(-(h + 1) * angle[i]) * firm / 4
        w["v"][h, :lag, content] = seen * 2 * scale ** -0.5
        out[spot[h], h, :lag] = torch.eye(lag) * scale ** -0.5 * 1.5 * size / 2
    slow = [i for i in range(hd) if i % half >= positional]
    identity = rows(e, e)
    for layer, count in enumerate(copiers, 1):
        b = m.blocks[layer]
        w = dict(zip("qkv", (x.view(-1, hd, c.dim) for x in b.qkv.split([c.heads * hd, c.kv_heads * hd, c.kv_heads * hd]))))
        out = b.o.view(c.dim, c.heads, hd)
        b.qn.fill_(2), b.kn.fill_(2)
        for h in range(count):
            w["q"][h], w["k"][h], w["v"][h] = 0, 0, 0
            for i in range(lags):
                turn = torch.randn(len(slow), lag) * lag ** -0.5 * (1, 0.8, 0.6)[i] * firm
                ahead = turn @ seen if i == 0 else turn / 1.5
                w["q"][h][slow, content if i == 0 else spot[i - 1]] = ahead
                w["k"][h][slow, spot[i]] = turn / 1.5
            part = identity[torch.arange(h * hd, (h + 1) * hd) % e]
            w["v"][h][:, content] = part * 0.6
            out[after, h] = part.T * 0.25 * size


def parameters(model):
    return sum(p.numel() for p in model.parameters())


def folder_weights(m):
    """The weights under the names of Hugging Face's and MLX's qwen3."""
    c = m.c
    q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    out = {"model.embed_tokens.weight": m.emb, "model.norm.weight": m.nf, "lm_head.weight": m.head}
    for i, b in enumerate(m.blocks):
        parts = dict(zip(("q_proj", "k_proj", "v_proj"), b.qkv.split([q, kv, kv])), o_proj=b.o, q_norm=b.qn, k_norm=b.kn)
        mlp = dict(zip(("gate_proj", "up_proj"), b.gu.chunk(2)), down_proj=b.down)
        at = f"model.layers.{i}."
        out |= {at + "input_layernorm.weight": b.n1, at + "post_attention_layernorm.weight": b.n2}
        out |= {at + f"self_attn.{k}.weight": v for k, v in parts.items()} | {at + f"mlp.{k}.weight": v for k, v in mlp.items()}
    return {k: v.detach().float().contiguous() for k, v in out.items()}
