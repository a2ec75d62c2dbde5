"""Verdicts as they are written: numbers inside text, words in an order, sides of a pair.

What a cell means follows from all cells of its column, and of those beside it: the label that most
numbers have, the numbers and words that occur together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats
from calibrant.data.reading.cells import MISSING_TEXT, NEITHER, REFUSALS, lowered, meaning_of
from calibrant.data.reading.scales import WORD_SHARES

# The word before a number, the number, and what it is a share of.
_NUMBERS = re.compile(
    r"([^\W\d_]*)([^\w+-]*)(?<![\w.+-])([+-]?\d+(?:[.,]\d+)?)(?![\w.]*\w)\s*"
    r"(%|(?:/|(?:out\s+)?of)\s*(\d+))?"
)
_ENDS_NAMED = re.compile(
    r"[\[(]?(?<![\w.,])\d+\s*(?:-|\u2013|to)\s*\d+(?:-\d+)?[\])]?|(?<!\d)\s+\(?out\s+of\s+\d+\)?|\d+(?=:)"
)
_DIGITS = re.compile(r"\d+")
# Of several keys with numbers the first of these is the verdict.
_SCORES = ("overall", "total", "final", "score", "rating", "grade", "verdict")
_STARS = re.compile(r"([^\w\s])\1*([^\w\s])?\2*")
_NOUN = r"(?:model|assistant|response|answer|output|option|system|side)[\s_-]*"
_SIDE = re.compile(
    rf"[^\w+-]*(?:{_NOUN}(?:(?P<first>1)|2)|(?:{_NOUN})?(?:(?P<front>a|left|first)|b|right|second))"
    r"[^\w+-]*(?:(?:wins?|won|is better|better)[^\w+-]*)?"
)
_COMPARED = re.compile(r"\W*(a|b)\s*([<>=≻≺≈]+)\s*(?:a|b)\W*")
TIES = frozenset(
    {"tie", "both", "equal", "draw", "neither", "same", "none", "tie (bothbad)", "both bad"}
)
_NEGATIONS = frozenset({"not", "no", "non", "un", "in", "dis"})
_MIDDLE = frozenset({"partial", "partially correct", "tie", "neutral"})
_EMPTY = [*MISSING_TEXT, *REFUSALS, *NEITHER - _MIDDLE]
# Ends that scales of whole numbers have; the least that holds all values is taken.
_ENDS = ((0, 1), (1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
# A rarer word is a slip of the judge, which is counted.
_USUAL = 0.01
_LABELLED = 0.9


class RatingScale(Struct, frozen=True):
    """The ends of a scale, and its words from the least to the best where it has words."""

    low: float = 0.0
    high: float = 1.0
    words: tuple[str, ...] = ()

    def unit(self, values: Floats) -> Floats:
        """Return values of this scale between 0 and 1."""
        return np.asarray(np.clip((values - self.low) / self.span, 0.0, 1.0))

    def rating(self, share: float) -> float:
        """Return the value of this scale at a share of its way from the low end."""
        return self.low + self.span * share

    def is_like(self, peer: RatingScale) -> bool:
        """Return whether both say the same by the same number: a share is one of yes."""
        words = {scale.words for scale in (self, peer) if scale.words}
        return (self.low, self.high) == (peer.low, peer.high) and len(words) < 2

    @property
    def span(self) -> float:
        """Distance of the ends."""
        return self.high - self.low


YES_NO = RatingScale(words=("no", "yes"))


def cell_texts(column: pl.Series) -> pl.Series:
    """Return cells as lower-case text; empty ones, and words for no verdict, are null."""
    if column.dtype.is_float():
        column = column.fill_nan(None)
    text = lowered(column).str.replace(r"^(-?\d+)\.0+$", "$1")
    return text.set(text.is_in(_EMPTY).fill_null(False), None)


def read_numbers(counts: Mapping[str, int]) -> tuple[dict[str, float], float | None]:
    r"""Return the number in each text, and the top of the scale where the texts name one.

    Several numbers stand in a text: the one with the label that most texts have is meant, or a
    number alone. What they are a share of counts where it differs.

    Parameters
    ----------
    counts
        Texts in small letters, with how often each occurs.

    Examples
    --------
    >>> read_numbers({"score: 4\nreason: 3 of 9 are met": 5, "error code: 429": 1})
    ({'score: 4\nreason: 3 of 9 are met': 4.0}, None)
    >>> read_numbers({"4/5": 3, "8/10": 2})
    ({'4/5': 0.8, '8/10': 0.8}, 1.0)
    """
    parts = {text: _numbers_in(text) for text in counts}
    labels: Counter[str] = Counter()
    for text, matches in parts.items():
        labels.update(dict.fromkeys((name for name, *_ in matches), counts[text]))
    label = _label(labels, parts)
    numbers = {}
    for text, matches in parts.items():
        own = [part for part in matches if part[0] == label]
        single = len(matches) == 1 and (not matches[0][0] or matches[0][0].strip(":") in _SCORES)
        if own or single:
            # What a text repeats, it settles at its end; a number without a label opens it.
            _, number, mark, whole = (own or matches)[-1 if label else 0]
            top = 100.0 if mark == "%" else float(whole) if whole else None
            numbers[text] = float(number.replace(",", ".")), top
    return _with_one_top(numbers)


def _numbers_in(text: str) -> list[tuple[str, str, str, str]]:
    """Return the numbers of a text with the word before each; a key has its colon."""
    # A scale that a text names (`1-5`, `out of 5` in brackets) is none of its numbers.
    matches = _NUMBERS.findall(_ENDS_NAMED.sub(" ", text))
    return [(word + ":" * bool(word and {*sign} & {*":="}), *tail) for word, sign, *tail in matches]


def _label(
    labels: Mapping[str, int], parts: Mapping[str, list[tuple[str, str, str, str]]]
) -> str | None:
    """Return the label of the number that is meant; None where several may be.

    A number that opens the text needs none. A score or a total is meant before other keys, and
    words of a sentence are a label only where the sentence is always the same.
    """
    most = max((count for name, count in labels.items() if name), default=0)
    first = sum(matches[0][0] == "" for matches in parts.values() if matches)
    if most < _LABELLED * labels.get("", 0) or 2 * first > len(parts):
        return ""
    usual = [name for name, count in labels.items() if name and count >= _LABELLED * most]
    scores = [name for word in _SCORES for name in usual if name.strip(":") == word]
    keys = scores[:1] or [name for name in usual if name.endswith(":")]
    if not keys and len({_DIGITS.sub("#", text) for text in parts}) <= max(3, len(parts) // 10):
        keys = usual[:1]
    return keys[0] if len(keys) == 1 else None


def _with_one_top(
    numbers: Mapping[str, tuple[float, float | None]],
) -> tuple[dict[str, float], float | None]:
    """Return numbers that are parts of one whole, or shares where they are not."""
    tops = {top for _, top in numbers.values() if top}
    # -1 is a code for no number, whatever the others are a share of.
    bare = [number for number, top in numbers.values() if top is None and number != -1]
    single = next(iter(tops)) if len(tops) == 1 else None
    if not tops or (single and (not bare or 1 < max(bare) <= single)):
        return {text: number for text, (number, _) in numbers.items()}, single
    shares = {
        text: number / (top or 1.0) for text, (number, top) in numbers.items() if top or number <= 1
    }
    return shares, 1.0


def read_stars(words: Collection[str]) -> dict[str, float]:
    """Return how many symbols of each row of them are the filled one, such as 3 of ★★★☆☆."""
    rows = {word: match for word in words if (match := _STARS.fullmatch(word))}
    fronts = {match[1] for match in rows.values()}
    several = len(fronts) == 1 and len(rows) > 1 and max(map(len, rows)) > 2
    return {word: float(word.count(match[1])) for word, match in rows.items() if several}


def read_yes_no(counts: Mapping[str, int]) -> dict[str, float] | None:
    """Return 1 for the word that means yes and 0 for the one that means no; None for other words.

    Of two words the second may be the first one denied.

    Examples
    --------
    >>> read_yes_no({"not hallucinated": 5, "hallucinated": 2}), read_yes_no({"good": 3, "ok": 3})
    ({'hallucinated': 0.0, 'not hallucinated': 1.0}, None)
    """
    total = sum(counts.values())
    usual = [word for word, count in counts.items() if count >= _USUAL * total]
    meanings = {word: x for word in counts if (x := word_value(word)) in (0.0, 1.0)}
    if len(usual) == 2 and len({*usual} & meanings.keys()) == 1:
        (word,) = {*usual} & meanings.keys()
        (peer,) = {*usual} - {word}
        if peer.endswith(word) and peer[: -len(word)].strip(" -_") in _NEGATIONS:
            return {word: meanings[word], peer: 1.0 - meanings[word]}
    values = [meanings.get(word) for word in usual]
    if None in values or max(map(values.count, (0.0, 1.0))) != 1 or usual == ["-1"]:
        return None
    # A rarer word with the same meaning may be something else: `error` beside `fail`.
    rare = {word: x for word, x in meanings.items() if x not in values}
    return {word: meanings[word] for word in usual} | rare


def word_value(word: str) -> float | None:
    """Return how good a word is by what it usually means, from 0 to 1; None where that is open."""
    if word in _MIDDLE:
        return 0.5
    return 0.0 if word == "-1" else meaning_of(word)


def in_order(words: Iterable[str], peer: Mapping[str, float]) -> list[str] | None:
    """Return words from the worst to the best; None where nothing tells their order.

    Parameters
    ----------
    words
        Words of a scale.
    peer
        What the other party gives on average where a word stands.
    """
    words = sorted(words)
    for value in (word_value, WORD_SHARES.get, peer.get):
        order = {word: x for word in words if (x := value(word)) is not None}
        if len(order) == len(words) and len({*order.values()}) == len(words):
            return sorted(words, key=order.__getitem__)
    return None


def usual_ends(values: Floats, top: float | None = None) -> RatingScale:
    """Return the ends of the usual scale that holds these numbers."""
    finite = values[np.isfinite(values)]
    least, most = float(finite.min(initial=np.inf)), float(finite.max(initial=-np.inf))
    if top is not None and most <= top:
        low = 1.0 if least >= 1 and 1 < top <= 10 else 0.0
        return RatingScale(min(low, least), top)
    for low, high in _ENDS:
        if low <= least and most <= high:
            return RatingScale(float(low), float(high))
    return RatingScale(least, max(most, least + 1))


def side_values(words: Collection[str], ties: Collection[str]) -> dict[str, float]:
    """Return 1 for words that name the first side of a pair, 0 for the second, 0.5 for ties.

    Numbers count by the whole set of them: 1 and 2 with 0 or 1.5 for a tie.

    Examples
    --------
    >>> side_values(["model_a", "b", "tie"], TIES), side_values(["a>>b", "b>a", "a=b"], TIES)
    ({'model_a': 1.0, 'b': 0.0, 'tie': 0.5}, {'a>>b': 1.0, 'b>a': 0.0, 'a=b': 0.5})
    """
    values = {word: x for word in words if (x := _side(word, ties)) is not None}
    numbers = {*words} & {"0", "1", "2", "1.5"}
    if numbers in ({"1", "2"}, {"0", "1", "2"}, {"1", "2", "1.5"}, {"0", "2"}, {"1.5", "1"}):
        values |= {"1": 1.0, "2": 0.0, "0": 0.5, "1.5": 0.5}
    elif numbers == {"0"} and values:
        values["0"] = 0.5
    if {*values.values()} & {0.0, 1.0}:
        values |= {word: 0.5 for word in words if re.fullmatch(r"\W*c\W*", word)}
    return {word: values[word] for word in words if word in values}


def _side(word: str, ties: Collection[str]) -> float | None:
    if word in ties or re.sub(r"^\W+|\W+$", "", word) in ties:
        return 0.5
    if match := _SIDE.fullmatch(word):
        return float(bool(match["first"] or match["front"]))
    if match := _COMPARED.fullmatch(word):
        more, less = ({*match[2]} & {*signs} for signs in (">≻", "<≺"))
        return 0.5 if not more | less else float(bool(more) == (match[1] == "a"))
    return None


def is_numeric(words: Sequence[str]) -> bool:
    """Return whether all of these are plain numbers."""
    return all(re.fullmatch(r"[+-]?\d+(?:\.\d+)?", word) for word in words)


def cell_counts(cells: pl.Series) -> dict[str, int]:
    """Return how often each text occurs, the most frequent first."""
    return dict(cells.drop_nulls().alias("text").value_counts(sort=True).rows())
