"""Loading with the transformers library: no code from a model's repository, no missing tensor, a usable processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
import transformers

from truegap.errors import UserError
from truegap.models._claims import check_amount, check_depth, check_sides
from truegap.models._torch import loading
from truegap.models.files import locate, split_revision
from truegap.models.quiet import quiet_transformers

SAFE_WEIGHTS = ("model*.safetensors",)
ADAPTER_CONFIG = "adapter_config.json"
PICKLED_WEIGHTS = ("pytorch_model*.bin",)
DUAL_ENCODERS = "CLIP, SigLIP, SigLIP-2, ALIGN, AltCLIP, FLAVA, GroupViT, MetaCLIP"
GENERATIVE = (
    "LLaVA, Qwen-VL, InternVL, PaliGemma, BLIP-2, InstructBLIP, Kosmos-2, Idefics3, SmolVLM, BLIP, GIT and what else "
    "transformers maps from image and text to text"
)


def read_config(spec: str, folder: Path) -> Any:
    """The configuration in a folder.

    Raises:
        UserError: There is none.
    """
    if not (folder / "config.json").is_file():
        other = folder / "open_clip_config.json"
        hint = (
            "it is an open_clip model: use hf-hub:org/name or local-dir:FOLDER"
            if other.is_file()
            else "save the model with save_pretrained"
        )
        raise UserError(f"model {spec}: no config.json in {folder}; {hint}")
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    check_depth(spec, config.to_dict())
    # How attention is computed is not a model's to say: it may name code on the Hub, or a library that is not here.
    config._attn_implementation = config._experts_implementation = None  # noqa: SLF001 (also of its parts)
    return config


def kind_of(identifier: str, spec: str, revision: str | None) -> Literal["dual-encoder", "generative"]:
    """What the folder or Hub repository of a model holds, by its configuration alone.

    Raises:
        UserError: There is no such model, or it is neither.
    """
    name, revision = split_revision(identifier, revision)
    files = locate(name, revision, ())
    with loading(spec), quiet_transformers():
        config = read_config(spec, files.folder)
    if generative_class(config) is not None:
        return "generative"
    if dual_class(config) is not None:
        return "dual-encoder"
    raise UserError(
        f"model {spec}: {config.model_type} is not a dual encoder ({DUAL_ENCODERS} and their like), and does not go on "
        f"with a text about an image either ({GENERATIVE})"
    )


def dual_class(config: Any) -> Any:
    """The class with image and text features that a configuration asks for, if it does."""
    known = transformers.MODEL_MAPPING.get(type(config), None)
    found = known[0] if isinstance(known, (tuple, list)) else known
    features = ("get_image_features", "get_text_features")
    return found if all(hasattr(found, name) for name in features) else None


def generative_class(config: Any) -> Any:
    """The class from image and text to text that a configuration asks for, if it does."""
    found: Any = transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING.get(type(config), None)
    if dual_class(config) is not None and found is not None and found.__name__ not in (config.architectures or ()):
        return None  # BLIP and BLIP-2 are both; the class that was saved decides
    return found


def load_weights(
    spec: str, model_class: Any, folder: Path, dtype: torch.dtype | Literal["auto"], *, unsafe: bool, **options: Any
) -> Any:
    """The model of a folder, in evaluation mode.

    Args:
        spec: What the user typed, for messages.
        model_class: A class of transformers.
        folder: Its files.
        dtype: Of the weights; `auto` for the one that they were saved in.
        unsafe: Whether pickled weights may be read, with torch's `weights_only` even so.
        options: More for `from_pretrained`.

    Raises:
        UserError: The weights lack tensors, are far fewer than the configuration asks for, or are changed by an
            adapter.
    """
    if (folder / ADAPTER_CONFIG).is_file():
        raise UserError(
            f"model {spec}: {ADAPTER_CONFIG} in {folder} changes its weights, but only where peft is installed; merge "
            "the adapter into them (merge_and_unload) and save the whole"
        )
    with torch.device("meta"):
        skeleton = model_class(read_config(spec, folder))
    check_amount(spec, skeleton, [path for pattern in SAFE_WEIGHTS for path in folder.glob(pattern)])
    model, info = model_class.from_pretrained(
        folder,
        config=read_config(spec, folder),
        dtype=dtype,
        use_safetensors=None if unsafe else True,
        weights_only=True,
        trust_remote_code=False,
        local_files_only=True,
        output_loading_info=True,
        **options,
    )
    absent = sorted(info["missing_keys"])
    if absent:  # transformers would fill them with random numbers
        raise UserError(
            f"model {spec}: its weights lack {len(absent)} tensors that {model_class.__name__} needs "
            f"({absent[0]} …); it was saved as another kind of model"
        )
    return model.eval()


def load_processor(spec: str, folder: Path) -> Any:
    """The processor of a folder.

    Raises:
        UserError: There is none, or none with an image processor and a tokenizer that knows words, or it makes images
            too large to be held.
    """
    try:
        automatic: Any = transformers.AutoProcessor
        processor = automatic.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError) as error:
        if "trust_remote_code" in str(error):
            raise
        processor = None
    parts = {part: getattr(processor, part, None) for part in ("image_processor", "tokenizer")}
    if parts["tokenizer"] is not None and not _has_vocabulary(parts["tokenizer"], folder):
        parts["tokenizer"] = None
    absent = [part.replace("_", " ") for part, value in parts.items() if value is None]
    if absent:
        raise UserError(
            f"model {spec}: no usable {' and '.join(absent)} in {folder}; save the processor there "
            "(processor.save_pretrained), or take the one of the model that it was trained from"
        )
    images: Any = parts["image_processor"]
    check_sides(spec, images.to_dict(), edges=not hasattr(images, "merge_size"))
    return processor


def describe_config(model: Any) -> dict[str, Any]:
    """A model's configuration, without what says nothing of the model."""
    return {k: v for k, v in model.config.to_dict().items() if k not in {"_name_or_path", "transformers_version"}}


def _has_vocabulary(tokenizer: Any, folder: Path) -> bool:
    """Whether the tokenizer's files are there; without them transformers makes one that knows no word."""
    names = {"tokenizer.json", *tokenizer.vocab_files_names.values()}
    return any((folder / name).is_file() for name in names)
