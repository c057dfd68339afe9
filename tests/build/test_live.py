"""On the fly gives what a build gives."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import truegap
from examples import selection
from truegap.build import Plan, Workspace, build_shard, choose_configs
from truegap.build.images import Encoder
from truegap.perturbations import Options
from truegap.regions import masks

CONFIGS = [config for config in choose_configs(["standard", "extra"]) if not config.startswith("background-swap")]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("live") / "live"
    plan = Plan(
        "synthetic", "1.0.0", selection(6), choose_configs(["standard", "extra"]), seed=5, encoder=Encoder("png")
    )
    workspace = Workspace(plan, out)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return str(out)


def load(built, config, **options):
    from datasets import load_dataset

    return load_dataset(built, config, split="test", **options)


@pytest.mark.parametrize("config", CONFIGS)
def test_same_pixels_and_draws_as_a_lossless_build(built, config):
    live = truegap.perturbed(load(built, "original"), config)
    for row, stored in zip(live, load(built, config), strict=True):
        np.testing.assert_array_equal(np.asarray(row["image"]), np.asarray(stored["image"]))
        assert row["perturbation"] == stored["perturbation"]
        assert row["gender"] == stored["gender"]


def test_batches_and_slices(built):
    live = truegap.perturbed(load(built, "original"), "background-weak")
    batch = live[1:4]
    assert batch["image_id"] == ["1", "2", "3"]
    np.testing.assert_array_equal(np.asarray(batch["image"][2]), np.asarray(live[3]["image"]))


def test_streams(built):
    live = truegap.perturbed(load(built, "original", streaming=True), "color-strong")
    stored = load(built, "color-strong")
    np.testing.assert_array_equal(np.asarray(next(iter(live))["image"]), np.asarray(stored[0]["image"]))


def test_the_dataset_given_is_left_alone(built):
    original = load(built, "original")
    before = np.asarray(original[0]["image"])
    truegap.perturbed(original, "lighting-strong")
    np.testing.assert_array_equal(np.asarray(original[0]["image"]), before)


def test_options_and_seed(built):
    original = load(built, "original")
    halo, clean = (
        truegap.perturbed(original, "background-weak", options=Options(bleed=b))[0]["image"] for b in ("paste", "none")
    )
    assert (np.asarray(halo) != np.asarray(clean)).any()
    shifts = {truegap.perturbed(original, "color-strong", seed=seed)[0]["perturbation"]["shift"] for seed in range(6)}
    assert len(shifts) > 1


def test_what_cannot_be_done_is_said(built):
    original = load(built, "original")
    for config in ("background-swap-same", "standard"):
        with pytest.raises(truegap.UserError, match=f"{config} cannot be made on the fly: build it with"):
            truegap.perturbed(original, config)
    with pytest.raises(truegap.UserError, match="color-weak: the dataset has no column image_id"):
        truegap.perturbed(original.remove_columns("image_id"), "color-weak")
    with pytest.raises(truegap.UserError, match="background-weak: the dataset has no column person_boxes"):
        truegap.perturbed(original.remove_columns(["person_boxes", "person_masks"]), "background-weak")
    with pytest.raises(truegap.UserError, match="object-weak: the dataset has no column objects"):
        truegap.perturbed(original.remove_columns("objects"), "object-weak")
    with pytest.raises(truegap.UserError, match="unknown config blurry"):
        truegap.perturbed(original, "blurry")
    with pytest.raises(truegap.UserError, match="dataset is list: give"):
        truegap.perturbed([1], "color-weak")
    with pytest.raises(truegap.UserError, match="perturbed on the fly already"):
        truegap.perturbed(truegap.perturbed(original, "color-weak"), "color-weak")
    with pytest.raises(truegap.UserError, match="format pandas holds no pictures"):
        truegap.perturbed(original.with_format("pandas"), "color-weak")
    with pytest.raises(truegap.UserError, match=r"image '0' is perturbed already \(color\): load config `original`"):
        truegap.perturbed(load(built, "color-strong"), "color-weak")[0]


def test_color_needs_neither_persons_nor_objects(built):
    bare = load(built, "original").select_columns(["image", "image_id", "perturbation"])
    stored = load(built, "color-strong")
    live = truegap.perturbed(bare, "color-strong")
    np.testing.assert_array_equal(np.asarray(live[2]["image"]), np.asarray(stored[2]["image"]))


def test_splits_stay_apart(built):
    from datasets import load_dataset

    for streaming in (False, True):
        parts = truegap.perturbed(load_dataset(built, "original", streaming=streaming), "background-weak")
        assert list(parts) == ["test"]
        stored = load(built, "background-weak")
        np.testing.assert_array_equal(np.asarray(next(iter(parts["test"]))["image"]), np.asarray(stored[0]["image"]))


@pytest.mark.parametrize("streaming", [False, True])
def test_a_format_chosen_before_is_kept(built, streaming):
    stored = load(built, "background-weak")
    original = load(built, "original", streaming=streaming).with_format("torch")
    for row, want in zip(truegap.perturbed(original, "background-weak"), stored, strict=True):
        np.testing.assert_array_equal(row["image"].permute(1, 2, 0).numpy(), np.asarray(want["image"]))
        assert int(row["gender"]) == want["gender"]


def test_columns_and_transforms_chosen_before_are_kept(built):
    original = load(built, "original")
    stored = load(built, "background-weak")
    named = truegap.perturbed(original.with_format("numpy", columns=["image", "gender"]), "background-weak")
    assert list(named[0]) == ["image", "gender"]
    np.testing.assert_array_equal(named[0]["image"], np.asarray(stored[0]["image"]))
    mean = original.with_transform(lambda batch: {"mean": [np.asarray(image).mean() for image in batch["image"]]})
    assert truegap.perturbed(mean, "background-weak")[3] == {"mean": np.asarray(stored[3]["image"]).mean()}


def test_a_format_chosen_after_never_shows_images_that_are_not_perturbed(built):
    live = truegap.perturbed(load(built, "original"), "background-weak")
    assert "image" not in live.with_format("torch")[0]
    with pytest.raises((KeyError, ValueError), match="image"):
        live["image"]


def test_what_else_is_done_with_a_dataset_goes_on_working(built):
    live = truegap.perturbed(load(built, "original"), "background-weak")
    stored = load(built, "background-weak")
    assert live["gender"] == stored["gender"]
    assert len(live.filter(lambda row: row["gender"] == 0)) == 3
    assert len(live.filter(lambda gender: gender == 0, input_columns="gender")) == 3
    mapped = live.map(lambda row: {"mean": float(np.asarray(row["image"]).mean())})
    assert mapped[4]["mean"] == np.asarray(stored[4]["image"]).mean()
    shuffled = live.shuffle(seed=3).select(range(2))
    for row in shuffled:
        np.testing.assert_array_equal(np.asarray(row["image"]), np.asarray(stored[int(row["image_id"])]["image"]))
    with pytest.raises(truegap.UserError, match="remove_unused_columns=False"):
        live.remove_columns(["person_boxes", "person_masks"])[0]


def means(rows):
    """Given rows, what a loader makes of them."""
    return [(row["image_id"], float(np.asarray(row["image"]).mean())) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_loader_with_several_processes(built, start, streaming):
    from torch.utils.data import DataLoader

    live = truegap.perturbed(load(built, "original", streaming=streaming), "background-weak")
    next(iter(live))  # the parent has used OpenCV before it forks
    loader = DataLoader(live, batch_size=2, num_workers=2, collate_fn=means, multiprocessing_context=start)
    found = sorted(pair for batch in loader for pair in batch)
    assert found == sorted(means(load(built, "background-weak")))


# --- a user's own dataset ---


def own(**columns):
    """Two pictures of a user."""
    from datasets import Dataset

    images = [Image.fromarray(np.full((40, 60, 3), level, np.uint8)) for level in (100, 200)]
    return Dataset.from_dict({"image": images, "image_id": [7, 8], **columns})


def test_an_own_dataset_as_datasets_writes_detections():
    things = {"id": [1, 2], "bbox": [[0, 0, 10, 10], [50, 30, 5, 5]], "category": [3, 4]}
    dataset = own(persons=[[{"bbox": [20, 5, 20, 25]}]] * 2, objects=[things] * 2)
    row = truegap.perturbed(dataset, "object-strong", options=Options(count="ceil"), seed=4)[1]
    image = np.asarray(row["image"])
    (drawn,) = row["perturbation"]["object_ids"]
    black = image[5, 5] if drawn == 1 else image[32, 52]
    assert black.tolist() == [0, 0, 0]
    assert (image == 0).all(axis=2).sum() == (100 if drawn == 1 else 25)
    assert row["perturbation"]["n_objects"] == 2
    # And a number is an id as good as a text
    changed, _ = truegap.perturb(np.full((40, 60, 3), 200, np.uint8), "color", "strong", image_id="8", seed=4)
    np.testing.assert_array_equal(np.asarray(truegap.perturbed(dataset, "color-strong", seed=4)[1]["image"]), changed)


@pytest.mark.parametrize("kind", ["counts", "picture", "decoded", "polygons", "boxes"])
def test_persons_of_an_own_dataset_in_any_form(kind):
    from datasets import Dataset

    inside = np.zeros((40, 60), bool)
    inside[5:30, 20:40] = True
    written = {
        "counts": {"person_masks": [[masks.encode(inside)]]},
        "decoded": {"person_masks": [[Image.fromarray(inside)]]},
        "picture": {"persons": [[{"mask": Image.fromarray(inside)}]]},
        "polygons": {"persons": [[{"segmentation": [[20.0, 5.0, 40.0, 5.0, 40.0, 30.0, 20.0, 30.0]]}]]},
        "boxes": {"person_boxes": [[[20.0, 5.0, 20.0, 25.0]]]},
    }[kind]
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (40, 60, 3), np.uint8)
    dataset = Dataset.from_dict({"image": [Image.fromarray(image)], "image_id": ["a"], **written})
    removed = np.asarray(truegap.perturbed(dataset, "person-removed")[0]["image"])
    assert (removed[inside] == 0).all()
    np.testing.assert_array_equal(removed[~inside], image[~inside])


@pytest.mark.parametrize(
    ("columns", "config", "message"),
    [
        ({"person_boxes": [[], []]}, "background-weak", "image '7': nobody is marked"),
        ({"person_boxes": [[[1, 2, 3]]] * 2}, "background-weak", "image '7': box is not four finite numbers"),
        ({"person_masks": [["no counts"]] * 2}, "background-weak", "image '7': "),
        ({"persons": [[{"name": "x"}]] * 2}, "background-weak", "image '7': a person or object has neither box nor"),
        ({"persons": ["x", "y"]}, "background-weak", "image '7': persons or objects are str; give a list of records"),
        (
            {"person_boxes": [[[1, 1, 9, 9]]] * 2, "objects": [[{"id": 1, "box": [1, 1, 2, 2]}] * 2] * 2},
            "object-weak",
            "image '7': two objects have one id",
        ),
        (
            {"person_boxes": [[[1, 1, 9, 9]]] * 2, "objects": [[{"id": "x", "box": [1, 1, 2, 2]}]] * 2},
            "object-weak",
            "image '7': id of a thing is str; give whole numbers",
        ),
        ({"height": [40, 40], "width": [61, 61]}, "color-weak", "image '7': image is 60 x 40, its annotation for 61"),
    ],
)
def test_what_is_wrong_with_a_row_is_one_line(columns, config, message):
    with pytest.raises(truegap.UserError, match=message) as refused:
        truegap.perturbed(own(**columns), config)[0]
    assert "\n" not in str(refused.value)


def test_objects_that_play_no_part_are_not_looked_at():
    twice = [[{"id": 1, "box": [1, 1, 2, 2]}] * 2] * 2
    dataset = own(person_boxes=[[[1, 1, 9, 9]]] * 2, objects=twice)
    assert truegap.perturbed(dataset, "background-weak")[0]["perturbation"]["radius"] == 10
    with pytest.raises(truegap.UserError, match="two objects have one id"):
        truegap.perturbed(dataset, "object-weak")[0]


_FAULTS = """
import resource
import numpy as np
from truegap.build.live import _Change
from truegap.perturbations import Options
change = _Change("color-weak", None, None, Options())
row = {"image": np.zeros((1000, 1000, 3), np.uint8), "image_id": "a"}
faults = [resource.getrusage(resource.RUSAGE_SELF).ru_minflt for _ in range(20) if change(row)]
print((faults[-1] - faults[4]) // 15)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory is glibc's affair")
def test_a_rows_memory_is_used_again():
    # given pictures of a thousand pages; when glibc is told to give memory back, and when it is not
    def pages(**variables: str) -> int:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
        command = [sys.executable, "-c", _FAULTS]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env={**kept, **variables})
        return int(done.stdout)

    # then all are fetched for every row, or hardly any
    assert pages(MALLOC_TRIM_THRESHOLD_="131072") > 700
    assert pages() < 70


