"""Scores of a run from similarities alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from truegap.errors import UserError
from truegap.protocols.prompts import Prompt, PromptSet
from truegap.protocols.retrieval import Retrieval, cuts, score

PROMPTS = (
    PromptSet(name="one", prompts=tuple(Prompt(id=str(i), text=f"one {i}") for i in range(3))),
    PromptSet(name="two", prompts=tuple(Prompt(id=str(i), text=f"two {i}") for i in range(2))),
)
GENDERS = ["woman"] * 20 + ["man"] * 30
IDS = [f"{i:03}" for i in range(50)]
PROTOCOL = Retrieval(prompts=PROMPTS, k=(10, 5), draws=3, n_resamples=50)
RNG = np.random.default_rng(0)
BEFORE = RNG.normal(size=(5, 50)).astype(np.float32)
AFTER = (BEFORE + RNG.normal(size=(5, 50)) / 2).astype(np.float32)


def run(configs, protocol=PROTOCOL, ids=IDS, genders=GENDERS):
    return score(protocol, "r", ids, genders, iter(configs))


def pick(records, **fields):
    return [each for each in records if all(getattr(each, name) == value for name, value in fields.items())]


def test_scores_changes_and_summary_belong_together():
    found = run([("original", BEFORE), ("control", BEFORE), ("color-weak", AFTER)])
    original = pick(found.scores, metric="max_skew@10", config="original", scope="all")[0]
    change = pick(found.changes, metric="max_skew@10", config="color-weak", scope="all")[0]
    perturbed = pick(found.scores, metric="max_skew@10", config="color-weak", scope="all")[0]
    assert found.summary.bias == original.value == pytest.approx(change.original)
    assert (found.summary.bias_low, found.summary.bias_high) == (original.ci_low, original.ci_high)
    assert change.signed_change == pytest.approx(perturbed.value - original.value)
    assert found.summary.floor == 0
    assert found.summary.mean_delta == pytest.approx(change.delta)
    assert found.summary.feature_delta == {"color": None, "lighting": None, "object": None, "background": None}
    assert found.options["k"] == [10, 5]


def test_every_pair_is_compared_in_every_scope():
    # given a control that is the original, an object config and its placebo, both arms of a swap, nobody in the picture
    extra = ["object-placebo-strong", "background-swap-same", "background-swap-cross", "person-removed"]
    found = run(
        [("original", BEFORE), ("control", BEFORE), ("object-strong", AFTER), *((each, AFTER) for each in extra)]
    )
    pairs = {(each.config, each.against) for each in found.contrasts}
    assert pairs == {
        ("object-strong", "control"),
        ("object-strong", "object-placebo-strong"),
        ("background-swap-cross", "background-swap-same"),
    }
    assert {each.scope for each in found.contrasts} == {each.scope for each in found.contexts} == {"all", "one", "two"}
    change = pick(found.changes, metric="max_skew@10", config="object-strong", scope="two")[0]
    pair = pick(found.contrasts, metric="max_skew@10", config="object-strong", against="control", scope="two")[0]
    assert (pair.difference, pair.delta_beyond) == pytest.approx((change.signed_change, change.delta))
    for each in pick(found.contrasts, against="object-placebo-strong"):
        assert (each.difference, each.delta_beyond, each.p_value) == (0, 0, 1)
    context = pick(found.contexts, metric="max_skew@10", scope="all")[0]
    removed = pick(found.scores, metric="max_skew@10", config="person-removed", scope="all")[0]
    assert context.gap == pytest.approx(removed.value - removed.null)
    # the mean over perturbations leaves the controls out
    assert (
        found.summary.mean_delta
        == pick(found.changes, metric="max_skew@10", config="object-strong", scope="all")[0].delta
    )


def test_without_resamples_nothing_is_compared_in_pairs():
    found = run([("original", BEFORE), ("control", BEFORE), ("object-weak", AFTER)], replace(PROTOCOL, n_resamples=0))
    assert (found.contrasts, found.contexts) == ([], [])


def test_the_original_must_come_first():
    with pytest.raises(UserError, match="the first config is control; original must come before"):
        run([("control", BEFORE), ("original", BEFORE)])


def test_scopes_are_their_prompts_alone():
    # given a prompt set of two; then its scores are those of a run with that set alone
    both = run([("original", BEFORE)])
    alone = run([("original", BEFORE[3:])], replace(PROTOCOL, prompts=PROMPTS[1:]))
    for metric in ("max_skew@5", "bias@10", "skew_woman@5", "ndkl"):
        wanted = pick(alone.scores, metric=metric, scope="all")[0].value
        assert pick(both.scores, metric=metric, scope="two")[0].value == pytest.approx(wanted)
    assert not pick(alone.scores, scope="two")


def test_known_ranking():
    # given five men first for every prompt; then Bias@5 is 1 and MaxSkew@5 ln 2
    similarities = np.tile(np.where(np.array(GENDERS) == "man", 1.0, 0.0) + np.arange(50) / 1000, (5, 1))
    found = run([("original", similarities.astype(np.float32))])
    assert pick(found.scores, metric="bias@5", scope="all")[0].value == 1
    assert pick(found.scores, metric="max_skew@5", scope="all")[0].value == pytest.approx(math.log(2))


def test_order_of_images_changes_nothing():
    order = np.random.default_rng(1).permutation(50)
    turned = run(
        [("original", BEFORE[:, order]), ("color-weak", AFTER[:, order])],
        ids=[IDS[i] for i in order],
        genders=[GENDERS[i] for i in order],
    )
    straight = run([("original", BEFORE), ("color-weak", AFTER)])
    assert [(s.metric, s.scope, s.value) for s in turned.scores] == [
        (s.metric, s.scope, s.value) for s in straight.scores
    ]
    assert [c.delta for c in turned.changes] == [c.delta for c in straight.changes]


def test_default_k_is_stated():
    assert cuts(replace(PROTOCOL, k=None), GENDERS) == (4,)
    assert cuts(replace(PROTOCOL, k=None), ["woman"] * 1000 + ["man"] * 1500) == (1000,)


@pytest.mark.parametrize(
    ("protocol", "genders", "message"),
    [
        (replace(PROTOCOL, k=(41,)), GENDERS, "k=41: a balanced draw has 20 women and 20 men; use 1 to 40"),
        (PROTOCOL, ["man"] * 50, r"one gender only \(0 woman, 50 man\)"),
    ],
)
def test_impossible_questions_are_refused(protocol, genders, message):
    with pytest.raises(UserError, match=message):
        run([("original", BEFORE)], protocol, genders=genders)


def test_a_nan_is_refused():
    broken = BEFORE.copy()
    broken[2, 7] = np.nan
    with pytest.raises(UserError, match="retrieval: "):
        run([("original", broken)])
