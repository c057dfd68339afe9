"""Acc_b where it is known: python benchmarks/spurious.py [--images N] [--backbone NAME] [--training MODE].

A feature planted at strength rho has the value typical of the label with probability (1 + rho) / 2: no classifier of
that feature alone can be right more often in the long run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from truegap.build import Plan, Workspace, build_shard
from truegap.hub.benchmark import open_benchmark
from truegap.models import EmbeddingCache
from truegap.models.backbones import load_backbone
from truegap.models.classifier import Training, fit, linear
from truegap.spurious import STANDARD, Conventions, Reader, SpuriousRecord, balanced_split, measure, read_spurious
from truegap.spurious.statistics import chance_p, effective_images, wilson
from truegap.spurious.views import WHOLE
from truegap.synthetic import selection


@contextmanager
def quiet(_what: str, _total: int) -> Iterator[object]:
    """No progress."""
    yield lambda _steps: None


def built(folder: Path, images: int, rho: dict[str, float]) -> str:
    workspace = Workspace(Plan("synthetic", "1.0.0", selection(images, rho=rho), ("original",)), folder)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return str(folder)


def measured(benchmark: str, out: Path, features: tuple[str, ...], options: argparse.Namespace) -> SpuriousRecord:
    with EmbeddingCache() as cache:
        backbone = load_backbone(options.backbone, pretrained=False, side=options.side, device=options.device)
        reader = Reader(options.backbone, backbone, cache, finetuned=options.training == "finetuned")
        conventions = Conventions(features=features, seeds=options.seeds)
        folder, _ = measure(open_benchmark(benchmark), reader, conventions, folder=out, progress=quiet)
    return read_spurious(folder)


def show(planted: str, rho: float, found: SpuriousRecord, seconds: float) -> None:
    for each in found.accuracies:
        assert each.accuracy is not None
        assert each.ci_low is not None
        assert each.ci_high is not None
        possible = 100.0 if each.feature == WHOLE else 50 + 50 * rho
        print(
            f"{planted:<11}{rho:>4}  {each.feature:<11}{possible:>9.1f}{100 * each.accuracy:>8.1f}"
            f"{100 * (each.sd or 0):>6.1f}   [{100 * each.ci_low:4.1f}, {100 * each.ci_high:5.1f}]"
            f"{seconds / len(found.accuracies):>8.1f} s",
            flush=True,
        )


def calibration(worlds: int, images: int = 200, width: int = 16) -> None:
    """Features that know nothing of gender: how often does the interval hold 50 %, and the test raise an alarm?"""
    training = Training(epochs=60, patience=10, learning_rate=3e-3, weight_decay=0.05, batch_size=64)
    ids, genders = [str(n) for n in range(images)], ["woman", "man"] * (images // 2)
    labels = np.array([0, 1] * (images // 2))
    means, held, alarms = [], 0, 0
    for world in range(worlds):
        noise = np.random.default_rng(world).standard_normal((images, width)).astype(np.float32)
        splits = [balanced_split(ids, genders, benchmark=str(world), seed=seed) for seed in range(5)]
        fits = [
            fit(
                lambda: linear(width),
                noise,
                labels,
                (split.train, split.validation, split.test),
                training,
                seed=seed,
                device=torch.device("cpu"),
            )
            for seed, split in enumerate(splits)
        ]
        accuracy = float(np.mean([each.correct.mean() for each in fits]))
        n = effective_images([split.test for split in splits])
        low, high = wilson(accuracy, n)
        means.append(accuracy)
        held += low <= 0.5 <= high
        alarms += chance_p(accuracy, n) < 0.05
    print(
        f"\n{worlds} worlds of {images} images whose features are noise: mean Acc_b {100 * np.mean(means):.1f} %, "
        f"the 95 % interval holds 50 % in {100 * held / worlds:.1f} %, alarms at level 0.05: "
        f"{100 * alarms / worlds:.1f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--backbone", default="test_resnet")
    parser.add_argument("--side", type=int, default=160)
    parser.add_argument("--training", default="frozen")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--worlds", type=int, default=150)
    parser.add_argument("--only", default="", help="such as none-0.0, background-0.9 or calibration")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(
        f"{options.images} images, {options.backbone} ({options.training}, random weights, side {options.side}), "
        f"{options.seeds} seeds; seconds of processor time per feature, without building\n"
        "planted     rho  measured    possible   Acc_b    sd   95 % interval"
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["TRUEGAP_CACHE"] = str(folder / "cache")
        for planted, rho in [("none", 0.0), *((feature, rho) for feature in STANDARD for rho in (0.5, 0.9))]:
            if options.only not in {"", f"{planted}-{rho}"}:
                continue
            strengths = {each: rho if each == planted else 0.0 for each in STANDARD}
            benchmark = built(folder / f"{planted}-{rho}", options.images, strengths)
            features = (planted,) if rho else (*STANDARD, WHOLE)
            begun = time.process_time()
            found = measured(benchmark, folder / f"{planted}-{rho}-out", features, options)
            show(planted, rho, found, time.process_time() - begun)
    if options.only in {"", "calibration"}:
        calibration(options.worlds)


if __name__ == "__main__":
    main()
