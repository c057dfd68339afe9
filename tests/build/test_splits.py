"""Benchmarks with training and validation images: splits stay apart from plan to rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

import pytest
import yaml

from examples import encoded, example, selection
from truegap.build import Plan, Workspace, build_shard, plan, read_manifest
from truegap.build.images import Encoder
from truegap.build.plan import by_split, limit
from truegap.engine import run_tasks
from truegap.errors import UserError
from truegap.hub.benchmark import open_benchmark
from truegap.protocols.base import all_images
from truegap.schema import SPLITS, Dropped, ImageBytes, Selection

CONFIGS = ("original", "object-strong", "background-swap-same", "background-swap-cross")
TURNS = ("train", "train", "test", "test", "train", "train", "validation", "validation")
SIZES = {"train": 8, "validation": 4, "test": 4}


def split_selection(n: int = 16, *others) -> Selection:
    """Pairs of a woman and a man, by turns in the splits."""
    chosen = selection(n, *others)
    own = [replace(each, split=TURNS[number % len(TURNS)]) for number, each in enumerate(chosen.examples[:n])]
    return replace(chosen, examples=[*own, *others])


def planned(chosen: Selection | None = None, configs=CONFIGS) -> Plan:
    return Plan("synthetic", "1.0.0", chosen or split_selection(), configs, encoder=Encoder("png"))


def build(made: Plan, out, workers: int = 1):
    workspace = Workspace(made, out)
    with workspace.opened():
        list(run_tasks(build_shard, workspace.tasks(), workers=workers))
        return workspace.finish()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Sixteen images in shards of three."""
    out = tmp_path_factory.mktemp("splits") / "b"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "SHARD_SIZE", 3)
        build(planned(), out)
    return out


def test_every_file_is_of_one_split(built):
    import pyarrow.parquet as pq

    names = ["test-00000-of-00002", "test-00001-of-00002"]
    names += [f"train-0000{n}-of-00003" for n in range(3)]
    names += ["validation-00000-of-00002", "validation-00001-of-00002"]
    for config in CONFIGS:
        files = sorted((built / "data" / config).iterdir())
        assert [file.stem for file in files] == names
        for file in files:
            assert set(pq.read_table(file, columns=["split"])["split"].to_pylist()) == {file.name.partition("-")[0]}


@pytest.mark.parametrize("streaming", [False, True])
def test_load_dataset_reads_a_split(built, streaming):
    from datasets import load_dataset

    expected = by_split(split_selection().examples)
    for split in SPLITS:
        rows = list(load_dataset(str(built), "background-swap-same", split=split, streaming=streaming))
        assert [row["image_id"] for row in rows] == [each.image_id for each in expected[split]]
        assert {row["split"] for row in rows} == {split}


def test_load_dataset_without_a_split_gives_them_all(built):
    from datasets import DatasetDict, load_dataset

    found = load_dataset(str(built), "object-strong")
    assert isinstance(found, DatasetDict)
    assert {split: len(rows) for split, rows in found.items()} == SIZES


def test_manifest_counts_and_hashes_per_split(built):
    manifest = read_manifest(built)
    assert {split: part.model_dump() for split, part in manifest.splits.items()} == {
        "train": {"rows": 8, "woman": 4, "man": 4, "files": 3},
        "validation": {"rows": 4, "woman": 2, "man": 2, "files": 2},
        "test": {"rows": 4, "woman": 2, "man": 2, "files": 2},
    }
    ids, hashes = manifest.rows.image_id, manifest.rows.sha256["object-strong"]
    summary = manifest.configs["object-strong"]
    assert (summary.rows, summary.woman, summary.man) == (16, 8, 8)
    for split in SPLITS:
        there = manifest.places(split)
        lines = "".join(f"{image} {digest}\n" for image, digest in zip(ids[there], hashes[there], strict=True))
        assert summary.split_sha256[split] == hashlib.sha256(lines.encode()).hexdigest()
    assert [ids[manifest.places(split)] for split in SPLITS] == [
        [each.image_id for each in part] for part in by_split(split_selection().examples).values()
    ]


