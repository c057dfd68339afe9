"""All fifteen configs against decoding each source once and encoding the same outputs, in one run, in turn.

    python benchmarks/build.py [COCO_FOLDER] [--images N] [--rounds R] [--memory N N ...]

With a folder it takes COCO-gender's photographs and annotated masks from it, each several times under other ids until
there are N; without one, photographs that scikit-image ships, with drawn masks, and synthetic pictures. What is
timed of the build is all of it but reading annotations: images decoded, perturbed, encoded, hashed, written as parquet,
manifest and card; of the other side, Pillow's decoder and encoder with arrays of three channels between them.
Then: where the time goes; peak memory of builds of so many synthetic images, each in a process of its own, and the same
command on the finished build (`--memory 2500 10000` for the size of a benchmark: some minutes); two workers against
one. Without options it takes two minutes.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import cycle, islice
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from truegap.build import Plan, Workspace, build_shard, mended, plan, read_manifest
from truegap.build.images import Encoder, decode
from truegap.engine import run_tasks
from truegap.regions import masks
from truegap.schema import CONFIGS, Example, FilterStep, ImageBytes, Region, Selection
from truegap.synthetic.selection import selection as synthetic

SIZE = (480, 640)
OBJECTS = 10

STEPS = {
    "decode": ("images.py", "opened"),
    "to an array": ("pictures.py", "pixels_of"),
    "masks": ("rows.py", "regions_of"),
    "draw": ("draws.py", "draw_config"),
    "HSV": ("hsv.py", "to_hsv"),
    "shift and back": ("hsv.py", "from_hsv"),
    "blur and paste": ("background.py", "blur_background"),
    "objects": ("objects.py", "black_out"),
    "encode": ("images.py", "encode"),
    "hash images": ("~", "<built-in method _hashlib.openssl_sha256>"),
    "hash rows": ("rows.py", "hash_written"),
    "write parquet": ("shard.py", "flush"),
    "card and manifest": ("workspace.py", "finish"),
}
"""Functions whose time, with all they call, makes up a step; none calls another."""


def photographs() -> list[np.ndarray]:
    from skimage import data

    return [cv2.resize(image, SIZE[::-1]) for image in (data.astronaut(), data.coffee(), data.chelsea())]


def drawn_example(number: int, photograph: np.ndarray) -> Example:
    """A photograph as a JPEG file, an elliptic person, ten boxes."""
    height, width = SIZE
    person = np.zeros(SIZE, np.uint8)
    cv2.ellipse(person, (width // 2, height // 2), (width // 6, height // 3), 0, 0, 360, 1, -1)
    objects = [Region(i + 2, "object", (i * width / 10, height / 3, width / 12, height / 4)) for i in range(OBJECTS)]
    stream = BytesIO()
    Image.fromarray(photograph).save(stream, "JPEG", quality=90)
    region = Region(1, "person", (width / 3, height / 6, width / 3, 2 * height / 3), masks.encode(person))
    return Example(str(number), "woman", ImageBytes(stream.getvalue()), SIZE, (region,), tuple(objects))


def examples(folder: Path | None, count: int) -> list[Example]:
    """So many, alternately women and men."""
    if folder is None:
        drawn = [drawn_example(number, photograph) for number, photograph in enumerate(photographs())]
        pictures = synthetic(len(drawn), size=SIZE[0]).examples
        found = [*drawn, *(replace(each, image=ImageBytes(each.image.read()), extra={}) for each in pictures)]
    else:
        from truegap.sources import read

        found = [replace(e, image=ImageBytes(e.image.read())) for e in read("coco-gender", folder).examples]
    print(f"{len(found)} different images, {np.mean([np.prod(e.size) for e in found]) / 1e6:.2f} megapixels on average")
    return [
        replace(each, image_id=f"{number:06d}", gender=("woman", "man")[number % 2])
        for number, each in enumerate(islice(cycle(found), count))
    ]


def planned(chosen: list[Example]) -> Plan:
    return Plan("coco-gender", "1.0.0", Selection(chosen, [FilterStep("benchmark", 0, 0)], []))


def build(made: Plan, out: Path, workers: int = 1) -> None:
    workspace = Workspace(made, out)
    with workspace.opened():
        for _ in run_tasks(build_shard, workspace.tasks(), workers=workers):
            pass
        workspace.finish()


def seconds(call: Callable[[], object]) -> float:
    return timed(call)[0]


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock, and seconds of this process, which other work on the machine disturbs less."""
    started, used = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - started, time.process_time() - used


def batches(chosen: list[Example], lossless: Path) -> Iterator[tuple[list[Example], list[list[np.ndarray]]]]:
    """Some images at a time with the pixels of every config but `original`, from a build in PNG."""
    import pyarrow.parquet as pq

    files = [pq.ParquetFile(next((lossless / "data" / config).iterdir())) for config in CONFIGS if config != "original"]
    start = 0
    for group in range(files[0].num_row_groups):
        columns = [file.read_row_group(group, ["image"])["image"].to_pylist() for file in files]
        pictures = [[decode(image["bytes"]) for image in images] for images in zip(*columns, strict=True)]
        yield chosen[start : start + len(pictures)], pictures
        start += len(pictures)


def codec_only(chosen: list[Example], pictures: list[list[np.ndarray]]) -> None:
    encoder = Encoder()
    for example, changed in zip(chosen, pictures, strict=True):
        decode(example.image.read())
        for picture in changed:
            encoder.encode(picture)


