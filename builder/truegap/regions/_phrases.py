"""Names of things as prompts of open-vocabulary detectors, and the detectors' phrases as names again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

_ASIDE = re.compile(r"\([^)]*\)")


def prompt(name: str) -> str:
    """A name as it is told to a model: lower case, without what stands in brackets, without the dot that ends a phrase.

    >>> prompt("Ice_cream (food)"), prompt("T.V.")
    ('ice cream', 'tv')
    """
    plain = " ".join(_ASIDE.sub(" ", name.replace("_", " ")).replace(".", "").lower().split())
    return plain or name.replace(".", "").lower()


def chunks(names: Sequence[str], fits: Callable[[list[str]], bool]) -> Iterator[list[str]]:
    """Names in groups that fit into one prompt; the first name leads every group.

    >>> list(chunks(["person", "cup", "dog", "cat"], lambda part: len(part) <= 3))
    [['person', 'cup', 'dog'], ['person', 'cat']]

    Args:
        names: At least one.
        fits: Whether a group still fits; a pair always does.
    """
    group = [names[0]]
    for name in names[1:]:
        if len(group) > 1 and not fits([*group, name]):
            yield group
            group = [names[0]]
        group.append(name)
    yield group


def name_of(phrase: str, names: Sequence[str]) -> str:
    """The name that a detected phrase stands for; empty if it stands for none.

    Grounding DINO returns the words whose score is high: half of a name, or the words of two.

    >>> name_of("ball", ["person", "sports ball"]), name_of("wine glass cup", ["cup", "wine glass"])
    ('sports ball', 'wine glass')
    >>> name_of("", ["cup"])
    ''

    Args:
        phrase: Words.
        names: What was asked for, the more likely of equals first.
    """
    words = set(phrase.replace(".", " ").replace("##", "").lower().split())
    asked = {name: set(prompt(name).split()) for name in names}
    shared = {name: len(words & parts) / len(words | parts) for name, parts in asked.items() if words & parts}
    return max(shared, key=lambda name: (shared[name], len(asked[name]))) if shared else ""
