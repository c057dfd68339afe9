"""From what a user types to a loaded model; other people's models come in by entry point.

A plug-in is a function, named by an entry point of the group `truegap.models`. In the plug-in's `pyproject.toml`:

    [project.entry-points."truegap.models"]
    slip = "my_package.slip:load"

and in `my_package/slip.py`, with a class that gives `record`, `preprocess`, `image_features` and `text_features`:

    from truegap.models import DualEncoder

    class Slip(DualEncoder): ...

    def load(name, *, revision, device, dtype, unsafe_weights):
        return Slip(name, device)

Then `slip:vit-large` is a model wherever one is asked for: the function gets what follows the colon. A model that
answers questions is a `GenerativeModel`, with `record`, `answer` and `prompt`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from truegap.errors import UserError, first_line
from truegap.hub.snapshots import is_repository, split_revision
from truegap.models.base import DualEncoder
from truegap.models.generative import GenerativeModel

GROUP = "truegap.models"
SCHEME = re.compile(r"([A-Za-z][\w-]+):(.+)", re.DOTALL)
FORMS = (
    "open_clip:ARCHITECTURE/TAG",
    "open_clip:ARCHITECTURE//PATH/weights.safetensors",
    "hf-hub:ORG/NAME[@REVISION] (open_clip)",
    "local-dir:FOLDER (open_clip)",
    "ORG/NAME[@REVISION] (transformers)",
    "a FOLDER of either library",
    "endpoint:URL#MODEL, endpoint:FILE.yaml (an OpenAI-compatible server)",
    "baseline:NAME",
    "reference:NAME (reads known regions of synthetic pictures)",
)


def load_model(
    spec: str,
    *,
    revision: str | None = None,
    device: str = "auto",
    dtype: str = "float32",
    unsafe_weights: bool = False,
    device_map: str | None = None,
    quantization: str | None = None,
) -> DualEncoder | GenerativeModel:
    """Load a model: a dual encoder, or one that answers questions, as its files say.

    Code from a model's repository is never run. Weights are safetensors unless `unsafe_weights`.

    Args:
        spec: `open_clip:ViT-B-32/laion2b_s34b_b79k` (architecture and pretrained tag),
            `open_clip:ViT-B-32//data/w.safetensors` (architecture and the checkpoint `/data/w.safetensors`),
            `hf-hub:org/name` or `local-dir:FOLDER` (saved by open_clip), `org/name` (transformers on the Hub), a
            folder that either library saved, `endpoint:URL#MODEL` or `endpoint:FILE.yaml` (a server, see
            `truegap.models.endpoint`), `baseline:NAME` (see `truegap.models.baselines`), `reference:NAME` (see
            `truegap.synthetic.reference`), or `PLUGIN:…`. Hub names may end in `@revision`. `transformers:` before a
            folder or Hub name says which library, where a folder fits both.
        revision: Branch, tag or commit on the Hub.
        device: `auto` (CUDA, else MPS, else CPU) or a torch device such as `cuda:1`.
        dtype: `float32`, `bfloat16` or `float16`.
        unsafe_weights: Read pickled weights too, with torch's `weights_only`.
        device_map: Spread a generative model over devices, such as `auto` (with accelerate, in place of `device`).
        quantization: `4bit` or `8bit`, of a generative model (with bitsandbytes).

    Raises:
        UserError: The spec is unknown, or the model cannot be loaded; one line with the remedy.
    """
    library, identifier = _resolve(spec)
    given: dict[str, Any] = {
        "revision": revision,
        "device": device,
        "dtype": dtype,
        "unsafe_weights": unsafe_weights,
    }
    large: dict[str, Any] = {
        name: value
        for name, value in {"device_map": device_map, "quantization": quantization}.items()
        if value is not None
    }
    if isinstance(library, EntryPoint):
        return _from_plugin(library, identifier, spec, **given, **large)
    if library == "endpoint":
        from truegap.models.endpoint import load as load_endpoint

        return load_endpoint(identifier, spec=spec, revision=revision)
    if library == "baseline":
        from truegap.models.baselines import load as load_baseline

        return load_baseline(identifier, spec=spec, inner=partial(load_model, **given, **large))
    if library == "reference":
        from truegap.synthetic.reference import load as load_reference

        return load_reference(identifier, spec=spec)
    try:
        return _from_weights(library, identifier, spec, given, large)
    except ImportError as error:
        raise UserError(f"model {spec}: {first_line(error)}; install with `pip install 'truegap[models]'`") from error


def load_dual_encoder(
    spec: str,
    *,
    revision: str | None = None,
    device: str = "auto",
    dtype: str = "float32",
    unsafe_weights: bool = False,
) -> DualEncoder:
    """Load a model that maps images and texts to vectors; arguments and errors as of `load_model`.

    Raises:
        UserError: It answers questions instead.
    """
    model = load_model(spec, revision=revision, device=device, dtype=dtype, unsafe_weights=unsafe_weights)
    if not isinstance(model, DualEncoder):
        raise UserError(
            f"model {spec}: answers questions about images ({model.record().kind}); here a dual encoder such as CLIP "
            "is needed, whose vectors can be compared"
        )
    return model


def plugins() -> dict[str, EntryPoint]:
    """The plug-ins that are installed, by the name that goes before the colon."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _resolve(spec: str) -> tuple[str | EntryPoint, str]:
    """Which library or plug-in loads a spec, and what it is given."""
    scheme = SCHEME.fullmatch(spec)
    if scheme:
        name, rest = scheme.groups()
        if name in {"open_clip", "transformers", "endpoint", "baseline", "reference"}:
            return name, rest
        if name in {"hf-hub", "local-dir"}:
            return "open_clip", spec
        if name in plugins():
            return plugins()[name], rest
    folder = Path(spec).expanduser()
    if spec and folder.is_dir():
        saved_by_open_clip = (folder / "open_clip_config.json").is_file() and not (folder / "config.json").is_file()
        return ("open_clip", f"local-dir:{spec}") if saved_by_open_clip else ("transformers", spec)
    if is_repository(split_revision(spec)[0]):
        return "transformers", spec
    accepted = [*FORMS, *(f"{name}:… (plug-in)" for name in sorted(plugins()))]
    raise UserError(f"model {spec!r}: neither a folder here nor a known form; accepted: {', '.join(accepted)}")


