"""Trains the demo model on the endless stream of mix.py.

python train.py --out RUN [--tokens N] [--size tiny] [--resume RUN/last.pt | --start FOLDER --seen N]
python train.py --test RUN/final.pt        what it has learnt: new conversations of the same stream

Every row of a batch is one conversation, and a batch has conversations of nearly one length, so nothing is wasted on
padding or on masks. Only what the assistant says is learnt, and, by guided heads, where to look and what to pass on
(hints.py). The conversations get longer as training goes on; the first ones are mixed with pure repetition of random
tokens. What a step sees depends on the seed, the number of the batch, --processes and --tokens alone; --until makes
the rate fall so that it ends at a time of the clock.
"""
import argparse
import collections
import json
import os
import random
import time

os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8192")  # every shape of a product has code of its own
# for the processes of --processes: freed memory is kept, and in huge pages; steps took 1.2 times as long without
for _key, _value in dict(GLIBC_TUNABLES="glibc.malloc.hugetlb=1", MALLOC_MMAP_THRESHOLD_=2 ** 30, MALLOC_TRIM_THRESHOLD_=2 ** 33).items():
    os.environ.setdefault(_key, str(_value))

import torch
import torch._dynamo
import torch.distributed as dist
import torch.multiprocessing
import torch.nn.functional as F
from tokenizers import Tokenizer

import blocks
import mix
from hints import KINDS, Hints
from model import LM, Block, SIZES, Config, load_checkpoint, load_folder, parameters
from optim import Optimizer, fast_bf16
from progress import progress

HERE = os.path.dirname(os.path.abspath(__file__))
WARMUP = 30
GUIDANCE = 0.3  # weight of the hints beside the loss of a token
POOL = 24  # micro-batches made at once
COPIED = {"call", "calls", "answer", "no call", "no fit", "recall", "repeat"}  # skills of replies in which one word is as good as another
KEPT = mix.w.JOINING | set("arguments string integer number boolean array object true false null none tools tool hearth demo".split())
RENAMED = .5
LONGEST = [(0.0, 144), (0.1, 192), (0.2, 288), (0.4, 448), (0.65, 768), (0.85, 1536), (0.95, 7680)]  # share of the training, tokens of a conversation


def arguments(given=None):
    """given: instead of those of the command line"""
    ap = argparse.ArgumentParser()
    ap.add_argument("--out")
    ap.add_argument("--test", default="", help="a checkpoint to test instead of training")
    ap.add_argument("--size", default="tiny", choices=SIZES)
    ap.add_argument("--tokens", type=float, default=20e6)
    ap.add_argument("--decay", type=float, default=0.45, help="share of the training in which the rate falls")
    ap.add_argument("--micro", type=int, default=2048, help="tokens of a micro-batch")
    ap.add_argument("--batch", type=int, default=2, help="micro-batches of a step, of all processes together")
    ap.add_argument("--until", default="", help="HH:MM at which the rate must have fallen to nothing")
    ap.add_argument("--processes", type=int, default=1, help="each with micro-batches of its own: with matrices as small as these, twice as quick on two cores, where two threads gain a fifth")
    ap.add_argument("--threads", type=int, default=1, help="of each process")
    ap.add_argument("--muon-lr", type=float, default=0.01)
    ap.add_argument("--adam-lr", type=float, default=0.0024)
    ap.add_argument("--weight-decay", type=float, default=0.05)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--save-every", type=int, default=250)
    ap.add_argument("--test-every", type=int, default=500)
    ap.add_argument("--resume", default="")
    ap.add_argument("--start", default="", help="a model folder to begin with")
    ap.add_argument("--seen", type=float, default=0, help="tokens of --tokens that --start counts for")
    return ap.parse_args(given)


class Random(random.Random):
    """random.Random with a faster choice: a third of the time a conversation takes."""

    def choice(self, seq):
        return seq[int(self.random() * len(seq))]


