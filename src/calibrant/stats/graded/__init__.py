"""What machine grades and a few checked answers show together.

Grades are 0 or 1, each with the grader's own chance q that the answer is right and a flag for
doubt. Some answers are checked by people. The estimates here are about the truth, not about the
grades, and their intervals cover the errors of the grader.
"""

from calibrant.stats.graded.checks import Checked, Graded, choose_checks
from calibrant.stats.graded.error import (
    cells_for,
    graded_error,
    unchecked_accuracy,
    unchecked_difference,
    unchecked_error,
    unchecked_gap,
)
from calibrant.stats.graded.means import (
    GradedEstimate,
    graded_accuracy,
    graded_auroc,
    graded_difference,
    graded_gap,
)
from calibrant.stats.graded.summary import FEWEST_CHECKS, grading_summary

__all__ = [
    "FEWEST_CHECKS",
    "Checked",
    "Graded",
    "GradedEstimate",
    "cells_for",
    "choose_checks",
    "graded_accuracy",
    "graded_auroc",
    "graded_difference",
    "graded_error",
    "graded_gap",
    "grading_summary",
    "unchecked_accuracy",
    "unchecked_difference",
    "unchecked_error",
    "unchecked_gap",
]
