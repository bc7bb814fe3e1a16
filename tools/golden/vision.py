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
AXIAL = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 24, "patch_size": 4,
         "position_embedding_size": 20, "pooling_kernel_size": 2, "rms_norm_eps": 1e-3}
PIXTRAL = {"model_type": "pixtral", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 2, "head_dim": 32, "image_size": 64,
           "patch_size": 4}
SIGLIP = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 4, "layer_norm_eps": 1e-3}
NAFLEX = SIGLIP | {"model_type": "siglip2_vision_model", "num_patches": 49}
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
    "lfm2_vl": {**saved.CASES["lfm2_vl"], "downsample_factor": 2, "projector_hidden_size": 80, "vision_config": NAFLEX},
    "lfm2_vl-bare": {**saved.CASES["lfm2_vl"], "downsample_factor": 3, "projector_hidden_size": 80, "projector_bias": False, "projector_use_layernorm": False,
                     "projector_hidden_act": "silu", "vision_config": NAFLEX | {"vision_use_head": True, "hidden_act": "quick_gelu"}},
    "idefics3": {"text_config": {"model_type": "llama"}, "scale_factor": 2, "vision_config": SIGLIP | {"image_size": 24}},
    "smolvlm": {"text_config": {"model_type": "llama"}, "scale_factor": 3, "vision_config": SIGLIP | {"image_size": 27}},
    "gemma3": {"text_config": saved.GEMMA3, "mm_tokens_per_image": 4,
               "vision_config": {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 16, "patch_size": 4}},
    "gemma4": {"text_config": saved.GEMMA4 | {"pad_token_id": 0, "num_kv_shared_layers": 1}, "vision_config": AXIAL | {"use_clipped_linears": True}},
    "gemma4-both": {"text_config": {k: v for k, v in saved.GEMMA4.items() if "per_layer" not in k} | {
                        "hidden_size_per_layer_input": 0, "pad_token_id": 0, "use_bidirectional_attention": "vision"},
                    "vision_config": AXIAL | {"standardize": True, "num_key_value_heads": 1, "pooling_kernel_size": 3, "rope_parameters": {"rope_type": "axial", "rope_theta": 30.0}}},
    "mistral3": {"text_config": {"model_type": "mistral", "sliding_window": 8}, "spatial_merge_size": 2, "vision_config": PIXTRAL},
    "mistral3-bias": {"text_config": {"model_type": "ministral3"} | saved.MINISTRAL3, "spatial_merge_size": 2, "multimodal_projector_bias": True, "vision_feature_layer": -2,
                      "projector_hidden_act": "silu", "vision_config": PIXTRAL | {"rope_parameters": {"rope_type": "axial", "rope_theta": 100.0}}},
    "llava-pixtral": {"text_config": {"model_type": "mistral"}, "vision_config": PIXTRAL, "vision_feature_layer": [0, -1], "vision_feature_select_strategy": "full"},
}
SQUARES = [[1, 4, 4]] * 3  # of models whose images have one size
PLAIN = 0.5, 0.5  # base and amp of the numbers of patches that the model itself normalises
BREAK = 2  # the token between the lines of an image, of models that have one


def grids_of(name, cfg):
    """The grids of images, and along how many patches of each side one row is made of them."""
    v, kind = cfg.vision_config, name.partition("-")[0]
    if kind == "gemma3":
        return SQUARES, 1
    if kind == "lfm2_vl":
        k = cfg.downsample_factor
        return [[1, 2 * k, 3 * k], [1, k, k], [1, k, 8 * k], [1, 5 * k, 2 * k]], k
    if kind in ("idefics3", "smolvlm"):
        k = cfg.scale_factor
        return [[1, 6, 6], [1, k, k], [1, 4 * k, 4 * k], [1, 2 * k, 2 * k]], k
    if kind == "gemma4":
        k = v.pooling_kernel_size
        return [[1, 2 * k, 3 * k], [1, k, k], [1, k, 6 * k], [1, 5 * k, 2 * k]], k
    if kind == "llava":
        return [[1, 3, 5], [1, 1, 1], [1, 2, 9], [1, 7, 3]], 1
    if kind == "mistral3":  # transformers cannot split one row
        return [[1, 4, 6], [1, 2, 4], [1, 2, 16], [1, 10, 4]], cfg.spatial_merge_size
    return GRIDS, v.spatial_merge_size


def filling(name, w):
    if name.endswith(("_min", "_max")):  # what comes in or goes out of a clipped matrix
        return (-0.8 if name.endswith("min") else 0.9), 0.2
    if w.ndim > 3:
        return 0, (3 / np.prod(w.shape[1:])) ** 0.5
    return ordinary(name, w)


ordinary, saved.filling = saved.filling, filling


