"""An answer and its confidence, live: measured exactly as the policy's labels were."""

import asyncio
import hashlib
import math
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import polars as pl

from calibrant.answers.confidence import METHODS, Options, needs_of, score_table
from calibrant.answers.semantics.annotate import annotate
from calibrant.apps.serving.given import GivenAnswer, check_scorable, scoring_of, silent_about
from calibrant.core.errors import ClientError, InputError
from calibrant.models import Dispatcher
from calibrant.models.asks import Ask
from calibrant.models.endpoints.factory import open_client
from calibrant.models.ledger import Ledger
from calibrant.models.protocol import Completion, Json, Request
from calibrant.models.study.config import StudyConfig
from calibrant.models.study.endpoints import open_client as open_study_client
from calibrant.models.study.needs import select_probes
from calibrant.models.study.plan import Inquiry, PlannedQuestion
from calibrant.models.study.recipe import recipe_config
from calibrant.models.study.runner import collect
from calibrant.trust.policy_file import Row
from calibrant.verbs.study.meanings import answer_in, rules_of

PATIENCE_S = 60.0
PATIENCE: dict[str, Any] = {"max_attempts": 3, "patience_s": 8.0}
"""A caller waits: an endpoint that is too busy for longer is handed on as such, with its wait."""
KINDS = ("open", "choice", "number", "binary")


class UpstreamError(Exception):
    """An endpoint gave no answer; `status` is what it said over HTTP."""

    def __init__(
        self, message: str, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True)
class Asked:
    """A caller's question: its own request, its text, and what it says about it."""

    body: Mapping[str, Json]
    text: str
    known: Row = field(default_factory=dict)

    @property
    def question_id(self) -> str:
        """The caller's name of the question, or one made from its text."""
        named = self.known.get("question_id")
        digest = hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()
        return digest if named is None else str(named)


@dataclass(frozen=True)
class Measured:
    """An answer, its confidence and why, and what they took.

    `response` is the endpoint's own, where the caller's request was passed on.
    """

    answer: str | None
    confidence: float | None
    why: str
    tokens: int = 0
    new_calls: int = 0
    new_tokens: int = 0
    response: Mapping[str, object] | None = None
    extra: Row = field(default_factory=dict)


NOTHING = Measured(None, None, "")
"""Before any model was asked."""


# -- the caller's own request, scored by its own tokens --------------------------------------------


PASSED_ON: dict[str, Callable[[list[float]], float]] = {
    "perplexity": lambda values: math.exp(math.fsum(values) / len(values)),
    "sequence_probability": lambda values: math.exp(math.fsum(values)),
    "min_token_probability": lambda values: math.exp(min(values)),
}
"""Confidences that the tokens of the very answer give; any request can be passed on for them."""
ENDPOINT = "endpoint"
"""The endpoint states the confidence itself, as ``calibrant.answers.confidence`` of its answer."""


