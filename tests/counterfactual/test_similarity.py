from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from truegap.counterfactual import Occupation, combined
from truegap.counterfactual.similarity import similar_pairs
from truegap.errors import UserError
from truegap.models import EmbeddingCache, load_model

TABLE = [Occupation("Baker", 60), Occupation("Chef", 20), Occupation("Actor", 50), Occupation("Pilot", 9)]


@pytest.fixture(scope="module")
def encoder(clip_folder):
    return load_model(str(clip_folder), device="cpu")


@pytest.fixture
def images(tmp_path, put):
    """One image of the first occupation, two of the second and so on."""
    return {
        each.name: [put(tmp_path / each.name / f"{n}.png", 10 * i + n) for n in range(i + 1)]
        for i, each in enumerate(TABLE)
    }


@pytest.fixture
def cache(tmp_path):
    with EmbeddingCache(tmp_path / "cache.sqlite") as opened:
        yield opened


def test_similarities_are_cosines_of_texts_and_of_mean_images(encoder, images, cache):
    found = similar_pairs(TABLE, images, encoder, cache, template="the {occupation}")
    assert [each.names for each in found] == [
        ("Chef", "Baker"),
        ("Chef", "Actor"),
        ("Pilot", "Baker"),
        ("Pilot", "Actor"),
    ]
    for each in found:
        text = encoder.encode_texts([f"the {name}" for name in each.names])
        mean = [encoder.encode_images([Image.open(path) for path in images[name]]).mean(axis=0) for name in each.names]
        assert each.text_similarity == pytest.approx(float(text[0] @ text[1]), abs=1e-5)
        cosine = mean[0] @ mean[1] / np.linalg.norm(mean[0]) / np.linalg.norm(mean[1])
        assert each.image_similarity == pytest.approx(float(cosine), abs=1e-5)
    both = combined([each.image_similarity for each in found], [each.text_similarity for each in found])
    assert [each.similarity for each in found] == pytest.approx(both.tolist())


def test_what_is_missing_is_named(encoder, images, cache):
    with pytest.raises(UserError, match="1 occupations have no image, such as 'Pilot'"):
        similar_pairs(TABLE, images | {"Pilot": []}, encoder, cache)
    with pytest.raises(UserError, match="one kind only"):
        similar_pairs(TABLE[:1], images, encoder, cache)
    with pytest.raises(UserError, match=r"lacks \{occupation\}"):
        similar_pairs(TABLE, images, encoder, cache, template="a photo")
    with pytest.raises(UserError, match="give more occupations"):
        similar_pairs(TABLE[:2], images, encoder, cache)
