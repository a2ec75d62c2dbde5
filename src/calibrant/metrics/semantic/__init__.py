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
    from calibrant.metrics.semantic.chance import FloorTest, NoiseFloor, noise_floor
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
        sem_ece_of_pool,
    )
    from calibrant.metrics.semantic.judging import (
        Judged,
        JudgeErrors,
        judge_errors,
        judged_intervals,
    )
    from calibrant.metrics.semantic.pool import DrawPool, pool_draws
    from calibrant.metrics.semantic.predicted import many_class_gaps, pool_gap
    from calibrant.metrics.semantic.stated import VerEce, ver_ece
    from calibrant.metrics.semantic.strata import (
        MarginStratum,
        boundary_alignment,
        hardest_questions,
        leading_answer,
        margin_strata,
        regime_summary,
    )
    from calibrant.metrics.semantic.unlimited import UnlimitedDraws, unlimited_draws_ece
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
            ".chance": ("FloorTest", "NoiseFloor", "noise_floor"),
            ".clustering": ("ClusteringShift", "clustering_shift"),
            ".convergence": ("ConvergencePoint", "convergence_curve", "gap_slope", "subsample"),
            ".estimators": (
                "QuestionScores",
                "SemEce",
                "question_scores",
                "sem_ece",
                "sem_ece_of_pool",
            ),
            ".judging": ("JudgeErrors", "Judged", "judge_errors", "judged_intervals"),
            ".pool": ("DrawPool", "pool_draws"),
            ".predicted": ("many_class_gaps", "pool_gap"),
            ".stated": ("VerEce", "ver_ece"),
            ".strata": (
                "MarginStratum",
                "boundary_alignment",
                "hardest_questions",
                "leading_answer",
                "margin_strata",
                "regime_summary",
            ),
            ".unlimited": ("UnlimitedDraws", "unlimited_draws_ece"),
        },
    )

__all__ = [
    "AdaptiveRule",
    "AdaptiveScores",
    "ClusteringShift",
    "ConvergencePoint",
    "DrawPool",
    "FloorTest",
    "JudgeErrors",
    "Judged",
    "MarginStratum",
    "NoiseFloor",
    "QuestionScores",
    "SemEce",
    "UnlimitedDraws",
    "VerEce",
    "adaptive_scores",
    "best_selection_size",
    "boundary_alignment",
    "clustering_shift",
    "convergence_curve",
    "gap_slope",
    "hardest_questions",
    "judge_errors",
    "judged_intervals",
    "leading_answer",
    "many_class_gaps",
    "margin_strata",
    "noise_floor",
    "pool_draws",
    "pool_gap",
    "question_scores",
    "regime_summary",
    "sem_ece",
    "sem_ece_block",
    "sem_ece_of_pool",
    "subsample",
    "unlimited_draws_ece",
    "ver_ece",
]
