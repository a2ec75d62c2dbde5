"""Sem-ECE: calibration of open-ended answers, read off the frequencies of meanings."""

from typing import TYPE_CHECKING

from calibrant.core.lazy import lazy_exports

if TYPE_CHECKING:
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
else:
    # Loaded when asked for: a command that audits a table needs few of these.
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".adaptive": (
                "AdaptiveRule",
                "AdaptiveScores",
                "adaptive_scores",
                "best_selection_size",
            ),
            ".block": ("sem_ece_block",),
            ".clustering": ("ClusteringShift", "clustering_shift"),
            ".convergence": ("ConvergencePoint", "convergence_curve", "gap_slope", "subsample"),
            ".estimators": ("QuestionScores", "SemEce", "question_scores", "sem_ece"),
            ".pool": ("DrawPool", "pool_draws"),
            ".stated": ("VerEce", "ver_ece"),
            ".strata": ("MarginStratum", "hardest_questions", "margin_strata", "regime_summary"),
        },
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
