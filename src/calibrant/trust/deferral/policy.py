"""Policies that say what to do next with a question: one step of value, one model, or a mix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from calibrant.core.document import NOT_STORED, Stored, read_by
from calibrant.core.errors import InputError, require_known
from calibrant.trust.deferral.answers import EVERY_QUESTION, VECTOR, QuestionEmbedding
from calibrant.trust.deferral.cascade import Cascade
from calibrant.trust.deferral.mixing import hash_share
from calibrant.trust.deferral.router import Router
from calibrant.trust.deferral.value import ValueModel
from calibrant.trust.policy import CONFIDENCE, Decision, Policy, Row, Said, Step, stated_confidence
from calibrant.trust.traffic_shift import Profile


@dataclass(frozen=True, slots=True)
class ValuePolicy(Stored):
    """Ask on while the chance of a better answer is worth its price.

    Parameters
    ----------
    model
        Chances and costs of every model in every state.
    money
        How much of a chance of being right one unit of cost is worth.
    direct
        Whether the first model is chosen by the question; else the cheapest is asked first.
    """

    stored_as = "value"

    model: ValueModel
    money: float
    direct: bool

    @property
    def models(self) -> list[str]:
        """Names, cheapest first."""
        return list(self.model.models)

    def route(self, question: Row, asked: Mapping[str, Said]) -> Step:
        """Return what to do next with one question.

        Parameters
        ----------
        question
            What is known of it.
        asked
            By model: its confidence (None if it gave none), or a mapping with ``confidence`` and
            the features of its answer.
        """
        model = self.model
        if not asked and not self.direct:
            return Step("ask", model.models[0])
        answers = {}
        require_known(asked, self.models, "the policy has no model {}")
        for name, statement in asked.items():
            at = model.models.index(name)
            row = statement if isinstance(statement, Mapping) else {}
            answers[at] = model.answer_one(at, stated_confidence(statement), row)
        chance, cost = model.expected_one(model.question_one(question), answers)
        first = max(answers) + 1 if answers else 0
        at_hand = max(answers, key=lambda at: (chance[at], -at)) if answers else -1
        value = [chance[j] - self.money * cost[j] for j in range(first, len(chance))]
        if value:
            best = max(range(len(value)), key=lambda k: (value[k], -k))
            if at_hand < 0 or value[best] > chance[at_hand]:
                risk = None if at_hand < 0 else 1.0 - chance[at_hand]
                return Step("ask", model.models[first + best], risk)
        return Step("answer", model.models[at_hand], 1.0 - chance[at_hand])

    def with_dial(self, dial: Any) -> ValuePolicy:
        """Return the policy with another price and start."""
        money, direct = dial
        return ValuePolicy(self.model, float(money), bool(direct))


@dataclass(frozen=True, slots=True)
class AlwaysOne(Stored):
    """Always ask the same model."""

    stored_as = "one"

    models: list[str]
    name: str

    def route(self, question: Row, asked: Mapping[str, Said]) -> Step:  # noqa: ARG002
        """Ask the model, then answer with it."""
        return Step("answer" if self.name in asked else "ask", self.name)

    def with_dial(self, dial: Any) -> AlwaysOne:
        """Return the policy for another model, by its place."""
        return AlwaysOne(self.models, self.models[int(dial)])


Inner = ValuePolicy | AlwaysOne | Cascade | Router
_INNER = {kind.stored_as: kind for kind in (ValuePolicy, AlwaysOne, Cascade, Router)}


def inner_policy(data: Mapping[str, Any]) -> Inner:
    """Return the policy that a mix holds."""
    if data["kind"] not in _INNER:
        raise InputError(f"unknown kind of policy {data['kind']!r}")
    return _INNER[data["kind"]].from_dict(data)


@dataclass(frozen=True)
class MixedPolicy(Policy):
    """Two settings of one policy; a hash of the question says which one it meets.

    A question of a category without enough labels goes to the last model, whose answer is given.

    Parameters
    ----------
    policy
        The policy with its first setting.
    dials
        First and second setting.
    share
        Share of questions that meet the second.
    promise
        Accuracy, cost and how they are known, as plain data.
    made, n, fitted_on, profile, known
        As for every policy; the profile is that of the first model's confidences.
    columns
        What must be known of a question, beside the confidences.
    embedding
        How a text becomes the features of the question, where one is embedded.
    embedder
        What embeds it, see `embed_with`; it is not saved, its name is.
    """

    stored_as = "mixed"

    policy: Inner = field(metadata=read_by(inner_policy))
    dials: tuple[Any, Any]
    share: float
    promise: Mapping[str, Any] = field(default_factory=dict)
    made: str = ""
    n: int = 0
    fitted_on: Mapping[str, Any] = field(default_factory=dict)
    profile: Profile | None = None
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    columns: Sequence[str] = ()
    embedding: Mapping[str, Any] | None = None
    embedder: QuestionEmbedding | None = field(
        default=None, repr=False, compare=False, metadata=NOT_STORED
    )

    def __post_init__(self) -> None:
        pair = tuple(
            self.policy if dial is None else self.policy.with_dial(dial) for dial in self.dials
        )
        object.__setattr__(self, "_pair", pair)

    @property
    def models(self) -> list[str]:
        """Names, cheapest first."""
        return list(self.policy.models)

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that `decide` needs."""
        return (CONFIDENCE, *self.columns)

    def decide(self, row: Row) -> Decision:
        """Say whether the cheapest model's answer may be given, by its confidence and columns."""
        step = self.route(row, {self.models[0]: dict(row)})
        return "answer" if step == Step("answer", self.models[0], step.risk) else "ask"

    def route(self, question: Row, asked: Mapping[str, Said]) -> Step:
        """Return what to do next with one question.

        Parameters
        ----------
        question
            What is known of it. Its ``question_id``, else its ``text``, else all of it decides
            which of the two settings it meets. Where a text was embedded and
            an embedder is given, the text is enough.
        asked
            Answers so far, by model.
        """
        if self.stranger(question):
            last = self.models[-1]
            return Step("answer" if last in asked else "ask", last)
        second = self.share > 0 and hash_share(question_key(question)) < self.share
        policy: Inner = self._pair[1 if second else 0]  # type: ignore[attr-defined]
        return policy.route({**EVERY_QUESTION, **self.described(question)}, asked)

    @classmethod
    def alone(cls, policy: Inner) -> MixedPolicy:
        """Return a policy that was fitted in Python, with the one setting it has and no promise."""
        return cls(policy, (None, None), 0.0)

    def embed_with(self, embedder: Any) -> MixedPolicy:
        """Return the policy with what embeds the text of a question; only its own one is taken."""
        if self.embedding is None:
            return self
        return replace(self, embedder=QuestionEmbedding(self.embedding, embedder))

    def described(self, question: Row) -> Row:
        """Return the question with its embedding, where the policy needs one."""
        if self.embedding is None or VECTOR in question:
            return question
        if self.embedder is not None:
            return self.embedder.described(question)
        column = str(self.embedding["column"])
        if f"{column}_1" not in question:
            raise InputError(
                f"the policy reads {column!r} through an embedding ({self.embedding['embedder']})",
                hint="call policy.embed_with(embedder), as `calibrant serve` does",
            )
        return question


def question_key(question: Row) -> str:
    """Return what stands for a question when it is dealt to one of two settings."""
    for name in ("question_id", "text"):
        if question.get(name) is not None:
            return str(question[name])
    return repr(sorted((str(name), str(value)) for name, value in question.items()))
