"""A question as a study asks it: prompts, draws and method, also for an answer that is given."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from calibrant.answers.confidence import METHODS, Options, needs_of, score_table
from calibrant.answers.semantics import cluster_answers
from calibrant.answers.semantics.annotate import annotate
from calibrant.apps.serving.measure import (
    PATIENCE_S,
    Asked,
    Measured,
    UpstreamError,
    cut_off,
    open_reader,
    patience,
    serving_dispatcher,
)
from calibrant.core.errors import InputError
from calibrant.models.asks import Ask, LedgeredDraw, Outcome
from calibrant.models.ledger import Ledger
from calibrant.models.protocol import Completion, Request, Usage
from calibrant.models.study.config import StudyConfig
from calibrant.models.study.endpoints import open_client
from calibrant.models.study.plan import AskPlanner, Tag, select_probes
from calibrant.models.study.probes import NEEDS, PROBES
from calibrant.models.study.prompts import PlannedQuestion, recipe_config
from calibrant.models.study.runner import DrawRows
from calibrant.verbs.study.run_document import answer_in, rules_of


def stand_in(model: str, question: PlannedQuestion, answer: str) -> Outcome:
    """Return an answer at hand in the place of the model's own greedy one.

    It goes no further than the table that is scored; the ledger keeps what the model said of it.
    """
    ask = Ask(Request(model, ()), "", tag=Tag(question, PROBES["greedy"]))
    finished = Completion(answer, "stop", Usage(0, 0))
    return Outcome(ask, (LedgeredDraw(0, finished, cached=True),))


def probe_of(ask: Ask) -> str:
    """Return the name of the probe that an ask belongs to."""
    return Tag.of(ask).probe.name


KINDS = ("open", "choice", "number", "binary")
MOST_TOGETHER = 64
"""Questions that are scored in one table."""
_COUNTED = ("consistency", "sem1", "sem2", "sca")


@dataclass(frozen=True)
class Drawn:
    """A question with everything that was asked for it, and how its scores are made."""

    question: PlannedQuestion
    outcomes: list[Outcome]
    about: tuple[tuple[str, str], ...] = ()


_SILENT = "no confidence could be computed"


class AsInStudy:
    """Ask one question as a study asks it: its prompts, its draws, its method.

    The code is that of `run`, so the number is the one that was certified.

    Parameters
    ----------
    recipe
        Saved with the policy, see `study_recipe`.
    model
        Name of the model in the study.
    address, key_env
        Where it is asked, if not where the study asked it.
    ledger
        Where every draw is kept.
    reuse
        Take draws at a temperature from the ledger too.
    patience_s
        Seconds for which a caller waits.
    """

    def __init__(
        self, recipe: Mapping[str, Any], model: str, address: str | None, key_env: str | None,
        ledger: Ledger, *, source: str, reuse: bool = False, patience_s: float = PATIENCE_S,
    ) -> None:  # fmt: skip
        self._folder = tempfile.TemporaryDirectory()
        self._model, self._method, self._ledger = model, str(recipe["method"]), ledger
        self._reuse, self._patience_s = reuse, patience_s
        self.unrecorded = 0
        try:
            self._prepare(recipe, address, key_env, source)
        except BaseException:
            self._folder.cleanup()
            raise
        self._scoring = _Together(self._scored)

    def _prepare(
        self, recipe: Mapping[str, Any], address: str | None, key_env: str | None, source: str
    ) -> None:
        model = self._model
        self.config: StudyConfig = recipe_config(
            recipe, model, address=address, key_env=key_env,
            folder=Path(self._folder.name), source=source,
        )  # fmt: skip
        choice = self.config.models[0]
        self.client = open_client(choice, source=source)
        self._needs = needs_of(METHODS[self._method], Options(**self.config.scoring.given))
        needs, able = {self._method: self._needs}, self.client.capabilities
        self._wanted = select_probes(needs, self.config, able, kinds=KINDS, model=model).wanted
        # One answer alone is told apart from no other, so nobody has to read it.
        several = any(PROBES[name].turn == 1 and n > 1 for name, n in self._wanted.draws.items())
        self._reader = open_reader(recipe.get("read_by") if several else None, source)
        self._asker = AskPlanner.of(self.config, choice, self._wanted, able)
        self._dispatcher = serving_dispatcher(self, self._ledger)
        if self._wanted.logprobs:
            # Answers that the method cannot use are not bought.
            self._dispatcher.insist_on("logprobs")

    async def close(self) -> None:
        """Close the connections; the prompts are not needed any more."""
        await self.client.close()
        self._folder.cleanup()

    @property
    def calls(self) -> int:
        """Calls that one question takes at most."""
        return sum(-(-draws // self._dispatcher.chunk) for draws in self._wanted.draws.values())

    def key(self, asked: Asked) -> bytes:
        """Return the question."""
        return repr((asked.question_id, asked.text, sorted(asked.known.items(), key=str))).encode()

    async def measure(self, asked: Asked) -> Measured:
        """Ask for everything that the method needs, and score it."""
        question = _question(asked)
        async with patience(self._ledger, self._patience_s):
            outcomes = await self._ask(question)
        scored = await self._scoring.scored(Drawn(question, outcomes))
        return self._measured(outcomes, scored)

    async def score(self, asked: Asked, answer: str) -> Measured:
        """Ask how sure the model is of an answer that is at hand, in the way that was certified."""
        if any(NEEDS[name].probe == "greedy" and NEEDS[name].logprobs for name in self._needs):
            raise InputError(
                f"{self._method} reads the tokens of the model's own answer, and a given one has "
                "none",
                hint="certify a policy on self_ask, p_true_prob or consistency to score given "
                "answers",
            )
        question = _question(asked)
        async with patience(self._ledger, self._patience_s):
            outcomes = await self._ask(question, answer)
        # The score of the answer in the greedy place; consistency is usually about the modal one.
        variant = (("variant", "paper"),) if self._method == "consistency" else ()
        how = (("about", "greedy"), *variant)
        own = await self._scoring.scored(Drawn(question, outcomes, how))
        if own.confidence is not None:
            own_text = own.answer or ""
            equal = cluster_answers([answer, own_text], question=question.text)
            if not own_text or equal[0] != equal[1]:
                why = f"the model answers {own_text!r} itself, and "
                why += "this method says nothing of other answers"
                own = replace(own, confidence=None, why=why, how_sure=why)
        return self._measured(outcomes, replace(own, answer=answer))

    async def _ask(self, question: PlannedQuestion, values: str | None = None) -> list[Outcome]:
        """Return what the model said to the question, and then about its answer or a given one."""
        salt = secrets.token_hex(8)
        request, texts = list[Outcome](), dict[str, list[str]]()
        first = list(self._asker.first_turn([question]))
        if values is not None:
            # The answer at hand stands where the model's own one would.
            own = stand_in(self._asker.model.model, question, values)
            request.append(own)
            texts["greedy"] = [values]
            first = [ask for ask in first if probe_of(ask) != "greedy"]
        async for outcome in self._draw(first, salt):
            request.append(outcome)
            texts[probe_of(outcome.ask)] = [draw.completion.text for draw in outcome.draws]
        greedy, samples = texts.get("greedy", ()), texts.get("samples", ())
        response = greedy[0] if greedy else None
        subject = self._asker.subject(question, response, samples, answer_in)
        if subject is not None:
            turn = self._asker.second_turn([question], {question.question_id: subject})
            request += [outcome async for outcome in self._draw(turn, salt)]
        return request

    async def _draw(self, asks: Iterable[Ask], salt: str) -> Any:
        """Yield outcomes; what is drawn at a temperature is drawn anew for every caller."""
        fresh = (
            ask
            if self._reuse or not ask.request.temperature
            else msgspec.structs.replace(ask, purpose=f"{ask.purpose}:{salt}")
            for ask in asks
        )
        async for outcome in self._dispatcher.ask_all(fresh):
            if (problem := outcome.problem) is not None:
                raise UpstreamError(problem.message, problem.status, problem.retry_after)
            yield outcome

    def _measured(self, outcomes: list[Outcome], scored: Measured) -> Measured:
        """Return what was scored with who answered it, and what that took."""
        request = [outcome for outcome in outcomes if outcome.ask.purpose]
        draws = [draw for outcome in request for draw in outcome.draws]
        new = [draw for draw in draws if not draw.cached]
        calls = sum(
            -(-sum(not draw.cached for draw in outcome.draws) // self._dispatcher.chunk)
            for outcome in request
        )
        answers = [
            draw.completion
            for outcome in request
            if Tag.of(outcome.ask).probe.turn == 1
            for draw in outcome.draws
        ]
        return replace(
            scored,
            tokens=sum(draw.completion.usage.completion_tokens for draw in draws),
            new_calls=calls,
            new_tokens=sum(draw.completion.usage.completion_tokens for draw in new),
            cut=cut_off([finished.finish_reason for finished in answers]),
            answered_by=next((finished.model for finished in answers), None),
            fingerprint=next((finished.fingerprint for finished in answers), None),
        )

    def _scored(self, draws: list[Drawn]) -> list[Measured]:
        """Score questions that are made alike in one table."""
        rows = DrawRows()
        for item in draws:
            for outcome in item.outcomes:
                rows.add(self._model, outcome)
        questions = [item.question for item in draws]
        names = [question.question_id for question in questions]
        table = pl.DataFrame(
            {
                "question_id": names,
                "text": [question.text for question in questions],
                "kind": [question.kind for question in questions],
                "choices": [list(question.choices) for question in questions],
            },
            schema_overrides={"choices": pl.List(pl.String)},
        )
        options = rules_of(self.config.semantics)
        if self._reader is not None:
            # One per table: what it has read is of no use to later questions, and takes memory.
            options = replace(options, embedded=replace(self._reader))
        filled, semantics = annotate(rows.frame([self._model], names), table, options=options)
        how = {**self.config.scoring.given, **dict(draws[0].about)}
        scores = score_table(
            filled, semantics, table, methods=[self._method], seed=self.config.seed, **how
        ).scores
        by_name = {row["question_id"]: row for row in scores.iter_rows(named=True)}
        agreed = _agreement(semantics) if self._method in _COUNTED else {}
        return [self._told(by_name.get(name), agreed.get(name)) for name in names]

    def _told(self, row: Mapping[str, Any] | None, agreed: tuple[int, int] | None) -> Measured:
        if row is None:
            return Measured(answer="", why=_SILENT, how_sure=_SILENT)
        answer, confidence = str(row["answer"] or ""), row["confidence"]
        if agreed is not None and agreed[1] > 1:
            equal = f"{agreed[0]} of {agreed[1]} draws"
            why, sure = f"{equal} say {row['answer']}", f"{equal} say the same"
        else:
            known = "no confidence" if confidence is None else f"{self._method} {confidence:.3g}"
            why = sure = known
        return Measured(answer=answer, confidence=confidence, why=why, how_sure=sure)


def _agreement(semantics: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """Return by question how many sampled answers are the most frequent one, and of how many."""
    sampled = semantics.filter(pl.col("purpose") == "answer") if semantics.height else semantics
    agreed: dict[str, tuple[int, int]] = {}
    for row in sampled.group_by("question_id").agg(
        pl.col("class_id").drop_nulls().value_counts(sort=True).struct.field("count").first(),
        pl.len().alias("draws"),
    ).iter_rows():  # fmt: skip
        agreed[row[0]] = (row[1] or 0, row[2])
    return agreed


_Waiting = tuple[Drawn, asyncio.Future[Measured]]


class _Together:
    """Scores in one table what waits at the same time: the work per table is that of twenty rows.

    Parameters
    ----------
    score
        Scores a list of questions, in a thread.
    """

    def __init__(self, score: Any) -> None:
        self._score = score
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def scored(self, drawn: Drawn) -> Measured:
        """Return the score of a question, made together with others."""
        future: asyncio.Future[Measured] = asyncio.get_running_loop().create_future()
        self._waiting.append((drawn, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        while self._waiting:
            batch = self._next()
            draws = [item for item, _ in batch]
            try:
                results: list[Any] = await asyncio.to_thread(self._score, draws)
            except Exception as error:  # noqa: BLE001 - told to whoever asked that question
                results = [error] if len(batch) == 1 else await self._one_by_one(draws)
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    async def _one_by_one(self, draws: list[Drawn]) -> list[Any]:
        """Find the question that cannot be scored, so that it fails alone."""
        results: list[Any] = []
        for item in draws:
            try:
                results += await asyncio.to_thread(self._score, [item])
            except Exception as error:  # noqa: BLE001 - as above
                results.append(error)
        return results

    def _next(self) -> list[_Waiting]:
        """Take what is scored alike; two questions of one name go into two tables."""
        about, names = self._waiting[0][0].about, set[str]()
        batch, remainder = list[_Waiting](), list[_Waiting]()
        for entry in self._waiting:
            name = entry[0].question.question_id
            fits = len(batch) < MOST_TOGETHER and name not in names and entry[0].about == about
            (batch if fits else remainder).append(entry)
            names.add(name)
        self._waiting = remainder
        return batch


def _question(request: Asked) -> PlannedQuestion:
    offered = request.known.get("choices")
    choices = tuple(map(str, offered)) if isinstance(offered, list | tuple) else ()
    kind = str(request.known.get("kind") or ("choice" if choices else "open"))
    return PlannedQuestion(request.question_id, request.text, kind, choices)