class Stream:
    """Micro-batches: ids and reply marks, both batch, length+1; the mark is the number of the reply a token is part of, 0 for none."""

    def __init__(self, a):
        self.tok = Tokenizer.from_file(os.path.join(HERE, "tokenizer.json"))
        self.vocab, self.a = self.tok.get_vocab_size(), a
        self.hints = Hints(self.tok)
        self.start = self.tok.token_to_id("<|im_start|>")
        # of the tokens of words, with or without a blank before, the tokens of their letters
        vocab = self.tok.get_vocab(with_added_tokens=False)
        self.letters = {i: [vocab[x] for x in t] for t, i in vocab.items() if len(t) > 2 and t.lstrip("Ġ").isalpha()}
        self.pieces = lambda t: [vocab[t]] if t in vocab else [vocab[x] for x in t]
        self.words = {i: t for t, i in vocab.items() if t.isascii() and len(t.lstrip("Ġ")) > 1 and t.lstrip("Ġ").isalpha()}

    def lower(self, x):
        return self.words.get(x, "").lstrip("Ġ").lower()

    def conversation(self, c):
        ids, reply, skills = [], [], [None]
        for text, skill in mix.segments(c):
            e = self.tok.encode(text, add_special_tokens=False).ids
            if skill == "lower":  # what is said in capitals is letters: so is the reply, or it would have to know which token they make
                heard = {self.lower(x) for x in ids}
                e = [y for x in e for y in (self.letters[x] if x in self.letters and self.lower(x) not in heard else [x])]
            if skill:
                skills.append(skill)
            ids += e
            reply += [len(skills) - 1 if skill else 0] * len(e)
        end = max((i for i, m in enumerate(reply) if m), default=0) + 1
        return ids[:end], reply[:end], skills

    def dropout(self, r, ids, reply, skills):
        """BPE dropout (Provilkov et al., 2020) for words without merges: some of the words that are said to the model letter by
        letter, so that it learns the letters of a token where its reply takes such a word over."""
        out, marks = [], []
        for i, (x, m) in enumerate(zip(ids, reply)):
            word = self.letters.get(x)
            if m or not word or ids[i - 1] == self.start or r.random() > .25:
                word = [x]
            out += word
            marks += [m] * len(word)
        return out, marks, skills

    def renamed(self, r, ids, reply, skills):
        """Some of the words that a reply takes over have another in their stead, wherever they are: most tokens of words are rare in
        what the templates say, and one that was rarely copied is mistaken for another."""
        if not COPIED.issuperset(skills[1:]):
            return ids, reply, skills
        said, heard = ({self.lower(x) for x, m in zip(ids, reply) if x in self.words and bool(m) == learnt} for learnt in (True, False))
        some = sorted(x for x in said & heard - KEPT if len(x) > 2)
        instead = {x: r.choice(mix.w.CALLED) for x in r.sample(some, min(len(some), r.choice([1, 1, 2, 3])))}
        if not instead or said.union(heard).intersection(instead.values()):
            return ids, reply, skills
        out, marks = [], []
        for x, m in zip(ids, reply):
            new = [x]
            if x in self.words and self.lower(x) in instead:
                old, word = self.words[x].lstrip("Ġ"), instead[self.lower(x)]
                new = self.pieces("Ġ" * self.words[x].startswith("Ġ") + (word if old.islower() else word.upper() if old.isupper() else word.capitalize()))
            out += new
            marks += [m] * len(new)
        return out, marks, skills

    def repetition(self, r):
        """Random tokens said twice or more, often with others in between."""
        pool = range(256) if r.random() < .3 else range(self.vocab - 64) if r.random() < .6 else r.sample(range(self.vocab - 64), 40)
        n, times = r.choice([r.randint(3, 12), r.randint(3, 50)]), r.choice([2, 2, 3])
        some = lambda k: [r.choice(pool) for _ in range(k)]
        one, ids, reply = some(n), [], []
        for i in range(times):
            between = some(r.choice([0, 0, r.randint(1, 8), r.randint(1, 30)]))
            ids += between + one
            reply += [0] * (len(between) + (1 if i else n)) + [1] * (n - 1 if i else 0)
        return ids, reply, [None, "repetition"]

    def pool(self, number, seen):
        """Makes pool number, when seen tokens were seen: gives after every conversation the share of the work that is done, and then
        what it has made, for batch() to make micro-batches of."""
        r = Random(f"{self.a.seed} {number}")
        share = seen / self.a.tokens
        longest = [n for s, n in LONGEST if share >= s][-1]
        made, total = [], 0
        while total < POOL * self.a.micro:
            x = r.random()
            if x < (.3 if share < .005 else .12 if share < .1 else .04 if share < .5 else .03):
                d = self.repetition(r)
            elif share >= LONGEST[-1][0] and x > .985:
                d = self.conversation(mix.long(r))
            elif r.random() > 1.5 * share:
                d = mix.lesson(r, longest, self.conversation)
            else:
                d = self.conversation(mix.conversation(r))
                if len(d[0]) > longest:
                    continue
            if d[1][-1] and r.random() < RENAMED:
                d = self.renamed(r, *d)
            if d[1][-1] and r.random() < .12:
                d = self.dropout(r, *d)
            if d[1][-1] and len(d[0]) <= SIZES[self.a.size].max_positions:
                made.append(d)
                total += len(d[0])
            yield total / (POOL * self.a.micro)
        made.sort(key=lambda d: len(d[0]))
        batches = []
        while made:
            n = rounded(len(made[-1][0]), 16)
            count = max(1, self.a.micro // n)
            batches.append((n, count, made[-count:]))
            made = made[:-count]
        r.shuffle(batches)
        yield batches

    def begin(self, number, seen):
        self.making, self.share, self.made = self.pool(number, seen), 0, None

    def more(self):
        """Makes one more conversation of the next pool. -> whether it was not finished"""
        if self.made is not None:
            return False
        x = next(self.making)
        if isinstance(x, list):
            self.made = x
        else:
            self.share = x
        return True

    def batches(self, rank, s):
        """Micro-batches without end, s being the state of the training. The next pool is made a part at a time between those of
        this one: a process that made it at once would keep the others waiting."""
        number = lambda pool: pool * self.a.processes + rank
        self.begin(number(s["pool"]), s["tokens"])
        while True:
            while self.made is None:
                self.more()
            batches = self.made
            self.begin(number(s["pool"] + 1), s["tokens"])
            for i, b in enumerate(batches):
                while self.made is None and self.share < (i + 1) / len(batches):
                    self.more()
                yield self.batch(*b)
            s["pool"] += 1

    def batch(self, length, count, some):
        """count rows of length tokens: those of some conversations, and blanks. And for every kind of hints where to look, as
        LM.guidance() takes it; nothing where no head is guided."""
        ids, marks = torch.zeros(count, length, dtype=torch.long), torch.zeros(count, length, dtype=torch.long)
        for i, (x, m, _) in enumerate(some):
            ids[i, :len(x)], marks[i, :len(x)] = torch.tensor(x), torch.tensor(m)
        if not SIZES[self.a.size].guided:
            return ids, marks, []
        found, hints = [self.hints(x) for x, _, _ in some], []
        for kind in zip(*found):
            n = max(map(len, kind))
            rows, tokens, targets = torch.full((count, n), -1), torch.full((count, n), -1), torch.zeros(count, n, length, dtype=torch.bool)
            for i, of_row in enumerate(kind):
                for j, (place, there, token) in enumerate(of_row):
                    rows[i, j] = place
                    tokens[i, j] = -1 if token is None else token
                    targets[i, j, there] = True
            targets[..., 0] |= rows < 0  # anything, it does not count
            hints.append((rows, targets, tokens) if n else None)
        return ids, marks, hints


def rounded(n, by):
    return (n + by - 1) // by * by


def loss(model, ids, marks, hints):
    """Summed loss over what the assistant says, how many tokens that is, and what LM.guidance() gives for the hints."""
    target = torch.where(marks > 0, ids, -1).roll(-1, 1)
    target[:, -1] = -1
    at = (target.flatten() >= 0).nonzero()[:, 0]
    some = F.pad(at, (0, rounded(len(at), 64) - len(at)))
    h, looks = model.hidden(ids, some, hints) if hints else (model.hidden(ids, some), [])
    target = F.pad(target.flatten()[at], (0, len(some) - len(at)), value=-1)
    return F.cross_entropy(model.logits(h).float(), target, ignore_index=-1, reduction="sum"), len(at), looks


def learn(model, device, mixed, ids, marks, hints):
    """Adds a micro-batch's part to the gradients. -> as loss(), the loss as a number"""
    with mixed:
        total, count, looks = loss(model, ids.to(device), marks.to(device), [h and [x.to(device) for x in h] for h in hints])
    ((total + GUIDANCE * count * sum(l[0] for l in looks if l)) / 1000).backward()
    return total.item(), count, looks


@torch.no_grad()
def test(model, stream, device, count=100, seed=7_000_000):
    """Replies that are right to the last token when all before is given, by skill: new conversations of the same stream."""
    r, right, lost = random.Random(seed), collections.defaultdict(list), collections.defaultdict(list)
    while count:
        ids, reply, skills = stream.conversation(mix.conversation(r))
        if len(ids) > 600 or not reply[-1]:
            continue
        count -= 1
        at = torch.tensor([i for i, m in enumerate(reply[1:]) if m])
        x = torch.tensor([ids], device=device)
        lg = model.logits(model.hidden(x[:, :-1], at))
        l = F.cross_entropy(lg, x[0, 1:][at], reduction="none")
        ok = (lg.argmax(-1) == x[0, 1:][at])
        for n, s in enumerate(skills[1:], 1):
            mine = torch.tensor(reply[1:])[at] == n
            right[s].append(bool(ok[mine].all()))
            lost[s].append(l[mine].mean().item())
    return {s: (sum(v), len(v), round(sum(lost[s]) / len(v), 2)) for s, v in sorted(right.items())}


def rate(done, step, a, now):
    """The learning rate as a share, given the share of the tokens that is done."""
    left = (1 - done) / a.decay
    if a.until:
        left = (a.end - now) / (a.decay * (a.end - a.begin))
    return min(1.0, (step + 1) / WARMUP) * max(0.0, min(1.0, left))


def together(a, meanwhile, *numbers):
    """Adds up some numbers of all processes; whoever has them knows that all have come this far. Who is early calls meanwhile until it has nothing to do."""
    if a.processes == 1:
        return numbers
    flat = torch.tensor(numbers, dtype=torch.float64)
    work = dist.all_reduce(flat, async_op=True)
    while not work.is_completed() and meanwhile():
        pass
    work.wait()
    return flat.tolist()


def train(rank, a, model, grads, moments):
    """One process's part. All share the model and what the optimizer needs; the first writes the log and the checkpoints."""
    torch.set_num_threads(a.threads)
    if a.blocks:
        blocks.use(a.blocks)
        Block.fused = True
    device = grads.device.type
    if a.processes > 1:
        dist.init_process_group("gloo", init_method="file://" + os.path.abspath(os.path.join(a.out, "meeting")), rank=rank, world_size=a.processes)
    stream = Stream(a)
    opt = Optimizer(model, grads, moments, rank, a.muon_lr, a.adam_lr, a.weight_decay)
    s = dict(step=0, pool=0, tokens=int(a.seen), learnt=0, seconds=0.0, begin=time.time())
    if a.resume:
        ck = torch.load(a.resume, map_location=device)
        opt.load(ck["optimizer"])
        s = ck["state"]
    if a.until:
        a.begin = s["begin"]
        a.end = time.mktime(time.strptime(time.strftime("%Y-%m-%d ") + a.until, "%Y-%m-%d %H:%M"))
        if a.end < time.time():  # tomorrow
            a.end += 24 * 3600
    if not a.blocks:
        torch._dynamo.config.recompile_limit = 64  # with 8, half of the kinds of blocks and batches were not compiled in the end
        model.compile()
    mixed = torch.autocast(device, torch.bfloat16, enabled=fast_bf16(device))
    log = open(os.path.join(a.out, "log.jsonl"), "a", encoding="utf-8") if rank == 0 else None

    def note(**fields):
        print(json.dumps(fields), file=log, flush=True)

    def save(name):
        path = os.path.join(a.out, name)
        # who goes on from here begins a pool: what is left of this one is not seen
        torch.save(dict(model=model.state_dict(), config=vars(model.c), optimizer=opt.state(), state=dict(s, pool=s["pool"] + 1), step=s["step"], tokens=s["tokens"], arguments=vars(a)), path + ".new")
        os.replace(path + ".new", path)

    if rank == 0:
        note(parameters=parameters(model), device=device, arguments=vars(a), **s)
    began, sums, source, lr = time.time(), [0, 0, 0], stream.batches(rank, s), 1
    looked, said = ({k: [] for k in KINDS} for _ in range(2))
    mean = lambda x: {k: round(sum(v) / len(v), 3) for k, v in x.items() if v}
    while lr > 0.002 or s["tokens"] < .05 * a.tokens:
        done = s["tokens"] / a.tokens
        if done >= 1 and not a.until:
            break
        mine = [0, 0, 0]  # loss, tokens to learn, tokens
        for _ in range(max(1, (1 if done < .15 else a.batch) // a.processes)):
            batch = next(source)
            total, count, looks = learn(model, device, mixed, *batch)
            for kind, l in zip(KINDS, looks):
                if l and rank == 0:
                    looked[kind].append(l[1])
                    if l[2] is not None:
                        said[kind].append(l[2])
            mine = [x + y for x, y in zip(mine, (total, count, batch[0].numel()))]
        # the clock of one decides
        lr, *all_ = together(a, stream.more, rate(done, s["step"], a, time.time()) if rank == 0 else 0, *mine)
        opt.step(lr, 1000 / all_[1])
        together(a, stream.more, 0)
        opt.clear()
        s["step"], s["tokens"], s["learnt"] = s["step"] + 1, s["tokens"] + int(all_[2]), s["learnt"] + int(all_[1])
        sums = [x + y for x, y in zip(sums, all_)]
        if rank:
            continue
        if s["step"] % 50 == 0:
            now = time.time()
            s["seconds"] += now - began
            speed = sums[2] / (now - began)
            progress(s["tokens"] / a.tokens, f"loss {sums[0] / sums[1]:.3f}, {speed:,.0f} tokens/s, {max(0, a.tokens - s['tokens']) / speed / 60:.0f} min to go")
            note(step=s["step"], loss=round(sums[0] / sums[1], 4), learnt=round(sums[1] / sums[2], 3), tokens=s["tokens"], rate=round(lr, 3), tokens_per_second=round(speed), hours=round(s["seconds"] / 3600, 3), looks=mean(looked), says=mean(said))
            began, sums = now, [0, 0, 0]
            for x in (*looked.values(), *said.values()):
                x.clear()
        if s["step"] % a.save_every == 0:
            save("last.pt")
        if s["step"] % a.test_every == 0:
            t = test(model, stream, device)
            note(step=s["step"], right={k: f"{x}/{y} {z}" for k, (x, y, z) in t.items()}, all=round(sum(x for x, _, _ in t.values()) / sum(y for _, y, _ in t.values()), 4))
    if rank == 0:
        save("final.pt")


def launch(a):
    os.makedirs(a.out, exist_ok=True)
    gpu = torch.cuda.is_available() and a.processes == 1
    a.blocks = "" if gpu else blocks.build(a.out)
    torch.manual_seed(a.seed)
    stream = Stream(a)
    model = LM(Config(**{**vars(SIZES[a.size]), "vocab": stream.vocab}), stream.hints.piece).to("cuda" if gpu else "cpu")
    if a.resume:
        model.load_state_dict(torch.load(a.resume, map_location="cpu")["model"])
    elif a.start:
        load_folder(model, a.start)
    grads, moments = (model.emb.new_zeros(n, parameters(model)) for n in (a.processes, 2))
    if a.processes == 1:
        return train(0, a, model, grads, moments)
    meeting = os.path.join(a.out, "meeting")
    if os.path.exists(meeting):  # of a run that ended in the middle
        os.remove(meeting)
    torch.multiprocessing.spawn(train, (a, model.share_memory(), grads.share_memory_(), moments.share_memory_()), a.processes)


GROUPS = {"instructions": "repeat upper lower letter count bank json sentence nth reading", "letters": "reverse spell sort", "two calls": "calls", "no call": "no call|no fit", "sums": "sum+ sum-", "products": "sum*"}


def report(a):
    """Shares of the replies that are right, by the skills of evaluate.py."""
    torch.set_num_threads(a.threads)
    _, model = load_checkpoint(a.test)
    group = {s: g for g, names in GROUPS.items() for s in (names.split("|") if "|" in names else names.split(" "))}
    out = {}
    for s, (right, count, _) in test(model, Stream(a), "cpu", 500, 8_000_000).items():
        x = out.setdefault(group.get(s, s), [0, 0])
        x[0], x[1] = x[0] + right, x[1] + count
    out["all"] = [sum(v[i] for v in out.values()) for i in (0, 1)]
    for s, (right, count) in out.items():
        print(f"{s}: {right}/{count} {100 * right / count:.1f}")


if __name__ == "__main__":
    args = arguments()
    if args.test:
        report(args)
    else:
        launch(args)
