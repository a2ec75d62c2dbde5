"""How sure is a model of an answer that somebody else gives? Measured as its own answers were."""

from collections.abc import Sequence

import polars as pl

from calibrant.answers.semantics import cluster_answers
from calibrant.core.errors import InputError
from calibrant.models import Dispatcher
from calibrant.models.asks import Ask, LedgeredDraw, Outcome
from calibrant.models.protocol import Client, Completion, Request, Usage
from calibrant.models.study.config import StudyConfig
from calibrant.models.study.plan import Asker, Extract, PlannedQuestion, Tag, Wanted
from calibrant.models.study.probes import NEEDS, PROBES
from calibrant.models.study.tables import DrawRows


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


class GivenAnswer:
    """Asks about an answer at hand in place of the model's own greedy one.

    The answer at hand goes no further than the table that is scored; the ledger keeps what the
    model said about it.
    """

    def __init__(
        self, config: StudyConfig, wanted: Wanted, client: Client, dispatcher: Dispatcher,
        extract: Extract,
    ) -> None:  # fmt: skip
        self._asker = Asker.of(config, config.models[0], wanted, client.capabilities)
        self._dispatcher, self._extract = dispatcher, extract

    async def draws(
        self, question: PlannedQuestion, answer: str
    ) -> tuple[pl.DataFrame, list[Outcome]]:
        """Return the draws table, with the answer in the greedy place, and what was asked for."""
        model = self._asker.model.name
        rows, asked, texts = DrawRows(), list[Outcome](), list[str]()
        first = [ask for ask in self._asker.first_turn([question]) if _probe(ask) != "greedy"]
        async for outcome in self._dispatcher.ask_all(first):
            asked.append(outcome)
            rows.add(model, outcome)
            if _probe(outcome.ask) == "samples":
                texts = [draw.completion.text for draw in outcome.draws]
        rows.add(model, self._stand_in(question, answer))
        subject = self._asker.subject(question, answer, texts, self._extract)
        if subject is not None:
            turn = self._asker.second_turn([question], {question.question_id: subject})
            async for outcome in self._dispatcher.ask_all(turn):
                asked.append(outcome)
                rows.add(model, outcome)
        return rows.frame([model], [question.question_id]), asked

    def _stand_in(self, question: PlannedQuestion, answer: str) -> Outcome:
        ask = Ask(
            Request(self._asker.model.model, ()), "greedy", tag=Tag(question, PROBES["greedy"])
        )
        done = Completion(answer, "stop", Usage(0, 0))
        return Outcome(ask, (LedgeredDraw(0, done, cached=True),))


def silent_about(answer: str, own: str, question: str) -> str:
    """Say why the confidence in the model's own answer says nothing of the one at hand, if so."""
    same = cluster_answers([answer, own], question=question)
    if own and same[0] == same[1]:
        return ""
    return f"the model answers {own!r} itself, and this method says nothing of other answers"


def _probe(ask: Ask) -> str:
    return Tag.of(ask).probe.name
