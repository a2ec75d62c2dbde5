"""Confidence when several answers are right: by number of answers, and on mixes of them."""

from calibrant.metrics.multi_answer.coverage import knowledge_coverage, spearman
from calibrant.metrics.multi_answer.evaluate import evaluate_multi_answer
from calibrant.metrics.multi_answer.leaves import Leaf, leaves, mixes_of
from calibrant.metrics.multi_answer.macro import macro_auroc, macro_mean
from calibrant.metrics.multi_answer.masses import mass_grid, mass_histogram
from calibrant.metrics.multi_answer.significance import Comparison, compare_aurocs
from calibrant.metrics.multi_answer.thresholds import tune_aggregation
from calibrant.metrics.multi_answer.tuning import development_part, tune_threshold

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
