"""Features and logits of tiny random models that see, which transformers itself built, saved and read again.

run: python tools/golden/vision.py internal/model/testdata/vision [names ...]
It needs torch (CPU) and transformers, as saved.py, whose way to fill weights it shares. Images are patches by formula: what makes
patches of pictures is not of these goldens.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers as hf

import pins
import saved
import synthetic

SEED, TEXT = 20261127, range(3, 80)
GRIDS = [[1, 4, 6], [1, 2, 2], [1, 2, 16], [1, 10, 4]]
VISION = {"depth": 3, "hidden_size": 64, "intermediate_size": 96, "num_heads": 2, "patch_size": 4, "temporal_patch_size": 2, "spatial_merge_size": 2,
          "out_hidden_size": 64, "num_position_embeddings": 25, "in_channels": 3}
TURNS = saved.rope(mrope_section=[6, 3, 3], mrope_interleaved=True)
CASES = {
    "qwen3_vl": {"text_config": {"rope_parameters": TURNS}, "vision_config": VISION | {"deepstack_visual_indexes": [0, 2]}},
    "qwen3_vl_moe": {"text_config": {"rope_parameters": TURNS}, "vision_config": VISION | {"deepstack_visual_indexes": [0, 1, 2]}},
    "qwen3_5": {"text_config": saved.DELTA | {"rope_parameters": saved.MROPE}, "vision_config": VISION},
    "qwen3_5_moe": {"text_config": saved.DELTA | {"rope_parameters": saved.MROPE}, "vision_config": VISION},
    "qwen2_5_vl": {"text_config": {"rope_parameters": saved.rope(mrope_section=[2, 3, 3])},
                   "vision_config": {k: v for k, v in VISION.items() if k != "num_position_embeddings"} | {"window_size": 16, "fullatt_block_indexes": [1]}},
    "qwen2_vl": {"text_config": {"rope_parameters": saved.rope(mrope_section=[2, 3, 3])},
                 "vision_config": {"depth": 3, "embed_dim": 64, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2, "patch_size": 4, "temporal_patch_size": 2,
                                   "spatial_merge_size": 2, "in_channels": 3}},
    "gemma3": {"text_config": saved.GEMMA3, "mm_tokens_per_image": 4,
               "vision_config": {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 16, "patch_size": 4}},
}
SQUARES = [[1, 4, 4]] * 3  # of models whose images have one size


def filling(name, w):
    if w.ndim > 3:
        return 0, (3 / np.prod(w.shape[1:])) ** 0.5
    return ordinary(name, w)


ordinary, saved.filling = saved.filling, filling


def prompt(rows, image):
    """Text with the images in it: the tokens, and where each image begins."""
    r = np.random.default_rng(SEED)
    tokens, at = r.choice(TEXT, 5).tolist(), []
    for n in rows:
        at.append(len(tokens))
        tokens += [image] * n + r.choice(TEXT, 4).tolist()
    return tokens + r.choice(TEXT, 6).tolist(), at


def pixels(patches, grid):
    """The square image of these patches."""
    side = int((patches.shape[1] // 3) ** 0.5)
    x = patches.reshape(grid[1], grid[2], 3, side, side).transpose(2, 0, 3, 1, 4)
    return torch.tensor(np.ascontiguousarray(x.reshape(1, 3, grid[1] * side, grid[2] * side)))


def features(model, patches, grid):
    """Rows for the places of an image's tokens, and those that are added later."""
    if not hasattr(model.model, "visual"):
        return [model.model.get_image_features(pixels(patches, grid)).pooler_output[0]]
    out = model.model.visual(torch.tensor(patches), grid_thw=torch.tensor([grid]))
    return [out.pooler_output] + list(getattr(out, "deepstack_features", None) or [])


def golden(name, given):
    config, cls = saved.classes(name)
    cfg = config(**saved.tiny(config, given))
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        torch.manual_seed(SEED)
        cls(cfg).save_pretrained(folder)
        tensors = saved.fill(folder, SEED)
        model = saved.read(cls, folder)
        text = (folder / "config.json").read_text()
    v = cfg.vision_config
    square = not hasattr(v, "temporal_patch_size")
    grids = SQUARES if square else GRIDS
    cols = 3 * v.patch_size**2 * (1 if square else v.temporal_patch_size)
    images, all_patches, rows = [], [], []
    with torch.no_grad():
        for i, grid in enumerate(grids):
            patches = synthetic.floats(f"patches.{i}", SEED, [int(np.prod(grid)), cols], "F32", 0, 1)
            made = [f.float().numpy() for f in features(model, patches, grid)]
            images.append({"grid": grid, "features": [pins.f32(f) for f in made]})
            all_patches.append(patches)
            rows.append(len(made[0]))
        image = cfg.image_token_id
        tokens, at = prompt(rows, image)
        for i, begin in enumerate(at):
            images[i]["at"] = begin
        kinds = [int(t == image) for t in tokens]
        if square:
            given = {"pixel_values": torch.cat([pixels(p, g) for p, g in zip(all_patches, grids)]), "token_type_ids": torch.tensor([kinds])}
        else:
            given = {"pixel_values": torch.tensor(np.concatenate(all_patches)), "image_grid_thw": torch.tensor(grids), "mm_token_type_ids": torch.tensor([kinds])}
        logits = model(input_ids=torch.tensor([tokens]), use_cache=False, **given).logits[0].float().numpy()
    wanted = sorted({at[0] - 1, at[0], at[0] + 3, at[1] + 1, at[2] - 1, at[2] + 5, at[-1] + rows[-1], *range(len(tokens) - 6, len(tokens))})
    return {"made": pins.made(__file__, saved.PINS), "config": saved.json.loads(text), "seed": SEED, "tensors": tensors, "columns": cols, "images": images,
            "tokens": tokens, "rows": wanted, "logits": pins.f32(logits[wanted])}


def main():
    to, names = Path(sys.argv[1]), sys.argv[2:] or CASES
    for name in names:
        pins.write(to / f"{name}.json", golden(name, CASES[name]))


if __name__ == "__main__":
    main()
