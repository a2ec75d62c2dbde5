"""What published numbers can show: two scores, a confidence that grades itself, other rates."""

import math
from collections.abc import Sequence
from itertools import combinations
from numbers import Number
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import ArrayLike

from calibrant.core.arrays import Estimate, Floats, RngLike, as_generator
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data import read_table, source_name
from calibrant.metrics.stats.floors import accuracy_floor, require_positive, require_rate

_Z = 1.959964
_LEAST_BINS = 5
# What each column of a table of scores may be called; the first three are needed.
_CALLED = {
    "model": ("model", "name", "system"),
    "accuracy": ("accuracy", "score", "acc", "value"),
    "labels": ("questions", "n", "labels", "n_samples", "size"),
    "benchmark": ("benchmark", "dataset", "task", "data"),
}
_NEEDED = tuple(_CALLED)[:2]


class PublishedScore(Struct, frozen=True):
    """An accuracy that somebody published: of which model, on which questions, on how many."""

    accuracy: float
    labels: int
    model: str | None = None
    benchmark: str | None = None


def published_scores(given: Any, labels: int | None = None) -> list[PublishedScore]:
    """Return published accuracies: numbers on the same `labels` questions, or those of a table.

    Parameters
    ----------
    given
        Numbers, as such or as text separated by commas, or a table (a path or a dataframe) with
        the columns model and accuracy, and where there are several benchmark and questions.
    labels
        Questions, where the table does not say.

    Examples
    --------
    >>> table = {"model": ["a", "b"], "accuracy": [0.9, 0.8], "questions": [100, 100]}
    >>> [score.model for score in published_scores(table)]
    ['a', 'b']
    """
    numbers = [] if given is None else _numbers(given)
    if numbers is not None:
        if len(numbers) == 1:
            raise InputError(f"published takes two accuracies or more, got {numbers[0]}")
        return [PublishedScore(value, _questions(labels)) for value in numbers]
    if isinstance(given, Number):
        raise InputError(f"published is a list of numbers or a table, got {given}")
    frame = read_table(given)
    by_lower = {name.lower(): name for name in frame.columns}
    columns = {
        role: next((by_lower[name] for name in names if name in by_lower), None)
        for role, names in _CALLED.items()
    }
    if lacking := [role for role in _NEEDED if columns[role] is None]:
        rule = f"a table of published scores has a column {' and one '.join(lacking)}"
        hint = f"it has {', '.join(frame.columns)}: name one {lacking[0]}"
        raise InputError(rule, source=source_name(given), hint=hint)
    choice = frame.select(**{role: name for role, name in columns.items() if name is not None})
    accuracy = choice["accuracy"].cast(pl.Float64, strict=False)
    wrong = accuracy.is_null() | ~accuracy.is_between(0, 1)
    if wrong.any():
        row = int(wrong.arg_true()[0])
        rule = f"an accuracy is a share between 0 and 1, got {choice['accuracy'][row]!r}"
        raise InputError(rule, source=source_name(given), row=row + 1)
    unknown = [n for n, row in enumerate(choice.iter_rows(named=True), 1) if not row.get("labels")]
    if unknown and "labels" in choice.columns and labels is None:
        rule = f"the number of questions ({columns['labels']}) is missing"
        hint = Hint("fill it in, or give {labels} for rows without one")
        raise InputError(rule, source=source_name(given), row=unknown[0], hint=hint)
    return [
        PublishedScore(
            float(value), _questions(row.get("labels") or labels), str(row["model"]),
            None if row.get("benchmark") is None else str(row["benchmark"]),
        )
        for value, row in zip(accuracy, choice.iter_rows(named=True), strict=True)
    ]  # fmt: skip


def _questions(labels: int | None) -> int:
    if labels is None:
        hint = Hint("give {labels} as well, or a column called questions")
        raise InputError("published is given without labels", hint=hint)
    return int(labels)


def _numbers(values: Any) -> list[float] | None:
    """Return accuracies that were given as numbers, None for a table."""
    if isinstance(values, str):
        values = values.split(",") if values.strip() else []
    if not isinstance(values, Sequence):
        return None
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        return None
    return [require_rate(value, "published") for value in numbers]


