"""Training of small classifiers: it learns, it stops in time, and it is the same every time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from truegap.errors import UserError
from truegap.models.classifier import Fitted, Training, fit, linear, mlp, standardised
from truegap.models.fit_cache import FitCache

CPU = torch.device("cpu")
TRAINING = Training(epochs=60, patience=5, learning_rate=0.05, weight_decay=0.0, batch_size=16)


def data(n=120, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    features = rng.standard_normal((n, 4)).astype(np.float32)
    features[:, 0] = 2 * labels - 1 + noise * features[:, 0]
    places = np.arange(n)
    return features, labels, (places[: n - 40], places[n - 40 : n - 20], places[n - 20 :])


def trained(features, labels, parts, training=TRAINING, make=lambda: linear(4), seed=0, **options):
    return fit(make, features, labels, parts, training, seed=seed, device=CPU, **options)


def test_what_can_be_told_apart_is_learnt_and_training_stops_early():
    epochs = []
    found = trained(*data(noise=0.7), advance=epochs.append)
    assert found.correct.mean() >= 0.8
    assert len(found.correct) == 20
    assert found.epochs == len(epochs) == min(found.best_epoch + TRAINING.patience, TRAINING.epochs)
    assert trained(*data()).correct.all()


def test_two_layers_learn_what_one_cannot():
    features, _, parts = data(200)
    labels = (features[:, 1] * features[:, 2] > 0).astype(np.int64)
    one = trained(features, labels, parts)
    two = trained(features, labels, parts, make=lambda: mlp(4, 32))
    assert two.correct.mean() > 0.85 > one.correct.mean()


def test_the_state_of_the_best_epoch_is_tested_not_the_last():
    features, labels, parts = data(noise=1.0)
    wild = Training(epochs=40, patience=40, learning_rate=3.0, weight_decay=0.0, batch_size=16)
    late = trained(features, labels, parts, wild)
    early = trained(features, labels, parts, Training(late.best_epoch, 40, 3.0, 0.0, 16))
    assert late.best_epoch < 40
    assert (late.correct == early.correct).all()


def test_the_probe_agrees_with_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    features, labels, _ = data(1000, noise=1.5)
    train, test = np.arange(700), np.arange(700, 1000)
    theirs = LogisticRegression(C=1e6).fit(features[train], labels[train])
    whole = Training(epochs=150, patience=150, learning_rate=0.05, weight_decay=0.0, batch_size=700)
    ours = trained(features, labels, (train, train, test), whole)
    assert (ours.correct == (theirs.predict(features[test]) == labels[test])).mean() > 0.98


def test_the_same_seed_gives_the_same_and_torchs_random_state_stays():
    features, labels, parts = data(noise=1.5)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = trained(features, labels, parts)
    assert (torch.get_rng_state() == before).all()
    again, other = trained(features, labels, parts), trained(features, labels, parts, seed=1)
    assert (first.correct == again.correct).all()
    assert (first.epochs, first.best_epoch) == (again.epochs, again.best_epoch)
    assert (first.epochs, list(first.correct)) != (other.epochs, list(other.correct))


def test_a_loss_that_is_no_number_is_told():
    features, labels, parts = data()
    with pytest.raises(UserError, match="--learning-rate"):
        trained(features * np.float32(np.nan), labels, parts)


def test_columns_are_brought_to_one_scale_by_the_training_images_alone():
    features = np.random.default_rng(0).normal(5, 3, (50, 3)).astype(np.float32)
    features[:, 2] = 7
    found = standardised(features, np.arange(30))
    assert found[:30, :2].mean(axis=0) == pytest.approx([0, 0], abs=1e-5)
    assert found[:30, :2].std(axis=0) == pytest.approx([1, 1], abs=1e-5)
    assert not found[:, 2].any()
    assert abs(found[30:, 0].mean()) > 1e-3


def test_what_is_kept_comes_back_and_damage_is_told(tmp_path):
    fitted = Fitted(np.array([True, False, True]), 7, 2)
    with FitCache(tmp_path / "fits.sqlite") as cache:
        cache.keep({"seed": 0}, fitted)
        assert cache.find({"seed": 1}) is None
        found = cache.find({"seed": 0})
        assert (list(found.correct), found.epochs, found.best_epoch) == ([True, False, True], 7, 2)
        cache._db.execute("UPDATE fits SET result = '{}'")
        with pytest.raises(UserError, match="damaged"):
            cache.find({"seed": 0})
