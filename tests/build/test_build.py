"""From examples to a folder that is a Hub dataset."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from examples import encoded, example, person_mask, selection
from truegap.build import Plan, Workspace, build_shard, plan, read_manifest, redo_row
from truegap.build.images import Encoder, decode
from truegap.build.plan import limit
from truegap.engine import run_tasks
from truegap.errors import UserError
from truegap.perturbations import Options
from truegap.schema import CONFIGS, Dropped, FilterStep, ImageBytes, ImageFile, Selection


def build(made: Plan, out, workers: int = 1):
    workspace = Workspace(made, out)
    assert not workspace.finished
    with workspace.opened():
        list(run_tasks(build_shard, workspace.tasks(), workers=workers))
        return workspace.finish()


@pytest.fixture(scope="module")
def png(tmp_path_factory):
    """A lossless build of ten images, in which pixels can be compared."""
    out = tmp_path_factory.mktemp("built") / "synthetic"
    build(Plan("synthetic", "1.0.0", selection(10), encoder=Encoder("png")), out)
    return out


@pytest.fixture(scope="module")
def rows(png):
    from datasets import load_dataset

    return {config: load_dataset(str(png), config, split="test") for config in CONFIGS}


def test_load_dataset_reads_all_fifteen_configs(rows):
    assert len(rows) == 15
    for config, dataset in rows.items():
        assert dataset["image_id"] == [str(i) for i in range(10)], config
        assert dataset.features["gender"].names == ["woman", "man"]
        assert dataset["gender"] == [0, 1] * 5
    assert {"person_boxes", "objects", "perturbation", "source", "license"} <= set(rows["original"].column_names)


def test_load_dataset_streams(png):
    from datasets import load_dataset

    first = next(iter(load_dataset(str(png), "background-strong", split="test", streaming=True)))
    assert first["perturbation"]["radius"] == 40.0


def test_original_keeps_the_sources_bytes(png):
    import pyarrow.parquet as pq

    table = pq.read_table(png / "data" / "original").to_pylist()
    assert [row["image"]["bytes"] for row in table] == [encoded(i) for i in range(10)]


def test_lossless_control_is_the_original(rows):
    for before, after in zip(rows["original"], rows["control"], strict=True):
        np.testing.assert_array_equal(np.asarray(before["image"]), np.asarray(after["image"]))


@pytest.mark.parametrize("config", [c for c in CONFIGS if c.startswith(("object", "background"))])
def test_person_pixels_are_untouched(rows, config):
    changed = 0
    for pair in zip(rows["original"], rows[config], strict=True):
        before, after = (np.asarray(row["image"]) for row in pair)
        np.testing.assert_array_equal(after[person_mask()], before[person_mask()])
        changed += (after != before).any()
    assert changed >= (10 if config.startswith("background") else 1)


@pytest.mark.parametrize("config", CONFIGS)
def test_row_redoes_its_perturbation(rows, config):
    for before, after in zip(rows["original"], rows[config], strict=True):
        np.testing.assert_array_equal(np.asarray(redo_row(before, after)), np.asarray(after["image"]))


def test_redo_refuses_rows_of_two_images(rows):
    with pytest.raises(ValueError, match="images '0' and '1'"):
        redo_row(rows["original"][0], rows["control"][1])


def test_manifest_counts_and_hashes(png):
    manifest = read_manifest(png)
    assert manifest.steps[-1].model_dump() == {"name": "image readable", "woman": 5, "man": 5, "other": 0}
    assert {each.rows for each in manifest.configs.values()} == {10}
    strong = manifest.configs["object-strong"]
    assert strong.objects == 80
    assert 20 <= strong.objects_drawn <= 30  # 30 % of 8 is 2.4 per image
    assert len({each.sha256 for each in manifest.configs.values()}) == 15
    assert all(len(set(manifest.rows.sha256[config])) == 10 for config in CONFIGS)


def test_same_rows_on_any_workers_in_any_shards(png, tmp_path, monkeypatch):
    # given shards of three images on two workers; then the same rows as one shard in this process
    monkeypatch.setattr(plan, "SHARD_SIZE", 3)
    manifest = build(Plan("synthetic", "1.0.0", selection(10), encoder=Encoder("png")), tmp_path / "b", workers=2)
    assert manifest.splits["test"].files == 4
    assert manifest.rows == read_manifest(png).rows


def test_seed_and_options_change_what_they_name(png, tmp_path):
    before = read_manifest(png).rows.sha256
    configs = ("original", "color-strong", "background-weak")
    options = Options(bleed="none")
    manifest = build(Plan("synthetic", "1.0.0", selection(10), configs, 0, options, Encoder("png")), tmp_path / "b")
    assert manifest.rows.sha256["original"] == before["original"]
    assert not set(manifest.rows.sha256["background-weak"]) & set(before["background-weak"])
    assert list(manifest.configs) == list(configs)


def test_unusable_images_are_counted(tmp_path):
    broken = [
        example(100, image=ImageFile(tmp_path / "absent.jpg")),
        example(101, image=ImageBytes(encoded()[:-300])),
        example(102, image=ImageBytes(encoded(size=(60, 40)))),
        example(103, image=ImageBytes(b"no image")),
    ]
    chosen = replace(selection(2, *broken), dropped=[Dropped("99", "captions name nobody")])
    manifest = build(Plan("synthetic", "1.0.0", chosen), tmp_path / "b")
    assert manifest.dropped == {
        "captions name nobody": {"99": ""},
        "image file cannot be read": {"100": "No such file or directory"},
        "image file is truncated": {"101": ""},
        "not a JPEG, PNG or WebP image": {"103": ""},
        "size of the image differs from its annotation": {"102": ""},
    }
    assert manifest.configs["original"].rows == 2
    assert "- 1: image file is truncated" in (tmp_path / "b" / "README.md").read_text()


def test_no_image_left_is_one_line_and_leaves_nothing(tmp_path):
    made = Plan("synthetic", "1.0.0", selection(0, example(1, image=ImageBytes(b""))))
    with pytest.raises(UserError, match="no image is left to build synthetic from: 1 not a JPEG, PNG or WebP image"):
        build(made, tmp_path / "b")
    assert list(tmp_path.iterdir()) == []


def test_interrupted_build_goes_on(png, tmp_path, monkeypatch):
    # given a build that stops after one of four shards; then nothing looks finished, and the rest is built
    monkeypatch.setattr(plan, "SHARD_SIZE", 3)
    made = Plan("synthetic", "1.0.0", selection(10), encoder=Encoder("png"))
    out = tmp_path / "b"
    workspace = Workspace(made, out)
    with workspace.opened():
        build_shard(workspace.tasks()[1])
    assert not out.exists()
    before = (workspace.shards / "00001" / "original.parquet").stat().st_mtime_ns
    manifest = build(made, out)
    assert (out / "data/original/test-00001-of-00004.parquet").stat().st_mtime_ns == before
    assert manifest.rows == read_manifest(png).rows
    assert sorted(each.name for each in out.iterdir()) == ["README.md", "data", "manifest.json"]


@pytest.mark.parametrize("step", ["rename", "card", "write_manifest"])
def test_kill_while_finishing_goes_on(png, tmp_path, monkeypatch, step):
    from pathlib import Path

    made = Plan("synthetic", "1.0.0", selection(10), encoder=Encoder("png"))
    workspace = Workspace(made, tmp_path / "b")
    with workspace.opened():
        build_shard(workspace.tasks()[0])
        with monkeypatch.context() as patch:
            if step == "rename":
                moved = []
                rename = Path.rename

                def stop(self, target):
                    if len(moved) == 3:
                        raise KeyboardInterrupt
                    moved.append(self)
                    return rename(self, target)

                patch.setattr(Path, "rename", stop)
            else:
                patch.setattr(f"truegap.build.workspace.{step}", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                workspace.finish()
    assert not (tmp_path / "b").exists()
    # a process that is killed tidies up nothing
    (workspace.partial / ".manifest.json.0123456789ab").write_text('{"rows": [')
    assert build(made, tmp_path / "b").rows == read_manifest(png).rows
    assert sorted(each.name for each in (tmp_path / "b").iterdir()) == ["README.md", "data", "manifest.json"]


def test_finished_build_is_recognised(png):
    made = Plan("synthetic", "1.0.0", selection(10), encoder=Encoder("png"))
    assert Workspace(made, png).finished
    with pytest.raises(
        UserError, match=r"holds a build with other seed \(0, now 1\): choose another --out, or remove it"
    ):
        Workspace(replace(made, seed=1), png)


def test_unfinished_build_of_another_plan_is_not_touched(tmp_path):
    made = Plan("synthetic", "1.0.0", selection(2))
    with Workspace(made, tmp_path / "b").opened():
        pass
    with (
        pytest.raises(UserError, match="unfinished build with other seed"),
        Workspace(replace(made, seed=1), tmp_path / "b").opened(),
    ):
        pass


def test_two_builders_do_not_meet(tmp_path):
    made = Plan("synthetic", "1.0.0", selection(2))
    with Workspace(made, tmp_path / "b").opened():
        other = Workspace(made, tmp_path / "b")
        with pytest.raises(UserError, match="another process is building"), other.opened():
            pass


def test_other_folders_are_not_touched(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").write_text("mine")
    with pytest.raises(UserError, match="exists and is not a built benchmark"):
        Workspace(Plan("synthetic", "1.0.0", selection(2)), tmp_path / "b")
    assert (tmp_path / "b" / "thesis.tex").read_text() == "mine"


def test_limit_is_balanced_and_does_not_depend_on_order():
    chosen = selection(20)
    four = limit(chosen, 4, benchmark="b", seed=0)
    turned = limit(replace(chosen, examples=chosen.examples[::-1]), 4, benchmark="b", seed=0)
    assert sorted(e.gender for e in four.examples) == ["man", "man", "woman", "woman"]
    assert {e.image_id for e in four.examples} == {e.image_id for e in turned.examples}
    assert four.steps[-1].name == "limit 4"
    lopsided = replace(chosen, examples=[e for e in chosen.examples if e.gender == "man"] + [chosen.examples[0]])
    assert [e.gender for e in limit(lopsided, 5, benchmark="b", seed=0).examples].count("woman") == 1


def test_extra_columns_keep_their_types(tmp_path):
    from datasets import Value, load_dataset

    chosen = replace(
        selection(2), examples=[example(0, extra={"scene": "brick"}), example(1, "man", extra={"scene": "leaf"})]
    )
    build(Plan("synthetic", "1.0.0", chosen, ("original", "control")), tmp_path / "b")
    dataset = load_dataset(str(tmp_path / "b"), "control", split="test")
    assert dataset.features["scene"] == Value("string")
    assert dataset["scene"] == ["brick", "leaf"]


def test_rotated_photograph_is_perturbed_upright(tmp_path):
    from PIL import Image

    exif = Image.Exif()
    exif[274] = 6
    turned = ImageBytes(encoded(size=(60, 40), exif=exif))  # upright it is 40 high and 60 wide, as annotated
    chosen = replace(selection(2), examples=[example(0, image=turned), example(1, "man")])
    build(Plan("synthetic", "1.0.0", chosen, ("original", "background-strong"), encoder=Encoder("png")), tmp_path / "b")
    from datasets import load_dataset

    after = load_dataset(str(tmp_path / "b"), "background-strong", split="test")[0]["image"]
    upright = decode(turned.read())
    np.testing.assert_array_equal(np.asarray(after)[person_mask()], upright[person_mask()])


def test_unreadable_manifest_names_the_file(tmp_path):
    with pytest.raises(UserError, match=r"is not a built benchmark: manifest.json is missing"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"benchmark": 3}))
    with pytest.raises(UserError, match=r"manifest.json: benchmark: "):
        read_manifest(tmp_path)


def test_another_build_under_the_same_name_is_read_as_itself(tmp_path):
    # given two benchmarks in folders of one name; then neither is read from the other's cache
    from datasets import load_dataset

    for place, n in (("one", 2), ("two", 4)):
        (tmp_path / place).mkdir()
        build(Plan("synthetic", "1.0.0", selection(n), ("original", "control")), tmp_path / place / "b")
        assert len(load_dataset(str(tmp_path / place / "b"), "control", split="test")) == n


def test_only_licences_that_allow_it_are_published():
    from truegap.build import publishable
    from truegap.sources import load_benchmark

    spec = load_benchmark("coco-gender")
    forbidden = example(50, license="CC BY-NC-ND 2.0")
    chosen = publishable(selection(4, forbidden, example(51, license="unheard of")), spec)
    assert [each.image_id for each in chosen.examples] == ["0", "1", "2", "3"]
    assert chosen.dropped == [
        Dropped("50", "licence forbids publishing changed copies: CC BY-NC-ND 2.0"),
        Dropped("51", "licence forbids publishing changed copies: unheard of"),
    ]
    assert chosen.steps[-1].name == "publishable"
    with pytest.raises(UserError, match="publish a recipe instead"):
        publishable(selection(0, forbidden), spec)


def test_what_would_come_out_wrong_is_refused(tmp_path):
    nobody = selection(2, example(7, persons=()))
    with pytest.raises(UserError, match=r"nobody is marked .1 images, such as 7.*--regions DETECTOR"):
        Workspace(Plan("synthetic", "1.0.0", nobody), tmp_path / "b")
    Workspace(Plan("synthetic", "1.0.0", nobody, ("original", "control")), tmp_path / "b")


def test_images_without_a_mark_are_left_out_and_counted():
    from truegap.build import marked

    # given one image of three in which nobody is marked
    given = Selection([example(1), example(2, persons=()), example(3)], [FilterStep("archive", 1, 2)], [])
    # then it is left out where a config changes what is around the person, and stays where none does
    chosen = marked(given, ("original", "background-weak"))
    assert [each.image_id for each in chosen.examples] == ["1", "3"]
    assert [(each.image_id, each.reason) for each in chosen.dropped] == [("2", "nobody is marked")]
    assert chosen.steps[-1].name == "somebody is marked"
    assert marked(given, ("original", "control")) is given
    nobody = replace(given, examples=[example(2, persons=())])
    assert marked(nobody, ("background-weak",)) is nobody
