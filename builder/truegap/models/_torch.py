"""The part of a dual encoder that is the same for every PyTorch library."""

from __future__ import annotations

import gc
import hashlib
import importlib.metadata
import json
import platform
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from PIL import Image

from truegap.errors import UserError, first_line
from truegap.models._memory import is_out_of_memory
from truegap.models.base import DualEncoder, FloatArray
from truegap.results.records import Compute, ModelRecord

Tensors = Mapping[str, torch.Tensor]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
LIBRARIES = ("torch", "torchvision", "transformers", "tokenizers", "open_clip_torch", "timm", "bitsandbytes", "pillow")


class TorchDualEncoder(DualEncoder):
    """A dual encoder whose two towers are PyTorch modules.

    A subclass turns one image and a list of texts into tensors, and such tensors into features.
    """

    def __init__(self, model: torch.nn.Module, record: ModelRecord, device: torch.device, dtype: torch.dtype) -> None:
        """Put the model, loaded on the CPU, where it runs."""
        self._model: Any = place(model, record.name, device, dtype)
        self._record = record
        self._device = device
        self._dtype = dtype
        self.compute = describe_compute(self._model)

    def record(self) -> ModelRecord:
        """Which model this is."""
        return self._record

    @property
    def cache_key(self) -> str:
        """The model's content, the libraries that run it and the kind of device, all of which move the last bits."""
        return versioned_key(self._record.content, self._device)

    def image_features(self, inputs: Sequence[Tensors]) -> FloatArray:
        """Raw features of preprocessed images."""
        try:
            batch = {name: torch.cat([item[name] for item in inputs]) for name in inputs[0]}
        except RuntimeError as error:
            if "Sizes of tensors" not in str(error):
                raise
            raise UserError(
                f"model {self._record.name}: preprocessing leaves images of different sizes; "
                "its image processor must resize and crop to one size"
            ) from error
        return self._run(self._forward_images, batch, "images")

    def text_features(self, texts: Sequence[str]) -> FloatArray:
        """Raw features of texts."""
        with reading(self._record.name, "texts"):
            batch = self._tokenize(list(texts))
        return self._run(self._forward_texts, batch, "texts")

    def release_memory(self) -> None:
        """Free what a failed batch left on the device."""
        release_memory(self._device)

    def _run(self, forward: Any, batch: Tensors, what: str) -> FloatArray:
        with torch.inference_mode(), reading(self._record.name, what):
            features: torch.Tensor = forward({name: self._place(tensor) for name, tensor in batch.items()})
            return np.asarray(features.float().cpu().numpy(), dtype=np.float32)

    def _place(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self._device, self._dtype if tensor.is_floating_point() else None)

    @abstractmethod
    def preprocess(self, image: Image.Image) -> Tensors:
        """Tensors of one image, each with a first dimension of 1."""

    @abstractmethod
    def _tokenize(self, texts: list[str]) -> Tensors:
        """Tensors of a batch of texts."""

    @abstractmethod
    def _forward_images(self, batch: Tensors) -> torch.Tensor:
        """Features `(n, d)` of a batch on the device."""

    @abstractmethod
    def _forward_texts(self, batch: Tensors) -> torch.Tensor:
        """Features `(n, d)` of a batch on the device."""


def resolve_device(device: str) -> torch.device:
    """`auto` (CUDA, else Apple's MPS, else the CPU) or one of torch's device names.

    Raises:
        UserError: There is no such device here.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:  # torch asserts where it was built without CUDA
        raise UserError(f"device {device}: not usable here ({first_line(error)}); try auto or cpu") from error
    return chosen


def resolve_dtype(dtype: str) -> torch.dtype:
    """The torch type of a name.

    Raises:
        UserError: The name is unknown.
    """
    if dtype not in DTYPES:
        raise UserError(f"dtype {dtype}: unknown; one of {', '.join(DTYPES)}")
    return DTYPES[dtype]


def place(model: Any, name: str, device: torch.device, dtype: torch.dtype | None) -> Any:
    """A loaded model where it runs, in evaluation mode; in the types that it was loaded in where `dtype` is None.

    Raises:
        UserError: It does not fit there.
    """
    if device.type == "cuda" and dtype in {None, torch.float32}:
        torch.backends.cudnn.allow_tf32 = False  # else convolutions round float32 to 10 bits
    try:
        return model.to(device=device, dtype=dtype).eval()
    except RuntimeError as error:
        kind = f" in {dtype}" if dtype else ""
        raise UserError(f"model {name}: does not fit on {device}{kind}: {first_line(error)}") from error


def release_memory(device: torch.device) -> None:
    """Free what a failed batch left on a device."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def versioned_key(content: str, device: torch.device) -> str:
    """A model's content, the libraries that run it and the kind of device, all of which move the last bits."""
    versions = {name: _version(name) for name in LIBRARIES}
    return hashlib.sha256(_json([content, versions, device.type])).hexdigest()


def describe_compute(model: torch.nn.Module) -> Compute:
    """Where a model's weights are, and in which type."""
    weights = next(model.parameters())
    device = weights.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return Compute(device=str(device), device_name=name, dtype=str(weights.dtype).removeprefix("torch."))


def content_hash(model: torch.nn.Module, description: Mapping[str, Any]) -> str:
    """SHA-256 over the weights, in the type in which they run, and a description of everything before and around."""
    digest = hashlib.sha256(_json(description))
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(_json([name, str(tensor.dtype), list(tensor.shape)]))
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def describe_tokenizer(tokenizer: Any) -> dict[str, Any]:
    """Whatever decides how a transformers tokenizer turns text into ids."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return {
        "class": type(tokenizer).__name__,
        "vocabulary": tokenizer.get_vocab() if backend is None else backend.to_str(),
        "special": {name: str(token) for name, token in tokenizer.special_tokens_map.items()},
        "limit": tokenizer.model_max_length,
        "padding": tokenizer.padding_side,
        "inputs": list(tokenizer.model_input_names),
    }


def count_parameters(model: torch.nn.Module) -> int:
    """Numbers that training could change."""
    return sum(parameter.numel() for parameter in model.parameters())


@contextmanager
def loading(spec: str) -> Iterator[None]:
    """Turn whatever a library raises over a broken model into one line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if "trust_remote_code" in str(error):
            raise UserError(
                f"model {spec}: needs Python code from its own repository, which is never run; "
                "wrap it as a plug-in (entry point group truegap.models)"
            ) from error
        if "Weights only load failed" in str(error):
            raise UserError(
                f"model {spec}: its pickled weights hold more than tensors, which is never unpickled; "
                "convert them to safetensors"
            ) from error
        if "ignore_mismatched_sizes" in str(error):
            raise UserError(f"model {spec}: its weights have other shapes than its config.json says") from error
        raise UserError(f"model {spec}: cannot be loaded: {first_line(error)}") from error


@contextmanager
def reading(name: str, what: str) -> Iterator[None]:
    """Turn what a library raises over a model whose parts do not fit together into one line; no memory stays that."""
    try:
        yield
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if is_out_of_memory(error):
            raise
        raise UserError(
            f"model {name}: fails over {what} ({type(error).__name__}: {first_line(error)}); "
            "its files may not belong together"
        ) from error


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
