"""Which option a written answer names: models are asked for a letter, and write what they like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from truegap.models.generative import Question

Outcome = Literal["option", "refused", "unclear"]

_LINE = re.compile(r"^[ \t]*\(?([A-Za-z])[.):][ \t]+(.+?)[ \t]*$", re.MULTILINE)
_INLINE = re.compile(r"\(([A-Za-z])\)\s+(.+?)(?=\s*\([A-Za-z]\)|\s*$|\s*\n)")
_THOUGHT = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)
_OPENING = re.compile(
    r"^(?:(?:sure|certainly|ok(?:ay)?)[,.!:]?\s+)?(?:based on [^,]*,\s*)?(?:the\s+|my\s+)?"
    r"(?:(?:correct|best|right)\s+)?(?:(?:answer|option|choice)(?:\s+(?:is|would be))?\s*[:,]?\s*)(?:option\s+)?",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am)?\s+(?:(?:really |so |very )?sorry|can(?:no|')t|cannot|can not|won't|will not|(?:not|un)\s?able"
    r"|not (?:comfortable|going))|as an? (?:ai|language model)|unable to|(?:can't|cannot|not able to|not possible to)"
    r"\s+(?:determine|tell|say|assess|judge|make|help|assist|infer|answer|identify)|not appropriate|inappropriate)",
    re.IGNORECASE,
)
_NOT = re.compile(r"(?:\bnot|n't|\bneither|\bnor|\bnever|\bwithout)(?:\s+(?:an?|the))?\s+$", re.IGNORECASE)
_ENDS = r"(?:[.):\],;!*]|\s*$|\s*\n|\s*[-\u2013\u2014]\s)"
"""What stands after an option that a text begins with."""
_ARTICLES = ("A", "I")
"""Letters that are words too."""
_DETERMINERS = ("no",)
"""Words that answer only where nothing follows: "no person is to be seen" does not say no."""
_MARKS = " \t\r\n*_`\"'“”#>"
_STRAIGHT = {0x2018: "'", 0x2019: "'"}
_LONGEST = 1000
"""What an answer says is said by then."""
_ROUND = "()[]{}<>.,:;!?" + _MARKS


class Named(NamedTuple):
    """What a text says: an option by position, a refusal, or nothing that can be told."""

    option: int | None
    outcome: Outcome


def named(question: Question, text: str) -> Named:
    r"""The option that a text names.

    In this order: the text is an option, or begins with one (`B`, `(B)`, `B. No`, `No, …`, `The answer is B`); it
    refuses; it mentions one option alone (`(B)`, `option B`, or the option's words, without a "not" before them).

    Args:
        question: Its options, and where these are letters the words that stand beside them in its text.
        text: What the model wrote.

    >>> asked = Question("Kind?\nA. Yes\nB. No", ("A", "B"))
    >>> named(asked, "(B) No, since …"), named(asked, "A doctor"), named(asked, "I cannot tell.")
    (Named(option=1, outcome='option'), Named(option=None, outcome='unclear'), Named(option=None, outcome='refused'))
    """
    whole = _THOUGHT.sub("", text).translate(_STRAIGHT).strip(_MARKS)[:_LONGEST]
    said = _OPENING.sub("", whole, count=1).strip(_MARKS)
    if not said:
        return Named(None, "unclear")
    words = option_words(question)
    found = _whole(question, words, said)
    if len(found) != 1:
        found = _leading(question, words, said)
    if len(found) == 1:
        return Named(found.pop(), "option")
    if found:
        return Named(None, "unclear")
    if _REFUSAL.search(whole):
        return Named(None, "refused")
    mentioned = _mentioned(question, words, whole)
    return Named(mentioned.pop(), "option") if len(mentioned) == 1 else Named(None, "unclear")


def option_words(question: Question) -> tuple[str, ...]:
    r"""Per option, the words that stand for it: those beside its letter in the question, or the option itself.

    >>> option_words(Question("Who?\nOptions: (A) nurse (B) chef", ("(A", "(B")))
    ('nurse', 'chef')
    """
    keys = [_key(option) for option in question.options]
    for pattern in (_LINE, _INLINE):
        found = {letter: words for letter, words in pattern.findall(question.text) if letter in keys}
        if len(found) == len(keys):
            return tuple(found[key] for key in keys)
    return tuple(keys)


def stem(question: Question) -> str:
    """The question without its options, and without what follows them."""
    keys = [_key(option) for option in question.options]
    for pattern in (_LINE, _INLINE):
        starts = [match.start() for match in pattern.finditer(question.text) if match[1] in keys]
        if len(starts) == len(keys):
            before = question.text[: starts[0]].strip()
            return re.sub(r"\s*\bOptions:$", "", before)
    return question.text


def _key(option: str) -> str:
    """An option without the marks round it: `(A` and `A.` are A."""
    return option.strip(_ROUND) or option


def _same(word: str) -> str:
    return " ".join(word.casefold().split()).strip(_ROUND)


def _whole(question: Question, words: tuple[str, ...], said: str) -> set[int]:
    """Options that the whole text is, whatever its case and marks."""
    text = _same(said)
    both = zip(question.options, words, strict=True)
    return {n for n, (option, word) in enumerate(both) if text in {_same(_key(option)), _same(word)}}


def _leading(question: Question, words: tuple[str, ...], said: str) -> set[int]:
    """Options that the text begins with; more than one where it is nothing but a list of them."""
    keys = [_key(option) for option in question.options]
    one = "|".join(map(re.escape, (*keys, *words)))
    if re.fullmatch(rf"\W*(?:{one})(?:\W*(?:\band\b|\bor\b|[&/,])\W*(?:{one}))+\W*", said):
        return set(range(len(keys)))
    found = set()
    for n, (key, word) in enumerate(zip(keys, words, strict=True)):
        # "A doctor" begins with an article: a letter needs a mark after it, the line's end, or its option's words.
        if re.match(rf"\W?{re.escape(key)}(?:{_ENDS}|\s+{re.escape(word)}\b)", said):
            found.add(n)
        if (len(key) > 1 or word != key) and re.match(rf"{re.escape(word)}{_ENDS}", said, re.IGNORECASE):
            found.add(n)
    return found


def _mentioned(question: Question, words: tuple[str, ...], said: str) -> set[int]:
    """Options that the text names anywhere: a marked letter, else the option's words."""
    keys = [_key(option) for option in question.options]
    if marked := {n for n, key in enumerate(keys) if _is_marked(key, keys, said)}:
        return marked
    found = set()
    for n in sorted(range(len(words)), key=lambda n: -len(words[n])):
        if len(words[n]) < 2:  # noqa: PLR2004  a letter is no word
            continue
        ends = r"(?=[^\w\s]|\s*$)" if words[n].casefold() in _DETERMINERS else r"(?!\w)"
        pattern = re.compile(rf"(?<!\w){re.escape(words[n])}{ends}", re.IGNORECASE)
        if any(not _NOT.search(said[: match.start()]) for match in pattern.finditer(said)):
            found.add(n)
        said = pattern.sub("\0", said)  # a head nurse is no nurse
    return found


def _is_marked(key: str, keys: Sequence[str], said: str) -> bool:
    """Whether an option's letter stands in brackets, after the word "option", or as the last word of no list."""
    article = r"(?!\s\w)" if key in _ARTICLES else ""
    one = re.escape(key)
    if re.search(rf"\({one}\)|\b(?i:option|answer|choice)(?:\s+is)?\s*:?\s+\W?{one}\b{article}", said):
        return True
    another = "|".join(re.escape(other) for other in keys if other != key)
    in_list = rf"(?<!\w)(?:{another})\W*(?:\bor\b|\band\b)?\W*{one}\W*$"
    return len(key) == 1 and bool(re.search(rf"(?<!\w){one}\W*$", said)) and not re.search(in_list, said)
