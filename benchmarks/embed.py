"""How well decoding hides behind forward passes: a dual encoder's whole evaluation against the larger of the two.

    python benchmarks/embed.py [--size small|base] [--images N] [--rounds N] [--model SPEC] [--device D] [--workers N]
                               [--threads N]

Several things in turn, in one process, several rounds: decoding and preprocessing every image; forward passes of the
images alone, on inputs that are ready; those of the prompts; and a whole run of the retrieval protocol on a built
benchmark of the same images, with an empty cache: parquet read, hashes checked, images embedded and stored, prompts
embedded, answers and scores with 1,000 resamples, pictures and records written. The ratio is evaluation /
max(decoding, forward), round by round, where prompts count as overhead, and once more with them among the forward
passes: 1.0 is perfect overlap. Both are given for processor time too, where the evaluation counts with its main thread
and the one that scores, without those that decode: other work on the machine disturbs it less, and it is what the
forward passes have to wait for. `again` is the same run with every image's embedding known. Last stands where the
evaluation's time goes.

The model is a CLIP with random weights. `small`: forward passes take about as long as decoding, where overlap is
hardest, on as many images as COCO-gender has, since what a run adds to the embeddings hardly grows with them. `base`:
the shape of ViT-B/32, the smallest that people evaluate; its prompts take as long as some 160 images. On a CPU decoding
and forward passes can only overlap on different cores.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image, ImageFilter

from truegap.build import Plan, Workspace, build_shard
from truegap.build.images import decode
from truegap.engine import run_tasks
from truegap.hub.benchmark import Benchmark, open_benchmark
from truegap.models import DualEncoder, EmbeddingCache, load_dual_encoder
from truegap.models.cache import image_of
from truegap.protocols import retrieval, run
from truegap.protocols.retrieval import Retrieval
from truegap.results.answers import AnswersWriter
from truegap.schema import Example, FilterStep, ImageBytes, Selection

SIZE = (480, 640)
DIFFERENT = 64
PARTS = ("decoding", "forward", "prompts", "evaluation", "again")
SIZES: dict[str, dict[str, Any]] = {
    "small": {
        "embed_dim": 192,
        "vision_cfg": {"image_size": 224, "layers": 12, "width": 192, "head_width": 64, "patch_size": 32},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 1},
    },
    "base": {
        "embed_dim": 512,
        "vision_cfg": {"image_size": 224, "layers": 12, "width": 768, "head_width": 64, "patch_size": 32},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 512, "heads": 8, "layers": 12},
    },
}
IMAGES = {"small": 4724, "base": 1500}
Times = tuple[float, float]
"""Seconds on the clock, and of a processor."""


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


def random_clip(folder: Path, size: str) -> str:
    """The spec of a CLIP with random weights, saved in open_clip's format."""
    import open_clip
    from open_clip.push_to_hf_hub import save_config_for_hf
    from safetensors.torch import save_file

    (folder / f"random-{size}.json").write_text(json.dumps(SIZES[size]))
    open_clip.add_model_config(folder / f"random-{size}.json")
    model = open_clip.create_model(f"random-{size}")
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    save_config_for_hf(model, folder / "open_clip_config.json", SIZES[size])
    return f"local-dir:{folder}"


@contextmanager
def no_progress(_: str, __: int) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


def timed(work: Callable[[], Any], processor: Callable[[], float]) -> Times:
    start, used = time.perf_counter(), processor()
    work()
    return time.perf_counter() - start, processor() - used


