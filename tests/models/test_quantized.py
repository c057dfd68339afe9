"""Quantized weights: what bitsandbytes makes of a model answers, alone and together, and is recorded as what it is."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tiny_generative import save
from truegap.errors import UserError
from truegap.models import Question, load_model
from truegap.models.generative_transformers import EXACT

pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed: pip install bitsandbytes")

LETTERS = ("A", "B", "C")
QUESTIONS = [Question(f"Is it {word}?", LETTERS) for word in ("kind", "a dog", "at home in the wood", "x")]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("quantized")
    return {name: save(name, folder / name) for name in ("llava", "qwen2_vl")}


@pytest.fixture(scope="module")
def image() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (80, 60, 3), dtype=np.uint8))


def log_probs(model, image, batch_size=32) -> np.ndarray:
    return np.array([answer.log_probs for answer in model.answer(image, QUESTIONS, batch_size)])


@pytest.mark.parametrize(("quantization", "within"), [("8bit", 0.1), ("4bit", EXACT)])
@pytest.mark.parametrize("name", ["llava", "qwen2_vl"])
def test_a_quantized_model_shares_the_image_and_is_what_its_record_says(
    saved, image, name, quantization, within, caplog
):
    whole = load_model(str(saved[name]), device="cpu")
    with caplog.at_level(logging.WARNING):
        model = load_model(str(saved[name]), device="cpu", quantization=quantization)
        together = log_probs(model, image)

    assert 0 < np.abs(together - log_probs(whole, image)).max() < 2  # coarse, and of the same model
    assert not any("reads the image once per question" in note for note in model.notes)
    assert [note.split(":")[0] for note in model.notes] == ["float32, weights in 8bit"] * (quantization == "8bit")
    model._shares = False
    np.testing.assert_allclose(together, log_probs(model, image, 1), atol=within)
    assert model.compute.dtype == f"float32, weights in {quantization}"
    assert model.record().parameters == whole.record().parameters
    assert model.record().content != whole.record().content
    assert not caplog.records


@pytest.mark.parametrize("quantization", ["8bit", "4bit"])
def test_weights_that_were_saved_quantized_are_read_in_their_own_numbers(saved, image, tmp_path, quantization):
    made = load_model(str(saved["llava"]), device="cpu", dtype="bfloat16", quantization=quantization)
    folder = tmp_path / "quantized"
    shutil.copytree(saved["llava"], folder, ignore=shutil.ignore_patterns("model.safetensors"))
    made._model.save_pretrained(folder)

    model = load_model(str(folder), device="cpu")

    assert model.compute.dtype == f"bfloat16, weights in {quantization}"
    np.testing.assert_allclose(log_probs(model, image), log_probs(made, image), atol=EXACT)
    with pytest.raises(UserError, match="its weights are quantized already; leave quantization out"):
        load_model(str(folder), device="cpu", quantization="4bit")
