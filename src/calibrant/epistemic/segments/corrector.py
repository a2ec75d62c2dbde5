"""A corrected confidence: what the confidence says over all rows, plus what the groups say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats
from calibrant.core.document import dump_document, load_document
from calibrant.core.errors import InputError, SchemaError
from calibrant.epistemic.features import as_frame
from calibrant.epistemic.linear import ConfidenceBasis
from calibrant.epistemic.segments.conditions import Rule

_RIDGE = 1e-8


@dataclass(frozen=True, slots=True)
class GroupCorrector:
    """Recalibrate a confidence over all rows and shift it within the groups that stand out.

    Parameters
    ----------
    basis, coefficients
        The recalibration over all rows.
    rules, shifts
        Groups and what is added within each.
    made, n, fitted_on
        Date, labels and origin, for the saved file.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> topic = rng.choice(["law", "maths"], size=3000)
    >>> right = (rng.random(3000) < np.where(topic == "law", 0.5, 0.9)).astype(float)
    >>> from calibrant.epistemic.segments.conditions import Condition
    >>> law = Rule((Condition("topic", "=", "law"),))
    >>> corrector = fit_corrector([law], {"topic": topic}, np.full(3000, 0.7), right)
    >>> corrector.predict({"topic": ["law", "maths"]}, [0.7, 0.7]).round(1).tolist()
    [0.5, 0.9]
    >>> round(corrector.predict_one({"topic": "law"}, 0.7), 1)
    0.5
    """

    basis: ConfidenceBasis
    coefficients: Floats
    rules: tuple[Rule, ...]
    shifts: tuple[float, ...]
    made: str = ""
    n: int = 0
    fitted_on: Mapping[str, Any] = field(default_factory=dict)

    def recalibrated(self, confidence: npt.ArrayLike) -> Floats:
        """Return the recalibrated confidence of a row that lies in none of the groups."""
        f = np.asarray(confidence, dtype=np.float64)
        rates: Floats = np.clip(self.basis.transform(f) @ self.coefficients, 0.0, 1.0)
        return rates

    def predict(self, features: Any, confidence: npt.ArrayLike) -> Floats:
        """Return the corrected confidence per row."""
        f = np.asarray(confidence, dtype=np.float64)
        rates = self.basis.transform(f) @ self.coefficients
        if self.rules:
            frame = as_frame(features)
            for rule, shift in zip(self.rules, self.shifts, strict=True):
                rates = rates + shift * rule.mask(frame)
        return np.clip(rates, 0.0, 1.0)

    def predict_one(self, row: Mapping[str, Any], confidence: float) -> float:
        """Return the corrected confidence of one answer."""
        if not 0.0 <= confidence <= 1.0:
            raise InputError(f"a confidence must be between 0 and 1, got {confidence!r}")
        rate = float(self.basis.transform(np.array([confidence]))[0] @ self.coefficients)
        for rule, shift in zip(self.rules, self.shifts, strict=True):
            rate += shift if rule.holds(row) else 0.0
        return min(max(rate, 0.0), 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the corrector as plain data."""
        return {
            "schema": "calibrant.policy/1",
            "kind": "corrector",
            "made": self.made,
            "n": self.n,
            "fitted_on": dict(self.fitted_on),
            "basis": self.basis.to_dict(),
            "coefficients": self.coefficients.tolist(),
            "groups": [
                {**rule.to_dict(), "shift": shift}
                for rule, shift in zip(self.rules, self.shifts, strict=True)
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GroupCorrector:
        """Return the corrector that `to_dict` described."""
        return cls(
            ConfidenceBasis.from_dict(data["basis"]),
            np.asarray(data["coefficients"], dtype=np.float64),
            tuple(Rule.from_dict(group) for group in data["groups"]),
            tuple(float(group["shift"]) for group in data["groups"]),
            data["made"],
            int(data["n"]),
            data["fitted_on"],
        )

    @classmethod
    def load(cls, path: str | Path) -> GroupCorrector:
        """Read what `save` wrote; nothing in the file is run."""
        data = load_document(path)
        if data.get("kind") != "corrector":
            raise SchemaError("this is no corrected confidence", source=str(path))
        return cls.from_dict(data)

    def save(self, path: str | Path) -> None:
        """Write the corrector as JSON."""
        Path(path).write_bytes(dump_document(self.to_dict()))


def fit_corrector(
    rules: Sequence[Rule], features: Any, confidence: npt.ArrayLike, correct: npt.ArrayLike
) -> GroupCorrector:
    """Fit the recalibration and the shifts of the groups together, by least squares."""
    f = np.asarray(confidence, dtype=np.float64)
    y = np.asarray(correct, dtype=np.float64)
    frame = as_frame(features)
    basis = ConfidenceBasis().fit(f)
    columns = basis.transform(f)
    width = columns.shape[1]
    design = np.column_stack([columns, *(rule.mask(frame) for rule in rules)])
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += _RIDGE * len(y)
    fitted = np.linalg.solve(gram, design.T @ y)
    return GroupCorrector(
        basis,
        fitted[:width],
        tuple(rules),
        tuple(float(shift) for shift in fitted[width:]),
        n=len(y),
    )
