"""How well decoding hides behind forward passes: decoding alone, forward alone, and the whole of `embed_images`.

    python benchmarks/embed.py [--model SPEC] [--device D] [--images N] [--workers N] [--threads N]

Without `--model` it makes a CLIP with a ViT-S/32 image tower and random weights. The whole includes hashing the bytes
and writing an empty cache. The ratio is whole / max(decoding, forward): 1.0 is perfect overlap. On a CPU, decoding and
forward passes can only overlap on different cores, so that `--workers` and `--threads` together should not exceed them.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageFilter

from truegap.models import DualEncoder, EmbeddingCache, load_dual_encoder
from truegap.models._images import decode


def photographs(count: int) -> list[tuple[str, bytes]]:
    """JPEG files of 640 x 480 with the detail of photographs (about 60 kB)."""
    random = np.random.default_rng(0)
    items = []
    for _ in range(count):
        coarse = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8)).resize((640, 480))
        grain = Image.fromarray(random.integers(0, 256, (480, 640, 3), dtype=np.uint8))
        picture = Image.blend(coarse, grain.filter(ImageFilter.GaussianBlur(1)), 0.3)
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=90)
        items.append((hashlib.sha256(buffer.getvalue()).hexdigest(), buffer.getvalue()))
    return items


def small_clip(folder: Path) -> str:
    """The spec of a CLIP with random weights, saved in open_clip's format."""
    import open_clip
    from open_clip.push_to_hf_hub import save_config_for_hf
    from safetensors.torch import save_file

    config = {
        "embed_dim": 384,
        "vision_cfg": {"image_size": 224, "layers": 12, "width": 384, "patch_size": 32},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 1},
    }
    (folder / "vit-small.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder / "vit-small.json")
    model = open_clip.create_model("vit-small")
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    save_config_for_hf(model, folder / "open_clip_config.json", config)
    return f"local-dir:{folder}"


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def measure(encoder: DualEncoder, items: list[tuple[str, bytes]], batch: int, workers: int) -> dict[str, float]:
    """Seconds of each part, once; the forward passes get inputs that are ready, and `again` finds all in the cache."""

    def prepare(item: tuple[str, bytes]) -> Any:
        return encoder.preprocess(decode(item[1]))

    with ThreadPoolExecutor(workers) as pool:
        decoding = seconds(lambda: [None for _ in pool.map(prepare, items)])
    ready = [prepare(item) for item in items[:batch]]
    full, rest = divmod(len(items), batch)
    sizes = [batch] * full + [rest] * bool(rest)
    forward = seconds(lambda: [encoder.encode_preprocessed(ready[:size]) for size in sizes])
    with tempfile.TemporaryDirectory() as folder, EmbeddingCache(Path(folder) / "embeddings.sqlite") as cache:
        whole = seconds(lambda: cache.embed_images(encoder, items, batch_size=batch, workers=workers))
        again = seconds(lambda: cache.embed_images(encoder, items, batch_size=batch, workers=workers))
    return {"decoding": decoding, "forward": forward, "whole": whole, "again": again}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="any model spec; by default a small CLIP with random weights")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=1, help="threads that decode")
    parser.add_argument("--threads", type=int, default=1, help="threads of a forward pass on the CPU")
    parser.add_argument("--repeats", type=int, default=5, help="the best counts: other programs only slow one down")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    items = photographs(options.images)
    with tempfile.TemporaryDirectory() as folder:
        spec = options.model or small_clip(Path(folder))
        encoder = load_dual_encoder(spec, device=options.device, dtype=options.dtype)
        encoder.encode_images([decode(items[0][1])] * options.batch_size)  # warm up
        runs = [measure(encoder, items, options.batch_size, options.workers) for _ in range(options.repeats)]
    print(
        f"{options.images} JPEG files of {sum(len(data) for _, data in items) // options.images // 1000} kB, "
        f"{encoder.record().parameters / 1e6:.1f} M parameters on {options.device}, {options.workers} decoding and "
        f"{options.threads} forward threads; best of {options.repeats} runs"
    )
    best = {name: min(run[name] for run in runs) for name in runs[0]}
    for name, time_taken in best.items():
        print(f"{name:9s} {time_taken:8.3f} s {options.images / time_taken:10.1f} images/s")
    print(f"ratio     {best['whole'] / max(best['decoding'], best['forward']):8.3f}")


if __name__ == "__main__":
    main()
