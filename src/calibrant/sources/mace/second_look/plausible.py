"""Rules that no right question breaks, whatever it was made from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from calibrant.sources.mace.names import normalised
from calibrant.sources.mace.question import Question

UNINHABITED = (
    "Antarctica",
    "Bouvet Island",
    "British Indian Ocean Territory",
    "Chagos Archipelago",
    "Clipperton Island",
    "Diego Garcia",
    "French Southern Territories",
    "French Southern and Antarctic Lands",
    "Heard & McDonald Islands",
    "Heard Island and McDonald Islands",
    "South Georgia & South Sandwich Islands",
    "South Georgia and the South Sandwich Islands",
    "U.S. Outlying Islands",
    "United States Minor Outlying Islands",
)
_EMPTY_LAND = frozenset(normalised(name) for name in UNINHABITED)
_UNKNOWN = re.compile(
    r"\b(?:unknown|undetermined|unspecified|n/?a|none|null|nan|tbd|test)\b(?: language| region)?",
    flags=re.IGNORECASE,
)
_BARE_ID = re.compile(r"\b[QLP]\d{2,}\b")
_LONGEST_NAME = 120


def implausible(question: Question) -> Iterator[str]:
    """Yield what is implausible about a question, nothing where all is well.

    Examples
    --------
    >>> bad = Question("Name one country where Unknown language is spoken.", (("Antarctica",),),
    ...                "language", "", "test")
    >>> list(implausible(bad))
    ['the question asks about something unknown', 'nobody lives in Antarctica']
    """
    if _UNKNOWN.search(question.text) and question.domain != "math":
        yield "the question asks about something unknown"
    if _BARE_ID.search(question.text):
        yield "the question holds a bare id"
    if not question.references:
        yield "there is no right answer"
    yield from _names(question)
    yield from _twice(question)
    wrong = {normalised(name) for name in question.siblings}
    right = {normalised(name) for names in question.references for name in names}
    if wrong & right:
        yield f"both right and known to be wrong: {', '.join(sorted(wrong & right))}"


def _names(question: Question) -> Iterator[str]:
    for names in question.references:
        name = names[0].strip() if names else ""
        if not name:
            yield "a right answer has no name"
        elif normalised(name) in _EMPTY_LAND:
            yield f"nobody lives in {name}"
        elif _BARE_ID.fullmatch(name) or _UNKNOWN.fullmatch(name):
            yield f"a right answer is no name: {name}"
        elif len(name) > _LONGEST_NAME:
            yield f"a right answer is longer than a name: {name[:40]}.."


def _twice(question: Question) -> Iterator[str]:
    """Yield answers that share a name: k counts them twice."""
    owners: dict[str, int] = {}
    for place, names in enumerate(question.references):
        for name in {normalised(text) for text in names}:
            if owners.setdefault(name, place) != place:
                yield f"two right answers share the name {name!r}"
                return