def test_an_image_without_an_id_of_its_own_is_refused():
    dataset = own().remove_columns("image_id").add_column("image_id", [None, None])
    with pytest.raises(truegap.UserError, match="image_id is NoneType: give every image a text or a number of its own"):
        truegap.perturbed(dataset, "color-weak")[0]


def test_images_that_are_not_decoded_yet(built):
    from datasets import Image as ImageColumn

    raw = load(built, "original").cast_column("image", ImageColumn(decode=False))
    stored = load(built, "lighting-strong")
    row = truegap.perturbed(raw, "lighting-strong")[1]
    np.testing.assert_array_equal(np.asarray(row["image"]), np.asarray(stored[1]["image"]))


def test_images_that_lie_in_files(tmp_path):
    from datasets import Dataset
    from datasets import Image as ImageColumn

    # given rows that say where their pictures are
    picture = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    Image.fromarray(picture).save(tmp_path / "a.png")
    rows = {"image": [str(tmp_path / "a.png")] * 2, "image_id": ["a", "b"]}
    dataset = Dataset.from_dict(rows).cast_column("image", ImageColumn())
    live = truegap.perturbed(dataset, "control")
    # when they are read one by one and as a batch
    batch = live[:2]["image"]
    # then they are the pictures
    for image in (live[0]["image"], *batch):
        np.testing.assert_array_equal(np.asarray(image), picture)
    # and one that is gone is named
    (tmp_path / "a.png").unlink()
    with pytest.raises(truegap.UserError, match=r"image 'a': .*a\.png cannot be read"):
        live[0]
