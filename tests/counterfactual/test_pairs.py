from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegap.counterfactual import (
    Occupation,
    Pair,
    combined,
    lowest,
    read_known,
    read_names,
    read_occupations,
    read_pairs,
    scaled,
    select,
    write_pairs,
)
from truegap.errors import UserError


def pair(male: str, female: str, similarity: float) -> Pair:
    return Pair(Occupation(male, 10.0), Occupation(female, 90.0), similarity, similarity, similarity)


# Occupations


def test_exactly_half_women_is_female_dominated(table):
    path = table("o.csv", "occupation,employed,Women", "Pilot,10,9.2", "Actor,50,50", "Editor,3,49.9")
    found, left_out = read_occupations(path)
    assert [(each.name, each.dominated_by) for each in found] == [
        ("Pilot", "man"),
        ("Actor", "woman"),
        ("Editor", "man"),
    ]
    assert not left_out


def test_an_occupation_without_a_share_is_counted(table):
    found, left_out = read_occupations(table("o.csv", "name,women_percent", "Pilot,9.2", "Diver,-", "Judge,nan"))
    assert [each.name for each in found] == ["Pilot"]
    assert left_out == {"occupation left out: no share of women": 2}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["job,women", "Pilot,9"], "lacks a column occupation or name"),
        (["occupation,men", "Pilot,9"], "lacks a column women"),
        (["occupation,women", "Pilot,109"], "o.csv line 2: Pilot: 109 % women"),
        (["occupation,women", "Pilot,9", "Pilot,8"], "line 3: occupation 'Pilot' stands twice"),
        (["occupation,women", "../Pilot,9"], "cannot stand in a question and a file name"),
        (["occupation,women", "Pilot|Nurse,9"], "cannot stand in a question and a file name"),
        (["occupation,women", "Pilot (B) Nurse,9"], "cannot stand in a question and a file name"),
        (["occupation,women"], "no occupation with a share of women"),
    ],
)
def test_a_table_of_occupations_that_cannot_be_used_is_one_line(table, lines, message):
    with pytest.raises(UserError, match=message.replace("(", r"\(").replace("|", r"\|")) as caught:
        read_occupations(table("o.csv", *lines))
    assert "\n" not in str(caught.value)


# Similarities


def test_both_modalities_are_scaled_before_they_are_averaged():
    image, text = [0.9, 0.8, 0.7], [0.1, 0.5, 0.3]
    assert combined(image, text).tolist() == pytest.approx([0.5, 0.75, 0.25])


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8, unique=True), st.floats(0.1, 5), st.floats(-3, 3))
def test_scaling_ignores_unit_and_origin(values, unit, origin):
    if max(values) - min(values) < 1e-3:
        return
    moved = np.array(values) * unit + origin
    assert scaled(moved) == pytest.approx(scaled(values), abs=1e-9)
    assert (scaled(values).min(), scaled(values).max()) == (0, 1)


@pytest.mark.parametrize("values", [[], [0.3], [0.3, 0.3], [0.3, float("nan")]])
def test_nothing_to_scale(values):
    with pytest.raises(ValueError, match="at least two of them different"):
        scaled(values)


# Selection


def test_an_occupation_is_in_so_many_pairs_at_most_and_the_best_come_first():
    found = [pair("A", "X", 0.9), pair("A", "Y", 0.8), pair("B", "X", 0.7), pair("A", "Z", 0.6), pair("B", "Z", 0.5)]
    # A is full after X and Y; so B, Z comes in although A, Z is more similar
    assert [each.names for each in select(found, 0.0, most=2)] == [("A", "X"), ("A", "Y"), ("B", "X"), ("B", "Z")]
    # a pair that is refused takes nobody's place
    assert [each.names for each in select(found, 0.0, most=1)] == [("A", "X"), ("B", "Z")]


def test_ten_is_the_rule():
    found = [pair("A", f"X{n}", 1 - n / 100) for n in range(12)]
    assert [each.names[1] for each in select(found, 0.0)] == [f"X{n}" for n in range(10)]


def test_the_least_similar_known_pair_stays_and_what_is_below_goes():
    found = [pair("A", "X", 0.9), pair("B", "X", 0.7), pair("B", "Y", 0.69)]
    threshold, names = lowest(found, [("X", "A"), ("X", "B")])
    assert (threshold, names) == (0.7, ("B", "X"))
    assert [each.names for each in select(found, threshold)] == [("A", "X"), ("B", "X")]


def test_a_known_pair_must_be_a_candidate():
    with pytest.raises(UserError, match="known pair 'A', 'B'"):
        lowest([pair("A", "X", 0.9)], [("A", "B")])
    with pytest.raises(UserError, match="empty"):
        lowest([pair("A", "X", 0.9)], [])


@given(
    st.permutations([pair(m, f, s) for m, f, s in zip("ABABCC", "XYYXXY", [0.5, 0.5, 0.5, 0.9, 0.5, 0.1], strict=True)])
)
def test_the_order_of_the_candidates_does_not_matter(found):
    assert [each.names for each in select(found, 0.2, most=2)] == [("B", "X"), ("A", "X"), ("A", "Y"), ("B", "Y")]