def _from_weights(
    library: str, identifier: str, spec: str, given: Mapping[str, Any], large: Mapping[str, Any]
) -> DualEncoder | GenerativeModel:
    if library == "open_clip":
        _refuse(spec, large)
        from truegap.models.dual_open_clip import load as load_open_clip

        return load_open_clip(identifier, spec=spec, **given)
    from truegap.models._torch import resolve_device, resolve_dtype
    from truegap.models._transformers import kind_of

    # A misspelt one should not cost a download.
    resolve_device(given["device"])
    resolve_dtype(given["dtype"])
    if kind_of(identifier, spec, given["revision"]) == "generative":
        from truegap.models.generative_transformers import load as load_generative

        return load_generative(identifier, spec=spec, **given, **large)
    _refuse(spec, large)
    from truegap.models.dual_transformers import load as load_dual

    return load_dual(identifier, spec=spec, **given)


def _refuse(spec: str, large: Mapping[str, str]) -> None:
    """Options of large models, given for a dual encoder."""
    if large:
        raise UserError(f"model {spec}: is a dual encoder, and takes no {' and no '.join(large)}")


def _from_plugin(
    entry: EntryPoint, identifier: str, spec: str, **options: str | bool | None
) -> DualEncoder | GenerativeModel:
    try:
        model = entry.load()(identifier, **options)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"model {spec}: plug-in {entry.name} ({entry.value}) failed: {first_line(error)}") from error
    if not isinstance(model, (DualEncoder, GenerativeModel)):
        raise UserError(
            f"model {spec}: plug-in {entry.name} ({entry.value}) gave {type(model).__name__}, "
            "not a DualEncoder or GenerativeModel"
        )
    return model
