import numpy as np
import pytest
from fairlearn.metrics import MetricFrame
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from truegap import schema
from truegap.scores import GENDERS, ScoreError, interval, resampled_ygap, ygap
from truegap.scores.bootstrap import resampled_images


def table(images=60, questions=4, seed=0, effect=0.1):
    rng = np.random.default_rng(seed)
    gender = np.array(["man", "woman", "man"])[np.arange(images) % 3]
    probability = rng.uniform(0.2, 0.6, size=(images, questions)) + effect * (gender == "man")[:, None]
    return {
        "predictions": probability.ravel(),
        "genders": np.repeat(gender, questions),
        "images": np.repeat([f"i{i}" for i in range(images)], questions),
        "questions": np.tile([f"q{q}" for q in range(questions)], images),
    }


def test_the_labels_are_those_of_the_schema():
    assert GENDERS == schema.GENDERS


def test_agrees_with_fairlearn_per_question():
    rows = table()
    result = ygap(**rows, n_resamples=0, n_permutations=0)
    for each in result.per_question:
        asked = rows["questions"] == each.question
        frame = MetricFrame(
            metrics=lambda _, answers: float(np.mean(answers)),
            y_true=np.zeros(asked.sum()),
            y_pred=rows["predictions"][asked],
            sensitive_features=rows["genders"][asked],
        )
        assert each.yes_woman == pytest.approx(frame.by_group["woman"], abs=1e-14)
        assert each.yes_man == pytest.approx(frame.by_group["man"], abs=1e-14)
        assert abs(each.ygap) == pytest.approx(frame.difference(), abs=1e-14)
    assert result.ygap == pytest.approx(np.mean([each.ygap for each in result.per_question]), abs=1e-15)


def test_opposite_gaps_cancel_in_ygap_and_not_in_mean_abs_ygap():
    result = ygap([1, 0, 0, 1], ["man", "woman", "man", "woman"], questions=["a", "a", "b", "b"])
    assert (result.ygap, result.abs_ygap, result.mean_abs_ygap) == (0.0, 0.0, 1.0)
    assert [each.ygap for each in result.per_question] == [1.0, -1.0]


@pytest.mark.parametrize("strata", [["topic"], {"topic": "brave"}, {"topic": {"braev": "personality"}}])
def test_groupings_of_no_question_are_refused(strata):
    with pytest.raises(ScoreError, match="strata: "):
        ygap([0.9, 0.1], ["man", "woman"], questions=["brave"] * 2, strata=strata)


def test_strata_average_their_questions_and_leave_out_the_unnamed():
    result = ygap(
        [1, 0, 0.5, 0, 0, 1],
        ["man", "woman"] * 3,
        questions=["a", "a", "b", "b", "c", "c"],
        strata={"topic": {"a": "skill", "b": "skill"}},
    )
    assert result.per_stratum == {"topic": {"skill": {"ygap": 0.75, "mean_abs_ygap": 0.75, "questions": 2}}}


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.integers(0, 2)), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_relabelling_flips_the_sign_and_order_changes_nothing(rows, random):
    rows = [*rows, *((value, man, q) for q in range(3) for value, man in ((0.25, True), (0.75, False)))]

    def of(rows, swap=False):
        names = ["woman", "man"] if not swap else ["man", "woman"]
        return ygap([r[0] for r in rows], [names[r[1]] for r in rows], questions=[r[2] for r in rows])

    shuffled = random.sample(rows, len(rows))
    assert of(rows, swap=True).ygap == pytest.approx(-of(rows).ygap, abs=1e-12)
    assert of(shuffled).ygap == pytest.approx(of(rows).ygap, abs=1e-12)
    assert -1 <= of(rows).ygap <= 1


def test_equal_scores_give_0_and_codes_are_labels():
    assert ygap([0.3] * 4, [0, 1, 1, 0]).ygap == 0
    assert ygap([0.9, 0.1], [1, 0]).ygap == ygap([0.9, 0.1], ["man", "woman"]).ygap


def test_without_images_there_is_no_interval_and_no_p_value():
    result = ygap([0.9, 0.1, 0.8], ["man", "woman", "man"])
    assert (result.ci_low, result.ci_high, result.p_value) == (None, None, None)


def test_one_image_of_a_gender_gives_no_interval():
    result = ygap([0.9, 0.1, 0.8], ["man", "woman", "man"], images=[1, 2, 3])
    assert result.ci_low is None
    assert result.p_value is not None


@pytest.mark.parametrize(("method", "name"), [("percentile", "percentile"), ("bca", "BCa")])
def test_interval_agrees_with_scipy(method, name):
    rows = table(images=90, questions=3, seed=2)
    result = ygap(**rows, n_resamples=20_000, n_permutations=0, method=method)
    means = rows["predictions"].reshape(90, 3).mean(axis=1)
    man = rows["genders"].reshape(90, 3)[:, 0] == "man"

    def gap(a, b, axis=-1):
        return a.mean(axis=axis) - b.mean(axis=axis)

    reference = stats.bootstrap(
        (means[man], means[~man]), gap, n_resamples=20_000, method=name, vectorized=True, random_state=1
    ).confidence_interval
    width = reference.high - reference.low
    assert result.ci_low == pytest.approx(reference.low, abs=0.03 * width)
    assert result.ci_high == pytest.approx(reference.high, abs=0.03 * width)


