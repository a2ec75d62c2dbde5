"""Groups of rows: made of texts, described by what is known of their confidence, and compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from msgspec.structs import replace
from scipy.special import ndtr, ndtri

from calibrant.core.arrays import Array, Floats, Mask
from calibrant.core.errors import InputError
from calibrant.core.arrays import Estimate
from calibrant.findings.documents.groups import Ends, GroupDifference, GroupEntry
from calibrant.metrics.stats.intervals import normal_quantile, wilson_interval
from calibrant.metrics.stats.multiplicity import holm
from calibrant.trust.near_confidence import (
    ConfidenceBasis,
    ConfidenceCells,
    directions,
    project,
    projector,
)
from calibrant.trust.segments.conditions import GroupRule
from calibrant.trust.segments.search import TestedGroup

_WORD = re.compile(r"[^\W\d_]{3,}")
_TYPICAL = 3
_EXAMPLES = 3
_ROWS_PER_GROUP = 150
_MOST_GROUPS = 16
_COMPONENTS = 20


@dataclass(frozen=True, slots=True)
class TextGroups:
    """Which group each row belongs to, and what the groups are about.

    Parameters
    ----------
    label
        Name of the group per row: its typical words, or its number where there are no texts.
    about
        Per label: typical words, up to three examples and the number of rows.
    """

    label: list[str]
    about: dict[str, dict[str, Any]]


def vector_matrix(column: pl.Series) -> Floats:
    """Return a column of vectors (embeddings, hidden states) as a matrix.

    Examples
    --------
    >>> vector_matrix(pl.Series("v", [[1.0, 2.0], [3.0, 4.0]])).shape
    (2, 2)
    """
    if not isinstance(column.dtype, pl.List | pl.Array):
        raise InputError(f"{column.name!r} holds {column.dtype}, not vectors of numbers")
    lengths = column.list.len() if isinstance(column.dtype, pl.List) else None
    if column.null_count() or (lengths is not None and lengths.n_unique() != 1):
        raise InputError(f"the vectors of {column.name!r} must all be there and of one length")
    matrix = np.asarray(column.to_list(), dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise InputError(f"the vectors of {column.name!r} must hold finite numbers")
    return matrix


def word_vectors(texts: Sequence[str], *, seed: int = 0) -> Floats:
    """Return vectors from the words alone, for tables without an embedding.

    Examples
    --------
    >>> word_vectors(["red green", "red blue", "old town", "new town"]).shape[0]
    4
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = TfidfVectorizer(stop_words="english", min_df=1, sublinear_tf=True).fit_transform(texts)
    width = min(_COMPONENTS, min(table.shape) - 1)
    if width < 1:
        raise InputError("the texts have too few different words to be grouped")
    return np.asarray(TruncatedSVD(width, random_state=seed).fit_transform(table))


