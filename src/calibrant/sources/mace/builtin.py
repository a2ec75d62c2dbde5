"""Facts that ship inside a dependency: nothing to download, the source is named."""

from __future__ import annotations

import importlib.metadata
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from calibrant.core.optional import optional_import
from calibrant.sources.mace.facts import Fact, FactSet
from calibrant.sources.mace.names import ascii_fold

__all__ = ["builtin_language", "builtin_region"]

_OFFICIAL = ("official", "de_facto_official")
# CLDR's shares are estimates: a language counts as spoken by the majority of a territory only
# where no territory lies between these two, so that an error of a few points changes nothing.
_MAJORITY, _MINORITY = 60.0, 40.0
_FEWEST_DIVISIONS = 3
_ALSO_CALLED = {
    "AE": ("UAE",),
    "CD": ("Democratic Republic of the Congo", "DRC", "DR Congo"),
    "CG": ("Republic of the Congo", "Congo Republic"),
    "CI": ("Ivory Coast",),
    "CV": ("Cabo Verde",),
    "CZ": ("Czech Republic",),
    "GB": ("UK", "Great Britain"),
    "HK": ("Hong Kong",),
    "MK": ("Macedonia",),
    "MO": ("Macau", "Macao"),
    "NL": ("The Netherlands", "Holland"),
    "PS": ("Palestine", "State of Palestine"),
    "SZ": ("Swaziland",),
    "TL": ("East Timor",),
    "TR": ("Turkey",),
    "US": ("USA", "US", "United States of America"),
    "VA": ("Vatican", "Holy See"),
}


def builtin_language() -> list[FactSet]:
    """Return which languages are official or spoken by most people where, from Unicode CLDR.

    Needs babel (BSD-3-Clause; its CLDR data under the Unicode License V3).
    """
    core = optional_import(
        "babel.core", extra="bench", purpose="language questions without files (CLDR data)"
    )
    english = core.Locale("en")
    territories = core.get_global("territory_languages")
    source = (
        f"Unicode CLDR {core.get_cldr_version()} territory languages, "
        f"as in babel {_version('babel')}"
    )
    official, incomplete = _official(territories, english.languages, english.territories)
    majority = _majority(territories, english.languages, english.territories)
    overlapping = _overlapping(official)
    reverse = [
        Fact(fact.obj, fact.subject, aliases=_name_variants(fact.subject))
        for fact in official
        if fact.obj not in incomplete | overlapping
    ]
    reasons = {
        "territory has an official language without a name": len(incomplete),
        "territory has an official language that is part of another": len(overlapping),
    }
    return [
        _fact_set("language", "official_in", source, official),
        _fact_set("language", "official_of", source, reverse, {"validity": reasons}),
        _fact_set("language", "majority_in", source, majority),
    ]


_Names = dict[str, str]
_Territories = dict[str, dict[str, dict[str, object]]]


def _official(
    territories: _Territories, languages: _Names, countries: _Names
) -> tuple[list[Fact], set[str]]:
    pairs: set[tuple[str, str]] = set()
    incomplete: set[str] = set()
    for territory in sorted(territories):
        for code, entry in sorted(territories[territory].items()):
            if entry["official_status"] not in _OFFICIAL:
                continue
            # A language written in two scripts is one language: sr and sr_Latn.
            name = languages.get(code.split("_")[0])
            if name is None:
                incomplete.add(countries[territory])
            else:
                pairs.add((name, territory))
    return [_territory_fact(name, code, countries) for name, code in sorted(pairs)], incomplete


def _overlapping(official: list[Fact]) -> set[str]:
    """Return territories where one official language's name holds another's.

    Norwegian Bokmål is Norwegian: how many answers are right is then a matter of taste.
    """
    languages: dict[str, set[str]] = defaultdict(set)
    for fact in official:
        languages[fact.obj].add(fact.subject)
    return {
        territory
        for territory, names in languages.items()
        if any(set(a.split()) < set(b.split()) for a in names for b in names)
    }


