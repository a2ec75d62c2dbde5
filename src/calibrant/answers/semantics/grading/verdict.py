"""One verdict, and what the embedded judge makes of those that words have decided."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.answers.semantics.grading import doubt
from calibrant.answers.semantics.judge import mask_instructions
from calibrant.answers.semantics.text.encoding import clean_text

if TYPE_CHECKING:
    from calibrant.models.inference.judge import EmbeddedJudge

References = str | Sequence[str] | Sequence[Sequence[str]] | None


@dataclass(frozen=True, slots=True)
class Grade:
    """One verdict.

    Parameters
    ----------
    correct
        True, False, or None where nothing was attempted or there is nothing to grade by.
    grader
        The rule or grader that decided.
    reason
        attempted, refusal, empty, unparsed or no reference.
    probability
        The chance that people would accept the answer: of the phrase model, or of the rule.
    """

    correct: bool | None
    grader: str
    reason: str = "attempted"
    probability: float | None = None

    @property
    def doubtful(self) -> bool:
        """Whether a judge or a person should look at it: people may well see it otherwise."""
        return doubt.is_doubtful(self.correct, self.probability)

    @property
    def by_words(self) -> bool:
        """Whether words alone decided, so that a judge may see it otherwise."""
        return self.correct is not None and self.grader in doubt.WORDS


def flatten_references(references: References) -> list[str]:
    """Return all aliases of all right answers as one list.

    Examples
    --------
    >>> flatten_references([["USA", "United States"], ["France"]])
    ['USA', 'United States', 'France']
    >>> flatten_references("Paris"), flatten_references(None)
    (['Paris'], [])
    """
    if references is None:
        return []
    entries = [references] if isinstance(references, str) else references
    answers = ([entry] if isinstance(entry, str) else entry or () for entry in entries)
    return [alias for aliases in answers for alias in aliases if alias is not None]


def read_again(
    judge: EmbeddedJudge | None,
    grades: Sequence[Grade],
    asked: Sequence[tuple[str | bytes | None, References, str | None]],
) -> list[Grade]:
    """Return the grades with what the judge makes of those that words have decided."""
    result = list(grades)
    if judge is None:
        return result
    places = [place for place, grade in enumerate(grades) if grade.by_words]
    queries = []
    for place in places:
        answer, references, question = asked[place]
        texts = (clean_text(text)[0] for text in flatten_references(references))
        label = mask_instructions(clean_text(answer)[0]).text
        queries.append((question or "", tuple(text for text in texts if text.strip()), label))
    for place, score in zip(places, judge.scores(queries), strict=True):
        words = grades[place]
        chance = doubt.joined(words.probability or 0.0, float(score))
        result[place] = Grade(chance >= 0.5, f"{words.grader}, read", probability=chance)
    return result


def embedded_judge(
    kept: Path | None = None, tell: Callable[[int, int], None] | None = None
) -> EmbeddedJudge | None:
    """Return the embedded judge where its weights were fetched and nobody turned it off."""
    if os.environ.get("CALIBRANT_JUDGE") == "none":
        return None
    # Loaded here: rules need nothing that talks to models.
    from calibrant.models.inference.judge import EmbeddedJudge, available

    return EmbeddedJudge(kept, tell=tell) if available() else None
