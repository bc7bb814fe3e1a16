"""The Qwen3 decoder in plain PyTorch, for training, its first weights, and the names its weights have in a model folder.

The first weights are not noise. Some heads begin as the parts of a copying machine: heads of the first layer that look
one, two and three tokens back, and heads of the second that look for the place where the same tokens stood before and
pass on what came next. Others are guided: their values begin as a chain from the beginning of a tool's line to a call,
and hints.py tells them where to look and what to pass on. All of it is only a beginning; training moves every weight.
"""
import json
import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file

import blocks


@dataclass
class Config:
    vocab: int = 5760
    dim: int = 192
    layers: int = 5
    heads: int = 6
    kv_heads: int = 6
    head_dim: int = 32
    ffn: int = 256
    theta: float = 1e7
    eps: float = 1e-6
    max_positions: int = 8192
    guided: tuple = ()  # the layers with heads that hints.py guides: home, match, and choose and copy; fit is in the layer before these


SIZES = {
    "tiny": Config(),  # 3.7 M, 1.5 M of them in the blocks: an hour or two of one CPU core
    "small": Config(dim=256, layers=6, heads=8, kv_heads=8, ffn=512),  # 6.9 M, 3.9 M of them in the blocks: two hours of two CPU cores, better a night
    "deep": Config(dim=256, layers=9, heads=8, kv_heads=8, ffn=512, guided=(3, 5, 7)),  # 8.9 M, 5.9 M of them in the blocks
    "medium": Config(dim=384, layers=8, heads=12, kv_heads=12, ffn=1024, guided=(2, 4, 6)),  # 19 M: a GPU, and 6 bits for 16 MB
}


