"""The lists that calibrant ships: official languages and divisions, written down by hand."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class OfficialLanguages:
    """Nationwide official languages of UN member states, by ISO codes.

    `left_out` maps a state whose list is not certain to the languages that may be official there.
    """

    source: str
    date: str
    states: dict[str, frozenset[str]]
    left_out: dict[str, frozenset[str]]
    also_called: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Division:
    """All divisions of one kind in one country; each is the tuple of its names."""

    country: str
    kind: str
    names: tuple[tuple[str, ...], ...]


@lru_cache(maxsize=1)
def official_languages() -> OfficialLanguages:
    """Return the list of official languages.

    Examples
    --------
    >>> sorted(official_languages().states["BE"])
    ['de', 'fr', 'nl']
    >>> "ZA" in official_languages().states, "ZA" in official_languages().left_out
    (False, True)
    """
    content = _content("official_languages.toml")
    return OfficialLanguages(
        source=content["source"],
        date=content["date"],
        states={code: frozenset(text.split()) for code, text in content["states"].items()},
        left_out={code: frozenset(text.split()) for code, text in content["left_out"].items()},
        also_called={code: tuple(text.split("|")) for code, text in content["also_called"].items()},
    )


@lru_cache(maxsize=1)
def listed_divisions() -> tuple[str, tuple[Division, ...]]:
    """Return the source of the list of divisions in words, and the divisions.

    Examples
    --------
    >>> source, divisions = listed_divisions()
    >>> next(len(one.names) for one in divisions if one.country == "United States")
    50
    """
    content = _content("divisions.toml")
    divisions = tuple(
        Division(
            country,
            entry["kind"],
            tuple(tuple(entity.split("=")) for entity in _entities(entry["names"])),
        )
        for country, entry in content["countries"].items()
    )
    return f"{content['source']}, {content['date']}", divisions


def _entities(text: str) -> list[str]:
    """Split at commas; 'San Andrés, Providencia y Santa Catalina' is one department."""
    whole = text.strip().replace("San Andrés, Providencia", "San Andrés; Providencia")
    return [name.replace(";", ",").strip() for name in re.split(r",\s+", whole)]


def _content(name: str) -> dict[str, Any]:
    file = resources.files("calibrant.bench.questions.shipped") / "data" / name
    return tomllib.loads(file.read_text(encoding="utf-8"))
