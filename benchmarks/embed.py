"""How well decoding hides behind forward passes: a dual encoder's whole evaluation against the larger of the two.

    python benchmarks/embed.py [--images N] [--rounds N] [--model SPEC] [--device D] [--workers N] [--threads N]

Three things in turn, in one process, several rounds: decoding and preprocessing every image; forward passes alone, on
inputs that are ready; and a whole run of the retrieval protocol on a built benchmark of the same images, with an empty
cache: parquet read, hashes checked, images embedded and stored, prompts embedded, answers and scores with 1,000
resamples, pictures and records written. The ratio is evaluation / max(decoding, forward), round by round: 1.0 is
perfect overlap. The same is given for processor time, where the evaluation counts with its main thread alone: other
work on the machine disturbs it less, and it is what the forward passes have to wait for.

By default there are as many images as COCO-gender has, since what a run adds to the embeddings hardly grows with them,
and the model is a CLIP with random weights whose forward passes take about as long as decoding, where overlap is
hardest. On a CPU the two can only overlap on different cores.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageFilter

from truegap.build import Plan, Workspace, build_shard
from truegap.build.images import decode
from truegap.engine import run_tasks
from truegap.hub.benchmark import Benchmark, open_benchmark
from truegap.models import DualEncoder, EmbeddingCache, load_dual_encoder
from truegap.protocols.retrieval import Retrieval
from truegap.protocols.run import run_protocol
from truegap.schema import Example, FilterStep, ImageBytes, Selection

SIZE = (480, 640)
DIFFERENT = 64
PARTS = ("decoding", "forward", "evaluation", "again")


def photographs(count: int) -> list[bytes]:
    """JPEG files of 640 x 480 with the detail of photographs; after some, the same pictures in other bytes."""
    random = np.random.default_rng(0)
    files = []
    for _ in range(min(count, DIFFERENT)):
        coarse = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8)).resize(SIZE[::-1])
        grain = Image.fromarray(random.integers(0, 256, (*SIZE, 3), dtype=np.uint8))
        picture = Image.blend(coarse, grain.filter(ImageFilter.GaussianBlur(1)), 0.3)
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=90)
        files.append(buffer.getvalue())
    return [files[number % DIFFERENT] + number.to_bytes(4) for number in range(count)]


def built(files: Sequence[bytes], folder: Path) -> Benchmark:
    """A benchmark of these images, half of women."""
    examples = [
        Example(f"{number:06d}", ("woman", "man")[number % 2], ImageBytes(data), SIZE, ())
        for number, data in enumerate(files)
    ]
    plan = Plan("folder", "1.0.0", Selection(examples, [FilterStep("all", len(files), len(files))], []), ("original",))
    workspace = Workspace(plan, folder)
    with workspace.opened():
        for _ in run_tasks(build_shard, workspace.tasks(), workers=1):
            pass
        workspace.finish()
    return open_benchmark(str(folder))


def small_clip(folder: Path) -> str:
    """The spec of a CLIP with random weights, saved in open_clip's format."""
    import open_clip
    from open_clip.push_to_hf_hub import save_config_for_hf
    from safetensors.torch import save_file

    config = {
        "embed_dim": 192,
        "vision_cfg": {"image_size": 224, "layers": 12, "width": 192, "head_width": 64, "patch_size": 32},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 1},
    }
    (folder / "vit-small.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder / "vit-small.json")
    model = open_clip.create_model("vit-small")
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    save_config_for_hf(model, folder / "open_clip_config.json", config)
    return f"local-dir:{folder}"


@contextmanager
def no_progress(_: str, __: int) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


def timed(run: Callable[[], Any], processor: Callable[[], float]) -> tuple[float, float]:
    """Seconds on the clock, and of a processor."""
    start, used = time.perf_counter(), processor()
    run()
    return time.perf_counter() - start, processor() - used


def evaluate(benchmark: Benchmark, encoder: DualEncoder, folder: Path, batch: int) -> None:
    """A whole run with an empty cache."""
    with EmbeddingCache(folder / "embeddings.sqlite") as cache:
        run_protocol(
            benchmark,
            encoder,
            Retrieval(),
            folder=folder / "run",
            configs=benchmark.manifest.configs,
            progress=no_progress,
            cache=cache,
            batch_size=batch,
        )


def measure(benchmark: Benchmark, encoder: DualEncoder, batch: int, workers: int) -> list[tuple[float, float]]:
    """Seconds of each of `PARTS`, once, on the clock and of the processor."""
    images = benchmark.images("original")
    sample = [images[place] for place in range(DIFFERENT)]
    count = len(images)

    def prepare(number: int) -> Any:
        return encoder.preprocess(Image.fromarray(decode(sample[number % DIFFERENT])))

    def decoding() -> None:
        with ThreadPoolExecutor(workers) as pool:
            for start in range(0, count, batch):
                list(pool.map(prepare, range(start, min(start + batch, count))))

    ready = list(map(prepare, range(batch)))

    def forward() -> None:
        for start in range(0, count, batch):
            encoder.encode_preprocessed(ready[: count - start])

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = [
            timed(decoding, time.process_time),
            timed(forward, time.thread_time),
            timed(partial(evaluate, benchmark, encoder, folder, batch), time.thread_time),
        ]
        shutil.rmtree(folder / "run")
        return [*found, timed(partial(evaluate, benchmark, encoder, folder, batch), time.thread_time)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="any model spec; by default a small CLIP with random weights")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--images", type=int, default=4724)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1, help="threads of decoding alone; a run takes one per core")
    parser.add_argument("--threads", type=int, default=1, help="threads of a forward pass on the CPU")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = photographs(options.images)
        benchmark = built(files, folder / "benchmark")
        (folder / "model").mkdir()
        spec = options.model or small_clip(folder / "model")
        encoder = load_dual_encoder(spec, device=options.device, dtype=options.dtype)
        encoder.encode_images([Image.fromarray(decode(files[0]))] * options.batch_size)  # warm up
        rounds = np.array(
            [measure(benchmark, encoder, options.batch_size, options.workers) for _ in range(options.rounds)]
        )
    size = encoder.record().parameters or 0
    print(
        f"torch {version('torch')}, Pillow {version('pillow')}; {options.images} JPEG files of "
        f"{sum(map(len, files)) // len(files) // 1000} kB, {size / 1e6:.1f} M parameters on "
        f"{options.device}, {options.threads} forward threads; median of {options.rounds} rounds, in turn"
    )
    for part, (clock, processor) in zip(PARTS, np.median(rounds, 0), strict=True):
        print(f"{part:12s} {clock:8.2f} s {options.images / clock:8.1f} images/s   processor {processor:8.2f} s")
    larger = rounds[:, :2].max(1)
    for name, ratio in zip(("clock", "processor"), (rounds[:, 2] / larger).T, strict=True):
        print(f"ratio, {name:10s} {np.median(ratio):6.3f}   (target 1.15; {ratio.min():.3f} to {ratio.max():.3f})")


if __name__ == "__main__":
    main()
