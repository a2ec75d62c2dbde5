"""Saved policies: plain JSON in, a policy that decides the same out."""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Struct

from calibrant.core.document import load_document
from calibrant.core.errors import InputError, SchemaError
from calibrant.core.hints import Call, Hint
from calibrant.data.recalibration_map import SCHEMA as MEND_SCHEMA
from calibrant.data.recalibration_map import RecalibrationMap, load_mend
from calibrant.trust.deferral.policy import MixedPolicy, inner_policy
from calibrant.trust.policy import (
    CONFIDENCE,
    SCHEMA,
    Decision,
    Policy,
    Row,
    Said,
    SelectivePolicy,
    Step,
    as_rows,
    stated_confidence,
)
from calibrant.trust.traffic_shift import Change, GuardCheck

_Within = Annotated[float, msgspec.Meta(gt=0, lt=1)]
_Chance = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Group = Annotated[str, msgspec.Meta(min_length=1)]
_DAMAGE = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError,
           RecursionError, StopIteration)  # fmt: skip
_SLACK = 1e-6
_TRIALS = 64
"""Made-up questions on which a policy is tried; a policy of two settings meets both of them."""


class _Promised(Struct, frozen=True):
    max_error: _Within | None = None
    delta: _Within | None = None
    certified: bool = False
    expires: dt.date | None = None
    group: _Group | None = None


class _Recipe(Struct, frozen=True):
    not_live: str | None
    method: str
    settings: dict[str, Any] = {}
    models: dict[str, dict[str, Any]] = {}
    prompt_texts: dict[str, str] = {}
    read_by: str | None = None

    def __post_init__(self) -> None:
        if self.not_live is None and not self.models:
            raise ValueError("it does not say how its models are asked")


class _FittedOn(Struct, frozen=True):
    model: str = ""
    method: str | None = None
    asked: _Recipe | None = None


class _PolicyFile(Struct):
    """What may stand in the file of a policy, whatever its kind."""

    promise: _Promised = _Promised()
    made: str = ""
    n: Annotated[int, msgspec.Meta(ge=0)] = 0
    fitted_on: _FittedOn = _FittedOn()
    known: dict[str, list[str]] = {}
    threshold: _Chance | None = None
    thresholds: dict[str, _Chance | None] | None = None
    share: _Chance = 0.0


def load_policy(path: str | Path) -> Policy:
    """Read what `decide`, `cascade` or `mend` saved.

    Nothing in the file is run: it holds numbers and names. The decisions are those of the policy
    that was saved.
    """
    data = load_document(path)
    if data["schema"] not in (SCHEMA, MEND_SCHEMA):
        rule = f"a policy has the schema {SCHEMA}, got {data['schema']!r}"
        raise SchemaError(rule, source=str(path))
    try:
        msgspec.convert(data, _PolicyFile)
        corrected = data["schema"] == MEND_SCHEMA
        policy = MendedPolicy(load_mend(path)) if corrected else _policy(data)
        return _tried(policy, dict(_features(data)))
    except _DAMAGE as error:
        if isinstance(error, InputError):
            raise SchemaError(error.rule, source=str(path)) from None
        why = " ".join(str(error).replace("`", "").split())
        raise SchemaError(
            f"the policy is damaged, or of another version: {type(error).__name__} {why}",
            source=str(path),
            hint=_fit_again(data, str(path)),
        ) from None


def _policy(data: dict[str, Any]) -> Policy:
    kind = data.get("kind")
    if kind == "selective":
        return SelectivePolicy.from_dict(data)
    if kind == "mixed":
        return MixedPolicy.from_dict(data)
    if kind in ("cascade", "router"):
        # Fitted in Python and saved by itself: one setting, and no promise.
        return MixedPolicy.alone(inner_policy(data))
    if kind == "corrector":
        raise SchemaError(
            "a corrected confidence decides nothing; read it with "
            "calibrant.trust.GroupCorrector.load"
        )
    raise SchemaError(f"unknown kind of policy {kind!r}")