def text_groups(
    vectors: Floats, texts: Sequence[str] | None = None, *, count: int | None = None, seed: int = 0
) -> TextGroups:
    """Group rows whose vectors are close; no outcome enters.

    Parameters
    ----------
    vectors
        One vector per row.
    texts
        Text per row, for names and examples.
    count
        Number of groups; by default one per 150 rows, from 2 to 16.
    seed
        Seed of the grouping.

    Examples
    --------
    >>> texts = ["capital of france", "capital of spain"] * 40 + ["seven plus two"] * 40
    >>> found = text_groups(word_vectors(texts), texts, count=2)
    >>> sorted(item["n"] for item in found.about.values())
    [40, 80]
    """
    from sklearn.cluster import KMeans

    points = directions(vectors)
    if count is None:
        count = min(_MOST_GROUPS, max(2, len(points) // _ROWS_PER_GROUP))
    count = min(count, len(np.unique(points.round(6), axis=0)))
    clusters = KMeans(count, n_init=4, random_state=seed).fit(points)
    code = clusters.labels_
    near = np.linalg.norm(points - clusters.cluster_centers_[code], axis=1)
    names = _names(code, texts, count)
    about = {}
    for number, name in enumerate(names):
        rows = np.flatnonzero(code == number)
        closest = rows[np.argsort(near[rows], kind="stable")]
        examples = [] if texts is None else list(dict.fromkeys(texts[row] for row in closest))
        words = [] if texts is None else name.split(", ")
        about[name] = {"words": words, "examples": examples[:_EXAMPLES], "n": len(rows)}
    return TextGroups([names[number] for number in code], about)


def _names(code: Array, texts: Sequence[str] | None, count: int) -> list[str]:
    """Name each group by the words that set it apart from the others."""
    if texts is None:
        return [f"cluster {number + 1}" for number in range(count)]
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    observed: dict[str, Floats] = {}
    sizes = np.bincount(code, minlength=count).astype(np.float64)
    for number, text in zip(code, texts, strict=True):
        for word in set(_WORD.findall(text.lower())) - ENGLISH_STOP_WORDS:
            observed.setdefault(word, np.zeros(count))[number] += 1
    names: list[str] = []
    for number in range(count):
        score = {word: _typical(counts, sizes, number) for word, counts in observed.items()}
        best = sorted(score, key=lambda word: (-score[word], word))[:_TYPICAL]
        name = ", ".join(best) or f"group {number + 1}"
        names.append(name if name not in names else f"{name}, group {number + 1}")
    return names


def _typical(counts: Floats, sizes: Floats, number: int) -> float:
    """Weigh how common a word is in the group by how much rarer it is elsewhere."""
    inside = (counts[number] + 0.5) / (sizes[number] + 1)
    others = (counts.sum() - counts[number] + 0.5) / (sizes.sum() - sizes[number] + 1)
    return float(inside * np.log(inside / others))


Group = GroupEntry


class SearchedGroup(NamedTuple):
    """What the search says of a group, and its rows.

    `kind`: ``"found"`` (stands out beyond the overall error), ``"named"`` (written by the user) or
    ``"value"`` (one value or cut of one feature). `echo_of`: the flagged group that explains why
    this one looks unusual. `stretch`: it is a stretch of the confidence.
    """

    finding: TestedGroup
    kind: str
    mask: Mask
    flagged: bool
    echo_of: str | None = None
    stretch: bool = False


def describe(
    judged: SearchedGroup, confidence: Floats, correct: Floats, level: float
) -> GroupEntry:
    """Return a group with its plain numbers beside what the search says of it."""
    finding = judged.finding
    f, y = confidence[judged.mask], correct[judged.mask]
    n = len(f)
    rate = float(y.mean())
    low, high = wilson_interval(rate, n, level)
    gap = f - y
    reach = normal_quantile(level) * float(gap.std(ddof=1)) / n**0.5
    mean = float(gap.mean())
    beyond = Estimate(
        finding.gap, *finding.interval, n=n, level=level, interval="simultaneous over all rules"
    )
    return GroupEntry(
        rule=finding.rule.label,
        kind=judged.kind,
        n=n,
        mean_confidence=float(f.mean()),
        rate=rate,
        rate_interval=Ends(low=float(low), high=float(high)),
        gap=mean,
        gap_interval=Ends(low=mean - reach, high=mean + reach),
        gap_recalibrated=finding.gap,
        beyond=beyond,
        direction="over-confident" if finding.gap > 0 else "under-confident",
        p_value=finding.p_value,
        p_adjusted=finding.p_adjusted,
        flagged=judged.flagged,
        echo_of=judged.echo_of,
        stretch=judged.stretch,
    )


_FEWEST = 20
_EDGE = 0.005
_LEAST_FREE = 0.1
# The law of the ratio is normal only in the limit; this keeps the false rate below the level.
_WIDER = 1.06


def gap_difference(
    confidence: Floats, correct: Floats, in_a: Mask, in_b: Mask, *, level: float = 0.95
) -> tuple[Estimate, float, bool]:
    """Return the difference at equal confidence, its p value, and whether a stretch makes it.

    Rows of both groups are left out. Where the confidence tells the groups apart, nothing beyond it
    can be tested.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f, a = rng.random(4000), rng.random(4000) < 0.5
    >>> y = (rng.random(4000) < np.clip(f - 0.2 * a, 0, 1)).astype(float)
    >>> found, p, stretch = gap_difference(f, y, a, ~a)
    >>> 0.1 < found.low < found.value < 0.25, p < 0.001, stretch
    (True, True, False)
    """
    rows = in_a ^ in_b
    f, y, side = confidence[rows], correct[rows], in_a[rows].astype(np.float64)
    n = len(y)
    if min(side.sum(), n - side.sum()) < _FEWEST:
        return Estimate(float("nan"), float("nan"), float("nan"), n=n), float("nan"), False
    basis = projector(ConfidenceBasis().fit(f).transform(f))
    cleared = side - project(basis, side)
    weight = float((cleared**2).sum())
    shift = float(cleared @ y) / weight
    error = _error(basis, cleared, y, shift) / weight
    reach = float(ndtri(0.5 + level / 2)) * error
    within = ConfidenceCells(f).within(side, y)
    estimate = Estimate(-shift, -shift - reach, -shift + reach, n=n, level=level, interval="robust")
    p = float(2 * ndtr(-abs(shift) / error))
    return estimate, p if within.shows else max(p, within.two_sided), within.is_stretch


def _error(basis: Floats, cleared: Floats, y: Floats, shift: float) -> float:
    """Return the standard error of a group's sum: the larger of two, each weak where the other is.

    From the residuals (jackknife form): right where the two groups differ. From the rate at each
    confidence: right where errors are too rare to show their spread.
    """
    rate = project(basis, y)
    weight = float((cleared**2).sum())
    leverage = (basis**2).sum(axis=1) + cleared**2 / weight
    residual = (y - rate - shift * cleared) / np.maximum(1 - leverage, _LEAST_FREE)
    inside = np.clip(rate, _EDGE, 1 - _EDGE)
    spread = inside * (1 - inside) * len(y) / (len(y) - basis.shape[1] - 1)
    observed, expected = ((cleared * residual) ** 2).sum(), (cleared**2 * spread).sum()
    return _WIDER * float(np.sqrt(max(observed, expected)))


def differences(
    rules: Sequence[GroupRule],
    masks: Sequence[Mask],
    confidence: Floats,
    correct: Floats,
    level: float,
) -> list[GroupDifference]:
    """Return the difference of every pair of groups, p values adjusted by Holm's method."""
    gap = confidence - correct
    pairs: list[GroupDifference] = []
    for first, peer in combinations(range(len(rules)), 2):
        sides = masks[first], masks[peer]
        estimate, p, stretch = gap_difference(confidence, correct, *sides, level=level)
        if np.isfinite(p):
            raw = float(gap[sides[0]].mean() - gap[sides[1]].mean())
            a, b = rules[first].label, rules[peer].label
            pairs.append(
                GroupDifference(
                    a=a, b=b, stretch=stretch, gap=estimate, raw=raw, p_value=p, p_adjusted=p
                )
            )
    adjusted = holm([pair.p_value for pair in pairs]).tolist() if pairs else []
    return [replace(pair, p_adjusted=p) for pair, p in zip(pairs, adjusted, strict=True)]
