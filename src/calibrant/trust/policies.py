"""Saved policies: plain JSON in, a policy that decides the same out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.core.document import load_document
from calibrant.core.errors import InputError, SchemaError
from calibrant.core.hints import Call, Hint
from calibrant.data.mend.recalibration_map import SCHEMA as MEND_SCHEMA
from calibrant.data.mend.recalibration_map import RecalibrationMap, load_mend
from calibrant.trust.deferral.policy import MixedPolicy, inner_policy
from calibrant.trust.policy import Decision, Policy, as_rows
from calibrant.trust.policy_file import CONFIDENCE, SCHEMA, Row, Said, Step, stated_confidence
from calibrant.trust.selective.policy import SelectivePolicy
from calibrant.trust.traffic_shift import Change, GuardCheck


def load_policy(path: str | Path) -> Policy:
    """Read what `decide`, `cascade` or `mend` saved.

    Nothing in the file is run: it holds numbers and names. The decisions are those of the policy
    that was saved.
    """
    data = load_document(path)
    if data["schema"] == MEND_SCHEMA:
        return MendedPolicy(load_mend(path))
    if data["schema"] != SCHEMA:
        raise SchemaError(
            f"a policy has the schema {SCHEMA}, got {data['schema']!r}", source=str(path)
        )
    try:
        return _policy(data)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise SchemaError(
            f"the policy is damaged, or of another version: {type(error).__name__} {error}",
            source=str(path),
            hint=_fit_again(data, str(path)),
        ) from None
    except SchemaError as error:
        raise SchemaError(error.rule, source=str(path)) from None


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


def _fit_again(data: Mapping[str, Any], path: str) -> Hint:
    """Return how to make a policy anew that cannot be read, as far as the file says it."""
    fitted, promise, needs = (data.get(name) or {} for name in ("fitted_on", "promise", "needs"))
    verb = "decide" if data.get("kind") == "selective" else "cascade"
    options = {"max_error": promise.get("max_error")} if verb == "decide" else {}
    columns = [name for name in needs if name != CONFIDENCE]
    return Hint(
        "fit it again on the same labels: {call}",
        call=Call(verb, fitted.get("source") or "TABLE", **options, features=columns, save=path),
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
        said = stated_confidence(asked[name])
        if said is None:
            return Step("defer", name)
        return Step("answer", name, 1.0 - self.mend.probability(said))

    def check(self, rows: Any) -> GuardCheck:
        """Test whether confidences of unlabelled traffic are still those of the labels."""
        given = [row.get(CONFIDENCE) for row in as_rows(rows)]
        if not given:
            raise InputError("a check needs rows with a confidence")
        shift = self.mend.check(given)
        changes = [Change(CONFIDENCE, shift.p, None, 0.0, 0.0)] if shift.shifted else []
        outcome = "expired" if shift.shifted else "as certified"
        return GuardCheck(outcome, len(given), {}, changes, (), self.promise)  # type: ignore[arg-type]

    @property
    def ends_when(self) -> str:
        """What ends the promise, in a sentence."""
        return "It ends when the confidences change; policy.check(rows) tests it."

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain data."""
        return {"schema": MEND_SCHEMA, **self.mend.to_dict()}
