"""How a foreign log is to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Choices that a log itself cannot make.

    Parameters
    ----------
    grade
        The scorer (Inspect), metric (lm-eval, HELM) or column that decides what is right; None
        takes the first that gives a grade.
    filter
        The filter of lm-eval whose rows are used; None takes the first.
    scale
        ``"fraction"``, or ``"percent"`` where the log states confidences as percentages.
    columns
        Names of the columns of a plain table, by role: confidence, correct, question, model,
        method, answer.
    texts
        Keep the replies; an audit does not need them where the log names the answers.
    """

    grade: str | None = None
    filter: str | None = None
    scale: str = "fraction"
    columns: Mapping[str, str] = field(default_factory=dict)
    texts: bool = True

    def fraction(self, confidence: float) -> float:
        """Return a confidence of the log as a fraction."""
        return confidence / 100.0 if self.scale == "percent" else confidence
