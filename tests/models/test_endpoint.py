"""Endpoints against a real server on this machine that speaks the documented shape of chat completions."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import threading
import time

import numpy as np
import pytest
from PIL import Image

from loopback_chat import LoopbackChat, spread
from truegap.errors import UserError
from truegap.models import _chat_api as chat
from truegap.models import _systemone_api as systemone
from truegap.models import load_model
from truegap.models._endpoint_client import NonsenseError
from truegap.models.answer_cache import AnswerCache, Asked, Counts
from truegap.models.generative import Answer, GenerativeModel, Item, Question

KIND = "Is the person kind?\nA. Yes\nB. No\nC. Unsure\nAnswer with the letter."
LETTERS = ("A", "B", "C")


@pytest.fixture
def server():
    chat = LoopbackChat()
    yield chat
    chat.close()


@pytest.fixture
def model(server, tmp_path):
    """Loads a model from this server, with some settings."""

    def load(**settings) -> GenerativeModel:
        file = tmp_path / "endpoint.yaml"
        settings = {"url": server.url, "model": "org/tiny-vl", "backoff": 0, **settings}
        file.write_text(json.dumps(settings))
        return load_model(f"endpoint:{file}")

    return load


def picture(seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (20, 30, 3), dtype=np.uint8))


def questions(n: int) -> tuple[Question, ...]:
    return tuple(Question(f"{number}? {KIND}", LETTERS) for number in range(n))


def expected(url: str, text: str) -> list[float]:
    shares = dict(spread(url, text))
    return [
        math.log(shares["A"] + shares[" A"] + shares["▁A"]),
        math.log(shares["B"]),
        math.log(shares["C"] + shares[" C"]),
    ]


def test_log_probabilities_of_letters_are_those_of_the_server(server, model):
    # given a model that gives log-probabilities; then every way to write a letter counts, and the answer is the largest
    endpoint = model()
    (answer,) = endpoint.answer(picture(), [Question(KIND, LETTERS)])

    body = server.asked[-1]
    image, text = body["messages"][0]["content"]
    assert answer.log_probs == pytest.approx(expected(image["image_url"]["url"], KIND), abs=1e-12)
    assert answer.tokens == (1, 1, 1)
    assert answer.chosen == int(np.argmax(answer.log_probs))
    # and it was asked as the documentation says: image first and without loss, one token, nothing random
    kind, data = image["image_url"]["url"].split(";base64,")
    assert (kind, text["text"]) == ("data:image/png", KIND)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))), np.asarray(picture()))
    assert {name: value for name, value in body.items() if name != "messages"} == {
        "model": "org/tiny-vl",
        "max_tokens": 1,
        "temperature": 0,
        "seed": 0,
        "logprobs": True,
        "top_logprobs": 20,
    }
    assert endpoint.probabilities_over == "vocabulary"


def test_the_record_says_what_is_asked_and_the_notes_what_answers(server, model):
    record = model().record()
    assert (record.kind, record.name, record.adapter) == ("endpoint", "tiny-vl", "endpoint-chat")
    assert record.parameters is None  # a server does not tell
    said = "; ".join(model().notes)
    assert "the server calls the model served-2026-01-01" in said
    assert "system fingerprint fp_1" in said
    # what changes answers changes the key; what changes only the speed does not
    assert model(concurrency=2, timeout=60).record().content == record.content
    assert model(seed=1).record().content != record.content
    assert model(extra={"top_p": 0.5}).record().content != record.content
    server.model = "served-2027-01-01"
    assert model().record().content != record.content


def test_images_go_as_jpeg_on_request(server, model):
    endpoint = model(image="jpeg")
    smooth = Image.linear_gradient("L").convert("RGB")
    endpoint.answer(smooth, [Question(KIND, LETTERS)])
    kind, data = server.asked[-1]["messages"][0]["content"][0]["image_url"]["url"].split(";base64,")
    sent = Image.open(io.BytesIO(base64.b64decode(data)))
    assert (kind, sent.format) == ("data:image/jpeg", "JPEG")
    np.testing.assert_allclose(np.asarray(sent, float), np.asarray(smooth, float), atol=4)
    assert endpoint.record().content != model().record().content


def test_a_short_form_names_server_and_model(server):
    endpoint = load_model(f"endpoint:{server.url}#org/tiny-vl", revision="v2")
    assert endpoint.record().revision == "v2"
    assert endpoint.record().content != load_model(f"endpoint:{server.url}#org/tiny-vl").record().content
    assert endpoint.prompt(Question(KIND, LETTERS)) == f"<image>\n{KIND}"


def test_many_requests_are_under_way_and_the_order_stays(server, model):
    # given a server that answers only when four are asking; then all goes through, in order, and never five at once
    endpoint = model(concurrency=4)
    server.together = threading.Barrier(4)
    items = [Item(picture(1), questions(5)), Item(picture(2)), Item(picture(3), questions(3)), Item(picture(4))]
    found = list(endpoint.answer_each(iter(items)))

    assert [len(answers) for answers in found] == [5, 0, 3, 0]
    assert server.most_at_once == 4
    server.together = None
    for item, answers in zip(items, found, strict=True):
        for question, answer in zip(item.questions, answers, strict=True):
            assert endpoint.answer(item.image, [question]) == [answer]


def test_an_option_that_is_not_listed_gets_its_bound(server, model):
    # given a list in which C is missing; then C has what the listed leave over, or the last one's share if that is less
    server.spread = lambda *_: [("A", 0.6), ("B", 0.25), ("x", 0.1)]
    endpoint = model()
    (answer,) = endpoint.answer(picture(), [Question(KIND, LETTERS)])
    assert np.exp(answer.log_probs) == pytest.approx([0.6, 0.25, 0.05])
    assert endpoint.statistics()["bounded_options"] == 1
    assert endpoint.statistics()["largest_bound_error"] == pytest.approx(0.05 / 0.9)
    assert "1 options were not among the listed tokens" in "; ".join(endpoint.notes)
    # and where much is left over, the last one's share
    server.spread = lambda *_: [("A", 0.6), ("B", 0.02)]
    (answer,) = model().answer(picture(), [Question(KIND, LETTERS)])
    assert np.exp(answer.log_probs) == pytest.approx([0.6, 0.02, 0.02])
    assert answer.chosen == 0
    # and a share of 0 stays 0, as a finite number
    server.spread = lambda *_: [("A", 0.75), ("B", 0.25)]
    (answer,) = model().answer(picture(), [Question(KIND, LETTERS)])
    assert np.exp(answer.log_probs).tolist() == [0.75, 0.25, 0.0]
    assert np.isfinite(answer.log_probs).all()


def test_a_list_without_any_option_has_no_probabilities(server, model):
    server.spread = lambda *_: [("I", 0.6), (" can", 0.25), ("Answer", 0.1)]
    endpoint = model()
    (answer,) = endpoint.answer(picture(), [Question(KIND, LETTERS)])
    assert answer == Answer(None, None, None, "I")
    # and a single token is not read as a whole answer: "No" may begin "No one can tell"
    server.spread = lambda *_: [("No", 0.6), ("Yes", 0.3)]
    assert model().answer(picture(), [Question(KIND, LETTERS)])[0] == Answer(None, None, None, "No")
    assert endpoint.statistics()["unclear"] == endpoint.statistics()["without_probabilities"] == 1


def test_option_texts_are_scored_only_where_all_are_one_token(server, model):
    server.spread = lambda *_: [(" his", 0.5), ("her", 0.2), (" their", 0.1)]
    asked = Question("The doctor and ", ("his", "her", "their"), form="continue", scoring="text")
    endpoint = model()
    (answer,) = endpoint.answer(picture(), [asked])
    assert np.exp(answer.log_probs) == pytest.approx([0.5, 0.2, 0.1])
    assert "his, her or their" in endpoint.prompt(asked)
    assert server.asked[-1]["messages"][0]["content"][1]["text"] == endpoint.prompt(asked).removeprefix("<image>\n")
    assert server.asked[-1]["max_tokens"] == 16
    assert any("asked for in words" in note for note in endpoint.notes)
    server.spread = lambda *_: [(" his", 0.5), ("her", 0.2)]
    (answer,) = endpoint.answer(picture(), [asked])
    assert (answer.log_probs, answer.chosen) == (None, 0)


def test_without_log_probabilities_written_answers_are_read(server, model):
    server.most_logprobs = 0
    said = {
        "0": "B",
        "1": "The answer is (C).",
        "2": "I'm sorry, but I can't help with that.",
        "3": "Hm, A or B",
        "4": "",
    }
    server.written = lambda text: said.get(text[0], "A")
    endpoint = model(input_price=2.5, output_price=10)
    answers = endpoint.answer(picture(), questions(5))

    assert [answer.chosen for answer in answers] == [1, 2, None, None, None]
    assert [answer.text for answer in answers] == list(said.values())
    assert all(answer.log_probs is None and answer.tokens is None for answer in answers)
    found = endpoint.statistics()
    assert (found["answers"], found["refused"], found["unclear"], found["without_probabilities"]) == (5, 1, 2, 5)
    assert (found["requests"], found["prompt_tokens"], found["completion_tokens"]) == (6, 3600, 6)
    assert found["cost"] == pytest.approx((3600 * 2.5 + 6 * 10) / 1e6)
    assert "of 5 answers asked for now, 1 refuse, 2 name no option" in "; ".join(endpoint.notes)
    assert any("answers are written by the model and read" in note for note in endpoint.notes)
    assert "logprobs" not in server.asked[-1]
    assert server.asked[-1]["max_tokens"] == 16


@pytest.mark.parametrize(
    ("message", "finish", "outcome"),
    [
        ({"content": None, "refusal": "I will not judge people."}, "stop", "refused"),
        ({"content": ""}, "content_filter", "refused"),
        ({"content": [{"type": "text", "text": "B"}]}, "stop", None),
        ({"content": None}, "length", "unclear"),
    ],
)
def test_every_kind_of_message_is_understood(server, model, message, finish, outcome):
    server.most_logprobs = 0
    endpoint = model()
    server.more, server.finish = message, finish
    (answer,) = endpoint.answer(picture(), questions(1))
    assert answer.chosen == (1 if outcome is None else None)
    assert outcome is None or endpoint.statistics()[outcome] == 1


def test_parameters_that_the_server_refuses_are_left_out(server, model):
    # given a server that wants the length under another name, fewer log-probabilities, no seed and its own temperature
    server.most_logprobs = 5
    server.unsupported = {
        "max_tokens": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "seed": "unknown field seed",
        "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    }
    endpoint = model()
    (answer,) = endpoint.answer(picture(), questions(1))
    assert answer.log_probs is not None
    body = {name: value for name, value in server.asked[-1].items() if name != "messages"}
    assert body == {"model": "org/tiny-vl", "max_completion_tokens": 1, "logprobs": True, "top_logprobs": 5}
    assert {note for note in endpoint.notes if "refuses the" in note} == {
        f"the server refuses the parameter {name}, which was left out" for name in ("temperature", "seed")
    }
    # and one that knows no log-probabilities at all is asked without
    server.unsupported = {"logprobs": "logprobs are not supported"}
    assert model().answer(picture(), questions(1))[0].log_probs is None


def test_what_a_filter_stops_is_a_refusal(server, model):
    server.refuses = lambda text: (
        {"message": "The prompt was filtered", "code": "content_filter"} if text[0] == "1" else None
    )
    endpoint = model()
    answers = endpoint.answer(picture(), questions(3))
    assert [answer.log_probs is None for answer in answers] == [False, True, False]
    assert endpoint.statistics()["refused"] == 1


@pytest.mark.parametrize(
    "act",
    [
        (500, b"oops"),
        (503, b'{"error": "loading"}'),
        (429, b"slow down", {"Retry-After": "0"}),
        "drop",
        "cut",
        (200, b""),
        (200, b"<html>gateway</html>"),
        (200, b'{"choices": []}'),
        (200, b"[" * 100_000),
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_passes_is_tried_again(server, model, act):
    endpoint = model(attempts=3)
    server.script.extend([act, act])
    (answer,) = endpoint.answer(picture(), questions(1))
    assert answer.log_probs is not None
    # A connection that was kept and is found closed may be replaced before anything is sent.
    assert endpoint.statistics()["retries"] == 2


def test_a_busy_server_is_left_alone_as_long_as_it_asks(server, model):
    endpoint = model()
    server.times.clear()
    server.script.append((429, b"{}", {"Retry-After": "1"}))
    endpoint.answer(picture(), questions(1))
    assert server.times[1] - server.times[0] >= 1


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ((500, b'{"error": {"message": "CUDA out of memory"}}'), "status 500: CUDA out of memory (2 attempts)"),
        ((502, b"<html><h1>Bad <b>gateway</b></h1></html>"), "status 502: Bad gateway (2 attempts)"),
        ((429, b"", {"Retry-After": "0"}), "status 429; lower concurrency or requests_per_minute (2 attempts)"),
        ((429, b"", {"Retry-After": "7200"}), "asks for a pause of 7200 s, longer than longest_wait"),
        ((429, b'{"error": {"message": "no money", "code": "insufficient_quota"}}'), "the account has no credit left"),
        ("drop", "the connection broke"),
        ("cut", "the connection broke"),
        ((200, b""), "its answer is empty; does the address end in /v1? (2 attempts)"),
        ((200, b"<html>Log in</html>"), "its answer is no JSON object: 'Log in'"),
        ((200, b'["a", "b"]'), "its answer is no JSON object"),
        ((200, b'{"choices": [{"message": 5}]}'), "its answer is no chat completion (choices.0.message"),
        ((200, b"x" * 9_000_000), "its answer is longer than 8 MB"),
        (
            (200, b"{}", {"Content-Encoding": "br"}),
            "its answer is packed as 'br', which was not asked for (2 attempts)",
        ),
        ((200, b"{}", {"Content-Encoding": "gzip, gzip"}), "its answer is packed as 'gzip, gzip'"),
        ((400, b'{"error":' * 300 + b'"deep"' + b"}" * 300), "status 400 ({"),
        ((404, b'{"detail": "Not Found"}'), "status 404 (Not Found); check the address, which usually ends in /v1"),
        ((400, b'{"error": {"message": "image too small"}}'), "status 400 (image too small); it does not accept"),
        ((413, b""), "status 413; the image is too large"),
        ((401, b""), "status 401; it wants a key: name its environment variable with api_key_env"),
        (
            (307, b"", {"Location": "http://elsewhere.example/v1?token=abc"}),
            "it redirects to http://elsewhere.example/v1,",
        ),
        ((500, b"\x1b[2Jgone\r\n\xff\xe2\x80\xae evil"), "status 500: [2Jgone \ufffd evil (2 attempts)"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_what_does_not_pass_is_one_line(server, model, act, said):
    server.script.extend([act, act])
    with pytest.raises(UserError) as error:
        model(attempts=2)
    line = str(error.value)
    assert line.startswith(f"endpoint org/tiny-vl at {server.url}: ")
    assert said in line
    assert line.isprintable()
    assert len(line) < 500


def test_a_server_that_hangs_or_is_not_there_is_one_line(server, model):
    server.script.extend(["hang", "hang"])
    with pytest.raises(UserError, match=r"no answer within 0\.2 s; raise timeout, or lower concurrency \(2 attempts\)"):
        model(attempts=2, timeout=0.2)
    server.close()
    with pytest.raises(UserError, match="no connection: is the server running"):
        model(attempts=2)


def test_log_probabilities_that_are_none_are_nonsense(server, model):
    listed = [{"token": "A", "logprob": 0.7, "top_logprobs": [{"token": "A", "logprob": 0.7}]}]
    body = {"choices": [{"message": {"content": "A"}, "logprobs": {"content": listed}}]}
    server.script.append((200, json.dumps(body).encode()))
    with pytest.raises(UserError, match="log-probabilities above 0"):
        model(attempts=1)


def test_counts_of_tokens_may_lack_and_must_be_countable():
    def usage(**tokens):
        return {"choices": [{"message": {"content": "A"}}], "usage": tokens}

    asked = Question(KIND, LETTERS)
    reply = chat.read(asked, usage(prompt_tokens=None, completion_tokens=3), 0)
    assert (reply.read, reply.written, reply.answer.chosen) == (0, 3, 0)
    with pytest.raises(NonsenseError, match=r"usage\.prompt_tokens"):
        chat.read(asked, usage(prompt_tokens=10**400), 0)
    answers = {"question": {"probabilities": {"Yes": 0.5, "No": 0.25, "Unsure": 0.25}}}
    assert systemone.read(asked, {"answers": answers, "usage": {"input_tokens": 7}}).read == 7
    with pytest.raises(NonsenseError, match="no typed decision"):
        systemone.read(asked, {"answers": answers, "usage": {"input_tokens": math.inf}})


def test_a_redirect_is_not_followed(server, model):
    other = LoopbackChat()
    try:
        server.script.append((307, b"", {"Location": f"{other.url}/chat/completions"}))
        with pytest.raises(UserError, match="not followed"):
            model()
        assert other.times == []
    finally:
        other.close()


def test_the_key_is_sent_and_never_shown(server, model, monkeypatch):
    key = "sk-verySecret-123"
    server.key = key
    monkeypatch.setenv("MY_KEY", key)
    endpoint = model(api_key_env="MY_KEY")
    assert server.headers["Authorization"] == f"Bearer {key}"
    assert key not in repr((endpoint.record(), endpoint.notes, endpoint.statistics(), vars(endpoint)["_settings"]))
    # and with another header
    server.key = None
    model(api_key_env="MY_KEY", api_key_header="api-key")
    assert server.headers["api-key"] == key
    # and a server that repeats a wrong key is not repeated
    server.key = "another"
    monkeypatch.setenv("MY_KEY", "plain-secret-456")
    with pytest.raises(UserError, match="it does not accept the key in MY_KEY") as error:
        model(api_key_env="MY_KEY")
    assert "secret" not in str(error.value)
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(UserError, match="the environment variable MY_KEY is not set"):
        model(api_key_env="MY_KEY")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"api_key_env": "sk-verySecret-123"}, "api_key_env: give the name of an environment variable"),
        ({"url": "http://me:verySecret@host/v1"}, "url: it holds a user name or password"),
        ({"url": "ftp://host"}, "url: give http://HOST:PORT/v1"),
        ({"url": "http://host:port/v1"}, "url: "),
        ({"url": "http://host/v1?api=2"}, r"url: give it without \? and #"),
        ({"modell": "verySecret"}, "modell: Extra inputs are not permitted"),
        ({"concurrency": 0}, "concurrency: Input should be greater than or equal to 1"),
        ({"extra": {"messages": []}}, "extra: messages: set by truegap itself"),
        ({"model": ""}, "model: "),
    ],
)
def test_mistakes_in_settings_are_one_line_without_values(model, settings, said):
    with pytest.raises(UserError, match=said) as error:
        model(**settings)
    assert "verySecret" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("identifier", "content", "said"),
    [
        ("http://host/v1", None, "the model's name is missing after the address"),
        ("absent.yaml", None, "No such file"),
        ("endpoint.txt", "url: x", r"neither an address nor a \.yaml or \.json file"),
        ("endpoint.yaml", "url: [", r"not YAML \(line 1\)"),
        ("endpoint.yaml", "- 1", "the file: Input should be a valid dictionary"),
        ("endpoint.yaml", "!!python/object/apply:os.system [id]", "not YAML"),
    ],
)
def test_a_spec_that_is_none_is_one_line(tmp_path, monkeypatch, identifier, content, said):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / identifier).write_text(content)
    with pytest.raises(UserError, match=said) as error:
        load_model(f"endpoint:{identifier}")
    assert "\n" not in str(error.value)


def test_a_run_that_stopped_asks_only_for_what_is_missing(server, model, tmp_path):
    # given a server that breaks at the third image; then the answers to the first two are not asked for again
    asked = [_asked(seed, questions(2)) for seed in range(4)]
    endpoint = model(attempts=1, concurrency=1)
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        server.refuses = lambda _: {"message": "broken"} if len(server.asked) > 5 else None
        answers = cache.answers(endpoint, asked)
        done = [next(answers), next(answers)]
        with pytest.raises(UserError, match="broken"):
            next(answers)
        server.refuses = lambda _: None
        counts = Counts()
        again = list(cache.answers(model(concurrency=3), asked, counts=counts))
    assert again[:2] == done
    assert (counts.cached, counts.computed) == (4, 4)


def test_answers_that_were_paid_for_are_kept_question_by_question(server, model, tmp_path):
    # given a server that breaks at the sixth question about the first image; then five are known, and asked no more
    asked, before = [_asked(1, questions(9)), _asked(2, questions(9))], 1
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        endpoint = model(attempts=1, concurrency=1)
        server.refuses = lambda _: {"message": "broken"} if len(server.asked) > before + 5 else None
        with pytest.raises(UserError, match="broken"):
            list(cache.answers(endpoint, asked))
        server.refuses = lambda _: None
        counts = Counts()
        again = list(cache.answers(model(concurrency=2), asked, counts=counts))
    assert (counts.cached, counts.computed) == (5, 13)
    expected = list(model().answer_each([Item(picture(seed), questions(9)) for seed in (1, 2)]))
    assert [[each.log_probs for each in own] for own in again] == [[e.log_probs for e in own] for own in expected]


def test_leaving_early_stops_asking(server, model):
    # given one answer, and a server that fails at the next question; then nobody tries again once we have left
    endpoint = model(concurrency=1, backoff=4, attempts=2)
    server.script.extend([None, (500, b""), (500, b"")])
    answers = endpoint.answer_each(Item(picture(n), questions(1)) for n in range(1000))
    next(answers)
    while len(server.times) < 3:
        time.sleep(0.01)
    answers.close()
    assert endpoint.statistics()["retries"] == 0
    assert len(server.times) == 3
    server.script.clear()
    assert len(endpoint.answer(picture(), questions(2))) == 2


def _asked(seed: int, asked: tuple[Question, ...]) -> Asked:
    buffer = io.BytesIO()
    picture(seed).save(buffer, "PNG")
    return Asked(hashlib.sha256(buffer.getvalue()).hexdigest(), buffer.getvalue(), asked)
