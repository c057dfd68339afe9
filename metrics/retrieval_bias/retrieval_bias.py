"""Retrieval bias as an `evaluate` module: whose images do queries find first?"""

import dataclasses

import datasets
import evaluate

from truegap.scores.columns import OptionalColumns
from truegap.scores.retrieval_bias import retrieval_bias

_DESCRIPTION = """
Bias@k, Skew@k, MaxSkew@k with its expectation under a random ranking, and NDKL of images ranked by their similarity to
every query, averaged over queries. Bias@k ranges from -1 (only women) to 1 (only men); MaxSkew@k and NDKL are at least
0 and lower is better.
"""

_INPUTS = """
Columns:
    predictions (list of float): one row per query: its similarity to every candidate image.
Options of `compute`:
    genders: `woman` or `man` (or the codes 0 and 1) of every candidate: one list for all queries, or one per query.
    k=[5, 10], draws=0 (5 = five balanced draws), target="uniform" or "dataset", empty="clip" or "neg_inf", ids=None,
    confidence=0.95, n_resamples=1000, seed=0.
Returns:
    per k: bias@k, max_skew@k, skew_woman@k, skew_man@k, ties@k; ndkl; each with _null (expectation under a random
    ranking, as in max_skew_null@k) and _sd (ddof 1) over queries; ci_low and ci_high of bias@k of the first k;
    per_query, reasons (why one is null), options, counts.
Examples:
    >>> retrieval_bias = evaluate.load("retrieval_bias")
    >>> genders = ["man", "man", "woman", "woman"]
    >>> retrieval_bias.compute(predictions=[[0.9, 0.8, 0.3, 0.1]], genders=genders, k=[2])["bias@2"]
    1.0
"""

_CITATION = r"""
@inproceedings{hirota2025bias,
  title     = {Bias in Gender Bias Benchmarks: How Spurious Features Distort Evaluation},
  author    = {Hirota, Yusuke and Hachiuma, Ryo and Li, Boyi and Lu, Ximing and Boone, Michael Ross and Ivanovic, Boris
               and Choi, Yejin and Pavone, Marco and Wang, Yu-Chiang Frank and Garcia, Noa and Nakashima, Yuta and
               Yang, Chao-Han Huck},
  booktitle = {Proceedings of the IEEE/CVF International Conference on Computer Vision},
  year      = {2025}
}
@inproceedings{hall2023visogender,
  title     = {{VisoGender}: A Dataset for Benchmarking Gender Bias in Image-Text Pronoun Resolution},
  author    = {Hall, Siobhan Mackenzie and Gon{\c{c}}alves Abrantes, Fernanda and Zhu, Hanwen and Sodunke, Grace and
               Shtedritski, Aleksandar and Kirk, Hannah Rose},
  booktitle = {Advances in Neural Information Processing Systems, Datasets and Benchmarks Track},
  year      = {2023}
}
@inproceedings{geyik2019fairness,
  title     = {Fairness-Aware Ranking in Search and Recommendation Systems with Application to LinkedIn Talent Search},
  author    = {Geyik, Sahin Cem and Ambler, Stuart and Kenthapadi, Krishnaram},
  booktitle = {KDD},
  year      = {2019}
}
"""


class RetrievalBias(OptionalColumns, evaluate.Metric):
    """See the card."""

    required = ("predictions",)

    def features_of(self, columns):  # noqa: ANN001, ANN201  evaluate has no types
        """A list of similarities per query; lists may differ in length where every query has its own candidates."""
        return datasets.Features({name: datasets.List(datasets.Value("float64")) for name in columns})

    def _info(self):  # noqa: ANN202
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=self.declared_features(),
        )

    def _compute(self, predictions, *, genders=None, k=(5, 10), **options):  # noqa: ANN001, ANN003, ANN202
        result = dataclasses.asdict(retrieval_bias(predictions, genders=genders, k=k, **options))
        return {**result.pop("scores"), **result}
