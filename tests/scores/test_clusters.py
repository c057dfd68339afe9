"""Resampling over clusters that the caller names, such as photographers."""

import numpy as np
import pytest

from truegap.scores import ScoreError, bootstrap_weights, resampled_ygap, ygap
from truegap.scores.bootstrap import cluster_strata, resampled_images


def table(images=60, clusters=15, seed=0, spread=0.2):
    rng = np.random.default_rng(seed)
    of = np.arange(images) * clusters // images
    man = np.arange(images) % 2
    shift = rng.normal(0, spread, clusters)
    yes = np.clip(0.5 + 0.1 * man + shift[of] * (2 * man - 1) + rng.normal(0, 0.02, images), 0, 1)
    return {"predictions": yes, "genders": man, "images": np.arange(images), "clusters": of}


def test_the_images_of_a_cluster_are_drawn_together_among_like_clusters():
    groups = np.array([0, 0, 0, 1, 1, 1, 0, 1, 0, 1])
    clusters = ["a", "a", "b", "c", "c", "d", "e", "e", "f", "f"]
    weights = np.concatenate(list(bootstrap_weights(groups, clusters=clusters, n_resamples=300)))
    for cluster in set(clusters):
        members = [place for place, name in enumerate(clusters) if name == cluster]
        assert (weights[:, members] == weights[:, members[:1]]).all()
    # Given clusters of women, of men and of both, two of each, then two of each are drawn
    for one, other in (("a", "b"), ("c", "d"), ("e", "f")):
        assert (weights[:, clusters.index(one)] + weights[:, clusters.index(other)] == 2).all()


def test_a_cluster_of_one_image_each_is_no_cluster():
    groups = np.array([0] * 5 + [1] * 7)
    plain = next(bootstrap_weights(groups, n_resamples=20, seed=3))
    assert (next(bootstrap_weights(groups, n_resamples=20, seed=3, clusters=np.arange(12))) == plain).all()


def test_the_interval_is_that_of_gathered_clusters():
    rows = table()
    found = ygap(**rows, n_resamples=200, seed=5)
    names = sorted({str(each) for each in rows["clusters"]})
    place = np.array([names.index(str(each)) for each in rows["clusters"]])
    strata = cluster_strata(rows["genders"], place, len(names))
    values = []
    for drawn in next(resampled_images(strata, 200, 5)):
        chosen = np.concatenate([np.flatnonzero(place == each) for each in drawn])
        values.append(ygap(rows["predictions"][chosen], rows["genders"][chosen]).ygap)
    assert (found.ci_low, found.ci_high) == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), abs=1e-12)
    assert found.counts["clusters"] == 15
    assert found.p_value is None


def test_clusters_whose_images_are_alike_make_the_interval_wider():
    rows = table()
    alone = ygap(**{name: column for name, column in rows.items() if name != "clusters"})
    together = ygap(**rows)
    assert together.ygap == alone.ygap
    assert together.ci_high - together.ci_low > 1.3 * (alone.ci_high - alone.ci_low)


def test_the_order_of_rows_changes_nothing_and_pairs_stay_paired():
    rows, order = table(), np.random.default_rng(1).permutation(60)
    shuffled = {name: column[order] for name, column in rows.items()}
    np.testing.assert_allclose(resampled_ygap(**rows, seed=2), resampled_ygap(**shuffled, seed=2), atol=1e-12)


def test_one_cluster_of_a_kind_has_no_interval():
    found = ygap([0.9, 0.8, 0.1, 0.2, 0.3], [1, 1, 0, 0, 0], images=list("abcde"), clusters=list("xxyyz"))
    assert (found.ci_low, found.ci_high) == (None, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"images": None}, "clusters: they need images"),
        ({"method": "bca"}, 'and method="percentile"'),
        ({"clusters": ["x"]}, "clusters: 1 rows, but predictions has 4"),
        ({"clusters": ["x", None, "y", "y"]}, "clusters: row 1 has none"),
        ({"images": list("aacd"), "genders": [1, 1, 0, 0]}, "clusters: row 0: image 'a' is in two of them"),
    ],
)
def test_bad_clusters(change, message):
    rows = {"predictions": [0.5] * 4, "genders": [1, 0] * 2, "images": list("abcd"), "clusters": list("xyzz")}
    with pytest.raises(ScoreError, match=message):
        ygap(**(rows | change))
