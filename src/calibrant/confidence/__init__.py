"""Confidence methods: from draws and their meanings to scores.

Every method declares what it needs, which answer it is about, its range and whether its value is
a probability. Missing inputs make a method unavailable; nothing is approximated.
"""

# Modules that register methods and are not imported for a name below.
from calibrant.confidence import alternatives, graph, relevance, stated, text_words  # noqa: F401
from calibrant.confidence.compact import Classes, DrawBlock, DrawTable
from calibrant.confidence.ensemble import Ensemble, cross_fit, load_ensemble
from calibrant.confidence.frames import compact_table
from calibrant.confidence.frequency import class_entropy, predicted_k, unseen_mass
from calibrant.confidence.likelihood import class_mass
from calibrant.confidence.longform import score_long_answer, split_claims
from calibrant.confidence.method import METHODS, Method, Options, catalogue
from calibrant.confidence.needs import NEEDS, Need, needs_of
from calibrant.confidence.question import Draws, Greedy, Probes, Question, table_of
from calibrant.confidence.scoring import (
    Score,
    ScoredTable,
    availability,
    methods,
    ranking_methods,
    score,
    score_table,
)
from calibrant.confidence.verdicts import panel_agreement, verified_classes

METHODS.arrange(catalogue()["methods"])

__all__ = [
    "METHODS",
    "NEEDS",
    "Classes",
    "DrawBlock",
    "DrawTable",
    "Draws",
    "Ensemble",
    "Greedy",
    "Method",
    "Need",
    "Options",
    "Probes",
    "Question",
    "Score",
    "ScoredTable",
    "availability",
    "class_entropy",
    "class_mass",
    "compact_table",
    "cross_fit",
    "load_ensemble",
    "methods",
    "needs_of",
    "panel_agreement",
    "predicted_k",
    "ranking_methods",
    "score",
    "score_long_answer",
    "score_table",
    "split_claims",
    "table_of",
    "unseen_mass",
    "verified_classes",
]
