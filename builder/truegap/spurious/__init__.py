"""How much of gender each feature of a benchmark gives away: Acc_b (Hirota et al. 2025)."""

from truegap.spurious.conventions import STANDARD, Conventions
from truegap.spurious.measure import check_counts, measure, read_spurious
from truegap.spurious.readers import Reader
from truegap.spurious.records import AccuracyRecord, ReaderRecord, SpuriousRecord
from truegap.spurious.split import Split, balanced_split
from truegap.spurious.statistics import Correlation, correlation, wilson

__all__ = [
    "STANDARD",
    "AccuracyRecord",
    "Conventions",
    "Correlation",
    "Reader",
    "ReaderRecord",
    "Split",
    "SpuriousRecord",
    "balanced_split",
    "check_counts",
    "correlation",
    "measure",
    "read_spurious",
    "wilson",
]
