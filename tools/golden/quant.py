"""mx.quantize and mx.dequantize on a few awkward rows, for every mode, width, group and float type.

run: python tools/golden/quant.py internal/quant/testdata
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
TYPES = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}
MODES = {"mxfp4": (4, 32), "mxfp8": (8, 32), "nvfp4": (4, 16)}


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


def fp_rows():
    """rows() and some where the largest of each group is next to a border between two scales."""
    w = [rows()]
    for top in (6, 448):
        e = synthetic.floats(f"border{top}", 5, (2, COLS), "F32", 0, 1)
        for g in range(0, COLS, 16):
            big = np.float32(top * 2.0 ** (g // 8 - 8))
            e[0, g:g + 16] *= big / 2
            e[0, g] = [big, np.nextafter(big, 0), np.nextafter(big, 2 * big)][g // 16 % 3]
            e[1, g:g + 16] = big * (np.arange(16) - 7) / (64 if top == 448 else 12)
        w.append(e)
    return np.concatenate(w).astype(np.float32)


def raw(a):
    return base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()


def digest(d):
    """of the values as float32, with every NaN the same."""
    d = np.array(d.astype(mx.float32)).astype("<f4")
    d[np.isnan(d)] = np.nan
    return hashlib.sha256(d.tobytes()).hexdigest()


def affine(w):
    for dtype, mt in TYPES.items():
        for bits in (2, 3, 4, 5, 6, 8):
            for group in (32, 64, 128):
                q, s, b = mx.quantize(mx.array(w).astype(mt), group_size=group, bits=bits)
                d = mx.dequantize(q, s.astype(mx.float32), b.astype(mx.float32), group_size=group, bits=bits)
                yield {
                    "type": dtype, "bits": bits, "group": group, "codes": raw(np.array(q)),
                    "scales": pins.f32(np.array(s.astype(mx.float32))), "biases": pins.f32(np.array(b.astype(mx.float32))),
                    "dequantised_sha256": digest(d),
                    "own_sha256": digest(mx.dequantize(q, s, b, group_size=group, bits=bits)),
                }


def dequantised(q, s, mode, **kw):
    bits, group = MODES[mode]
    return {t: digest(mx.dequantize(q, s, group_size=group, bits=bits, mode=mode, dtype=mt, **kw)) for t, mt in TYPES.items()}


def small_floats(w):
    for dtype, mt in TYPES.items():
        for mode, (bits, group) in MODES.items():
            for top in (None, 0.75) if mode == "nvfp4" else (None,):
                kw = {} if top is None else {"global_scale": mx.array(top, mx.float32)}
                q, s = mx.quantize(mx.array(w).astype(mt), group_size=group, bits=bits, mode=mode, **kw)
                yield {"mode": mode, "type": dtype, "global": top or 0, "codes": raw(np.array(q)), "scales": raw(np.array(s)),
                       "dequantised_sha256": dequantised(q, s, mode, **kw)}


def every_scale():
    """A row for each scale byte, with every code of the mode under it: 256 columns."""
    for mode, (bits, group) in MODES.items():
        codes = np.arange(256, dtype=np.uint8) if bits == 8 else np.tile(np.arange(16, dtype=np.uint8), 16)
        if bits == 4:
            codes = codes[0::2] | codes[1::2] << 4
        q = mx.array(np.tile(np.ascontiguousarray(codes).view("<u4"), (256, 1)))
        s = mx.array(np.repeat(np.arange(256, dtype=np.uint8)[:, None], 256 // group, axis=1))
        for top in (None, 0.75) if mode == "nvfp4" else (None,):
            kw = {} if top is None else {"global_scale": mx.array(top, mx.float32)}
            yield {"mode": mode, "global": top or 0, "dequantised_sha256": dequantised(q, s, mode, **kw)}


def main(out):
    made = pins.made(__file__)
    w = rows()
    pins.write(out + "/affine.json", {"made": made, "columns": COLS, "input": pins.f32(w), "cases": list(affine(w))})
    w = fp_rows()
    pins.write(out + "/fp.json", {"made": made, "columns": COLS, "input": pins.f32(w), "cases": list(small_floats(w)), "every_scale": list(every_scale())})


if __name__ == "__main__":
    main(sys.argv[1])