def test_p_value_agrees_with_scipy():
    rows = table(images=30, questions=2, seed=5, effect=0.03)
    result = ygap(**rows, n_resamples=0, n_permutations=20_000)
    means = rows["predictions"].reshape(30, 2).mean(axis=1)
    man = rows["genders"].reshape(30, 2)[:, 0] == "man"
    reference = stats.permutation_test(
        (means[man], means[~man]),
        lambda a, b, axis: np.abs(a.mean(axis=axis) - b.mean(axis=axis)),
        vectorized=True,
        n_resamples=20_000,
        alternative="greater",
        random_state=0,
    ).pvalue
    assert 0.02 < reference < 0.98
    assert result.p_value == pytest.approx(reference, abs=0.015)


def test_answers_on_the_same_images_are_paired_in_any_order_of_rows():
    rows = table()
    order = np.random.default_rng(0).permutation(len(rows["images"]))
    shuffled = {name: column[order] for name, column in rows.items()}
    first, second = resampled_ygap(**rows, seed=1), resampled_ygap(**shuffled, seed=1)
    np.testing.assert_allclose(first, second, atol=1e-12)
    assert ygap(**rows, seed=1).ci_low == pytest.approx(np.quantile(first, 0.025), abs=1e-12)


def test_an_answer_given_twice_counts_as_one_image():
    rows = table(images=40, questions=3)
    twice = {name: np.concatenate([column, column]) for name, column in rows.items()}
    once, both = ygap(**rows, seed=3), ygap(**twice, seed=3)
    assert both.ygap == pytest.approx(once.ygap, abs=1e-12)
    assert both.ci_low == pytest.approx(once.ci_low, abs=1e-12)
    assert both.p_value == pytest.approx(once.p_value, abs=1e-12)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_incomplete_answers_are_resampled_by_image(method):
    # Given a table with holes, when every resample's images are gathered one by one, then the ends are the same
    rows = table(images=40, questions=3, seed=8)
    kept = np.random.default_rng(0).random(120) < 0.8
    rows = {name: column[kept] for name, column in rows.items()}
    names = sorted(set(rows["images"]))
    of = {name: np.flatnonzero(rows["images"] == name) for name in names}
    labels = np.array([int(rows["genders"][of[name][0]] == "man") for name in names])

    def gap(images):
        chosen = np.concatenate([of[names[image]] for image in images])
        part = {name: rows[name][chosen] for name in ("predictions", "genders", "questions")}
        return ygap(**part).ygap

    values = [gap(images) for images in next(resampled_images(labels, 200, 4))]
    left_out = [gap(np.delete(np.arange(len(names)), image)) for image in range(len(names))]
    low, high = interval(values, gap(range(len(names))), method=method, jackknife=left_out)
    result = ygap(**rows, n_resamples=200, seed=4, method=method)
    assert (result.ci_low, result.ci_high) == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12))


def test_the_same_seed_gives_the_same_interval_whatever_the_order_of_questions():
    rows = table()
    again = {name: column.reshape(60, 4)[:, ::-1].ravel() for name, column in rows.items()}
    first, second = ygap(**rows, seed=1), ygap(**again, seed=1)
    assert first.ci_low == pytest.approx(second.ci_low, abs=1e-12)
    assert ygap(**rows, seed=2).ci_low != first.ci_low


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predictions": [0.5, float("nan")]}, "predictions: row 1 is nan"),
        ({"predictions": [0.5, 1.5]}, r"predictions: row 1 is 1.5, outside \[0, 1\]"),
        ({"predictions": [0.5, "x"]}, "predictions: row 1 is 'x', not a number"),
        ({"predictions": []}, "predictions: no rows"),
        ({"predictions": [[0.5], [0.5, 0.1]]}, "predictions: row 1 has 2 values, row 0 has 1"),
        ({"genders": ["man", "unsure"]}, "genders: row 1 is 'unsure'; use 'woman', 'man'"),
        ({"genders": [1, 2]}, "genders: row 1 is 2"),
        ({"genders": ["man", None]}, "genders: row 1 is None"),
        ({"genders": ["man", "man"]}, "question 'all' was asked on no woman"),
        ({"genders": ["man"]}, "genders: 1 rows, but predictions has 2"),
        ({"questions": ["a", "b"]}, "question 'a' was asked on no woman"),
        ({"images": ["a", None]}, "images: row 1 has none"),
        ({"images": ["a", "a"]}, "image 'a' is a woman in one row and a man in another"),
        ({"images": [1, 2, 3]}, "images: 3 rows"),
    ],
)
def test_bad_input_names_the_row_and_the_remedy(change, message):
    with pytest.raises(ScoreError, match=message) as caught:
        ygap(**({"predictions": [0.5, 0.4], "genders": ["man", "woman"]} | change))
    assert ";" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_method_is_refused():
    with pytest.raises(ScoreError, match="method='basic' is unknown"):
        ygap([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], images=[1, 2, 3, 4], method="basic")
