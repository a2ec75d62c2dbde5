"""Sem-ECE: calibration of open-ended answers, read off the frequencies of meanings."""

from calibrant.metrics.semantic.adaptive import (
    AdaptiveRule,
    AdaptiveScores,
    adaptive_scores,
    best_selection_size,
)
from calibrant.metrics.semantic.block import sem_ece_block
from calibrant.metrics.semantic.clustering import ClusteringShift, clustering_shift
from calibrant.metrics.semantic.convergence import (
    ConvergencePoint,
    convergence_curve,
    gap_slope,
    subsample,
)
from calibrant.metrics.semantic.estimators import (
    QuestionScores,
    SemEce,
    question_scores,
    sem_ece,
)
from calibrant.metrics.semantic.pool import DrawPool, pool_draws
from calibrant.metrics.semantic.stated import VerEce, ver_ece
from calibrant.metrics.semantic.strata import (
    MarginStratum,
    hardest_questions,
    margin_strata,
    regime_summary,
)

__all__ = [
    "AdaptiveRule",
    "AdaptiveScores",
    "ClusteringShift",
    "ConvergencePoint",
    "DrawPool",
    "MarginStratum",
    "QuestionScores",
    "SemEce",
    "VerEce",
    "adaptive_scores",
    "best_selection_size",
    "clustering_shift",
    "convergence_curve",
    "gap_slope",
    "hardest_questions",
    "margin_strata",
    "pool_draws",
    "question_scores",
    "regime_summary",
    "sem_ece",
    "sem_ece_block",
    "subsample",
    "ver_ece",
]
