"""Rows of the papers: bias and sensitivity as printed. They have no interval, and so no rank."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from truegap.leaderboard.table import COLUMNS
from truegap.results.published import TABLES, rows
from truegap.schema import CONFIGS, Feature, Strength

_CAPTIONERS = ("BLIP-2", "GIT")
"""Models of Hall et al. that write rather than compare; all others there are dual encoders."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)B$")


@cache
def published_rows() -> tuple[dict[str, Any], ...]:
    """Every printed bias of a model on a benchmark, with the columns of `truegap.leaderboard.table`.

    >>> row = published_rows()[0]
    >>> row["model"], row["benchmark"], row["metric"], row["bias"], row["rank"], row["kind"]
    ('LLaVA-1.5-7B', 'coco-gender', 'ygap', -0.0369, None, 'published')
    """
    return (*_perturbed("ygap", "vqa"), *_perturbed("maxskew_at_1000", "retrieval"), *_visogender(), *_pairs())


def _perturbed(table: str, protocol: str) -> Iterator[dict[str, Any]]:
    """Hirota et al.: the bias on original and perturbed images, and the delta of each perturbation."""
    figure, deltas, metric = {
        "ygap": ("ygap_x100", "delta_ygap", "ygap"),
        "maxskew_at_1000": ("maxskew_x100", "delta_maxskew", "max_skew@1000"),
    }[table]
    values: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows(table):
        config = "original" if row["strength"] == "original" else f"{row['feature']}-{row['strength']}"
        values.setdefault((row["benchmark"], row["model"]), {})[config] = float(row[figure]) / 100
    moved: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows(deltas):
        config = f"{row['feature']}-{row['strength']}"
        moved.setdefault((row["benchmark"], row["model"]), {})[config] = float(row["delta_percent"])
    for (benchmark, model), biases in values.items():
        delta = moved.get((benchmark, model), {})
        by_feature = {feature: _mean([delta.get(f"{feature}-{each}") for each in Strength]) for feature in Feature}
        yield _row(
            table,
            model,
            benchmark.lower(),
            protocol,
            metric,
            biases["original"],
            kind="generative" if protocol == "vqa" else "dual-encoder",
        ) | {
            "mean_delta": _mean(list(by_feature.values())),
            **{f"delta_{feature}": value for feature, value in by_feature.items()},
            **{f"bias_{config}": biases.get(config) for config in CONFIGS[1:]},
        }


def _visogender() -> Iterator[dict[str, Any]]:
    """Hall et al.: the resolution gap by number of persons, and Bias@5 by whom the pronoun refers to."""
    for row in rows("visogender_resolution"):
        kind = "captioner" if row["model"] in _CAPTIONERS else "dual-encoder"
        for column, scope in (("single_gap", "one person"), ("two_gap", "two persons")):
            gap = float(row[column])
            yield _row(
                "visogender_resolution", row["model"], "visogender", "resolution", "gap", gap, kind=kind, scope=scope
            )
    for row in rows("visogender_retrieval"):
        bias, scope = float(row["bias_at_5"]), f"pronoun of the {row['pronoun_refers_to']}"
        yield _row(
            "visogender_retrieval",
            row["model"],
            "visogender",
            "retrieval-occupations",
            "bias@5",
            bias,
            kind="dual-encoder",
            scope=scope,
        )


def _pairs() -> Iterator[dict[str, Any]]:
    """Xiao et al.: B_ovl in each context."""
    for row in rows("genderbias_vl"):
        for context in ("VL", "V", "L"):
            bias = float(row[f"{context.lower()}_b_ovl"]) / 100
            yield _row(
                "genderbias_vl",
                row["model"],
                "genderbias-vl",
                "counterfactual",
                f"b_ovl@{context}",
                bias,
                kind="generative",
            )


def _row(
    table: str,
    model: str,
    benchmark: str,
    protocol: str,
    metric: str,
    bias: float,
    *,
    kind: str,
    scope: str = "",
) -> dict[str, Any]:
    """One row; what a paper does not print is None."""
    paper = TABLES[table].paper
    board = ", ".join(filter(None, (f"{benchmark} as in {paper.key}", protocol, metric, scope)))
    size = _SIZE.search(model) if kind == "generative" else None
    question = hashlib.sha256(f"published {board}".encode()).hexdigest()
    return dict.fromkeys(COLUMNS) | {
        "key": hashlib.sha256(f"{question} {model}".encode()).hexdigest(),
        "question": question,
        "board": board,
        "kind": "published",
        "model": model,
        "model_kind": kind,
        "spec": model,
        "benchmark": benchmark,
        "version": "as published",
        "protocol": protocol,
        "metric": metric,
        "source": paper.key,
        "parameters": int(float(size[1]) * 1e9) if size else None,
        "bias": bias,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """None where one is missing: a mean over fewer would not be the same quantity."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
