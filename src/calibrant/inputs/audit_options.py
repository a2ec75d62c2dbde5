"""What shapes an audit, gathered once and handed down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.inputs.settings import table_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """The options of `audit`; their meaning is told there.

    Parameters
    ----------
    columns
        Column names by role (confidence, correct, model, method, question, answer, weights,
        cluster); None stands for the name in the scores schema, or one that is like it.
    by, bins, level, resamples, recalibrate, on_invalid, graded, scale, right, repeats, engine, seed
        As for `audit`.
    meaning_bins
        Bins of calibration errors over meanings: Sem-ECE, and the scores that it is made of.
    unlimited_draws
        As for `audit`.
    labels
        Store of labels that people made, as for `audit`.
    named_metrics
        Metrics that were asked for by name, beside those of every audit.

    Examples
    --------
    >>> options = AuditOptions(columns={"confidence": "p", "model": None}, bins=10)
    >>> options.settings["bins"], options.settings["columns"]
    (10, {'confidence': 'p'})
    """

    columns: Mapping[str, Any]
    by: tuple[str, ...] = ()
    bins: int = 15
    level: float = 0.95
    resamples: int = 1000
    recalibrate: str | None = None
    on_invalid: str | None = None
    graded: bool = False
    scale: str | None = None
    right: str | None = None
    repeats: bool = False
    engine: str | None = None
    seed: int = 0
    meaning_bins: int = 10
    unlimited_draws: bool = False
    named_metrics: tuple[str, ...] = ()
    labels: Any = None

    @property
    def metrics(self) -> dict[str, Any]:
        """How the numbers of a block are made."""
        names = ("bins", "level", "resamples", "seed")
        return {name: getattr(self, name) for name in names}

    @property
    def rules(self) -> dict[str, Any]:
        """Which rows are taken, and how their cells are read."""
        names = ("on_invalid", "graded", "scale", "right", "repeats")
        return {name: getattr(self, name) for name in names}

    def bins_of(self, method: str) -> int:
        """Return the bins of a method's calibration error: one number for one quantity."""
        return self.meaning_bins if method in ("sem1", "sem2") else self.bins

    @property
    def needs_all_rows(self) -> str | None:
        """The option that needs all rows of a question, a model or the table at once, if any."""
        asked = {
            "weights": self.columns["weights"],
            "cluster": self.columns.get("cluster"),
            "right": self.right,
            "recalibrate": self.recalibrate,
            "graded": self.graded,
            "repeats": self.repeats,
            "metrics": self.named_metrics,
            "labels": self.labels,
        }
        return next((name for name, given in asked.items() if given), None)

    @property
    def settings(self) -> dict[str, Any]:
        """What the document says about how it was made; the seed stands beside it.

        Not the engine: the numbers do not depend on it.
        """
        return {
            "bins": self.bins,
            "level": self.level,
            "resamples": self.resamples,
            "recalibrate": self.recalibrate,
            "by": list(self.by),
            **({"metrics": list(self.named_metrics)} if self.named_metrics else {}),
            **({"labels": str(self.labels)} if self.labels else {}),
            **table_settings({**self.rules, **self.columns}),
        }
