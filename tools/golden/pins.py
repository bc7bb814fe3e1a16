"""The versions goldens are made with. A golden from another version is another golden: change the pins on purpose."""
import base64
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

PINS = {"mlx": "0.32.4", "mlx-lm": "0.32.2"}


def made(script, pins=PINS):
    """The header of every golden; exits when an installed version is not the pinned one."""
    for name, want in pins.items():
        if version(name).split("+")[0] != want:  # what follows + says for which machine it was built
            sys.exit(f"{name} {version(name)} is installed, goldens are made with {want}: refusing")
    return {"script": "tools/golden/" + Path(script).name, **pins}


def f32(a):
    """float32, little-endian, base64: exact and short."""
    return base64.b64encode(np.ascontiguousarray(a, dtype="<f4").tobytes()).decode()


def write(path, golden):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(golden, indent=1) + "\n"
    text = re.sub(r"\[[\d,\s]+\]", lambda m: re.sub(r"\s+", " ", m[0]), text)  # lists of numbers on one line
    path.write_text(text)
    print(path, path.stat().st_size, "bytes")
