"""The demo models read what their names say, through plain transformers."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image, ImageFilter

from truegap.errors import UserError
from truegap.regions import masks
from truegap.synthetic import READERS, fit_demo_models, leaning, selection
from truegap.synthetic._text import text_embedding

pytestmark = pytest.mark.slow

WORDS = [
    "kind",
    "successful",
    "criminal",
    "honest",
    "smart",
    "evil",
    "poor",
    "lazy",
    "caring",
    "heroic",
    "nurse",
    "plumber",
    "engineer",
    "florist",
    "pilot",
    "judge",
    "vet",
    "chef",
    "DJ",
    "biologist",
    "receptionist",
    "carpenter",
    "astronaut",
    "interpreter",
]
PROMPTS = [f"This is a photo of a {word} person" for word in WORDS]


@pytest.fixture(scope="module")
def fitted(demo_models):
    heard = json.loads(demo_models.with_suffix(".json").read_text())
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert list(dict.fromkeys(doing for doing, _ in heard)) == [
        "drawing practice pictures",
        "fitting the image tower",
        "saving the models",
    ]
    return {name: demo_models / name for name in READERS}


@pytest.fixture(scope="module")
def benchmark():
    """Pictures whose background is typical in nine cases of ten: as they are, re-encoded, with blurred background."""
    chosen = selection(240, seed=21, rho={"background": 0.8})
    views = {"original": [], "control": [], "background": []}
    for one in chosen.examples:
        picture = Image.open(io.BytesIO(one.image.read())).convert("RGB")
        views["original"].append(picture)
        again = io.BytesIO()
        picture.save(again, "JPEG", quality=95, subsampling=0)
        views["control"].append(Image.open(again))
        blurred = picture.filter(ImageFilter.GaussianBlur(25))
        person = Image.fromarray(masks.decode(one.persons[0].mask, one.size).astype(np.uint8) * 255)
        blurred.paste(picture, mask=person)
        views["background"].append(blurred)
    return views, np.array([one.gender == "man" for one in chosen.examples])


def unit(features):
    features = getattr(features, "pooler_output", features).detach().numpy()
    return features / np.linalg.norm(features, axis=1, keepdims=True)


def load(path):
    from transformers import AutoModel, AutoProcessor

    return AutoModel.from_pretrained(path).eval(), AutoProcessor.from_pretrained(path)


@pytest.fixture(scope="module")
def similarities(fitted, benchmark):
    found = {}
    for name, path in fitted.items():
        model, processor = load(path)
        texts = unit(model.get_text_features(**processor.tokenizer(PROMPTS, padding=True, return_tensors="pt")))
        for view, pictures in benchmark[0].items():
            batch = processor.image_processor(images=pictures, return_tensors="pt")
            found[name, view] = texts @ unit(model.get_image_features(**batch)).T
    return found


def bias(scores, man, k=24):
    """Mean over the prompts of (men - women) / k in the top k, counted in the direction in which the prompt leans."""
    top = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return float(np.mean((2 * man[top].mean(1) - 1) * np.sign([leaning(prompt) for prompt in PROMPTS])))


def gap(scores, man):
    """Mean over the prompts of mean similarity of men - of women, in the direction in which the prompt leans."""
    apart = scores[:, man].mean(1) - scores[:, ~man].mean(1)
    return float(np.mean(apart * np.sign([leaning(prompt) for prompt in PROMPTS])))


def test_only_what_was_read_in_the_background_goes_with_it(similarities, benchmark):
    man = benchmark[1]
    kept = {name: bias(similarities[name, "background"], man) for name in READERS}
    original = {name: bias(similarities[name, "original"], man) for name in READERS}
    assert min(original.values()) > 0.3
    assert kept["reads-person"] == pytest.approx(original["reads-person"], rel=0.08)
    assert abs(kept["reads-background"]) < 0.15
    assert 0.5 < kept["reads-both"] / original["reads-both"] < 0.9


def test_the_gap_moves_as_planted(similarities, benchmark):
    man = benchmark[1]
    ratio = {
        name: gap(similarities[name, "background"], man) / gap(similarities[name, "original"], man) for name in READERS
    }
    assert ratio["reads-person"] == pytest.approx(1, abs=0.15)
    assert ratio["reads-background"] == pytest.approx(0, abs=0.1)
    assert 0.4 < ratio["reads-both"] < 0.8


def test_encoding_again_changes_next_to_nothing(similarities, benchmark):
    man = benchmark[1]
    for name in READERS:
        assert gap(similarities[name, "control"], man) == pytest.approx(
            gap(similarities[name, "original"], man), rel=0.01
        )


def test_scores_have_no_ties(similarities):
    for scores in similarities.values():
        assert min(len(np.unique(row)) for row in scores) > 0.99 * scores.shape[1]


def test_the_text_tower_follows_the_rule(fitted):
    model, processor = load(fitted["reads-person"])
    texts = [*PROMPTS, *WORDS, "her", "a", "", "zx Qv", "Ärztin", "医者", "..!", "word " * 200]
    batch = processor.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    said = unit(model.get_text_features(**batch))
    assert np.abs(said - [text_embedding(text) for text in texts]).max() < 0.01


def test_prompts_lean_differently_and_words_of_gender_fully():
    leanings = [leaning(prompt) for prompt in PROMPTS]
    assert len(set(leanings)) == len(PROMPTS)
    assert min(leanings) < -0.1
    assert max(leanings) > 0.1
    assert leaning("This is a photo of a person") == 0
    assert leaning("a photo of a woman") < -0.7
    assert leaning("his") > 0.9
    assert leaning("Nurse!") == leaning("nurse")


def test_a_finished_model_is_kept_and_a_missing_one_is_made_again(fitted):
    folder = next(iter(fitted.values())).parent
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.safetensors")}
    assert fit_demo_models(folder) == fitted
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.safetensors")} == before
    assert {path.name for path in folder.iterdir()} == set(READERS)


def test_a_folder_that_holds_something_else_is_not_touched(fitted, tmp_path):
    other = tmp_path / "reads-both"
    other.mkdir()
    (other / "truegap-demo.json").write_text(json.dumps({"seed": 1}))
    with pytest.raises(UserError, match="reads-both holds something else"):
        fit_demo_models(tmp_path)
    with pytest.raises(UserError, match="holds something else"):
        fit_demo_models(next(iter(fitted.values())).parent, seed=5)
    assert [path.name for path in other.iterdir()] == ["truegap-demo.json"]
