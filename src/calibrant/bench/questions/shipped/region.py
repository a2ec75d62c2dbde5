"""Divisions of countries: asked only where ISO 3166-2 and a list by hand agree."""

from __future__ import annotations

import importlib.metadata
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from calibrant.bench.questions.facts import Fact, FactSet
from calibrant.bench.questions.question import ascii_fold, normalised
from calibrant.bench.questions.shipped.lists import Division, listed_divisions
from calibrant.bench.questions.wording import in_a_sentence
from calibrant.core.imports import optional_import

_WHY = (
    "complete: ISO 3166-2 lists every division of its kind, and a list by hand has the same "
    "divisions for every country that is used"
)


def shipped_region() -> list[FactSet]:
    """Return the divisions of countries with the initials of all their names.

    Needs pycountry (LGPL-2.1, with the data of Debian's iso-codes under the same licence). A
    division with several names has all their initials, and no question cuts between them.
    """
    iso = iso_divisions()
    source, divisions = listed_divisions()
    facts: dict[str, tuple[Fact, ...]] = {}
    for division in divisions:
        subject = f"{division.kind} of {in_a_sentence(division.country)}"
        found = _agreed(division, iso.get(_key(division.country, division.kind), ()))
        if found is not None:
            facts[subject] = tuple(found)
    reasons = {
        "no list by hand to compare with": len(iso) - len(divisions),
        "the two lists do not agree": len(divisions) - len(facts),
    }
    return [
        FactSet(
            domain="region",
            relation="iso_division_of",
            source=f"{iso_source()}, agreeing with {source}",
            facts=facts,
            dropped={"completeness": reasons},
            stages={"raw": len(iso), "complete": len(facts)},
            date=source.rsplit(", ", 1)[-1],
            completeness=_WHY,
        )
    ]


def iso_divisions() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the names of ISO 3166-2 by country and kind."""
    pycountry = _pycountry()
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for entry in sorted(pycountry.subdivisions, key=lambda one: one.code):
        country = pycountry.countries.get(alpha_2=entry.country_code)
        name = getattr(country, "common_name", country.name)
        found[_key(name, entry.type)].append(entry.name)
    return {key: tuple(names) for key, names in found.items()}


def iso_source() -> str:
    """Return which ISO 3166-2 this is, in words."""
    _pycountry()
    return f"ISO 3166-2 as in pycountry {importlib.metadata.version('pycountry')}"


def _pycountry() -> Any:
    return optional_import(
        "pycountry", extra="bench-data", purpose="region questions without files (ISO 3166-2 data)"
    )


def _key(country: str, kind: str) -> tuple[str, str]:
    same = {"Türkiye": "Turkey"}
    return same.get(country, country), kind.lower()


def _agreed(division: Division, iso: tuple[str, ...]) -> list[Fact] | None:
    """Return the facts of a country, or None where a name has no partner in the other list."""
    left = {names: {normalised(name) for name in names} for names in division.names}
    facts = []
    for name in iso:
        forms = {normalised(text) for text in (name, *_plain_spellings(name))}
        match = next((names for names, keys in left.items() if keys & forms), None)
        if match is None:
            return None
        del left[match]
        facts.append(_fact(f"{division.kind} of {in_a_sentence(division.country)}", name, match))
    return facts if not left else None


def _fact(subject: str, name: str, names: tuple[str, ...]) -> Fact:
    aliases = tuple(dict.fromkeys((*_plain_spellings(name), *names)))
    initials = [ord(text[0].upper()) - ord("A") for text in _spellings(name, names)]
    return Fact(subject, name, float(min(initials)), float(max(initials)), aliases)


def _plain_spellings(name: str) -> Iterator[str]:
    """Yield the spellings that an ISO 3166-2 name stands for.

    Examples
    --------
    >>> list(_plain_spellings("Bruxelles-Capitale, Région de"))
    ['Région de Bruxelles-Capitale', 'Bruxelles-Capitale']
    >>> list(_plain_spellings("Araba/Álava"))
    ['Araba', 'Álava']
    """
    text = re.sub(r"\s*[\[(].*?[\])]|\*", "", name).strip()
    if text != name:
        yield text
        yield from (part.strip() for part in re.findall(r"[\[(](.*?)[\])]", name))
    for part in text.split("/") if "/" in text else [text]:
        head, comma, tail = part.strip().partition(", ")
        if comma:
            yield f"{tail}{'' if tail.endswith(chr(39)) else ' '}{head}"
            yield head
        elif part != name:
            yield part.strip()


def _spellings(name: str, others: tuple[str, ...]) -> list[str]:
    """Return every spelling without accents and marks before the first letter."""
    return [
        re.sub(r"^[^0-9A-Za-z]+", "", ascii_fold(text))
        for text in (name, *_plain_spellings(name), *others)
    ]
