"""How sure is a model of an answer that somebody else gives? Measured as its own answers were."""

from collections.abc import Sequence

from calibrant.answers.semantics import cluster_answers
from calibrant.core.errors import InputError
from calibrant.models.asks import Ask, LedgeredDraw, Outcome
from calibrant.models.protocol import Completion, Request, Usage
from calibrant.models.study.plan import PlannedQuestion, Tag
from calibrant.models.study.probes import NEEDS, PROBES


def scoring_of(method: str) -> dict[str, str]:
    """Return how scores are made about the answer in the greedy place."""
    # Consistency is about the most frequent answer, unless it is asked for another one's share.
    variant = {"variant": "paper"} if method == "consistency" else {}
    return {"about": "greedy", **variant}


def check_scorable(method: str, needs: Sequence[str]) -> None:
    """Refuse a method that reads what only the model's own answer has."""
    if any(NEEDS[name].probe == "greedy" and NEEDS[name].logprobs for name in needs):
        raise InputError(
            f"{method} reads the tokens of the model's own answer, and a given one has none",
            hint="certify a policy on self_ask, p_true_prob or consistency to score given answers",
        )


def stand_in(model: str, question: PlannedQuestion, answer: str) -> Outcome:
    """Return an answer at hand in the place of the model's own greedy one.

    It goes no further than the table that is scored; the ledger keeps what the model said of it.
    """
    ask = Ask(Request(model, ()), "", tag=Tag(question, PROBES["greedy"]))
    finished = Completion(answer, "stop", Usage(0, 0))
    return Outcome(ask, (LedgeredDraw(0, finished, cached=True),))


def silent_about(answer: str, own: str, question: str) -> str:
    """Say why the confidence in the model's own answer says nothing of the one at hand, if so."""
    equal = cluster_answers([answer, own], question=question)
    if own and equal[0] == equal[1]:
        return ""
    return f"the model answers {own!r} itself, and this method says nothing of other answers"


def probe_of(ask: Ask) -> str:
    """Return the name of the probe that an ask belongs to."""
    return Tag.of(ask).probe.name
