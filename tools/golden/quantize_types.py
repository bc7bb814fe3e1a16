"""Holds the quantize command against mlx-lm's converter for one float config of every type that model.py has, to the bit. What is
right belongs into the list of internal/convert/rules.go.

run: python tools/golden/quantize_types.py path/to/hearth [model_type ...]
"""
import contextlib
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.utils import load_model, quantize_model

import model as models
import quantize

GROUP = 32


def compare(hearth, config, dtype, folder):
    """-> what differs, "" if nothing does."""
    src, dst = Path(folder) / "src", Path(folder) / "dst"
    src.mkdir()
    shapes = models.shapes(config)
    tensors = {n: mx.array(quantize.number(k, shapes[n])).astype(models.DTYPES[dtype]) for k, n in enumerate(sorted(shapes))}
    (src / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(src / "model.safetensors"), tensors, {"format": "mlx"})
    done = subprocess.run([hearth, "quantize", str(src), str(dst), "--group-size", str(GROUP)], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    with contextlib.redirect_stdout(io.StringIO()):
        model, made = load_model(src)
        model, made = quantize_model(model, made, GROUP, 4)
    want, got = dict(tree_flatten(model.parameters())), mx.load(str(dst / "model.safetensors"))
    wrong = sorted(set(want) ^ set(got)) + [k for k in want if k in got and (
        want[k].dtype != got[k].dtype or want[k].shape != got[k].shape or not bool(mx.all(want[k] == got[k])))]
    mine = json.loads((dst / "config.json").read_text())["quantization"]
    wrong += [f"config.json: {k}" for k in mine.keys() | made["quantization"].keys() if mine.get(k) != made["quantization"].get(k)]
    return ", ".join(wrong[:6]) + (f" and {len(wrong) - 6} more" if len(wrong) > 6 else "")


def main(hearth, *only):
    seen = {}
    for config, dtype, *_ in models.CASES.values():
        config = {k: v for k, v in (models.BASE | config).items() if k != "quantization"}
        seen.setdefault(config["model_type"], (config, dtype))
    for name, (config, dtype) in sorted(seen.items()):
        if not only or name in only:
            with tempfile.TemporaryDirectory() as d:
                print(name, compare(hearth, config, dtype, d) or "equal", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
