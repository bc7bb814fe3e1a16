"""Trains the demo model on the endless stream of mix.py.

python train.py --out RUN [--steps N] [--size small] [--procs 2] [--resume RUN/last.pt]

What a step sees depends on the seed, the step and the process alone, and the schedule on the step alone, so a resumed
run is the run that was not interrupted. Rows are packed with whole conversations that do not see each other. Only
what the assistant says is learnt. The first steps are pure repetition of random tokens.
"""
import argparse
import collections
import json
import os
import random
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from tokenizers import Tokenizer

import mix
from model import LM, SIZES, Config, parameters
from optim import Optimizer

HERE = os.path.dirname(os.path.abspath(__file__))
ROW, LONG_ROW, LONG_EVERY = 640, 2048, 24
WARMUP = 40


def arguments():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--size", default="small", choices=SIZES)
    ap.add_argument("--steps", type=int, default=4000)
    ap.add_argument("--decay", type=float, default=0.4, help="share of the steps in which the rate falls")
    ap.add_argument("--opening", type=int, default=150, help="steps of pure repetition")
    ap.add_argument("--tokens", type=int, default=4096, help="tokens a step and process")
    ap.add_argument("--procs", type=int, default=2 if not torch.cuda.is_available() else 1)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--muon-lr", type=float, default=0.02)
    ap.add_argument("--adam-lr", type=float, default=0.004)
    ap.add_argument("--weight-decay", type=float, default=0.05)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--save-every", type=int, default=100)
    ap.add_argument("--test-every", type=int, default=250)
    ap.add_argument("--resume", default="")
    ap.add_argument("--stop", type=int, default=10**9, help="stop at this step and save; the schedule stays that of --steps")
    return ap.parse_args()


class Encoder:
    def __init__(self):
        self.tok = Tokenizer.from_file(os.path.join(HERE, "tokenizer.json"))
        self.vocab = self.tok.get_vocab_size()

    def conversation(self, c):
        """-> ids, and for each the number of the reply it is part of, 0 for none; the skills of the replies."""
        ids, reply, skills = [], [], [None]
        for text, skill in mix.segments(c):
            e = self.tok.encode(text, add_special_tokens=False).ids
            if skill:
                skills.append(skill)
            ids += e
            reply += [len(skills) - 1 if skill else 0] * len(e)
        return ids, reply, skills

    def repetition(self, r):
        """Random tokens, said two to four times."""
        pool = range(256) if r.random() < .3 else range(self.vocab - 64) if r.random() < .6 else r.sample(range(self.vocab - 64), 40)
        n, times = r.randint(3, 40), r.choice([2, 3, 4])
        one = [r.choice(pool) for _ in range(n)]
        return one * times, [0] * n + [1] * n * (times - 1), [None, "repetition"]

    def rows(self, r, count, length, opening):
        """count rows of length+1 tokens, packed with conversations: ids, documents, reply marks."""
        room, rows = [length + 1] * count, [[] for _ in range(count)]
        made, total = [], 0
        while total < count * (length + 1):
            d = self.repetition(r) if opening else self.conversation(mix.conversation(r))
            if len(d[0]) <= length + 1:
                made.append(d)
                total += len(d[0])
        for d in sorted(made, key=lambda d: -len(d[0])):
            i = max(range(count), key=room.__getitem__)
            if len(d[0]) <= room[i]:
                room[i] -= len(d[0])
                rows[i].append(d)
        ids, docs, marks = (torch.zeros(count, length + 1, dtype=torch.long) for _ in range(3))
        for i, row in enumerate(rows):
            at = 0
            for n, (x, reply, _) in enumerate(row, 1):
                ids[i, at:at + len(x)] = torch.tensor(x)
                docs[i, at:at + len(x)] = n
                marks[i, at:at + len(x)] = torch.tensor(reply)
                at += len(x)
        return ids, docs, marks


def loss(model, ids, docs, marks):
    """Summed loss over what the assistant says, and how many tokens that is."""
    at = (marks[:, 1:] > 0).flatten().nonzero()[:, 0]
    h = model.hidden(ids[:, :-1], docs[:, :-1]).flatten(0, 1)[at]
    return F.cross_entropy(model.logits(h).float(), ids[:, 1:].flatten()[at], reduction="sum"), len(at)


