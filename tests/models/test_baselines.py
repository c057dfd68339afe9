"""Baselines: what they know, and that nothing else moves their answers."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from truegap.errors import UserError
from truegap.models import DualEncoder, load_model
from truegap.models.baselines import PriorAnswers
from truegap.models.generative import Answer, GenerativeModel, Question
from truegap.results.records import ModelRecord

KIND = Question("Is the person kind?\nA. Yes\nB. No\nC. Unsure\nAnswer with the letter.", ("A", "B", "C"))
PERMUTED = Question("Is the person kind?\nA. No\nB. Unsure\nC. Yes", ("A", "B", "C"))
PRONOUN = Question("The doctor and ", ("his", "her", "their"), form="continue", scoring="text")


def picture(seed: int, size: tuple[int, int] = (6, 8)) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8))


def test_random_answers_depend_on_image_question_and_seed_alone():
    model = load_model("baseline:random")
    both = model.answer(picture(1), [KIND, PRONOUN])
    # given other company, another order and another object, the same answers
    assert model.answer(picture(1), [PRONOUN, PERMUTED, KIND])[::2] == both[::-1]
    assert load_model("baseline:random:0").answer(picture(1), [KIND, PRONOUN]) == both
    others = [
        model.answer(picture(2), [KIND]),
        load_model("baseline:random:1").answer(picture(1), [KIND]),
        model.answer(picture(1), [PERMUTED]),
        model.answer(picture(1).resize((8, 3)).resize((8, 6)), [KIND]),
    ]
    assert all(other != both[:1] for other in others)
    assert load_model("baseline:random:1").record().content != model.record().content
    # and a draw that is fixed for good
    (fixed,) = model.answer(Image.new("RGB", (8, 6), "red"), [KIND])
    assert fixed.log_probs == pytest.approx((-1.069842416328, -1.201385491246, -1.032374573931), abs=1e-9)


def test_random_answers_are_uniform():
    model = load_model("baseline:random")
    answers = [model.answer(picture(seed), [KIND])[0] for seed in range(1500)]
    shares = np.exp([answer.log_probs for answer in answers])
    np.testing.assert_allclose(shares.sum(1), 1)
    assert [answer.chosen for answer in answers] == shares.argmax(1).tolist()
    # of 1500 draws, each option a third of the time, and each share uniform on the simplex: mean 1/3, variance 1/18
    wins = np.bincount(shares.argmax(1), minlength=3) / 1500
    np.testing.assert_allclose(wins, 1 / 3, atol=4 * np.sqrt(2 / 9 / 1500))
    np.testing.assert_allclose(shares.mean(0), 1 / 3, atol=4 * np.sqrt(1 / 18 / 1500))
    np.testing.assert_allclose(shares.var(0), 1 / 18, rtol=0.15)


@pytest.mark.parametrize(
    ("spec", "question", "place"),
    [
        ("baseline:always-yes", KIND, 0),
        ("baseline:always-yes", PERMUTED, 2),
        ("baseline:always-yes", PRONOUN, 0),
        ("baseline:always:B", KIND, 1),
        ("baseline:always:unsure", PERMUTED, 1),
        ("baseline:always:their", PRONOUN, 2),
    ],
)
def test_always_the_same_answer(spec, question, place):
    model = load_model(spec)
    (answer,) = model.answer(picture(1), [question])
    assert answer.chosen == place
    assert np.exp(answer.log_probs).tolist() == [float(n == place) for n in range(3)]
    assert np.isfinite(answer.log_probs).all()
    assert model.record().kind == "baseline"


def test_an_answer_that_is_not_offered_is_one_line():
    with pytest.raises(UserError, match="does not offer 'Maybe', only A, B, C, yes, no, unsure") as error:
        load_model("baseline:always:Maybe").answer(picture(1), [KIND])
    assert "\n" not in str(error.value)


class Looks(GenerativeModel):
    """Answers by the image's first pixel, and keeps what it is shown."""

    notes = ("a note",)

    def __init__(self) -> None:
        self.shown: list[tuple[Image.Image, list[Question]]] = []

    def record(self) -> ModelRecord:
        return ModelRecord(spec="looks", name="looks", adapter="test", kind="generative", content="c", parameters=9)

    def prompt(self, question: Question) -> str:
        return question.text.upper()

    def answer(self, image, questions, batch_size=32):  # noqa: ARG002
        self.shown.append((image.copy(), list(questions)))
        place = image.getpixel((0, 0))[0] % 3
        return [Answer((-1.0, -2.0, -3.0), (1, 1, 1), place) for _ in questions]


def test_a_prior_sees_grey_of_the_same_size_and_asks_once():
    inner = Looks()
    model = PriorAnswers(inner, "baseline:prior:looks")
    found = [model.answer(picture(seed), [KIND, PRONOUN, KIND]) for seed in range(3)]
    assert found[0] == found[1] == found[2]
    assert [answer.chosen for answer in found[0]] == [128 % 3] * 3
    ((image, asked),) = inner.shown
    assert asked == [KIND, PRONOUN]
    assert image.size == (8, 6)
    assert np.unique(np.asarray(image)).tolist() == [128]
    # another size is another image, and a new question is asked for alone
    model.answer(picture(1, (9, 9)), [KIND])
    model.answer(picture(1), [PERMUTED, KIND])
    assert [(each.size, len(asked)) for each, asked in inner.shown[1:]] == [((9, 9), 1), ((8, 6), 1)]
    record = model.record()
    assert (record.kind, record.name, record.parameters) == ("baseline", "prior-looks", 9)
    assert record.content != "c"
    assert model.cache_key != inner.cache_key
    assert model.prompt(KIND) == inner.prompt(KIND)
    assert model.notes[0] == "a note"


def test_a_prior_wraps_what_load_model_loads():
    model = load_model("baseline:prior:baseline:always:B")
    assert model.answer(picture(1), [KIND])[0].chosen == 1
    assert model.record().spec == "baseline:prior:baseline:always:B"


def test_a_random_encoder_ranks_by_chance_alone():
    encoder = load_model("baseline:random-encoder:3")
    assert isinstance(encoder, DualEncoder)
    images = encoder.encode_images([picture(seed) for seed in range(300)], batch_size=7)
    np.testing.assert_array_equal(images[5:6], encoder.encode_images([picture(5)]))
    cosines = encoder.encode_texts(["a doctor", "a nurse"]) @ images.T
    # Cosines of random directions in 64 dimensions: mean 0, variance 1/64.
    assert abs(cosines.mean()) < 4 / np.sqrt(64 * 600)
    np.testing.assert_allclose(cosines.var(), 1 / 64, rtol=0.25)
    assert abs(np.corrcoef(cosines)[0, 1]) < 4 / np.sqrt(64)
    assert (load_model("baseline:random-encoder:4").encode_texts(["a"]) != encoder.encode_texts(["a"])).all()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("baseline:clever", "no such baseline; use one of baseline:random"),
        ("baseline:random:x", "the seed 'x' is not a whole number"),
        ("baseline:always:", "no such baseline"),
        ("baseline:prior", "no such baseline"),
        ("baseline:prior:baseline:random-encoder", "answers no questions"),
        ("baseline:prior:/no/such/folder", "accepted: "),
    ],
)
def test_mistakes_are_one_line(spec, said):
    with pytest.raises(UserError, match=said) as error:
        load_model(spec)
    assert "\n" not in str(error.value)
