"""Makes internal/generate/testdata/places.json: the ids of prompts with images, as transformers' processors make them.

run: .venv-vision/bin/python tools/golden/places.py internal/generate/testdata/places.json (the environment of image.py)
What stands for an image is the text that the processor's own replace_image_token gives for it, of sizes as its image processor
prepares them; the tokenizer is the demo's, with the family's tokens in the places of its reserved ones.
"""
import importlib
import json
import sys
import types
from pathlib import Path

import numpy as np
import tokenizers
from PIL import Image

import image
import pins

PINS = image.PINS | {"tokenizers": "0.23.3"}
SIZES = [[64, 48], [700, 500], [300, 1200], [33, 21], [1600, 1000]]
TALKS = [["What is this? ", 0], [1, "\n\nAnd\n", 2, "\nboth?"], [3, 4, " ", 0, "three"], ["\n\n", 2, "\n", 2, "the same twice"]]
# processor of image.py: class, tokens, mark of the template (with what it writes around), attributes
CASES = {
    "qwen2_vl": ("qwen2_vl.processing_qwen2_vl.Qwen2VLProcessor", ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"], "<|vision_start|>{}<|vision_end|>", {"image_token": "<|image_pad|>"}),
    "qwen2_5_vl": ("qwen2_5_vl.processing_qwen2_5_vl.Qwen2_5_VLProcessor", ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"], "<|vision_start|>{}<|vision_end|>", {"image_token": "<|image_pad|>"}),
    "qwen3_vl": ("qwen3_vl.processing_qwen3_vl.Qwen3VLProcessor", ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"], "<|vision_start|>{}<|vision_end|>", {"image_token": "<|image_pad|>"}),
    "gemma3": ("gemma3.processing_gemma3.Gemma3Processor", ["<start_of_image>", "<image_soft_token>", "<end_of_image>"], "{}", {"image_token": "<start_of_image>"}),
    "gemma3_crops": ("gemma3.processing_gemma3.Gemma3Processor", ["<start_of_image>", "<image_soft_token>", "<end_of_image>"], "{}", {"image_token": "<start_of_image>"}),
    "gemma4": ("gemma4.processing_gemma4.Gemma4Processor", ["<|image>", "<|image|>", "<image|>"], "{}",
               {"image_token": "<|image|>", "boi_token": "<|image>", "eoi_token": "<image|>"}),
    "pixtral": ("pixtral.processing_pixtral.PixtralProcessor", ["[IMG]", "[IMG_BREAK]", "[IMG_END]"], "{}",
                {"image_token": "[IMG]", "image_break_token": "[IMG_BREAK]", "image_end_token": "[IMG_END]", "patch_size": 16, "spatial_merge_size": 1}),
    "mistral3": ("pixtral.processing_pixtral.PixtralProcessor", ["[IMG]", "[IMG_BREAK]", "[IMG_END]"], "{}",
                 {"image_token": "[IMG]", "image_break_token": "[IMG_BREAK]", "image_end_token": "[IMG_END]", "patch_size": 14, "spatial_merge_size": 2}),
    "lfm2_vl": ("lfm2_vl.processing_lfm2_vl.Lfm2VlProcessor", ["<image>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>", "<|img_row_1_col_1|>"], "{}",
                {"image_token": "<image>", "image_start_token": "<|image_start|>", "image_end_token": "<|image_end|>", "image_thumbnail_token": "<|img_thumbnail|>"}),
    "idefics3": ("idefics3.processing_idefics3.Idefics3Processor", ["<image>", "<fake_token_around_image>", "<global-img>", "<row_1_col_1>"], "{}",
                 {"image_token": "<image>", "fake_image_token": "<fake_token_around_image>", "global_image_tag": "<global-img>", "global_image_token": "<global-img>"}),
    "smolvlm": ("smolvlm.processing_smolvlm.SmolVLMProcessor", ["<image>", "<fake_token_around_image>", "<global-img>", "<row_1_col_2>"], "{}",
                {"image_token": "<image>", "fake_image_token": "<fake_token_around_image>", "global_image_tag": "<global-img>", "global_image_token": "<global-img>"}),
}


def inputs(name, tiles, rows, cols, files):
    """What the image processor tells replace_image_token of one image."""
    grids = [np.asarray(g) for g, _ in tiles]
    patch = files["config"].get("vision_config", {}).get("patch_size", 16)
    return {"image_grid_thw": grids, "num_crops": [len(tiles) - 1], "num_soft_tokens_per_image": [int(grids[0].prod()) // 9],
            "image_sizes": [(int(grids[-1][1]) * patch, int(grids[-1][2]) * patch)], "image_rows": [rows or 1], "image_cols": [cols or 1],
            "rows": [[rows]], "cols": [[cols]]}


def vocabulary(tokens):
    text = Path(__file__).parent.parent.parent.joinpath("internal/demo/model/tokenizer.json").read_text()
    for i, t in enumerate(tokens):
        text = text.replace(f'"<|reserved_{i}|>"', json.dumps(t))
    return tokenizers.Tokenizer.from_str(text)


def golden(name, classes, files, run):
    path, tokens, around, given = CASES[name]
    cls = classes[path]
    self = cls.__new__(cls)
    for k, v in given.items():
        setattr(self, k, v)
    merge = 2
    self.image_processor = types.SimpleNamespace(merge_size=merge, use_thumbnail=True, tile_size=512, downsample_factor=2, encoder_patch_size=16)
    if name.startswith("gemma3"):
        self.full_image_sequence = "\n\n<start_of_image>" + "<image_soft_token>" * 256 + "<end_of_image>\n\n"
    tok = vocabulary(tokens)
    texts = []
    for w, h in SIZES:
        tiles, rows, cols = run(Image.new("RGB", (w, h)))
        self.image_seq_len = int(np.prod(tiles[0][0])) // files["config"].get("scale_factor", 2) ** 2
        texts.append(around.format(self.replace_image_token(inputs(name, tiles, rows, cols, files), 0, use_image_special_tokens=True)))
    talks = []
    for parts in TALKS:
        said = "".join(texts[p] if isinstance(p, int) else p for p in parts)
        ids = tok.encode("<|im_start|>user\n" + said + "<|im_end|>\n<|im_start|>assistant\n", add_special_tokens=False).ids
        runs = []  # [id, times]: most ids of an image are one
        for i in ids:
            if runs and runs[-1][0] == i:
                runs[-1][1] += 1
            else:
                runs.append([i, 1])
        talks.append({"parts": parts, "runs": runs})
    return {"files": files, "tokens": tokens, "mark": around.format(given["image_token"]), "talks": talks}


def classes_of():
    """The processors' classes. What they import of torchvision is for pixels."""
    names = ("torchvision", "torchvision.transforms", "torchvision.transforms.v2")
    for name in names:
        sys.modules[name] = types.ModuleType(name)
    sys.modules[names[2]].functional = types.SimpleNamespace(InterpolationMode=None)
    found = {path: importlib.import_module("transformers.models." + path.rsplit(".", 1)[0]) for path, *_ in CASES.values()}
    return {path: getattr(module, path.rsplit(".", 1)[1]) for path, module in found.items()}


def main(to):
    made = pins.made(__file__, PINS)
    classes = classes_of()
    modules = dict(sys.modules)
    all = image.processors()  # which takes torch away
    sys.modules.update(modules)
    cases = {name: golden(name, classes, *all[name]) for name in CASES}
    pins.write(to, {"made": made, "sizes": SIZES, "cases": cases})


if __name__ == "__main__":
    main(sys.argv[1])
