"""Confidence methods: from draws and their meanings to scores.

Every method declares what it needs, which answer it is about, its range and whether its value is
a probability. Missing inputs make a method unavailable; nothing is approximated.
"""

# Modules that register methods and are not imported for a name below.
from calibrant.confidence import alternatives, graph, relevance, stated, text_words  # noqa: F401
from calibrant.confidence.compact import Classes as Classes
from calibrant.confidence.compact import DrawBlock as DrawBlock
from calibrant.confidence.compact import DrawTable as DrawTable
from calibrant.confidence.ensemble import Ensemble as Ensemble
from calibrant.confidence.ensemble import cross_fit as cross_fit
from calibrant.confidence.ensemble import load_ensemble as load_ensemble
from calibrant.confidence.frames import compact_table as compact_table
from calibrant.confidence.frequency import class_entropy as class_entropy
from calibrant.confidence.frequency import predicted_k as predicted_k
from calibrant.confidence.frequency import unseen_mass as unseen_mass
from calibrant.confidence.likelihood import class_mass as class_mass
from calibrant.confidence.longform import score_long_answer as score_long_answer
from calibrant.confidence.longform import split_claims as split_claims
from calibrant.confidence.method import METHODS as METHODS
from calibrant.confidence.method import Method as Method
from calibrant.confidence.method import Options as Options
from calibrant.confidence.method import catalogue
from calibrant.confidence.needs import NEEDS as NEEDS
from calibrant.confidence.needs import Need as Need
from calibrant.confidence.needs import needs_of as needs_of
from calibrant.confidence.question import Draws as Draws
from calibrant.confidence.question import Greedy as Greedy
from calibrant.confidence.question import Probes as Probes
from calibrant.confidence.question import Question as Question
from calibrant.confidence.question import table_of as table_of
from calibrant.confidence.scoring import Score as Score
from calibrant.confidence.scoring import ScoredTable as ScoredTable
from calibrant.confidence.scoring import availability as availability
from calibrant.confidence.scoring import methods as methods
from calibrant.confidence.scoring import ranking_methods as ranking_methods
from calibrant.confidence.scoring import score as score
from calibrant.confidence.scoring import score_table as score_table
from calibrant.confidence.verdicts import panel_agreement as panel_agreement
from calibrant.confidence.verdicts import verified_classes as verified_classes

METHODS.arrange(catalogue()["methods"])