def published_pairs(scores: Sequence[PublishedScore]) -> list[dict[str, object]]:
    """Say of every two scores on one benchmark whether they can really differ.

    Returns
    -------
    list of dict
        ``model_a``, ``model_b``, ``benchmark``, ``a``, ``b`` and ``labels`` beside what
        `published_difference` says. Scores on other numbers of questions count the fewer.
    """
    return [
        {
            "model_a": first.model,
            "model_b": peer.model,
            "benchmark": first.benchmark,
            "a": first.accuracy,
            "b": peer.accuracy,
            "labels": (fewer := min(first.labels, peer.labels)),
            **published_difference(first.accuracy, peer.accuracy, labels=fewer),
        }
        for first, peer in combinations(scores, 2)
        if first.benchmark == peer.benchmark
    ]


def published_difference(first: float, second: float, *, labels: int) -> dict[str, object]:
    """Say whether two published accuracies on the same questions can really differ.

    Only the two scores and the number of questions are known, so the answers count as
    independent. Models that fail on the same questions differ less by chance: a difference
    called shown stays shown, one called undecided may be decided by the answers themselves.

    Parameters
    ----------
    first, second
        Accuracies in [0, 1].
    labels
        Questions of the benchmark.

    Returns
    -------
    dict
        ``gap`` (an estimate), ``floor`` (the paper's accuracy floor at the mean error rate),
        ``outcome`` (shown or undecided) and ``labels_needed`` to show a gap of this size.

    References
    ----------
    The Verification Tax, Table 2.

    Examples
    --------
    >>> found = published_difference(0.902, 0.919, labels=164)
    >>> found["outcome"], found["labels_needed"]
    ('undecided', 2165)
    >>> published_difference(0.864, 0.701, labels=14_042)["outcome"]
    'shown'
    """
    a, b = require_rate(first, "first"), require_rate(second, "second")
    n = require_positive(labels, "labels")
    spread = a * (1 - a) + b * (1 - b)
    # One answer more of each kind: a score of 100 % on few questions is no certainty.
    smooth = [(x * n + 1) / (n + 2) for x in (a, b)]
    error = math.sqrt(sum(x * (1 - x) for x in smooth) / n)
    gap = a - b
    labels_needed = math.ceil(_Z**2 * spread / gap**2) if gap else None
    return {
        "gap": Estimate(gap, gap - _Z * error, gap + _Z * error, n=int(n), interval="normal"),
        "floor": accuracy_floor(error_rate=1 - (a + b) / 2, labels=n),
        "outcome": "shown" if abs(gap) > _Z * error else "undecided",
        "labels_needed": labels_needed,
    }


def enough_bins(confidence: ArrayLike, bins: int = 15) -> bool:
    """Return whether enough bins are filled for `self_evaluation`: three with 5 rows."""
    p = np.asarray(confidence, dtype=np.float64)
    cell = np.minimum((p * bins).astype(np.intp), bins - 1)
    return int((np.bincount(cell, minlength=bins) >= _LEAST_BINS).sum()) >= 3


def self_evaluation(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    permutations: int = 10_000,
    rng: RngLike = 0,
) -> dict[str, object]:
    """Ask whether a model's confidence tells how wrong its confidence is.

    Per bin, Spearman's correlation of the mean confidence with the size of the gap, and, as a
    control, with the accuracy; both with permutation tests over bins.

    Parameters
    ----------
    confidence, correct
        Confidences and outcomes.
    bins
        Equal-width bins; those with fewer than 5 rows are left out.
    permutations
        Random orders of the bins behind a p-value.
    rng
        Seed or generator.

    References
    ----------
    The Verification Tax, Figure 1 and Appendix F.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=5000)
    >>> found = self_evaluation(p, rng.uniform(size=5000) < p)
    >>> found["accuracy"]["correlation"] > 0.95, found["accuracy"]["p_value"] < 0.01
    (True, True)
    """
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if p.shape != y.shape or p.ndim != 1:
        raise InputError("confidence and correct are vectors of one length")
    cell = np.minimum((p * bins).astype(np.intp), bins - 1)
    n = np.bincount(cell, minlength=bins)
    used = n >= _LEAST_BINS
    confidences = np.bincount(cell, weights=p, minlength=bins)[used] / n[used]
    right = np.bincount(cell, weights=y, minlength=bins)[used] / n[used]
    if used.sum() < 3:
        raise InputError(
            f"a correlation over bins needs three bins with {_LEAST_BINS} rows, got {used.sum()}"
        )
    generator = as_generator(rng)
    return {
        "bins": int(used.sum()),
        "gap": _permuted(confidences, np.abs(right - confidences), permutations, generator),
        "accuracy": _permuted(confidences, right, permutations, generator),
    }


