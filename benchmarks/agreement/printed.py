"""Figures that papers print."""

from __future__ import annotations

import numpy as np
from checks import Checks, Pair

from truegap import scores
from truegap.results.published import rows

CHECKS = Checks()


@CHECKS.add("Pearson r of Acc_b and delta, dual encoders", "Hirota et al.: 0.54", tolerance=0.01, inputs=None)
def published_r(rng: np.random.Generator) -> Pair:  # noqa: ARG001
    accuracy = {
        (r["benchmark"], r["feature"]): float(r["accuracy_percent"])
        for r in rows("spurious_accuracy")
        if r["backbone"] == "convnext_base"
    }
    table = rows("delta_maxskew")
    x = [accuracy[r["benchmark"], r["feature"]] for r in table]
    return [scores.pearson(x, [float(r["delta_percent"]) for r in table])], [0.54]


@CHECKS.add(
    "MaxSkew@5, @10 under a random ranking, 10 + 10 images",
    "Hall et al., 3,000 relabellings",
    tolerance=0.0025,  # four standard errors: 0.0307 and 0.0260 over the root of 3,000
    inputs=None,
)
def published_null(rng: np.random.Generator) -> Pair:  # noqa: ARG001
    printed = rows("visogender_random_split")[0]
    theirs = [float(printed[f"maxskew_at_{k}"]) for k in (5, 10)]
    return [scores.expected_max_skew([10, 10], k, [0.5, 0.5]) for k in (5, 10)], theirs
