"""One verdict, how sure it is, what the embedded judge makes of it, and agreement with people."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.answers.semantics.cluster import first_appearance
from calibrant.answers.semantics.judge import mask_instructions
from calibrant.answers.semantics.text.normalise import clean_text
from calibrant.core import Estimate, InputError, UndefinedMetricWarning, named_stream
from calibrant.metrics.stats.graded_estimates import DOUBT

if TYPE_CHECKING:
    from calibrant.models.inference.judge import EmbeddedJudge

# The chance that a rule is right: sure ones were in 98 % of 1,903 answers that people judged, the
# doubted ones in 79 % of 220.
SURE, DOUBTED_SHARE = 0.99, 0.8
DOUBTED = frozenset(
    (
        "date", "year", "denied", "figures", "clash", "look-alike", "negation", "list",
        "missing unit", "range", "embedding", "middle name", "leftover word", "younger or older",
        "code",
    )
)  # fmt: skip
# What types leave open although they can read both sides: words decide, and doubt stays.
OPEN = frozenset(
    (
        "code", "range", "formula", "complexity", "nearly equal", "negation", "part of a list",
        "era", "look-alike",
    )
)  # fmt: skip
_LEAST_OPEN = 0.9


def ruled(correct: bool, rule: str) -> Grade:
    """Return the grade that a rule gives: doubted rules are right less often."""
    sure = DOUBTED_SHARE if rule in DOUBTED else SURE
    return Grade(correct, rule, probability=sure if correct else 1.0 - sure)


def kept_open(probability: float) -> float:
    """Return a probability that is at most so sure, where something speaks against the words."""
    return min(max(probability, 1.0 - _LEAST_OPEN), _LEAST_OPEN)


def is_doubtful(correct: bool | None, probability: float | None) -> bool:
    """Return whether people may well see it otherwise.

    Examples
    --------
    >>> is_doubtful(True, 0.99), is_doubtful(True, 0.9), is_doubtful(False, 0.2)
    (False, True, True)
    """
    if correct is None or probability is None:
        return False
    return (1.0 - probability if correct else probability) > DOUBT


# What words decided, and a judge that reads may see otherwise; typed rules keep the last word.
WORDS = frozenset(("phrase", "denied", "figures", "embedding"))
# Log-odds of the words and of the judge, joined by a logistic regression on 1,964 answers that
# people judged, none of whose questions the judge had seen.
_BEGIN, _OF_WORDS, _OF_JUDGE = 0.162, 0.473, 0.641
_LEAST_WORDS, _MOST_JUDGE = 0.005, 8.0
# From here on the judge speaks against the words: never sure, whoever is right.
_AGAINST = 1.5


def joined(probability: float, score: float) -> float:
    """Return the chance that an answer is right, from its words and a judge's log-odds.

    Examples
    --------
    >>> round(joined(0.9, 4.0), 3), round(joined(0.9, -4.0), 3), round(joined(0.2, 1.0), 2)
    (0.977, 0.204, 0.54)
    """
    share = min(max(probability, _LEAST_WORDS), 1.0 - _LEAST_WORDS)
    words = math.log(share / (1.0 - share))
    judge = min(max(score, -_MOST_JUDGE), _MOST_JUDGE)
    result = 1.0 / (1.0 + math.exp(-(_BEGIN + _OF_WORDS * words + _OF_JUDGE * judge)))
    against = judge < -_AGAINST if probability >= 0.5 else judge > _AGAINST
    return kept_open(result) if against else result


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
        return is_doubtful(self.correct, self.probability)

    @property
    def by_words(self) -> bool:
        """Whether words alone decided, so that a judge may see it otherwise."""
        return self.correct is not None and self.grader in WORDS


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
    for answer, references, question in (asked[place] for place in places):
        texts = (clean_text(text)[0] for text in flatten_references(references))
        label = mask_instructions(clean_text(answer)[0]).text
        queries.append((question or "", tuple(filter(str.strip, texts)), label))
    for place, score in zip(places, judge.scores(queries), strict=True):
        words = grades[place]
        chance = joined(words.probability or 0.0, float(score))
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


Label = bool | None


def cohen_kappa(confusion: npt.ArrayLike) -> float:
    """Return Cohen's kappa of a square table of counts.

    Agreement beyond chance: 1 is full agreement, 0 what two independent markers with these
    rates reach, negative is worse. NaN where chance alone gives full agreement (both use one
    label throughout) or the table is empty.

    References
    ----------
    Cohen, A coefficient of agreement for nominal scales (1960).

    Examples
    --------
    >>> round(cohen_kappa([[20, 5], [10, 15]]), 3)
    0.4
    """
    table = np.asarray(confusion, dtype=float)
    total = table.sum()
    if total == 0:
        return math.nan
    observed = np.trace(table) / total
    expected = float(table.sum(axis=0) @ table.sum(axis=1)) / total**2
    return math.nan if expected == 1.0 else float((observed - expected) / (1.0 - expected))


def agreement(
    found: Sequence[Label],
    truth: Sequence[Label],
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare grades with human labels.

    Parameters
    ----------
    found
        Grades: True, False or None (not attempted, not gradable).
    truth
        Human labels of the same answers; a row without a label is left out and counted.
    groups
        What is drawn again in the bootstrap, usually the question; each row where not given.
    resamples, level, seed
        Settings of the percentile bootstrap.

    Returns
    -------
    document
        ``accuracy``, ``kappa``, ``precision`` and ``recall`` of the grade 'correct' as
        estimates; ``confusion`` with counts, not attempted apart; ``n``, ``unlabelled`` and
        ``attempted`` (share). A grade of None counts as 'not correct' in the estimates.

    Examples
    --------
    >>> result = agreement([True, False, None, True], [True, False, False, False])
    >>> result["accuracy"].value, result["confusion"]["not attempted"]
    (0.75, {'right': 0, 'wrong': 1})
    """
    if len(found) != len(truth):
        raise InputError(f"one label per grade is needed, got {len(found)} and {len(truth)}")
    selection = [i for i, label in enumerate(truth) if label is not None]
    if not selection:
        raise InputError("no row has a human label")
    guess = np.array([found[i] is True for i in selection])
    right = np.array([bool(truth[i]) for i in selection])
    none = np.array([found[i] is None for i in selection])
    units = [groups[i] for i in selection] if groups is not None else selection
    index = np.array(first_appearance(units))
    # Of each unit (correct, right), (correct, wrong), (not, right) and (not, wrong).
    by_unit = np.zeros((index.max() + 1, 4), dtype=np.int64)
    np.add.at(by_unit, (index, 2 * (~guess).astype(int) + ~right), 1)
    rng = named_stream(seed, "agreement")
    # Units with equal counts are interchangeable: draw how often each kind of unit comes up.
    kinds, counts = np.unique(by_unit, axis=0, return_counts=True)
    sample = rng.multinomial(len(by_unit), counts / len(by_unit), size=resamples) @ kinds
    document: dict[str, Any] = {
        "schema": "calibrant.agreement/1",
        "n": len(selection),
        "groups": len(by_unit),
        "unlabelled": len(truth) - len(selection),
        "attempted": float(1.0 - none.mean()),
    }
    values, resampled = _measures(by_unit.sum(axis=0)), _measures(sample)
    for name, value in values.items():
        draws = resampled[name][np.isfinite(resampled[name])]
        document[name] = _estimate(name, float(value), draws, len(by_unit), level)
    marks = {"correct": guess, "incorrect": ~guess & ~none, "not attempted": none}
    document["confusion"] = {
        label: {"right": int((mask & right).sum()), "wrong": int((mask & ~right).sum())}
        for label, mask in marks.items()
    }
    return document


def _measures(cells: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float64]]:
    """Return accuracy, kappa, precision and recall of each row of counts."""
    hit, false, missed, refused = np.moveaxis(cells.astype(float), -1, 0)
    total = cells.sum(axis=-1).astype(float)
    guessed, right = (hit + false) / total, (hit + missed) / total
    expected = guessed * right + (1 - guessed) * (1 - right)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "accuracy": (hit + refused) / total,
            "kappa": ((hit + refused) / total - expected) / (1.0 - expected),
            "precision": hit / (hit + false),
            "recall": hit / (hit + missed),
        }


def _estimate(
    name: str, value: float, draws: npt.NDArray[np.float64], units: int, level: float
) -> Estimate:
    if not math.isfinite(value) or not len(draws):
        warnings.warn(
            f"{name} is undefined: one side uses a single label",
            UndefinedMetricWarning,
            stacklevel=3,
        )
        return Estimate(math.nan, math.nan, math.nan, n=units, level=level)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high), units, level, "bootstrap-percentile")
