"""Averages a checkpoint with the model folder that its training began with (--start): skills that the training had too little
time to win back come back, and what it learnt stays (Wortsman et al., "Robust fine-tuning of zero-shot models", 2022).

python average.py RUN/final.pt FOLDER SHARE OUT.pt      SHARE, from 0 to 1, is the checkpoint's; OUT.pt is for export.py
"""
import sys

import torch

from model import load_checkpoint, load_folder


def main(checkpoint, folder, share, out):
    d, m = load_checkpoint(checkpoint)
    share, new = float(share), d["model"]
    load_folder(m, folder)
    old = m.state_dict()
    d["model"] = {k: share * new[k] + (1 - share) * old[k] for k in new}
    del d["optimizer"]  # of other weights
    torch.save(d, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
