"""Which options of `truegap evaluate` belong to which protocol, and the protocol that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from truegap.errors import UserError

if TYPE_CHECKING:
    from truegap.protocols.base import Protocol

COMMON = ("seed", "resamples")
OWN = {
    "retrieval": ("prompts", "k", "draws", "target", "empty", "aggregate"),
    "resolution": ("candidates", "ties", "round_intermediate", "threshold"),
    "retrieval-occupations": ("k", "target", "empty"),
    "counterfactual": (
        "contexts",
        "option_text",
        "ipss",
        "b_max",
        "difference",
        "delta_acc",
        "caption",
        "threshold",
    ),
    "vqa": ("questions", "order", "yes", "normalise", "view", "margin", "threshold"),
}
"""By protocol; an option may be several protocols' own."""
OPTIONS = tuple(dict.fromkeys((*COMMON, *(option for own in OWN.values() for option in own))))
"""Of all protocols."""


def make_protocol(name: str, options: Mapping[str, Any], given: set[str]) -> Protocol:
    """The protocol with its conventions.

    Args:
        name: Of the protocol.
        options: Of all protocols, as typed or by default.
        given: Those that were typed.

    Raises:
        UserError: The protocol is unknown, has not an option that was typed, or an option is not usable.
    """
    from truegap.protocols.choose import protocol_class

    chosen: Any = protocol_class(name)
    others = {option for own in OWN.values() for option in own} - set(OWN[name])
    if foreign := sorted(given & others):
        of = ", ".join(protocol for protocol, own in OWN.items() if foreign[0] in own)
        raise UserError(f"--{foreign[0].replace('_', '-')} is an option of protocol {of}, not of {name}: leave it out")
    own = {option: _READ.get(option, _as_it_is)(options[option]) for option in OWN[name]}
    made: Protocol = chosen(**own, seed=options["seed"], n_resamples=options["resamples"])
    return made


def check_options(options: Mapping[str, Any], given: set[str]) -> None:
    """Refuses what was typed and cannot be read, whatever the protocol.

    Raises:
        UserError: A number, a file or a name is not usable.
    """
    for option in _READ.keys() & given:
        _READ[option](options[option])


def split(names: str) -> list[str]:
    """The parts of a text with commas."""
    return [each.strip() for each in names.split(",") if each.strip()]


def _cuts(k: str) -> tuple[int, ...] | None:
    try:
        return tuple(int(each) for each in split(k)) or None
    except ValueError:
        raise UserError(f"--k {k}: give whole numbers separated by commas, such as 5,10") from None


def _prompts(names: str) -> Any:
    from truegap.protocols.prompts import load_prompts

    return tuple(load_prompts(name) for name in split(names))


def _questions(name: str) -> Any:
    from truegap.protocols.questions import load_questions

    return load_questions(name)


def _contexts(names: str) -> tuple[str, ...]:
    return tuple(split(names))


def _as_it_is(value: Any) -> Any:
    return value


_READ: dict[str, Callable[[Any], Any]] = {
    "k": _cuts,
    "prompts": _prompts,
    "questions": _questions,
    "contexts": _contexts,
}
