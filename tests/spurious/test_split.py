"""Balanced parts that no order of rows can change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegap.spurious import balanced_split

PARTS = ("train", "validation", "test")


def chosen(ids, genders, **options):
    split = balanced_split(ids, genders, **options)
    return {name: [ids[n] for n in getattr(split, name)] for name in PARTS}


@settings(max_examples=40, deadline=None)
@given(st.integers(10, 60), st.integers(10, 60), st.randoms(use_true_random=False))
def test_parts_are_balanced_disjoint_and_the_same_for_any_order(women, men, order):
    rows = [(f"w{n}", "woman") for n in range(women)] + [(f"m{n}", "man") for n in range(men)]
    parts = chosen(*zip(*rows, strict=True))
    order.shuffle(rows)
    assert chosen(*zip(*rows, strict=True)) == parts
    used = [each for name in PARTS for each in parts[name]]
    assert len(set(used)) == len(used) == 2 * min(women, men)
    for name in PARTS:
        assert sum(each[0] == "w" for each in parts[name]) * 2 == len(parts[name])
    tenth = round(min(women, men) / 10)
    assert [len(parts[name]) for name in PARTS] == [2 * (min(women, men) - 2 * tenth), 2 * tenth, 2 * tenth]


def test_seed_and_benchmark_change_the_split_and_the_sample_of_the_larger_gender():
    ids = [str(n) for n in range(200)]
    genders = ["woman" if n % 4 == 0 else "man" for n in range(200)]
    parts = [chosen(ids, genders), chosen(ids, genders, seed=1), chosen(ids, genders, benchmark="b")]
    men = [{each for name in PARTS for each in part[name] if int(each) % 4} for part in parts]
    assert all(len(each) == 50 for each in men)
    assert parts[0]["test"] != parts[1]["test"] != parts[2]["test"]
    assert men[0] != men[1] != men[2]


def test_too_few_of_a_gender():
    genders = ["woman"] * 9 + ["man"] * 40
    with pytest.raises(ValueError, match="9 images of a gender: 10 are needed"):
        balanced_split([str(n) for n in range(49)], genders)