def prompt(rows, image, lines):
    """Text with the images in it: the tokens, and where each image begins. Each has so many lines of its rows, with tokens between them."""
    r = np.random.default_rng(SEED)
    tokens, at = r.choice(TEXT, 5).tolist(), []
    for n, k in zip(rows, lines):
        at.append(len(tokens))
        tokens += (([image] * (n // k) + [BREAK]) * k)[:-1] + r.choice(TEXT, 4).tolist()
    return tokens + r.choice(TEXT, 6).tolist(), at


def pixels(patches, grid):
    """The square image of these patches."""
    side = int((patches.shape[1] // 3) ** 0.5)
    x = patches.reshape(grid[1], grid[2], 3, side, side).transpose(2, 0, 3, 1, 4)
    return torch.tensor(np.ascontiguousarray(x.reshape(1, 3, grid[1] * side, grid[2] * side)))


def inputs(model, patches, grids):
    """What the model takes of images: pixels, and what says where they are."""
    kind, side = model.config.model_type, model.config.vision_config.patch_size
    if kind == "gemma4":  # rows of pixels, filled up to the same number of patches
        most = max(len(p) for p in patches)
        places = [[[i % g[2], i // g[2]] for i in range(g[1] * g[2])] + [[-1, -1]] * (most - g[1] * g[2]) for g in grids]
        return {"pixel_values": torch.tensor(np.stack([np.pad(p, [(0, most - len(p)), (0, 0)]) for p in patches])), "image_position_ids": torch.tensor(places)}
    if kind in ("mistral3", "llava"):  # filled up to the same size
        h, w = max(g[1] for g in grids) * side, max(g[2] for g in grids) * side
        filled = [torch.nn.functional.pad(pixels(p, g), (0, w - g[2] * side, 0, h - g[1] * side)) for p, g in zip(patches, grids)]
        return {"pixel_values": torch.cat(filled), "image_sizes": torch.tensor([[g[1] * side, g[2] * side] for g in grids])}
    if kind == "lfm2_vl":  # filled up to the same number of patches
        most = max(len(p) for p in patches)
        return {"pixel_values": torch.tensor(np.stack([np.pad(p, [(0, most - len(p)), (0, 0)]) for p in patches])), "spatial_shapes": torch.tensor([g[1:] for g in grids]),
                "pixel_attention_mask": torch.tensor([[1] * len(p) + [0] * (most - len(p)) for p in patches])}
    if kind in ("idefics3", "smolvlm"):  # only images of one size go together
        made = [model.model.get_image_features(pixels(p, g)[None]).pooler_output[0] for p, g in zip(patches, grids)]
        return {"mm_encoder_outputs": {"image": hf.modeling_outputs.BaseModelOutputWithPooling(pooler_output=made)}}
    if kind == "gemma3":
        return {"pixel_values": torch.cat([pixels(p, g) for p, g in zip(patches, grids)])}
    return {"pixel_values": torch.tensor(np.concatenate(patches)), "image_grid_thw": torch.tensor(grids)}


def features(model, patches, grid):
    """Rows for the places of an image's tokens, and those that are added later."""
    if model.config.model_type in ("idefics3", "smolvlm"):
        return inputs(model, [patches], [grid])["mm_encoder_outputs"]["image"].pooler_output
    if not hasattr(model.model, "visual"):
        return [model.model.get_image_features(**inputs(model, [patches], [grid])).pooler_output[0]]
    out = model.model.visual(torch.tensor(patches), grid_thw=torch.tensor([grid]))
    return [out.pooler_output] + list(getattr(out, "deepstack_features", None) or [])


def golden(name, given):
    config, cls = saved.classes(name.partition("-")[0])
    cfg = config(**saved.tiny(config, given))
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        torch.manual_seed(SEED)
        cls(cfg).save_pretrained(folder)
        tensors = saved.fill(folder, SEED)
        model = saved.read(cls, folder)
        text = (folder / "config.json").read_text()
    v, kind = cfg.vision_config, cfg.model_type
    grids, merge = grids_of(name, cfg)
    cols = 3 * v.patch_size**2 * getattr(v, "temporal_patch_size", 1)
    images, all_patches, rows = [], [], []
    with torch.no_grad():
        for i, grid in enumerate(grids):
            patches = synthetic.floats(f"patches.{i}", SEED, [int(np.prod(grid)), cols], "F32", *(PLAIN if kind == "gemma4" else (0, 1)))
            made = [f.float().numpy() for f in features(model, patches, grid)]
            images.append({"grid": grid, "features": [pins.f32(f) for f in made]})
            all_patches.append(patches)
            rows.append(len(made[0]))
        image = cfg.image_token_id
        broken = kind in ("mistral3", "llava")
        lines = [g[1] // merge if broken else 1 for g in grids]
        tokens, at = prompt(rows, image, lines)
        for i, begin in enumerate(at):
            images[i]["at"] = begin
        kinds = torch.tensor([[int(t == image) for t in tokens]])
        given = inputs(model, all_patches, grids)
        if not broken and kind not in ("lfm2_vl", "idefics3", "smolvlm"):
            given["token_type_ids" if kind == "gemma3" else "mm_token_type_ids"] = kinds
        logits = model(input_ids=torch.tensor([tokens]), use_cache=False, **given).logits[0].float().numpy()
    wanted = sorted({at[0] - 1, at[0], at[0] + 3, at[1] + 1, at[2] - 1, at[2] + 5, at[-1] + rows[-1] + lines[-1] - 1, *range(len(tokens) - 6, len(tokens))})
    return {"made": pins.made(__file__, saved.PINS), "config": saved.json.loads(text), "seed": SEED, "tensors": tensors, "columns": cols, "images": images,
            "tokens": tokens, "rows": wanted, "logits": pins.f32(logits[wanted])}


def main():
    to, names = Path(sys.argv[1]), sys.argv[2:] or CASES
    for name in names:
        pins.write(to / f"{name}.json", golden(name, CASES[name]))


if __name__ == "__main__":
    main()
