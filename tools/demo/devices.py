"""Whether what train.py does on a GPU mixes its memory with the CPU's, on a machine without one: forward, hints, backward,
optimizer and test with tensors that have a shape and a device but no numbers (PyTorch's fake tensors).

python devices.py [SIZE]      ends with an error where devices mix
"""
import contextlib
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import optim
import train
from model import LM, SIZES, Config, parameters

DEVICE = "lazy:0"  # a device that autograd runs without a driver for it; to fake tensors it is as far from the CPU as cuda:0


def pretend():
    """What depends on numbers gets some: the places where something is, and the value of a loss."""
    select = torch.Tensor.__getitem__

    def getitem(self, key):
        if isinstance(key, torch.Tensor) and key.dtype == torch.bool:
            assert key.device in (self.device, torch.device("cpu")), f"{self.device} is selected from by {key.device}"
            key = (torch.zeros(64, dtype=torch.long, device=self.device),) * key.dim()
        return select(self, key)

    torch.Tensor.__getitem__ = getitem
    torch.Tensor.nonzero = lambda self: torch.zeros(128, self.dim(), dtype=torch.long, device=self.device)
    torch.Tensor.item = lambda self: 1.0
    torch.Tensor.__bool__ = lambda self: True


def moved(model):
    """Module.to() does not know how to move fake tensors."""
    for x in model.modules():
        x._parameters.update({k: torch.nn.Parameter(p.detach().to(DEVICE)) for k, p in x._parameters.items()})
        x._buffers.update({k: b.to(DEVICE) for k, b in x._buffers.items()})
    return model


def main(size):
    a = train.arguments(["--size", size])
    stream = train.Stream(a)
    batches = stream.batches(0, dict(pool=0, tokens=int(a.tokens / 2)))
    batches = [next(batches) for _ in range(4)]
    optim.fast_bf16 = lambda device: True
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        fake = mode.from_tensor
        model = moved(LM(Config(**{**vars(SIZES[size]), "vocab": stream.vocab}), {}))
        pretend()
        opt = train.Optimizer(model, *(model.emb.new_zeros(n, parameters(model)) for n in (1, 2)), 0, a.muon_lr, a.adam_lr, a.weight_decay)
        for ids, marks, hints in batches:
            train.learn(model, DEVICE, contextlib.nullcontext(), fake(ids), fake(marks), [h and [fake(x) for x in h] for h in hints])
            opt.step(.5, .01)
            opt.clear()
        assert all(x.device == torch.device(DEVICE) for p in model.parameters() for x in (p, p.grad))
        train.test(model, stream, DEVICE, 4)
    print(f"{size}: {len(batches)} steps and a test on {DEVICE}, no device is mixed with another")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "deep")
