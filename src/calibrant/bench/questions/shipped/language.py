"""Official languages of states: asked only where two independent lists agree.

The list by hand says which spoken languages are official nationwide in each member state of the
United Nations; Unicode CLDR (through babel) says it once more. CLDR alone is not complete: it has
one official language for South Africa. A state is used where both lists give the same languages.
A language is used where no state that is left out could have it as an official one.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections import defaultdict
from typing import Any

from calibrant.bench.questions.facts import Fact, FactSet
from calibrant.bench.questions.shipped.lists import official_languages
from calibrant.core.imports import optional_import

_OFFICIAL = ("official", "de_facto_official")
_WHY = (
    "complete: every member state is listed or left out, and Unicode CLDR gives the same "
    "languages for every state that is used"
)
_ALSO_CALLED = {
    "AE": ("UAE",),
    "CD": ("Democratic Republic of the Congo", "DRC", "DR Congo"),
    "CG": ("Republic of the Congo", "Congo Republic"),
    "CI": ("Ivory Coast",),
    "CN": ("People's Republic of China",),
    "CV": ("Cabo Verde",),
    "CZ": ("Czech Republic",),
    "FM": ("Federated States of Micronesia",),
    "GB": ("UK", "Great Britain"),
    "KP": ("Democratic People's Republic of Korea",),
    "KR": ("Republic of Korea",),
    "NL": ("The Netherlands", "Holland"),
    "SZ": ("Swaziland",),
    "TL": ("East Timor",),
    "TR": ("Turkey",),
    "US": ("USA", "US", "United States of America"),
}
# Names for a sentence, where CLDR's are made for lists: 'Congo - Kinshasa'.
_USUAL = {
    "CD": "Democratic Republic of the Congo",
    "CG": "Republic of the Congo",
    "MM": "Myanmar",
    "VC": "Saint Vincent and the Grenadines",
}
_Sets = dict[str, frozenset[str]]


def shipped_language() -> list[FactSet]:
    """Return which languages are official where, and where each language is official.

    Needs babel (BSD-3-Clause; its CLDR data under the Unicode License V3).
    """
    listed, official = official_languages(), cldr_official()
    agreed = {code: found for code, found in listed.states.items() if official.get(code) == found}
    states, languages = state_names(), language_names()
    uncertain: set[str] = set()
    for code in (set(listed.states) | set(listed.left_out)) - set(agreed):
        uncertain |= listed.left_out.get(code, frozenset()) | official.get(code, frozenset())
        uncertain |= listed.states.get(code, frozenset())
    source = f"{listed.source} ({listed.date}), agreeing with {cldr_source()}"
    other = {code: listed.also_called.get(code, ()) for code in languages}
    of_state = [
        Fact(states[code][0], languages[tongue], aliases=other[tongue])
        for code, found in sorted(agreed.items())
        for tongue in sorted(found)
    ]
    where = [
        Fact(languages[tongue], states[code][0], aliases=states[code][1:])
        for code, found in sorted(agreed.items())
        for tongue in sorted(found - uncertain)
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
    grouped: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        grouped[fact.subject].append(fact)
    return FactSet(
        domain="language",
        relation=relation,
        source=source,
        facts={subject: tuple(grouped[subject]) for subject in sorted(grouped)},
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


def cldr_source() -> str:
    """Return which CLDR this is, in words."""
    version = importlib.metadata.version("babel")
    return f"Unicode CLDR {_core().get_cldr_version()} as in babel {version}"


def state_names() -> dict[str, tuple[str, ...]]:
    """Return the names of every territory by its code, the usual English one first."""
    found = {}
    for code, name in _core().Locale("en").territories.items():
        usual = _USUAL.get(code, name.replace("&", "and").replace("St. ", "Saint "))
        others = (name, *name_variants(name), *_ALSO_CALLED.get(code, ()))
        found[code] = tuple(dict.fromkeys((usual, *others)))
    return found


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
    found: list[str] = []
    if match := re.fullmatch(r"(.+) \((.+)\)", name):
        found.extend(match.groups())
    if "&" in name:
        found.append(name.replace("&", "and"))
    if "St. " in name:
        found.append(name.replace("St. ", "Saint ").replace("&", "and"))
    return tuple(found)


def _core() -> Any:
    return optional_import(
        "babel.core", extra="bench-data", purpose="language questions without files (CLDR data)"
    )
