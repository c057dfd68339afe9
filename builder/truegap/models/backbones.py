"""Image backbones of timm: frozen, as makers of features, or new with a head for two classes, to be trained."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import timm
import torch
from numpy.typing import NDArray
from PIL import Image

from truegap.errors import UserError
from truegap.models._memory import in_halves
from truegap.models._pipeline import ahead
from truegap.models._torch import (
    content_hash,
    count_parameters,
    describe_compute,
    loading,
    place,
    release_memory,
    resolve_device,
    resolve_dtype,
    versioned_key,
)
from truegap.models.base import FloatArray
from truegap.models.files import SAFE, find_weights, locate
from truegap.resources import cache_folder

DEFAULT = "convnext_base"
_SETTINGS = ("input_size", "mean", "std", "num_classes")
"""What is taken of the settings of a saved folder."""
_BLOCK = 1 << 24
WEIGHTS = tuple(f"*{end}" for end in SAFE)


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How a network is made anew, as often as there are seeds."""

    name: str
    options: dict[str, Any]
    pretrained: bool

    def network(self, classes: int) -> Any:
        """A network on the CPU, its random weights from torch's random state."""
        return timm.create_model(self.name, pretrained=self.pretrained, num_classes=classes, **self.options)


class Backbone:
    """A timm network.

    Its pictures are squashed to its input size, not cropped: what a crop would cut off is background.

    Attributes:
        name: In timm, or of the folder.
        content: SHA-256 over its weights (without head) and its preprocessing.
        revision: Commit on the Hub, where its weights came from there.
        pretrained: Whether its weights were trained before; else they are random, of seed 0.
        parameters: How many, without head.
        side: Of its input in pixels.
        device: Where it runs.
        dtype: Of its activations.
        compute: The same for a record.
    """

    def __init__(
        self, recipe: _Recipe, *, side: int | None, revision: str | None, device: torch.device, dtype: torch.dtype
    ) -> None:
        """Makes the network without head."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            network = recipe.network(0)
        settings = network.pretrained_cfg
        self._recipe = recipe
        self.name = Path(recipe.name.removeprefix("local-dir:")).name
        self.pretrained, self.revision = recipe.pretrained, revision
        self.side = side or int(settings["input_size"][1])
        self._mean, self._deviation = ([255 * each for each in settings[key]] for key in ("mean", "std"))
        self.content = content_hash(
            network,
            {"timm": recipe.name, "side": self.side, "mean": self._mean, "std": self._deviation, "resize": "bicubic"},
        )
        self.parameters = count_parameters(network)
        self.device, self.dtype = device, dtype
        self._network = place(network, self.name, device, torch.float32)
        self.compute = describe_compute(self._network).model_copy(update={"dtype": str(dtype).removeprefix("torch.")})
        self._limit: int | None = None

    @property
    def cache_key(self) -> str:
        """What decides its features: content, libraries, kind of device and numbers."""
        return versioned_key(f"{self.content} {self.dtype}", self.device)

    def preprocess(self, image: Image.Image) -> NDArray[np.uint8]:
        """The picture as it is stored: `(side, side, 3)`."""
        return np.asarray(image.resize((self.side, self.side), Image.Resampling.BICUBIC))

    def encode_preprocessed(self, inputs: Sequence[NDArray[np.uint8]]) -> FloatArray:
        """Pooled features `(n, d)` of the frozen network, as they are.

        Raises:
            UserError: One is NaN or infinite, or one picture alone does not fit into memory.
        """
        release = lambda: release_memory(self.device)  # noqa: E731
        parts, self._limit = in_halves(self._features, inputs, self._limit, model=self.name, release=release)
        features = np.concatenate(parts)
        if not np.isfinite(features).all():
            raise UserError(f"backbone {self.name}: features are NaN or infinite; use --dtype float32")
        return features

    @torch.inference_mode()
    def _features(self, inputs: Sequence[NDArray[np.uint8]]) -> FloatArray:
        batch = self.ready(torch.from_numpy(np.stack(inputs)).to(self.device))
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            features: torch.Tensor = self._network(batch)
        return np.asarray(features.float().cpu().numpy(), np.float32)

    def ready(self, stored: torch.Tensor) -> torch.Tensor:
        """Stored pictures `(n, side, side, 3)` as the network takes them."""
        mean, deviation = (torch.tensor(each, device=stored.device) for each in (self._mean, self._deviation))
        return ((stored.float() - mean) / deviation).permute(0, 3, 1, 2).contiguous()

    def stored(
        self, pictures: Sequence[Callable[[], Image.Image]], advance: Callable[[int], object] = lambda _: None
    ) -> NDArray[np.uint8]:
        """Preprocessed pictures `(n, side, side, 3)` for training, in a file that goes with the array.

        Args:
            pictures: Each gives one, called in a thread.
            advance: Called with 1 per picture.

        Raises:
            UserError: The disk has no room for them.
        """
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        threads = min(8, os.cpu_count() or 1)
        shape = (len(pictures), self.side, self.side, 3)
        # The file has no name: whatever ends this process frees it.
        with tempfile.TemporaryFile(dir=folder) as file:
            try:
                _fill(file, math.prod(shape))
            except OSError as error:
                raise UserError(
                    f"{folder}: no room for {math.prod(shape) / 1e9:.3g} GB of pictures ({error.strerror}); set "
                    "TRUEGAP_CACHE to a folder that has it, or give a smaller --side"
                ) from error
            kept: NDArray[np.uint8] = np.memmap(file, np.uint8, "r+", shape=shape)
        with ahead(lambda picture: self.preprocess(picture()), pictures, threads, window=4 * threads) as made:
            for place, each in enumerate(made):
                kept[place] = each
                advance(1)
        return kept

    def classifier(self) -> torch.nn.Module:
        """The network on the CPU with a new head for two classes, from torch's random state."""
        network: torch.nn.Module = self._recipe.network(2)
        return network


