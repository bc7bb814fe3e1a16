"""Makes what the heads of fit (hints.py) see count: they look rightly whether a tool is meant where the words are new, too, but the
training, whose words the rest of the model knows, gives them little say. What they add is solved for by ridge regression on
conversations of the generator: 1 where a reply begins that says that no tool fits, -1 where one begins with a call, 0 everywhere
else; LOUDNESS times that goes to what makes "None" likelier and "<tool_call>" less likely.

python decide.py CHECKPOINT LOUDNESS OUT.pt      OUT.pt is for export.py
"""
import random
import sys

import torch

import mix
import train
from calls import NO_TOOL
from hints import KINDS
from model import PAIR, guided, load_checkpoint, looks

MANY, LONGEST, ELSEWHERE, WEIGHT, RIDGE, SEED = 1300, 350, 6, 0.3, 0.002, 4242  # conversations, their tokens, other places of each and what one counts for


def record(block, first, seen):
    """Puts what a pair of heads from first on gives into seen, whenever the block attends: length, PAIR * head_dim."""
    attend = block.attend

    def recording(x, *others):
        given = attend(x, *others)
        everywhere = torch.arange(x.shape[1])[None]
        seen[:] = looks(*(y[:, :, first:first + PAIR] for y in given[1:]), everywhere, everywhere[..., None] >= 0)[2]
        return given

    block.attend = recording


@torch.no_grad()
def places(model, stream, block, first, says):
    """says: what they should say where a reply begins with a token. -> what the heads give at some places, and what they should say there"""
    r, seen, given, wanted = random.Random(SEED), [], [], []
    record(block, first, seen)
    left = MANY
    while left:
        ids, reply, skills = stream.conversation(mix.conversation(r))
        if len(ids) > LONGEST or not reply[-1]:
            continue
        left -= 1
        model.hidden(torch.tensor([ids]), torch.tensor([0]))
        begins = [i for i in range(1, len(ids)) if reply[i] and reply[i] != reply[i - 1]]
        for i in begins:
            skill = skills[reply[i]]
            given.append(seen[0][i - 1])
            wanted.append(says.get(ids[i], 0.0) if skill in ("call", "calls", "no fit", "no call") else 0.0)
        for i in r.sample(range(len(ids) - 1), min(ELSEWHERE, len(ids) - 1)):
            if i + 1 not in begins:
                given.append(seen[0][i] * WEIGHT ** 0.5)
                wanted.append(0.0)
    return torch.stack(given).double(), torch.tensor(wanted).double()


def main(checkpoint, loudness, out):
    stream = train.Stream(train.arguments(["--size", "deep"]))
    call, none = (stream.tok.encode(x, add_special_tokens=False).ids[0] for x in ("<tool_call>", NO_TOOL))
    d, model = load_checkpoint(checkpoint)
    layer, first = guided(model.c)[KINDS.index("fit")]
    x, y = places(model, stream, model.blocks[layer], first, {none: 1.0, call: -1.0})
    squares = x.T @ x
    squares += torch.eye(len(squares)) * squares.trace() / len(squares) * RIDGE
    says = torch.linalg.solve(squares, x.T @ y)
    towards = d["model"]["nf"] * (d["model"]["head"][none] - d["model"]["head"][call])
    hd = model.c.head_dim
    d["model"][f"blocks.{layer}.o"][:, first * hd:(first + PAIR) * hd] += float(loudness) * torch.outer(towards / towards.norm(), says.float())
    torch.save(d, out)
    said = x @ says
    for name, want in (("no tool fits", 1), ("a call", -1), ("anything else", 0)):
        print(f"{name}: {int((y == want).sum())} places, the middle four fifths between {', '.join(f'{v:.2f}' for v in said[y == want].quantile(torch.tensor([0.1, 0.9]).double()).tolist())}")


if __name__ == "__main__":
    main(*sys.argv[1:])
