"""Text-to-image and image-editing pipelines of `diffusers`: loaded safely, called one image at a time."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from PIL import Image

from truegap.errors import UserError, first_line

Task = Literal["text-to-image", "edit"]

_INDEX = "model_index.json"
_FILES = (
    *("*.json", "*.txt", "*.model", "*.jinja"),
    *("model.safetensors", "model-?????-of-?????.safetensors"),
    *("diffusion_pytorch_model.safetensors", "diffusion_pytorch_model-?????-of-?????.safetensors"),
)
"""Of each part of a pipeline: beside these weights may lie the same in half precision, or pickled."""
_HASHED = ("*.json", "*.txt", "*.model", "*.jinja", "*.safetensors")
_SETTINGS = {
    "steps": "num_inference_steps",
    "guidance": "guidance_scale",
    "image_guidance": "image_guidance_scale",
    "height": "height",
    "width": "width",
    "negative_prompt": "negative_prompt",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a pipeline is called; None leaves it to the pipeline.

    Attributes:
        negative_prompt: What the image should not show.
        steps: Denoising steps.
        guidance: How closely the prompt is followed.
        image_guidance: How closely the image is followed, for editors such as InstructPix2Pix.
        height: Pixels, for text-to-image.
        width: Pixels, for text-to-image.
    """

    negative_prompt: str | None = None
    steps: int | None = None
    guidance: float | None = None
    image_guidance: float | None = None
    height: int | None = None
    width: int | None = None

    def given(self) -> dict[str, Any]:
        """Those that are not None."""
        values = {name: getattr(self, name) for name in _SETTINGS}
        return {name: value for name, value in values.items() if value is not None}


class Pipeline:
    """A loaded pipeline; the same prompt, seed and settings give the same image on the same machine.

    Attributes:
        name: Folder name, or `org/name`.
        content: Commit on the Hub, or SHA-256 over the folder's configuration and weights.
    """

    def __init__(self, pipeline: Any, task: Task, name: str, content: str, settings: Settings) -> None:
        """Checks that the pipeline can do the task and knows the settings.

        Raises:
            UserError: It cannot.
        """
        accepted = inspect.signature(pipeline.__call__).parameters
        kind = type(pipeline).__name__
        takes_image = "image" in accepted
        if "prompt" not in accepted or takes_image != (task == "edit"):
            does = (
                "edits images" if takes_image else "makes images from text" if "prompt" in accepted else "does neither"
            )
            wanted = "edits images" if task == "edit" else "makes images from text"
            raise UserError(f"model {name}: {kind} {does}; give one that {wanted}")
        for setting in settings.given():
            if _SETTINGS[setting] not in accepted:
                raise UserError(f"model {name}: {kind} knows no {setting.replace('_', ' ')}; leave it out")
        self._pipeline = pipeline
        self._kind = kind
        self._settings = settings
        self.name = name
        self.content = content

    def record(self) -> dict[str, Any]:
        """What an image depends on, besides prompt and seed."""
        return {
            "model": self.name,
            "content": self.content,
            "pipeline": self._kind,
            "dtype": str(self._pipeline.dtype).removeprefix("torch."),
            "diffusers": version("diffusers"),
            **self._settings.given(),
        }

    def __call__(self, prompt: str, seed: int, image: Image.Image | None = None) -> tuple[Image.Image, bool | None]:
        """Makes or edits one image.

        Args:
            prompt: What it should show, or what should change.
            seed: Of the noise, which is drawn on the CPU and so the same on every device.
            image: What is edited.

        Returns:
            The image, RGB, and whether the pipeline's own safety checker flagged it; None without one.

        Raises:
            UserError: The pipeline failed.
        """
        import torch

        call = {_SETTINGS[name]: value for name, value in self._settings.given().items()}
        if image is not None:
            call["image"] = image
        try:
            output = self._pipeline(prompt=prompt, generator=torch.Generator("cpu").manual_seed(seed), **call)
        except (ValueError, TypeError, RuntimeError) as error:
            raise UserError(f"model {self.name}: {self._kind} failed: {first_line(error)}") from error
        flags = getattr(output, "nsfw_content_detected", None)
        return output.images[0].convert("RGB"), None if flags is None else bool(flags[0])


