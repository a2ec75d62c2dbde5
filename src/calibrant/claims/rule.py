"""Rules as they are written down: one file of words per verb, and what fills their places."""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache, partial, reduce
from operator import getitem
from pathlib import Path
from typing import Any

from calibrant.claims.claim import OUTCOMES, ClaimRule, Facts, Sentence, declare
from calibrant.claims.words import (
    count,
    joined,
    labels_text,
    percent,
    point_number,
    points,
    points_range,
)

_ABOUT = ("question", "hypothesis", "test", "correction")
_PLACE = re.compile(r"\{([\w.]+)(?::([^}]+))?\}")
# How a fact is written, by the word behind its name; other words are format specifications.
_WRITTEN: dict[str, Callable[[Any], str]] = {
    "percent": percent,
    "points": points,
    "size": lambda value: points(abs(value)),
    # A squared error, as the size of error it stands for.
    "typical": lambda square: points(max(square, 0.0) ** 0.5),
    "number": point_number,
    "range": lambda ends: points_range(*ends),
    "list": joined,
    "Labels": lambda more: labels_text(more).capitalize(),
}
_PARTS: dict[str, Sentence] = {
    "lead": lambda facts: f"{facts['name']}: " if facts["named"] else "",
    "from_to": lambda facts: points_range(facts["low"], facts["high"]),
}


def rule(
    name: str, *, margin: float | None = None, opposite: str | None = None, **words: Sentence
) -> ClaimRule:
    """Declare a rule whose words stand in the file of its verb.

    Parameters
    ----------
    name
        Id of the rule: verb, and name in the verb's file.
    margin, opposite
        As in `ClaimRule`.
    **words
        What fills a place of a sentence, by the name of the place; of a place that has several
        wordings in the file, which of them. Outcomes are places too.
    """
    verb, _, own = name.partition(".")
    written = dict(_written(verb)[own])
    about = {key: _line(written.pop(key)) for key in _ABOUT}
    parts = {**_PARTS, **words}
    for key, text in written.items():
        parts[key] = _part(text, words.get(key), parts)
    sentences: Any = {outcome: parts[outcome] for outcome in OUTCOMES if outcome in parts}
    return declare(ClaimRule(name, **about, sentences=sentences, margin=margin, opposite=opposite))


@cache
def _written(verb: str) -> dict[str, dict[str, Any]]:
    path = Path(__file__).with_name("sentences") / f"{verb}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _line(text: str) -> str:
    return " ".join(text.split())


def _part(
    text: str | Mapping[str, str], which: Sentence | None, parts: Mapping[str, Sentence]
) -> Sentence:
    if isinstance(text, str):
        return partial(_filled, _line(text), parts)
    assert which is not None
    return lambda facts: _filled(_line(text[which(facts)]), parts, facts)


def _filled(text: str, parts: Mapping[str, Sentence], facts: Facts) -> str:
    """Return words with their places filled; `{start}` names the subject, or begins a sentence."""

    def place(found: re.Match[str]) -> str:
        name, how = found.groups()
        if how is None and name in parts:
            return parts[name](facts)
        value: Any = reduce(getitem, name.split("."), facts)
        if how is None:
            return str(value)
        if how.startswith("count "):
            return count(value, how.removeprefix("count "))
        if "/" in how:
            return how.split("/")[int(value < 0)]
        return _WRITTEN[how](value) if how in _WRITTEN else format(value, how)

    body = text.removeprefix("{start}")
    filled = _PLACE.sub(place, body)
    if body == text:
        return filled
    return f"{facts['name']}: {filled}" if facts["named"] else filled[0].upper() + filled[1:]
