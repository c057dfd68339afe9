"""The whole line, as a person types it: photographs on disk, a benchmark, a run, a report, a row."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from examples import SIZE, encoded
from tiny import save_clip

TRUEGAP = [sys.executable, "-c", "from truegap.cli import main; main()"]


def truegap(*arguments: object) -> str:
    done = subprocess.run([*TRUEGAP, *map(str, arguments)], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """COCO as it unpacks: eight photographs of one person each, one of two people, one of nobody."""
    folder = tmp_path_factory.mktemp("coco")
    (folder / "val2017").mkdir()
    (folder / "annotations").mkdir()
    height, width = SIZE
    images, annotations, captions = [], [], []

    def annotate(image: int, category: int, x: float, y: float, w: float, h: float) -> None:
        polygon = [x, y, x + w, y, x + w, y + h, x, y + h]
        box = {"bbox": [x, y, w, h], "area": w * h, "iscrowd": 0, "segmentation": [polygon]}
        annotations.append({"id": len(annotations) + 1, "image_id": image, "category_id": category, **box})

    for number in range(1, 11):
        name = f"{number:012}.jpg"
        (folder / "val2017" / name).write_bytes(encoded(number))
        images.append(
            {"id": number, "file_name": name, "height": height, "width": width, "license": 4, "flickr_url": ""}
        )
        if number < 10:
            annotate(number, 1, 20, 5, 20, 25)
        if number == 9:
            annotate(number, 1, 45, 5, 10, 25)
        for place in range(4):
            annotate(number, 47, 3 + 14 * place, 32, 8, 6)
        words = "nobody" if number == 10 else "a woman" if number % 2 else "a man"
        captions.append({"id": number, "image_id": number, "caption": f"A picture of {words} with cups."})
    licenses = [{"id": 4, "name": "Attribution License", "url": "http://creativecommons.org/licenses/by/2.0/"}]
    categories = [{"id": 1, "name": "person"}, {"id": 47, "name": "cup"}]
    shared = {"info": {}, "licenses": licenses, "images": images}
    instances = {**shared, "annotations": annotations, "categories": categories}
    (folder / "annotations/instances_val2017.json").write_text(json.dumps(instances))
    (folder / "annotations/captions_val2017.json").write_text(json.dumps({**shared, "annotations": captions}))
    return folder


@pytest.mark.slow
def test_from_a_photograph_to_a_leaderboard_row(truegap_here, archive, tmp_path, monkeypatch):
    from datasets import load_dataset

    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path / "cache"))
    benchmark, run, store = tmp_path / "coco-gender", tmp_path / "run", tmp_path / "store"
    model = save_clip(tmp_path / "tiny-clip")

    built = truegap(
        "build", "coco-gender", "--source", archive, "--out", benchmark, "--encoding", "png", "--workers", "2"
    )
    assert "coco_person" in built
    assert "left out: 1 (several persons in COCO)" in built
    blurred = load_dataset(str(benchmark), "background-strong", split="test")
    original = load_dataset(str(benchmark), "original", split="test")
    assert sorted(blurred["gender"]) == [0] * 4 + [1] * 4
    before, after = np.asarray(original[0]["image"]), np.asarray(blurred[0]["image"])
    assert (before[6:29, 21:39] == after[6:29, 21:39]).all()
    assert (before != after).any()

    question = ["--benchmark", benchmark, "--model", model, "--k", "3", "--resamples", "50", "--out", run]
    summary = json.loads(truegap("evaluate", *question, "--json"))
    assert summary["metric"] == "max_skew@3"
    assert 0 <= summary["bias"] <= np.log(2) + 1e-9
    assert set(summary["feature_delta"]) == {"color", "lighting", "object", "background"}
    assert summary["floor"] is not None

    def told(*arguments: object) -> str:
        done = truegap_here(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told("report", run, "--out", tmp_path / "report")
    assert "tiny-clip" in (tmp_path / "report/index.html").read_text()
    assert "tiny-clip" in (tmp_path / "report/report.md").read_text()

    told("leaderboard", "submit", run, "--store", store)
    told("leaderboard", "submit", run, "--store", store)
    assert told("leaderboard", "show", "--store", store).count("tiny-clip") == 1
