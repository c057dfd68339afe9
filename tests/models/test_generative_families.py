"""Every family of generative models: the library's own `generate`, one question at a time, is the reference."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from tiny_generative import FAMILIES, SHARED, WHOLE, save
from truegap.models import Question, load_model

TOLERANCE = 1e-4
LETTERS = ("A", "B", "C")
PRONOUNS = ("his", "her", "their")
ASKED = ("kind", "good at singing", "lazy", "x", "a very good doctor of some sort")
QUESTIONS = [
    *(Question(f"Is the person {w}?\nA. Yes\nB. No\nC. Unsure\nAnswer with a letter", LETTERS) for w in ASKED),
    Question("The doctor and ", PRONOUNS, form="continue", scoring="text"),
    Question("Whose is it?", PRONOUNS, scoring="text"),
]
SHARE = [family.__name__ for family in SHARED]
CHAT = [*SHARE, "qwen3_5", "mllama"]
BOTH_WAYS = ["paligemma", "paligemma2"]
ENCODERS = ["blip2_t5", "instructblip_t5"]
CAPTIONERS = ["blip", "git"]
ENCODED_ONCE = [*(family.__name__ for family in WHOLE if family.__name__ != "qwen3_5")]
"""Those whose image encoder takes one image per row, and not the patches of all in one."""
WORDS = {"blip2": "Question: {} Answer:", "kosmos2": "Question: {} Answer:", "paligemma": "answer en {}"}


class Family(NamedTuple):
    name: str
    ours: object
    model: object
    processor: object


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory) -> Family:
    """A family's tiny model, loaded as a user would, and the library's own objects from the same folder."""
    folder = save(request.param, tmp_path_factory.mktemp("generative") / request.param)
    automatic = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    return Family(request.param, load_model(str(folder), device="cpu"), automatic, processor)


@pytest.fixture(scope="module")
def images() -> list[Image.Image]:
    random = np.random.default_rng(0)
    return [
        Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))
        for height, width in ((80, 60), (40, 90))
    ]


def written(family: Family, question: Question) -> str:
    """What goes into the processor, by hand: the template's turn, or the family's words."""
    if family.name in CHAT:
        text = [{"type": "text", "text": question.text}] if question.form == "chat" else []
        turn = [{"role": "user", "content": [{"type": "image"}, *text]}]
        prompt = family.processor.apply_chat_template(turn, add_generation_prompt=True)
        if question.form == "continue":
            return (prompt + blank_before(family, prompt) + question.text).rstrip(" ")
        return prompt
    words = next((words for start, words in WORDS.items() if family.name.startswith(start)), "{}")
    return words.format(question.text) if question.form == "chat" else question.text.rstrip(" ")


def blank_before(family: Family, prompt: str) -> str:
    """What these models write begins with a blank, unless a line break or a mark stands before it."""
    return "" if prompt.endswith("\n") or family.name == "mistral3" else " "


def processed(family: Family, image, text: str) -> dict:
    """The processor's tensors; a template that writes the mark of the beginning must not get a second one."""
    mark = "<image>" if family.name in BOTH_WAYS else ""
    once = {"add_special_tokens": False} if text.startswith("<s>") else {}
    inputs = family.processor(images=[image], text=[mark + text], return_tensors="pt", **once)
    return {name: tensor for name, tensor in inputs.items() if name != "labels"}


def next_logits(family: Family, inputs: dict) -> torch.Tensor:
    """Raw logits of the first token that `generate` would write."""
    if family.name == "git":  # as its documentation does for questions
        inputs = {"pixel_values": inputs["pixel_values"], "input_ids": inputs["input_ids"][:, :-1]}
    with torch.no_grad():
        output = family.model.generate(
            **inputs, max_new_tokens=1, do_sample=False, output_logits=True, return_dict_in_generate=True
        )
    return output.logits[0][0].log_softmax(-1)


