from __future__ import annotations

import hashlib
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from examples import encoded, selection
from truegap.build import Plan, Workspace, build_shard, plan
from truegap.errors import UserError
from truegap.hub.benchmark import open_benchmark


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Seven images in shards of three: three files per config."""
    out = tmp_path_factory.mktemp("hub") / "b"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "SHARD_SIZE", 3)
        workspace = Workspace(Plan("synthetic", "1.0.0", selection(7), ("original", "control")), out)
        with workspace.opened():
            for task in workspace.tasks():
                build_shard(task)
            workspace.finish()
    return out


def test_images_by_position(folder):
    images = open_benchmark(str(folder)).images("original")
    assert len(images) == 7
    assert list(images) == [encoded(i) for i in range(7)]
    assert images.sha256 == [hashlib.sha256(encoded(i)).hexdigest() for i in range(7)]


def test_images_from_several_threads(folder):
    images = open_benchmark(str(folder)).images("original")
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(images.__getitem__, list(range(7)) * 20)) == [encoded(i) for i in range(7)] * 20


def test_columns_in_order(folder):
    benchmark = open_benchmark(str(folder), ["original"])
    assert benchmark.column("original", "image_id") == benchmark.manifest.rows.image_id
    assert benchmark.column("control", "gender") == [0, 1, 0, 1, 0, 1, 0]


def test_missing_parts_are_named(folder, tmp_path):
    broken = tmp_path / "b"
    shutil.copytree(folder, broken)
    (broken / "data/control/test-00001-of-00003.parquet").unlink()
    with pytest.raises(UserError, match="split test of config control has 2 of 3 files"):
        open_benchmark(str(broken)).images("control")
    with pytest.raises(UserError, match="has no config color-weak: it has original, control"):
        open_benchmark(str(broken), ["color-weak"])


def test_a_config_leads_out_of_no_folder(folder, tmp_path):
    text = (folder / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(text.replace('"control": {', '"../../control": {'))
    with pytest.raises(UserError, match=r"manifest.json: configs.../../control.*should match pattern"):
        open_benchmark(str(tmp_path))


def test_files_of_the_hub_come_when_they_are_read(folder, loopback_hub, monkeypatch):
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    commit = loopback_hub.commit("dataset", "org/b", files | {"data/original/train-0.parquet": b"x"}, "v1")

    def asked():
        """Files that were sent, in order of their names."""
        return sorted(path.split(f"{commit}/")[-1] for path in loopback_hub.asked if path.startswith("GET /datasets/"))

    # given a benchmark of which nothing but the manifest is there
    opened = open_benchmark("org/b@v1", ["original", "control"])
    assert asked() == ["manifest.json"]
    # when one config is read, and read again
    assert list(opened.images("control")) == list(open_benchmark(str(folder)).images("control"))
    opened.column("control", "gender")
    open_benchmark("org/b@v1").column("control", "gender")
    # then its files alone have come, each once
    came = ["manifest.json", *(f"data/control/test-0000{number}-of-00003.parquet" for number in range(3))]
    assert asked() == sorted(came)
    assert {loopback_hub.asked[path] for path in loopback_hub.asked if path.startswith("GET /datasets/")} == {1}
    # and they can be read without a Hub, where the others are known to be missing
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    offline = open_benchmark("org/b@v1")
    assert len(offline.images("control")) == 7
    with pytest.raises(UserError, match=r"dataset org/b@\w+: not in the local cache, and HF_HUB_OFFLINE"):
        offline.images("original")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    opened.fetch(["original"])
    assert "data/original/train-0.parquet" in asked()


def test_a_repository_that_lacks_files_is_named_and_not_the_cache(folder, loopback_hub):
    manifest = (folder / "manifest.json").read_bytes()
    commit = loopback_hub.commit("dataset", "org/b", {"manifest.json": manifest}, "v1")
    with pytest.raises(UserError, match=rf"^org/b@{commit[:12]}: split test .* 0 of 3 files: .* take another revision"):
        open_benchmark("org/b@v1").images("control")


def test_a_recipe_is_told_from_a_benchmark(loopback_hub):
    loopback_hub.commit("dataset", "org/facet", {"recipe.json": b"{}"}, "v1")
    with pytest.raises(UserError, match=r"org/facet@v1 is a recipe, .* `truegap build --recipe org/facet@v1 --source"):
        open_benchmark("org/facet@v1")


def test_a_damaged_file_is_one_line(folder, tmp_path):
    broken = tmp_path / "b"
    shutil.copytree(folder, broken)
    opened = open_benchmark(str(broken))
    file = broken / "data/control/test-00000-of-00003.parquet"
    whole = file.read_bytes()
    # given one whose pages are damaged, one that was cut off
    for data, reads in (
        (bytes(len(whole) // 2) + whole[len(whole) // 2 :], (lambda: list(opened.images("control")),)),
        (
            whole[:-9],
            (
                lambda: opened.images("control"),
                lambda: opened.column("control", "gender"),
                lambda: opened.column_names("control"),
            ),
        ),
    ):
        file.write_bytes(data)
        for read in reads:
            with pytest.raises(UserError, match=r"test-00000-of-00003.parquet: .*; copy or build .* again") as refused:
                read()
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nowhere", r"nowhere is neither a folder nor ORG/NAME\[@REVISION\]"),
        ("../../etc/passwd", "is neither a folder nor"),
        ("org/name@v1", "dataset org/name@v1: not in the local cache"),
    ],
)
def test_what_cannot_be_opened_is_one_line(spec, message):
    with pytest.raises(UserError, match=message) as raised:
        open_benchmark(spec)
    assert "\n" not in str(raised.value)