class PassedOn:
    """Pass a caller's request on, and score the answer by its own tokens.

    Parameters
    ----------
    model, address, key_env
        The model as the endpoint calls it, where that is, and which variable holds its key.
    ledger
        Where every call is kept.
    method
        One of `PASSED_ON`, or `ENDPOINT`.
    reuse
        Answer a request from the ledger also where it is drawn at a temperature.
    """

    def __init__(
        self, model: str, address: str, key_env: str | None, ledger: Ledger, *,
        method: str = ENDPOINT, reuse: bool = False,
    ) -> None:  # fmt: skip
        spec = {"kind": "openai", "model": model, "base_url": address, "api_key_env": key_env or ""}
        self.client = open_client(spec)
        self._model, self._method, self._reuse = model, method, reuse
        self._dispatcher = Dispatcher(self.client, ledger, retry_failures=True, **PATIENCE)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()

    calls = 1

    async def score(self, asked: Asked, answer: str) -> Measured:  # noqa: ARG002
        """Refuse: only the tokens of the endpoint's own answer have probabilities."""
        raise InputError(
            f"{self._method} reads the tokens of the model's own answer, and a given one has none",
            hint="certify a policy of a study on self_ask, p_true_prob or consistency",
        )

    def key(self, asked: Asked) -> bytes:
        """Return the request as it is sent."""
        return orjson.dumps(self._body(asked), option=orjson.OPT_SORT_KEYS)

    def _body(self, asked: Asked) -> dict[str, Json]:
        more = {"logprobs": True} if self._method in PASSED_ON else {}
        return {**asked.body, **more}

    async def measure(self, asked: Asked) -> Measured:
        """Ask the endpoint, or the ledger where the answer cannot differ."""
        body = self._body(asked)
        request = Request(self._model, (), logprobs=self._method in PASSED_ON, body=body)
        once = self._reuse or body.get("temperature") == 0
        purpose = "served" if once else f"served:{secrets.token_hex(8)}"
        async with patience():
            (outcome,) = [o async for o in self._dispatcher.ask_all([Ask(request, purpose)])]
        if (problem := outcome.problem) is not None:
            raise UpstreamError(problem.message, problem.status, problem.retry_after)
        draw = outcome.draws[0]
        done = draw.completion
        tokens, new = done.usage.completion_tokens, int(not draw.cached)
        stated = (done.response or {}).get("calibrant")
        said: Row = stated if isinstance(stated, dict) else {}
        confidence, why = self._confidence(done, said)
        return Measured(
            done.text, confidence, why, tokens, new, new * tokens, done.response, extra=said
        )

    def _confidence(self, done: Completion, said: Row) -> tuple[float | None, str]:
        if self._method == ENDPOINT:
            stated = said.get("confidence")
            if isinstance(stated, int | float) and 0 <= stated <= 1:
                return float(stated), "stated by the endpoint"
            return None, "the endpoint states none"
        if not done.logprobs:
            return None, done.logprobs_refused or "the endpoint gave no log-probs"
        values = [token.logprob for token in done.logprobs]
        return PASSED_ON[self._method](values), f"{self._method} of {len(values)} tokens"


