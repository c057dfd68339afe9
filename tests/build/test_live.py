"""On the fly gives what a build gives."""

from __future__ import annotations

import numpy as np
import pytest

import truegap
from examples import selection
from truegap.build import Plan, Workspace, build_shard, choose_configs
from truegap.build.images import Encoder
from truegap.perturbations import Options

CONFIGS = [config for config in choose_configs(["standard", "extra"]) if not config.startswith("background-swap")]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("live") / "live"
    plan = Plan(
        "synthetic", "1.0.0", selection(6), choose_configs(["standard", "extra"]), seed=5, encoder=Encoder("png")
    )
    workspace = Workspace(plan, out)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return str(out)


def load(built, config, **options):
    from datasets import load_dataset

    return load_dataset(built, config, split="test", **options)


@pytest.mark.parametrize("config", CONFIGS)
def test_same_pixels_and_draws_as_a_lossless_build(built, config):
    live = truegap.perturbed(load(built, "original"), config)
    for row, stored in zip(live, load(built, config), strict=True):
        np.testing.assert_array_equal(np.asarray(row["image"]), np.asarray(stored["image"]))
        assert row["perturbation"] == stored["perturbation"]
        assert row["gender"] == stored["gender"]


def test_batches_and_slices(built):
    live = truegap.perturbed(load(built, "original"), "background-weak")
    batch = live[1:4]
    assert batch["image_id"] == ["1", "2", "3"]
    np.testing.assert_array_equal(np.asarray(batch["image"][2]), np.asarray(live[3]["image"]))


def test_streams(built):
    live = truegap.perturbed(load(built, "original", streaming=True), "color-strong")
    stored = load(built, "color-strong")
    np.testing.assert_array_equal(np.asarray(next(iter(live))["image"]), np.asarray(stored[0]["image"]))


def test_the_dataset_given_is_left_alone(built):
    original = load(built, "original")
    before = np.asarray(original[0]["image"])
    truegap.perturbed(original, "lighting-strong")
    np.testing.assert_array_equal(np.asarray(original[0]["image"]), before)


def test_options_and_seed(built):
    original = load(built, "original")
    halo, clean = (
        truegap.perturbed(original, "background-weak", options=Options(bleed=b))[0]["image"] for b in ("paste", "none")
    )
    assert (np.asarray(halo) != np.asarray(clean)).any()
    shifts = {truegap.perturbed(original, "color-strong", seed=seed)[0]["perturbation"]["shift"] for seed in range(6)}
    assert len(shifts) > 1


def test_what_cannot_be_done_is_said(built):
    original = load(built, "original")
    with pytest.raises(ValueError, match="background-swap-same needs a second image: build it"):
        truegap.perturbed(original, "background-swap-same")
    with pytest.raises(ValueError, match="no column person_masks"):
        truegap.perturbed(original.remove_columns("person_masks"), "color-weak")
    with pytest.raises(truegap.UserError, match="unknown config blurry"):
        truegap.perturbed(original, "blurry")
