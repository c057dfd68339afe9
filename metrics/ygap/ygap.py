"""YGap as an `evaluate` module: the difference of p(Yes) between images of men and of women."""

import dataclasses
from types import MappingProxyType

import datasets
import evaluate

from truegap.scores.columns import OptionalColumns
from truegap.scores.ygap import ygap

_DESCRIPTION = """
YGap is the mean over questions of (mean p(Yes) over images of men - mean p(Yes) over images of women). It ranges from
-1 to 1; positive values favour men and 0 is no gap. The interval resamples images within gender; the p-value relabels
them.
"""

_INPUTS = """
Columns:
    predictions (float): p(Yes) in [0, 1], or 0/1 answers, one per row.
    genders (str): `woman` or `man` (or the codes 0 and 1): who is shown in the row's image.
    images (str, optional): id of the row's image; without it there is neither interval nor p-value.
    questions (str, optional): id of the row's question; without it all rows are one question.
Options of `compute`: confidence=0.95, n_resamples=1000, n_permutations=1000, method="percentile" or "bca", seed=0,
    strata=None, such as {"topic": {"brave": "personality"}}.
Returns:
    ygap, abs_ygap, mean_abs_ygap, p_value, ci_low, ci_high, per_question, per_stratum, options, counts.
Examples:
    >>> ygap = evaluate.load("ygap")
    >>> ygap.compute(predictions=[0.75, 0.25], genders=["man", "woman"])["ygap"]
    0.5
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


class Ygap(OptionalColumns, evaluate.Metric):
    """See the card."""

    required = ("predictions", "genders")
    optional = ("images", "questions")
    text = MappingProxyType({"genders": ("woman", "man"), "images": (), "questions": ()})

    def features_of(self, columns):  # noqa: ANN001, ANN201  evaluate has no types
        """Probabilities are numbers, everything else is text."""
        return datasets.Features(
            {name: datasets.Value("string" if name in self.text else "float64") for name in columns}
        )

    def _info(self):  # noqa: ANN202
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=self.declared_features(),
        )

    def _compute(self, predictions, genders, images=None, questions=None, **options):  # noqa: ANN001, ANN003, ANN202
        return dataclasses.asdict(ygap(predictions, genders, images=images, questions=questions, **options))
