"""Tiny dual encoders of open_clip's real classes, saved as its authors save them for the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SIDE = 32
VISION = {"image_size": SIDE, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8}
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
WORDS = {"vocab_size": 32, "hf_tokenizer_name": "somebody/elsewhere"}
"""The tokenizer lies beside the weights, wherever its authors had it."""

COCA = {
    "embed_dim": 16,
    "vision_cfg": {
        **VISION,
        "attentional_pool": True,
        "attn_pooler_queries": 4,
        "attn_pooler_heads": 2,
        "output_tokens": True,
    },
    "text_cfg": {**TEXT, "embed_cls": True, "output_tokens": True},
    "multimodal_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
    "custom_text": True,
}
SIGLIP = {
    "embed_dim": 64,
    "init_logit_bias": -10,
    "custom_text": True,
    "vision_cfg": {"timm_model_name": "test_vit", "timm_pool": "map", "timm_proj": "none", "image_size": 160},
    "text_cfg": {**TEXT, **WORDS, "no_causal_mask": True, "proj_bias": True, "pool_type": "last"},
}
EVA02 = {
    "embed_dim": 16,
    "vision_cfg": {
        "timm_model_name": "eva02_tiny",
        "timm_pool": "token",
        "timm_proj": None,
        "image_size": SIDE,
    },
    "text_cfg": TEXT,
    "custom_text": True,
}
METACLIP = {"embed_dim": 12, "quick_gelu": True, "vision_cfg": VISION, "text_cfg": TEXT}
METACLIP2 = {**METACLIP, "text_cfg": {**TEXT, **WORDS, "pool_type": "eos", "eos_id": 1}}

FAMILIES = {"coca": COCA, "siglip": SIGLIP, "eva02": EVA02, "metaclip": METACLIP, "metaclip2_worldwide": METACLIP2}


def register_eva02() -> None:
    """Tells timm of an EVA-02 as that of `eva02_base_patch16_clip_224`, in small."""
    import timm
    from timm.models import register_model
    from timm.models.eva import Eva

    def eva02_tiny(*, num_classes: int, global_pool: str, **_: Any) -> Eva:
        return Eva(
            img_size=SIDE,
            patch_size=8,
            embed_dim=16,
            depth=2,
            num_heads=2,
            num_classes=num_classes,
            global_pool=global_pool,
            qkv_fused=False,
            mlp_ratio=4 * 2 / 3,
            swiglu_mlp=True,
            scale_mlp=True,
            scale_attn_inner=True,
            use_rot_pos_emb=True,
            ref_feat_shape=(4, 4),
            head_init_scale=1.0,
        )

    if not timm.is_model("eva02_tiny"):
        register_model(eva02_tiny)


def save(name: str, folder: Path) -> Path:
    """The tiny model of a family as a folder; a tokenizer of words is there already where it needs one."""
    import json

    import open_clip
    import torch
    from open_clip.push_to_hf_hub import save_config_for_hf
    from safetensors.torch import save_file

    register_eva02()
    torch.manual_seed(5)
    # open_clip reads an architecture from the folder that is to have it.
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": FAMILIES[name], "preprocess_cfg": {}}))
    model = open_clip.create_model(f"local-dir:{folder}", load_weights=False)
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    save_config_for_hf(model, folder / "open_clip_config.json", FAMILIES[name])
    return folder
