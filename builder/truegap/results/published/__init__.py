"""Figures that papers print, as data with their source: facts against which scores and claims are checked.

Each table is a CSV file beside this one. Its cells are texts, as printed but for zeros at the end; `decimals` says how
many digits the paper prints, and so how far a printed value may be from the one that was rounded.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Paper:
    """Where figures come from.

    Attributes:
        key: Short name, as tables of an audit show it.
        title: Its title.
        url: Where it can be read; None where it is not on the web.
    """

    key: str
    title: str
    url: str | None


@dataclass(frozen=True, slots=True)
class Published:
    """One printed table.

    Attributes:
        name: Name of its file, without `.csv`.
        paper: Where it is printed.
        table: Its number there; None where that is not recorded.
        what: What a row is.
        unit: Of its figures.
        decimals: Digits after the point that the paper prints.
        note: What a reader must know; may be empty.
    """

    name: str
    paper: Paper
    table: str | None
    what: str
    unit: str
    decimals: int
    note: str = ""


HIROTA = Paper(
    "Hirota et al. 2025",
    "Bias in Gender Bias Benchmarks: How Spurious Features Distort Evaluation",
    "https://arxiv.org/abs/2509.07596",
)
HALL = Paper(
    "Hall et al. 2023",
    "VisoGender: A dataset for benchmarking gender bias in image-text pronoun resolution",
    "https://arxiv.org/abs/2306.12424",
)
XIAO = Paper(
    "Xiao et al. 2024",
    "GenderBias-VL: Benchmarking Gender Bias in Vision Language Models via Counterfactual Probing",
    "https://arxiv.org/abs/2407.00600",
)
CDA = Paper("CLIP-CDA report", "Course report on CLIP, counterfactual data augmentation and CelebA-Dialog", None)

TABLES = {
    each.name: each
    for each in (
        Published("benchmark_sizes", HIROTA, None, "images of a benchmark", "images", 0),
        Published("spurious_accuracy", HIROTA, None, "Acc_b of a feature, mean and sd of five seeds", "percent", 1),
        Published("ygap", HIROTA, None, "YGap of a generative model on one set of images", "YGap x 100", 2),
        Published("delta_ygap", HIROTA, None, "sensitivity of YGap", "percent", 2, "60 of 288 cells are left out"),
        Published("maxskew_at_1000", HIROTA, None, "MaxSkew@1000 of a dual encoder", "MaxSkew x 100", 2),
        Published("delta_maxskew", HIROTA, None, "sensitivity of MaxSkew@1000", "percent", 2),
        Published(
            "human_recognition", HIROTA, None, "people who recognise the label after a perturbation", "percent", 1
        ),
        Published("visogender_resolution", HALL, None, "resolution bias of a model", "share", 2),
        Published("visogender_neutral", HALL, None, "share resolved to the neutral pronoun", "share", 2),
        Published(
            "visogender_retrieval", HALL, None, "retrieval bias of a model, mean and sd of 23 occupations", "score", 2
        ),
        Published("visogender_subsampling", HALL, None, "resolution bias of CLIP over sub-samples", "share", 4),
        Published("visogender_random_split", HALL, None, "retrieval bias over random relabellings", "score", 4),
        Published(
            "visogender_labour_correlation", HALL, None, "resolution accuracy against labour statistics", "r, tau", 2
        ),
        Published(
            "genderbias_vl",
            XIAO,
            "1",
            "counterfactual bias of a model in three contexts",
            "percent",
            2,
            "the accuracy of InternLM-XC2 (VL) is from the authors' result files",
        ),
        Published(
            "genderbias_vl_outcome_v",
            XIAO,
            None,
            "outcome difference in the V context",
            "percent; r, tau",
            2,
            "the legible rows of a damaged print",
        ),
        Published(
            "clip_cda_celeba",
            CDA,
            "1 to 10",
            "gender resolution of a fine-tuned CLIP",
            "share",
            4,
            "rows carry the number of their table, since some tables repeat",
        ),
    )
}
"""Every table by its name."""


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a table, cells as printed.

    >>> rows("benchmark_sizes")[0]
    {'benchmark': 'COCO-gender', 'woman': '1568', 'man': '3156', 'total': '4724'}
    """
    path = Path(__file__).parent / f"{TABLES[name].name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
