"""Makes internal/vision/testdata: images, and what Pillow and transformers' image processors make of them.

    python3 -m venv .venv-vision
    .venv-vision/bin/pip install numpy==2.4.6 pillow==13.0.0 transformers==5.24.0
    .venv-vision/bin/python tools/golden/image.py internal/vision/testdata

images/: small files of all formats. decoded.json: the pixels of each, upright and flat on white, as transformers'
convert_to_rgb makes them. prepared.json: for each processor the patches in the order that its tower reads, as 8-bit values
(their SHA-256, and samples of JPEGs) and some of their floats. An image that a processor refuses has no grid.
lfm2_vl has no processor without torch: its geometry is its own code with torch's names left empty, its pixels are Pillow's
(torchvision's differ from them by 1 here and there).
"""

import base64, hashlib, importlib.util, io, json, os, struct, sys, types, zlib

import numpy as np
import PIL
import transformers
from PIL import Image, ImageDraw, ImageOps, ImageSequence
from transformers.image_transforms import convert_to_rgb
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

PINS = {"numpy": "2.4.6", "pillow": "13.0.0", "transformers": "5.24.0"}
HAVE = {"numpy": np.__version__, "pillow": PIL.__version__, "transformers": transformers.__version__}
if HAVE != PINS:
    sys.exit(f"these goldens are of {PINS}, here is {HAVE}")


