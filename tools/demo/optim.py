"""Muon for the matrices of the blocks, every head by itself, and Adam for the rest."""
import torch


def fast_bf16(device):
    """Whether products of bfloat16 are quicker than those of float32."""
    return device == "cuda" or torch.cpu._is_avx512_bf16_supported()


def orthogonal(x):
    """Newton-Schulz steps towards the nearest orthogonal matrix; x is a stack of wide matrices. bfloat16 is enough for a direction."""
    x = x / (torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True, dtype=torch.float32) + 1e-7).to(x.dtype)
    for _ in range(5):
        a = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(a, a, a, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return x


class Optimizer:
    """Updates a process's part of the parameters, of the gradients of all processes: the work of all parts is about the same.

    grads (processes, parameters) and moments (2, parameters) are memory that all processes share, as the model's parameters
    are; a parameter's grad is a part of its process's row."""

    def __init__(self, model, grads, moments, rank, muon_lr, adam_lr, decay):
        c, all_ = model.c, list(model.parameters())
        self.dtype = torch.bfloat16 if fast_bf16(model.emb.device.type) else torch.float32
        self.muon_lr, self.adam_lr, self.decay, self.t = muon_lr, adam_lr, decay, 0
        self.moments, self.mine = moments, grads[rank]
        hd = c.head_dim
        # views of parameters as stacks of wide matrices: to the stack, and how many rows a matrix has
        heads = (lambda x: x.view(-1, hd, c.dim), hd)
        heads_out = (lambda x: x.view(c.dim, -1, hd).permute(1, 2, 0), hd)
        halves = (lambda x: x.view(2, c.ffn, c.dim).mT, c.dim)
        whole = (lambda x: x[None], c.dim)
        views = {p: f for b in model.blocks for p, f in ((b.qkv, heads), (b.o, heads_out), (b.gu, halves), (b.down, whole))}
        work = lambda p: p.numel() * (views[p][1] if p in views else 8)
        at, places = 0, {}
        for p in all_:
            places[p], at = slice(at, at + p.numel()), at + p.numel()
            p.grad = self.mine[places[p]].view_as(p)
        load = [0] * len(grads)
        self.muon, self.adam = [], []  # of a parameter: itself, its gradients, its moments, its view
        for p in sorted(all_, key=work, reverse=True):  # each to who has the least to do
            who = load.index(min(load))
            load[who] += work(p)
            if who == rank:
                (self.muon if p in views else self.adam).append((p, [g[places[p]].view_as(p) for g in grads], [m[places[p]].view_as(p) for m in moments], *views.get(p, ())))

    def state(self):
        return dict(t=self.t, moments=self.moments)

    def load(self, s):
        self.t = s["t"]
        self.moments.copy_(s["moments"])

    @torch.no_grad()
    def step(self, rate, scale):
        """rate: share of the learning rates; scale: what the gradients are multiplied by. All gradients must be there."""
        self.t += 1
        mom = min(0.95, 0.85 + 0.1 * self.t / 300)
        stacks, lr = {}, self.muon_lr * rate
        for p, grads, (m, _), view, _ in self.muon:
            g = sum(grads[1:], grads[0]) * scale
            m.lerp_(g, 1 - mom)
            x = view(g.lerp_(m, mom)).to(self.dtype)
            stacks.setdefault(tuple(x.shape[1:]), []).append((view(p), x))
        for same in stacks.values():
            done = orthogonal(torch.cat([x for _, x in same]))
            for (w, x), u in zip(same, done.split([len(x) for _, x in same])):
                w.mul_(1 - lr * self.decay).sub_(u, alpha=lr)
        for p, grads, (m, v) in self.adam:
            g = sum(grads[1:], grads[0]) * scale
            m.lerp_(g, 0.1)
            v.lerp_(g.square_(), 0.02)
            u = (m / (1 - 0.9 ** self.t)) / ((v / (1 - 0.98 ** self.t)).sqrt() + 1e-10)
            p.add_(u, alpha=-self.adam_lr * rate * (1 if p.ndim == 2 else 0.5))

    def clear(self):
        self.mine.zero_()
