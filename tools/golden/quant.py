"""mx.quantize and mx.dequantize on a few awkward rows, for every width, group and float type.

run: python tools/golden/quant.py internal/quant/testdata/affine.json
"""
import base64
import hashlib
import sys

import mlx.core as mx
import numpy as np

import pins
import synthetic

mx.set_default_device(mx.cpu)
COLS = 128


def rows():
    w = synthetic.floats("weight", 5, (8, COLS), "F32", 0, 0.2)
    w[1] = 0
    w[2, 17] = 40  # an outlier
    w[3] = -0.3
    w[4] = (np.arange(COLS) % 7 - 3) * 0.5  # ties
    w[5] *= 1e-9
    w[6] = np.abs(w[6]) + 1  # zero is outside the range
    w[7, 64:] = -np.abs(w[7, 64:])
    return w


def raw(a):
    return base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()


def main(out):
    w, cases = rows(), []
    for dtype, mt in (("F32", mx.float32), ("F16", mx.float16), ("BF16", mx.bfloat16)):
        for bits in (2, 3, 4, 5, 6, 8):
            for group in (32, 64, 128):
                q, s, b = mx.quantize(mx.array(w).astype(mt), group_size=group, bits=bits)
                d = mx.dequantize(q, s.astype(mx.float32), b.astype(mx.float32), group_size=group, bits=bits)
                cases.append({
                    "type": dtype, "bits": bits, "group": group, "codes": raw(np.array(q)),
                    "scales": pins.f32(np.array(s.astype(mx.float32))), "biases": pins.f32(np.array(b.astype(mx.float32))),
                    "dequantised_sha256": hashlib.sha256(np.array(d).astype("<f4").tobytes()).hexdigest(),
                })
    pins.write(out, {"made": pins.made(__file__), "columns": COLS, "input": pins.f32(w), "cases": cases})


if __name__ == "__main__":
    main(sys.argv[1])
