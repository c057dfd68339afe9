from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


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
