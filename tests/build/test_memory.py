"""What a build keeps in memory of each image: little, whatever their number."""

from __future__ import annotations

import json
import pickle
import tracemalloc

import pytest

from examples import selection
from truegap.build import Plan, Workspace, read_manifest
from truegap.build.collect import Collected
from truegap.build.digests import Digests
from truegap.build.manifest import write_manifest
from truegap.errors import UserError
from truegap.files import json_arrays
from truegap.schema import CONFIGS
from truegap.synthetic import selection as synthetic

FEW, MANY, SHARD = 256, 1024, 128


def digest(number: int) -> str:
    return f"{number:064x}"


def summary(start: int) -> dict[str, object]:
    """What a shard says of its images."""
    numbers = range(start, start + SHARD)
    return {
        "split": "test",
        "image_id": [f"image-{number:08d}" for number in numbers],
        "gender": ["woman", "man"] * (SHARD // 2),
        "sha256": {config: [digest(number) for number in numbers] for config in CONFIGS},
        "image_sha256": {config: [digest(number << 99) for number in numbers] for config in CONFIGS},
        "objects": {config: [2, 1] for config in CONFIGS},
        "dropped": {},
    }


def test_a_task_does_not_grow_with_its_images(tmp_path):
    one, two = (
        Workspace(Plan("synthetic", "1.0.0", synthetic(number)), tmp_path / "b").tasks()[0] for number in (4, SHARD)
    )
    assert len(two.examples) == SHARD
    assert len(pickle.dumps(two)) - len(pickle.dumps(one)) < 10


def test_putting_a_build_together_takes_little_for_each_image(tmp_path, monkeypatch):
    monkeypatch.setattr(json_arrays, "_CHUNK", 1 << 14)

    def peak(number: int) -> int:
        folder = tmp_path / str(number)
        folder.mkdir()
        plan = Plan("synthetic", "1.0.0", synthetic(number))
        # Shards wait on disk: what they take in memory, each takes alone.
        shards = [folder / str(start) for start in range(0, number, SHARD)]
        for shard in shards:
            shard.write_text(json.dumps(summary(int(shard.name))))
        tracemalloc.start()
        collected = Collected(plan)
        for shard in shards:
            collected.add(json.loads(shard.read_bytes()))
        write_manifest(folder, collected.manifest("key"))
        del collected
        read_manifest(folder)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak(SHARD)  # what is imported and kept for good
    assert (peak(MANY) - peak(FEW)) / (MANY - FEW) < 1500


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    collected = Collected(Plan("synthetic", "1.0.0", synthetic(SHARD)))
    collected.add(summary(0) | {"dropped": {"é": "unreadable: « \x01"}})
    manifest = collected.manifest("key")
    write_manifest(tmp_path, manifest)
    again = read_manifest(tmp_path)
    assert again == manifest
    assert again.dropped == {"unreadable": {"é": "« \x01"}}
    # and byte for byte as the JSON encoder writes a whole
    text = (tmp_path / "manifest.json").read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
    assert list(json.loads(text))[-1] == "rows"


def test_no_list_that_a_build_writes_is_too_long_to_be_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(json_arrays, "_CHUNK", 64)
    monkeypatch.setattr(json_arrays, "_LARGEST", 100)  # which is for archives
    collected = Collected(Plan("synthetic", "1.0.0", synthetic(SHARD)))
    collected.add(summary(0))
    write_manifest(tmp_path, manifest := collected.manifest("key"))
    assert read_manifest(tmp_path) == manifest


@pytest.mark.parametrize("wrong", ["0" * 63, "0" * 62 + "  ", "g" * 64, 7, None, "é" * 64])
def test_what_is_no_hash_is_named_with_its_place(tmp_path, wrong):
    collected = Collected(Plan("synthetic", "1.0.0", selection(SHARD)))
    collected.add(summary(0))
    write_manifest(tmp_path, collected.manifest("key"))
    content = json.loads((tmp_path / "manifest.json").read_bytes())
    hashes = content["rows"]["sha256"]["control"]
    for instead in ([*hashes[:3], wrong, *hashes[4:]], wrong):
        content["rows"]["sha256"]["control"] = instead
        (tmp_path / "manifest.json").write_text(json.dumps(content))
        with pytest.raises(UserError, match=r"manifest.json: rows.sha256.control: .*no SHA-256; build the .* again"):
            read_manifest(tmp_path)


@pytest.mark.parametrize("what", ["sha256", "image_sha256"])
def test_an_image_without_a_hash_is_named_with_its_config(tmp_path, what):
    collected = Collected(Plan("synthetic", "1.0.0", selection(SHARD)))
    collected.add(summary(0))
    write_manifest(tmp_path, collected.manifest("key"))
    content = json.loads((tmp_path / "manifest.json").read_bytes())
    hashes = content["rows"][what].pop("control")
    for count, instead in ((0, {}), (SHARD - 1, {"control": hashes[1:]})):
        content["rows"][what] |= instead
        (tmp_path / "manifest.json").write_text(json.dumps(content))
        with pytest.raises(UserError, match=rf"rows.{what}.control: {count} hashes of {SHARD} images; build"):
            read_manifest(tmp_path)


def test_digests_are_a_sequence_of_hexadecimal():
    strings = [digest(number) for number in range(5)]
    digests = Digests(strings[:3])
    digests.extend(strings[3:])
    assert list(digests) == strings
    assert digests == strings
    assert digests == Digests(strings)
    assert digests != Digests(strings[:4])
    assert (digests[-1], digests[1:3]) == (strings[-1], Digests(strings[1:3]))
    assert strings[2] in digests
    with pytest.raises(IndexError):
        digests[5]
    with pytest.raises(ValueError, match="no SHA-256"):
        digests.extend([strings[0], "0"])
    assert len(digests) == 5