def test_a_benchmark_for_tests_alone_has_one_split(tmp_path):
    manifest = build(planned(selection(4), ("original",)), tmp_path / "b")
    assert list(manifest.splits) == ["test"]
    assert manifest.splits["test"].rows == 4
    assert manifest.configs["original"].split_sha256 == {"test": manifest.configs["original"].sha256}
    assert "## Splits" not in (tmp_path / "b/README.md").read_text()


def test_same_rows_on_any_workers_in_any_shards_in_any_order(built, tmp_path):
    # given one shard per split on two workers, the archive's order turned round
    chosen = split_selection()
    turned = build(planned(replace(chosen, examples=chosen.examples[::-1])), tmp_path / "b", workers=2)
    straight = build(planned(), tmp_path / "c", workers=2)
    before = read_manifest(built)
    # then the rows are those of many shards in this process
    assert straight.rows == before.rows
    assert straight.configs == before.configs
    for config in CONFIGS:
        hashes = [
            dict(zip(manifest.rows.image_id, manifest.rows.sha256[config], strict=True))
            for manifest in (before, turned)
        ]
        assert hashes[0] == hashes[1]


def test_an_image_in_another_split_is_another_row(built, tmp_path):
    chosen = split_selection()
    moved = replace(chosen, examples=[replace(chosen.examples[0], split="validation"), *chosen.examples[1:]])
    with pytest.raises(UserError, match="holds a build with other images"):
        Workspace(planned(moved), built)
    manifest, before = build(planned(moved), tmp_path / "b"), read_manifest(built)
    assert manifest.configs["original"].sha256 != before.configs["original"].sha256
    hashes = [dict(zip(each.rows.image_id, each.rows.sha256["original"], strict=True)) for each in (manifest, before)]
    assert {image for image in hashes[0] if hashes[0][image] != hashes[1][image]} == {"0"}


def test_backgrounds_stay_in_their_split(built):
    benchmark = open_benchmark(str(built))
    split_of = {image: split for split in SPLITS for image in benchmark.image_ids(split)}
    for config in ("background-swap-same", "background-swap-cross"):
        for split in SPLITS:
            donors = [drawn["donor"] for drawn in benchmark.column(config, "perturbation", split)]
            assert len(donors) == SIZES[split]
            assert {split_of[donor] for donor in donors} == {split}


def test_interrupted_build_goes_on(built, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "SHARD_SIZE", 3)
    workspace = Workspace(planned(), tmp_path / "b")
    with workspace.opened():
        for number in (1, 4):
            build_shard(workspace.tasks()[number])
    assert not (tmp_path / "b").exists()
    assert build(planned(), tmp_path / "b") == read_manifest(built)


def test_a_split_of_which_nothing_is_left_is_not_announced(tmp_path):
    from datasets import load_dataset

    broken = [example(n, split="validation", image=ImageBytes(b"no image")) for n in (50, 51)]
    manifest = build(planned(selection(4, *broken, example(60, split="train")), ("original",)), tmp_path / "b")
    assert list(manifest.splits) == ["train", "test"]
    assert {split: len(rows) for split, rows in load_dataset(str(tmp_path / "b"), "original").items()} == {
        "train": 1,
        "test": 4,
    }


def test_card_names_the_files_of_every_split(built):
    text = (built / "README.md").read_text()
    front = yaml.safe_load(text.split("---")[1])
    assert front["configs"][0]["data_files"] == [
        {"split": split, "path": f"data/original/{split}-*.parquet"} for split in SPLITS
    ]
    assert "| `validation` | 4 | 2 | 2 |" in text
    assert "background-strong" not in text  # which was not built


