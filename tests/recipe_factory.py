"""Archives, builds of them, and recipes of the builds."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection
from functools import partial
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageDraw

from examples import SIZE, encoded
from truegap.build import Plan, Workspace, build_shard
from truegap.build.recipe import Recipe
from truegap.build.recipe_write import write_recipe
from truegap.build.regions import with_regions
from truegap.engine import run_tasks
from truegap.regions.finders import Finders
from truegap.sources import read

BOX = [20, 5, 20, 25]
HERE = partial(run_tasks, workers=1)


def somebody(number: int) -> bytes:
    """A picture of a figure that GrabCut finds in `BOX`."""
    image = Image.open(BytesIO(encoded(number))).point(lambda level: 90 + level // 8)
    x, y, width, height = BOX
    ImageDraw.Draw(image).ellipse((x + 2, y + 2, x + width - 3, y + height - 3), fill=(240, 20 * number, 10))
    stream = BytesIO()
    image.save(stream, "JPEG", quality=95)
    return stream.getvalue()


def archive(folder: Path, count: int = 6, *, boxes: Collection[int] | None = None, splits: bool = False) -> Path:
    """A folder of one's own: photographs of somebody, boxes in some of them or all, terms in each row."""
    folder.mkdir(parents=True)
    rows = []
    for number in range(count):
        (folder / f"{number}.jpg").write_bytes(somebody(number))
        rows.append(
            {
                "file_name": f"{number}.jpg",
                "image_id": str(number),
                "gender": "woman" if number % 2 else "man",
                "person_boxes": json.dumps([BOX]) if boxes is None or number in boxes else "",
                "objects": json.dumps([{"label": "cup", "box": [1, 30, 9, 8]}, {"label": "bag", "box": [45, 1, 9, 8]}]),
                "split": ("train", "validation", "test")[number // 2 % 3] if splits else "test",
                "license": "CC BY 4.0" if number else "CC BY-NC 4.0",
                "attribution": f"https://example.org/{number}",
                "mood": "calm",
            }
        )
    with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return folder


def coco(folder: Path, count: int = 6) -> Path:
    """COCO as it unpacks: photographs of one person each."""
    (folder / "val2017").mkdir(parents=True)
    (folder / "annotations").mkdir()
    height, width = SIZE
    images, annotations, captions = [], [], []
    for number in range(1, count + 1):
        name = f"{number:012}.jpg"
        (folder / "val2017" / name).write_bytes(encoded(number))
        images.append({"id": number, "file_name": name, "height": height, "width": width, "license": 4})
        for place, (category, x, y, w, h) in enumerate([(1, 20, 5, 20, 25), (47, 3, 32, 8, 6), (47, 45, 32, 8, 6)]):
            polygon = [x, y, x + w, y, x + w, y + h, x, y + h]
            box = {"bbox": [x, y, w, h], "area": w * h, "iscrowd": 0, "segmentation": [polygon]}
            annotations.append({"id": 10 * number + place, "image_id": number, "category_id": category, **box})
        captions.append({"id": number, "image_id": number, "caption": "a woman" if number % 2 else "a man"})
    shared = {
        "licenses": [{"id": 4, "name": "x", "url": "http://creativecommons.org/licenses/by/2.0/"}],
        "images": images,
    }
    categories = [{"id": 1, "name": "person"}, {"id": 47, "name": "cup"}]
    instances = {**shared, "annotations": annotations, "categories": categories}
    (folder / "annotations/instances_val2017.json").write_text(json.dumps(instances))
    (folder / "annotations/captions_val2017.json").write_text(json.dumps({**shared, "annotations": captions}))
    return folder


def owned(source: Path, number: int = 4) -> Path:
    """COCO with an owner for every photograph, all under one of its licences: 4 is CC BY, 6 is CC BY-ND."""
    for path in (source / "annotations").glob("*.json"):
        content = json.loads(path.read_text())
        url = {4: "by", 6: "by-nd"}[number]
        content["licenses"] = [{"id": number, "name": "x", "url": f"http://creativecommons.org/licenses/{url}/2.0/"}]
        content["images"] = [
            {**each, "license": number, "flickr_url": f"http://farm1.example.org/{each['id']}.jpg"}
            for each in content["images"]
        ]
        path.write_text(json.dumps(content))
    return source


def build(source: Path, out: Path, configs: tuple[str, ...], finders: Finders | None = None, **changes) -> Path:
    """The benchmark of an archive."""
    name = "coco-gender" if (source / "annotations").is_dir() else "folder"
    selection = read(name, source)
    if finders is not None:
        selection = with_regions(selection, finders, HERE)
    workspace = Workspace(Plan(name, "1.0.0", selection, configs, **{"seed": 3, **changes}), out)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return out


def recipe_of(built: Path, out: Path, **options) -> Recipe:
    return write_recipe(built, out, **options)


def change_terms(recipe: Path, **changes) -> None:
    """Writes other values into `recipe.json`."""
    terms = json.loads((recipe / "recipe.json").read_text())
    (recipe / "recipe.json").write_text(json.dumps(terms | changes))


def change_rows(path: Path, change) -> None:
    """Applies a function to every row of a table."""
    table = pq.read_table(path)
    rows = [each for row in table.to_pylist() if (each := change(row)) is not None]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