# Files


def test_pairs_are_written_and_read_back(tmp_path):
    pairs = [pair("Lawyer", "Legal secretary", 0.1 + 0.2), pair("Chef", "Baker", 0.25)]
    write_pairs(tmp_path / "deep" / "pairs.csv", pairs)
    assert read_pairs(tmp_path / "deep" / "pairs.csv") == pairs
    assert read_known(tmp_path / "deep" / "pairs.csv") == [("Lawyer", "Legal secretary"), ("Chef", "Baker")]


def test_similarities_of_another_program_are_combined_and_use_the_table_of_occupations(table):
    occupations = [Occupation("Chef", 20), Occupation("Pilot", 9), Occupation("Baker", 60)]
    path = table(
        "s.csv",
        "job_male,job_female,img_similarity,text_similarity",
        "Chef,Baker,0.9,0.8",
        "Pilot,Baker,0.5,0.4",
    )
    found = read_pairs(path, occupations)
    assert [(each.names, each.similarity, each.male.women) for each in found] == [
        (("Chef", "Baker"), 1.0, 20),
        (("Pilot", "Baker"), 0.0, 9),
    ]


HEADER = "job_male,job_female,similarity,img_similarity,text_similarity,job_male_ratio,job_female_ratio"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["job_male,job_female"], "lacks the column img_similarity"),
        ([HEADER], "no pair of occupations"),
        ([HEADER, "Chef,Baker,1,x,1,20,60"], "line 2: img_similarity is not a number"),
        ([HEADER, "Chef,Baker,1,1,1,20,"], "job_female_ratio is not a number"),
        ([HEADER, "Chef,Cook,1,1,1,20,40"], "are not a male-dominated and a female-dominated occupation"),
        ([HEADER, "Chef,Baker,1,1,1,20,60", "Chef,Baker,1,1,1,20,60"], "line 3: the pair Chef, Baker stands twice"),
        ([HEADER, "Chef,Baker,1,1,1,20,60", "Cook,Baker,,1,1,20,60"], "similarity is there for 1 of 2"),
        ([HEADER, "Chef,Baker,,1,1,20,60"], "at least two of them different"),
        ([HEADER, "/etc,Baker,1,1,1,20,60"], "cannot stand in a question"),
    ],
)
def test_a_table_of_pairs_that_cannot_be_used_is_one_line(table, lines, message):
    with pytest.raises(UserError, match=message):
        read_pairs(table("p.csv", *lines))


def test_a_table_of_gendered_names_may_replace_ours(table):
    path = table("n.csv", "occupation,woman,man", "Waiter,Waitress,", "Housekeeper,,Houseman")
    assert read_names(path) == {
        "Waiter": {"woman": "Waitress", "man": "Waiter"},
        "Housekeeper": {"woman": "Housekeeper", "man": "Houseman"},
    }
    with pytest.raises(UserError, match="stands twice"):
        read_names(table("n.csv", "occupation,woman,man", "Waiter,Waitress,", "Waiter,,"))


# The authors' table (outside of the repository)


def test_the_published_pairs_follow_from_their_similarities(shared):
    folder = shared / "data" / "genderbias_vl"
    published = read_pairs(folder / "occ_merge_filter_sim.csv")
    occupations, left_out = read_occupations(folder / "occ_us.csv")
    assert (len(published), len(occupations), left_out.total()) == (486, 248, 0)
    # the table of occupations decides who dominates: all pairs stay
    assert read_pairs(folder / "occ_merge_filter_sim.csv", occupations) == published
    threshold, names = lowest(published, read_known(folder / "occ_merge_filter_sim.csv"))
    assert names == ("Chef", "Baker")
    shuffled = random.Random(1).sample(published, len(published))  # noqa: S311
    chosen = select(shuffled, threshold)
    assert {each.names for each in chosen} == {each.names for each in published}
    assert [each.similarity for each in chosen] == [each.similarity for each in published]
    # with a cap of nine, pairs are lost: the authors' cap is ten
    assert len(select(shuffled, threshold, most=9)) < 486


def test_the_published_similarities_are_means_of_scaled_modalities(shared):
    published = read_pairs(shared / "data" / "genderbias_vl" / "occ_merge_filter_sim.csv")
    image = np.array([each.image_similarity for each in published])
    text = np.array([each.text_similarity for each in published])
    similarity = np.array([each.similarity for each in published])
    slopes = np.linalg.lstsq(np.c_[image, text, np.ones(len(image))], similarity)[0]
    # The slopes give the ranges; the least similar candidate is not in the table, so it is added at their lower ends.
    lows = [image.max() - 0.5 / slopes[0], text.max() - 0.5 / slopes[1]]
    found = combined([*image, lows[0]], [*text, lows[1]])
    assert found[:-1] == pytest.approx(similarity, abs=1e-12)
