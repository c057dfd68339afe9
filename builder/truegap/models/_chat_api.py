"""Chat completions: how a question is put to an OpenAI-compatible server, and what its answer says."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from truegap.models._endpoint_client import NonsenseError, RefusedError
from truegap.models._endpoint_settings import EndpointSettings
from truegap.models.generative import Answer, Question
from truegap.models.written import Outcome, named

FEW = 5
"""What servers that do not offer 20 log-probabilities mostly do."""
_BLANKS = {"▁": " ", "Ġ": " "}
"""How some tokenizers write one."""
_SLACK = 1e-3
"""A log-probability so far above 0 is rounding."""
_NEVER = -1000.0
"""Of a probability that is 0 in double precision: its exponential is 0, and sums with it are finite."""
_FILTERS = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation", "moderation_blocked")


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back to one question.

    Attributes:
        answer: The answer.
        outcome: Whether it names an option.
        listed: Whether log-probabilities came with it.
        bounded: Options that are not among the listed tokens, and got the largest probability that they can have.
        error: How much too large their share among the options may be, together.
        model: The model's name, as the server gives it.
        fingerprint: Of the server's configuration, where it gives one.
        read: Tokens of the question.
        written: Tokens of the answer.
    """

    answer: Answer
    outcome: Outcome
    listed: bool = False
    bounded: int = 0
    error: float = 0.0
    model: str | None = None
    fingerprint: str | None = None
    read: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """Which parameters a server takes.

    Attributes:
        logprobs: How many log-probabilities are asked for; 0 for written answers.
        length: Name of the parameter that limits the answer.
        left_out: Parameters that the server refuses.
    """

    logprobs: int
    length: str = "max_tokens"
    left_out: tuple[str, ...] = ()

    def without(self, refused: RefusedError) -> Shape | None:
        """What to try next, after the server named a parameter; None where it named none."""
        said = refused.said
        if refused.status not in {400, 422}:
            return None
        if self.length == "max_tokens" and "max_completion_tokens" in said:
            return replace(self, length="max_completion_tokens")
        if self.logprobs and "logprobs" in said:
            return replace(self, logprobs=FEW if self.logprobs > FEW and "top_logprobs" in said else 0)
        for name in ("temperature", "seed"):
            if name in said and name not in self.left_out:
                return replace(self, left_out=(*self.left_out, name))
        return None

    def parameters(self, settings: EndpointSettings, question: Question) -> dict[str, Any]:
        """Parameters of a request, beside the model and the messages."""
        one = self.logprobs and question.scoring == "letter"
        found: dict[str, Any] = {
            self.length: 1 if one else settings.max_tokens,
            "temperature": 0,
            "seed": settings.seed,
        }
        if self.logprobs:
            found |= {"logprobs": True, "top_logprobs": self.logprobs}
        return {name: value for name, value in found.items() if name not in self.left_out} | settings.extra


def wording(question: Question) -> str:
    """What a chat model is asked: a sentence cannot be continued over a chat API, so it is asked for in words."""
    if question.form == "chat":
        return question.text
    options = ", ".join(question.options[:-1]) + f" or {question.options[-1]}"
    return f"Which word comes next in this sentence about the image: {options}? Answer with that word.\n{question.text}"


def body(settings: EndpointSettings, shape: Shape, question: Question, image: str) -> dict[str, Any]:
    """The request; the image, as a data URL, goes before the text, so that servers reuse what they made of it."""
    content = [{"type": "image_url", "image_url": {"url": image}}, {"type": "text", "text": wording(question)}]
    messages = [{"role": "user", "content": content}]
    return {"model": settings.model, "messages": messages, **shape.parameters(settings, question)}


class _Lenient(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)


class _Listed(_Lenient):
    token: str
    logprob: float


class _Place(_Listed):
    top_logprobs: list[_Listed] | None = None


class _LogProbs(_Lenient):
    content: list[_Place] | None = None


class _Part(_Lenient):
    text: str | None = None


