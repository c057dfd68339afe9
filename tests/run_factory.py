"""Runs as an evaluation writes them, with numbers of a realistic size, for tests of what reads runs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from truegap.protocols.contrasts import contrasts
from truegap.results.records import (
    BenchmarkRecord,
    ChangeRecord,
    Compute,
    ContextRecord,
    ContrastRecord,
    Environment,
    ModelRecord,
    RunRecord,
    ScoreRecord,
    ScoresRecord,
    Summary,
)
from truegap.results.runs import Run, write_run
from truegap.schema import CONFIGS, EXTRA_CONFIGS, Feature, Strength

MAIN = "max_skew@100"
QUIET = {"control": 0.9, "control-hsv": 1.4, "color": 1.6, "lighting": 1.8, "object": 1.2, "background": 1.5}
BACKGROUND_READER = QUIET | {"background": 38.0, "object": 6.5}
HOSTILE = "<script>alert(1)</script>|[x](javascript:alert(1))`\n# www.evil.example <img src=x onerror=alert(2)>"


def content(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def changes_of(deltas: dict[str, float], original: float, *, spread: float = 0.25) -> list[ChangeRecord]:
    """One change per perturbed config: strengths scale the feature's delta, controls have their own.

    The configs on request are those that `deltas` names.
    """
    changes = []
    for config in (*CONFIGS[1:], *(each for each in EXTRA_CONFIGS if each in deltas)):
        feature, _, strength = config.partition("-")
        share = {"weak": 0.35, "middle": 0.7, "strong": 1.0}.get(strength, 1.0)
        delta = deltas[config] if config in deltas else deltas[feature] * share
        moved = -original * delta / 100
        changes.append(
            ChangeRecord(
                metric=MAIN,
                config=config,
                original=original,
                perturbed=original + moved,
                delta=delta,
                delta_low=max(delta * (1 - spread) - 0.5, 0.0),
                delta_high=delta * (1 + spread) + 0.5,
                signed_change=moved,
                signed_low=moved * (1 + spread) - 0.004,
                signed_high=moved * (1 - spread) + 0.004,
                abs_change=abs(moved),
            )
        )
    return changes


def contrasts_of(changes: list[ChangeRecord], original: float, *, spread: float = 0.25) -> list[ContrastRecord]:
    """The pairs that an evaluation compares, with intervals about as wide as those of the changes."""
    by_config = {each.config: each for each in changes}
    made = []
    for config, against in contrasts(by_config):
        change, other = by_config[config], by_config[against]
        beyond, width = change.delta - other.delta, spread * change.delta + 0.5
        difference, wide = change.signed_change - other.signed_change, original * width / 100
        made.append(
            ContrastRecord(
                metric=MAIN,
                config=config,
                against=against,
                difference=difference,
                difference_low=difference - wide,
                difference_high=difference + wide,
                p_value=0.002 if abs(difference) > wide else 0.4,
                delta_beyond=beyond,
                delta_beyond_low=beyond - width,
                delta_beyond_high=beyond + width,
            )
        )
    return made


def context_of(gap: float, share: float) -> ContextRecord:
    """What is left of the bias with the person removed."""
    return ContextRecord(
        metric=MAIN,
        gap=gap,
        gap_low=gap - 0.04,
        gap_high=gap + 0.04,
        share=share,
        share_low=share - 0.1,
        share_high=share + 0.1,
    )


def scores_record(
    run_id: str,
    *,
    bias: float = 0.31,
    width: float = 0.035,
    null: float | None = 0.094,
    deltas: dict[str, float] = BACKGROUND_READER,
) -> ScoresRecord:
    changes = changes_of(deltas, bias)
    by_config = {each.config: each.delta for each in changes}

    def mean(feature: Feature) -> float:
        return sum(by_config[f"{feature}-{strength}"] or 0.0 for strength in Strength) / 3

    features = {feature.value: mean(feature) for feature in Feature}
    average = sum(features.values()) / 4
    counts = {"queries": 184, "draws": 5, "images_woman": 520, "images_man": 560, "ranked_woman": 520, "ties": 3}
    scores = [
        ScoreRecord(
            metric=metric,
            config="original",
            scope=scope,
            value=value,
            sd=0.08,
            ci_low=value - width,
            ci_high=value + width,
            null=null if metric == MAIN else None,
            counts=counts,
        )
        for scope in ("all", "adjectives-r1", "occupations-r1")
        for metric, value in ((MAIN, bias), ("bias@100", 0.12), ("skew_woman@100", -0.14), ("skew_man@100", 0.11))
    ]
    scores.append(ScoreRecord(metric="ndkl", config="original", value=0.021, counts=counts))
    return ScoresRecord(
        run_id=run_id,
        options={"k": [100], "draws": 5},
        summary=Summary(
            metric=MAIN,
            bias=bias,
            bias_low=bias - width,
            bias_high=bias + width,
            null=null,
            mean_delta=average,
            mean_delta_low=average * 0.8,
            mean_delta_high=average * 1.2,
            feature_delta=features,
            floor=by_config["control"],
            floor_hsv=by_config["control-hsv"],
        ),
        scores=scores,
        changes=changes,
        contrasts=contrasts_of(changes, bias),
    )


def run_record(name: str = "background-reader", *, benchmark: str = "synthetic", **changes: Any) -> RunRecord:
    record = RunRecord(
        run_id=content(f"{name} {benchmark}")[:16],
        created="2025-11-20T10:15:00+00:00",
        protocol="retrieval",
        command=["truegap", "evaluate", "--model", name, "--benchmark", benchmark],
        options={
            "prompts": {"adjectives-r1": 87, "occupations-r1": 97},
            "k": [100],
            "draws": 5,
            "seed": 0,
            "limit": None,
        },
        configs=list(CONFIGS),
        benchmark=BenchmarkRecord(
            spec=benchmark, name=benchmark, version="1.0.0", content=content(benchmark), women=520, men=560
        ),
        model=ModelRecord(
            spec=f"./models/{name}",
            name=name,
            adapter="transformers",
            kind="dual-encoder",
            content=content(name),
            parameters=151_277_313,
        ),
        environment=Environment(
            truegap="0.1.0",
            python="3.11.9",
            platform="Linux x86_64",
            packages={"numpy": "2.4.0", "torch": "2.15.0"},
            commit="0123456789abcdef0123456789abcdef01234567",
            dirty=False,
        ),
        compute=Compute(device="cuda:0", device_name="NVIDIA H200", dtype="float32"),
        statistics={"seconds": 41.0, "images": 1080, "cached": 80, "computed": 1000},
        notes=["each of 5 balanced draws ranks 520 women and 520 men of 520 and 560"],
    )
    return record.model_copy(update=changes)


def make_run(folder: Path, name: str = "background-reader", *, benchmark: str = "synthetic", **scores: Any) -> Run:
    """A run in `folder`, without answers."""
    record = run_record(name, benchmark=benchmark)
    found = scores_record(record.run_id, **scores)
    write_run(folder, record, found)
    return Run(record, found, folder)


def make_pictures(folder: Path) -> None:
    """The example pictures that an evaluation writes: a figure before a pattern, plain shapes of our own."""
    from PIL import Image, ImageDraw, ImageFilter

    image = Image.new("RGB", (320, 400), (96, 128, 150))
    draw = ImageDraw.Draw(image)
    for step in range(0, 400, 25):
        draw.line((0, step, 320, step + 60), fill=(200, 170 - step // 4, 90 + step // 4), width=8)
    person = Image.new("L", image.size, 0)
    shape = ImageDraw.Draw(person)
    shape.ellipse((115, 80, 205, 180), fill=255)
    shape.rounded_rectangle((85, 185, 235, 400), 40, fill=255)
    image.paste((222, 186, 160), mask=person)
    draw.rectangle((20, 290, 80, 380), fill=(60, 150, 70))
    folder.mkdir(parents=True, exist_ok=True)
    blurred = image.filter(ImageFilter.GaussianBlur(20))
    blurred.paste(image, mask=person)
    without = image.copy()
    ImageDraw.Draw(without).rectangle((20, 290, 80, 380), fill=(0, 0, 0))
    hue, saturation, value = image.convert("HSV").split()
    shifted = Image.merge("HSV", (hue.point(lambda level: (level + 28) % 256), saturation, value)).convert("RGB")
    darker = image.point(lambda level: max(level - 28, 0))
    shown = {"original": image, "color": shifted, "lighting": darker, "object": without, "background": blurred}
    for name, picture in shown.items():
        picture.save(folder / f"{name if name == 'original' else f'{name}-strong'}.jpg", quality=90)