def photo(w, h, seed=0, noise=3, channels=3):
    """Smooth waves with edges and some noise: what resampling and chroma are sensitive to."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    planes = []
    for c in range(channels):
        a = rng.uniform(0.02, 0.2, 4)
        p = 128 + 60 * np.sin(a[0] * x + a[1] * y) + 50 * np.cos(a[2] * x - a[3] * y + c)
        p[(x // 23 + y // 17) % 5 == c] += 60
        planes.append(p)
    return np.clip(np.stack(planes, -1) + rng.normal(0, noise, (h, w, channels)), 0, 255).astype(np.uint8)


def rgb(*a, **k):
    return Image.fromarray(photo(*a, **k), "RGB")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(w, h, depth, color, rows, before=b"", interlace=0):
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, interlace)) + before
            + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def adam7(a):
    out = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        part = a[y0::dy, x0::dx]
        if part.size:
            out += b"".join(b"\0" + row.tobytes() for row in part)
    return out


def resampled(jpeg, factors, w, h):
    """The same blocks under other sampling factors and another size, of as many units: a picture of sorts, of a kind that
    Pillow does not write."""
    b = bytearray(jpeg)
    at = b.index(b"\xff\xc0\x00\x11")
    b[at + 5 : at + 9] = struct.pack(">HH", h, w)
    b[at + 11] = factors
    return bytes(b)


def images():
    def save(im, fmt, **k):
        b = io.BytesIO()
        im.save(b, fmt, **k)
        return b.getvalue()

    out = {}
    out["rgb.png"] = save(rgb(160, 120), "PNG")
    out["odd.png"] = save(rgb(131, 77, 1), "PNG")
    out["tall.png"] = save(rgb(40, 230, 2), "PNG")
    out["tiny1.png"] = save(rgb(1, 1, 3), "PNG")
    out["tiny2.png"] = save(rgb(2, 3, 4), "PNG")
    out["tiny7.png"] = save(rgb(7, 5, 4), "PNG")
    out["line.png"] = save(rgb(300, 2, 5), "PNG")
    out["column.png"] = save(rgb(3, 600, 6), "PNG")
    out["hair.png"] = save(rgb(900, 2, 6), "PNG")
    out["grey.png"] = save(Image.fromarray(photo(100, 90, 7, channels=1)[..., 0], "L"), "PNG")
    out["alpha.png"] = save(Image.fromarray(photo(90, 70, 8, channels=4), "RGBA"), "PNG")
    out["greyalpha.png"] = save(Image.fromarray(photo(66, 71, 9, channels=2), "LA"), "PNG")
    out["bits1.png"] = save(rgb(90, 60, 10).convert("1"), "PNG")
    pal = rgb(120, 80, 11).quantize(200)
    out["palette.png"] = save(pal, "PNG")
    out["palette16.png"] = save(rgb(121, 33, 12).quantize(13), "PNG", bits=4)
    out["palettealpha.png"] = save(pal, "PNG", transparency=bytes((i * 7) % 256 for i in range(200)))
    out["greykey.png"] = save(Image.fromarray(photo(64, 64, 7, channels=1)[..., 0], "L"), "PNG", transparency=128)
    flat = rgb(64, 64, 13).quantize(9).convert("RGB")
    out["colorkey.png"] = save(flat, "PNG", transparency=flat.getpixel((3, 3)))
    deep = (photo(50, 40, 14).astype(np.uint16) << 8) + photo(50, 40, 15, noise=60)
    out["rgb16.png"] = png(50, 40, 16, 2, b"".join(b"\0" + r.astype(">u2").tobytes() for r in deep))
    deep = (photo(40, 50, 14, channels=4).astype(np.uint16) << 8) + photo(40, 50, 15, noise=60, channels=4)
    out["rgba16.png"] = png(40, 50, 16, 6, b"".join(b"\0" + r.astype(">u2").tobytes() for r in deep))
    out["grey16.png"] = png(45, 40, 16, 0, b"".join(b"\0" + r.astype(">u2").tobytes() for r in photo(45, 40, 16, channels=1).astype(np.uint16) * 2))
    out["interlaced.png"] = png(61, 43, 8, 2, adam7(photo(61, 43, 17)), interlace=1)
    out["interlacedalpha.png"] = png(35, 83, 8, 6, adam7(photo(35, 83, 18, channels=4)), interlace=1)
    exif = Image.Exif()
    exif[0x112] = 8
    out["turned.png"] = save(rgb(80, 50, 19), "PNG", exif=exif)
    for o in range(1, 9):
        exif[0x112] = o
        out[f"turned{o}.jpg"] = save(rgb(83, 51, 20), "JPEG", quality=88, exif=exif)
    out["444.jpg"] = save(rgb(150, 101, 21), "JPEG", quality=92, subsampling=0)
    out["422.jpg"] = save(rgb(151, 102, 22), "JPEG", quality=90, subsampling=1)
    out["420.jpg"] = save(rgb(152, 103, 23), "JPEG", quality=85, subsampling=2)
    out["420odd.jpg"] = save(rgb(145, 99, 24), "JPEG", quality=50, subsampling=2)
    out["440.jpg"] = resampled(save(rgb(160, 80, 24), "JPEG", quality=80, subsampling=1), 0x12, 77, 157)
    out["411.jpg"] = resampled(save(rgb(160, 80, 25), "JPEG", quality=80, subsampling=2), 0x41, 315, 39)
    out["420tiny.jpg"] = save(rgb(3, 3, 25), "JPEG", quality=90, subsampling=2)
    out["progressive.jpg"] = save(rgb(170, 120, 26), "JPEG", quality=85, progressive=True)
    out["restart.jpg"] = save(rgb(120, 88, 26), "JPEG", quality=85, restart_marker_blocks=3)
    out["grey.jpg"] = save(rgb(101, 98, 27).convert("L"), "JPEG", quality=80)
    out["cmyk.jpg"] = save(rgb(72, 64, 28).convert("CMYK"), "JPEG", quality=95)
    out["rgb.jpg"] = save(rgb(60, 52, 28), "JPEG", quality=90, keep_rgb=True)
    ycck = bytearray(save(Image.fromarray(photo(60, 50, 29, channels=4), "CMYK"), "JPEG", quality=95))
    at = ycck.index(b"Adobe")
    ycck[at + 11] = 2  # the transform: its first three are luma and chroma
    out["ycck.jpg"] = bytes(ycck)
    out["noisy.jpg"] = save(rgb(140, 140, 30, noise=40), "JPEG", quality=60)
    out["rgb.gif"] = save(rgb(99, 66, 31).quantize(128), "GIF")
    frames = [rgb(64, 48, s).quantize(32) for s in (32, 33)]
    out["animated.gif"] = save(frames[0], "GIF", save_all=True, append_images=frames[1:])
    out["transparent.gif"] = save(rgb(50, 50, 34).quantize(16), "GIF", transparency=3)
    out["lossless.webp"] = save(rgb(90, 75, 35), "WEBP", lossless=True)
    out["losslessalpha.webp"] = save(Image.fromarray(photo(80, 61, 36, channels=4), "RGBA"), "WEBP", lossless=True, exact=True)
    out["lossy.webp"] = save(rgb(121, 93, 37), "WEBP", quality=70)
    out["lossyeven.webp"] = save(rgb(120, 94, 37), "WEBP", quality=90)
    out["lossyalpha.webp"] = save(Image.fromarray(photo(70, 61, 38, channels=4), "RGBA"), "WEBP", quality=80)
    frames = [rgb(64, 48, s) for s in (39, 40)]
    out["animated.webp"] = save(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    out["rgb.bmp"] = save(rgb(61, 41, 41), "BMP")
    out["palette.bmp"] = save(rgb(62, 41, 41).quantize(50), "BMP")
    out["rgb.tiff"] = save(rgb(60, 45, 42), "TIFF")
    out["lzw.tiff"] = save(rgb(61, 45, 42), "TIFF", compression="tiff_lzw")
    out["deflate.tiff"] = save(Image.fromarray(photo(60, 45, 43, channels=1)[..., 0], "L"), "TIFF", compression="tiff_adobe_deflate")
    out["packbits.tiff"] = save(rgb(62, 45, 42).quantize(20), "TIFF", compression="packbits")
    out["alpha.tiff"] = save(Image.fromarray(photo(44, 45, 44, channels=4), "RGBA"), "TIFF")
    exif[0x112] = 6
    out["turned.tiff"] = save(rgb(50, 30, 45), "TIFF", exif=exif)
    shot = Image.new("RGB", (1180, 720), (250, 250, 252))
    d = ImageDraw.Draw(shot)
    d.rectangle([0, 0, 240, 720], fill=(40, 44, 52))
    for i in range(0, 700, 22):
        d.text((260, i), "func (p *Processor) Plan(w, h int) (Plan, error) { // %d" % i, fill=(i % 200, 30, 90))
        d.text((10, i), "internal/vision/%d.go" % i, fill=(200, 200, 210))
    out["screenshot.png"] = save(shot, "PNG", optimize=True)
    out["photo.jpg"] = save(rgb(1400, 1050, 46, noise=1), "JPEG", quality=60)
    return out


def lfm2():
    """The geometry of transformers' Lfm2VlImageProcessor, which imports torch and uses none of it for that."""
    for name in ("torch", "torch.nn", "torch.nn.functional", "torchvision", "torchvision.transforms", "torchvision.transforms.v2"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["torchvision.transforms.v2"].functional = types.SimpleNamespace(InterpolationMode=None)
    path = os.path.join(os.path.dirname(transformers.__file__), "models/lfm2_vl/image_processing_lfm2_vl.py")
    text = open(path).read().replace("from ...", "from transformers.")
    text = text.replace("@auto_docstring\n", "").replace("(TorchvisionBackend)", "").replace("from transformers.image_processing_backends import TorchvisionBackend", "")
    text = text.replace("from transformers.image_transforms import group_images_by_shape, reorder_images, split_to_tiles", "")
    space = {"__name__": "lfm2"}
    exec(compile(text, path, "exec"), space)
    for name in [n for n in sys.modules if n == "torch" or n.startswith(("torch.", "torchvision"))]:
        del sys.modules[name]
    return space["Lfm2VlImageProcessor"]


def patchify(a, p, rows=False):
    """[C, H, W] -> patches, row after row; each [C, p, p], or [p, p, C]."""
    c, h, w = a.shape
    a = a.reshape(c, h // p, p, w // p, p)
    a = a.transpose(1, 3, 2, 4, 0) if rows else a.transpose(1, 3, 0, 2, 4)
    return a.reshape((h // p) * (w // p), -1)


def processors():
    """name -> (files, run): run gives tiles as (grid, patches), and rows and columns."""
    half = [0.5, 0.5, 0.5]
    clip = dict(image_mean=[0.48145466, 0.4578275, 0.40821073], image_std=[0.26862954, 0.26130258, 0.27577711])

    def qwen(kind, config, **k):
        proc = Qwen2VLImageProcessorPil(**k)

        def run(im):
            o = proc(im)
            return [(o["image_grid_thw"][0], np.asarray(o["pixel_values"]))], 0, 0

        return {"config": {"model_type": kind, **config}, "preprocessor": {"image_processor_type": "Qwen2VLImageProcessorFast", **k}}, run

    def gemma3(**k):
        proc = Gemma3ImageProcessorPil(size={"height": 896, "width": 896}, **k)

        def run(im):
            o = proc(im)
            n = o["num_crops"][0]
            w, h = im.size
            rows, cols = (0, 0) if n == 0 else (1, n) if w >= h else (n, 1)
            return [([1, 64, 64], patchify(np.asarray(v), 14)) for v in o["pixel_values"]], rows, cols

        return {"config": {"model_type": "gemma3", "vision_config": {"patch_size": 14}}, "preprocessor": {"size": {"height": 896, "width": 896}, **k}}, run

    def gemma4(**k):
        proc = Gemma4ImageProcessorPil(**k)

        def run(im):
            o = proc(im)
            pos = np.asarray(o["image_position_ids"][0])
            pos = pos[pos[:, 0] >= 0]
            gw, gh = pos.max(0) + 1
            return [([1, gh, gw], np.asarray(o["pixel_values"][0])[: gh * gw])], 0, 0

        return {"config": {"model_type": "gemma4"}, "processor": {"image_processor": {"image_processor_type": "Gemma4ImageProcessor", **k}}}, run

    def pixtral(kind, patch, merge, longest):
        proc = PixtralImageProcessorPil(size={"longest_edge": longest}, patch_size={"height": patch * merge, "width": patch * merge})

        def run(im):
            o = proc(im)
            a = np.asarray(o["pixel_values"][0])
            return [([1, a.shape[1] // patch, a.shape[2] // patch], patchify(a, patch))], 0, 0

        return {"config": {"model_type": kind, "spatial_merge_size": merge, "vision_config": {"patch_size": patch}},
                "preprocessor": {"size": {"longest_edge": longest}, "patch_size": patch, **clip}}, run

    def idefics3(kind, cls, longest, tile, patch, scale, **k):
        proc = cls(size={"longest_edge": longest}, max_image_size={"longest_edge": tile}, return_row_col_info=True, **k)

        def run(im):
            o = proc([[im]])
            n = tile // patch
            return [([1, n, n], patchify(np.asarray(v), patch)) for v in o["pixel_values"][0]], int(o["rows"][0][0]), int(o["cols"][0][0])

        return {"config": {"model_type": kind, "scale_factor": scale, "vision_config": {"patch_size": patch}},
                "preprocessor": {"size": {"longest_edge": longest}, "max_image_size": {"longest_edge": tile}, **k}}, run

    def lfm(**k):
        cls = lfm2()
        self = cls.__new__(cls)
        d = dict(downsample_factor=2, min_tiles=2, max_tiles=10, min_image_tokens=64, max_image_tokens=256, encoder_patch_size=16,
                 tile_size=512, max_pixels_tolerance=2.0)
        d.update(k)
        cls._target_ratios = lambda self, a, b, f=cls._target_ratios.__wrapped__: f(self, a, b)
        table = ((np.arange(256) / 255).astype(np.float32) - np.float32(0.5)) / np.float32(0.5)

        def run(im):
            im = Image.fromarray(convert_to_rgb(im, return_numpy=True))
            w, h = im.size
            size = dict(downsample_factor=d["downsample_factor"], max_image_tokens=d["max_image_tokens"], encoder_patch_size=d["encoder_patch_size"])
            large = cls._is_image_too_large(self, h, w, max_pixels_tolerance=d["max_pixels_tolerance"], **size)
            nw, nh = cls.smart_resize(self, h, w, min_image_tokens=d["min_image_tokens"], **size)
            tiles, rows, cols = [im.resize((nw, nh), Image.BILINEAR)], 0, 0
            if large:
                t = d["tile_size"]
                cols, rows, tw, th, _ = cls._get_grid_layout(self, h, w, d["min_tiles"], d["max_tiles"], t)
                big = im.resize((tw, th), Image.BILINEAR)
                tiles = [big.crop((x * t, y * t, x * t + t, y * t + t)) for y in range(rows) for x in range(cols)] + tiles
            arrays = [table[np.asarray(v)].transpose(2, 0, 1) for v in tiles]
            return [([1, a.shape[1] // 16, a.shape[2] // 16], patchify(a, 16, rows=True)) for a in arrays], rows, cols

        return {"config": {"model_type": "lfm2_vl"}, "preprocessor": k}, run

    return {
        "qwen2_vl": qwen("qwen2_vl", {}, min_pixels=3136, max_pixels=12845056, patch_size=14, temporal_patch_size=2, merge_size=2, **clip),
        "qwen2_5_vl": qwen("qwen2_5_vl", {}, min_pixels=3136, max_pixels=602112, patch_size=14, temporal_patch_size=2, merge_size=2, **clip),
        "qwen3_vl": qwen("qwen3_vl", {"vision_config": {"patch_size": 16, "temporal_patch_size": 2, "spatial_merge_size": 2}},
                         size={"longest_edge": 16777216, "shortest_edge": 65536}, patch_size=16, image_mean=half, image_std=half),
        "gemma3": gemma3(),
        "gemma3_crops": gemma3(do_pan_and_scan=True, pan_and_scan_min_crop_size=32, pan_and_scan_max_num_crops=4, pan_and_scan_min_ratio_to_activate=1.2),
        "gemma4": gemma4(),
        "pixtral": pixtral("pixtral", 16, 1, 1024),
        "mistral3": pixtral("mistral3", 14, 2, 1540),
        "lfm2_vl": lfm(),
        "idefics3": idefics3("idefics3", Idefics3ImageProcessorPil, 4 * 364, 364, 14, 2),
        "smolvlm": idefics3("smolvlm", SmolVLMImageProcessorPil, 2048, 512, 16, 4),
        "smolvlm_whole": idefics3("smolvlm", SmolVLMImageProcessorPil, 2048, 512, 16, 4, do_image_splitting=False),
    }


def samples(a, n):
    """n values at even distances, the way the test takes them too."""
    a = np.ascontiguousarray(a).reshape(-1)
    n = min(n, len(a))
    return base64.b64encode(a[np.arange(n, dtype=np.int64) * len(a) // n].tobytes()).decode()


def main(to):
    os.makedirs(to + "/images", exist_ok=True)
    lossy = lambda name: name.endswith(".jpg") or name.startswith("lossy")
    files = images()
    decoded, opened = {}, {}
    for name, data in files.items():
        with open(f"{to}/images/{name}", "wb") as f:
            f.write(data)
        im = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        a = convert_to_rgb(im, return_numpy=True)
        opened[name] = im
        decoded[name] = {"width": a.shape[1], "height": a.shape[0], "sum": hashlib.sha256(a.tobytes()).hexdigest()}
        if lossy(name):
            decoded[name]["samples"] = samples(a, 3000)
    with open(f"{to}/decoded.json", "w") as f:
        json.dump({"made by": HAVE, "images": decoded}, f, indent=0)
    prepared = {}
    for kind, (settings, run) in processors().items():
        small = {}
        scale, mean, std = 255.0, [0.5] * 3, [0.5] * 3
        if kind in ("qwen2_vl", "qwen2_5_vl", "pixtral", "mistral3"):
            mean, std = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
        if kind == "gemma4":
            mean, std = [0.0] * 3, [1.0] * 3
        rows_of_pixels = kind in ("gemma4", "lfm2_vl")
        for name, im in opened.items():
            try:
                tiles, rows, cols = run(im)
            except (ValueError, ZeroDivisionError) as e:
                small[name] = {"refused": str(e)[:60]}
                continue
            all8, floats = [], []
            for grid, p in tiles:
                p = p.astype(np.float32)
                c = p.reshape(len(p), -1, 3) if rows_of_pixels else p.reshape(len(p), 3, -1).transpose(0, 2, 1)
                q = np.rint((c * np.array(std) + np.array(mean)) * scale)
                q = q if rows_of_pixels else q.transpose(0, 2, 1)
                all8.append(q.astype(np.uint8).reshape(-1))
                floats.append(p.reshape(-1))
            all8, floats = np.concatenate(all8), np.concatenate(floats)
            small[name] = {"grids": [[int(v) for v in g] for g, _ in tiles], "rows": int(rows), "cols": int(cols),
                           "sum": hashlib.sha256(all8.tobytes()).hexdigest()[:32], "floats": samples(floats.astype("<f4"), 8)}
            if lossy(name):
                small[name]["samples"] = samples(all8, 300)
        prepared[kind] = {**settings, "images": small}
        print(kind, sum("grids" in v for v in small.values()), "of", len(small))
    with open(f"{to}/prepared.json", "w") as f:
        json.dump({"made by": HAVE, "processors": prepared}, f, indent=None, separators=(",", ":"))


if __name__ == "__main__":
    main(sys.argv[1])
