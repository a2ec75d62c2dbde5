"""Facts that come with calibrant: official languages and divisions of states, from two lists."""

import importlib.metadata
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct

from calibrant.answers.semantics.text.normalise import strip_accents
from calibrant.bench.questions.facts import Fact, FactSet, by_subject
from calibrant.bench.questions.question import in_a_sentence, normalised
from calibrant.core.names import data_beside, optional_import

_Sets = dict[str, frozenset[str]]


class OfficialLanguages(Struct, frozen=True):
    """Nationwide official languages of UN member states, by ISO codes.

    `left_out` maps a state whose list is not certain to the languages that may be official there.
    """

    source: str
    date: str
    states: dict[str, frozenset[str]]
    left_out: dict[str, frozenset[str]]
    also_called: dict[str, tuple[str, ...]]
    state_names: dict[str, tuple[str, ...]]


class Division(Struct, frozen=True):
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
    content = data_beside(__file__, "data/official_languages.toml")

    def sets(name: str) -> _Sets:
        return {code: frozenset(text.split()) for code, text in content[name].items()}

    def names(name: str) -> dict[str, tuple[str, ...]]:
        return {code: tuple(text.split("|")) for code, text in content[name].items()}

    return OfficialLanguages(
        source=content["source"],
        date=content["date"],
        states=sets("states"),
        left_out=sets("left_out"),
        also_called=names("also_called"),
        state_names=names("state_names"),
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
    content = data_beside(__file__, "data/divisions.toml")
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


_OFFICIAL = ("official", "de_facto_official")
_WHY = (
    "complete: every member state is listed or left out, and Unicode CLDR gives the same "
    "languages for every state that is used"
)
# Names for a sentence, where CLDR's are made for lists: 'Congo - Kinshasa'.
_USUAL = {
    "CD": "Democratic Republic of the Congo",
    "CG": "Republic of the Congo",
    "MM": "Myanmar",
    "VC": "Saint Vincent and the Grenadines",
}


def shipped_language() -> list[FactSet]:
    """Return which languages are official where, and where each language is official.

    Needs babel (BSD-3-Clause; its CLDR data under the Unicode License V3).
    """
    listed, official = official_languages(), cldr_official()
    agreed = {code: codes for code, codes in listed.states.items() if official.get(code) == codes}
    states, languages = state_names(), language_names()
    uncertain: set[str] = set()
    for code in (set(listed.states) | set(listed.left_out)) - set(agreed):
        uncertain |= listed.left_out.get(code, frozenset()) | official.get(code, frozenset())
        uncertain |= listed.states.get(code, frozenset())
    cldr = f"{_core().get_cldr_version()} as in babel {importlib.metadata.version('babel')}"
    source = f"{listed.source} ({listed.date}), agreeing with Unicode CLDR {cldr}"
    peer = {code: listed.also_called.get(code, ()) for code in languages}
    of_state = [
        Fact(states[code][0], languages[tongue], aliases=peer[tongue])
        for code, codes in sorted(agreed.items())
        for tongue in sorted(codes)
    ]
    where = [
        Fact(languages[tongue], states[code][0], aliases=states[code][1:])
        for code, codes in sorted(agreed.items())
        for tongue in sorted(codes - uncertain)
    ]
    left_out = {
        "the list by hand leaves the state out": len(listed.left_out),
        "the two lists do not agree on the state": len(listed.states) - len(agreed),
    }
    unused = {"may be official in a state that is left out": len(uncertain & set(languages))}
    return [
        _fact_set("official_nationwide_of", source, listed.date, of_state, left_out),
        _fact_set("official_nationwide_in", source, listed.date, where, unused),
    ]


def _fact_set(
    relation: str, source: str, date: str, facts: list[Fact], reasons: dict[str, int]
) -> FactSet:
    grouped = by_subject(facts)
    return FactSet(
        domain="language",
        relation=relation,
        source=source,
        facts=grouped,
        dropped={"completeness": reasons},
        stages={"complete": len(grouped)},
        date=date,
        completeness=_WHY,
    )


def cldr_official() -> _Sets:
    """Return CLDR's official languages by territory; scripts of one language are one."""
    territories = _core().get_global("territory_languages")
    return {
        code: frozenset(
            tongue.split("_")[0]
            for tongue, entry in entries.items()
            if entry["official_status"] in _OFFICIAL
        )
        for code, entries in territories.items()
    }


def state_names() -> dict[str, tuple[str, ...]]:
    """Return the names of every territory by its code, the usual English one first."""
    names = {}
    for code, name in _core().Locale("en").territories.items():
        usual = _USUAL.get(code, name.replace("&", "and").replace("St. ", "Saint "))
        peers = (name, *name_variants(name), *official_languages().state_names.get(code, ()))
        names[code] = tuple(dict.fromkeys((usual, *peers)))
    return names


def language_names() -> dict[str, str]:
    """Return the English name of every language by its code."""
    return dict(_core().Locale("en").languages)


def name_variants(name: str) -> tuple[str, ...]:
    """Return other ways to write a name: 'Myanmar (Burma)' is both.

    Examples
    --------
    >>> name_variants("Myanmar (Burma)")
    ('Myanmar', 'Burma')
    >>> name_variants("St. Kitts & Nevis")
    ('St. Kitts and Nevis', 'Saint Kitts and Nevis')
    """
    variants: list[str] = []
    if match := re.fullmatch(r"(.+) \((.+)\)", name):
        variants.extend(match.groups())
    if "&" in name:
        variants.append(name.replace("&", "and"))
    if "St. " in name:
        variants.append(name.replace("St. ", "Saint ").replace("&", "and"))
    return tuple(variants)


def _core() -> Any:
    return optional_import(
        "babel.core", extra="bench-data", purpose="language questions without files (CLDR data)"
    )


_WHY_DIVISIONS = (
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
    version = importlib.metadata.version("pycountry")
    facts: dict[str, tuple[Fact, ...]] = {}
    for division in divisions:
        subject = f"{division.kind} of {in_a_sentence(division.country)}"
        agreed = _agreed(division, iso.get(_key(division.country, division.kind), ()))
        if agreed is not None:
            facts[subject] = tuple(agreed)
    reasons = {
        "no list by hand to compare with": len(iso) - len(divisions),
        "the two lists do not agree": len(divisions) - len(facts),
    }
    return [
        FactSet(
            domain="region",
            relation="iso_division_of",
            source=f"ISO 3166-2 as in pycountry {version}, agreeing with {source}",
            facts=facts,
            dropped={"completeness": reasons},
            stages={"raw": len(iso), "complete": len(facts)},
            date=source.rsplit(", ", 1)[-1],
            completeness=_WHY_DIVISIONS,
        )
    ]


def iso_divisions() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the names of ISO 3166-2 by country and kind."""
    pycountry = optional_import(
        "pycountry", extra="bench-data", purpose="region questions without files (ISO 3166-2 data)"
    )
    by_kind: dict[tuple[str, str], list[str]] = defaultdict(list)
    for entry in sorted(pycountry.subdivisions, key=lambda one: one.code):
        country = pycountry.countries.get(alpha_2=entry.country_code)
        name = getattr(country, "common_name", country.name)
        by_kind[_key(name, entry.type)].append(entry.name)
    return {key: tuple(names) for key, names in by_kind.items()}


def _key(country: str, kind: str) -> tuple[str, str]:
    equal = {"Türkiye": "Turkey"}
    return equal.get(country, country), kind.lower()


def _agreed(division: Division, iso: tuple[str, ...]) -> list[Fact] | None:
    """Return the facts of a country, or None where a name has no partner in the other list."""
    remaining = {names: {normalised(name) for name in names} for names in division.names}
    facts = []
    for name in iso:
        forms = {normalised(text) for text in (name, *_plain_spellings(name))}
        match = next((names for names, keys in remaining.items() if keys & forms), None)
        if match is None:
            return None
        del remaining[match]
        aliases = tuple(dict.fromkeys((*_plain_spellings(name), *match)))
        every = map(strip_accents, (name, *_plain_spellings(name), *match))
        # Marks before the first letter do not count.
        bare = (re.sub(r"^[^0-9A-Za-z]+", "", text) for text in every)
        initials = [ord(text[0].upper()) - ord("A") for text in bare]
        facts.append(
            Fact(
                f"{division.kind} of {in_a_sentence(division.country)}",
                name,
                float(min(initials)),
                float(max(initials)),
                aliases,
            )
        )
    return facts if not remaining else None


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


SHIPPED: dict[str, Callable[[], list[FactSet]]] = {
    "language": shipped_language,
    "region": shipped_region,
}
