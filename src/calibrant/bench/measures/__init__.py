"""Confidence when several answers are right: by number of answers, and on mixes of them."""

from calibrant.bench.measures.evaluate import evaluate_multi_answer
from calibrant.bench.measures.leaves import Leaf, leaves, mixes_of
from calibrant.bench.measures.macro import knowledge_coverage, macro_auroc, macro_mean, spearman
from calibrant.bench.measures.significance import Comparison, compare_aurocs
from calibrant.bench.measures.thresholds import (
    development_part,
    mass_grid,
    mass_histogram,
    tune_aggregation,
    tune_threshold,
)

__all__ = [
    "Comparison",
    "Leaf",
    "compare_aurocs",
    "development_part",
    "evaluate_multi_answer",
    "knowledge_coverage",
    "leaves",
    "macro_auroc",
    "macro_mean",
    "mass_grid",
    "mass_histogram",
    "mixes_of",
    "spearman",
    "tune_aggregation",
    "tune_threshold",
]