# -- as a study asks -------------------------------------------------------------------------------


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
    """

    def __init__(
        self, recipe: Mapping[str, Any], model: str, address: str | None, key_env: str | None,
        ledger: Ledger, *, source: str,
    ) -> None:  # fmt: skip
        self._folder = tempfile.TemporaryDirectory()
        self.config: StudyConfig = recipe_config(
            recipe, model, address=address, key_env=key_env,
            folder=Path(self._folder.name), source=source,
        )  # fmt: skip
        self.client = open_study_client(self.config.models[0], source=source)
        self._model, self._method, self._ledger = model, str(recipe["method"]), ledger
        self._needs = needs_of(METHODS[self._method], Options(**self.config.scoring.given))
        needs, able = {self._method: self._needs}, self.client.capabilities
        self._wanted = select_probes(needs, self.config, able, kinds=KINDS, model=model).wanted

    async def close(self) -> None:
        """Close the connections; the prompts are not needed any more."""
        await self.client.close()
        self._folder.cleanup()

    def key(self, asked: Asked) -> bytes:
        """Return the question."""
        return repr((asked.question_id, asked.text, sorted(asked.known.items(), key=str))).encode()

    async def measure(self, asked: Asked) -> Measured:
        """Ask for everything that the method needs, and score it."""
        question = _question(asked)
        async with patience():
            inquiry = Inquiry(
                self.config, [question], {self._model: self._wanted}, {self._model: self.client},
                {self._model: None}, answer_in,
            )  # fmt: skip
            collected = await collect(inquiry, self._ledger, retry_failures=True, **PATIENCE)
        if collected.failures:
            raise UpstreamError(collected.failures[0].reason, collected.failures[0].status)
        counts = collected.counts[self._model]
        measured = await asyncio.to_thread(self._scored, question, collected.draws)
        return Measured(
            *measured,
            tokens=int(collected.draws["completion_tokens"].sum() or 0),
            new_calls=counts.calls,
            new_tokens=counts.completion_tokens,
        )

    async def score(self, asked: Asked, answer: str) -> Measured:
        """Ask how sure the model is of an answer that is at hand, in the way that was certified."""
        check_scorable(self._method, self._needs)
        question = _question(asked)
        dispatcher = Dispatcher(self.client, self._ledger, retry_failures=True, **PATIENCE)
        given = GivenAnswer(self.config, self._wanted, self.client, dispatcher, answer_in)
        async with patience():
            draws, outcomes = await given.draws(question, answer)
        for problem in (outcome.problem for outcome in outcomes):
            if problem is not None:
                raise UpstreamError(problem.message, problem.status, problem.retry_after)
        how = scoring_of(self._method)
        own, confidence, why = await asyncio.to_thread(self._scored, question, draws, how)
        if confidence is not None and (silent := silent_about(answer, own, question.text)):
            confidence, why = None, silent
        counts = dispatcher.progress
        return Measured(
            answer, confidence, why, counts.completion_tokens, counts.calls,
            counts.completion_tokens,
        )  # fmt: skip

    @property
    def calls(self) -> int:
        """Calls that one question takes at most."""
        most = max(1, self.client.capabilities.native_n)
        return sum(-(-draws // most) for draws in self._wanted.draws.values())

    def _scored(
        self, question: PlannedQuestion, draws: pl.DataFrame, about: Mapping[str, str] | None = None
    ) -> tuple[str, float | None, str]:
        table = pl.DataFrame(
            {
                "question_id": [question.question_id],
                "text": [question.text],
                "kind": [question.kind],
                "choices": [list(question.choices)],
            },
            schema_overrides={"choices": pl.List(pl.String)},
        )
        rules = rules_of(self.config.semantics)
        filled, semantics = annotate(draws, table, options=rules)
        how = {**self.config.scoring.given, **(about or {})}
        scored = score_table(
            filled, semantics, table, methods=[self._method], seed=self.config.seed, **how
        )
        if not scored.scores.height:
            return "", None, "no confidence could be computed"
        row = scored.scores.row(0, named=True)
        return str(row["answer"] or ""), row["confidence"], _why(semantics, row, self._method)


Measure: TypeAlias = PassedOn | AsInStudy
"""One model, asked in the way that was certified."""


@asynccontextmanager
async def patience() -> AsyncIterator[None]:
    """Wait no longer than a caller does; an endpoint that cannot be asked is an UpstreamError."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield
    except TimeoutError:
        raise UpstreamError(f"no answer within {PATIENCE_S:g} s", 504) from None
    except ClientError as error:
        after = getattr(error, "retry_after", None)
        raise UpstreamError(str(error), error.status, after) from None


def _question(asked: Asked) -> PlannedQuestion:
    offered = asked.known.get("choices")
    choices = tuple(map(str, offered)) if isinstance(offered, Iterable) else ()
    kind = str(asked.known.get("kind") or ("choice" if choices else "open"))
    return PlannedQuestion(asked.question_id, asked.text, kind, choices)


def _why(semantics: pl.DataFrame, row: Mapping[str, object], method: str) -> str:
    sampled = semantics.filter(pl.col("purpose") == "answer") if semantics.height else semantics
    if sampled.height > 1 and method in ("consistency", "sem1", "sem2", "sca"):
        most = sampled["class_id"].drop_nulls().value_counts(sort=True)
        same = most["count"][0] if most.height else 0
        return f"{same} of {sampled.height} draws say {row['answer']}"
    return f"{method} {row['confidence']:.3g}"


def check_method(method: str, source: str) -> None:
    """Refuse a method that a table's policy cannot be served with."""
    methods = (*PASSED_ON, ENDPOINT)
    if method not in methods:
        raise InputError(
            f"a confidence of a table is served as one of {', '.join(methods)}, got {method!r}",
            source=source,
        )