def _tried(policy: Policy, features: Row) -> Policy:
    """Return a policy that decides as policies do; what only a caller would find is found here."""
    names = [*policy.models, *policy.needs]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise SchemaError("its models and columns need names")
    rows = [
        {**dict.fromkeys(policy.needs, 1.0), **features, "text": "", "question_id": str(number),
         **{name: levels[0] for name, levels in policy.known.items() if levels},
         CONFIDENCE: number / (_TRIALS - 1)}
        for number in range(_TRIALS)
    ]  # fmt: skip
    works: list[Callable[[], object]] = [partial(_try_route, policy, row) for row in rows]
    works.append(partial(policy.check, rows))
    for work in works:
        try:
            with np.errstate(over="raise"):
                work()
        except SchemaError:
            raise
        except InputError:
            continue  # of the rows that were made up, not of the policy
    return policy


def _features(data: Any) -> Iterator[tuple[str, str | float]]:
    """Yield a value for every feature that stands anywhere in a file."""
    if isinstance(data, dict) and "levels" in data and isinstance(data.get("name"), str):
        levels = data["levels"]
        yield data["name"], levels[0] if isinstance(levels, list) and levels else 1.0
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    for part in parts:
        yield from _features(part)


def _try_route(policy: Policy, row: Row) -> None:
    request: dict[str, Row] = {}
    while (step := policy.route(row, request)).action == "ask":
        if step.model not in policy.models or step.model in request:
            raise SchemaError(f"the policy asks {step.model!r}, and has {policy.models}")
        request[step.model] = row
    if step.risk is not None and not -_SLACK <= step.risk <= 1 + _SLACK:
        raise SchemaError(f"the policy tells a risk of {step.risk}")


def _fit_again(data: Mapping[str, Any], path: str) -> Hint:
    """Return how to make a policy anew that cannot be read, as far as the file says it."""
    matches = (data.get(name) for name in ("fitted_on", "promise"))
    fitted, promise = (part if isinstance(part, dict) else {} for part in matches)
    needs = data.get("needs")
    verb = "decide" if data.get("kind") == "selective" else "cascade"
    options: dict[str, Any] = {}
    if verb == "decide":
        options["max_error"] = promise.get("max_error")
    columns = [str(n) for n in needs if n != CONFIDENCE] if isinstance(needs, list) else []
    if data["schema"] == MEND_SCHEMA:
        verb, options, columns = "mend", {}, []
    if columns:
        options["features"] = columns
    return Hint(
        "fit it again on the same labels: {call}",
        call=Call(verb, fitted.get("source") or "TABLE", **options, save=path),
    )


class MendedPolicy(Policy):
    """What `mend` saved, with the methods of every policy.

    Parameters
    ----------
    mend
        The map from a stated confidence to a chance of being right.
    """

    profile = None
    known: Mapping[str, Sequence[str]] = {}

    def __init__(self, mend: RecalibrationMap) -> None:
        self.mend = mend
        self.promise, self.made, self.n = mend.promise, mend.made, mend.n
        self.fitted_on = mend.fitted_on

    @property
    def models(self) -> list[str]:
        """The one model whose confidence was mended."""
        return [self.mend.model or "model"]

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that `decide` needs."""
        return (CONFIDENCE,)

    def probability(self, confidence: float) -> float:
        """Return the chance that an answer with this confidence is right."""
        return self.mend.probability(confidence)

    def decide(self, row: Row) -> Decision:
        """Answer wherever there is a confidence: no limit on the error was asked for."""
        return "ask" if stated_confidence(row) is None else "answer"

    def route(self, question: Row, asked: Mapping[str, Said]) -> Step:  # noqa: ARG002
        """Ask the model, then answer with the chance of an error."""
        (name,) = self.models
        if name not in asked:
            return Step("ask", name)
        confidence = stated_confidence(asked[name])
        if confidence is None:
            return Step("defer", name)
        return Step("answer", name, 1.0 - self.mend.probability(confidence))

    def check(self, rows: Any) -> GuardCheck:
        """Test whether confidences of unlabelled traffic are still those of the labels."""
        value = [row.get(CONFIDENCE) for row in as_rows(rows)]
        if not value:
            raise InputError("a check needs rows with a confidence")
        shift = self.mend.check(value)
        changes = [Change(CONFIDENCE, shift.p, None, 0.0, 0.0)] if shift.shifted else []
        outcome = "expired" if shift.shifted else "as certified"
        return GuardCheck(outcome, len(value), {}, changes, (), self.promise)  # type: ignore[arg-type]

    @property
    def ends_when(self) -> str:
        """What ends the promise, in a sentence."""
        return "It ends when the confidences change; policy.check(rows) tests it."

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain data."""
        return {"schema": MEND_SCHEMA, **self.mend.to_dict()}
