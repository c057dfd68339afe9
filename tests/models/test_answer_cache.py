"""Answers kept: what is known is not asked, whatever was known is given as it was, and a damaged file is said so."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from dataclasses import replace

import pytest

from answerer import Answerer
from examples import encoded
from truegap.errors import UserError
from truegap.models.answer_cache import AnswerCache, Asked, Counts
from truegap.models.generative import Answer, Question

QUESTIONS = tuple(Question(f"Is {word} here?", ("A", "B", "C")) for word in ("she", "he", "nobody"))


def asked(number, questions=QUESTIONS, **more):
    data = encoded(number)
    return Asked(hashlib.sha256(data).hexdigest(), data, questions, **more)


class Scripted(Answerer):
    """Gives the same answer to everything."""

    def __init__(self, answer):
        super().__init__()
        self.given = answer

    def _answer(self, *_):
        return self.given


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.sqlite"


def test_answers_come_in_the_order_of_images_and_questions(path):
    # given that some of the images, and some questions of others, are known
    model, counts = Answerer(), Counts()
    with AnswerCache(path) as cache:
        expected = [model.answer(*_shown(number)) for number in range(8)]
        list(cache.answers(model, [asked(1), asked(4)]))
        list(cache.answers(model, [asked(2, QUESTIONS[1:2])]))
        model.asked = 0
        found = list(cache.answers(model, (asked(number) for number in range(8)), counts=counts))
    assert found == expected
    assert model.asked == 5 * 3 + 2
    assert (counts.cached, counts.computed) == (7, 17)


def _shown(number):
    from PIL import Image

    from truegap.build.images import decode

    return Image.fromarray(decode(encoded(number))), QUESTIONS


def test_known_answers_are_not_piled_up(path, monkeypatch):
    # given a benchmark that is known; then its answers are given on as they are read, chunk by chunk
    monkeypatch.setattr("truegap.models.answer_cache.CHUNK", 2)
    taken = []

    def images():
        for number in range(6):
            taken.append(number)
            yield asked(number)

    with AnswerCache(path) as cache:
        expected = list(cache.answers(Answerer(), images()))
        taken.clear()
        found = []
        for answers in cache.answers(Answerer(), images()):
            found.append(answers)
            assert len(taken) <= len(found) + 2
    assert found == expected


def test_the_same_question_twice_is_asked_once(path):
    model = Answerer()
    with AnswerCache(path) as cache:
        (answers,) = cache.answers(model, [asked(0, (*QUESTIONS, QUESTIONS[0]))])
    assert model.asked == 3
    assert answers[3] == answers[0]


@pytest.mark.parametrize(
    "answer",
    [
        Answer((-0.1234567890123456, -math.inf, -1e-300), (1, 2, 300), 0),
        Answer(None, None, None, "I cannot say."),
        Answer(None, None, 2, ""),
        Answer((-1.0, -1.0, -1.0), (1, 1, 1), None, "Grüße"),
    ],
)
def test_an_answer_is_kept_as_it_was(path, answer):
    with AnswerCache(path) as cache:
        list(cache.answers(Scripted(answer), [asked(0)]))
    with AnswerCache(path) as cache:
        silent = Scripted(answer)
        (found,) = cache.answers(silent, [asked(0)])
    assert found == [answer] * 3
    assert silent.asked == 0


@pytest.mark.parametrize(
    "change",
    [
        {"text": "Is it?"},
        {"options": ("A", "B")},
        {"form": "continue"},
        {"scoring": "text"},
    ],
)
def test_whatever_a_question_says_is_part_of_its_key(path, change):
    model = Answerer()
    with AnswerCache(path) as cache:
        list(cache.answers(model, [asked(0)]))
        model.asked = 0
        list(cache.answers(model, [asked(0, (replace(QUESTIONS[0], **change),))]))
        list(cache.answers(model, [asked(0, QUESTIONS[:1], view="person")]))
        list(cache.answers(Answerer(name="other"), [asked(0)]))
    assert model.asked == 2


def test_processes_share_the_file(path):
    # given another process that answers the same; then both read the same bits and nothing is lost
    code = (
        "import sys\n"
        f"sys.path[:0] = {[each for each in sys.path if each]!r}\n"
        "from pathlib import Path\n"
        "from answerer import Answerer\n"
        "from truegap.models.answer_cache import AnswerCache\n"
        "import test_answer_cache as t\n"
        "with AnswerCache(Path(sys.argv[1])) as cache:\n"
        "    assert len(list(cache.answers(Answerer(), (t.asked(n) for n in range(20))))) == 20\n"
    )
    here = str(__file__).rpartition("/")[0]
    others = [
        subprocess.Popen([sys.executable, "-c", f"import sys; sys.path.insert(0, {here!r})\n{code}", str(path)])
        for _ in range(2)
    ]
    assert [each.wait(timeout=300) for each in others] == [0, 0]
    model = Answerer()
    with AnswerCache(path) as cache:
        list(cache.answers(model, (asked(number) for number in range(20))))
    assert model.asked == 0


def test_the_first_answer_stands(path):
    # given another process that answered while this one did
    first, second = Answer((-1.0, -2.0, -3.0), (1, 1, 1), 0), Answer((-3.0, -2.0, -1.0), (1, 1, 1), 2)

    class Slow(Scripted):
        def answer(self, image, questions, batch_size=32):
            with AnswerCache(path) as other:
                list(other.answers(Scripted(first), [asked(0)]))
            return super().answer(image, questions, batch_size)

    with AnswerCache(path) as cache:
        (found,) = cache.answers(Slow(second), [asked(0)])
    assert found == [first] * 3


def test_an_image_that_is_not_its_hash_is_refused(path):
    wrong = Asked("0" * 64, encoded(0), QUESTIONS)
    with AnswerCache(path) as cache, pytest.raises(UserError, match="its bytes do not have this SHA-256"):
        list(cache.answers(Answerer(), [wrong]))


def test_a_damaged_row_is_said_so(path):
    with AnswerCache(path) as cache:
        list(cache.answers(Answerer(), [asked(0)]))
        cache._db.execute("UPDATE answers SET answer = x'0300'")
        with pytest.raises(UserError, match=r"answer cache .*damaged.*delete it, and answers are computed again"):
            list(cache.answers(Answerer(), [asked(0)]))


def test_a_plug_in_that_loses_an_answer_is_told(path):
    class Forgetful(Answerer):
        def answer(self, image, questions, batch_size=32):
            return super().answer(image, questions, batch_size)[1:]

    with AnswerCache(path) as cache, pytest.raises(ValueError, match="Forgetful gave 2 answers to 3 questions"):
        list(cache.answers(Forgetful(), [asked(0)]))
