"""Reference models do what they say, behind the same adapters as any model."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image

from truegap.errors import UserError
from truegap.models import DualEncoder, GenerativeModel, Question, load_model
from truegap.synthetic import draw_scene, render, strengths
from truegap.synthetic.readings import readings
from truegap.synthetic.reference import SPAN, YES, lean_of_question, lean_of_text, parse_shares

QUESTION = Question("Is this person careful?\nA. Yes\nB. No\nC. Unsure", ("A", "B", "C"))


@pytest.fixture(scope="module")
def images():
    return [Image.fromarray(render(draw_scene(5, index, strengths(0.0)))[..., ::-1].copy()) for index in range(6)]


def test_an_answerer_says_what_its_region_shows(images):
    model = load_model("reference:answers-color")
    assert isinstance(model, GenerativeModel)
    for image in images:
        (answer,) = model.answer(image, [QUESTION])
        read = readings(np.asarray(image))["color"]
        chances = np.exp(answer.log_probs)
        assert chances[0] == pytest.approx(YES + SPAN * lean_of_question("Is this person careful?") * read)
        assert chances.sum() == pytest.approx(1)
        assert answer.chosen == int(chances.argmax())


def test_a_mixture_is_linear_in_what_it_reads(images):
    parts = [load_model(f"reference:answers-{name}") for name in ("person", "lighting")]
    whole = load_model("reference:answers-0.7*person+0.3*lighting")
    for image in images:
        person, lighting, both = (
            math.exp(model.answer(image, [QUESTION])[0].log_probs[0]) for model in (*parts, whole)
        )
        assert both == pytest.approx(0.7 * person + 0.3 * lighting)


def test_a_dual_encoder_ranks_by_its_region(images):
    model = load_model("reference:reads-background")
    assert isinstance(model, DualEncoder)
    similar = model.encode_texts(["a photo of a man", "a photo of a woman"]) @ model.encode_images(images).T
    read = [readings(np.asarray(image))["background"] for image in images]
    assert list(np.argsort(similar[0])) == list(np.argsort(read))
    assert similar[1] == pytest.approx(-similar[0])


def test_options_without_a_yes_answer_the_first():
    question = Question("Which?\nA. left\nB. right", ("A", "B"))
    (answer,) = load_model("reference:answers-person").answer(Image.new("RGB", (224, 224)), [question])
    assert math.exp(answer.log_probs[0]) == pytest.approx(YES)


def test_texts_and_questions_lean():
    assert lean_of_text("a photo of a woman") == -lean_of_text("a photo of a man") == -1
    assert lean_of_text("a woman and a man") in (-1, 1)
    leans = [lean_of_question(f"Is this person number {n}?") for n in range(50)]
    assert min(leans) >= 0.5
    assert max(leans) <= 1
    assert len(set(leans)) == 50


def test_records_tell_models_apart():
    specs = ["reads-person", "answers-person", "reads-color", "reads-0.5*person+0.5*color"]
    records = [load_model(f"reference:{spec}").record() for spec in specs]
    assert len({record.content for record in records}) == len(specs)
    assert [record.kind for record in records] == ["baseline"] * len(specs)
    turned = load_model("reference:reads-0.5*color+0.5*person").record()
    assert turned.content == records[-1].content


@pytest.mark.parametrize("wrong", ["reads-", "reads-hat", "answers-person+color", "reads-0.5*person+0.5*person"])
def test_what_is_no_mixture_is_named(wrong):
    with pytest.raises(UserError, match="is not made of person, background, object, color, lighting"):
        load_model(f"reference:{wrong}")


def test_other_mistakes_are_named():
    with pytest.raises(UserError, match=r"shares sum to 0\.9"):
        parse_shares("0.5*person+0.4*color", "here")
    with pytest.raises(UserError, match="shares sum to 1"):
        parse_shares("1.0*person+0.0*color", "here")
    with pytest.raises(UserError, match="no such reference"):
        load_model("reference:sees-person")
