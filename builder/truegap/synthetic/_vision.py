"""The demo models' image tower: a small CLIP vision transformer that measures the figure and the background.

Patches are taken apart into cosines, the first layer's MLP judges each patch (is it figure or background, which
pattern has it), the second layer's attention averages the judgements, the projection turns them into measures. Only
the MLP and the projection are fitted; everything else is constructed: uniform attentions, normalisations that give
back about what they get.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truegap.synthetic._practice import (
    ACROSS,
    BACKGROUND,
    BLURRED,
    LIT,
    MEASURES,
    PATCH,
    SHARP,
    SIDE,
    UP,
    Practice,
    Progress,
    places,
    practice,
    stage,
)

if TYPE_CHECKING:
    import torch
    from transformers import CLIPVisionModelWithProjection

MEAN, STD = 0.5, 0.25
"""The image processor's, the same for the three channels."""

_COSINES = slice(0, 64)
_PLACE = slice(64, 66)
_PLUS, _MINUS = 66, 67
_JUDGEMENTS = slice(68, 74)
_WIDTH = 80
"""The hidden state: what each of its places holds, and how many there are (the rest is 0)."""
_LEVEL = 20.0
"""Held in `_PLUS` and, negative, in `_MINUS`: far above all else, so that layer normalisation is nearly linear."""

_SCENES = 700
_SOLVED = 200
"""How many of the scenes the projection is solved on: it has few unknowns."""
_BY_PATCH = {"rounds": 6, "batch": 512, "rate": 3e-3}
_BY_PICTURE = {"rounds": 15, "batch": 16, "rate": 3e-3}
_STEADY = 5.0
"""Weight of what must not change from view to view."""


def _cosines() -> NDArray[np.float32]:
    """The lowest two-dimensional cosines of a patch's brightness, `(64, 3, patch, patch)`."""
    at = (np.arange(PATCH) + 0.5) * np.pi / PATCH
    order = sorted(product(range(PATCH), repeat=2), key=lambda f: (f[0] ** 2 + f[1] ** 2, f))
    waves = np.stack([np.outer(np.cos(at * a), np.cos(at * b)) for a, b in order[: _COSINES.stop]])
    waves /= 3 * np.linalg.norm(waves, axis=(1, 2), keepdims=True)
    waves[0] *= 0.3  # a patch's mean brightness says nothing of its texture
    return np.repeat(waves[:, None] / 3, 3, axis=1).astype(np.float32)


def _constructed() -> CLIPVisionModelWithProjection:
    """The tower before it is fitted."""
    import torch
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

    tower: CLIPVisionModelWithProjection = CLIPVisionModelWithProjection(
        CLIPVisionConfig(
            hidden_size=_WIDTH,
            intermediate_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=SIDE,
            patch_size=PATCH,
            projection_dim=MEASURES,
            hidden_act="relu",
        )
    ).eval()
    kept = torch.arange(_JUDGEMENTS.start, _JUDGEMENTS.stop)
    with torch.no_grad():
        for name, weights in tower.named_parameters():
            norm = re.search(r"la?ye?r_?norm\d?\.weight$", name)
            weights.fill_(_LEVEL * (2 / _WIDTH) ** 0.5 if norm else 0.0)
        look = tower.vision_model.embeddings
        look.patch_embedding.weight[_COSINES] = torch.from_numpy(_cosines())
        look.position_embedding.weight[1:, _PLACE] = torch.from_numpy(places())
        look.position_embedding.weight[:, _PLUS] = _LEVEL
        look.position_embedding.weight[:, _MINUS] = -_LEVEL
        average = tower.vision_model.encoder.layers[1].self_attn
        average.v_proj.weight[kept, kept] = 1.0
        average.out_proj.weight[kept, kept] = 1.0
    return tower


def _pixels(images: NDArray[np.uint8]) -> torch.Tensor:
    import torch

    return (torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255 - MEAN) / STD


def _known(tower: CLIPVisionModelWithProjection, images: NDArray[np.uint8]) -> torch.Tensor:
    """What the first layer's MLP is given: `(n, 3, patches, cosines and place)`."""
    import torch

    look, norm = tower.vision_model.embeddings, tower.vision_model.encoder.layers[0].layer_norm2
    with torch.no_grad():
        seen = [norm(tower.vision_model.pre_layrnorm(look(_pixels(views))))[:, 1:, : _PLACE.stop] for views in images]
    return torch.stack(seen)


