"""The controls on request, from plan to rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from examples import encoded, example, person_mask, selection
from truegap.build import Plan, Workspace, build_shard, choose_configs, redo_row
from truegap.build.draws import choose_donors, donor_key
from truegap.build.images import Encoder
from truegap.errors import UserError
from truegap.schema import CONFIGS, EXTRA_CONFIGS, ImageBytes


def build(chosen, out):
    configs = choose_configs(["original", "object-strong", "extra"])
    workspace = Workspace(Plan("synthetic", "1.0.0", chosen, configs, encoder=Encoder("png")), out)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        return workspace.finish()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    from datasets import load_dataset

    out = tmp_path_factory.mktemp("controls") / "b"
    build(selection(10), out)
    return {
        config: list(load_dataset(str(out), config, split="test"))
        for config in ("original", "object-strong", *EXTRA_CONFIGS)
    }


def test_groups_of_configs():
    assert choose_configs([]) == choose_configs(["standard"]) == CONFIGS
    assert choose_configs(["extra", "original"]) == ("original", *EXTRA_CONFIGS)
    with pytest.raises(UserError, match="unknown config blurry: use some of standard, extra, original"):
        choose_configs(["blurry"])


@pytest.mark.parametrize("config", EXTRA_CONFIGS)
def test_row_redoes_its_perturbation(rows, config):
    originals = {row["image_id"]: row for row in rows["original"]}
    for before, after in zip(rows["original"], rows[config], strict=True):
        donor = originals.get(after["perturbation"]["donor"])
        np.testing.assert_array_equal(np.asarray(redo_row(before, after, donor)), np.asarray(after["image"]))


def test_nobody_is_left(rows):
    for row in rows["person-removed"]:
        assert not np.asarray(row["image"])[person_mask()].any()


def test_placebo_means_the_same_objects(rows):
    for real, placebo in zip(rows["object-strong"], rows["object-placebo-strong"], strict=True):
        assert placebo["perturbation"]["object_ids"] == real["perturbation"]["object_ids"]
        assert len(placebo["perturbation"]["boxes"]) == len(real["perturbation"]["object_ids"])


def test_backgrounds_come_from_the_right_gender(rows):
    gender = {row["image_id"]: row["gender"] for row in rows["original"]}
    for config, same in (("background-swap-same", True), ("background-swap-cross", False)):
        for row in rows[config]:
            donor = row["perturbation"]["donor"]
            assert donor != row["image_id"]
            assert (gender[donor] == row["gender"]) is same
            np.testing.assert_array_equal(
                np.asarray(row["image"])[person_mask()],
                np.asarray(next(r for r in rows["original"] if r["image_id"] == row["image_id"])["image"])[
                    person_mask()
                ],
            )


def test_donors_do_not_depend_on_order():
    examples = selection(10).examples
    forward = choose_donors(examples, EXTRA_CONFIGS, benchmark="b", seed=0, among=examples)
    backward = choose_donors(examples[::-1], EXTRA_CONFIGS, benchmark="b", seed=0, among=examples[::-1])
    assert {k: [e.image_id for e in v] for k, v in forward.items()} == {
        k: [e.image_id for e in v] for k, v in backward.items()
    }
    assert choose_donors(examples, CONFIGS, benchmark="b", seed=0, among=examples) == {}


def test_unusable_donor_makes_room_for_the_next(tmp_path):
    # given a picture whose first choice cannot be read; then the second is taken
    chosen = selection(8)
    donors = choose_donors(chosen.examples, EXTRA_CONFIGS, benchmark="synthetic", seed=0, among=chosen.examples)
    first, second, *_ = donors[donor_key("background-swap-cross", "0")]
    broken = replace(first, image=ImageBytes(encoded()[:-300]))
    examples = [broken if each.image_id == first.image_id else each for each in chosen.examples]
    build(replace(chosen, examples=examples), tmp_path / "b")
    from datasets import load_dataset

    rows = load_dataset(str(tmp_path / "b"), "background-swap-cross", split="test")
    taken = {row["image_id"]: row["perturbation"]["donor"] for row in rows}
    assert taken["0"] == second.image_id
    assert first.image_id not in taken


def test_nobody_else_to_take_a_background_from(tmp_path):
    with pytest.raises(UserError, match="1 no image to take a background from; swaps need two images of a gender"):
        build(replace(selection(1), examples=[example(0)]), tmp_path / "b")
