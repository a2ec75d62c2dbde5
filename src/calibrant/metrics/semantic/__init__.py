"""Sem-ECE: calibration of open-ended answers, read off the frequencies of meanings."""

from typing import TYPE_CHECKING

from calibrant.core.names import lazy_exports

if TYPE_CHECKING:
    from calibrant.metrics.semantic.draws import AdaptiveRule as AdaptiveRule
    from calibrant.metrics.semantic.draws import VerEce as VerEce
    from calibrant.metrics.semantic.draws import adaptive_scores as adaptive_scores
    from calibrant.metrics.semantic.draws import best_selection_size as best_selection_size
    from calibrant.metrics.semantic.draws import convergence_curve as convergence_curve
    from calibrant.metrics.semantic.draws import gap_slope as gap_slope
    from calibrant.metrics.semantic.draws import ver_ece as ver_ece
    from calibrant.metrics.semantic.estimators import SemEce as SemEce
    from calibrant.metrics.semantic.estimators import question_scores as question_scores
    from calibrant.metrics.semantic.estimators import sem_ece as sem_ece
    from calibrant.metrics.semantic.estimators import sem_ece_of_pool as sem_ece_of_pool
    from calibrant.metrics.semantic.judging import JudgeErrors as JudgeErrors
    from calibrant.metrics.semantic.judging import clustering_shift as clustering_shift
    from calibrant.metrics.semantic.judging import judge_errors as judge_errors
    from calibrant.metrics.semantic.judging import judged_intervals as judged_intervals
    from calibrant.metrics.semantic.pool import DrawPool as DrawPool
    from calibrant.metrics.semantic.pool import noise_floor as noise_floor
    from calibrant.metrics.semantic.pool import pool_draws as pool_draws
    from calibrant.metrics.semantic.theory import density_bound as density_bound
    from calibrant.metrics.semantic.theory import ece_bound as ece_bound
    from calibrant.metrics.semantic.theory import many_class_gaps as many_class_gaps
    from calibrant.metrics.semantic.theory import near_an_edge as near_an_edge
    from calibrant.metrics.semantic.theory import pool_gap as pool_gap
    from calibrant.metrics.semantic.unlimited import unlimited_draws_ece as unlimited_draws_ece
else:
    # Loaded when asked for: a command that audits a table needs few of these.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
