"""Without correlation a feature must tell nothing of the label: Acc_b of the benchmark at rho 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path

from truegap.hub.benchmark import open_benchmark
from truegap.instrument.evidence import Evidence
from truegap.instrument.records import Line, Row
from truegap.spurious import STANDARD, AccuracyRecord, Conventions, Reader, measure, read_spurious, wilson
from truegap.spurious.records import FILE
from truegap.spurious.views import WHOLE

BACKBONE, SIDE = "test_resnet", 160
"""Random weights: nothing is downloaded; at this side they still tell colors, textures and figures apart."""
VERDICT = 0.999
"""Confidence of the verdict: of four intervals of 95 % one would leave out 50 % by chance in every fifth check."""
LEAST = 50
"""Images of a gender: with fewer, even a classifier that reads the person is not told from a blind one."""
_CHANCE = 0.5

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


def look(benchmark: Path, folder: Path, progress: Progress) -> None:
    """Measures Acc_b of the benchmark, unless that is done; not where torch or timm is absent, or images are few.

    Args:
        benchmark: Its folder, without correlations.
        folder: Where the result goes.
        progress: What shows progress.
    """
    opened = open_benchmark(str(benchmark), ["original"])
    there = opened.manifest.splits["test"]
    if (folder / FILE).exists() or not _installed() or min(there.woman, there.man) < LEAST:
        return
    from truegap.models import EmbeddingCache
    from truegap.models.backbones import load_backbone

    with EmbeddingCache(folder.with_name(f"{folder.name}.sqlite")) as cache:
        network = load_backbone(BACKBONE, pretrained=False, side=SIDE, device="cpu")
        measure(
            opened,
            Reader(BACKBONE, network, cache),
            Conventions(features=(*STANDARD, WHOLE)),
            folder=folder,
            progress=progress,
            command=["truegap", "check-instrument"],
        )


def seen(folder: Path) -> list[AccuracyRecord]:
    """What `look` found; nothing where it could not measure."""
    return read_spurious(folder).accuracies if (folder / FILE).exists() else []


def nothing(evidence: Evidence) -> Line:
    """Acc_b of every feature is 50 % where nothing was planted, by a classifier that is not blind."""
    rows = _rows(evidence.accuracies)
    off = [each.feature for each in evidence.accuracies if not _as_it_must(each)]
    told = ", ".join(
        f"{100 * each.accuracy:.0f} % ({each.feature})" for each in evidence.accuracies if each.accuracy is not None
    )
    lacking = f"fewer than {LEAST} images of a gender" if _installed() else "install truegap[models]"
    return Line(
        key="accuracy",
        claim="At rho 0 no feature tells the label: Acc_b is 50 %. The whole picture, read alike, tells it.",
        tolerance=f"50 % in Wilson's interval of {VERDICT:.1%} for each feature, and below that for the whole picture",
        holds=not off if evidence.accuracies else None,
        found=f"Acc_b is {told}." if evidence.accuracies else f"Not measured: {lacking}.",
        rows=rows,
    )


def _rows(found: Sequence[AccuracyRecord]) -> list[Row]:
    rows: list[Row] = []
    for each in found:
        row: Row = {"feature": each.feature, "classifier": each.classifier, "accuracy": each.accuracy}
        row |= {"low": each.ci_low, "high": each.ci_high, "images": each.images}
        rows.append(row | {"as_it_must": "yes" if _as_it_must(each) else "no"})
    return rows or [{"feature": feature, "accuracy": None} for feature in (*STANDARD, WHOLE)]


def _as_it_must(found: AccuracyRecord) -> bool:
    if found.accuracy is None or found.images is None:
        return False
    low, high = wilson(found.accuracy, found.images, VERDICT)
    return low > _CHANCE if found.feature == WHOLE else low <= _CHANCE <= high


def _installed() -> bool:
    return all(find_spec(name) is not None for name in ("torch", "timm"))
