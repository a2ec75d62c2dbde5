"""The wording of the published MACE questions, to read them back (Wang et al., MACE)."""

from __future__ import annotations

import re
from collections.abc import Collection

from calibrant.sources.mace.wording import Parsed, split_subjects

_YEARS = r"(?:in (?P<one>\d+)|between (?P<low>\d+) and (?P<high>\d+))"
_PATTERNS = {
    "awarded_to": rf"Name one person who received (?P<subjects>.+) {_YEARS}\.?",
    "held_by": (
        rf"Name one person (?:from )?who officially assumed the office of (?P<subjects>.+) "
        rf"{_YEARS}\.?"
    ),
    "division_of": (
        r"Name one first-level administrative division of (?P<subjects>.+), whose area "
        r"\(in square kilometers\) is between (?P<low>[\d.]+) and (?P<high>[\d.]+)\.?"
    ),
    "spoken_in": (
        r"Name one country where (?P<subjects>.+) (?:was|were) predominantly spoken by native "
        r"speakers\.?"
    ),
    "flows_through": r"Name one country through which (?:the )?(?P<subjects>.+) flows\.?",
    "math": r"Name an? (?P<subjects>\w+) number between (?P<low>\d+) and (?P<high>\d+)\.?",
}


def read_published(text: str, relation: str, subjects: Collection[str]) -> Parsed | None:
    """Return what a published question asks for, or None when the words are others.

    Examples
    --------
    >>> read_published("Name a prime number between 20 and 30.", "math", [])
    Parsed(relation='math', subjects=('prime',), bounds=(20.0, 30.0))
    """
    match = re.fullmatch(_PATTERNS[relation], text.strip()) if relation in _PATTERNS else None
    if match is None:
        return None
    groups = match.groupdict()
    bounds = None
    if groups.get("one"):
        bounds = (float(groups["one"]), float(groups["one"]))
    elif groups.get("low"):
        bounds = (float(groups["low"]), float(groups["high"]))
    named = groups["subjects"]
    if relation in ("spoken_in", "flows_through"):
        article = "the " if relation == "flows_through" else ""
        found = split_subjects(named, article, frozenset(subjects))
    else:
        found = (named,)
    return Parsed(relation, found, bounds) if found else None
