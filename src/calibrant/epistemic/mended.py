"""A mended confidence as a policy: it always answers, and says how often such answers are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.core.errors import InputError
from calibrant.epistemic.deferral.cascade import Step
from calibrant.epistemic.guard import Change, GuardCheck
from calibrant.epistemic.policy import CONFIDENCE, Decision, Policy, Row, as_rows
from calibrant.records.mend_map import SCHEMA, MendMap


class MendedPolicy(Policy):
    """What `mend` saved, with the methods of every policy.

    Parameters
    ----------
    mend
        The map from a stated confidence to a chance of being right.
    """

    profile = None
    known: Mapping[str, Sequence[str]] = {}

    def __init__(self, mend: MendMap) -> None:
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
        confidence = row.get(CONFIDENCE)
        if confidence is None or confidence != confidence:
            return "ask"
        self.mend.probability(confidence)
        return "answer"

    def route(self, question: Row, asked: Mapping[str, Any]) -> Step:  # noqa: ARG002
        """Ask the model, then answer with the chance of an error."""
        (name,) = self.models
        if name not in asked:
            return Step("ask", name)
        said = asked[name][CONFIDENCE] if isinstance(asked[name], Mapping) else asked[name]
        if said is None:
            return Step("defer", name)
        return Step("answer", name, 1.0 - self.mend.probability(said))

    def check(self, rows: Any) -> GuardCheck:
        """Test whether confidences of unlabelled traffic are still those of the labels."""
        given = [row.get(CONFIDENCE) for row in as_rows(rows)]
        if not given:
            raise InputError("a check needs rows with a confidence")
        found = self.mend.check(given)
        changes = [Change(CONFIDENCE, found.p, None, 0.0, 0.0)] if found.shifted else []
        outcome = "expired" if found.shifted else "as certified"
        return GuardCheck(outcome, len(given), {}, changes, (), self.promise)  # type: ignore[arg-type]

    @property
    def ends_when(self) -> str:
        """What ends the promise, in a sentence."""
        return "It ends when the confidences change; policy.check(rows) tests it."

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain data."""
        return {"schema": SCHEMA, **self.mend.to_dict()}
