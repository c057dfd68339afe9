"""Contact sheets of small builds: what they show is what the rows hold."""

from __future__ import annotations

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from examples import example, selection
from truegap.build import Plan, Workspace, build_shard, choose_configs, read_manifest
from truegap.build.images import Encoder, decode
from truegap.errors import UserError
from truegap.report import contact_sheet as module
from truegap.report.contact_sheet import choose_places, contact_sheet
from truegap.report.sheet_rows import caption, read_shown
from truegap.schema import Perturbation, Selection

CONFIGS = choose_configs(["standard", "extra"])
SWAPS = ("background-swap-same", "background-swap-cross")


def build(out, chosen, configs=CONFIGS, benchmark="miap"):
    workspace = Workspace(Plan(benchmark, "1.0.0", chosen, configs, encoder=Encoder("png")), out)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return out


def terms(number):
    """Every image has an author of its own; that of image 4 allows no changed copies."""
    return {
        "license": "CC BY-ND 2.0" if number == 4 else "CC BY 2.0",
        "attribution": f"A. Photographer, https://example.org/{number}",
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    examples = [example(n, "woman" if n % 2 else "man", **terms(n)) for n in range(6)]
    return build(tmp_path_factory.mktemp("sheet") / "miap", Selection(examples, selection(6).steps, []))


@pytest.fixture
def written(monkeypatch):
    """Everything that is written on a sheet."""
    lines = []
    real = module._Pen.write

    def write(self, at, text, *rest, **more):
        lines.append(text)
        real(self, at, text, *rest, **more)

    monkeypatch.setattr(module._Pen, "write", write)
    return lines


def bytes_of(folder, config, place):
    [file] = (folder / "data" / config).glob("*.parquet")
    return pq.ParquetFile(file).read(columns=["image"]).column("image").to_pylist()[place]["bytes"]


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (Perturbation("none"), ""),
        (Perturbation("control"), "re-encoded"),
        (Perturbation("control-hsv", shift=0), "HSV and back"),
        (Perturbation("color", "strong", shift=-17), "shift -17"),
        (Perturbation("lighting", "weak", shift=4), "shift +4"),
        (Perturbation("background", "middle", radius=25.0), "radius 25"),
        (Perturbation("object", "weak", object_ids=(7, 9), n_objects=11), "2 of 11 objects"),
        (Perturbation("object", "weak", object_ids=(), n_objects=0), "0 of 0 objects"),
        (
            Perturbation("object-placebo", "weak", object_ids=(7,), n_objects=3, boxes=((0, 0, 1, 1),)),
            "1 of 3 elsewhere",
        ),
        (
            Perturbation("object-placebo", "weak", object_ids=(7,), n_objects=3, boxes=((0, 0, 1, 1),), overlapping=1),
            "1 of 3 elsewhere, 1 overlapping",
        ),
        (Perturbation("background-swap", donor="12"), "from 12"),
        (Perturbation("person-removed"), ""),
    ],
)
def test_a_caption_says_what_was_drawn(drawn, said):
    assert caption(drawn) == said


def test_images_are_spread_over_the_benchmark_or_named(built):
    manifest = read_manifest(built)
    assert choose_places(manifest, 3) == [0, 2, 4]
    assert choose_places(manifest, 99) == [0, 1, 2, 3, 4, 5]
    assert choose_places(manifest, 3, ["5", "0", "5"]) == [5, 0]
    with pytest.raises(UserError, match="miap has no image x; its ids are like 0, 1, 2"):
        choose_places(manifest, 3, ["5", "x"])


def test_pictures_stand_by_image_and_config(built):
    # given the sheet of two images, in another order than the benchmark's
    configs = ("person-removed", "color-strong", "object-strong", "background-strong", "original")
    sheet = np.asarray(contact_sheet(built, read_manifest(built), configs, [4, 1]))
    corners = []
    for place in (4, 1):
        for config in configs:
            picture = Image.fromarray(decode(bytes_of(built, config, place)))
            scaled = np.asarray(picture.resize((160, round(160 * 40 / 60)), Image.Resampling.LANCZOS))
            # then the picture that the benchmark holds is in it once
            [corner] = places_of(sheet, scaled)
            corners.append(corner)
    # and row by row, column by column
    assert corners == sorted(corners, key=lambda corner: (corner[1], corner[0]))
    assert len({left for left, _ in corners}) == len(configs)
    assert len({top for _, top in corners}) == 2


def places_of(sheet, picture):
    """Left and top of every exact copy of a picture in a sheet."""
    difference = cv2.matchTemplate(sheet, picture, cv2.TM_SQDIFF)
    near = np.argwhere(difference < picture.size)
    height, width = picture.shape[:2]
    return [(x, y) for y, x in near if (sheet[y : y + height, x : x + width] == picture).all()]


