"""Years with an era, centuries, and names that end in a numeral: 'Louis XIV', 'Super Bowl 50'."""

from __future__ import annotations

import re

from calibrant.semantics.text.numbers import digits_for_words
from calibrant.semantics.typed.relation import Relation, Verdict, decided

_YEAR = re.compile(
    r"(?:in |about |circa |c )?(?:(?P<front>ad|ce) ?)?(?P<year>\d{1,4}) ?"
    r"(?P<era>bce|bc|ad|ce|before christ|before the common era)?"
)
_CENTURY = re.compile(
    r"(?:in )?(?:the )?(?P<number>\d{1,2})(?:st|nd|rd|th) century ?(?P<era>bce|bc|ad|ce)?"
)
_ROMAN = re.compile(r"(?=[IVXLC])(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_NAMED = re.compile(
    r"(?P<name>(?:[A-Z][\w'-]*\.?\s){1,4})(?P<the>the\s)?"
    r"(?P<numeral>[IVXLC]{1,6}|\d{1,3}(?:st|nd|rd|th)?)(?:\sof\s[A-Z][\w ]{1,30})?\.?"
)
_IN_FRONT = re.compile(r"^(\d{1,2})(?:st|nd|rd|th) ((?:[A-Z][\w'-]*\s?){1,3})$")
_TITLE = re.compile(r"^(?:king|queen|pope|emperor|empress|tsar|kaiser|the)\s+(?=\w)")
_SHORT = re.compile(r"^WW\s?(?=[I12])")


def read_era(text: str) -> tuple[str, int] | None:
    """Read a year with an era, or a century: what it is, and its number, negative before Christ.

    Examples
    --------
    >>> read_era("44 BCE"), read_era("AD 79"), read_era("the fifth century BC"), read_era("79")
    (('year', -44), ('year', 79), ('century', -5), None)
    """
    if len(text) > 40 or not re.search(r"[bcBC]|AD|ad", text):
        return None
    plain = digits_for_words(text).lower().replace(".", "").strip()
    found = _YEAR.fullmatch(plain)
    if found and (found["front"] or found["era"]):
        return "year", _signed(found["year"], found["era"])
    found = _CENTURY.fullmatch(plain)
    return None if found is None else ("century", _signed(found["number"], found["era"]))


def _signed(number: str, era: str | None) -> int:
    return -int(number) if era and era.startswith("b") else int(number)


def compare_eras(a: tuple[str, int], b: tuple[str, int]) -> Verdict:
    """Compare two years or centuries that name their era."""
    return decided(a == b, "era")


def year_without_era(era: tuple[str, int], year: int) -> Verdict:
    """Compare a year that names its era with one that does not."""
    if abs(era[1]) != year or era[0] != "year":
        return Relation.DIFFERENT, "era"
    return (Relation.SAME if era[1] > 0 else Relation.UNSURE), "era"


def read_numeral(text: str) -> tuple[str, int] | None:
    """Read a name with a numeral at its end, Roman, Arabic or in words.

    Examples
    --------
    >>> read_numeral("Louis XIV"), read_numeral("Queen Elizabeth the Second")
    (('louis', 14), ('elizabeth', 2))
    >>> read_numeral("the Second World War") == read_numeral("WWII")
    True
    """
    if len(text) > 60:
        return None
    plain = digits_for_words(_SHORT.sub("World War ", text.strip()).removeprefix("the "))
    front = _IN_FRONT.match(plain)
    if front:
        return front[2].strip().lower(), int(front[1])
    found = _NAMED.fullmatch(plain)
    if found is None:
        return None
    numeral = found["numeral"]
    if numeral[0].isdigit():
        number = int(re.sub(r"\D", "", numeral))
    elif _ROMAN.fullmatch(numeral):
        number = _roman(numeral)
    else:
        return None
    return _TITLE.sub("", found["name"].lower().strip()), number


def _roman(numeral: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in numeral]
    later = [*values[1:], 0]
    return sum(
        -value if value < after else value for value, after in zip(values, later, strict=True)
    )


def compare_numerals(a: tuple[str, int], b: tuple[str, int]) -> Verdict | None:
    """Compare two names with a numeral; other names are left to the rules of names."""
    return decided(a[1] == b[1], "numeral") if a[0] == b[0] else None
