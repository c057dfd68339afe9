"""Families that come through open_clip: the library's own similarities are the reference."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import open_clip
import pytest
import torch

from tiny_open_clip import FAMILIES, save
from truegap.models import BATCH_TOLERANCE, DualEncoder, load_model


class Family(NamedTuple):
    encoder: DualEncoder
    model: torch.nn.Module
    transform: object
    tokenizer: object


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, save_word_tokenizer, tmp_path_factory) -> Family:
    """A family's tiny model, loaded as a user would, and open_clip's own objects from the same folder."""
    folder: Path = tmp_path_factory.mktemp("open-clip") / request.param
    folder.mkdir()
    save_word_tokenizer(folder)
    name = f"local-dir:{save(request.param, folder)}"
    model, _, transform = open_clip.create_model_and_transforms(name)
    return Family(load_model(str(folder), device="cpu"), model.eval(), transform, open_clip.get_tokenizer(name))


def test_similarities_are_those_of_the_librarys_own_forward(family, pictures, prompts):
    # Given the features that open_clip's own forward compares, of as many images as texts
    images = pictures[: len(prompts)]
    with torch.no_grad():
        output = family.model(torch.stack([family.transform(i) for i in images]), family.tokenizer(prompts))
    of_images, of_texts = (
        (output["image_features"], output["text_features"]) if isinstance(output, dict) else output[:2]
    )
    expected = (of_images @ of_texts.T).numpy()

    similarities = family.encoder.encode_images(images) @ family.encoder.encode_texts(prompts).T

    np.testing.assert_allclose(similarities, expected, atol=BATCH_TOLERANCE)
    assert min(expected.std(axis=0).max(), expected.std(axis=1).max()) > 20 * BATCH_TOLERANCE  # or it would say nothing
    assert family.encoder.record().adapter == "open_clip"


def test_batch_size_changes_nothing(family, pictures, prompts):
    encode, read = family.encoder.encode_images, family.encoder.encode_texts

    assert np.abs(encode(pictures, batch_size=1) - encode(pictures, batch_size=7)).max() <= BATCH_TOLERANCE
    assert np.abs(read(prompts, batch_size=1) - read(prompts, batch_size=5)).max() <= BATCH_TOLERANCE
