"""Which answers mean the same, and which are right.

What the steps above this layer read (they never import it): two tables, written once by
``annotate(draws, questions, *, options=Options()) -> Annotated`` (unpacks to
``draws, semantics``).

``draws`` comes back with these columns filled, row for row in the order given:

=====================  ==============================================================
answer                 str or null: the final answer found in ``text``. For the votes
                       (``p_true``, ``p_true_cand``) it is ``"True"`` or ``"False"``.
                       Null for refusals, empty texts and probes that hold no answer.
stated_confidence      f64 or null: the confidence written in the text, in [0, 1]
                       (``verb`` and ``answer``: of ``answer``, where one is stated;
                       ``self_ask``: of the answer asked about; ``verb_topk``: of the
                       first listed answer).
stated_answers         list[str] or null: the listed answers (``verb_topk`` only).
stated_confidences     list[f64] or null: their confidences; null inside where one
                       could not be read.
=====================  ==============================================================

``semantics`` has one row per draw, the same order:

=====================  ==============================================================
question_id, model,    the key of the draw
purpose, draw
class_id               i64 or null: the meaning. Shared by all purposes of one question
                       and model, so a ``verb`` answer and a sample of the same meaning
                       have the same id. Ids count from 0 in order of first appearance
                       in the table; null where nothing was attempted.
correct                bool or null (null: not attempted or not gradable, see reason)
reason                 attempted, refusal, empty, unparsed, vote, probe, no reference
grader                 which rule or grader decided (``exact``, ``number``, ...)
chance                 f64 or null: the grader's chance that people accept the answer; null
                       where a judge decided
stated_classes         list[i64] or null: class of each listed answer (``verb_topk``),
                       from the same ids
stated_correct         list[bool] or null: grade of each listed answer
=====================  ==============================================================
"""

from collections.abc import Sequence

from calibrant.answers.semantics.annotate import Annotated as Annotated
from calibrant.answers.semantics.annotate import annotate as annotate
from calibrant.answers.semantics.cluster import Clusters as Clusters
from calibrant.answers.semantics.cluster import first_appearance
from calibrant.answers.semantics.cluster import pairwise_f1 as pairwise_f1
from calibrant.answers.semantics.cluster import same_partition as same_partition
from calibrant.answers.semantics.cluster import why_same as why_same
from calibrant.answers.semantics.extract import Extraction as Extraction
from calibrant.answers.semantics.extract import extract_answer as extract_answer
from calibrant.answers.semantics.extract import extract_letter as extract_letter
from calibrant.answers.semantics.extract import not_attempted as not_attempted
from calibrant.answers.semantics.extract import parse_vote as parse_vote
from calibrant.answers.semantics.grade import Grader as Grader
from calibrant.answers.semantics.hybrid import CosinePairs as CosinePairs
from calibrant.answers.semantics.hybrid import EntailmentPairs as EntailmentPairs
from calibrant.answers.semantics.hybrid import PairModel as PairModel
from calibrant.answers.semantics.judge import Docket as Docket
from calibrant.answers.semantics.judge import GradeQuery as GradeQuery
from calibrant.answers.semantics.judge import GroupQuery as GroupQuery
from calibrant.answers.semantics.judge import Judge as Judge
from calibrant.answers.semantics.judge import SameQuery as SameQuery
from calibrant.answers.semantics.judge import SimulatedJudge as SimulatedJudge
from calibrant.answers.semantics.judge import WhichQuery as WhichQuery
from calibrant.answers.semantics.judge import mask_instructions as mask_instructions
from calibrant.answers.semantics.llm_judge import ClientAsker as ClientAsker
from calibrant.answers.semantics.llm_judge import DispatcherAsker as DispatcherAsker
from calibrant.answers.semantics.llm_judge import LLMJudge as LLMJudge
from calibrant.answers.semantics.settle import Group as Group
from calibrant.answers.semantics.settle import SemanticsOptions as SemanticsOptions
from calibrant.answers.semantics.settle import Settler as Settler
from calibrant.answers.semantics.stated import Stated as Stated
from calibrant.answers.semantics.stated import StatedValue as StatedValue
from calibrant.answers.semantics.stated import parse_confidence as parse_confidence
from calibrant.answers.semantics.stated import parse_stated as parse_stated
from calibrant.answers.semantics.stated import parse_top_k as parse_top_k
from calibrant.answers.semantics.stated import read_confidence as read_confidence
from calibrant.answers.semantics.text.normalise import STEPS as STEPS
from calibrant.answers.semantics.text.normalise import Normaliser as Normaliser
from calibrant.answers.semantics.text.normalise import normalise as normalise
from calibrant.answers.semantics.verdict import Grade as Grade
from calibrant.answers.semantics.verdict import References as References
from calibrant.answers.semantics.verdict import agreement as agreement
from calibrant.answers.semantics.verdict import cohen_kappa as cohen_kappa
from calibrant.answers.semantics.verdict import embedded_judge as embedded_judge
from calibrant.core import InputError


def cluster_answers(
    answers: Sequence[str | None],
    *,
    question: str | None = None,
    options: SemanticsOptions | None = None,
) -> list[int]:
    """Return the class of each answer to one question, numbered by first appearance.

    Answers that attempt nothing (empty, refusals) share one class of their own.

    Parameters
    ----------
    answers
        Answers in the order of the draws.
    question
        The question; it tells names from places and years from dates.
    options
        See `SemanticsOptions`; by default rules alone decide.

    Examples
    --------
    >>> cluster_answers(["Paris", "paris.", "Rome", "I don't know", ""])
    [0, 0, 1, 2, 2]
    >>> cluster_answers(["1,000", "one thousand", "1001"])
    [0, 0, 1]
    """
    texts = [extract_answer(answer).answer for answer in answers]
    attempted = [text for text in texts if text is not None]
    group = Group(attempted, [1] * len(attempted), question or "")
    ids = iter(Settler(options or SemanticsOptions()).settle([group])[0].clusters.ids)
    return first_appearance([-1 if text is None else next(ids) for text in texts])


def grade_answers(
    answers: Sequence[str | None],
    references: Sequence[References],
    *,
    questions: Sequence[str | None] | None = None,
    options: SemanticsOptions | None = None,
) -> list[bool | None]:
    """Return for each answer whether it is right; None where nothing was attempted.

    Parameters
    ----------
    answers
        One answer per row.
    references
        One entry per row: a text, a list of texts that are all right, or a list of right
        answers, each a list of its aliases.
    questions
        One question per row, where known.
    options
        See `SemanticsOptions`; by default rules and words decide, no model is asked.

    Examples
    --------
    >>> grade_answers(["It is Paris.", "Rome", "I don't know"], [["Paris"]] * 3)
    [True, False, None]
    >>> grade_answers(["INCORRECT"], [["CORRECT"]])
    [False]
    """
    for what, values in (("entry of references", references), ("question", questions)):
        if values is not None and len(values) != len(answers):
            raise InputError(
                f"one {what} per answer is needed, got {len(values)} for {len(answers)} answers"
            )
    request = questions if questions is not None else [None] * len(answers)
    groups = [
        Group([extract_answer(answer).answer or (answer or "")], [1], question or "", reference)
        for answer, reference, question in zip(answers, references, request, strict=True)
    ]
    settler = Settler(options or SemanticsOptions())
    settled = settler.settle(groups)
    settler.read_again(groups, settled)
    return [result.grades[0].correct for result in settled]