@contextmanager
def watched(functions: Mapping[str, tuple[Any, str]]) -> Iterator[dict[str, Times]]:
    """Within it, what is spent inside of each function (an attribute of an object) adds up under its name."""
    spent = dict.fromkeys(functions, (0.0, 0.0))

    def watch(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            start, used = time.perf_counter(), time.thread_time()
            try:
                return function(*arguments, **options)
            finally:
                clock, processor = spent[name]
                spent[name] = clock + time.perf_counter() - start, processor + time.thread_time() - used

        return call

    with ExitStack() as stack:
        for name, (owner, attribute) in functions.items():
            stack.enter_context(patch.object(owner, attribute, watch(name, getattr(owner, attribute))))
        yield spent


def evaluate(benchmark: Benchmark, encoder: DualEncoder, folder: Path, batch: int) -> None:
    """A whole run; what the cache holds is not computed again."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    with EmbeddingCache(folder / "embeddings.sqlite") as cache:
        run.run_protocol(
            benchmark,
            encoder,
            Retrieval(),
            folder=folder / "run",
            configs=benchmark.manifest.configs,
            progress=no_progress,
            cache=cache,
            batch_size=batch,
        )


def evaluated(benchmark: Benchmark, encoder: DualEncoder, folder: Path, batch: int) -> tuple[Times, dict[str, Times]]:
    """A run's seconds, and what its parts take of them."""
    functions = {
        "images": (encoder, "encode_preprocessed"),
        "prompts": (encoder, "encode_texts"),
        "cache": (EmbeddingCache, "_store"),
        "answers": (AnswersWriter, "add"),
        "pictures": (run, "write_pictures"),
        "scores": (retrieval, "score"),
    }
    with watched(functions) as spent:
        clock, processor = timed(partial(evaluate, benchmark, encoder, folder, batch), time.thread_time)
    # Scores are made in a thread that waits for answers.
    scores = spent.pop("scores")[1]
    rest = clock - sum(part for part, _ in spent.values()), processor - sum(part for _, part in spent.values())
    spent |= {"waiting, rest": rest, "scores": (scores, scores)}
    return (clock, processor + scores), spent


def measure(
    benchmark: Benchmark, encoder: DualEncoder, batch: int, workers: int
) -> tuple[list[Times], dict[str, Times]]:
    """Seconds of each of `PARTS`, once, and where those of the evaluation go."""
    images = benchmark.images("original")
    sample = [images[place] for place in range(DIFFERENT)]
    count = len(images)

    def prepare(number: int) -> Any:
        place = number % DIFFERENT
        return encoder.preprocess(image_of(images.sha256[place], sample[place]))

    def decoding() -> None:
        with ThreadPoolExecutor(workers) as pool:
            for start in range(0, count, batch):
                list(pool.map(prepare, range(start, min(start + batch, count))))

    ready = list(map(prepare, range(batch)))
    texts = [text for _, _, text, _ in Retrieval().texts()]

    def forward() -> None:
        for start in range(0, count, batch):
            encoder.encode_preprocessed(ready[: count - start])

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone = [
            timed(decoding, time.process_time),
            timed(forward, time.thread_time),
            timed(partial(encoder.encode_texts, texts), time.thread_time),
        ]
        evaluation, spent = evaluated(benchmark, encoder, folder, batch)
        again, _ = evaluated(benchmark, encoder, folder, batch)
        return [*alone, evaluation, again], spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="small", help="of the CLIP with random weights")
    parser.add_argument("--model", help="any model spec instead")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--images", type=int, help=f"by default {IMAGES['small']}, or {IMAGES['base']} with base")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1, help="threads of decoding alone; a run takes one per core")
    parser.add_argument("--threads", type=int, default=1, help="threads of a forward pass on the CPU")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.images = options.images or IMAGES[options.size]
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = photographs(options.images)
        benchmark = built(files, folder / "benchmark")
        (folder / "model").mkdir()
        spec = options.model or random_clip(folder / "model", options.size)
        encoder = load_dual_encoder(spec, device=options.device, dtype=options.dtype)
        encoder.encode_images([Image.fromarray(decode(files[0]))] * options.batch_size)  # warm up
        measured = [measure(benchmark, encoder, options.batch_size, options.workers) for _ in range(options.rounds)]
    rounds = np.array([times for times, _ in measured])
    size = encoder.record().parameters or 0
    print(
        f"torch {version('torch')}, Pillow {version('pillow')}; {options.images} JPEG files of "
        f"{sum(map(len, files)) // len(files) // 1000} kB, {size / 1e6:.1f} M parameters on "
        f"{options.device}, {options.threads} forward threads; median of {options.rounds} rounds, in turn"
    )
    for part, (clock, processor) in zip(PARTS, np.median(rounds, 0), strict=True):
        print(f"{part:12s} {clock:8.2f} s {options.images / clock:8.1f} images/s   processor {processor:8.2f} s")
    decoding, forward, prompts, evaluation, _ = rounds.transpose(1, 0, 2)
    for said, passes in (("", forward), (", prompts among the forward passes", forward + prompts)):
        for name, ratio in zip(("clock", "processor"), (evaluation / np.maximum(decoding, passes)).T, strict=True):
            spread = f"target 1.15; {ratio.min():.3f} to {ratio.max():.3f}"
            print(f"ratio, {name:10s} {np.median(ratio):6.3f}   ({spread}{said})")
    print("of the evaluation")
    for part in measured[0][1]:
        clock, processor = np.median([spent[part] for _, spent in measured], 0)
        print(f"  {part:14s} {clock:8.2f} s   processor {processor:8.2f} s")


if __name__ == "__main__":
    main()