class _Message(_Lenient):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(_Lenient):
    message: _Message
    finish_reason: str | None = None
    logprobs: _LogProbs | None = None


Tokens = Annotated[int, Field(ge=0, le=10**9)]


class _Usage(_Lenient):
    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None


class _Completion(_Lenient):
    choices: list[_Choice] = Field(min_length=1)
    model: str | None = None
    system_fingerprint: str | None = None
    usage: _Usage | None = None


def read(question: Question, found: Any, asked: int) -> Reply:
    """What an answer says.

    Args:
        question: The question.
        found: The server's JSON.
        asked: How many log-probabilities were asked for.

    Raises:
        NonsenseError: It is no chat completion.
    """
    try:
        completion = _Completion.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise NonsenseError(f"its answer is no chat completion ({where}: {first['msg']})") from None
    choice, usage = completion.choices[0], completion.usage or _Usage()
    reply = _answered(question, choice, asked)
    return replace(
        reply,
        model=completion.model or None,
        fingerprint=completion.system_fingerprint or None,
        read=usage.prompt_tokens or 0,
        written=usage.completion_tokens or 0,
    )


def refused_answer(refused: RefusedError) -> Reply | None:
    """The answer where the server's filter would not let the question through; None for every other refusal."""
    if not any(name in f"{refused.code} {refused.said}" for name in _FILTERS):
        return None
    return Reply(Answer(None, None, None, refused.said), "refused")


def _answered(question: Question, choice: _Choice, asked: int) -> Reply:
    content = choice.message.content
    text = content if isinstance(content, str) else "".join(part.text or "" for part in content or ())
    places = (choice.logprobs and choice.logprobs.content) or []
    listed = bool(places) and asked > 0
    scored = _scored(question, places[0], text) if listed else None
    if scored is not None:
        return scored
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return Reply(Answer(None, None, None, choice.message.refusal or text), "refused", listed)
    if listed and question.scoring == "letter":  # a single token that is no option is not a whole answer
        return Reply(Answer(None, None, None, text), "unclear", listed)
    option, outcome = named(question, text)
    return Reply(Answer(None, None, option, text), outcome, listed)


def _scored(question: Question, place: _Place, text: str) -> Reply | None:
    """The answer from the next token's log-probabilities; None where they say nothing about the options.

    An option counts with every listed token that is it, with and without a blank before it. One that is not listed has
    at most the probability of the least probable listed token, and at most what the listed ones leave over: it gets
    the smaller of the two, a bound and not an estimate. Where no option is listed, or where a whole option text may be
    several tokens long, nothing is made up.
    """
    listed = place.top_logprobs or [_Listed(token=place.token, logprob=place.logprob)]
    if any(math.isnan(each.logprob) or each.logprob > _SLACK for each in listed):
        raise NonsenseError("its answer has log-probabilities above 0, or none at all")
    found = [(_plain(each.token), math.exp(min(each.logprob, 0.0))) for each in listed]
    shares: list[float | None] = [
        math.fsum(of) if (of := [share for token, share in found if token in {option, f" {option}"}]) else None
        for option in question.options
    ]
    known = [share for share in shares if share is not None]
    missing = shares.count(None)
    if not known or (missing and question.scoring == "text"):
        return None
    left = max(0.0, 1.0 - math.fsum(share for _, share in found))
    bound = min(left, *(share for _, share in found)) if place.top_logprobs else left
    sure, added = math.fsum(known), missing * bound
    best = max(known)
    chosen = shares.index(best) if known.count(best) == 1 else None
    filled = [bound if share is None else min(share, 1.0) for share in shares]
    return Reply(
        Answer(tuple(math.log(share) if share else _NEVER for share in filled), (1,) * len(filled), chosen, text),
        "unclear" if chosen is None else "option",
        listed=True,
        bounded=missing,
        error=added / (sure + added) if added else 0.0,
    )


def _plain(token: str) -> str:
    for mark, blank in _BLANKS.items():
        token = token.replace(mark, blank)
    return token