def against_the_codec(made: Plan, rounds: int, folder: Path) -> None:
    chosen = list(made.selection.examples)
    build(replace(made, encoder=Encoder("png")), folder / "png")
    times = np.zeros((rounds, 3, 2))
    number_different = 0
    for each in times:
        each[0] = timed(lambda: build(made, folder / "build"))
        shutil.rmtree(folder / "build")
        number_different = 0
        for some, pictures in batches(chosen, folder / "png"):
            different = [list({picture.tobytes(): picture for picture in changed}.values()) for changed in pictures]
            number_different += sum(map(len, different))
            each[1] += timed(lambda: codec_only(some, pictures))  # noqa: B023
            each[2] += timed(lambda: codec_only(some, different))  # noqa: B023
    number = len(chosen)
    ours, codec, fewer = 1e3 * np.median(times, 0)[:, 0] / number
    ratios = [times[:, 0] / times[:, other] for other in (1, 2)]
    ratio, strict = np.median(ratios, 1)
    print(
        f"\nall {len(CONFIGS)} configs of {number} images on one core, milliseconds per image, "
        f"median of {rounds} rounds"
    )
    print(f"{'decode once, encode the same outputs':<50}{codec:>8.1f}")
    print(f"{'build':<50}{ours:>8.1f}   ratio {ratio[0]:.2f}, of processor time {ratio[1]:.2f} (target 1.35)")
    print(f"{'':<50}{'':>8}   by round {' '.join(f'{clock:.2f}' for clock, _ in ratios[0])}")
    print(
        f"{f'decode once, encode the {number_different / number:.1f} different outputs':<50}{fewer:>8.1f}   "
        f"ratio {strict[0]:.2f}, of processor time {strict[1]:.2f}"
    )


def where_time_goes(made: Plan, out: Path) -> None:
    profile = cProfile.Profile()
    profile.runcall(build, made, out)
    shutil.rmtree(out)
    stats = pstats.Stats(profile)
    total, known = stats.total_tt, 0.0  # type: ignore[attr-defined]
    each = 1e3 * total / len(made.selection.examples)
    print(f"\nwhere the time goes, as a share of {each:.1f} milliseconds per image, the profiler's own among them")
    for step, (file, function) in STEPS.items():
        spent = sum(
            row[3]
            for (path, _, name), row in stats.stats.items()  # type: ignore[attr-defined]
            if name == function and Path(path).name == file
        )
        known += spent
        print(f"  {step:<20}{100 * spent / total:>6.1f} %")
    print(f"  {'everything else':<20}{100 * (total - known) / total:>6.1f} %")


def peak_memory(number: int, folder: Path) -> dict[str, float]:
    """Builds so many synthetic images in a process of its own; seconds and megabytes."""
    done = subprocess.run(
        [sys.executable, __file__, "--only-build", str(number), "--folder", str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def peak_megabytes() -> float:
    """Of this process; what `getrusage` says on Linux begins with the peak of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # macOS counts bytes


def only_build(number: int, folder: Path) -> None:
    """What the process does: build, then the same command again."""
    # Small shards, so that even a short build has several.
    plan.SHARD_SIZE = min(plan.SHARD_SIZE, number // 4)
    out = folder / str(number)

    def command() -> None:
        made = Plan("synthetic", "1.0.0", synthetic(number))
        if Workspace(made, out).finished:
            mended(made, read_manifest(out))
        else:
            build(made, out)

    built = seconds(command)
    peak = peak_megabytes()
    again = seconds(command)
    shutil.rmtree(out)
    print(json.dumps({"seconds": built, "megabytes": peak, "again": again}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("coco", type=Path, nargs="?")
    parser.add_argument("--images", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, nargs="*", default=[64, 256], metavar="N")
    parser.add_argument("--only-build", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    if options.only_build:
        only_build(options.only_build, options.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = planned(examples(options.coco, options.images))
        against_the_codec(made, options.rounds, folder)
        where_time_goes(made, folder / "build")
        if options.memory:
            memory_and_resume(options.memory, folder)
        workers(made, folder)


def memory_and_resume(numbers: list[int], folder: Path) -> None:
    print("\nsynthetic images, a process each, one worker")
    print(f"{'images':>8}{'peak MB':>10}{'build s':>10}{'again s':>10}   share of the build")
    for count in numbers:
        row = peak_memory(count, folder)
        share = row["again"] / row["seconds"]
        print(
            f"{count:>8}{row['megabytes']:>10.0f}{row['seconds']:>10.1f}{row['again']:>10.3f}"
            f"   {share:.2%} (target 2 %)",
            flush=True,
        )


def workers(made: Plan, folder: Path) -> None:
    """Four times the images, in shards of half a batch: what two workers gain must pay for their start."""
    plan.SHARD_SIZE = max(len(made.selection.examples) // 4, 1)
    chosen = [
        replace(each, image_id=f"{copy}-{each.image_id}") for copy in range(4) for each in made.selection.examples
    ]
    alone, together = (seconds(partial(build, planned(chosen), folder / f"{n}", n)) for n in (1, 2))
    print(
        f"\n{len(chosen)} images: one worker {alone:.1f} s, two with their start {together:.1f} s: "
        f"{alone / together:.2f} x"
    )


if __name__ == "__main__":
    main()
