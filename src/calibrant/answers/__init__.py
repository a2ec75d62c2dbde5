"""From drawn answers to meanings, grades and confidences.

Start with `grade_answers`, `cluster_answers` and `score`; the rest is in `semantics` and
`confidence`.
"""

from typing import TYPE_CHECKING

from calibrant.core.names import lazy_exports

if TYPE_CHECKING:
    from calibrant.answers.confidence import METHODS as METHODS
    from calibrant.answers.confidence import DrawBlock as DrawBlock
    from calibrant.answers.confidence import Draws as Draws
    from calibrant.answers.confidence import DrawTable as DrawTable
    from calibrant.answers.confidence import Ensemble as Ensemble
    from calibrant.answers.confidence import Greedy as Greedy
    from calibrant.answers.confidence import Method as Method
    from calibrant.answers.confidence import Need as Need
    from calibrant.answers.confidence import Probes as Probes
    from calibrant.answers.confidence import Question as Question
    from calibrant.answers.confidence import Score as Score
    from calibrant.answers.confidence import availability as availability
    from calibrant.answers.confidence import load_ensemble as load_ensemble
    from calibrant.answers.confidence import methods as methods
    from calibrant.answers.confidence import score as score
    from calibrant.answers.confidence import score_table as score_table
    from calibrant.answers.semantics import cluster_answers as cluster_answers
    from calibrant.answers.semantics import grade_answers as grade_answers
    from calibrant.answers.semantics.annotate import Annotated as Annotated
    from calibrant.answers.semantics.annotate import annotate as annotate
    from calibrant.answers.semantics.cluster import Clusters as Clusters
    from calibrant.answers.semantics.cluster import pairwise_f1 as pairwise_f1
    from calibrant.answers.semantics.extract import extract_answer as extract_answer
    from calibrant.answers.semantics.grade import Grader as Grader
    from calibrant.answers.semantics.judge import Judge as Judge
    from calibrant.answers.semantics.llm_judge import LLMJudge as LLMJudge
    from calibrant.answers.semantics.settle import SemanticsOptions as SemanticsOptions
    from calibrant.answers.semantics.stated import parse_confidence as parse_confidence
    from calibrant.answers.semantics.text.normalise import Normaliser as Normaliser
    from calibrant.answers.semantics.text.normalise import normalise as normalise
    from calibrant.answers.semantics.verdict import Grade as Grade
    from calibrant.answers.semantics.verdict import agreement as agreement
    from calibrant.answers.semantics.verdict import cohen_kappa as cohen_kappa
else:
    # Loaded when asked for: whoever grades answers needs no confidence method.
    __getattr__, __dir__, __all__ = lazy_exports(__name__)
