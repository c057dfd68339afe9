"""Tiny models of real classes, saved on the spot in their libraries' own formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from few_threads import few_threads  # noqa: F401  # a fixture of every test here
from tiny import SIDE, SQUARE, TEXT, VISION, bert_tokenizer, clip, clip_tokenizer

WORDS = ["a", "photo", "of", "person", "woman", "man", "doctor", "this", "is", "the", "face", "kind", "dog", "cat"]


def word_tokenizer(limit: int = 12):
    """Whole words and an end token, as a tokenizers file; it gives no attention mask, like SigLIP's."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    entries = ["<pad>", "</s>", "<unk>", *WORDS]
    inner = Tokenizer(WordLevel({entry: i for i, entry in enumerate(entries)}, unk_token="<unk>"))  # noqa: S106
    inner.pre_tokenizer = Whitespace()
    inner.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",  # noqa: S106
        eos_token="</s>",  # noqa: S106
        unk_token="<unk>",  # noqa: S106
        model_max_length=limit,
        model_input_names=["input_ids"],
    )


def siglip():
    import transformers as t

    tokenizer = word_tokenizer()
    text = {**TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 12, "projection_size": 16}
    model = t.SiglipModel(t.SiglipConfig(text_config=text, vision_config=VISION))
    return model, t.SiglipProcessor(t.SiglipImageProcessor(size=SQUARE), tokenizer)


def siglip2():
    import transformers as t

    entries = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", *"abcdefghijklmnopqrstuvwxyz"]
    tokenizer = t.Siglip2Tokenizer(vocab={entry: i for i, entry in enumerate(entries)}, merges=[])
    text = {**TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 64, "projection_size": 16}
    vision = {**TEXT, "patch_size": 16, "num_patches": 16}
    model = t.Siglip2Model(t.Siglip2Config(text_config=text, vision_config=vision))
    return model, t.Siglip2Processor(t.Siglip2ImageProcessor(), tokenizer)


def flava():
    import transformers as t

    tokenizer = bert_tokenizer(WORDS)
    config = t.FlavaConfig(
        text_config={**TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 512},
        image_config=VISION,
        multimodal_config=TEXT,
        hidden_size=16,
        projection_dim=12,
    )
    images = t.FlavaImageProcessor(size=SQUARE, crop_size=SQUARE)
    return t.FlavaModel(config), t.FlavaProcessor(images, tokenizer)


def groupvit():
    import transformers as t

    tokenizer = clip_tokenizer()
    text = {**TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 48, "eos_token_id": 513}
    vision = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "depths": [1, 1, 1],
        "num_hidden_layers": 3,
        "num_group_tokens": [4, 2, 0],
        "num_output_groups": [4, 2, 0],
        "num_attention_heads": 2,
        "image_size": SIDE,
        "patch_size": 8,
    }
    config = t.GroupViTConfig(text_config=text, vision_config=vision, projection_dim=12, projection_intermediate_dim=16)
    images = t.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=SQUARE)
    return t.GroupViTModel(config), t.CLIPProcessor(images, tokenizer)


def align():
    import transformers as t

    tokenizer = bert_tokenizer(WORDS)
    text = {**TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 512}
    vision = {
        "image_size": SIDE,
        "depth_coefficient": 0.1,
        "width_coefficient": 0.25,
        "hidden_dim": 16,
        "kernel_sizes": [3, 3],
        "in_channels": [32, 16],
        "out_channels": [16, 24],
        "strides": [1, 2],
        "num_block_repeats": [1, 1],
        "expand_ratios": [1, 2],
        "depthwise_padding": [],
    }
    model = t.AlignModel(t.AlignConfig(text_config=text, vision_config=vision, projection_dim=8))
    return model, t.AlignProcessor(t.EfficientNetImageProcessor(size=SQUARE, crop_size=SQUARE), tokenizer)


def altclip():
    import transformers as t

    tokenizer = bert_tokenizer(WORDS, limit=77)
    text = {**TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 90, "project_dim": 16, "pad_token_id": 0}
    model = t.AltCLIPModel(t.AltCLIPConfig(text_config=text, vision_config=VISION, projection_dim=12))
    images = t.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=SQUARE)
    return model, t.AltCLIPProcessor(images, tokenizer)


def metaclip2():
    import transformers as t

    tokenizer = clip_tokenizer()
    ids = {"bos_token_id": 512, "eos_token_id": 513, "pad_token_id": 513}
    text = {**TEXT, "vocab_size": len(tokenizer), "max_position_embeddings": 48, **ids}
    model = t.MetaClip2Model(t.MetaClip2Config(text_config=text, vision_config=VISION, projection_dim=12))
    images = t.CLIPImageProcessor(size={"shortest_edge": SIDE}, crop_size=SQUARE)
    return model, t.CLIPProcessor(images, tokenizer)


FAMILIES = {build.__name__: build for build in (clip, siglip, siglip2, align, altclip, flava, groupvit, metaclip2)}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Callable[[str], Path]:
    """A folder with a model of this family and its processor, as `save_pretrained` writes them."""
    made: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in made:
            import torch

            torch.manual_seed(7)
            model, processor = FAMILIES[family]()
            made[family] = tmp_path_factory.mktemp("models") / f"tiny-{family}"
            model.eval().save_pretrained(made[family])
            processor.save_pretrained(made[family])
        return made[family]

    return folder


@pytest.fixture(scope="session")
def save_word_tokenizer() -> Callable[[Path], None]:
    """Put the tokenizer of whole words into a folder."""

    def save(folder: Path) -> None:
        word_tokenizer(16).save_pretrained(folder)

    return save


@pytest.fixture(scope="session")
def architecture(tmp_path_factory) -> str:
    """The name of a tiny architecture that open_clip now knows."""
    import open_clip

    config = {
        "embed_dim": 12,
        "vision_cfg": {"image_size": SIDE, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
        "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2},
    }
    path = tmp_path_factory.mktemp("architectures") / "ViT-tiny-truegap.json"
    path.write_text(json.dumps(config))
    open_clip.add_model_config(path)
    return path.stem


@pytest.fixture(scope="session")
def open_clip_model(architecture):
    import open_clip
    import torch

    torch.manual_seed(11)
    return open_clip.create_model(architecture).eval()


@pytest.fixture(scope="session")
def checkpoint(open_clip_model, tmp_path_factory) -> Path:
    from safetensors.torch import save_file

    path = tmp_path_factory.mktemp("checkpoints") / "weights.safetensors"
    save_file(open_clip_model.state_dict(), path)
    return path


@pytest.fixture(scope="session")
def open_clip_folder(open_clip_model, architecture, tmp_path_factory) -> Path:
    """The tiny model as open_clip's own code saves one for the Hub."""
    import open_clip
    from open_clip.push_to_hf_hub import save_config_for_hf
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("models") / "tiny-open-clip"
    folder.mkdir()
    save_file(open_clip_model.state_dict(), folder / "open_clip_model.safetensors")
    save_config_for_hf(open_clip_model, folder / "open_clip_config.json", open_clip.get_model_config(architecture))
    return folder


@pytest.fixture(scope="session")
def pictures() -> list[Image.Image]:
    """Seven pictures of different sizes."""
    random = np.random.default_rng(3)
    sizes = [(40, 50), (64, 33), (32, 32), (90, 41), (50, 50), (35, 70), (48, 64)]
    return [Image.fromarray(random.integers(0, 256, (*size, 3), dtype=np.uint8)) for size in sizes]


@pytest.fixture(scope="session")
def prompts() -> list[str]:
    return ["a photo of a woman", "man", "this is the face of a kind person", "a photo of a doctor", "dog"]
