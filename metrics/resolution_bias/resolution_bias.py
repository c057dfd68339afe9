"""Resolution bias as an `evaluate` module: does the person in the picture get the right pronoun?"""

import dataclasses
from types import MappingProxyType

import datasets
import evaluate

from truegap.scores.columns import OptionalColumns
from truegap.scores.resolution import resolution_bias

_DESCRIPTION = """
Resolution accuracy of masculine and feminine pronouns, the gap between them, and how often the neutral pronoun wins.
The gap ranges from -1 to 1; positive values favour men and 0 is no gap. Accuracies range from 0 to 1; higher is better.
"""

_INPUTS = """
Columns:
    predictions (list of float): one row per question: scores of [his, her, their], or of [his, her].
    references (str): `masculine` or `feminine` (`man`, `woman`): who the pronoun refers to.
    groups (str, optional): label of the row's group, such as sector, occupation, or MM, FF, MF, FM.
    images (str, optional): id of the row's image; without it there is no interval.
Options of `compute`: candidates="three" or "two", ties="wrong" or "first", round_intermediate=False, confidence=0.95,
    n_resamples=1000, seed=0.
Returns:
    ra_m, ra_f, ra_avg, gap, abs_gap, neutral_rate, neutral_gap, n_ties, n_m, n_f, ci_low and ci_high of gap, per_group,
    options, counts.
Examples:
    >>> resolution_bias = evaluate.load("resolution_bias")
    >>> scores = [[0.6, 0.3, 0.1], [0.5, 0.4, 0.1]]
    >>> resolution_bias.compute(predictions=scores, references=["masculine", "feminine"])["gap"]
    1.0
"""

_CITATION = r"""
@inproceedings{hall2023visogender,
  title     = {{VisoGender}: A Dataset for Benchmarking Gender Bias in Image-Text Pronoun Resolution},
  author    = {Hall, Siobhan Mackenzie and Gon{\c{c}}alves Abrantes, Fernanda and Zhu, Hanwen and Sodunke, Grace and
               Shtedritski, Aleksandar and Kirk, Hannah Rose},
  booktitle = {Advances in Neural Information Processing Systems, Datasets and Benchmarks Track},
  year      = {2023}
}
"""


class ResolutionBias(OptionalColumns, evaluate.Metric):
    """See the card."""

    required = ("predictions", "references")
    optional = ("groups", "images")
    text = MappingProxyType({"references": ("feminine", "masculine"), "groups": (), "images": ()})

    def features_of(self, columns):  # noqa: ANN001, ANN201  evaluate has no types
        """A list of scores per row, everything else is text."""
        scores, text = datasets.List(datasets.Value("float64")), datasets.Value("string")
        return datasets.Features({name: text if name in self.text else scores for name in columns})

    def _info(self):  # noqa: ANN202
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=self.declared_features(),
        )

    def _compute(self, predictions, references, groups=None, images=None, **options):  # noqa: ANN001, ANN003, ANN202
        found = resolution_bias(predictions, references, groups=groups, images=images, **options)
        result = dataclasses.asdict(found)
        return {**result.pop("overall"), **result}