def by_letters(family: Family, image, question: Question) -> list[float]:
    log_probs = next_logits(family, processed(family, image, written(family, question)))
    vocabulary = family.processor.tokenizer.get_vocab()
    forms = ["{}"] if family.name in CAPTIONERS else ["{}", "Ġ{}"]
    found = []
    for letter in question.options:
        names = [form.format(letter.lower() if family.name in CAPTIONERS else letter) for form in forms]
        found.append(float(log_probs[[vocabulary[name] for name in names]].logsumexp(0)))
    return found


def by_tokens(family: Family, image, question: Question) -> list[float]:
    """The chain rule, by hand: an option token by token, each after those before it."""
    prompt = written(family, question)
    apart = family.name in BOTH_WAYS + ENCODERS + CAPTIONERS
    blank = " " if question.form == "continue" else blank_before(family, prompt)
    inputs = processed(family, image, prompt)

    @cache
    def after(before: tuple[int, ...]) -> torch.Tensor:
        """Options begin alike: what follows their common tokens is asked for once."""
        return next_logits(family, extended(family, inputs, list(before)))

    found = []
    for option in question.options:
        ids = family.processor.tokenizer((not apart) * blank + option, add_special_tokens=False).input_ids
        if family.name in ENCODERS:
            with torch.no_grad():
                loss = family.model(**inputs, labels=torch.tensor([ids])).loss
            found.append(-float(loss) * len(ids))
            continue
        if family.name in BOTH_WAYS:
            both = family.processor(images=[image], text=[f"<image>{prompt}"], suffix=[option], return_tensors="pt")
            with torch.no_grad():
                logits = family.model(**{k: v for k, v in both.items() if k != "labels"}).logits[0, :-1]
            chosen = logits.log_softmax(-1).gather(1, both["input_ids"][0, 1:, None])[:, 0]
            found.append(float(chosen[-len(ids) - 1 : -1].sum()))  # the last is the end mark of training
            continue
        found.append(sum(float(after(tuple(ids[:n]))[ids[n]]) for n in range(len(ids))))
    return found


def extended(family: Family, inputs: dict, ids: list[int]) -> dict:
    """The inputs with more tokens at the end, before the mark that closes a text where there is one."""
    closed = 1 if family.name in CAPTIONERS else 0
    more = dict(inputs)
    length = inputs["input_ids"].shape[1]
    for name in ("input_ids", "attention_mask", "mm_token_type_ids", "token_type_ids", "image_embeds_position_mask"):
        if name in inputs:
            old = inputs[name]
            fill = ids if name == "input_ids" else [int(name == "attention_mask")] * len(ids)
            new = torch.tensor([fill], dtype=old.dtype)
            more[name] = torch.cat([old[:, : length - closed], new, old[:, length - closed :]], 1)
    return more


def test_scores_are_those_of_one_plain_forward_per_question(family, images, record_property):
    # Given the library's own calls, one question at a time
    # When all questions are asked at once, of images of two shapes
    worst, spread = 0.0, []
    for image, questions in zip(images, (QUESTIONS, QUESTIONS[:6]), strict=True):
        answers = family.ours.answer(image, questions)

        # Then the log-probabilities agree
        for question, answer in zip(questions, answers, strict=True):
            reference = by_letters if question.scoring == "letter" else by_tokens
            expected = reference(family, image, question)
            worst = max(worst, *(abs(a - b) for a, b in zip(answer.log_probs, expected, strict=True)))
            spread.append(answer.log_probs[0])
            assert answer.chosen == int(np.argmax(expected))
    record_property("largest_difference", worst)
    assert worst <= TOLERANCE
    assert np.std(spread[: len(ASKED)]) > 20 * TOLERANCE  # or the agreement would mean nothing
    assert abs(spread[0] - spread[len(QUESTIONS)]) > 20 * TOLERANCE  # the image matters


