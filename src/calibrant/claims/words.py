"""Numbers in sentences: percent for shares, points for differences, whole words for counts."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.core.method_words import method_name


def percent(share: float) -> str:
    """Return a share as percent: whole numbers, and one digit where a whole one would say all.

    Examples
    --------
    >>> percent(0.7651), percent(0.996), percent(0.003), percent(1 - 1e-16), percent(-1e-17)
    ('77 %', '99.6 %', '0.3 %', '100 %', '0 %')
    """
    # Rounding in a sum may leave 1e-15 of 0 or of 100: those are the ends.
    value = 100 * share
    value = next((end for end in (0.0, 100.0) if abs(value - end) < 1e-9), value)
    near_end = 0 < value < 1 or 99 < value < 100
    digits = 1 if near_end and value != round(value) else 0
    text = f"{value:.{digits}f}"
    if near_end and text in ("0.0", "100.0"):
        text = "less than 0.1" if value < 1 else "more than 99.9"
    return f"{text} %"


def points(difference: float, *, sign: bool = False) -> str:
    """Return a difference of two shares in percentage points.

    Examples
    --------
    >>> points(0.1042), points(0.012), points(0.0004), points(-0.2, sign=True), points(0.01)
    ('10 points', '1.2 points', 'less than 0.1 points', '-20 points', '1 point')
    """
    text = point_number(abs(difference))
    unit = "point" if text == "1" else "points"
    if text == "0" and difference != 0:
        return "less than 0.1 points"
    mark = ("-" if difference < 0 else "+") if sign and text != "0" else ""
    return f"{mark}{text} {unit}"


def point_number(size: float, *, digits: int | None = None) -> str:
    """Return the bare number of points: one digit below ten points, none above.

    Examples
    --------
    >>> point_number(0.1042), point_number(0.0121), point_number(0.02)
    ('10', '1.2', '2')
    """
    value = 100 * size
    places = (0 if abs(value) >= 9.95 else 1) if digits is None else digits
    text = f"{value:.{places}f}"
    text = text.removesuffix(".0") if "." in text else text
    return "0" if text == "-0" else text


def points_range(low: float | None, high: float | None) -> str:
    """Return an interval of a difference: '6 to 14'.

    Examples
    --------
    >>> points_range(0.061, 0.139), points_range(-0.012, 0.031), points_range(None, 0.1)
    ('6.1 to 14', '-1.2 to 3.1', 'not known')
    """
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "not known"
    return f"{point_number(low)} to {point_number(high)}"


def count(number: int, noun: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> count(1, "question"), count(12032, "question")
    ('1 question', '12,032 questions')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def labels_text(more: float | None, what: str = "labels") -> str:
    """Return how many more labels would decide, rounded as such a forecast deserves.

    Examples
    --------
    >>> labels_text(387), labels_text(12_340), labels_text(None, "questions")
    ('about 400 more labels', 'about 12,000 more labels', 'more questions')
    """
    if more is None or not math.isfinite(more):
        return f"more {what}"
    if more > 1e7:
        return f"more {what} than is practical"
    size = max(math.ceil(more), 10)
    unit = 10 ** max(len(str(size)) - (1 if size < 1000 else 2), 1)
    rounded = max(round(size / unit) * unit, unit)
    return f"about {rounded:,} more {what}"


def joined(names: Sequence[str], *, most: int = 3) -> str:
    """Return names as a list in a sentence, the first ones where there are many.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c", "d", "e"])
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    shown = list(names[:most])
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def subject_name(subject: Mapping[str, Any]) -> str:
    """Return how a sentence calls its subject: model, method where it says more, group.

    Examples
    --------
    >>> subject_name({"model": "small", "method": "verb", "group": {"topic": "law"}})
    'small (verb: stated confidence, topic law)'
    >>> subject_name({"model": "model", "method": "confidence"})
    'The confidence'
    """
    model, method = subject.get("model"), subject.get("method")
    group = subject.get("group") or {}
    more = [method_name(str(method), aside=True)] if method not in (None, "confidence") else []
    more += [f"{name} {value}" for name, value in group.items()]
    name = "The confidence" if model in (None, "model") else str(model)
    return f"{name} ({', '.join(more)})" if more else name