def norm(x, weight, eps):
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def rotate(x, cos, sin):
    """Rotary positions; x is batch, length, heads, head_dim, the halves of a head are the pairs."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Block(nn.Module):
    fused = False  # by blocks.cpp, whose library must be in use; heads are of 32, and there are as many of keys and values

    def __init__(self, c, guided=0):
        """guided: of how many heads attend() gives queries, keys and values beside its output"""
        super().__init__()
        self.c, self.guided = c, guided
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
        if self.fused:
            return blocks.Attend.apply(x, self, cos[:, 0], sin[:, 0])
        q, k, v = F.linear(norm(x, self.n1, c.eps), self.qkv).view(batch, t, -1, c.head_dim).split([c.heads, c.kv_heads, c.kv_heads], 2)
        q, k = rotate(norm(q, self.qn, c.eps), cos, sin), rotate(norm(k, self.kn, c.eps), cos, sin)
        guided = tuple(y[:, :, :self.guided].float() for y in (q, k, v)) if self.guided else ()
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        p = torch.softmax((q @ k.mT) * c.head_dim ** -0.5 + mask, -1)
        out = (p @ v).transpose(1, 2).reshape(batch, t, -1)
        return x + F.linear(out, self.o), *guided

    def think(self, x):
        if self.fused:
            return blocks.Think.apply(x, self)
        g, u = F.linear(norm(x, self.n2, self.c.eps), self.gu).chunk(2, -1)
        return x + F.linear(F.silu(g) * u, self.down)


class LM(nn.Module):
    def __init__(self, c, spelling=None):
        """spelling: the text of every token, for the first weights"""
        super().__init__()
        self.c = c
        self.emb = nn.Parameter(torch.randn(c.vocab, c.dim) * 0.05)
        self.head = nn.Parameter(torch.zeros(c.vocab, c.dim))
        self.blocks = nn.ModuleList(Block(c, PAIR * [g[0] for g in guided(c)].count(i)) for i in range(c.layers))
        self.nf = nn.Parameter(torch.ones(c.dim))
        inv = c.theta ** -(torch.arange(0, c.head_dim, 2).float() / c.head_dim)
        angle = torch.arange(c.max_positions).float()[:, None] * inv
        self.register_buffer("cos", angle.cos()[:, None], persistent=False)
        self.register_buffer("sin", angle.sin()[:, None], persistent=False)
        begin(self, spelling)
        if c.guided:
            guide(self)

    def compile(self):
        """Compiles the halves of the blocks, for any batch and length."""
        for b in self.blocks:
            b.attend, b.think = torch.compile(b.attend, dynamic=True), torch.compile(b.think, dynamic=True)

    def hidden(self, ids, at, hints=None):
        """ids: batch, length; every row is one conversation, padded at its end. -> the last state at the flat positions at; with
        hints also what guidance() gives for each kind, or None for a kind that has none."""
        t = ids.shape[1]
        mask = None if Block.fused else torch.full((t, t), float("-inf"), device=ids.device).triu(1)
        x, found = F.embedding(ids, self.emb), []
        for i, b in enumerate(self.blocks):
            x, *qkv = b.attend(x, self.cos[:t], self.sin[:t], mask)
            if hints:
                for layer, first in guided(self.c):
                    if layer == i:
                        hint = hints[len(found)]
                        found.append(hint and self.guidance(b, x, first, qkv, *hint))
            if i == self.c.layers - 1:
                x = x.flatten(0, 1)[at][None]
            x = b.think(x)
        x = norm(x[0], self.nf, self.c.eps)
        return (x, found) if hints else x

    def guidance(self, block, x, first, qkv, rows, targets, tokens):
        """How far a block's pair of heads from first on is from its hints. x: batch, length, dim, what attend() gave, and qkv beside
        it; rows, targets: see looks(); tokens: like rows, what the pair by itself should say there, were the block the last one, -1
        for anything. -> a loss, the share of the attention that looks where it should, and of the tokens that are said, or None"""
        looking, share, passed = looks(*(y[:, :, first:first + PAIR] for y in qkv), rows, targets)
        some = (tokens.flatten() >= 0).nonzero()[:, 0]
        if not len(some):
            return looking, share, None
        want, hd = tokens.flatten()[some], self.c.head_dim
        out = F.linear(passed.flatten(0, 1)[some], block.o[:, first * hd:(first + PAIR) * hd])
        with torch.no_grad():  # as loud as it is among the rest
            at = rows + torch.arange(len(rows), device=rows.device)[:, None] * x.shape[1]
            rms = x.flatten(0, 1)[at.flatten()[some]].float().pow(2).mean(-1, keepdim=True).sqrt()
        # what tokens mean is for others to say
        said = F.linear(out / rms * self.nf.detach(), self.head.detach()).float()
        return looking + PASSED * F.cross_entropy(said, want), share, (said.argmax(-1) == want).float().mean().item()

    def logits(self, hidden):
        return F.linear(hidden, self.head)


PAIR = 2  # heads of a kind
PASSED = 0.5  # weight of what they pass on beside where they look


def guided(c):
    """The layer and the first head of every kind in hints.KINDS."""
    return [(c.guided[0], 0), (c.guided[1], 0), (c.guided[2] - 1, 0), (c.guided[2], 0), (c.guided[2], PAIR)] if c.guided else []


def looks(q, k, v, rows, targets):
    """q, k, v: batch, length, heads, head_dim; rows: batch, n, the places that look, -1 for none; targets: batch, n, length, where
    they should. -> the mean of -log of the attention that goes there, of that attention, and what the heads give: batch, n, heads * head_dim"""
    at = rows.clamp(min=0)
    some = torch.gather(q, 1, at[..., None, None].expand(-1, -1, *q.shape[2:]))
    scores = torch.einsum("bnhd,bthd->bhnt", some, k) * q.shape[-1] ** -0.5
    scores = scores.masked_fill((torch.arange(k.shape[1], device=k.device) > at[..., None])[:, None], float("-inf"))
    p = torch.log_softmax(scores, -1)
    there = p.masked_fill(~targets[:, None], float("-inf")).logsumexp(-1)
    there = there[(rows >= 0)[:, None].expand_as(there)]
    return -there.mean(), there.detach().exp().mean().item(), torch.einsum("bhnt,bthd->bnhd", p.exp(), v).flatten(2)


def rows(n, m):
    """n orthogonal rows of length m."""
    return torch.linalg.qr(torch.randn(m, n))[0].T


def unit(x):
    return x / (x.norm(dim=1, keepdim=True) + 1e-9)


def letters(spelling, size, most=10):
    """For every text the sum of what its letters are at their places, whatever their case; none for what has others."""
    at = unit(torch.randn(most * 26, size)).view(most, 26, size)
    out = torch.zeros(len(spelling), size)
    for row, text in zip(out, spelling):
        text = text.strip().lower()
        if text.isascii() and text.isalpha():
            for i, x in enumerate(text[:most]):
                row += at[i, ord(x) - 97]
    return out


@torch.no_grad()
def begin(m, spelling=None, lags=3, copiers=(3, 2), positional=7, size=3, firm=6):
    """The copying machine. Dimensions: what a token is (content), what comes next (next), one that is constant, and what the
    tokens 1, 2, 3 places before are (lag). Two fifths of what a token is are its letters, so that who learns to spell some
    tokens can spell all."""
    c, hd, half = m.c, m.c.head_dim, m.c.head_dim // 2
    e = c.dim // 3
    lag = min(hd, (c.dim - 2 * e - 1) // lags)
    content, after, constant = slice(0, e), slice(e, 2 * e), 2 * e
    spot = [slice(2 * e + 1 + i * lag, 2 * e + 1 + (i + 1) * lag) for i in range(lags)]
    what = unit(torch.randn(c.vocab, e))
    if spelling:
        what = unit(what * 0.6 ** 0.5 + unit(letters(spelling, e)) * 0.4 ** 0.5)
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


@torch.no_grad()
def guide(m, residual=0.45):
    """The values of the guided heads: the token at the beginning of a tool's line (home) goes to the line's words, from these to
    the same words in a request (match), from those to where the reply names the tool (choose), and is said there. Likewise
    whatever is copied (copy). residual is what a number of the residual is after begin(): with far less, what is passed on is
    lost among the rest; with far more, the copying machine is, until its heads look where they should."""
    c, hd, n = m.c, m.c.head_dim, PAIR * m.c.head_dim
    e = c.dim // 3
    content, after = torch.zeros(n, c.dim), torch.zeros(n, c.dim)
    content[:, :e] = rows(n, e)
    after[:, e:2 * e] = content[:, :e]
    lent = rows(2 * n, c.dim).split(n)
    chain = [(x, y * residual) for x, y in ((content * 1.2, lent[0] * 1.5), (lent[0], lent[1] * 1.5), (lent[1], after * 0.7), (content, after * 0.5))]
    home, match, _, *others = guided(c)
    for (layer, first), (value, out) in zip((home, match, *others), chain):
        b = m.blocks[layer]
        b.qkv.view(3, c.heads, hd, c.dim)[2, first:first + PAIR] = (value / b.n1).view(PAIR, hd, c.dim)
        b.o.view(c.dim, c.heads, hd)[:, first:first + PAIR] = out.T.view(c.dim, PAIR, hd)


def load_checkpoint(path):
    """-> what train.py saved, and its model"""
    d = torch.load(path, map_location="cpu")
    m = LM(Config(**d["config"]))
    m.load_state_dict(d["model"])
    return d, m


def parameters(model):
    return sum(p.numel() for p in model.parameters())


def folder_weights(m):
    """The weights, not copied, under the names of Hugging Face's and MLX's qwen3."""
    c = m.c
    q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    out = {"model.embed_tokens.weight": m.emb, "model.norm.weight": m.nf, "lm_head.weight": m.head}
    for i, b in enumerate(m.blocks):
        parts = dict(zip(("q_proj", "k_proj", "v_proj"), b.qkv.split([q, kv, kv])), o_proj=b.o, q_norm=b.qn, k_norm=b.kn)
        mlp = dict(zip(("gate_proj", "up_proj"), b.gu.chunk(2)), down_proj=b.down)
        at = f"model.layers.{i}."
        out |= {at + "input_layernorm.weight": b.n1, at + "post_attention_layernorm.weight": b.n2}
        out |= {at + f"self_attn.{k}.weight": v for k, v in parts.items()} | {at + f"mlp.{k}.weight": v for k, v in mlp.items()}
    return {k: v.detach() for k, v in out.items()}


def dequantise(packed, scales, biases, bits):
    """Rows of MLX's affine quantisation with 4 or 8 bits, as float32."""
    q = packed.view(torch.uint8)[..., None].int() >> torch.arange(0, 8, bits) & 2 ** bits - 1
    g = q.float().view(scales.shape + (-1,)) * scales.float()[..., None] + biases.float()[..., None]
    return g.flatten(1)


@torch.no_grad()
def load_folder(m, folder):
    """Takes the weights of a model folder of export.py, of as many layers."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    if config["num_hidden_layers"] != m.c.layers:
        raise SystemExit(f"{folder} has {config['num_hidden_layers']} layers, not {m.c.layers}")
    stored = load_file(os.path.join(folder, "model.safetensors"))
    for name, w in folder_weights(m).items():
        base, new = name.removesuffix("weight"), stored[name]
        if base + "scales" in stored:
            new = dequantise(new, stored[base + "scales"], stored[base + "biases"], config["quantization"]["bits"])
        w.copy_(new)