def _majority(territories: _Territories, languages: _Names, countries: _Names) -> list[Fact]:
    share: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for territory, entries in territories.items():
        for code, entry in entries.items():
            name = languages.get(code.split("_")[0])
            if name is not None:
                share[name][territory] += float(str(entry["population_percent"]))
    return [
        _territory_fact(name, territory, countries)
        for name, where in sorted(share.items())
        if not any(_MINORITY < percent < _MAJORITY for percent in where.values())
        for territory, percent in sorted(where.items())
        if percent >= _MAJORITY
    ]


def _territory_fact(language: str, code: str, countries: _Names) -> Fact:
    name = countries[code]
    return Fact(language, name, aliases=(*_name_variants(name), *_ALSO_CALLED.get(code, ())))


def _name_variants(name: str) -> tuple[str, ...]:
    """Return other ways to write a name: 'Myanmar (Burma)' is both.

    Examples
    --------
    >>> _name_variants("Myanmar (Burma)")
    ('Myanmar', 'Burma')
    >>> _name_variants("St. Kitts & Nevis")
    ('St. Kitts and Nevis', 'Saint Kitts and Nevis')
    """
    found: list[str] = []
    if match := re.fullmatch(r"(.+) \((.+)\)", name):
        found.extend(match.groups())
    if "&" in name:
        found.append(name.replace("&", "and"))
    if "St. " in name:
        found.append(name.replace("St. ", "Saint ").replace("&", "and"))
    if name.endswith(" SAR China"):
        found.append(name.removesuffix(" SAR China"))
    return tuple(found)


def builtin_region() -> list[FactSet]:
    """Return the subdivisions of countries by kind and initial, from ISO 3166-2.

    Needs pycountry (LGPL-2.1, with the data of Debian's iso-codes under the same licence).
    A name with several spellings has all their initials, and no question cuts between them.
    """
    pycountry = optional_import(
        "pycountry", extra="bench", purpose="region questions without files (ISO 3166-2 data)"
    )
    source = f"ISO 3166-2, as in pycountry {_version('pycountry')}"
    facts, unreadable = [], 0
    for entry in sorted(pycountry.subdivisions, key=lambda one: one.code):
        country = pycountry.countries.get(alpha_2=entry.country_code)
        spellings = _spellings(entry.name)
        initials = [ord(text[0].upper()) - ord("A") for text in spellings if text[:1].isalpha()]
        if len(initials) < len(spellings) or not all(0 <= initial < 26 for initial in initials):
            unreadable += 1
            initials = [0, 25]  # its place in the alphabet is unknown: it blocks every window
        name = getattr(country, "common_name", country.name)
        facts.append(
            Fact(
                f"{entry.type.lower()} of {name}",
                entry.name,
                low=float(min(initials)),
                high=float(max(initials)),
                aliases=tuple(_plain_spellings(entry.name)),
            )
        )
    sizes = Counter(fact.subject for fact in facts)
    kept = [fact for fact in facts if sizes[fact.subject] >= _FEWEST_DIVISIONS]
    reasons = {
        "fewer than three divisions of the kind": sum(
            size < _FEWEST_DIVISIONS for size in sizes.values()
        ),
        "a name whose initial is not a Latin letter blocks all windows": unreadable,
    }
    return [_fact_set("region", "iso_division_of", source, kept, {"domain rule": reasons})]


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


def _spellings(name: str) -> list[str]:
    """Return every spelling without accents and marks before the first letter."""
    return [
        re.sub(r"^[^0-9A-Za-z]+", "", ascii_fold(text)) or "?"
        for text in (name, *_plain_spellings(name))
    ]


def _fact_set(
    domain: str,
    relation: str,
    source: str,
    facts: list[Fact],
    dropped: dict[str, dict[str, int]] | None = None,
) -> FactSet:
    grouped: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        grouped[fact.subject].append(fact)
    return FactSet(
        domain=domain,
        relation=relation,
        source=source,
        facts={subject: tuple(grouped[subject]) for subject in sorted(grouped)},
        dropped=dropped or {},
        stages={"raw": len(grouped)},
    )


def _version(package: str) -> str:
    return importlib.metadata.version(package)


BUILTIN: dict[str, Callable[[], list[FactSet]]] = {
    "language": builtin_language,
    "region": builtin_region,
}
