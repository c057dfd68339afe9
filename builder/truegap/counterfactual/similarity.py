"""How similar occupations look and sound to a dual encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from truegap.counterfactual.marks import sha256
from truegap.counterfactual.occupations import Occupation
from truegap.counterfactual.pairs import Floats, Pair, candidates
from truegap.errors import UserError
from truegap.models.base import DualEncoder
from truegap.models.cache import EmbeddingCache

TEMPLATE = "a photo of a {occupation}"


def similar_pairs(
    occupations: Sequence[Occupation],
    images: Mapping[str, Sequence[Path]],
    model: DualEncoder,
    cache: EmbeddingCache,
    *,
    template: str = TEMPLATE,
    batch_size: int = 64,
    advance: Callable[[int], object] = lambda _images: None,
) -> list[Pair]:
    """All pairs of a male-dominated and a female-dominated occupation, with their similarities.

    Args:
        occupations: Of both kinds, with more than one candidate pair between them.
        images: Images of each occupation, of women and men alike.
        model: Embeds images and texts.
        cache: Keeps the embeddings of images.
        template: Text of an occupation, with `{occupation}`.
        batch_size: Images per forward pass.
        advance: Called with the number of images just embedded.

    Raises:
        UserError: An occupation has no images, or one of the kinds is missing.
    """
    if "{occupation}" not in template:
        raise UserError(f"text {template!r} lacks {{occupation}}")
    kinds = {gender: [each for each in occupations if each.dominated_by == gender] for gender in ("man", "woman")}
    if not all(kinds.values()):
        raise UserError("pairs need male-dominated and female-dominated occupations; the table has one kind only")
    bare = [each.name for each in occupations if not images.get(each.name)]
    if bare:
        raise UserError(f"{len(bare)} occupations have no image, such as {bare[0]!r}; generate them, or leave them out")
    both = [*kinds["man"], *kinds["woman"]]
    text = _unit(cache.embed_texts(model, [template.replace("{occupation}", each.name) for each in both]))
    image = _mean_features([images[each.name] for each in both], model, cache, batch_size, advance)
    men = len(kinds["man"])
    return candidates(kinds["man"], kinds["woman"], image[:men] @ image[men:].T, text[:men] @ text[men:].T)


def _mean_features(
    images: Sequence[Sequence[Path]],
    model: DualEncoder,
    cache: EmbeddingCache,
    batch_size: int,
    advance: Callable[[int], object],
) -> Floats:
    """The direction of the mean feature of each group of images, (n, d), rows of unit length."""
    items = ((sha256(path), path.read_bytes) for group in images for path in group)
    features = cache.embed_images(model, items, batch_size, advance).features
    starts = np.cumsum([0, *(len(group) for group in images)])[:-1]
    return _unit(np.add.reduceat(features.astype(np.float64), starts, axis=0))


def _unit(features: np.ndarray) -> Floats:
    rows = np.asarray(features, np.float64)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