def _permuted(
    x: Floats, y: Floats, permutations: int, generator: np.random.Generator
) -> dict[str, float]:
    # Loaded here: it takes a second, and most plans rank nothing.
    from scipy.stats import rankdata

    a, b = rankdata(x), rankdata(y)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    if scale == 0.0:
        return {"correlation": math.nan, "p_value": 1.0}
    value = float(a @ b) / scale
    draws = generator.permuted(np.tile(b, (permutations, 1)), axis=1) @ a / scale
    beyond = int((np.abs(draws) >= abs(value) - 1e-12).sum())
    return {"correlation": value, "p_value": (beyond + 1) / (permutations + 1)}


def scaling_labels(
    size: float, *, exponent: float = 0.5, scale: float = 1.0, share: float = 1.0
) -> float:
    """Return the labels that detect a calibration error of a share of the error rate.

    For ``eps(N) = c0 N^-alpha`` and an error of ``share * eps``, detection takes labels of the
    order ``eps / d^2 = N^alpha / (c0 share^2)``: they grow as fast as the error rate falls.

    References
    ----------
    The Verification Tax, Theorem 4 and Corollary 5.

    Examples
    --------
    >>> scaling_labels(1e4), scaling_labels(1e6)
    (100.0, 1000.0)
    """
    alpha = require_positive(exponent, "exponent")
    rate = require_positive(scale, "scale") * require_positive(size, "size") ** -alpha
    return 1.0 / (require_rate(min(rate, 1.0)) * require_positive(share, "share") ** 2)


def temperature_error(confidence: ArrayLike, *, labels: float) -> dict[str, float]:
    """Return how precisely `labels` show the calibration error if only a temperature is off.

    A known one-parameter family has the parametric rate ``1 / sqrt(m)``: with Fisher's
    information ``I = E[p (1 - p) logit(p)^2]`` and ``kappa = E[p (1 - p) |logit p|]``, the mean
    error is ``sqrt(2 / pi) kappa / sqrt(m I)``.

    Parameters
    ----------
    confidence
        Confidences of the model.
    labels
        Labels at hand.

    References
    ----------
    The Verification Tax, Theorem 11 and Appendix N.

    Examples
    --------
    >>> found = temperature_error(np.full(100, 0.9), labels=10_000)
    >>> round(found["error"], 4), round(found["information"], 3)
    (0.0024, 0.435)
    """
    p = np.clip(np.asarray(confidence, dtype=np.float64), 1e-12, 1 - 1e-12)
    odds = np.log(p / (1 - p))
    information = float((p * (1 - p) * odds**2).mean())
    kappa = float((p * (1 - p) * np.abs(odds)).mean())
    m = require_positive(labels, "labels")
    if information == 0.0:
        raise InputError("confidences of exactly one half say nothing about a temperature")
    error = math.sqrt(2 / math.pi) * kappa / math.sqrt(m * information)
    return {"error": error, "information": information, "kappa": kappa}


def effective_labels(labels: float, *, correlation: float) -> float:
    """Return the independent labels that a stream with geometric correlation is worth.

    The paper's ``m (1 - rho)``. For the mean of a first-order autoregression it is
    ``m (1 - rho) / (1 + rho)``, up to half as many: the paper's rule is the optimistic one.

    References
    ----------
    The Verification Tax, Appendix P.

    Examples
    --------
    >>> effective_labels(1000, correlation=0.5)
    500.0
    """
    rho = require_rate(correlation, "correlation")
    if rho == 1.0:
        raise InputError("a correlation of 1 leaves no information in further labels")
    return require_positive(labels, "labels") * (1.0 - rho)


def general_floor(
    *, noise: float, labels: float, lipschitz: float = 1.0, share: float = 1.0, active: bool = False
) -> float:
    """Return the floor of any averaged absolute error: calibration, fairness, robustness.

    ``(L s2 / (m share))^(1/3)`` passively, ``sqrt(s2 / (m share))`` actively. Calibration:
    noise is the error rate. Fairness: share is that of the group. Robustness: noise is the error
    rate under perturbation.

    References
    ----------
    The Verification Tax, Theorem 14.

    Examples
    --------
    >>> round(general_floor(noise=0.1, labels=10_000), 4)
    0.0215
    >>> round(general_floor(noise=0.1, labels=10_000, share=0.05, active=True), 4)
    0.0141
    """
    part = require_positive(require_rate(share, "share"), "share")
    size = require_positive(labels, "labels") * part
    spread = require_rate(noise, "noise")
    if active:
        return math.sqrt(spread / size)
    return float((require_positive(lipschitz, "lipschitz") * spread / size) ** (1 / 3))
