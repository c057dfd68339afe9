"""From questions to tokens and back."""

from __future__ import annotations

import math

import pytest

from tiny_generative import tokenizer, word_pieces
from truegap.errors import UserError
from truegap.models import Question
from truegap.models._rows import Read, Row, answer_of, letter_tokens, rows_of, shared
from truegap.models._shared_prefix import PACK, packs

LETTERS = ("A", "B", "C")


@pytest.mark.parametrize("options", [(), ("A",), ("A", "A"), ("A", "")])
def test_a_question_has_two_different_options(options):
    with pytest.raises(ValueError, match="at least two, all different, none empty"):
        Question("?", options)


def test_a_letter_counts_with_and_without_a_blank():
    words = tokenizer([])
    vocabulary = words.get_vocab()

    assert letter_tokens(words, "B", "m") == tuple(sorted((vocabulary["B"], vocabulary["ĠB"])))


def test_a_vocabulary_of_small_letters_has_the_small_one():
    pieces = word_pieces()

    assert letter_tokens(pieces, "B", "m") == (pieces.get_vocab()["b"],)


@pytest.mark.parametrize("option", ["AB", "Yes"])
def test_several_tokens_are_no_letter(option):
    with pytest.raises(UserError, match=f"model m: its tokenizer writes the option '{option}' as") as error:
        letter_tokens(tokenizer([]), option, "m")
    assert "score whole option texts instead" in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_letter_is_no_letter():
    with pytest.raises(UserError, match=r"as 1 tokens \('\[UNK\]'\), not as one that is it"):
        letter_tokens(word_pieces(), "€", "m")


def encode(option: str) -> tuple[int, ...]:
    """Characters, after a question of two tokens."""
    return (1, 2, *map(ord, option))


def test_letters_are_read_after_the_question():
    rows = rows_of(Question("?", LETTERS), encode, lambda letter: (ord(letter), ord(letter) + 100), "m")

    assert rows == [Row((1, 2), tuple(Read(1, n, (65 + n, 165 + n)) for n in range(3)))]


def test_options_of_one_token_share_a_row_and_longer_ones_have_their_own():
    rows = rows_of(Question("?", ("x", "y", "zw"), scoring="text"), encode, lambda _: (), "m")

    assert rows == [
        Row((1, 2), (Read(1, 0, (ord("x"),)), Read(1, 1, (ord("y"),)))),
        Row((1, 2, ord("z")), (Read(1, 2, (ord("z"),)), Read(2, 2, (ord("w"),)))),
    ]


def test_an_option_that_changes_the_question_s_last_token_is_read_from_there():
    # Given a tokenizer that joins the question's end and the option
    joined = {"": (1, 2), "x": (1, 7), "y": (1, 8)}

    rows = rows_of(Question("?", ("x", "y"), scoring="text"), joined.__getitem__, lambda _: (), "m")

    assert rows == [Row((1,), (Read(0, 0, (7,)), Read(0, 1, (8,))))]


@pytest.mark.parametrize("joined", [{"": (1,), "x": (1, 7), "y": (1, 7)}, {"": (1,), "x": (1, 7), "y": (1,)}])
def test_options_that_the_tokenizer_cannot_tell_apart_are_an_error(joined):
    with pytest.raises(UserError, match="model m: its tokenizer writes the options 'x', 'y' alike, or one of them as"):
        rows_of(Question("?", ("x", "y"), scoring="text"), joined.__getitem__, lambda _: (), "m")


def test_values_are_summed_per_option():
    question = Question("?", ("x", "y", "zw"), scoring="text")
    rows = rows_of(question, encode, lambda _: (), "m")

    answer = answer_of(question, rows, [[-1.0, -2.0], [-0.25, -0.5]])

    assert (answer.log_probs, answer.tokens, answer.chosen) == ((-1.0, -2.0, -0.75), (1, 1, 2), 2)


def test_nobody_is_chosen_in_a_tie_and_the_impossible_never():
    question = Question("?", ("x", "y"))
    rows = [Row((1,), (Read(0, 0, (5,)), Read(0, 1, (6,))))]

    assert answer_of(question, rows, [[-1.0, -1.0]]).chosen is None
    assert answer_of(question, rows, [[-math.inf, -1.0]]).chosen == 1


def test_what_sequences_share():
    assert shared([(1, 2, 3), (1, 2, 4), (1, 2, 3, 5)]) == 2
    assert shared([(1, 2), (1, 2, 3)]) == 2
    assert shared([(4,), (5,)]) == 0


def test_packs_keep_order_and_hold_neither_too_many_rows_nor_too_many_tokens():
    rows = [Row(tuple(range(length)), ()) for length in (200, 210, 200, 600, 5, 5, 5)]

    found = list(packs(rows, 0, 2))

    assert [row for pack in found for row in pack] == rows
    assert [len(pack) for pack in found] == [2, 1, 1, 2, 1]
    assert all(len(pack) == 1 or sum(len(row.ids) for row in pack) <= PACK for pack in found)
