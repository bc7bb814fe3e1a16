"""The model types that mlx-lm has: the files with a Model and ModelArgs, and the types it maps to them.

run: python tools/golden/model_types.py internal/model/testdata/types.json
"""
import re
import sys
from pathlib import Path

import mlx_lm
from mlx_lm.utils import MODEL_REMAPPING

import pins


def main(out):
    files = sorted((Path(mlx_lm.__file__).parent / "models").glob("*.py"))
    types = [f.stem for f in files if re.search(r"^class ModelArgs\b", f.read_text(), re.M)]
    pins.write(out, {"made": pins.made(__file__), "types": types, "remapped": dict(sorted(MODEL_REMAPPING.items()))})


if __name__ == "__main__":
    main(sys.argv[1])
