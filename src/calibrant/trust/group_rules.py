"""Who belongs to a group: by rules that people wrote or a search lists, or by like texts."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Array, Floats, Ints, Mask
from calibrant.core.document import Stored
from calibrant.core.errors import InputError, require_known
from calibrant.data.features import level_text
from calibrant.trust.near_confidence import directions
from calibrant.trust.policy import Row

_COMPARE: dict[str, Callable[[Any, float], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_JOINED = re.compile(r"\s+and\s+", re.IGNORECASE)
_PART = re.compile(r"^\s*(?P<name>.+?)\s*(?P<sign><=|>=|!=|==|<|>|=)\s*(?P<value>.+?)\s*$")


@dataclass(frozen=True, slots=True)
class Condition(Stored):
    """One comparison: a column, ``<``, ``<=``, ``>``, ``>=``, ``=`` or ``!=``, and a value."""

    column: str
    sign: str
    value: float | str

    @property
    def text(self) -> str:
        """The comparison in words."""
        value = f"{self.value:.10g}" if isinstance(self.value, float) else self.value
        return f"{self.column} {self.sign} {value}"

    def mask(self, frame: pl.DataFrame) -> Mask:
        """Return which rows hold it."""
        column = frame[self.column]
        if isinstance(self.value, str):
            equal = (column.cast(pl.String) == self.value).to_numpy()
            return equal if self.sign == "=" else ~equal
        return np.asarray(_COMPARE[self.sign](column.cast(pl.Float64).to_numpy(), self.value))

    def holds(self, row: Row) -> bool:
        """Return whether one row holds it."""
        value = row.get(self.column)
        if value is None:
            raise InputError(f"the column {self.column!r} is missing in this row")
        if isinstance(self.value, str):
            return (level_text(value) == self.value) == (self.sign == "=")
        return bool(_COMPARE[self.sign](float(value), self.value))


@dataclass(frozen=True, slots=True)
class GroupRule(Stored):
    """Conditions that must all hold; `name` is what people call the group."""

    conditions: tuple[Condition, ...]
    name: str | None = None

    @property
    def text(self) -> str:
        """The rule in words."""
        return " and ".join(condition.text for condition in self.conditions)

    @property
    def label(self) -> str:
        """The name, or else the rule in words."""
        return self.name or self.text

    def mask(self, frame: pl.DataFrame) -> Mask:
        """Return which rows belong to the group."""
        inside = np.ones(frame.height, dtype=bool)
        for condition in self.conditions:
            inside &= condition.mask(frame)
        return inside

    def holds(self, row: Row) -> bool:
        """Return whether one row belongs to the group."""
        return all(condition.holds(row) for condition in self.conditions)


def parse_rule(text: str, frame: pl.DataFrame) -> GroupRule:
    """Return the rule that a person wrote, checked against the columns of `frame`.

    A name may stand in front, followed by a colon.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [20, 40], "sex": ["F", "M"]})
    >>> rule = parse_rule("young women: age<25 and sex=F", people)
    >>> rule.name, rule.text, rule.mask(people).tolist()
    ('young women', 'age < 25 and sex = F', [True, False])
    """
    name, body = None, text
    head, colon, tail = text.partition(":")
    if colon and not any(sign in head for sign in _COMPARE):
        name, body = head.strip() or None, tail
    parts = [_parse_part(part, frame, text) for part in _JOINED.split(body.strip())]
    return GroupRule(tuple(parts), name)


def _parse_part(part: str, frame: pl.DataFrame, whole: str) -> Condition:
    pieces = _PART.match(part)
    if pieces is None:
        raise InputError(
            f"the group {whole!r} cannot be read: {part!r} is no comparison",
            hint='write it as "age<25 and sex=F"',
        )
    column, sign, value = pieces["name"], pieces["sign"].replace("==", "="), pieces["value"]
    require_known(
        [column], frame.columns, f"the group {whole!r} names the column {{}}, which is not there"
    )
    value = value.strip("\"'")
    if frame[column].dtype.is_numeric():
        return Condition(column, sign, _number(value, column, whole))
    if sign not in ("=", "!="):
        raise InputError(f"the group {whole!r} compares {column!r}, a category, with {sign!r}")
    levels = frame[column].drop_nulls().cast(pl.String).unique().to_list()
    require_known(
        [value], levels, f"the group {whole!r} names {{}}, but {column!r} never has that value"
    )
    return Condition(column, sign, value)


def _number(text: str, column: str, whole: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"the group {whole!r} compares {column!r}, a number, with {text!r}"
        ) from None
    return value


# Numbers with this few values are looked at value by value, as categories are.
_FEW_VALUES = 10
_CUTS = 8
_CHUNK = 256
MOST_PAIRS = 20_000
# What two conditions on one column must be, so that they make an interval.
_INTERVALS = ({"<=", ">"}, {"<=", ">="})


class Candidates(Struct, frozen=True):
    """Rules of one or two conditions, kept as the conditions' masks.

    Parameters
    ----------
    conditions
        The single conditions.
    masks
        Their rows, shape (conditions, rows).
    first, second
        The conditions of each rule; equal where the rule has one.
    dropped
        Pairs that were left out because there are more than can be looked at.
    """

    conditions: tuple[Condition, ...]
    masks: Mask
    first: Ints
    second: Ints
    dropped: int

    def __len__(self) -> int:
        return len(self.first)

    def rule(self, at: int) -> GroupRule:
        """Return one rule."""
        parts = dict.fromkeys((int(self.first[at]), int(self.second[at])))
        return GroupRule(tuple(self.conditions[part] for part in parts))

    def mask(self, at: int) -> Mask:
        """Return the rows of one rule."""
        return np.asarray(self.masks[self.first[at]] & self.masks[self.second[at]])

    def blocks(self, rows: Ints | None = None) -> Iterator[tuple[slice, npt.NDArray[np.float32]]]:
        """Yield the rules in blocks, each as a matrix (rules, rows) of 0 and 1."""
        masks = self.masks if rows is None else self.masks[:, rows]
        for start in range(0, len(self), _CHUNK):
            part = slice(start, min(start + _CHUNK, len(self)))
            overlap = masks[self.first[part]] & masks[self.second[part]]
            yield part, overlap.astype(np.float32)


def candidate_rules(frame: pl.DataFrame, min_group: int) -> Candidates:
    """Return every value, every octile cut and all pairs with at least `min_group` rows.

    Examples
    --------
    >>> table = pl.DataFrame({"sex": ["f", "m"] * 60, "age": list(range(120))})
    >>> found = candidate_rules(table, 30)
    >>> [found.rule(at).text for at in range(3)]
    ['sex = f', 'sex = m', 'age <= 29']
    """
    conditions: list[Condition] = []
    masks: list[Mask] = []
    for column in frame.get_columns():
        for condition in _conditions(column):
            mask = condition.mask(frame)
            if min_group <= mask.sum() <= frame.height - min_group:
                conditions.append(condition)
                masks.append(mask)
    stacked = np.array(masks, dtype=bool).reshape(-1, frame.height)
    first, second, dropped = _pairs(conditions, stacked, min_group)
    single = np.arange(len(conditions))
    return Candidates(
        tuple(conditions),
        stacked,
        np.concatenate([single, first]),
        np.concatenate([single, second]),
        dropped,
    )


def _conditions(column: pl.Series) -> list[Condition]:
    name = column.name
    if not column.dtype.is_numeric():
        return [Condition(name, "=", v) for v in column.cast(pl.String).unique().sort().to_list()]
    values = np.unique(column.cast(pl.Float64).to_numpy())
    if len(values) <= _FEW_VALUES:
        return [Condition(name, "=", float(value)) for value in values]
    whole = bool((values == np.floor(values)).all())
    places = np.quantile(column.cast(pl.Float64).to_numpy(), np.linspace(0, 1, _CUTS + 1)[1:-1])
    conditions = []
    for place in np.unique(places):
        after = int(np.searchsorted(values, place, side="right"))
        if not 0 < after < len(values):
            continue
        # Between two values that occur, so that the printed rule is the one that is computed.
        cut = short_decimal(float(values[after - 1]), float(values[after]))
        conditions.append(Condition(name, "<=", cut))
        conditions.append(Condition(name, ">=", cut + 1) if whole else Condition(name, ">", cut))
    return list(dict.fromkeys(conditions))


def _pairs(conditions: list[Condition], masks: Mask, min_group: int) -> tuple[Ints, Ints, int]:
    sizes = masks.sum(axis=1)
    joint = masks.astype(np.float32) @ masks.astype(np.float32).T
    selection = []
    for a, b in combinations(range(len(conditions)), 2):
        one, second = conditions[a], conditions[b]
        smaller = min_group <= joint[a, b] < min(sizes[a], sizes[b])
        if smaller and (one.column != second.column or {one.sign, second.sign} in _INTERVALS):
            selection.append((a, b))
    # Too many pairs: the largest groups are kept, where most can be shown.
    dropped = max(0, len(selection) - MOST_PAIRS)
    if dropped:
        selection = sorted(selection, key=lambda pair: -joint[pair])[:MOST_PAIRS]
    pairs = np.array(selection, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1], dropped


def short_decimal(low: float, high: float) -> float:
    """Return the number with the fewest digits in [low, high).

    Examples
    --------
    >>> short_decimal(24.0, 25.0), short_decimal(0.12345, 0.12712)
    (24.0, 0.124)
    """
    for digits in range(-12, 16):
        step = 10.0**-digits
        candidate = round(math.ceil(low / step) * step, max(digits, 0))
        if low <= candidate < high:
            return candidate
    return low


_WORD = re.compile(r"[^\W\d_]{3,}")
_TYPICAL = 3
_EXAMPLES = 3
_ROWS_PER_GROUP = 150
_MOST_GROUPS = 16
_COMPONENTS = 20


class TextGroups(Struct, frozen=True):
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