def _descend(
    parts: list[torch.nn.Module],
    size: int,
    how: dict[str, float],
    loss: Callable[[torch.Tensor], torch.Tensor],
    step_done: Callable[[float], None],
) -> None:
    """Adam on a one-cycle schedule over shuffled rows 0 ... size - 1."""
    import torch

    batches = size // int(how["batch"])
    steps = int(how["rounds"]) * batches
    adam = torch.optim.Adam([weights for part in parts for weights in part.parameters()], lr=how["rate"])
    schedule = torch.optim.lr_scheduler.OneCycleLR(adam, how["rate"], total_steps=steps, pct_start=0.15)
    for done in range(0, steps, batches):
        for rows in torch.randperm(size)[: batches * int(how["batch"])].split(int(how["batch"])):
            adam.zero_grad()
            loss(rows).backward()
            adam.step()
            schedule.step()
        step_done((done + batches) / steps)


def _fit(tower: CLIPVisionModelWithProjection, data: Practice, progress: Progress) -> tuple[torch.nn.Module, ...]:
    """Fit the MLP patch by patch, then it and a linear head picture by picture, steady over the views."""
    import torch
    from torch.nn.functional import mse_loss

    known = _known(tower, data.images)
    patches, measures = torch.from_numpy(data.patches), torch.from_numpy(data.measures)
    hidden = tower.config.intermediate_size
    judge = torch.nn.Sequential(
        torch.nn.Linear(known.shape[-1], hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, patches.shape[-1])
    )
    rows, wanted = known.flatten(0, 2), patches.flatten(0, 2)
    _descend(
        [judge],
        len(rows),
        _BY_PATCH,
        lambda some: mse_loss(judge(rows[some]), wanted[some]),
        lambda share: progress("fitting the image tower", share / 2),
    )

    head = torch.nn.Linear(patches.shape[-1], MEASURES)
    with torch.no_grad():
        means = judge(known).mean(2).flatten(0, 1).double()
        means = torch.cat([means, torch.ones(len(means), 1)], dim=1)
        solved = torch.linalg.lstsq(means, measures.flatten(0, 1).double()).solution.float()
        head.weight.copy_(solved[:-1].T)
        head.bias.copy_(solved[-1])
    still = [measure for measure in range(MEASURES) if measure != BACKGROUND]

    def loss(some: torch.Tensor) -> torch.Tensor:
        said = head(judge(known[some]).mean(2))
        light = mse_loss(said[:, LIT], said[:, SHARP])
        blur = mse_loss(said[:, BLURRED, still], said[:, SHARP, still])
        return mse_loss(said, measures[some]) + _STEADY * (light + blur)

    _descend(
        [judge, head], len(known), _BY_PICTURE, loss, lambda share: progress("fitting the image tower", 0.5 + share / 2)
    )
    return judge[0], judge[2], head


def _install(tower: CLIPVisionModelWithProjection, parts: tuple[torch.nn.Module, ...], data: Practice) -> None:
    """Write the fitted MLP into the tower, and the projection that gives what the head said."""
    import torch

    first, second, head = parts
    mlp = tower.vision_model.encoder.layers[0].mlp
    images = data.images[:_SOLVED]
    used = [_PLUS, *range(_JUDGEMENTS.start, _JUDGEMENTS.stop)]
    with torch.no_grad():
        mlp.fc1.weight[:, : _PLACE.stop] = first.weight
        mlp.fc1.bias.copy_(first.bias)
        mlp.fc2.weight[_JUDGEMENTS] = second.weight
        mlp.fc2.bias[_JUDGEMENTS] = second.bias
        # The average is over the class token as well and passes two normalisations: least squares undoes it.
        state = torch.cat([tower.vision_model(pixel_values=_pixels(views)).pooler_output for views in images])
        said = head(second(torch.relu(first(_known(tower, images)))).mean(2)).flatten(0, 1)
        for content in (ACROSS, UP):  # asking for steadiness has shrunk them
            said[:, content] /= said[:, content].std()
        solved = torch.linalg.lstsq(state[:, used].double(), said.double()).solution
        tower.visual_projection.weight[:, used] = solved.T.float()


def fit_tower(seed: int, progress: Progress) -> CLIPVisionModelWithProjection:
    """A tower whose image embedding is its `MEASURES` measures; some fifteen seconds on one core."""
    import torch

    data = practice(_SCENES, seed, stage(progress, 0, 0.4))
    tower = _constructed()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the batches are small: threads cost more than they bring
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            _install(tower, _fit(tower, data, stage(progress, 0.4, 1)), data)
    finally:
        torch.set_num_threads(threads)
    return tower
