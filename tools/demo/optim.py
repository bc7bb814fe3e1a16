"""Muon for the matrices of the blocks, every head by itself, and Adam for the rest."""
import torch


def fast_bf16(device):
    """Whether products of bfloat16 are quicker than those of float32."""
    return device == "cuda" or torch.cpu._is_avx512_bf16_supported()


def orthogonal(x):
    """Newton-Schulz steps towards the nearest orthogonal matrix; x is a stack of wide matrices. bfloat16 is enough for a direction."""
    x = x / (x.norm(dim=(1, 2), keepdim=True, dtype=torch.float32) + 1e-7).to(x.dtype)
    for _ in range(5):
        a = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(a, a, a, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return x


class Optimizer:
    def __init__(self, model, muon_lr, adam_lr, decay):
        c = model.c
        self.dtype = torch.bfloat16 if fast_bf16(model.emb.device.type) else torch.float32
        self.muon_lr, self.adam_lr, self.decay, self.t = muon_lr, adam_lr, decay, 0
        hd = c.head_dim
        # views of parameters as stacks of wide matrices: (parameter, to the stack, back from it)
        heads = lambda x: x.view(-1, hd, c.dim)
        heads_out = lambda x: x.view(c.dim, -1, hd).permute(1, 2, 0)
        halves = lambda x: x.view(2, c.ffn, c.dim).mT
        whole = lambda x: x[None]
        self.parts = [(p, f) for b in model.blocks for p, f in ((b.qkv, heads), (b.o, heads_out), (b.gu, halves), (b.down, whole))]
        self.rest = [p for p in model.parameters() if not any(p is q for q, _ in self.parts)]
        self.momentum = [torch.zeros_like(p) for p, _ in self.parts]
        self.first = [torch.zeros_like(p) for p in self.rest]
        self.second = [torch.zeros_like(p) for p in self.rest]

    def state(self):
        return dict(t=self.t, momentum=self.momentum, first=self.first, second=self.second)

    def load(self, s):
        self.t, self.momentum, self.first, self.second = s["t"], s["momentum"], s["first"], s["second"]

    @torch.no_grad()
    def step(self, scale):
        self.t += 1
        mom = min(0.95, 0.85 + 0.1 * self.t / 300)
        stacks = {}
        for i, (p, view) in enumerate(self.parts):
            self.momentum[i].lerp_(p.grad, 1 - mom)
            x = view(p.grad.lerp(self.momentum[i], mom))
            stacks.setdefault(tuple(x.shape[1:]), []).append((view(p), x))
        lr = self.muon_lr * scale
        for same in stacks.values():
            done = orthogonal(torch.cat([x.to(self.dtype) for _, x in same]))
            for (w, x), u in zip(same, done.split([len(x) for _, x in same])):
                w.mul_(1 - lr * self.decay).sub_(u, alpha=lr)
        for p, m, v in zip(self.rest, self.first, self.second):
            m.lerp_(p.grad, 0.1)
            v.lerp_(p.grad.square(), 0.02)
            u = (m / (1 - 0.9 ** self.t)) / ((v / (1 - 0.98 ** self.t)).sqrt() + 1e-10)
            p.add_(u, alpha=-self.adam_lr * scale * (1 if p.ndim == 2 else 0.5))
        for p in [p for p, _ in self.parts] + self.rest:
            p.grad = None
