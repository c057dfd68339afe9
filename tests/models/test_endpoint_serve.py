"""Endpoints against a real `transformers serve`: written answers, and probabilities of choices."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tiny_generative import save
from truegap.errors import UserError
from truegap.models import load_model
from truegap.models.generative import Item, Question

pytestmark = pytest.mark.slow

LETTERS = ("A", "B", "C")
TOPICS = ("kind", "brave", "tidy", "loud")
ENDING = "Answer with the letter of the option that fits best (A to C) only."
"""What the server itself writes after the options of a choice."""


def question(topic: str, before: str = "") -> Question:
    return Question(f"{before}Is the person {topic}?\nA. Yes\nB. No\nC. Unsure\n{ENDING}", LETTERS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A tiny LLaVA-NeXT that answers the first three topics with A, B and C, and writes nothing else."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    folder = save("llava_next", tmp_path_factory.mktemp("served") / "tiny-llava-next")
    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    processor = AutoProcessor.from_pretrained(folder)
    with torch.no_grad():
        asked = [inputs_of(processor, images()[0], question(topic).text) for topic in TOPICS[:3]]
        states = torch.stack([model.model(**inputs).last_hidden_state[0, -1] for inputs in asked])
        states -= states.mean(0)
        model.lm_head.weight.zero_()
        model.lm_head.weight[processor.tokenizer.convert_tokens_to_ids(list(LETTERS))] = 3 * states / states.norm()
    model.save_pretrained(folder)
    return folder


def inputs_of(processor, image: Image.Image, text: str):
    turn = [{"role": "user", "content": [{"type": "image", "image": image}, {"type": "text", "text": text}]}]
    return processor.apply_chat_template(
        turn, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )


@pytest.fixture(scope="module")
def url(folder, tmp_path_factory) -> str:
    pytest.importorskip("openai", reason="transformers serve needs the dev extra's openai")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("log") / "serve.log"
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("w") as out:
        running = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    try:
        deadline = time.monotonic() + 600
        while "Application startup complete" not in log.read_text():
            assert running.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        running.terminate()
        running.wait(60)


@pytest.fixture(scope="module")
def next_token(folder):
    """The model's own distribution of the next token, from a plain forward pass."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    model = AutoModelForImageTextToText.from_pretrained(folder).eval()
    processor = AutoProcessor.from_pretrained(folder)

    def distribution(image: Image.Image, text: str) -> tuple[np.ndarray, list[int], object]:
        inputs = inputs_of(processor, image, text)
        with torch.no_grad():
            logits = model(**inputs).logits[0, -1]
        letters = processor.tokenizer.convert_tokens_to_ids(list(LETTERS))
        return logits.numpy(), letters, processor.tokenizer

    return distribution


def images() -> list[Image.Image]:
    random = np.random.default_rng(5)
    return [Image.fromarray(random.integers(0, 256, (40, 50, 3), dtype=np.uint8)) for _ in range(3)]


def test_written_answers_are_the_models_own(url, folder, next_token, tmp_path):
    file = tmp_path / "endpoint.yaml"
    file.write_text(json.dumps({"url": url, "model": str(folder), "max_tokens": 1, "concurrency": 3}))
    endpoint = load_model(f"endpoint:{file}")
    asked = tuple(question(topic) for topic in TOPICS)
    found = list(endpoint.answer_each(Item(image, asked) for image in images()))

    for image, answers in zip(images(), found, strict=True):
        for each, answer in zip(asked, answers, strict=True):
            logits, _, tokenizer = next_token(image, each.text)
            text = tokenizer.decode([int(logits.argmax())])
            assert answer.text == text
            assert answer.chosen == (LETTERS.index(text) if text in LETTERS else None)
            assert answer.log_probs is None
    assert [answer.chosen for answer in found[0][:3]] == [0, 1, 2]
    assert any("no log-probabilities" in note for note in endpoint.notes)
    statistics = endpoint.statistics()
    assert statistics["answers"] == 12
    assert statistics["prompt_tokens"] > 12 * 50


def test_choices_come_with_their_probabilities(url, folder, next_token, tmp_path):
    file = tmp_path / "endpoint.yaml"
    file.write_text(json.dumps({"url": url, "model": str(folder), "api": "systemone"}))
    endpoint = load_model(f"endpoint:{file}")
    assert endpoint.probabilities_over == "options"
    asked = tuple(question(topic) for topic in TOPICS)
    image = images()[0]

    for topic, answer in zip(TOPICS, endpoint.answer(image, asked), strict=True):
        logits, letters, _ = next_token(image, question(topic, before="\n\n").text)
        shares = np.exp(logits[letters] - np.logaddexp.reduce(logits[letters]))
        np.testing.assert_allclose(np.exp(answer.log_probs), shares, atol=1e-5)
        assert answer.chosen == int(shares.argmax())
    assert any("shares among the options" in note for note in endpoint.notes)


def test_another_model_than_the_served_one_is_one_line(url):
    with pytest.raises(UserError, match=r"status 400 \(Server is pinned to .* it does not accept the request"):
        load_model(f"endpoint:{url}#org/other")
