"""Confidence methods: from draws and their meanings to scores.

Every method declares what it needs, which answer it is about, its range and whether its value is
a probability. Missing inputs make a method unavailable; nothing is approximated.
"""

from calibrant.confidence import frequency as _frequency
from calibrant.confidence import frequency_unseen as _unseen
from calibrant.confidence import graph as _graph
from calibrant.confidence import likelihood as _likelihood
from calibrant.confidence import probes as _probes
from calibrant.confidence import stated as _stated
from calibrant.confidence import tokens as _tokens
from calibrant.confidence.compact import Classes, DrawBlock, DrawTable
from calibrant.confidence.ensemble import Ensemble, cross_fit, load_ensemble
from calibrant.confidence.ensemble import stack as _stack
from calibrant.confidence.frames import compact_table
from calibrant.confidence.frequency import class_entropy
from calibrant.confidence.frequency_unseen import predicted_k, unseen_mass
from calibrant.confidence.likelihood import class_mass
from calibrant.confidence.longform import score_long_answer, split_claims
from calibrant.confidence.longform import scoring as _longform
from calibrant.confidence.method import METHODS, Method, Options
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
from calibrant.confidence.texts import cocoa as _cocoa
from calibrant.confidence.texts import lexical as _lexical
from calibrant.confidence.texts import relevance as _relevance
from calibrant.confidence.tokenwise import alternatives as _alternatives
from calibrant.confidence.verdicts import judged as _judged
from calibrant.confidence.verdicts.judged import panel_agreement, verified_classes

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

# The modules are imported for the methods that they register.
del _longform, _stack
del _cocoa, _judged, _lexical, _relevance, _alternatives, _unseen
del _frequency, _graph, _likelihood, _probes, _stated, _tokens
