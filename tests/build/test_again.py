"""A build that is asked for again: what differs is named, what was mended is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from examples import encoded, example, selection
from truegap.build import Plan, Workspace, build_shard, mended, read_manifest
from truegap.build.images import Encoder
from truegap.build.plan import differences, limit
from truegap.errors import UserError
from truegap.perturbations import Options
from truegap.schema import ImageFile

MADE = Plan(
    "synthetic", "1.0.0", replace(selection(6), options={"labels": "captions", "seed": 3}), ("original", "control")
)


def build(made: Plan, out):
    workspace = Workspace(made, out)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        return workspace.finish()


def sampled(made: Plan, count: int) -> Plan:
    return replace(made, selection=limit(made.selection, count, benchmark="synthetic", seed=0))


def changed(name: str, value: object) -> Plan:
    return replace(MADE, selection=replace(MADE.selection, options={**MADE.selection.options, name: value}))


OTHERS = [
    (replace(MADE, seed=1), r"seed \(0, now 1\)"),
    (replace(MADE, configs=("original",)), "configs"),
    (replace(MADE, options=Options(bleed="none")), r"bleed \(paste, now none\)"),
    (replace(MADE, encoder=Encoder("png")), r"encoding \(jpeg, now png\), .*"),
    (replace(MADE, version="1.1.0"), r"version \(1.0.0, now 1.1.0\)"),
    (sampled(MADE, 4), r"limit \(none, now 4\)"),
    (changed("labels", "annotators"), r"labels \(captions, now annotators\)"),
    (changed("seed", 4), r"selection seed \(3, now 4\)"),
    (changed("vocabulary", ["cup"]), "vocabulary"),
    (
        replace(MADE, selection=replace(MADE.selection, examples=selection(4).examples)),
        r"images \(the source gives .*\)",
    ),
]


@pytest.mark.parametrize(("other", "message"), OTHERS)
def test_a_finished_build_says_what_differs(tmp_path, other, message):
    build(MADE, tmp_path / "b")
    with pytest.raises(UserError, match=rf"/b holds a build with other {message}: choose another --out, or remove it$"):
        Workspace(other, tmp_path / "b")
    assert Workspace(MADE, tmp_path / "b").finished


@pytest.mark.parametrize(("other", "message"), OTHERS)
def test_an_unfinished_build_says_the_same(tmp_path, other, message):
    with Workspace(MADE, tmp_path / "b").opened():
        pass
    expected = rf"b.partial is an unfinished build with other {message}: repeat its command, or remove it$"
    with pytest.raises(UserError, match=expected), Workspace(other, tmp_path / "b").opened():
        pass


def test_an_option_that_is_gone_is_named():
    assert differences({"selection": {"limit": 4, "a": [1]}}, {"selection": {"a": (1,)}}) == "limit (4, now none)"


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"key": 1'])
def test_damaged_notes_of_an_unfinished_build_are_one_line(tmp_path, text):
    workspace = Workspace(MADE, tmp_path / "b")
    with workspace.opened():
        (workspace.shards / "build.json").write_text(text)
    with (
        pytest.raises(UserError, match=r"build.json is damaged: remove .*b.partial and build again"),
        workspace.opened(),
    ):
        pass


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 10**30])
def test_a_seed_that_no_column_holds_is_refused_before_anything_is_written(tmp_path, seed):
    with pytest.raises(UserError, match=f"--seed {seed}: give a whole number of at most 63 bits"):
        Workspace(replace(MADE, seed=seed), tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


def test_the_largest_seed_is_built(tmp_path):
    build(replace(MADE, seed=2**63 - 1), tmp_path / "b")
    assert read_manifest(tmp_path / "b").seed == 2**63 - 1


def test_mended_images_are_named_and_a_new_build_has_them(tmp_path):
    # given a file that is cut off, one that is absent, and one that nobody mends
    files = {image: tmp_path / f"{image}.jpg" for image in ("70", "71", "72")}
    files["70"].write_bytes(encoded(70)[:-300])
    files["72"].write_bytes(b"no image")
    broken = [example(int(image), image=ImageFile(path)) for image, path in files.items()]
    made = replace(MADE, selection=selection(4, *broken))
    manifest = build(made, tmp_path / "b")
    assert sum(map(len, manifest.dropped.values())) == 3
    assert mended(made, manifest) == []
    # when two of them are mended
    files["70"].write_bytes(encoded(70))
    files["71"].write_bytes(encoded(71))
    # then the finished build stays as it is and says which, and another one has them
    assert Workspace(made, tmp_path / "b").finished
    assert mended(made, read_manifest(tmp_path / "b")) == ["70", "71"]
    assert build(made, tmp_path / "c").rows.image_id == ["0", "1", "2", "3", "70", "71"]
    assert mended(made, read_manifest(tmp_path / "c")) == []


def test_an_image_that_finds_no_background_was_never_broken(tmp_path):
    alone = example(9, "man")
    others = [each for each in selection(4).examples if each.gender == "woman"]
    made = Plan("synthetic", "1.0.0", replace(selection(0), examples=[*others, alone]), ("background-swap-same",))
    manifest = build(made, tmp_path / "b")
    assert manifest.dropped == {"no image to take a background from": {"9": ""}}
    assert mended(made, manifest) == []
