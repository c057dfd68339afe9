"""Sensitivity of a score to a perturbation, as an `evaluate` module."""

import dataclasses

import datasets
import evaluate

from truegap.scores.columns import OptionalColumns
from truegap.scores.sensitivity import feature_sensitivity

_DESCRIPTION = """
How far a perturbation that has nothing to do with gender moves a bias score: delta = 100 x |original - perturbed| /
|original| in percent, with the signed and the absolute change in the score's own unit. 0 is no change; lower is better.
"""

_INPUTS = """
Columns:
    references (float): scores on the original images, one row per draw (or per cell of a table).
    predictions (float): scores on the perturbed images.
Options of `compute`: aggregate="mean_of_ratios" or "ratio_of_means", threshold=0.005 (rows whose |original| is below it
    are left out of delta and listed; None for MaxSkew); confidence, n_resamples and seed change nothing: they are
    accepted so that `evaluate.combine` can give them to every module.
Returns:
    delta, signed_change, abs_change, reason, per_row, excluded, ci_low and ci_high (null: rows are scores, not images),
    options, counts.
Examples:
    >>> feature_sensitivity = evaluate.load("feature_sensitivity")
    >>> feature_sensitivity.compute(references=[0.5], predictions=[0.25])["delta"]
    50.0
"""

_CITATION = """
@inproceedings{hirota2025bias,
  title     = {Bias in Gender Bias Benchmarks: How Spurious Features Distort Evaluation},
  author    = {Hirota, Yusuke and Hachiuma, Ryo and Li, Boyi and Lu, Ximing and Boone, Michael Ross and Ivanovic, Boris
               and Choi, Yejin and Pavone, Marco and Wang, Yu-Chiang Frank and Garcia, Noa and Nakashima, Yuta and
               Yang, Chao-Han Huck},
  booktitle = {Proceedings of the IEEE/CVF International Conference on Computer Vision},
  year      = {2025}
}
"""


class FeatureSensitivity(OptionalColumns, evaluate.Metric):
    """See the card."""

    required = ("predictions", "references")

    def features_of(self, columns):  # noqa: ANN001, ANN201  evaluate has no types
        """Numbers."""
        return datasets.Features({name: datasets.Value("float64") for name in columns})

    def _info(self):  # noqa: ANN202
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=self.declared_features(),
        )

    def _compute(self, predictions, references, *, confidence=0.95, n_resamples=1000, seed=0, **options):  # noqa: ANN001, ANN003, ANN202
        # `evaluate.combine` gives every module the same options; rows are scores, so here nothing is resampled.
        result = dataclasses.asdict(feature_sensitivity(references, predictions, **options))
        result["options"] |= {"confidence": confidence, "n_resamples": n_resamples, "seed": seed}
        return {**result, "ci_low": None, "ci_high": None}
