"""From questions to sequences of tokens, and from their log-probabilities back to answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from truegap.errors import UserError
from truegap.models.generative import Answer, Question

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Which entries of the distribution that follows a position count for which option.

    Attributes:
        position: After which token of the row the distribution is read.
        option: By place in the question's options.
        tokens: The entries; several are ways to write the same, whose probabilities are added.
    """

    position: int
    option: int
    tokens: Ids


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence that the model reads, and what is read off it."""

    ids: Ids
    reads: tuple[Read, ...]


def letter_tokens(tokenizer: Any, letter: str, model: str) -> Ids:
    """The tokens that are this letter: as written, and with a blank before it.

    Raises:
        UserError: The tokenizer needs several tokens, so that the next token's probability is not the letter's.
    """
    found: list[int] = []
    for text in (letter, f" {letter}"):
        ids = tuple(tokenizer(text, add_special_tokens=False).input_ids)
        while len(ids) > 1 and not tokenizer.decode(ids[:1]).strip():
            ids = ids[1:]  # a blank as a token of its own
        # Some vocabularies know small letters only: then the small one is how the model would write it.
        if len(ids) != 1 or tokenizer.decode(ids).strip().casefold() != letter.casefold():
            raise UserError(
                f"model {model}: its tokenizer writes the option {text!r} as {len(ids)} tokens "
                f"({', '.join(map(repr, tokenizer.convert_ids_to_tokens(list(ids))))}), not as one that is it: "
                "score whole option texts instead of letters"
            )
        found += ids
    bare = tokenizer.convert_tokens_to_ids(letter)  # SentencePiece writes it with a mark unless it follows a line break
    if bare is not None and bare != tokenizer.unk_token_id:
        found.append(bare)
    return tuple(sorted(set(found)))


def rows_of(question: Question, encode: Callable[[str], Ids], letters: Callable[[str], Ids], model: str) -> list[Row]:
    """What the model must read to answer a question: one row, or several where an option has several tokens.

    Args:
        question: The question.
        encode: From what follows the question, perhaps nothing, to the tokens of both.
        letters: Tokens of a letter.
        model: Its name, for the message.

    Raises:
        UserError: Options that are different have the same tokens, or one has none.
    """
    asked = encode("")
    if question.scoring == "letter":
        return [
            Row(asked, tuple(Read(len(asked) - 1, n, letters(option)) for n, option in enumerate(question.options)))
        ]
    reads: dict[Ids, list[Read]] = {}
    options = [encode(option) for option in question.options]
    if asked in options or len(set(options)) < len(options):
        raise UserError(
            f"model {model}: its tokenizer writes the options {', '.join(map(repr, question.options))} alike, or one "
            "of them as nothing: what it has no tokens for cannot be scored"
        )
    for n, whole in enumerate(options):
        places = range(shared([asked, whole]), len(whole))
        reads.setdefault(whole[:-1], []).extend(Read(place - 1, n, (whole[place],)) for place in places)
    return [Row(ids, tuple(found)) for ids, found in reads.items()]


def shared(sequences: Sequence[Ids]) -> int:
    """How many tokens all sequences begin with."""
    shortest, longest = min(sequences), max(sequences)
    return next((n for n, (a, b) in enumerate(zip(shortest, longest, strict=False)) if a != b), len(shortest))


def answer_of(question: Question, rows: Sequence[Row], values: Sequence[Sequence[float]]) -> Answer:
    """The answer to a question.

    Args:
        question: The question.
        rows: Its rows.
        values: Per row and read, the log-probability.
    """
    sums = [0.0] * len(question.options)
    tokens = [0] * len(question.options)
    for row, found in zip(rows, values, strict=True):
        for read, value in zip(row.reads, found, strict=True):
            sums[read.option] += value
            tokens[read.option] += 1
    best = max(sums)
    return Answer(tuple(sums), tuple(tokens), sums.index(best) if sums.count(best) == 1 else None)