def test_every_image_and_every_background_travels_with_licence_and_author(built, written):
    manifest = read_manifest(built)
    contact_sheet(built, manifest, ["original", *SWAPS], [4])
    [shown] = read_shown(built, manifest, ["original", *SWAPS], [4], 100)
    donors = {tile.caption.removeprefix("from ") for tile in shown.tiles if tile.caption}
    assert len(donors) == 2
    assert {credit.image_id for credit in shown.credits} == {"4", *donors}
    foot = "\n".join(written)
    for number in ("4", *donors):
        assert f"{number}: {', '.join(terms(int(number)).values())}" in foot
    assert "Not for publication, by their licence or for lack of one: 4" in written
    assert {"original", "background-swap", "same", "cross", "miap 1.0.0", "1 of 6 images, seed 0", "man"} <= set(
        written
    )


def test_what_may_be_published_as_it_is_has_no_notice(built, written):
    manifest = read_manifest(built)
    contact_sheet(built, manifest, ["color-weak"], [0])
    # COCO's photographs may be published as they are under this licence
    contact_sheet(built, manifest.model_copy(update={"benchmark": "coco-gender"}), ["original"], [4])
    assert not [line for line in written if line.startswith("Not for publication")]
    contact_sheet(built, manifest.model_copy(update={"benchmark": "nobody-knows"}), ["original"], [0])
    assert [line for line in written if line.startswith("Not for publication")]


def test_a_long_foot_is_wrapped_and_never_cut(tmp_path, written):
    author = " ".join(["An Author of Many Names", "x" * 120, *["and Friends"] * 9])
    one = example(1, attribution=author)
    folder = build(tmp_path / "b", Selection([one], selection(1).steps, []), ("original",))
    sheet = contact_sheet(folder, read_manifest(folder), ["original"], [0])
    assert sheet.width < 400
    foot = written[written.index("woman") + 2 :]
    assert len(foot) > 4
    assert all(module._font(12).getlength(line) <= sheet.width - 40 for line in foot)
    assert f"1: CC BY 2.0, {author}".replace(" ", "") == "".join(foot).replace(" ", "")
    assert foot[-1].endswith("Friends")


def test_only_the_row_groups_shown_are_read(tmp_path, monkeypatch):
    # given a build of three row groups
    folder = build(tmp_path / "b", selection(70), ("original", "color-weak"))
    [file] = (folder / "data/original").glob("*.parquet")
    assert pq.read_metadata(file).num_row_groups == 3
    read = []
    real = pq.ParquetFile.read_row_group

    def noted(self, group, **more):
        read.append(group)
        return real(self, group, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    # when its last image is shown
    contact_sheet(folder, read_manifest(folder), ["original", "color-weak"], [69])
    # then nobody looks into the first two
    assert set(read) == {2}


def test_the_width_is_what_was_asked_for_or_too_small(built):
    manifest = read_manifest(built)
    for width in (1500, 2000):
        assert 0 <= width - contact_sheet(built, manifest, CONFIGS, [0], width=width).width < len(CONFIGS)
    with pytest.raises(UserError, match=r"--width 500 is too narrow for 21 configs: give at least \d+") as caught:
        contact_sheet(built, manifest, CONFIGS, [0], width=500)
    least = int(str(caught.value).rsplit(" ", 1)[1])
    assert contact_sheet(built, manifest, CONFIGS, [0], width=least).width <= least
    with pytest.raises(UserError, match="a sheet of 1 images x 21 configs is too large"):
        contact_sheet(built, manifest, CONFIGS, [0], width=10**6)


def test_text_stays_in_its_space():
    for text in ("original", "a-very-long-config-name-of-somebody", "x" * 500):
        font, line = module._fitted(text, 60, 14)
        assert font.getlength(line) <= 60
    assert module._fitted("weak", 60, 14)[1] == "weak"


def test_a_damaged_build_is_one_line(tmp_path):
    folder = build(tmp_path / "b", selection(2), ("original",))
    manifest = read_manifest(folder)
    rows = manifest.rows.model_copy(update={"image_id": ["0", "7"]})
    with pytest.raises(UserError, match="rows of original differ from its manifest: build the benchmark again"):
        contact_sheet(folder, manifest.model_copy(update={"rows": rows}), ["original"], [1])
    [file] = (folder / "data/original").glob("*.parquet")
    table = pq.ParquetFile(file).read()
    broken = [{"bytes": b"<html>", "path": None}] * 2
    pq.write_table(table.set_column(0, "image", [broken]), file)
    with pytest.raises(UserError, match="image 0 of original: not a JPEG, PNG or WebP image; build it again"):
        contact_sheet(folder, manifest, ["original"], [0])
