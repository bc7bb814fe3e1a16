"""Averages two states of a model: a checkpoint, and another of the same run or the model folder that its training began with
(--start). Skills that the training had too little time to win back come back, and what it learnt stays (Wortsman et al.,
"Robust fine-tuning of zero-shot models", 2022).

python average.py RUN/final.pt OTHER SHARE OUT.pt      SHARE, from 0 to 1, is the checkpoint's; OUT.pt is for export.py,
                                                       and for train.py --resume where OTHER is a checkpoint, too
"""
import os
import sys

import torch

from model import load_checkpoint, load_folder


def main(checkpoint, other, share, out):
    d, m = load_checkpoint(checkpoint)
    share, new = float(share), d["model"]
    if os.path.isdir(other):
        load_folder(m, other)
        old = m.state_dict()
        del d["optimizer"]  # of other weights
    else:  # near enough for the optimizer's moments to hold
        old = load_checkpoint(other)[0]["model"]
    d["model"] = {k: share * new[k] + (1 - share) * old[k] for k in new}
    torch.save(d, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
