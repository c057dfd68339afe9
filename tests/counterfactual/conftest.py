"""Tiny diffusion pipelines of the real classes, saved on the spot, and a folder of drawn persons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from few_threads import few_threads  # noqa: F401  # a fixture of every test here
from tiny import clip_tokenizer, save_clip

UNET = {
    "block_out_channels": (4, 8),
    "layers_per_block": 1,
    "sample_size": 16,
    "out_channels": 4,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "norm_num_groups": 2,
}
SCHEDULER = {
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "clip_sample": False,
    "steps_offset": 1,
}


def text_config(width: int = 16, **changes):
    from transformers import CLIPTextConfig

    shape = {"num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 514, "max_position_embeddings": 77}
    ids = {"bos_token_id": 512, "eos_token_id": 513, "pad_token_id": 513}
    return CLIPTextConfig(hidden_size=width, intermediate_size=32, projection_dim=width, **shape, **ids, **changes)


def autoencoder():
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(4, 8),
        norm_num_groups=2,
        down_block_types=["DownEncoderBlock2D", "DownEncoderBlock2D"],
        up_block_types=["UpDecoderBlock2D", "UpDecoderBlock2D"],
        latent_channels=4,
    )


def stable_diffusion(in_channels: int = 4, *, edits: bool = False, alarm: float | None = None):
    """With `alarm`, the real safety checker, whose concepts are all at least this far from being met."""
    import diffusers
    from transformers import CLIPTextModel

    parts = {
        "unet": diffusers.UNet2DConditionModel(in_channels=in_channels, cross_attention_dim=16, **UNET),
        "scheduler": diffusers.DDIMScheduler(**SCHEDULER),
        "vae": autoencoder(),
        "text_encoder": CLIPTextModel(text_config()),
        "tokenizer": clip_tokenizer(77),
        "safety_checker": None,
        "feature_extractor": None,
        "requires_safety_checker": False,
    }
    if alarm is not None:
        parts |= safety_parts(alarm)
    kind = diffusers.StableDiffusionInstructPix2PixPipeline if edits else diffusers.StableDiffusionPipeline
    if edits:
        parts["image_encoder"] = None
    return kind(**parts)


def safety_parts(alarm: float):
    import torch
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPImageProcessor

    from tiny import SIDE, SQUARE, TEXT, VISION

    checker = StableDiffusionSafetyChecker(CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=12))
    with torch.no_grad():
        checker.concept_embeds_weights.fill_(alarm)
        checker.special_care_embeds_weights.fill_(2.0)
    images = CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=SQUARE)
    return {"safety_checker": checker, "feature_extractor": images}


def stable_diffusion_xl():
    import diffusers
    from transformers import CLIPTextModel, CLIPTextModelWithProjection

    config = text_config(16, hidden_act="gelu")
    unet = diffusers.UNet2DConditionModel(
        in_channels=4,
        attention_head_dim=(2, 4),
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        transformer_layers_per_block=(1, 2),
        projection_class_embeddings_input_dim=6 * 8 + 16,
        cross_attention_dim=32,
        **UNET,
    )
    return diffusers.StableDiffusionXLPipeline(
        unet=unet,
        scheduler=diffusers.EulerDiscreteScheduler(**{k: v for k, v in SCHEDULER.items() if k != "clip_sample"}),
        vae=autoencoder(),
        text_encoder=CLIPTextModel(config),
        text_encoder_2=CLIPTextModelWithProjection(config),
        tokenizer=clip_tokenizer(77),
        tokenizer_2=clip_tokenizer(77),
    )


@pytest.fixture(scope="session")
def pipelines(tmp_path_factory):
    """Folders of tiny pipelines, by name, as `save_pretrained` writes them."""
    pytest.importorskip("diffusers", reason="diffusers is not installed: pip install 'truegap[counterfactual]'")
    import torch

    builders = {
        "sd": stable_diffusion,
        "sdxl": stable_diffusion_xl,
        "pix2pix": lambda: stable_diffusion(8, edits=True),
        "alarmed": lambda: stable_diffusion(alarm=-2.0),
        "calm": lambda: stable_diffusion(alarm=2.0),
    }
    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            torch.manual_seed(5)
            made[name] = tmp_path_factory.mktemp("pipelines") / name
            builders[name]().save_pretrained(made[name], safe_serialization=True)
        return made[name]

    return folder


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory) -> Path:
    return save_clip(tmp_path_factory.mktemp("models") / "tiny-clip")


@pytest.fixture
def put():
    """Writes a picture of noise at a path, different for every seed."""

    def write(path: Path, seed: int = 0, size: tuple[int, int] = (24, 32)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)
        Image.fromarray(noise).save(path, "PNG")
        return path

    return write


@pytest.fixture
def table(tmp_path):
    """Writes a CSV file of lines and gives its path."""

    def write(name: str, *lines: str) -> Path:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write