def load_pipeline(
    spec: str,
    task: Task,
    settings: Settings | None = None,
    *,
    revision: str | None = None,
    device: str = "auto",
    dtype: str = "float32",
) -> Pipeline:
    """Loads a pipeline. Weights are safetensors only; code from a model's repository is never run.

    Args:
        spec: A folder that `save_pretrained` wrote, or `org/name[@revision]` on the Hub.
        task: What it has to do.
        settings: How it is called.
        revision: Branch, tag or commit on the Hub.
        device: `auto` (CUDA, else MPS, else CPU) or a torch device.
        dtype: `float32`, `bfloat16` or `float16`.

    Raises:
        UserError: diffusers is not installed, or the pipeline cannot be loaded or used; one line with the remedy.
    """
    require_diffusers()
    from diffusers import DiffusionPipeline

    from truegap.models.devices import loading, resolve_device, resolve_dtype
    from truegap.models.files import split_revision

    where, kind = resolve_device(device), resolve_dtype(dtype)
    place, revision = split_revision(spec, revision)
    folder = Path(place).expanduser()
    is_folder = folder.is_dir()
    if is_folder and revision is not None:
        raise UserError(f"model {spec}: a folder has no revision {revision}; leave it out")
    with loading(spec):
        if not is_folder:
            folder = _snapshot(spec, place, revision)
        _check(spec, folder)
        pipeline = DiffusionPipeline.from_pretrained(
            str(folder), dtype=kind, use_safetensors=True, trust_remote_code=False, local_files_only=True
        ).to(where)
    pipeline.set_progress_bar_config(disable=True)
    content = _content(folder) if is_folder else folder.name
    return Pipeline(pipeline, task, folder.resolve().name if is_folder else place, content, settings or Settings())


def quiet_diffusers() -> None:
    """Leaves the library its errors alone: what it flags is counted by the filter, and each line hides the progress."""
    from diffusers.utils import logging

    logging.set_verbosity_error()


def require_diffusers() -> None:
    """Refuses to go on without the libraries that generation needs.

    Raises:
        UserError: One is absent.
    """
    absent = [library for library in ("torch", "transformers", "diffusers") if find_spec(library) is None]
    if absent:
        raise UserError(
            f"generating images needs {', '.join(absent)}: pip install 'truegap[counterfactual]' "
            "(or put images that exist already into the folder, and go on with the next step)"
        )


def _snapshot(spec: str, repository: str, revision: str | None) -> Path:
    """The files that a pipeline is made of, at one commit: no other weights, and no code."""
    from truegap.hub.snapshots import is_repository, snapshot

    if not is_repository(repository):
        raise UserError(f"model {repository}: no such folder, and not a Hub id of the form org/name")
    first = snapshot(repository, revision, [_INDEX], kind="model")
    files = [_INDEX, *(f"{part}/{name}" for part in _parts(spec, first.folder) for name in _FILES)]
    return snapshot(repository, first.commit, files, kind="model").folder


def _parts(spec: str, folder: Path) -> list[str]:
    """The subfolders that a pipeline is made of."""
    index = folder / _INDEX
    try:
        parts: Any = json.loads(index.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"model {spec}: no {_INDEX} in {folder}; is it a diffusers pipeline?") from None
    except (OSError, ValueError, RecursionError):
        raise UserError(f"model {spec}: {index} cannot be read as JSON") from None
    if not isinstance(parts, Mapping) or not isinstance(parts.get("_class_name"), str):
        raise UserError(
            f"model {spec}: {_INDEX} names no pipeline class of diffusers itself; "
            "code from a model's repository is never run"
        )
    return [name for name, value in parts.items() if isinstance(value, list) and value[:1] != [None]]


def _check(spec: str, folder: Path) -> None:
    """Names what diffusers would refuse at length, or after long work."""
    for part in _parts(spec, folder):
        weights = [path for path in (folder / part).glob("*") if path.suffix in {".bin", ".pt", ".pth", ".ckpt"}]
        if weights and not any((folder / part).glob("*.safetensors")):
            raise UserError(
                f"model {spec}: {part}/{weights[0].name} is pickled, and pickle can run code; convert it to safetensors"
            )


def _content(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted({path for pattern in _HASHED for path in folder.rglob(pattern)}):
        if path.is_file():
            with path.open("rb") as file:
                name = path.relative_to(folder).as_posix()
                digest.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()