def _fill(file: IO[bytes], size: int) -> None:
    """Takes the room that a file will need: writing to a mapped one on a full disk would end the process.

    Raises:
        OSError: There is none.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    left = size
    while left:
        left -= os.write(file.fileno(), bytes(min(_BLOCK, left)))


def load_backbone(
    name: str = DEFAULT,
    *,
    pretrained: bool = True,
    side: int | None = None,
    device: str = "auto",
    dtype: str = "float32",
) -> Backbone:
    """Loads a timm network; pickled weights are never read.

    Args:
        name: A name in timm, such as `convnext_base` or `resnet50.a1_in1k`, or a folder that timm saved.
        pretrained: Whether with its weights, which timm's repository on the Hub or the folder has; else random ones.
        side: Of its input in pixels; its own if None.
        device: `auto` or a torch device.
        dtype: Of the activations: `float32`, `bfloat16` or `float16`.

    Raises:
        UserError: timm does not know the name, or the weights are not at hand.
    """
    where, kind = resolve_device(device), resolve_dtype(dtype)
    if side is not None and side < 1:
        raise UserError(f"--side {side}: give a number of pixels")
    folder = Path(name).expanduser()
    given, options, revision = name, dict[str, Any](), None
    if folder.is_dir():
        settings = _folder_settings(name, folder)
        given = settings["architecture"]
        overlay = {key: settings["pretrained_cfg"][key] for key in _SETTINGS}
        if pretrained:
            overlay["file"] = str(find_weights(name, folder, WEIGHTS, unsafe=False))
        options = {"pretrained_cfg_overlay": overlay}
    elif not timm.is_model(name) or (known := timm.get_pretrained_cfg(name)) is None:
        near = ", ".join(timm.list_models(f"*{name[:6]}*")[:4])
        hint = f"near it are {near}" if near else "see timm.list_models()"
        raise UserError(f"--backbone {name}: neither a name in timm nor a folder that timm saved; {hint}")
    elif pretrained:
        if not known.hf_hub_id:
            raise UserError(f"--backbone {name}: timm names no weights for it on the Hub; use --no-pretrained")
        try:
            files = locate(known.hf_hub_id, None, WEIGHTS)
        except UserError as error:
            raise UserError(f"{error}; or start from random weights with --no-pretrained") from None
        revision = files.commit
        options = {"pretrained_cfg_overlay": {"file": str(find_weights(name, files.folder, WEIGHTS, unsafe=False))}}
    if side is not None and timm.get_pretrained_cfg(given).fixed_input_size:
        options["img_size"] = side
    with loading(f"--backbone {name}"):
        backbone = Backbone(_Recipe(given, options, pretrained), side=side, revision=revision, device=where, dtype=kind)
    backbone.name = folder.name if folder.is_dir() else name
    return backbone


def _folder_settings(name: str, folder: Path) -> dict[str, Any]:
    """What timm's `config.json` says."""
    try:
        settings = json.loads((folder / "config.json").read_bytes())
        known = settings["pretrained_cfg"]
        if (
            timm.is_model(settings["architecture"])
            and known["input_size"][1]
            and all(key in known for key in _SETTINGS)
        ):
            found: dict[str, Any] = settings
            return found
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise UserError(f"--backbone {name}: no folder that timm saved (its config.json names no architecture)")