def test_models_see_the_test_split(built, tmp_path):
    benchmark = open_benchmark(str(built))
    expected = [each.image_id for each in by_split(split_selection().examples)["test"]]
    images = all_images(benchmark)
    assert images.ids == sorted(expected)
    assert [expected[place] for place in images.places] == images.ids
    assert images.genders == ["woman" if int(image) % 2 == 0 else "man" for image in images.ids]
    for_training = [each for each in split_selection().examples if each.split != "test"]
    build(planned(replace(split_selection(), examples=for_training), ("original",)), tmp_path / "b")
    with pytest.raises(UserError, match="has no split test: it has train and validation"):
        all_images(open_benchmark(str(tmp_path / "b")))


def counted(chosen: Selection) -> dict[str, Counter[str]]:
    return {split: Counter(each.gender for each in part) for split, part in by_split(chosen.examples).items()}


def test_limit_keeps_the_shares_of_splits_and_balance():
    chosen = limit(split_selection(80), 40, benchmark="b", seed=0)
    assert counted(chosen) == {
        "train": {"woman": 10, "man": 10},
        "validation": {"woman": 5, "man": 5},
        "test": {"woman": 5, "man": 5},
    }
    assert chosen.steps[-1].name == "limit 40"
    assert chosen.options["limit"] == 40


def test_limit_gives_every_split_a_pair_the_test_split_first():
    rare = [example(900 + n, "woman" if n % 2 else "man", split="test") for n in range(4)]
    for_training = [replace(each, split="train") for each in selection(400).examples]
    chosen = replace(selection(0), examples=[*for_training, *rare])
    for count, expected in ((1, {"test": 1}), (2, {"test": 2}), (4, {"train": 2, "test": 2})):
        sizes = {split: n.total() for split, n in counted(limit(chosen, count, benchmark="b", seed=0)).items()}
        assert sizes == expected, count
    all_of_it = limit(chosen, 1000, benchmark="b", seed=0)
    assert len(all_of_it.examples) == 404
    assert all_of_it.dropped == []


def test_a_larger_limit_takes_no_image_away():
    before: set[str] = set()
    for count in range(1, 41):
        chosen = limit(split_selection(40), count, benchmark="b", seed=0)
        ids = {each.image_id for each in chosen.examples}
        assert len(ids) == count
        assert before <= ids
        before = ids


def test_every_image_of_the_archive_is_a_row_or_has_a_reason(tmp_path):
    # given an archive that names an image three times, a limit, and an image that cannot be read
    broken = [replace(each, image=ImageBytes(b"no image")) for each in split_selection(24).examples[:4]]
    whole = split_selection(24)
    twice = [Dropped("7", f"image id stands twice: line {line} left out") for line in (3, 9)]
    step = replace(whole.steps[0], other=len(twice))
    whole = replace(whole, examples=[*broken, *whole.examples[4:]], steps=[step], dropped=twice)
    chosen = limit(whole, 20, benchmark="b", seed=0)
    manifest = build(planned(chosen, ("original",)), tmp_path / "b")
    dropped = {reason: len(ids) for reason, ids in manifest.dropped.items()}
    unreadable = len({each.image_id for each in broken} & {each.image_id for each in chosen.examples})
    assert unreadable
    assert dropped == {
        "beyond --limit 20": 4,
        "image id stands twice": 2,
        "not a JPEG, PNG or WebP image": unreadable,
    }
    archive = manifest.steps[0]
    assert archive.woman + archive.man + archive.other == len(manifest.rows.image_id) + sum(dropped.values())
    assert manifest.dropped["image id stands twice"] == {"7": "line 3 left out", "7 (2)": "line 9 left out"}


def test_rows_hold_the_image_of_their_place(built):
    benchmark = open_benchmark(str(built))
    for split in SPLITS:
        images = benchmark.images("original", split)
        assert list(images) == [encoded(int(image)) for image in benchmark.image_ids(split)]
        assert images.sha256 == [hashlib.sha256(data).hexdigest() for data in images]
        assert benchmark.column("original", "image_id", split) == benchmark.image_ids(split)
