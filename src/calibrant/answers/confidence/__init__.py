"""Confidence methods: from draws and their meanings to scores.

Every method declares what it needs, which answer it is about, its range and whether its value is
a probability. Missing inputs make a method unavailable; nothing is approximated.
"""

# Modules that register methods and are not imported for a name below.
from calibrant.answers.confidence import alternatives, likelihood, likeness  # noqa: F401
from calibrant.answers.confidence.compact import Classes as Classes
from calibrant.answers.confidence.compact import DrawBlock as DrawBlock
from calibrant.answers.confidence.compact import DrawTable as DrawTable
from calibrant.answers.confidence.compact import class_entropy as class_entropy
from calibrant.answers.confidence.ensemble import Ensemble as Ensemble
from calibrant.answers.confidence.ensemble import cross_fit as cross_fit
from calibrant.answers.confidence.ensemble import load_ensemble as load_ensemble
from calibrant.answers.confidence.frames import compact_table as compact_table
from calibrant.answers.confidence.frequency import panel_agreement as panel_agreement
from calibrant.answers.confidence.frequency import predicted_k as predicted_k
from calibrant.answers.confidence.frequency import unseen_mass as unseen_mass
from calibrant.answers.confidence.frequency import verified_classes as verified_classes
from calibrant.answers.confidence.likelihood import class_mass as class_mass
from calibrant.answers.confidence.longform import score_long_answer as score_long_answer
from calibrant.answers.confidence.longform import split_claims as split_claims
from calibrant.answers.confidence.method import METHODS as METHODS
from calibrant.answers.confidence.method import NEEDS as NEEDS
from calibrant.answers.confidence.method import Method as Method
from calibrant.answers.confidence.method import Need as Need
from calibrant.answers.confidence.method import Options as Options
from calibrant.answers.confidence.question import Draws as Draws
from calibrant.answers.confidence.question import Greedy as Greedy
from calibrant.answers.confidence.question import Probes as Probes
from calibrant.answers.confidence.question import Question as Question
from calibrant.answers.confidence.question import table_of as table_of
from calibrant.answers.confidence.scoring import Score as Score
from calibrant.answers.confidence.scoring import ScoredTable as ScoredTable
from calibrant.answers.confidence.scoring import availability as availability
from calibrant.answers.confidence.scoring import methods as methods
from calibrant.answers.confidence.scoring import needs_of as needs_of
from calibrant.answers.confidence.scoring import score as score
from calibrant.answers.confidence.scoring import score_table as score_table
from calibrant.core.names import catalogue
from calibrant.core.names import ranking_methods as ranking_methods

METHODS.arrange(catalogue()["methods"])