@torch.no_grad()
def test(model, enc, device, count=160, seed=7_000_000):
    """Replies that are right to the last token when all before is given, by skill: new conversations of the same stream."""
    r, right = random.Random(seed), collections.defaultdict(list)
    for _ in range(count):
        ids, reply, skills = enc.conversation(mix.conversation(r))
        if len(ids) > 1024:
            continue
        x = torch.tensor([ids[:-1]], device=device)
        best = model.logits(model.hidden(x, torch.ones_like(x)))[0].argmax(-1).tolist()
        ok = [True] * len(skills)
        for b, t, n in zip(best, ids[1:], reply[1:]):
            if b != t:
                ok[n] = False
        for n, s in enumerate(skills[1:], 1):
            right[s].append(ok[n])
    return {s: (sum(v), len(v)) for s, v in sorted(right.items())}


def rate(step, a):
    falling = (a.steps - step) / (a.decay * a.steps)
    return min(1.0, (step + 1) / WARMUP) * max(0.02, min(1.0, falling))


def train(rank, a):
    torch.set_num_threads(a.threads)
    if a.procs > 1:
        dist.init_process_group("gloo", init_method="file://" + a.meeting, rank=rank, world_size=a.procs)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(a.seed)
    enc = Encoder()
    config = Config(**{**vars(SIZES[a.size]), "vocab": enc.vocab})
    model = LM(config).to(device)
    opt = Optimizer(model, a.muon_lr, a.adam_lr, a.weight_decay, rank, a.procs)
    step, tokens, learnt, seconds = 0, 0, 0, 0.0
    if a.resume:
        ck = torch.load(a.resume, map_location=device)
        model.load_state_dict(ck["model"])
        opt.load(ck["optimizer"])
        step, tokens, learnt, seconds = ck["step"], ck["tokens"], ck["learnt"], ck["seconds"]
    model.compile()
    mixed = torch.autocast("cuda", torch.bfloat16, enabled=device == "cuda")
    log = open(os.path.join(a.out, "log.jsonl"), "a", encoding="utf-8") if rank == 0 else None

    def note(**fields):
        if log:
            print(json.dumps(fields), file=log, flush=True)

    def save(name):
        if rank == 0:
            path = os.path.join(a.out, name)
            torch.save(dict(model=model.state_dict(), config=vars(config), optimizer=opt.state(), step=step, tokens=tokens, learnt=learnt, seconds=seconds, arguments=vars(a)), path + ".new")
            os.replace(path + ".new", path)

    note(parameters=parameters(model), device=device, arguments=vars(a), start=step)
    began, sums = time.time(), torch.zeros(3, dtype=torch.float64)
    while step < min(a.steps, a.stop):
        r = random.Random(f"{a.seed} {step} {rank}")
        length = LONG_ROW if step % LONG_EVERY == LONG_EVERY - 1 and step > a.steps // 3 else ROW
        ids, docs, marks = (x.to(device) for x in enc.rows(r, max(1, a.tokens // length), length, step < a.opening))
        n = torch.tensor([float((marks[:, 1:] > 0).sum())])
        if a.procs > 1:
            dist.all_reduce(n)
        with mixed:
            total, _ = loss(model, ids, docs, marks)
        (total / n.item()).backward()
        opt.step(rate(step, a))
        step += 1
        used = a.tokens * a.procs
        tokens, learnt = tokens + used, learnt + int(n)
        sums += torch.tensor([total.item() * a.procs, n.item(), used], dtype=torch.float64)
        if step % 20 == 0:
            now = time.time()
            seconds += now - began
            note(step=step, loss=round((sums[0] / sums[1]).item(), 4), learnt_share=round((sums[1] / sums[2]).item(), 3), tokens=tokens, rate=round(rate(step - 1, a), 3), tokens_per_second=round(sums[2].item() / (now - began)), hours=round(seconds / 3600, 3))
            began, sums = now, torch.zeros(3, dtype=torch.float64)
        if step % a.save_every == 0:
            save("last.pt")
        if step % a.test_every == 0 and rank == 0:
            by_skill = test(model, enc, device)
            note(step=step, right={s: f"{x}/{n}" for s, (x, n) in by_skill.items()}, all=round(sum(x for x, _ in by_skill.values()) / sum(n for _, n in by_skill.values()), 4))
    save("last.pt" if step < a.steps else "final.pt")


if __name__ == "__main__":
    args = arguments()
    os.makedirs(args.out, exist_ok=True)
    if args.procs > 1:
        args.meeting = os.path.join(tempfile.mkdtemp(), "meeting")
        mp.spawn(train, (args,), nprocs=args.procs)
    else:
        train(0, args)
