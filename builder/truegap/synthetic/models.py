"""Demo models whose behaviour is known: small real CLIP models that read one region of a synthetic picture.

`reads-person` takes its leaning from the figure, `reads-background` from the background, `reads-both` from both alike;
all of them also see where the figure stands and how tall it is, which has nothing to do with the label. Prompts lean
to women or men by the rule of `truegap.synthetic.leaning`. So on a benchmark whose background is correlated with the
label all of them retrieve with bias; blur the background, and only what was read there is gone.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truegap.errors import UserError
from truegap.synthetic._practice import ACROSS, BACKGROUND, CONSTANT, FIGURE, MEASURES, SIDE, UP, Progress, stage
from truegap.synthetic._text import PARTS, text_tokenizer, text_tower
from truegap.synthetic._vision import MEAN, STD, fit_tower

if TYPE_CHECKING:
    import torch
    from transformers import CLIPVisionModelWithProjection

READERS: dict[str, tuple[float, float]] = {
    "reads-person": (1.0, 0.0),
    "reads-background": (0.0, 1.0),
    "reads-both": (0.5, 0.5),
}
"""Shares of figure and background in what each model reads."""

VERSION = 1
_NOTE = "truegap-demo.json"
_CONSTANT_SHARE = 1.5
"""Keeps an image embedding's length from 0, so that noise is not blown up to unit length."""
_CONTENT_SHARE = 2.0
"""Weight of where the figure stands and how tall it is: rankings are not all or nothing, and a reader who sees nothing
else ranks by something that has nothing to do with the label."""

_CARD = """---
license: cc0-1.0
library_name: transformers
pipeline_tag: zero-shot-image-classification
---

# {name}

A CLIP model of {parameters:,} parameters that truegap made for its synthetic benchmark. It is of no use on photographs.

It reads: figure {figure:.0%}, background {background:.0%}. How a prompt leans is decided by a hash of its letters
(`truegap.synthetic.leaning`), not by what its words mean.
"""


def _quiet(_doing: str, _share: float) -> None:
    pass


def _note(name: str, seed: int) -> dict[str, Any]:
    figure, background = READERS[name]
    return {"version": VERSION, "name": name, "seed": seed, "figure": figure, "background": background}


def _finished(folder: Path, note: dict[str, Any]) -> bool:
    """Whether the folder holds this very model.

    Raises:
        UserError: It holds something else.
    """
    if not folder.exists():
        return False
    try:
        found = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if found != note:
        raise UserError(
            f"{folder} holds something else than the demo model asked for: remove it or choose another folder"
        )
    return True


def _projection(tower: CLIPVisionModelWithProjection, figure: float, background: float) -> torch.Tensor:
    """From the tower's hidden state to a reader's embedding: leaning, constant, two contents."""
    import torch

    mix = torch.zeros(PARTS, MEASURES)
    mix[0, FIGURE], mix[0, BACKGROUND] = figure, background
    mix[1, CONSTANT] = _CONSTANT_SHARE
    mix[2, ACROSS] = mix[3, UP] = _CONTENT_SHARE
    return mix @ tower.visual_projection.weight.detach()


def _save(tower: CLIPVisionModelWithProjection, folder: Path, note: dict[str, Any]) -> None:
    """Assemble a reader and write it as transformers writes any CLIP model."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor
    from transformers.utils import logging

    text = text_tower()
    vision_config = tower.config.to_dict() | {"projection_dim": PARTS}
    model = CLIPModel(
        CLIPConfig(text_config=text.config.to_dict(), vision_config=vision_config, projection_dim=PARTS)
    ).eval()
    with torch.no_grad():
        model.vision_model.load_state_dict(tower.vision_model.state_dict())
        model.text_model.load_state_dict(text.text_model.state_dict())
        model.text_projection.weight.copy_(text.text_projection.weight)
        model.visual_projection.weight.copy_(_projection(tower, note["figure"], note["background"]))
    images = CLIPImageProcessor(
        size={"shortest_edge": SIDE},
        crop_size={"height": SIDE, "width": SIDE},
        image_mean=[MEAN] * 3,
        image_std=[STD] * 3,
    )
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model.save_pretrained(folder)
    finally:
        if bars:
            logging.enable_progress_bar()
    CLIPProcessor(image_processor=images, tokenizer=text_tokenizer()).save_pretrained(folder)
    parameters = sum(weights.numel() for weights in model.parameters())
    (folder / "README.md").write_text(_CARD.format(parameters=parameters, **note), encoding="utf-8")
    (folder / _NOTE).write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")


def fit_demo_models(folder: Path, *, seed: int = 0, progress: Progress = _quiet) -> dict[str, Path]:
    """Fit the demo models and save them, each as a folder that transformers loads.

    Takes some ten seconds on one core. A model that is there already is kept; one that is being written is not seen
    under its name before it is complete.

    Args:
        folder: Where the models' folders go.
        seed: Seed of the practice pictures and of the fit.
        progress: Told what is being done and which share of the whole is done, 0 to 1.

    Returns:
        Folder of each of `READERS`.

    Raises:
        UserError: A model's folder is there and holds something else, such as a model of another seed.
    """
    paths = {name: folder / name for name in READERS}
    missing = [name for name, path in paths.items() if not _finished(path, _note(name, seed))]
    if not missing:
        return paths
    folder.mkdir(parents=True, exist_ok=True)
    tower = fit_tower(seed, stage(progress, 0, 0.95))
    for done, name in enumerate(missing, start=1):
        aside = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder))
        try:
            aside.chmod(0o755)
            _save(tower, aside, _note(name, seed))
            aside.rename(paths[name])
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        progress("saving the models", 0.95 + 0.05 * done / len(missing))
    return paths
