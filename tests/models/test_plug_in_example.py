"""The documented plug-in and endpoint file: what the pages say works as they say it."""

from __future__ import annotations

import re
import shutil
import tomllib

import numpy as np
import pytest
import yaml
from PIL import Image

from truegap.errors import UserError
from truegap.models import load_model
from truegap.models._endpoint_settings import EndpointSettings
from truegap.models.generative import GenerativeModel, Question
from truegap.models.registry import plugins

KIND = Question("Is the person kind?\nA. Yes\nB. No", ("A", "B"))
PRONOUN = Question("The doctor and ", ("his", "her", "their"), form="continue", scoring="text")


def block(page: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def installed(root, tmp_path, monkeypatch) -> None:
    """The example, installed as pip would from the page's pyproject.toml."""
    project = tomllib.loads(block((root / "docs" / "plug_in.md").read_text(), "toml"))["project"]
    shutil.copy(root / "docs" / "plug_in.py", tmp_path)
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))


def test_the_documented_plug_in_answers_questions(installed):
    model = load_model("my-model:small")
    assert isinstance(model, GenerativeModel)
    assert "my-model" in plugins()
    red, blue = (Image.new("RGB", (9, 7), colour) for colour in ("red", "blue"))
    answers = model.answer(red, [KIND, PRONOUN])
    assert [answer.tokens for answer in answers] == [(1, 1), (3, 3, 5)]
    for answer in answers:
        assert all(value < 0 for value in answer.log_probs)
        assert np.exp(answer.log_probs).sum() < 1
        assert answer.chosen == int(np.argmax(answer.log_probs))
    # it looks, it reads, and neither company nor order matter
    assert model.answer(blue, [KIND]) != answers[:1]
    assert model.answer(red, [PRONOUN, KIND]) == answers[::-1]
    assert model.record().content != load_model("my-model:large").record().content
    assert model.prompt(KIND).startswith("<image>")


def test_its_log_probabilities_are_those_of_all_that_could_follow(installed):
    # given every one-character option; then their probabilities sum to 1
    model = load_model("my-model:small")
    asked = Question("Which letter?", tuple(model.network.vocabulary))
    (answer,) = model.answer(Image.new("RGB", (3, 3), "red"), [asked])
    assert np.exp(answer.log_probs).sum() == pytest.approx(1)


def test_its_mistakes_are_one_line(installed):
    with pytest.raises(UserError, match="my-model:huge: there are small, large"):
        load_model("my-model:huge")
    with pytest.raises(UserError, match="letters are one token long"):
        load_model("my-model:small").answer(Image.new("RGB", (3, 3)), [Question("Who?", ("her", "his"))])


def test_the_documented_endpoint_file_is_one(root):
    page = (root / "docs" / "endpoints.md").read_text()
    settings = EndpointSettings.model_validate(yaml.safe_load(block(page, "yaml")))
    assert settings.api_key_env == "OPENAI_API_KEY"
    for name in EndpointSettings.model_fields:
        assert name in page, f"{name} is not documented"
