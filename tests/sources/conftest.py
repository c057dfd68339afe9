from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from examples import encoded
from truegap import sources


class CocoFolder:
    """A small folder in COCO's own format, written split by split."""

    def __init__(self, top: Path, split: str = "val2017") -> None:
        self.top, self.split = top, split
        self.images: list[Any] = []
        self.annotations: list[Any] = []
        self.captions: list[Any] = []
        self.licenses: list[Any] = [
            {"id": 1, "name": "x", "url": "http://creativecommons.org/licenses/by-nc-sa/2.0/"},
            {"id": 4, "name": "Attribution License", "url": "http:\\/\\/creativecommons.org\\/licenses\\/by\\/2.0\\/"},
        ]
        self.categories: list[Any] = [
            {"supercategory": "person", "id": 1, "name": "person"},
            {"supercategory": "kitchen", "id": 44, "name": "bottle"},
        ]

    def photo(self, number: int, *captions: str, persons: int = 1, objects: int = 1, file: bool = True, **changes: Any):
        """An image of 8 x 6 pixels; persons and objects are rectangles of 3 x 4 and 1 x 2 pixels."""
        prefix = f"COCO_{self.split}_" if self.split.endswith("2014") else ""
        entry = {
            "id": number,
            "width": 8,
            "height": 6,
            "file_name": f"{prefix}{number:012d}.jpg",
            "license": 4,
            "flickr_url": f"http://farm1.staticflickr.com/{number}_z.jpg",
            "coco_url": f"http://images.cocodataset.org/{number}.jpg",
            "date_captured": "2013-11-14 11:18:45",
        } | changes
        self.images.append(entry)
        self.captions += [{"image_id": number, "id": len(self.captions), "caption": caption} for caption in captions]
        for _ in range(persons):
            self.annotate(number, 1, [1, 1, 3, 4])
        for _ in range(objects):
            self.annotate(number, 44, [5, 1, 1, 2])
        if file:
            (self.top / self.split).mkdir(exist_ok=True)
            (self.top / self.split / f"{prefix}{number:012d}.jpg").write_bytes(b"decoded by the build")
        return self

    def annotate(self, number: int, category: int, box: list[float], **changes: Any) -> dict[str, Any]:
        x, y, width, height = box
        corners = [x, y, x + width, y, x + width, y + height, x, y + height]
        entry = {
            "id": 1 + len(self.annotations),
            "image_id": number,
            "category_id": category,
            "segmentation": [corners],
            "area": width * height,
            "bbox": box,
            "iscrowd": 0,
        } | changes
        self.annotations.append(entry)
        return entry

    def crowd(self, number: int, category: int, **changes: Any) -> dict[str, Any]:
        runs = {"counts": [30, 6, 12], "size": [6, 8]}
        crowd = {"id": 900_100_000_000 + number, "segmentation": runs, "iscrowd": 1}
        return self.annotate(number, category, [5, 0, 1, 6], **(crowd | changes))

    def write(self) -> Path:
        notes = self.top / "annotations"
        notes.mkdir(exist_ok=True)
        (self.top / self.split).mkdir(exist_ok=True)
        tables = {
            "info": {"description": "made by a test"},
            "images": self.images,
            "annotations": self.annotations,
            "categories": self.categories,
            "licenses": self.licenses,
        }
        (notes / f"instances_{self.split}.json").write_text(json.dumps(tables))
        (notes / f"captions_{self.split}.json").write_text(
            json.dumps({"images": self.images, "annotations": self.captions})
        )
        return self.top


@pytest.fixture
def coco(tmp_path: Path) -> CocoFolder:
    return CocoFolder(tmp_path)


@pytest.fixture
def coco_of(tmp_path: Path):
    return lambda split: CocoFolder(tmp_path, split)


class Archive:
    """Files of any archive, written by path below one folder."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def _place(self, name: str) -> Path:
        """Where a file goes: never outside, whatever hostile name a test tries."""
        path = (self.top / name).resolve()
        assert path.is_relative_to(self.top.resolve()), f"{name} is outside of {self.top}: no test writes there"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def text(self, name: str, content: str, encoding: str = "utf-8") -> Path:
        path = self._place(name)
        path.write_bytes(content.encode(encoding))
        return path

    def json(self, name: str, content: Any) -> Path:
        return self.text(name, json.dumps(content))

    def table(self, name: str, rows: list[dict[str, Any]], delimiter: str = ",") -> Path:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
        return self.text(name, stream.getvalue())

    def photo(self, name: str, size: tuple[int, int] = (40, 60), fmt: str = "JPEG", **options: Any) -> Path:
        path = self._place(name)
        path.write_bytes(encoded(len(name), size, fmt, **options))
        return path


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path)


@pytest.fixture
def outcome():
    """Reads an archive: the selection, reasons by id, counts by step."""

    def read(name: str, folder: Path, **options: Any):
        selection = sources.read(name, folder, **options)
        first = selection.steps[0]
        # then every image of the archive is an example or has a reason
        assert first.woman + first.man + first.other == len(selection.examples) + len(selection.dropped)
        reasons = {drop.image_id: drop.reason for drop in selection.dropped}
        return selection, reasons, {step.name: (step.woman, step.man, step.other) for step in selection.steps}

    return read
