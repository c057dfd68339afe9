"""Typed questions, of which `transformers serve` gives the probability of every option without writing anything."""

from __future__ import annotations

import math
from typing import Any

from truegap.models._chat_api import Reply
from truegap.models._endpoint_client import NonsenseError
from truegap.models._endpoint_settings import EndpointSettings
from truegap.models.generative import Answer, Question
from truegap.models.written import option_words, stem

PATH = "/systemone"
IMAGE = "<image>"
_NAME = "question"
_NEVER = -1000.0


def state(question: Question) -> str:
    """What is shown with a question: the image, and a sentence that is to be continued."""
    return IMAGE if question.form == "chat" else f"{IMAGE}\n{question.text}"


def instructions(question: Question) -> str:
    """What is asked; the server adds the options and its own instruction, as its template says."""
    return stem(question) if question.form == "chat" else "Which word comes next in this sentence about the image?"


def body(settings: EndpointSettings, question: Question, image: str) -> dict[str, Any]:
    """The request, with the image as a data URL given."""
    kind, _, data = image.partition(";base64,")
    asset = {"type": "image", "format": kind.rpartition("/")[2], "data_base64": data}
    asked = {"type": "choice", "instructions": instructions(question), "criteria": dict.fromkeys(criteria(question))}
    return {
        "model": settings.model,
        "state": state(question),
        "questions": {_NAME: asked},
        "assets": {IMAGE: asset},
        **settings.extra,
    }


def criteria(question: Question) -> tuple[str, ...]:
    """Names of the options there, in their order."""
    words = option_words(question)
    return words if len(set(words)) == len(words) else question.options


def read(question: Question, found: Any) -> Reply:
    """What an answer says: probabilities among the options, whose mass outside is not known.

    Raises:
        NonsenseError: It is no answer to a choice.
    """
    try:
        given = found["answers"][_NAME]["probabilities"]
        shares = [float(given[name]) for name in criteria(question)]
        usage = found.get("usage") or {}
        read, model = int(usage.get("input_tokens") or 0), found.get("model")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise NonsenseError("its answer is no typed decision with a probability per option") from None
    if not all(0 <= share <= 1 for share in shares) or not math.isclose(math.fsum(shares), 1, abs_tol=1e-2):
        raise NonsenseError("the probabilities in its answer are none")
    best = max(shares)
    chosen = shares.index(best) if shares.count(best) == 1 else None
    log_probs = tuple(math.log(share) if share else _NEVER for share in shares)
    return Reply(
        Answer(log_probs, (1,) * len(shares), chosen),
        "unclear" if chosen is None else "option",
        listed=True,
        model=model if isinstance(model, str) else None,
        read=read,
    )