def test_neither_batch_nor_company_nor_order_changes_scores(family, images):
    ours, image = family.ours, images[0]
    together = ours.answer(image, QUESTIONS)
    reversed_order = ours.answer(image, QUESTIONS[::-1])[::-1]
    alone = [ours.answer(image, [question])[0] for question in QUESTIONS]

    for other in (reversed_order, alone, ours.answer(image, QUESTIONS, 1), ours.answer(image, QUESTIONS, 3)):
        for a, b in zip(together, other, strict=True):
            np.testing.assert_allclose(a.log_probs, b.log_probs, atol=TOLERANCE)
            assert (a.tokens, a.chosen) == (b.tokens, b.chosen)


def test_reading_the_image_with_every_question_gives_the_same(family, images, monkeypatch):
    # Given a family that may share a prefix, but does not, and questions of one length, which go through together
    ours, image = family.ours, images[0]
    same = [Question(f"Is it {letter}?", LETTERS) for letter in "abc"]
    expected = [answer.log_probs for answer in ours.answer(image, same)]
    monkeypatch.setattr(ours, "_shares", False)
    monkeypatch.setattr(ours, "notes", [])

    np.testing.assert_allclose([answer.log_probs for answer in ours.answer(image, same)], expected, atol=TOLERANCE)


def test_the_image_is_read_once_where_it_can_be(family, images):
    ours, passes = family.ours, []
    ours.answer(images[0], QUESTIONS)  # the first image is read both ways
    hook = ours._model.register_forward_pre_hook(lambda *_, **__: passes.append(1))
    try:
        ours.answer(images[1], QUESTIONS[:3])
    finally:
        hook.remove()

    if family.name in SHARE:
        assert (len(passes), ours.notes) == (2, [])
    else:
        assert "reads the image once per question: " in ours.notes[0]
        assert len(ours.notes) == 1 + (family.name in ENCODED_ONCE)


@pytest.mark.parametrize("batch_size", [1, 32])
def test_the_image_is_encoded_once_where_it_is_read_with_every_question(family, images, batch_size):
    # Given how many rows go through the first layer of pixels
    ours, rows = family.ours, []
    ours.answer(images[0], QUESTIONS[:2])  # shows whether anything can be shared
    pixels = next(part for part in ours._model.modules() if isinstance(part, (torch.nn.Conv2d, torch.nn.Conv3d)))
    hook = pixels.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    try:
        ours.answer(images[1], QUESTIONS[:1], batch_size)
        alone = sum(rows)
        rows.clear()
        ours.answer(images[1], QUESTIONS[:4], batch_size)
    finally:
        hook.remove()

    if family.name in ENCODED_ONCE:
        assert sum(rows) == alone
        assert "encodes the image once" in ours.notes[1]
    elif family.name not in SHARE:
        assert sum(rows) == 4 * alone


def test_the_record_says_what_it_is(family):
    record = family.ours.record()

    assert record.kind == ("captioner" if family.name in CAPTIONERS else "generative")
    assert record.parameters == sum(p.numel() for p in family.model.parameters())


def test_the_prompt_is_what_is_read(family, images):
    # Given the tokens of the library's processor, the image's taken out
    for question in (QUESTIONS[0], QUESTIONS[5]):
        text = written(family, question)
        tokens = processed(family, images[0], text)["input_ids"][0]
        tokenizer = family.processor.tokenizer
        marks = [t for t in tokens.tolist() if t not in tokenizer.all_special_ids]
        if family.name in CAPTIONERS:
            shown = family.ours.prompt(question).removeprefix("<image>[DEC]").removeprefix("<image>[CLS]")
            assert shown == text
            continue
        if family.name in CHAT:
            assert family.ours.prompt(question).removeprefix("<s>") == text.removeprefix("<s>")
            assert family.ours.prompt(question).count("<s>") == tokens.tolist().count(tokenizer.bos_token_id)
            continue
        read = tokenizer.decode(marks)
        assert read.endswith(family.ours.prompt(question).rsplit(">", 1)[1])
