"""Muon for the matrices of the blocks, Adam for the rest. The work on the matrices is shared between the processes."""
import torch
import torch.distributed as dist


def orthogonal(x):
    """Newton-Schulz steps towards the nearest orthogonal matrix; x is a stack of wide matrices."""
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return x


class Optimizer:
    def __init__(self, model, muon_lr, adam_lr, decay, rank, world):
        c = model.c
        q, kv, f = c.heads * c.head_dim, c.kv_heads * c.head_dim, c.ffn
        self.muon_lr, self.adam_lr, self.decay, self.rank, self.world, self.t = muon_lr, adam_lr, decay, rank, world, 0
        self.parts, self.rest = [], [model.emb, model.nf]  # fused matrices are treated part by part: (parameter, first row, last)
        for b in model.blocks:
            self.parts += [(b.qkv, 0, q), (b.qkv, q, q + kv), (b.qkv, q + kv, q + 2 * kv), (b.o, 0, c.dim), (b.gu, 0, f), (b.gu, f, 2 * f), (b.down, 0, c.dim)]
            self.rest += [b.n1, b.n2, b.qn, b.kn]
        self.all = list(model.parameters())
        self.momentum = [torch.zeros_like(p[i:j]) for p, i, j in self.parts]
        self.first = [torch.zeros_like(p) for p in self.rest]
        self.second = [torch.zeros_like(p) for p in self.rest]

    def state(self):
        return dict(t=self.t, momentum=self.momentum, first=self.first, second=self.second)

    def load(self, s):
        self.t, self.momentum, self.first, self.second = s["t"], s["momentum"], s["first"], s["second"]

    def sum_gradients(self):
        if self.world > 1:
            flat = torch.cat([p.grad.flatten() for p in self.all])
            dist.all_reduce(flat)
            for p, g in zip(self.all, flat.split([p.numel() for p in self.all])):
                p.grad.copy_(g.view_as(p))

    @torch.no_grad()
    def step(self, scale):
        self.t += 1
        self.sum_gradients()
        mom = min(0.95, 0.85 + 0.1 * self.t / 200)
        shapes = {}
        for i, (p, a, b) in enumerate(self.parts):
            g = p.grad[a:b]
            self.momentum[i].lerp_(g, 1 - mom)
            shapes.setdefault(tuple(sorted(g.shape)), []).append(i)
        update = [torch.zeros_like(m) for m in self.momentum]
        for same in shapes.values():
            mine = same[self.rank::self.world]
            if not mine:
                continue
            grads = [self.parts[i][0].grad[self.parts[i][1]:self.parts[i][2]].lerp(self.momentum[i], mom) for i in mine]
            tall = [g.shape[0] > g.shape[1] for g in grads]
            done = orthogonal(torch.stack([g.T if t else g for g, t in zip(grads, tall)]))
            for i, x, t in zip(mine, done, tall):
                update[i].copy_(x.T if t else x)
        if self.world > 1:
            flat = torch.cat([u.flatten() for u in update])
            dist.all_reduce(flat)
            update = [u.view_as(m) for u, m in zip(flat.split([m.numel() for m in self.momentum]), self.momentum)]
        lr = self.muon_lr * scale
        for (p, a, b), u in zip(self.parts, update):
            p[a:b].mul_(1 - lr * self.decay).add_(u, alpha=-lr * max(1, (b - a) / p.shape[1]) ** 0.5)
        for p, m, v in zip(self.rest, self.first, self.second):
            m.lerp_(p.grad, 0.1)
            v.lerp_(p.grad.square(), 0.02)
            u = (m / (1 - 0.9 ** self.t)) / ((v / (1 - 0.98 ** self.t)).sqrt() + 1e-10)
            p.add_(u, alpha=-self.adam_lr * scale * (1 if p.ndim == 2 else 0.5))
        for p in self.all:
            p.grad = None
