"""Every bias and sensitivity score, its interval and its test, on NumPy alone.

Functions take arrays and return frozen dataclasses that hold the options used and the counts. Input that cannot be
scored raises `ScoreError`, which names the row and the remedy.
"""

from __future__ import annotations

from ._check import GENDERS, ScoreError
from ._top import TopCounts
from .association import Move, RankChange, kendall, pearson, rank_change, ranks, spearman
from .biased_pairs import BiasOverlap, bias_overlap, most_biased, shared_pairs
from .bootstrap import bootstrap_weights, interval
from .chance import expected_max_skew, expected_ndkl, expected_skew
from .change import ContextGap, Difference, ScoreChange, context_gap, paired_difference, score_change
from .counterfactual import CounterfactualBias, PairBias, counterfactual_bias, resampled_counterfactual
from .draws import balanced_draws, default_k
from .mean_delta import MeanDelta, retrieval_mean_delta
from .permutation import holm, p_value, permuted_labels
from .power import image_spread, images_needed, minimal_detectable_gap
from .resolution import (
    Resolution,
    ResolutionBias,
    ResolutionSplits,
    resampled_resolution,
    resolution_bias,
    resolution_splits,
)
from .retrieval import RetrievalScore, RetrievalScores, retrieval_scores
from .retrieval_bias import RetrievalBias, retrieval_bias
from .retrieval_change import RetrievalChange, retrieval_changes
from .retrieval_contrast import RetrievalContrast, resampled_means, retrieval_contexts, retrieval_contrasts
from .sensitivity import Excluded, Sensitivity, WorstCase, composite, feature_sensitivity, worst_case
from .society import LabourAssociation, Spread, labour_association, quadrants, random_relabelling, subsample
from .ygap import QuestionGap, YGap, resampled_ygap, ygap

__all__ = [
    "GENDERS",
    "BiasOverlap",
    "ContextGap",
    "CounterfactualBias",
    "Difference",
    "Excluded",
    "LabourAssociation",
    "MeanDelta",
    "Move",
    "PairBias",
    "QuestionGap",
    "RankChange",
    "Resolution",
    "ResolutionBias",
    "ResolutionSplits",
    "RetrievalBias",
    "RetrievalChange",
    "RetrievalContrast",
    "RetrievalScore",
    "RetrievalScores",
    "ScoreChange",
    "ScoreError",
    "Sensitivity",
    "Spread",
    "TopCounts",
    "WorstCase",
    "YGap",
    "balanced_draws",
    "bias_overlap",
    "bootstrap_weights",
    "composite",
    "context_gap",
    "counterfactual_bias",
    "default_k",
    "expected_max_skew",
    "expected_ndkl",
    "expected_skew",
    "feature_sensitivity",
    "holm",
    "image_spread",
    "images_needed",
    "interval",
    "kendall",
    "labour_association",
    "minimal_detectable_gap",
    "most_biased",
    "p_value",
    "paired_difference",
    "pearson",
    "permuted_labels",
    "quadrants",
    "random_relabelling",
    "rank_change",
    "ranks",
    "resampled_counterfactual",
    "resampled_means",
    "resampled_resolution",
    "resampled_ygap",
    "resolution_bias",
    "resolution_splits",
    "retrieval_bias",
    "retrieval_changes",
    "retrieval_contexts",
    "retrieval_contrasts",
    "retrieval_mean_delta",
    "retrieval_scores",
    "score_change",
    "shared_pairs",
    "spearman",
    "subsample",
    "worst_case",
    "ygap",
]
